"""Lessons: predict, reveal, explain, on the live model. Nothing here draws anything.

lessons, errors = load_folder(SHIPPED)
lesson = lessons[0]
run = lesson.open(load)                  # the first model and sentence on which it works
step = lesson.steps[2]
step.view(run)                           # settings to show, as in a permalink
question = step.question(run, seed=1)    # text, choices, what to veil
question.mark("Hund")                    # right or not, a score, a sentence
"""
