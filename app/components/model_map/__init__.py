"""The model as the paper's figure 1; a click unfolds a block in place."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from types import MappingProxyType

import streamlit as st
from streamlit.components.v2 import component

from headlight.app import theme
from headlight.app.components.scripts import read, script
from headlight.app.text import formats, part_names
from headlight.model.analysis.architecture import LAYER_OUTPUTS, OUTPUT, Block, alike
from headlight.model.probing.trace import Pass

KINDS = "encoder", "decoder", "cross"  # the same colours in any model, whichever of them it has
# colours of blocks other than attention; kinds of attention take theirs from the other end
COLOURS = {
    "embedding": theme.LINES[8],
    "position": theme.LINES[8],
    "feed_forward": theme.LINES[6],
    "dense": theme.LINES[4],
    "generator": theme.LINES[4],
    "softmax": theme.LINES[7],
    "log_softmax": theme.LINES[7],
}
NORMS = theme.LINES[10]
SHOWN = 100  # tokens of a text that are drawn


@dataclass(frozen=True)
class BlockPicture:
    """A picture in an open block. `title`: its name; `caption`: what it shows; `source`: the
    picture as a data: URL; `row`, `rows`: the row that is framed, of so many, or −1; `opens`: the
    settings of the head that it opens on Attention; `is_off`: whether that head is off; `selected`:
    whether it is the selected one."""

    title: str
    caption: str
    source: str
    row: int = -1
    rows: int = 1
    opens: Mapping[str, str | int] | None = None
    is_off: bool = False
    selected: bool = False


@dataclass(frozen=True)
class Inside:
    """The pictures in an open block. `key`: what rows, columns and colours are, in HTML; `joins`:
    what their outputs pass through on the way out."""

    pictures: Sequence[BlockPicture]
    key: Sequence[str]
    joins: str = ""


@dataclass(frozen=True)
class Unfolded:
    """What an open block shows. `title`: what it is; `finding`: what it does with this sentence;
    `text`: what it does with any; `link`: the text, the path and the settings of the page that
    shows more."""

    title: str
    finding: str
    text: str
    link: tuple[str, str, Mapping[str, str | int]]
    inside: Inside | None = None


_mount = component(
    "headlight_model_map",
    css=read("shared/button.css") + read("model_map/style.css"),
    js=script("model_map/index.js"),
)


def model_map(
    shown: Sequence[Block],
    trace: Pass,
    output: tuple[str, Sequence[str]],
    opened: tuple[Block, Unfolded] | None = None,
    layer: int = 0,
    all_layers: bool = False,
    on_choose: Callable[[Block | None], None] | None = None,
    on_all_layers: Callable[[bool], None] | None = None,
    names: Mapping[str, str] | None = None,
    was: Mapping[Block, tuple[Block, str] | None] = MappingProxyType({}),
    gone: Collection[Block] = (),
    here: str = "",
) -> None:
    """`shown`: the blocks of the traced model; `output`: the title and the labels of its
    predictions; `opened`: the block that is unfolded. Identical layers are drawn once, unless
    `all_layers`; such a block stands for the one in `layer`, if that is among them. Callbacks:
    `on_choose` gets a newly opened block, or None where the open one was closed; without it blocks
    cannot be opened; `on_all_layers` gets the other value of `all_layers`. `names`: Block.part → a
    name, where another than the paper's; `was`: a block that is new → what stood there before and
    its name, or None; `gone`: blocks that are no longer there; `here`: the page's path."""
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

    open_name = opened and name(opened[0])

    def hear():
        event = st.session_state["model_map"]
        if on_choose and event.chosen in by_name:
            on_choose(None if event.chosen == open_name else by_name[event.chosen])
        elif on_all_layers and event.all_layers is not None:
            on_all_layers(event.all_layers)

    kinds = dict.fromkeys((*KINDS, *trace.kinds))
    colours = COLOURS | dict(zip(kinds, cycle(theme.LINES), strict=False))

    def numbers_of(block: Block) -> str:
        count, numbers = len(together(block)) or 1, formats.times(block.shape)
        if block.parameters:
            return f"{numbers} · {f'{count} × ' * (count > 1)}{block.parameters:,}"
        return numbers + " · shared" * bool(block.shares)

    def drawing(block: Block) -> dict:
        title = (names or {}).get(block.part) or part_names.block_name(trace, block)
        numbers, before = numbers_of(block), was.get(block)
        return {
            "id": name(block),
            "part": block.part,
            "sublayer": block.sublayer,
            "name": title,
            "numbers": numbers,
            "label": "Gone: " * (block in gone)
            + f"{title}, {block.stack}{_of_layers(together(block))}: output {numbers}"
            + " parameters" * bool(block.parameters),
            "colour": colours.get(block.kind or block.part, NORMS),
            "attends": bool(block.kind),
            "mark": "changed" if block in was else "gone" if block in gone else "",
            "was": before
            and {
                "name": before[1],
                "numbers": numbers_of(before[0]),
                "at_sum": before[0].part != block.part,
            },
            # a stack, and whether attention reads the output of its layers or its embeddings
            "keys": block.keys
            and [trace.sides_of(block.kind)[1].stack, block.keys == LAYER_OUTPUTS],
        }

    def frame(run: list[int], side) -> dict:
        depth, many = len(side.layers), len(run) > 1
        blocks = [b for b in shown if b.stack == side.stack and b.layer == run[0]]
        repeats = len(runs[side.stack]) < depth
        title = f"{len(run)} ×" if many or depth == 1 else f"layer {run[0] + 1}"
        label = f"{side.stack}, {title}: " + (
            "draw identical layers once" if all_layers else "draw all layers"
        )
        chooses = on_all_layers and repeats and (many or all_layers)
        return {
            "title": title,
            "label": label if chooses else "",
            "blocks": [drawing(block) for block in blocks],
        }

    predicted = trace.predicted.stack
    example = next((block for block in shown if block.kind), shown[0])
    several = len(together(example)) > 1
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
        "means": [
            *zip(
                numbers_of(example).split(" · "),
                ("output, tokens × width", "parameters" + ", layers × each" * several),
                strict=False,
            ),
            *[("framed", "new"), ("dashed", "before")][: 2 * bool(was)],
            *[("pale", "gone")][: len(gone)],
        ],
        "all": all_layers,
        "focus": theme.FOCUS,
        "opens": on_choose is not None,
        "opened": opened and {"id": open_name, **asdict(opened[1])},
        "here": here,
    }
    _mount(data=data, key="model_map", on_chosen_change=hear, on_all_layers_change=hear)


def _outside(shown: Sequence[Block], stack: str) -> list[Block]:
    """The blocks of a stack outside of its layers."""
    return [block for block in shown if block.stack == stack and block.layer is None]


def _of_layers(run: Sequence[int]) -> str:
    if not run:
        return ""
    return f" layer {run[0] + 1}" if len(run) == 1 else f" layers {run[0] + 1} to {run[-1] + 1}"
