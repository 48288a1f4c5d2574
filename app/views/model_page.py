"""The whole model as the paper's figure 1, and what each of its blocks does."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import compute, labels, session
from app.components.model_map import model_map
from app.pages import HOME, PAGES
from app.views import _blocks
from model.analysis.architecture import Block, alike
from model.pretrained.contents import ROUNDED


def kind_at(shown: Sequence[Block], block: Block) -> str:
    """The attention that shows a block: of one that is none, the last of its layer before it."""
    if block.layer is None:
        return ""
    layer = [one for one in shown if (one.stack, one.layer) == (block.stack, block.layer)]
    kinds = {one.sublayer: one.kind for one in layer if one.kind}
    return kinds.get(block.sublayer) or next(reversed(kinds.values()), "")


def place(block: Block) -> tuple[str, int | None, str, str]:
    """What tells it from all others."""
    return block.stack, block.layer, block.sublayer, block.part


def choose(shown: Sequence[Block], block: Block) -> None:
    """A block of a layer brings its layer into focus, on every page."""
    if kind := kind_at(shown, block):
        session.choose(kind=kind, layer=block.layer + 1, head=1)
        norm = "Feed-forward" if block.sublayer == "feed_forward" else "Residual, norm"
        session.choose(at="Input" if block.kind else norm)
    session.memo()["block"] = place(block)


def chosen(shown: Sequence[Block], in_focus: tuple[str, int]) -> Block:
    """The block that was clicked, while its layer is selected, else the selected attention."""
    clicked = session.memo().get("block")
    for block in shown:
        kind = kind_at(shown, block)
        if place(block) == clicked and (not kind or (kind, block.layer) == in_focus):
            return block
    return next(block for block in shown if (block.kind, block.layer) == in_focus)


def page() -> None:
    """A function: what a page computes at its top level, its callbacks would keep."""
    run = session.run()
    view = session.view(run)
    trace, shown = compute.trace_of(view, run), compute.blocks_of(view, run)
    in_focus = session.values()["kind"], session.values()["layer"] - 1
    block = chosen(shown, in_focus)
    sides = {side.stack: side for side in trace.sides.values()}
    figure, details = st.columns([5, 2], gap="small")
    with details, st.container(key="block", gap="xsmall"):
        repeated = any(len(run) > 1 for stack in sides for run in alike(shown, stack))
        all_layers = repeated and session.draw("all_layers")
        depth = len(sides[block.stack].layers) if block.stack in sides else 0
        pages = {"embedding": "positions", "position": "positions", "softmax": HOME}
        pages |= {"log_softmax": HOME, "generator": HOME}
        shows = "inside" if kind_at(shown, block) else "residual"
        opens = PAGES[pages.get(block.part, shows)]
        st.markdown(f"**{labels.block_name(trace, block)}**")
        with st.container(key="open_block"):
            st.page_link(
                opens.file,
                label=_blocks.link(trace, block, opens.title),
                icon=":material/arrow_forward:",
                icon_position="right",
            )
        st.markdown(_blocks.in_numbers(trace, block, depth))
        st.markdown(_blocks.explained(view.model, trace, block))
    with figure:
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
    st.markdown(_blocks.model_in_numbers(view.model, shown, trace))
    if view.checkpoint.card.get("rounded"):
        st.info(ROUNDED)
    st.markdown(
        "Read it from the bottom: a text comes in as tokens, each becomes a vector, and every "
        "layer adds to it; at the top stands what the model expects. A block shows the shape of "
        "its output and its parameters. *Try: count the parameters. Where are most of them?*"
    )


page()
