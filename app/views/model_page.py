"""The whole model in one picture: encoder, decoder, and the bridge between them."""

import streamlit as st

from app import compute, labels, session, theme
from app.components.model_map import model_map
from app.pages import HOME, PAGES

st.markdown(
    "Three attentions: the **encoder**'s goes from source to source, the **decoder**'s from "
    "target to target, **cross-attention** from target to source, over the bridge. Input is at the "
    "bottom, output at the top; a click chooses a block, the link below opens it at its layer.  \n"
    "*Try: count the parameters. Where are most of them?*"
)

run = session.run()
view = session.view(run)
trace, shown = compute.trace_of(view, run), compute.blocks_of(view, run)
st.markdown(labels.model_in_numbers(view.model, shown, trace))


def kind_at(block) -> str:
    """The attention that shows a block: of a feed-forward, the last one of its layer."""
    place = block.stack, block.layer
    kinds = [one.kind for one in shown if one.kind and (one.stack, one.layer) == place]
    return block.kind or next(reversed(kinds), "")


def choose(block) -> None:
    """A block of a layer brings its layer into focus, on every page."""
    if kind := kind_at(block):
        session.choose(kind=kind, layer=block.layer + 1, head=1)
        session.choose(at="Input" if block.kind else "Feed-forward")
    session.memo()["block"] = block.stack, block.layer, block.part


def chosen():
    """The block that was clicked, while its layer is selected, else the selected attention."""
    settings, clicked = session.values(), session.memo().get("block")
    focus = settings["kind"], settings["layer"] - 1
    for block in shown:
        at_focus = not kind_at(block) or (kind_at(block), block.layer) == focus
        if (block.stack, block.layer, block.part) == clicked and at_focus:
            return block
    return next(block for block in shown if (block.kind, block.layer) == focus)


block = chosen()
model_map(shown, trace, block, choose)
pages = {"embedding": "positions", "generator": HOME, "norm": "residual"}
page = pages.get(block.part, "inside" if kind_at(block) else "residual")
with st.container(key="open_block"):
    st.page_link(
        PAGES[page].file,
        label=labels.open_block(trace, block, PAGES[page].title),
        icon=":material/arrow_forward:",
        icon_position="right",
    )
style = theme.sticky("open_block", "bottom: 0; z-index: 1", st.context.theme.type or "light")
st.html(f"<style>{style}</style>")
