"""From a key in the browser to the painted grid, against an empty Streamlit page."""

import atexit
import functools
import html
import itertools
import random
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import sync_playwright

from headlight.model import checkpoint, presets
from tests.bench.harness import Row
from tests.browser.conftest import SETTLED, launch
from tests.conftest import ROOT, serve

WORDS = ("a", "dog", "man", "girl", "boy", "street", "water", "ball", "red", "blue", "green", "big")
VENDOR = ROOT / "assets" / "vendor"
LONG, SHORT = 128, 20

# What both pages do when somebody types: put the text in, then press Ctrl+Enter and wait. A page
# may not make a function of a text, so what tells that it is done is written into it.
TYPE = """async (text) => {
  const box = document.querySelector('textarea[aria-label="Source sentence"]');
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
  box.focus();
  set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((frame) => requestAnimationFrame(() => setTimeout(frame, 50)));
  const isDone = (DONE)(text), start = performance.now();
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
  const end = await new Promise((frame) => {
    const look = () => {
      const at = isDone();
      at ? frame(at) : requestAnimationFrame(look);
    };
    look();
  });
  return (end - start) / 1000;
}"""
# When it was done, or false: both are times of the frame that shows it.
PAINTED = """(text) => {
  const last = () => performance.getEntriesByName("grid painted").at(-1);
  const before = last()?.detail;
  return () => last()?.detail !== before && last().startTime;
}"""
ANSWERED = """(text) => () =>
  document.querySelector("#answer")?.textContent.trim() === text && performance.now()"""


@functools.cache
def browser():
    playwright = sync_playwright().start()
    chromium = launch(playwright)
    atexit.register(playwright.stop)
    atexit.register(chromium.close)
    return chromium


@functools.cache
def big() -> checkpoint.Checkpoint:
    """Random weights, 6+6 layers of 8 heads, and the folder that a server shows it from."""
    torch.manual_seed(0)
    tokenizer = checkpoint.load("en-de").tokenizer
    sizes = dict(vocab_size=len(tokenizer), d_model=128, n_heads=8, d_ff=512)
    model = presets.build("paper", **sizes, n_encoder_layers=6, n_decoder_layers=6)
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    checkpoint.save(Path(folder.name) / "big", model, "paper", tokenizer, {})
    big.folder = Path(folder.name)
    return checkpoint.load(big.folder / "big")


@functools.cache
def page(length: int):
    """The app with the big model, a target of `length` tokens typed."""
    opened = page_at(f"attention?model=big&source=a+dog&target={text_of(length - 1)}", "grid")
    opened.get_by_label("Source sentence", exact=True).wait_for()  # the sidebar comes last
    opened.wait_for_selector(SETTLED)
    return opened


SERVED: dict[str, str] = {}  # further arguments of `serve`
SCRIPTS: list[str] = []  # that run before a page's own
OPENED: list = []  # pages of the app


def page_at(path: str, painted: str, drawn: str = ".stMain"):
    """A server with the big model, and a page of it once `drawn` is there, its picture is painted,
    see `painted` of app/components/shared/dom.js, and it has settled."""
    big()
    server = serve(big.folder, **SERVED)
    address = server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    opened = browser().new_page(viewport={"width": 1920, "height": 1080})
    for script in SCRIPTS:
        opened.add_init_script(script)
    OPENED.append(opened)
    opened.goto(f"{address}/{path}")
    opened.wait_for_selector(drawn, timeout=90_000)
    opened.wait_for_function(
        f"() => performance.getEntriesByName('{painted} painted').length", timeout=90_000
    )
    opened.wait_for_selector(SETTLED)
    return opened


@functools.cache
def floor():
    server = serve(ROOT, script="tests/bench/empty_page.py")
    address = server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    opened = browser().new_page(viewport={"width": 1920, "height": 1080})
    opened.goto(address)
    opened.get_by_label("Source sentence", exact=True).wait_for(timeout=90_000)  # it comes last
    opened.wait_for_selector("#answer", state="attached")
    return opened


chance = random.Random(0)


def text_of(length: int) -> str:
    """`length` tokens, and each time others."""
    text = " ".join(chance.choices(WORDS, k=length))
    assert len(big().tokenizer.encode(text).ids) == length
    return text


def typing(done: str) -> str:
    """TYPE, where `done` is PAINTED or the like."""
    return TYPE.replace("DONE", done)


def typed(opened, text: str, done: str) -> float:
    seconds = opened.evaluate(typing(done), text)
    opened.wait_for_selector(SETTLED)  # what follows the grid must not slow the next turn
    opened.wait_for_timeout(200)
    return seconds


def enter(length: int):
    """Nothing cached: a text that was never typed."""
    return (
        lambda: typed(page(length), text_of(length - 1), PAINTED),
        lambda: typed(floor(), text_of(length - 1), ANSWERED),
    )


