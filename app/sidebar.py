"""What every page shares: model, sentence, masks and the head in focus. Each widget writes its
own part of the address, so that the address of a page is all one needs to come back to it."""

import streamlit as st

from app import state
from app.components.copy_link import copy_link

MASKS = {
    "causal": (
        "Causal mask",
        "Decoder self-attention: no target token may look at a later one. Off: it can see what "
        "it is asked to predict.",
    ),
    "src_padding": (
        "Source padding mask",
        "Encoder self-attention: nobody may look at source padding. Pad the sentence to see it.",
    ),
    "tgt_padding": (
        "Target padding mask",
        "Decoder self-attention: nobody may look at target padding. With the causal mask on, "
        "only padding itself could.",
    ),
    "memory_padding": (
        "Cross-attention padding mask",
        "Cross-attention: no target token may look at source padding. Pad the sentence to see it.",
    ),
}
MAX_PADDED = 64  # enough to see padding with any one sentence
URL = {"bind": "query-params"}


def sidebar() -> None:
    with st.sidebar:
        _model()
        _sentence()
        _focus()
        _masks()
        copy_link()


def _model() -> None:
    models = list(state.model_folders())
    if not models:
        st.error("There is no model in assets/checkpoints. Train one: python -m model.train")
        st.stop()
    with st.container(horizontal=True):
        st.selectbox("Model", models, key="model", on_change=_open_on_example, **URL)
        st.selectbox(
            "Device",
            state.devices(),
            key="device",
            help="Where the model runs. Auto takes the first GPU, else the CPU.",
        )


def _open_on_example() -> None:
    """Another model may speak another language: start from its own example."""
    name = st.session_state["model"]
    st.session_state["source"] = (state.examples(name) or [""])[0]
    st.session_state["target"] = ""


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        st.session_state["source"], st.session_state["target"] = chosen, ""
        st.session_state["example"] = None


def _sentence() -> None:
    known = state.examples(st.session_state["model"])
    st.text_area(
        "Source sentence",
        value=(known or [""])[0],
        height=100,
        key="source",
        help="What the encoder reads. Ctrl+Enter, or a click elsewhere, runs the model. "
        "Several lines are offered as a list.",
        **URL,
    )
    lines = state.lines_of(st.session_state["source"])
    if len(lines) > 1:
        unique = list(dict.fromkeys(lines))
        if st.session_state.get("line") not in unique:
            st.session_state.pop("line", None)
        st.selectbox("Which line", unique, key="line", help="The line the model reads.", **URL)
    st.selectbox(
        "Examples",
        known,
        index=None,
        placeholder="Take an example …",
        key="example",
        on_change=_take_example,
        label_visibility="collapsed",
    )
    st.text_input(
        "Target",
        key="target",
        placeholder="translated by the model",
        help="What the decoder reads. Leave it empty and the model translates; type to see how "
        "it reads your translation.",
        **URL,
    )
    if st.session_state["target"]:
        st.button(
            "Translate it",
            on_click=st.session_state.update,
            kwargs={"target": ""},
            help="Empty the target box, so that the model translates.",
        )


def _focus() -> None:
    sizes = state.checkpoint().model.config
    st.segmented_control(
        "Attention",
        list(state.KINDS),
        default="cross",
        required=True,
        key="kind",
        help="Encoder: source looks at source. Decoder: target looks at target. "
        "Cross: target looks at source.",
        **URL,
    )
    kind = st.session_state["kind"]
    layers = sizes.n_encoder_layers if kind == "encoder" else sizes.n_decoder_layers
    for key, count in (("layer", layers), ("head", sizes.n_heads)):
        options = list(range(1, count + 1))
        if key in st.session_state and st.session_state[key] not in options:
            st.session_state[key] = options[-1]
        st.segmented_control(
            key.capitalize(), options, default=1, required=True, key=key, wrap=True, **URL
        )


def _masks() -> None:
    for key, (label, help) in MASKS.items():
        st.toggle(label, value=True, key=key, help=help, **URL)
    st.number_input(
        "Pad to N tokens",
        0,
        MAX_PADDED,
        key="pad_to",
        help="Adds padding to source and target, so that the padding masks have something to do.",
        **URL,
    )
    with st.container(horizontal=True):
        st.button("Reset", on_click=_reset_masks, help="All masks on, no padding.")
        st.button(
            "Translate again under these masks",
            on_click=state.translate_under_masks,
            help="Decodes with the masks as they are and puts the result into the target box.",
        )


def _reset_masks() -> None:
    st.session_state.update({key: True for key in MASKS} | {"pad_to": 0})
