"""Questions about what a model writes: the next token, and the text without a part of it."""

import math
from itertools import repeat
from typing import ClassVar

import numpy as np

from headlight.app.lessons.formatting import fine_percent, number, text
from headlight.app.lessons.question import (
    CHOOSE,
    NUMBER,
    Draw,
    Question,
    QuestionType,
    Veil,
    choices_of,
)
from headlight.app.lessons.question_types.arithmetic import MOST_DRAWS, NONE_FOUND, apart
from headlight.app.lessons.question_types.attention import row_values
from headlight.app.lessons.sentence_run import END, NoQuestion, SentenceRun, is_word, names_of
from headlight.model.analysis.head_metrics import total_variation
from headlight.model.decoding.generate import Beam
from headlight.model.rounding import percent


class NextTokenType(QuestionType):
    """Which token greedy decoding, beam search or sampling takes next (section 6.1)."""

    name = "next token"
    asks: ClassVar = {
        "greedy": CHOOSE,
        "greedy or beam": CHOOSE,
        "product": NUMBER,
        "best of a tree": CHOOSE,
        "candidates": NUMBER,
        "kept by top p": NUMBER,
    }
    sentences: ClassVar = {
        "one back": "That is already written.",
        "off by one": "One step too far.",
        "greedy plans ahead": "Greedy takes the best token at each step. The whole can still be "
        "worse.",
        "greedy's path": "That is the greedy text. Multiply along the other paths too.",
        "mean": "You took the mean. All three must happen: multiply.",
        "sum": "You added. All three must happen: multiply.",
        "smallest": "You took the smallest. All three must happen: multiply.",
        "width kept": "That many are kept. More are compared.",
        "vocabulary only": "That is for one beginning.",
        "power": "Beams do not combine with one another.",
        "stops before p": "Together these do not reach p yet.",
        "only above p": "p is a sum over tokens, not a limit for each.",
    }
    TAILS = (
        ((50, 20, 15, 10, 5), 80),
        ((40, 30, 15, 10, 5), 80),
        ((45, 25, 15, 10, 5), 90),
        ((60, 20, 10, 6, 4), 85),
    )

    def _greedy(self, draw: Draw) -> Question:
        run = draw.writing
        greedy = run.generation()

        def clear(i):
            first, second = np.sort(greedy.probabilities[i])[::-1][:2]
            return first >= 0.8 and first - second > 0.5 and is_word(greedy.tokens, i)

        steps = [i for i in range(1, len(greedy.tokens)) if clear(i)]
        if not steps:
            raise NoQuestion("The model is not sure enough anywhere. Try another sentence.")
        i = steps[len(steps) // 2] if draw.keys.get("step") == "clear" else draw.rng.choice(steps)
        best = np.argsort(-greedy.probabilities[i], kind="stable")[:8]
        names = run.checkpoint.outputs(best, repeat(greedy.path[i - 1]))
        answers = {
            "one back": greedy.tokens[i - 1],
            "off by one": greedy.tokens[i + 1] if i + 1 < len(greedy.tokens) else END,
        }
        ranked = np.sort(greedy.probabilities[i])[::-1]
        given = {"beginning": text(greedy.tokens[:i])}
        shown = {"answer": names[0], "probability": percent(ranked[0]), "second": names[1]}
        shown["second probability"] = fine_percent(ranked[1])
        veil = Veil("next tokens", place=i), Veil("decoding")
        return self.choose(draw, names[0], answers, names[1:], given=given, shown=shown, veil=veil)

    def _greedy_or_beam(self, draw: Draw) -> Question:
        run = draw.writing
        parting = run.parting()
        greedy, beam = run.generation(), run.generation(Beam(4))
        texts = text(greedy.tokens), text(beam.tokens)
        if parting is None or beam.score < greedy.score + math.log(1.1) or texts[0] == texts[1]:
            raise NoQuestion("Greedy decoding and beam search agree here. Try another sentence.")
        choices = choices_of(draw.rng, texts[1], [texts[0]])
        paths = greedy.path[parting : parting + 1], beam.path[parting : parting + 1]
        preceding = greedy.path[parting - 1 : parting] or [None]
        tokens = [run.checkpoint.outputs(path, preceding)[0] if path else END for path in paths]
        probabilities = greedy.probabilities[min(parting, len(greedy.probabilities) - 1)]
        chances = [percent(probabilities[path[0]]) if path else "0%" for path in paths]
        return self.choose(
            draw,
            texts[1],
            {"greedy plans ahead": texts[0]},
            choices=choices,
            given={"first text": choices[0], "second text": choices[1]},
            shown={
                "common beginning": text(greedy.tokens[:parting]),
                "greedy token": tokens[0],
                "beam token": tokens[1],
                "greedy probability": chances[0],
                "beam probability": chances[1],
                "greedy total": fine_percent(math.exp(greedy.score)),
                "beam total": fine_percent(math.exp(beam.score)),
            },
            veil=(Veil("decoding"),),
        )

    def _product(self, draw: Draw) -> Question:
        for _ in range(MOST_DRAWS):
            p = draw.rng.sample([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 3)
            answers = {"mean": sum(p) / 3, "sum": sum(p), "smallest": min(p)}
            if apart([math.prod(p), *answers.values()], 0.01):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        given = {"probabilities": ", ".join(map(percent, p))}
        full = " · ".join(map(number, p)) + f" = {number(math.prod(p), 3)}"
        parts = {"given": given, "shown": {"product in full": full}}
        return self.number(math.prod(p), answers, tolerance=0.01, share=True, **parts)

    def _best_of_a_tree(self, draw: Draw) -> Question:
        for _ in range(MOST_DRAWS):
            a = draw.rng.choice([60, 55, 52])
            after_a = draw.rng.choice([55, 60, 45, 35])
            after_b = draw.rng.choice([90, 95, 85])
            paths = {
                "A C": a * after_a,
                "A D": a * (100 - after_a),
                "B C": (100 - a) * after_b,
                "B D": (100 - a) * (100 - after_b),
            }
            ranked = sorted(paths, key=paths.__getitem__, reverse=True)
            if ranked[0].startswith("B") and paths[ranked[0]] - paths[ranked[1]] >= 200:
                break
        else:
            raise NoQuestion(NONE_FOUND)
        greedy = max(("A C", "A D"), key=paths.__getitem__)
        tree = (
            f"A has {a}%, B {100 - a}%. After A, C has {after_a}% and D {100 - after_a}%; "
            f"after B, C has {after_b}% and D {100 - after_b}%."
        )
        products = "; ".join(f"{name}: {percent(p / 1e4)}" for name, p in paths.items())
        wrong, shown = {"greedy's path": greedy}, {"all products": products, "greedy first": "A"}
        shown["greedy product"] = percent(paths[greedy] / 1e4)
        return self.choose(draw, ranked[0], wrong, [*paths], given={"tree": tree}, shown=shown)

    def _candidates(self, draw: Draw) -> Question:
        width, size = draw.rng.choice([2, 3, 4, 5]), draw.rng.choice([10, 20, 50, 100])
        answers = {
            "width kept": float(width),
            "vocabulary only": float(size),
            "power": float(size**width),
        }
        given = {"width": str(width), "size": str(size)}
        shown = {"answer": number(width * size)}
        return self.number(width * size, answers, given=given, shown=shown)

    def _kept_by_top_p(self, draw: Draw) -> Question:
        shares, p = draw.rng.choice(self.TAILS)
        sums = np.cumsum(shares)
        answer = int((sums < p).sum()) + 1
        answers = {
            "stops before p": float(answer - 1),
            "only above p": float(sum(share >= p for share in shares)),
        }
        running = ", ".join(f"{s}%" for s in sums[:answer])
        given = {"probabilities": ", ".join(f"{s}%" for s in shares), "p": f"{p}%"}
        shown = {"running sums": running, "answer": str(answer)}
        return self.number(answer, answers, given=given, shown=shown)


class WithoutType(QuestionType):
    """What a model writes, and what its tokens lose, without a part of it."""

    name = "without"
    asks: ClassVar = dict.fromkeys(("written", "still right", "most needed", "agreement"), CHOOSE)
    sentences: ClassVar = {
        "attention is importance": "That word gets the most attention. Hiding it costs less.",
        "always agree": "Attention often names the needed word, but not for all tokens.",
        "a clear head is needed": "You expected the word to vanish. Other heads still pass it on.",
        "the key is needed": "You expected the word to vanish. The rest still suggests it.",
        "nothing is needed": "You expected the word to stay. Here too much is missing.",
        "others stand in": "Often true. Here no other head does this work.",
        "same place": "You followed the position.",
        "next token's": "That is needed for the token after it.",
    }
    CHANGES = ("head off", "head uniform", "key hidden")
    AGAINST = ("key hidden", "cross-attention off", "key and clue hidden")
    AMOUNTS = ("all of them", "about half", "almost none")
    OFTEN = ("all", "more than half", "half or fewer")

    def _still_right(self, draw: Draw) -> Question:
        run, head = draw.run, draw.of_head
        if head.kind != "decoder" or run.writes:
            raise NoQuestion("This question needs a model that repeats letters.")
        before, total = run.right_repeats()
        after, _ = run.right_repeats(f"{head.scope}=off")
        share = after / total if total else 0
        if not total or before < total or 0.2 < share < 0.3 or 0.7 < share < 0.9:
            raise NoQuestion("Type a longer group of different letters, twice.")
        answer = self.AMOUNTS[0 if share >= 0.9 else 1 if share >= 0.3 else 2]
        without, _ = run.right_repeats("decoder.1=off")
        shown = {"right before": str(before), "right after": str(after)}
        shown["right without layer 1"] = str(without)
        wrong, given = {"others stand in": self.AMOUNTS[0]}, {"repeated": str(total)}
        parts = {"given": given, "shown": shown, "veil": (Veil("change"),)}
        return self.choose(draw, answer, wrong, choices=self.AMOUNTS, **parts)

    def _written(self, draw: Draw) -> Question:
        run, head = draw.writing, draw.of_head
        if head.kind != "cross":
            raise NoQuestion("This question needs a cross-attention head.")
        i = draw.row(lambda i: i + head.shift < len(run.tgt))
        j = int(run.weights(head)[i].argmax())
        changes = {
            "head off": f"{head.scope}=off",
            "head uniform": f"{head.scope}=uniform",
            "key hidden": run.hide(j),
            "cross-attention off": "cross=off",
        }
        if "key and clue hidden" in draw.keys["against"]:
            clue = best_clue(run, i, j)
            if clue is not None:
                changes["key and clue hidden"] = run.hide(j, clue)
        name = draw.keys["change"]
        texts = {
            other: text(run.written(changes[other]))
            for other in (name, *draw.keys["against"])
            if other in changes
        }
        answer, as_trained = texts[name], text(run.written())
        token = run.tgt[i + (head.shift if name != "key hidden" else 0)]
        stays = token in run.written(changes[name])
        if name == "key hidden":
            answers = {"the key is needed": texts.get("key and clue hidden")} if stays else {}
        else:
            answers = {"a clear head is needed": texts.get("key hidden")} if stays else {}
        if not stays:
            answers["nothing is needed"] = as_trained
        trace = run.trace(changes[name])
        if name == "key hidden":
            place = max(i + head.shift - 1, 0)
            before, after = run.log_probabilities[place], trace.log_probabilities[place]
        else:
            before, after = run.log_probabilities.sum(), trace.log_probabilities.sum()
        given, shown = row_values(run, head, i)
        given |= {"key": shown["key"], "weight": shown["weight"]}
        heads = run.base.attention["cross"]
        weights = trace.attention["cross"][head.layer, head.head][None, None]
        shown = {
            "answer": answer,
            "probability before": fine_percent(math.exp(before)),
            "probability after": fine_percent(math.exp(after)),
            "moved": percent(float(total_variation(weights, run.weights(head)[None, None])[0, 0])),
        }
        given["heads in cross"] = str(heads.shape[0] * heads.shape[1])
        others = [t for n, t in texts.items() if n != name]
        choices = choices_of(draw.rng, answer, others, [as_trained])
        parts = {"given": given, "shown": shown, "veil": (Veil("change"),)}
        return self.choose(draw, answer, answers, choices=choices, **parts)

    def _most_needed(self, draw: Draw) -> Question:
        run, wanted = draw.writing, draw.keys.get("token", "any")
        tests = {
            "attention and removal agree": lambda n: n.by_attention == n.by_removal,
            "attention and removal differ": lambda n: n.by_attention != n.by_removal,
        }
        fits = tests.get(wanted, lambda needed: True)
        needed = run.needed
        tokens = [n for n in needed if n.is_clear and is_word(run.tgt, n.row + 1) and fits(n)]
        if not tokens:
            raise NoQuestion(
                "No token of this translation clearly depends on one word. Try another sentence."
            )
        if wanted == "content":
            token = max(tokens, key=lambda n: n.removal.max())
        elif wanted == "any":
            token = draw.rng.choice(tokens)
        elif "agree" in wanted:
            strongest = sorted(tokens, key=lambda n: -n.removal.max())[:3]
            token = max(strongest, key=lambda n: n.row)
        else:
            token = tokens[0]
        names = names_of(token.words)
        answer, attention = names[token.by_removal], names[token.by_attention]
        later = needed[token.row + 1] if token.row + 1 < len(needed) else None
        answers = {
            "attention is importance": attention,
            "same place": names[token.row] if token.row < len(names) else None,
            "next token's": names[later.by_removal] if later else None,
        }
        before = math.exp(run.log_probabilities[token.row])
        after = before * math.exp(-token.removal.max())
        given, shown = {"token": run.tgt[token.row + 1]}, {"answer": answer}
        (given if "differ" in wanted else shown)["by attention"] = attention
        shown |= {
            "probability before": fine_percent(before),
            "probability after": fine_percent(after),
            "attention": percent(float(token.attention.max())),
        }
        others = [names[x] for x in np.argsort(-token.attention, kind="stable")]
        return self.choose(
            draw,
            answer,
            answers,
            others,
            given=given,
            shown=shown,
            veil=(Veil("needed words", place=token.row),),
        )

    def _agreement(self, draw: Draw) -> Question:
        needed = draw.writing.needed
        if not needed:
            raise NoQuestion("The model writes nothing here. Try another sentence.")
        n, same = len(needed), sum(x.by_attention == x.by_removal for x in needed)
        answer = self.OFTEN[0 if same == n else 1 if same > n / 2 else 2]
        wrong = {"always agree": self.OFTEN[0]}
        given, shown = {"n": str(n)}, {"agree": str(same)}
        parts = {"given": given, "shown": shown, "veil": (Veil("needed words"),)}
        return self.choose(draw, answer, wrong, choices=self.OFTEN, **parts)


def best_clue(run: SentenceRun, i: int, j: int) -> int | None:
    """The source word that, hidden with key j, makes token i of the target vanish and leaves it the
    least probability."""
    token = run.tgt[i]
    words = [
        k
        for k in range(len(run.src))
        if k != j and is_word(run.src, k) and token not in run.written(run.hide(j, k))
    ]
    return min(
        words, key=lambda k: run.trace(run.hide(j, k)).log_probabilities[i - 1], default=None
    )
