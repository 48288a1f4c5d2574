"""The whole model as one picture whose blocks can be opened: the browser's part is model_map.js."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import streamlit as st

from app import theme
from model.analysis.architecture import Block
from model.probing.trace import Trace

HERE = Path(__file__).resolve().parent
NAMES = {
    "embedding": "word + position",
    "feed_forward": "feed-forward",
    "norm": "norm",
    "generator": "generator",
}

_mount = st.components.v2.component(
    "headlight_model_map",
    css=(HERE / "model_map.css").read_text(encoding="utf-8"),
    js=(HERE / "model_map.js").read_text(encoding="utf-8"),
)


def model_map(
    shown: Sequence[Block],
    trace: Trace,
    follow: tuple[str, float],
    on_open: Callable[[Mapping], None],
) -> None:
    """`shown` are the blocks of the model that `trace` is of. `on_open` hears of a block that was
    chosen: its stack, layer, part and kind, and the number of the click. `follow`: the label of the
    page link to follow, or empty, for which click."""

    def chosen():
        on_open(st.session_state["model_map"].opened)

    sides = trace.sides.values()
    colours = dict(zip(trace.kinds, cycle(theme.LINES), strict=False))
    titles = {kind: sites[0].title for kind, sites in trace.kinds.items()}
    data = {
        "blocks": [
            vars(block)
            | {
                "name": titles[block.kind].removeprefix(f"{block.stack} ")
                if block.kind
                else NAMES[block.part],
                "colour": colours.get(block.kind, ""),
                "said": _said(block),
            }
            for block in shown
        ],
        "stacks": [
            {
                "name": side.stack,
                "title": f"{side.stack.capitalize()}: reads the {side.title}",
                "output": bool(side.predicts),
            }
            for side in sides
        ],
        "bridges": [
            (key.stack, f"{block.stack}.{block.layer}.{block.part}")
            for block in shown
            if block.kind
            for query, key in [trace.sides_of(block.kind)]
            if query != key
        ],
        "focus": theme.FOCUS,
        "follow": follow,
    }
    _mount(data=data, key="model_map", on_opened_change=chosen)


def _said(block: Block) -> str:
    """Its parameters and shapes for this sentence."""
    count = f"{block.parameters:,} parameters" if block.parameters else ""
    shared = f"shared with {block.shares}" if block.shares else ""
    weights = f"weights {_times(block.weights)}" if block.weights else ""
    return " · ".join(filter(None, (count, shared, weights, f"gives {_times(block.shape)}")))


def _times(shape: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)
