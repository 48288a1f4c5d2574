"""The whole model as the paper's figure 1; a block opens in place."""

from collections.abc import Iterable, Mapping
from functools import partial

from headlight.app import selection
from headlight.app.components.model_map import model_map
from headlight.app.results import layer_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.state.options import CLOSED, SELECTED_ATTENTION
from headlight.app.text import exercises
from headlight.app.text.part_names import block_title
from headlight.app.views import _blocks, _unfolded
from headlight.model.analysis.architecture import Block, alike
from headlight.model.pretrained.contents import ROUNDED


def kind_at(shown: Iterable[Block], block: Block) -> str:
    """The attention that stands for a block: the block itself, or the last attention before it in
    its layer."""
    kinds = {
        other.sublayer: other.kind
        for other in shown
        if other.kind and (other.stack, other.layer) == (block.stack, block.layer)
    }
    return kinds.get(block.sublayer) or next(reversed(kinds.values()), "")


def choose(titles: Mapping[Block, str], block: Block | None) -> None:
    """Open a block, and select its layer on all pages; or close the open one. A callback."""
    chosen = {}
    if block and (kind := kind_at(titles, block)):
        chosen = {"kind": kind, "layer": (block.layer or 0) + 1}
        if chosen.items() - session.values().items():
            chosen["head"] = 1
    title = titles[block] if block else CLOSED
    session.choose(**chosen, block=SELECTED_ATTENTION if block and block.kind else title)


def opened(titles: Mapping[Block, str], title: str) -> Block | None:
    """The block of a title in the selected layer, or else the selected attention; None while all
    are closed."""
    if title == CLOSED:
        return None
    in_focus = session.values()["kind"], session.values()["layer"] - 1
    for block in titles:
        kind = kind_at(titles, block)
        if titles[block] == title and (not kind or (kind, block.layer) == in_focus):
            return block
    return next(block for block in titles if (block.kind, block.layer) == in_focus)


def page() -> None:
    """A function, because callbacks would keep alive whatever a page computes at its top level."""
    page_shown = selection.shown()
    view = page_shown.view
    trace, shown = page_shown.trace, layer_results.blocks_of(page_shown)
    stacks = [side.stack for side in trace.sides.values()]
    repeated = any(len(run) > 1 for stack in stacks for run in alike(shown, stack))
    titles = {block: block_title(trace, block) for block in shown}
    others = dict.fromkeys(title for block, title in titles.items() if not block.kind)
    with frame.explanation():
        title = widgets.draw("block", options=(SELECTED_ATTENTION, CLOSED, *others))
        all_layers = repeated and widgets.draw("all_layers")
    unfolded, in_numbers = None, _blocks.model_in_numbers(view.model, shown, trace)
    if block := opened(titles, title):
        inside = _unfolded.unfolded(page_shown, trace, block, kind_at(shown, block))
        unfolded = block, inside
        frame.finding(f"**{inside.title}**: {inside.finding}")
    else:
        frame.finding(in_numbers)
    model_map(
        shown,
        trace,
        _blocks.most_probable(view.checkpoint, trace),
        unfolded,
        session.values()["layer"] - 1,
        all_layers,
        on_choose=partial(choose, titles),
        on_all_layers=lambda value: session.choose(all_layers=value),
        here="model",
    )
    frame.explain(
        "Read it from the bottom. A text comes in as tokens, each token becomes a vector, and "
        "every layer adds to it. The prediction is at the top. Each block shows the shape of "
        "its output and its parameters. Click a block to open it, and again to close it.",
        exercises.largest_part(_blocks.parameter_shares(shown)),
    )
    frame.explanation().markdown(in_numbers)
    if view.checkpoint.card.get("rounded"):
        frame.notices().info(ROUNDED)
