"""From an act on the stage to its picture, against a rerun of an empty page."""

import functools
import itertools

from tests.bench.bench_grid import ANSWERED, floor, page_at, text_of, typed
from tests.bench.harness import Row
from tests.browser.conftest import SETTLED

TOKENS = 20
# What a hand would do, by the same calls; painted is the next picture of other weights.
ACT = """async (what) => {
  const { stage } = headlightStage, before = stage.state.run.id, start = performance.now();
  WHAT;
  const end = await new Promise((done, fail) => {
    const see = () => {
      const last = performance.getEntriesByName("stage painted").at(-1);
      if (last?.detail !== before) done(last.startTime);
      else if (performance.now() - start > 20000) fail("nothing has changed");
      else requestAnimationFrame(see);
    };
    see();
  });
  return (end - start) / 1000;
}"""
ENTER = ACT.replace("WHAT", "stage.engine.choose({ line: what })")
OFF = ACT.replace("WHAT", 'stage.act({ what: "off", ...what })')


@functools.cache
def opened():
    return page_at("?model=en-de&source=a+dog", "stage")


def act(script: str, given):
    page = opened()
    seconds = page.evaluate(script, given)
    page.wait_for_selector(SETTLED)
    page.wait_for_timeout(200)
    return seconds


def enter():
    """Nothing cached: a text that was never typed, which the model translates."""
    return (
        lambda: act(ENTER, text_of(TOKENS - 1)),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


def off():
    """Each turn another head; in the end all of them are off."""
    heads = ({"kind": "encoder", "layer": i // 4 % 4, "head": i % 4} for i in itertools.count())
    return (
        lambda: act(OFF, next(heads)),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


ROWS = [
    Row("stage", f"Enter → stage painted, {TOKENS} tokens, which en-de translates ÷ rerun of an "
        "empty page", 1.2, enter, pairs=20, cpu_only=True),
    Row("stage off", f"a head off → stage painted, {TOKENS} tokens, en-de ÷ rerun of an empty page",
        1.1, off, pairs=16, cpu_only=True),
]  # fmt: skip
