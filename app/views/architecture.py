"""The whole model as the paper's figure 1; a block opens in place."""

from collections.abc import Sequence
from functools import partial

from headlight.app import selection
from headlight.app.components.model_map import model_map
from headlight.app.results import layer_results, passes
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.views import _blocks, _unfolded
from headlight.model.analysis.architecture import Block, alike
from headlight.model.pretrained.contents import ROUNDED

CLOSED = ()  # in place of a block's place: none is open


def kind_at(shown: Sequence[Block], block: Block) -> str:
    """The attention that stands for a block: the block itself, or the last attention before it in
    its layer."""
    if block.layer is None:
        return ""
    layer = [
        block_of_layer
        for block_of_layer in shown
        if (block_of_layer.stack, block_of_layer.layer) == (block.stack, block.layer)
    ]
    kinds = {
        block_of_layer.sublayer: block_of_layer.kind
        for block_of_layer in layer
        if block_of_layer.kind
    }
    return kinds.get(block.sublayer) or next(reversed(kinds.values()), "")


def place(block: Block) -> tuple[str, int | None, str, str]:
    """The block's identity."""
    return block.stack, block.layer, block.sublayer, block.part


def choose(shown: Sequence[Block], block: Block | None) -> None:
    """Open a block, and select its layer on all pages; or close the open one. A callback."""
    if block and (kind := kind_at(shown, block)):
        layer = (block.layer or 0) + 1
        if (kind, layer) != (session.values()["kind"], session.values()["layer"]):
            session.choose(kind=kind, layer=layer, head=1)
    session.memo().block = place(block) if block else CLOSED


def opened(shown: Sequence[Block], in_focus: tuple[str, int]) -> Block | None:
    """The clicked block while its layer is selected, or else the selected attention; None while all
    are closed."""
    clicked = session.memo().block
    if clicked == CLOSED:
        return None
    for block in shown:
        kind = kind_at(shown, block)
        if place(block) == clicked and (not kind or (kind, block.layer) == in_focus):
            return block
    return next(block for block in shown if (block.kind, block.layer) == in_focus)


def page() -> None:
    """A function, because callbacks would keep alive whatever a page computes at its top level."""
    run = selection.run()
    view = selection.view(run)
    trace, shown = passes.trace_of(view, run), layer_results.blocks_of(view, run)
    in_focus = session.values()["kind"], session.values()["layer"] - 1
    block = opened(shown, in_focus)
    stacks = [side.stack for side in trace.sides.values()]
    repeated = any(len(run) > 1 for stack in stacks for run in alike(shown, stack))
    with frame.explanation():
        all_layers = repeated and widgets.draw("all_layers")
    unfolded = None
    if block:
        inside = _unfolded.unfolded(view, run, trace, block, kind_at(shown, block))
        unfolded = block, inside
        frame.finding(_unfolded.finding(trace, block, inside))
    else:
        frame.finding(_blocks.model_in_brief(view.model, shown))
    model_map(
        shown,
        trace,
        _blocks.most_probable(view.checkpoint, trace),
        unfolded,
        in_focus[1],
        all_layers,
        on_choose=partial(choose, shown),
        on_all_layers=lambda value: session.choose(all_layers=value),
        here="model",
    )
    frame.explain(
        "Read it from the bottom. A text comes in as tokens, each token becomes a vector, and "
        "every layer adds to it. The prediction is at the top. Each block shows the shape of "
        "its output and its parameters. Click a block to open it, and again to close it.",
        exercises.largest_part(_blocks.parameter_shares(shown)),
    )
    frame.explanation().markdown(_blocks.model_in_numbers(view.model, shown, trace))
    if view.checkpoint.card.get("rounded"):
        frame.notices().info(ROUNDED)
