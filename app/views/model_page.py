"""The whole model in one picture: encoder, decoder, and the bridge between them."""

import streamlit as st

from app import state, words
from app.components.model_map import model_map

st.markdown(
    "Three attentions: the **encoder**'s looks from source to source, the **decoder**'s from "
    "target to target, **cross-attention** from target to source, over the bridge. Input is at the "
    "bottom, output at the top; a click opens a block at its layer.  \n"
    "*Try: count the parameters. Where are most of them?*"
)

trace, shown = state.current_trace(), state.blocks()
st.markdown(words.model_in_numbers(state.checkpoint().model, shown, trace))


def open_block(block: dict) -> None:
    """Where a block is looked at: its page and, where it has one, its layer."""
    layer = block["layer"]
    page = {"embedding": "Positions", "generator": "Attention", "norm": "Residual"}
    if layer is not None:
        kind = block["kind"] or {"encoder": "encoder", "decoder": "cross"}[block["stack"]]
        state.set_focus(kind, layer, 0)
        st.session_state["at"] = "Input" if block["kind"] else "Feed-forward"
    st.session_state["_open"] = page.get(block["part"], "Inside"), block["click"]


# The browser follows a link: st.switch_page would empty the address.
with st.container(horizontal=True, key="pages"):
    for title in ("Inside", "Positions", "Residual", "Attention"):
        st.page_link(f"views/{title.lower()}.py", label=title, width="content")
model_map(shown, st.session_state.pop("_open", ("", 0)), open_block)
