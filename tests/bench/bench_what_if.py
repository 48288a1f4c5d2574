"""From a change, or from a sentence, to what it does to every head, against a rerun of an empty
page."""

import functools
import itertools

from tests.bench.bench_grid import ANSWERED, PAINTED, floor, page_at, text_of, typed
from tests.bench.harness import Row
from tests.browser.conftest import SETTLED

TOKENS = 20
# The head goes off, as by the key O; then the tiles, the sentence about what it does and the bars
# under the tokens are those of the new changes. The sentence may be the same as before.
OFF = """async (head) => {
  const { grid } = window.headlight;
  const [id, look, start] = [grid.data.id, grid.look, performance.now()];
  grid.act({ what: "off", ...head });
  const end = await new Promise((done, fail) => {
    const see = () => {
      const at = performance.now();
      const isNew = grid.data.id !== id && grid.look !== look;
      if (isNew && performance.getEntriesByName("grid painted").at(-1).startTime > start) done(at);
      else if (at - start > 20000) fail("nothing has changed");
      else requestAnimationFrame(see);
    };
    see();
  });
  return (end - start) / 1000;
}"""


# Another head, as by a click on its map; then the picker names it.
ANOTHER = """async ({ kind, layer, head }) => {
  const { grid } = window.headlight;
  const name = () => document.querySelector(".st-key-head_picker button").textContent;
  const start = performance.now();
  grid.choose({ kind, layer, head }, 0);
  const end = await new Promise((done, fail) => {
    const see = () => {
      const at = performance.now();
      if (name().includes(`layer ${layer + 1} · head ${head + 1}`)) done(at);
      else if (at - start > 20000) fail("the picker names another head");
      else requestAnimationFrame(see);
    };
    see();
  });
  return (end - start) / 1000;
}"""


@functools.cache
def shown(query: str):
    return page_at(f"attention?model=en-de&source={text_of(TOKENS - 1)}&{query}", "grid")


def each_head(act: str, first: int):
    """Each turn another head of the encoder."""
    heads = (
        {"kind": "encoder", "layer": i // 4 % 4, "head": i % 4} for i in itertools.count(first)
    )

    def ours():
        seconds = shown("kind=encoder").evaluate(act, next(heads))
        shown("kind=encoder").wait_for_selector(SETTLED)
        shown("kind=encoder").wait_for_timeout(200)
        return seconds

    return ours, lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED)


def off():
    """All of them off in the end: nothing is cached."""
    return each_head(OFF, 0)


def another():
    return each_head(ANOTHER, 1)


def ablation():
    return (
        lambda: typed(shown("order=ablation"), text_of(TOKENS - 1), PAINTED),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


ROWS = [
    Row("head off", f"a head off → tiles, translation and bars painted, {TOKENS} tokens, en-de ÷ "
        "rerun of an empty page", 3, off, pairs=20, cpu_only=True),
    Row("another head", f"click on a small map → the picker names its head, {TOKENS} tokens, en-de "
        "÷ rerun of an empty page", 1.2, another, pairs=20, cpu_only=True),
    Row("ablation of all heads", "Enter → tiles in the order of ablation painted, "
        f"{TOKENS} tokens, 48 heads, en-de ÷ rerun of an empty page", 6, ablation, pairs=20,
        cpu_only=True),
]  # fmt: skip
