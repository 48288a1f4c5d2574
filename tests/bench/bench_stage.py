"""From an act on the stage to its picture, against a rerun of an empty page."""

import functools
import html
import itertools
import time
from functools import partial

import numpy as np
import torch

from tests.bench.harness import Row
from tests.bench.in_browser import (
    ACT,
    ANSWERED,
    ENTER,
    big,
    browser,
    empty,
    floor,
    page_at,
    served,
    text_of,
    typed,
)
from tests.browser.conftest import SETTLED
from tests.conftest import ROOT

VENDOR = ROOT / "assets" / "vendor"
TOKENS, LONG = 20, 128
# When the page was drawn, in ms since it was asked for; 0 before.
DRAWN = (
    "() => performance.getEntriesByName('stage painted')[0]?.startTime",
    "() => document.querySelector('#answer') && performance.now()",
)
OFF = ACT.replace("WHAT", 'stage.act({ what: "off", ...what })')


@functools.cache
def opened(of: str = "model=en-de&source=a+dog"):
    return page_at(f"?{of}", "stage")


def act(script: str, given, **of):
    page = opened(**of)
    seconds = page.evaluate(script, given)
    page.wait_for_selector(SETTLED)
    page.wait_for_timeout(200)
    return seconds


def enter(tokens: int):
    """Nothing cached: a text that was never typed, which the model translates."""
    return (
        lambda: act(ENTER, text_of(tokens - 1)),
        lambda: typed(floor(), text_of(tokens - 1), ANSWERED),
    )


def off():
    """Each turn another head; in the end all of them are off."""
    act(ENTER, text_of(TOKENS - 1))
    heads = ({"kind": "encoder", "layer": i // 4 % 4, "head": i % 4} for i in itertools.count())
    return (
        lambda: act(OFF, next(heads)),
        lambda: typed(floor(), text_of(TOKENS - 1), ANSWERED),
    )


def long_text():
    """Of the big model, a text that was never typed; what random weights write is twice as long."""
    return lambda: act(ENTER, text_of(LONG - 1), of="model=big&source=a+dog")


def first():
    """A page in a browser that has seen none, from the address to its picture."""
    big()
    addresses = served(big.folder) + "/?model=en-de&source=a+dog", empty()
    return tuple(partial(opens, *each) for each in zip(addresses, DRAWN, strict=True))


def opens(address: str, drawn: str) -> float:
    context = browser().new_context(viewport={"width": 1920, "height": 1080})
    page = context.new_page()
    page.goto(address, wait_until="commit")
    at = page.wait_for_function(drawn, timeout=90_000).json_value()
    page.wait_for_selector(SETTLED)
    context.close()
    return at / 1000


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

    return long_text(), theirs


def layers(attention: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(layer)[None] for layer in attention]


ROWS = [
    Row("stage", f"Enter → stage painted, {TOKENS} tokens, which en-de translates ÷ rerun of an "
        "empty page", 1.2, partial(enter, TOKENS), pairs=20, cpu_only=True),
    Row("stage 128", f"the same, {LONG} tokens", 2.2, partial(enter, LONG), pairs=12,
        cpu_only=True),
    Row("stage off", f"a head off → stage painted, {TOKENS} tokens, en-de ÷ rerun of an empty page",
        1.1, off, pairs=16, cpu_only=True),
    Row("first page", "address → stage painted, en-de, in a browser that has seen no page ÷ an "
        "empty page", 1.8, first, pairs=8, warm_up=1, cpu_only=True),
    Row("bertviz", f"Enter → stage painted, {LONG} tokens ÷ stock BertViz model view, weights "
        "given → drawn; random weights, 6+6 layers, 8 heads, d_model 128", 0.1,
        bertviz, pairs=2, warm_up=1, cpu_only=True),
]  # fmt: skip
