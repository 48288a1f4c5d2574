"""From a key to the next step of the lesson, against a rerun of an empty page."""

import functools
import itertools
from urllib.parse import quote

from headlight.app.state.options import STEPS
from tests.bench.harness import Row
from tests.bench.in_browser import ANSWERED, floor, page_at, text_of, typed
from tests.browser.conftest import SETTLED

TOKENS = 20
# The arrow key, and then until the heading and the pictures are another step's.
STEP = """async (key) => {
  const heading = () => document.querySelector(".stMain h4")?.textContent;
  const [before, start] = [heading(), performance.now()];
  for (const what of ["keydown", "keyup"])
    document.body.dispatchEvent(new KeyboardEvent(what, { key, code: key, bubbles: true }));
  return await new Promise((done, fail) => {
    const look = () => {
      const at = performance.getEntriesByName("matrices painted").at(-1)?.startTime;
      if (heading() !== before && at > start) done((performance.now() - start) / 1000);
      else if (performance.now() - start > 20000) fail(`${key} at ${before} did nothing`);
      else requestAnimationFrame(look);
    };
    look();
  });
}"""


@functools.cache
def lesson():
    text = text_of(TOKENS - 1)
    first = quote(STEPS[0])
    address = f"inside?model=big&source={text}&target={text}&at={first}"
    return page_at(address, "matrices", ".stMain h4")


def steps():
    later = len(STEPS) - 1
    keys = itertools.cycle(["ArrowRight"] * later + ["ArrowLeft"] * later)

    def ours():
        seconds = lesson().evaluate(STEP, next(keys))
        lesson().wait_for_selector(SETTLED)
        lesson().wait_for_timeout(200)
        return seconds

    return ours, lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED)


ROWS = [
    Row("step", f"key → the next of 11 steps of one head painted, {TOKENS} tokens ÷ rerun of an "
        "empty page", 1.5, steps, pairs=20, cpu_only=True),
]  # fmt: skip
