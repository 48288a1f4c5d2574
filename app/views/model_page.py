"""The whole model in one picture: encoder, decoder, and the bridge between them."""

import streamlit as st

from app import compute, labels, session
from app.components.model_map import model_map

st.markdown(
    "Three attentions: the **encoder**'s looks from source to source, the **decoder**'s from "
    "target to target, **cross-attention** from target to source, over the bridge. Input is at the "
    "bottom, output at the top; a click opens a block at its layer.  \n"
    "*Try: count the parameters. Where are most of them?*"
)

run = session.run()
view = session.view(run)
trace, shown = compute.trace_of(view, run), compute.blocks_of(view, run)
st.markdown(labels.model_in_numbers(view.model, shown, trace))


def open_block(block: dict) -> None:
    """Where a block is looked at: its page and, where it has one, its layer."""
    layer = block["layer"]
    page = {"embedding": "Positions", "generator": "Attention", "norm": "Residual"}
    if layer is not None:
        # A feed-forward is seen behind the last attention of its layer.
        place = block["stack"], layer
        kinds = [one.kind for one in shown if one.kind and (one.stack, one.layer) == place]
        kind = block["kind"] or kinds[-1]
        session.choose(kind=kind, layer=layer + 1, head=1)
        session.choose(at="Input" if block["kind"] else "Feed-forward")
    session.memo()["open"] = page.get(block["part"], "Inside"), block["click"]


# The browser follows a link: st.switch_page would empty the address.
with st.container(horizontal=True, key="pages"):
    for title in ("Inside", "Positions", "Residual", "Attention"):
        st.page_link(f"views/{title.lower()}.py", label=title, width="content")
model_map(shown, trace, session.memo().pop("open", ("", 0)), open_block)
