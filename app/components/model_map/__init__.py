"""The whole model as one picture whose blocks can be chosen."""

from collections.abc import Callable, Sequence
from itertools import cycle

import streamlit as st

from app import theme
from app.components.scripts import read, script
from model.analysis.architecture import Block
from model.probing.trace import Trace

NAMES = {
    "embedding": "word + position",
    "feed_forward": "feed-forward",
    "norm": "norm",
    "generator": "generator",
}

_mount = st.components.v2.component(
    "headlight_model_map",
    css=read("model_map/style.css"),
    js=script("model_map/index.js"),
)


def model_map(
    shown: Sequence[Block], trace: Trace, chosen: Block, on_choose: Callable[[Block], None]
) -> None:
    """`shown` are the blocks of the model that `trace` is of. `on_choose` hears of another block
    than the `chosen` one."""
    by_id = {_id(block): block for block in shown}

    def hear():
        if block := by_id.get(st.session_state["model_map"].chosen):
            on_choose(block)

    sides = trace.sides.values()
    colours = dict(zip(trace.kinds, cycle(theme.LINES), strict=False))
    titles = {kind: sites[0].title for kind, sites in trace.kinds.items()}
    data = {
        "blocks": [
            vars(block)
            | {
                "id": _id(block),
                "name": titles[block.kind].removeprefix(f"{block.stack} ")
                if block.kind
                else NAMES[block.part],
                "colour": colours.get(block.kind, ""),
                "description": _description(block),
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
            (key.stack, _id(block))
            for block in shown
            if block.kind
            for query, key in [trace.sides_of(block.kind)]
            if query != key
        ],
        "focus": theme.FOCUS,
        "chosen": _id(chosen),
    }
    _mount(data=data, key="model_map", on_chosen_change=hear)


def _id(block: Block) -> str:
    return f"{block.stack}.{'' if block.layer is None else block.layer}.{block.part}"


def _description(block: Block) -> str:
    """Its parameters and shapes for this sentence."""
    count = f"{block.parameters:,} parameters" if block.parameters else ""
    shared = f"shared with {block.shares}" if block.shares else ""
    weights = f"weights {_times(block.weights)}" if block.weights else ""
    return " · ".join(filter(None, (count, shared, weights, f"gives {_times(block.shape)}")))


def _times(shape: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)
