"""A step on the page Generate, and a whole beam search there, against a rerun of an empty page."""

import functools
import itertools

from tests.bench.bench_grid import ANSWERED, floor, page_at, text_of, typed
from tests.bench.harness import Row

TOKENS, BEAMS, STEPS = 20, 5, 30
# The arrow key, and then until the step is painted.
STEP = """async (key) => {
  const frame = window.headlightFrame ??= (function find(root) {
    for (const node of root.querySelectorAll("*")) {
      if (node.matches(".frame")) return node;
      const within = node.shadowRoot && find(node.shadowRoot);
      if (within) return within;
    }
  })(document);
  const start = performance.now();
  frame.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return await new Promise((done, fail) => {
    const look = () => {
      const at = performance.getEntriesByName("generate painted").at(-1).startTime;
      if (at > start) done((performance.now() - start) / 1000);
      else if (performance.now() - start > 20000) fail(`${key} did nothing`);
      else requestAnimationFrame(look);
    };
    look();
  });
}"""
PAINTED = """(text) => {
  const last = () => performance.getEntriesByName("generate painted").at(-1).startTime;
  const before = last();
  return () => last() !== before && last();
}"""


@functools.cache
def shown(query: str, length: int):
    return page_at(f"generate?model=en-de&source={text_of(length)}&{query}", "generate")


def steps():
    keys = itertools.cycle(["ArrowRight"] * 10 + ["ArrowLeft"] * 10)
    return (
        lambda: shown("", TOKENS).evaluate(STEP, next(keys)),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


def beams():
    """Texts as long as what is written for them; of the turns each at least half as many steps."""
    opened = functools.partial(shown, f"how=Beam+search&width={BEAMS}", STEPS)

    def ours():
        seconds = typed(opened(), text_of(STEPS), PAINTED)
        assert opened().locator(".beams .column").count() >= STEPS / 2
        return seconds

    return ours, lambda: typed(floor(), text_of(STEPS), ANSWERED)


ROWS = [
    Row("generate step", f"key → the next token of Generate painted, about {TOKENS} tokens, en-de "
        "÷ rerun of an empty page", 1.5, steps, pairs=20, cpu_only=True),
    Row("generate beams", f"Enter → {BEAMS} beams of about {STEPS} steps painted, en-de ÷ rerun of "
        "an empty page", 3, beams, pairs=20, cpu_only=True),
]  # fmt: skip
