"""The whole model as the paper's figure 1, and what each of its blocks does."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from headlight.app import selection
from headlight.app.components.model_map import model_map
from headlight.app.results import layer_results, passes
from headlight.app.shell import frame
from headlight.app.shell.layout import st_page
from headlight.app.state import session, widgets
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import exercises, part_names
from headlight.app.views import _blocks
from headlight.model.analysis.architecture import Block, alike
from headlight.model.pretrained.contents import ROUNDED


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


def choose(shown: Sequence[Block], block: Block) -> None:
    """Select a block, and its layer on all pages. A callback."""
    if kind := kind_at(shown, block):
        session.choose(kind=kind, layer=(block.layer or 0) + 1, head=1)
        norm = "Feed-forward" if block.sublayer == "feed_forward" else "Add & norm"
        session.choose(at="Input" if block.kind else norm)
    session.memo().block = place(block)


def chosen(shown: Sequence[Block], in_focus: tuple[str, int]) -> Block:
    """The clicked block while its layer is selected, or else the selected attention."""
    clicked = session.memo().block
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
    block = chosen(shown, in_focus)
    sides = {side.stack: side for side in trace.sides.values()}
    with frame.explanation(), st.container(key="block", gap="xsmall"):
        repeated = any(len(run) > 1 for stack in sides for run in alike(shown, stack))
        all_layers = repeated and widgets.draw("all_layers")
        depth = len(sides[block.stack].layers) if block.stack in sides else 0
        pages = {"embedding": "positions", "position": "positions", "softmax": HOME}
        pages |= {"log_softmax": HOME, "generator": HOME}
        shows = "inside" if kind_at(shown, block) else "residual"
        opens = PAGES[pages.get(block.part, shows)]
        st.markdown(f"**{part_names.block_name(trace, block)}**")
        with st.container(key="open_block"):
            st.page_link(
                st_page(opens),
                label=_blocks.link(trace, block, opens.title),
                icon=":material/arrow_forward:",
                icon_position="right",
            )
        st.markdown(_blocks.in_numbers(trace, block, depth))
        st.markdown(_blocks.explained(view.model, trace, block))
    model_map(
        shown,
        trace,
        _blocks.most_probable(view.checkpoint, trace),
        block,
        in_focus[1],
        all_layers,
        on_choose=partial(choose, shown),
        on_all_layers=lambda value: session.choose(all_layers=value),
    )
    frame.numbers().markdown(_blocks.model_in_numbers(view.model, shown, trace))
    if view.checkpoint.card.get("rounded"):
        frame.notices().info(ROUNDED)
    frame.explain(
        "Read it from the bottom. A text comes in as tokens, each token becomes a vector, and "
        "every layer adds to it. The prediction is at the top. Each block shows the shape of "
        "its output and its parameters.",
        exercises.largest_part(_blocks.parameter_shares(shown)),
    )
