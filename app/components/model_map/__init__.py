"""The model as the paper's figure 1, with clickable blocks."""

from collections.abc import Callable, Sequence
from itertools import cycle

import streamlit as st
from streamlit.components.v2 import component

from headlight.app import theme
from headlight.app.components.scripts import read, script
from headlight.app.text import formats, part_names
from headlight.model.analysis.architecture import LAYER_OUTPUTS, OUTPUT, Block, alike
from headlight.model.probing.trace import Pass

# colours of blocks other than attention; kinds of attention take theirs from the other end
COLOURS = {
    "embedding": theme.LINES[8],
    "position": theme.LINES[8],
    "feed_forward": theme.LINES[6],
    "recurrence": theme.LINES[6],
    "dense": theme.LINES[4],
    "generator": theme.LINES[4],
    "softmax": theme.LINES[7],
    "log_softmax": theme.LINES[7],
}
NORMS = theme.LINES[10]
SHOWN = 100  # tokens of a text that are drawn

_mount = component(
    "headlight_model_map",
    css=read("model_map/style.css"),
    js=script("model_map/index.js"),
)


def model_map(
    shown: Sequence[Block],
    trace: Pass,
    output: tuple[str, Sequence[str]],
    chosen: Block,
    layer: int,
    all_layers: bool,
    on_choose: Callable[[Block], None],
    on_all_layers: Callable[[bool], None],
) -> None:
    """`shown`: the blocks of the traced model; `output`: the title and the labels of its
    predictions. Identical layers are drawn once, unless `all_layers`; such a block stands for the
    one in `layer`, if that is among them. Callbacks: `on_choose` gets a newly selected block,
    `on_all_layers` the other value of `all_layers`."""
    runs = {side.stack: alike(shown, side.stack) for side in trace.sides.values()}
    groups = {
        stack: [[block] for run in of_stack for block in run] if all_layers else of_stack
        for stack, of_stack in runs.items()
    }

    def together(block: Block) -> list[int]:
        """The layers that this block stands for."""
        return next((run for run in groups.get(block.stack, ()) if block.layer in run), [])

    def name(block: Block) -> str:
        first = together(block)[0] if block.layer is not None else ""
        return ".".join([block.stack, str(first), block.sublayer, block.part])

    by_name = {}
    for block in shown:
        if name(block) not in by_name or block.layer == layer:
            by_name[name(block)] = block

    def hear():
        event = st.session_state["model_map"]
        if event.chosen in by_name:
            on_choose(by_name[event.chosen])
        elif event.all_layers is not None:
            on_all_layers(event.all_layers)

    colours = COLOURS | dict(zip(trace.kinds, cycle(theme.LINES), strict=False))

    def drawing(block: Block) -> dict:
        count = len(together(block)) or 1
        title, numbers = part_names.block_name(trace, block), formats.times(block.shape)
        if block.parameters:
            numbers += f" · {f'{count} × ' * (count > 1)}{block.parameters:,}"
        elif block.shares:
            numbers += " · shared"
        return {
            "id": name(block),
            "part": block.part,
            "sublayer": block.sublayer,
            "name": title,
            "numbers": numbers,
            "label": f"{title}, {block.stack}{_of_layers(together(block))}: output {numbers}"
            + " parameters" * bool(block.parameters),
            "colour": colours.get(block.kind or block.part, NORMS),
            "attends": bool(block.kind),
            # a stack, and whether attention reads the output of its layers or its embeddings
            "keys": block.keys
            and [trace.sides_of(block.kind)[1].stack, block.keys == LAYER_OUTPUTS],
        }

    def frame(run: list[int], side) -> dict:
        depth, many = len(side.layers), len(run) > 1
        blocks = [b for b in shown if b.stack == side.stack and b.layer == run[0]]
        several = len(runs[side.stack]) < depth
        title = f"{len(run)} ×" if many or depth == 1 else f"layer {run[0] + 1}"
        label = f"{side.stack}, {title}: " + (
            "draw identical layers once" if all_layers else "draw all layers"
        )
        return {
            "title": title,
            "label": label if several and (many or all_layers) else "",
            "blocks": [drawing(block) for block in blocks],
        }

    predicted = trace.predicted.stack
    data = {
        "stacks": [
            {
                "name": side.stack,
                "title": side.stack.capitalize(),
                "input": [side.title.capitalize(), trace.texts[side.name].tokens[:SHOWN]],
                "before": [drawing(b) for b in _outside(shown, side.stack) if b.part != "norm"],
                "frames": [frame(run, side) for run in groups[side.stack]],
                "after": [drawing(b) for b in _outside(shown, side.stack) if b.part == "norm"],
                "answers": [drawing(b) for b in shown if b.stack == OUTPUT]
                if side.stack == predicted
                else [],
                "output": [output[0], list(output[1][:SHOWN])],
            }
            for side in trace.sides.values()
        ],
        "all": all_layers,
        "focus": theme.FOCUS,
        "chosen": name(chosen),
    }
    _mount(data=data, key="model_map", on_chosen_change=hear, on_all_layers_change=hear)


def _outside(shown: Sequence[Block], stack: str) -> list[Block]:
    """The blocks of a stack outside of its layers."""
    return [block for block in shown if block.stack == stack and block.layer is None]


def _of_layers(run: Sequence[int]) -> str:
    if not run:
        return ""
    return f" layer {run[0] + 1}" if len(run) == 1 else f" layers {run[0] + 1} to {run[-1] + 1}"
