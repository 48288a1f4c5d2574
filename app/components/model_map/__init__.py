"""A model as the paper's figure 1, with what replaces what."""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from types import MappingProxyType

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


_mount = component(
    "headlight_model_map",
    css=read("model_map/style.css"),
    js=script("model_map/index.js"),
)


def model_map(
    shown: Sequence[Block],
    trace: Pass,
    names: Mapping[str, str] | None = None,
    was: Mapping[Block, tuple[Block, str] | None] = MappingProxyType({}),
    gone: Collection[Block] = (),
) -> None:
    """`shown`: the blocks of the traced model, of which identical layers are drawn once. `names`:
    Block.part → a name, where another than the paper's; `was`: a block that is new → what stood
    there before and its name, or None; `gone`: blocks that are no longer there."""
    groups = {side.stack: alike(shown, side.stack) for side in trace.sides.values()}

    def together(block: Block) -> list[int]:
        """The layers that this block stands for."""
        return next((run for run in groups.get(block.stack, ()) if block.layer in run), [])

    def name(block: Block) -> str:
        first = together(block)[0] if block.layer is not None else ""
        return ".".join([block.stack, str(first), block.sublayer, block.part])

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
        blocks = [b for b in shown if b.stack == side.stack and b.layer == run[0]]
        is_alone = len(run) == 1 < len(side.layers)
        title = f"layer {run[0] + 1}" if is_alone else f"{len(run)} ×"
        return {"title": title, "blocks": [drawing(block) for block in blocks]}

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
    }
    _mount(data=data, key="model_map")


def _outside(shown: Sequence[Block], stack: str) -> list[Block]:
    """The blocks of a stack outside of its layers."""
    return [block for block in shown if block.stack == stack and block.layer is None]


def _of_layers(run: Sequence[int]) -> str:
    if not run:
        return ""
    return f" layer {run[0] + 1}" if len(run) == 1 else f" layers {run[0] + 1} to {run[-1] + 1}"
