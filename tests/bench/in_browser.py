"""What the rows share that drive a browser: servers, pages, and an empty Streamlit page."""

import atexit
import functools
import random
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright

from headlight.model import checkpoint, presets
from tests.browser.conftest import SETTLED, launch
from tests.conftest import ROOT, serve

WORDS = ("a", "dog", "man", "girl", "boy", "street", "water", "ball", "red", "blue", "green", "big")

# What is done when somebody types: put the text in, then press Ctrl+Enter and wait. A page may not
# make a function of a text, so what tells that it is done is written into it.
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
# When it was done, or false.
ANSWERED = """(text) => () =>
  document.querySelector("#answer")?.textContent.trim() === text && performance.now()"""
# What a hand would do on the stage, by the same calls; painted is the next picture of other
# weights.
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


SERVED: dict[str, Any] = {}  # further arguments of `serve`
SCRIPTS: list[str] = []  # that run before a page's own
OPENED: list = []  # pages of the app


@functools.cache
def served(models: Path, **how) -> str:
    """The address of a server that runs as long as this process."""
    server = serve(models, **how)
    atexit.register(server.__exit__, None, None, None)
    return server.__enter__()


def page_at(path: str, painted: str, drawn: str = ".stMain"):
    """A server with the big model, and a page of it once `drawn` is there, its picture is painted,
    see `painted` of app/components/shared/dom.js, and it has settled."""
    big()
    address = served(big.folder, **SERVED)
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


def empty() -> str:
    return served(ROOT, script="tests/bench/empty_page.py")


@functools.cache
def floor():
    opened = browser().new_page(viewport={"width": 1920, "height": 1080})
    opened.goto(empty())
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
    """TYPE, where `done` is ANSWERED or the like."""
    return TYPE.replace("DONE", done)


def typed(opened, text: str, done: str) -> float:
    seconds = opened.evaluate(typing(done), text)
    opened.wait_for_selector(SETTLED)  # what follows the picture must not slow the next turn
    opened.wait_for_timeout(200)
    return seconds