def own_share(length: int):
    """The trace is in the server's cache: what is left is the grid's work."""
    texts = itertools.cycle([text_of(length - 1), text_of(length - 1)])
    return (
        lambda: typed(page(length), next(texts), PAINTED),
        lambda: typed(floor(), text_of(length - 1), ANSWERED),
    )


def growth():
    """Enter to painted at 1,024 tokens, against 64 times that at 128."""
    return (
        lambda: typed(page(1024), text_of(1023), PAINTED),
        lambda: 64 * typed(page(LONG), text_of(LONG - 1), PAINTED),
    )


def bertviz():
    """Stock model view, its libraries from our folder instead of the network."""
    from bertviz import model_view

    shim = """window.require = window.requirejs = (names, body) => body(window.jQuery, window.d3);
      require.config = () => {};"""
    scripts = [(VENDOR / f"{name}.min.js").read_text() for name in ("jquery", "d3")] + [shim]
    head = "".join(f"<script>{script}</script>" for script in scripts)
    opened = browser().new_page(viewport={"width": 1920, "height": 1080})

    def theirs():
        trace = big().trace(text_of(LONG - 1), text_of(LONG - 1))
        start = time.perf_counter()
        drawn = model_view(
            encoder_attention=layers(trace.attention["encoder"]),
            decoder_attention=layers(trace.attention["decoder"]),
            cross_attention=layers(trace.attention["cross"]),
            encoder_tokens=[html.escape(token) for token in trace.src.tokens],
            decoder_tokens=[html.escape(token) for token in trace.tgt.tokens],
            html_action="return",
        )
        opened.set_content(f"<head>{head}</head><body>{drawn.data}</body>", timeout=600_000)
        opened.wait_for_selector("svg line", state="attached", timeout=600_000)
        opened.evaluate("() => new Promise((frame) => requestAnimationFrame(frame))")
        return time.perf_counter() - start

    return lambda: typed(page(LONG), text_of(LONG - 1), PAINTED), theirs


def layers(attention: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(layer)[None] for layer in attention]


MOVES = """async () => {
  const grid = window.headlight.grid;
  const [handler, frame] = [[], []];
  for (let i = 0; i < 200; i++) {
    const section = grid.drawn[i % grid.drawn.length];
    const box = section.over.canvas.getBoundingClientRect();
    const event = new PointerEvent("pointermove", { bubbles: true,
      clientX: box.left + section.left + (i * 37) % (box.width - section.left),
      clientY: box.top + section.top + (i * 53) % (box.height - section.top) });
    await new Promise(requestAnimationFrame);
    const start = performance.now();
    grid.stage.dispatchEvent(event);
    handler.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(done));
    frame.push(performance.now() - start);
  }
  return [handler, frame];
}"""


def pointer(which: int, limit: float, quantile: float):
    """One turn is 200 moves of the pointer; the other side is the limit in seconds."""

    def ours():
        times = sorted(page(LONG).evaluate(MOVES)[which])
        return statistics.quantiles(times, n=100)[round(100 * quantile) - 1] / 1000

    return ours, lambda: limit


MODEL = "random weights, 6+6 layers, 8 heads, d_model 128, target typed, Chromium 1920 × 1080"
ROWS = [
    *(
        Row(f"grid {n}", f"Enter → grid painted, {n} tokens, nothing cached ÷ rerun of an empty "
            f"page; {MODEL}", bar, partial(enter, n), pairs=20, cpu_only=True)
        for n, bar in ((SHORT, 1.5), (LONG, 2.5))
    ),
    *(
        Row(f"grid alone {n}", f"trace given → grid painted, {n} tokens ÷ rerun of an empty page; "
            f"{MODEL}", bar, partial(own_share, n), pairs=20, cpu_only=True)
        for n, bar in ((SHORT, 1.25), (LONG, 1.6))
    ),
    Row("grid bertviz", f"Enter → grid painted, {LONG} tokens ÷ stock BertViz model view, weights "
        f"given → drawn; {MODEL}", 0.1, bertviz, pairs=2, warm_up=1, cpu_only=True),
    Row("grid 1024", f"Enter → grid painted, 1,024 tokens ÷ 64 × the same at 128; {MODEL}", 1.0,
        growth, pairs=3, warm_up=1, cpu_only=True),
    Row("pointer frame", "pointer move → highlighted frame, median of 200, 144 heads, 128 tokens "
        "÷ 16 ms", 1.0, partial(pointer, 1, 0.016, 0.5), pairs=3, cpu_only=True),
    Row("pointer handler", "the handler of a pointer move, 95th percentile of 200, 144 heads, 128 "
        "tokens ÷ 2 ms", 1.0, partial(pointer, 0, 0.002, 0.95), pairs=3, cpu_only=True),
]  # fmt: skip
