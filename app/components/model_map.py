"""The whole model as one picture whose blocks can be opened: the browser's part is model_map.js."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from app import look
from model.blocks import Block

HERE = Path(__file__).resolve().parent
NAMES = {
    "embedding": "word + position",
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "feed_forward": "feed-forward",
    "norm": "norm",
    "generator": "generator",
}
COLOURS = {kind: look.LINES[i] for i, kind in enumerate(("encoder", "decoder", "cross"))}

_mount = st.components.v2.component(
    "headlight_model_map",
    css=(HERE / "model_map.css").read_text(encoding="utf-8"),
    js=(HERE / "model_map.js").read_text(encoding="utf-8"),
)


def model_map(
    shown: Sequence[Block], follow: tuple[str, float], on_open: Callable[[Mapping], None]
) -> None:
    """`on_open` hears of a block that was chosen: its stack, layer, part and kind, and the number
    of the click. `follow`: the label of the page link to follow, or empty, for which click."""

    def chosen():
        on_open(st.session_state["model_map"].opened)

    data = {
        "blocks": [
            vars(block)
            | {
                "name": NAMES[block.part],
                "colour": COLOURS.get(block.kind, ""),
                "said": _said(block),
            }
            for block in shown
        ],
        "focus": look.FOCUS,
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
