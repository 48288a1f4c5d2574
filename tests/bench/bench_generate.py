"""A word of what a model writes, and a whole beam search, against a rerun of an empty page."""

import functools
import itertools

from tests.bench.harness import Row
from tests.bench.in_browser import ANSWERED, floor, page_at, text_of, typed

TOKENS, BEAMS, STEPS = 20, 5, 30
# The arrow key, and then until the step is painted.
STEP = """async (key) => {
  const { canvas } = headlightStage.stage.parts, start = performance.now();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  return await new Promise((done, fail) => {
    const look = () => {
      const at = performance.getEntriesByName("stage word painted").at(-1)?.startTime;
      if (at > start) done((performance.now() - start) / 1000);
      else if (performance.now() - start > 20000) fail(`${key} did nothing`);
      else requestAnimationFrame(look);
    };
    look();
  });
}"""
# Another sentence, and then until what is written for it is painted.
SENTENCE = """async (line) => {
  const start = performance.now(), { stage } = headlightStage;
  stage.engine.choose({ line });
  return await new Promise((done, fail) => {
    const look = () => {
      const at = performance.getEntriesByName("stage model painted").at(-1)?.startTime;
      if (at > start) done([(performance.now() - start) / 1000, stage.state]);
      else if (performance.now() - start > 60000) fail("nothing was found");
      else requestAnimationFrame(look);
    };
    look();
  }).then(([seconds, state]) => [seconds, state.answered(state.writeOf()).steps.length]);
}"""


@functools.cache
def shown(how: str, length: int):
    return page_at(f"?model=en-de&source={text_of(length)}&write={how}", "stage model")


def steps():
    keys = itertools.cycle(["ArrowRight"] * 10 + ["ArrowLeft"] * 10)
    return (
        lambda: shown("one", TOKENS).evaluate(STEP, next(keys)),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


def beams():
    """Texts as long as what is written for them; of the turns each at least half as many steps."""

    def ours():
        seconds, count = shown("beams", STEPS).evaluate(SENTENCE, text_of(STEPS))
        assert count >= STEPS / 2
        return seconds

    return ours, lambda: typed(floor(), text_of(STEPS), ANSWERED)


ROWS = [
    Row("generate step", f"key → the next written token painted, about {TOKENS} tokens, en-de "
        "÷ rerun of an empty page", 1.5, steps, pairs=20, cpu_only=True),
    Row("generate beams", f"Enter → {BEAMS} beams of about {STEPS} steps painted, en-de ÷ rerun of "
        "an empty page", 3, beams, pairs=20, cpu_only=True),
]  # fmt: skip
