"""What every page shares: model, sentence, masks and the head in focus. Each widget writes its
own part of the address, so that the address of a page is all one needs to come back to it."""

import random
from collections.abc import Sequence

import streamlit as st

from app import state
from app.choices import AVERAGES, MAX_PADDED, MOST_HIDDEN, ORDERS, SCALES, SHOWN
from app.components.copy_link import copy_link
from model.card import headline
from model.reading import SPECIAL_TOKENS

MASKS = {  # key → the attention it concerns, its name, a sentence of help
    "causal": (
        "decoder",
        "Causal mask",
        "Decoder self-attention: no target token may look at a later one. Off: it can see what "
        "it is asked to predict.",
    ),
    "src_padding": (
        "encoder",
        "Source padding mask",
        "Encoder self-attention: nobody may look at source padding. Pad the sentence to see it.",
    ),
    "tgt_padding": (
        "decoder",
        "Target padding mask",
        "Decoder self-attention: nobody may look at target padding. With the causal mask on, "
        "only padding itself could.",
    ),
    "memory_padding": (
        "cross",
        "Cross-attention padding mask",
        "Cross-attention: no target token may look at source padding. Pad the sentence to see it.",
    ),
}
URL = {"bind": "query-params"}


def sidebar() -> None:
    with st.sidebar:
        _model()
        _sentence()
        _focus()
        _masks()
        with st.expander("Pictures", icon=":material/tune:"):
            _pictures()
        st.toggle(
            "Projector",
            key="projector",
            help="Large letters and thick lines, to be read from the last row.",
            **URL,
        )
        copy_link()
    state.sidebar_is_drawn()


def _model() -> None:
    models = state.models()
    if not models:
        st.error("There is no model in assets/checkpoints. Train one: python -m model.train")
        raise state.NothingToShow
    st.selectbox(
        "Model",
        models,
        key="model",
        on_change=_open_on_example,
        help="Each was trained for one task; what it is good at stands below. Untrained ones show "
        "how other systems are built, with random weights that are the same every time.",
        **URL,
    )
    st.selectbox(
        "Device",
        state.devices(),
        key="device",
        help="Where the model runs. Auto takes the first GPU, else the CPU.",
    )
    st.session_state["_reads"] = state.trained(st.session_state["model"])
    _step()
    st.caption(_facts(state.cards()[st.session_state["model"]]))
    with st.popover("All models", help="What each was trained for, its size and its score."):
        for name, card in state.cards().items():
            st.markdown(f"**{name}**: {_facts(card)}")


def _facts(card: dict) -> str:
    if not card:
        return "cannot be read"
    facts = [card.get("title"), f"{card['parameters']:,} parameters", headline(card)]
    return f"{' · '.join(filter(None, facts))}  \n{card.get('look_for', '')}"


def _step() -> None:
    """How far its training had come, for a model that kept snapshots."""
    if not (steps := state.steps()):
        return
    if st.session_state.get("step", state.FINAL) not in steps:
        st.session_state["step"] = state.FINAL
    st.select_slider(
        "Training step",
        list(steps),
        value=state.FINAL,
        key="step",
        help="The same sentence and head, earlier in training.",
        **URL,
    )
    if score := steps[st.session_state["step"]]:
        st.caption(f"At this step: {headline({'scores': [score]})}")


def _open_on_example() -> None:
    """Another model may speak another language: an example gives way to one of its own. What the
    user typed stays."""
    before, now = (st.session_state[key] for key in ("_reads", "model"))
    if state.trained(now) == before:
        return
    st.session_state["target"] = ""
    if st.session_state["source"] in state.examples(before):
        st.session_state["source"] = (state.examples(now) or [""])[0]


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        _read(chosen)
        st.session_state["example"] = None


def _surprise(known: list[str]) -> None:
    _read(random.choice([text for text in known if text != st.session_state["source"]]))


def _read(text: str) -> None:
    st.session_state["source"], st.session_state["target"] = text, ""


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
    lines = list(dict.fromkeys(state.lines_of(st.session_state["source"])))
    if len(lines) > 1:
        if st.session_state.get("line") not in lines:
            st.session_state.pop("line", None)
        st.selectbox("Which line", lines, key="line", help="The line the model reads.", **URL)
    if len(known) > 1:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Examples",
                known,
                index=None,
                placeholder="Take an example …",
                key="example",
                on_change=_take_example,
                label_visibility="collapsed",
                width=190,
            )
            st.button(
                "",
                icon=":material/casino:",
                on_click=_surprise,
                args=(known,),
                help="Surprise me: another example.",
                key="surprise",
            )
    if not state.checkpoint().classes:
        _target()


def _target() -> None:
    st.text_input(
        "Target",
        key="target",
        placeholder=f"written by {state.trained(st.session_state['model'])}",
        help="What the decoder reads. Leave it empty and the model writes it; type to see how "
        "it reads your own.",
        **URL,
    )
    if st.session_state["target"]:
        st.button(
            "Let the model write it",
            on_click=st.session_state.update,
            kwargs={"target": ""},
            help="Empty the target box.",
        )


def _focus() -> None:
    layers = state.layers()
    _one_of(
        "kind",
        list(layers),
        "Attention",
        "Encoder: source looks at source. Decoder: target looks at target. "
        "Cross: target looks at source.",
        default=list(layers)[-1],
    )
    _one_of(
        "layer",
        range(1, layers[st.session_state["kind"]] + 1),
        "Layer",
        "Layer 1 reads the embeddings, every other layer the one before it.",
    )
    _one_of(
        "head",
        range(1, state.checkpoint().model.config.n_heads + 1),
        "Head",
        "The heads of a layer read the same text side by side, each in its own way.",
    )


def _one_of(key: str, options: Sequence, label: str, help: str, default=None) -> None:
    """A choice that is always made; what another model or kind does not have is clamped."""
    default = options[0] if default is None else default
    if st.session_state.get(key, default) not in options:
        st.session_state[key] = options[-1]
    st.segmented_control(
        label,
        options,
        default=default,
        required=True,
        key=key,
        help=help,
        wrap=True,
        **URL,
    )


def _masks() -> None:
    for key, (kind, label, help) in MASKS.items():
        if kind in state.layers():
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
        if not state.checkpoint().classes:
            st.button(
                "Translate again under these masks",
                on_click=state.translate_under_masks,
                help="Decodes with the masks as they are and puts the result into the target box.",
            )


def _pictures() -> None:
    """How weights are read and drawn."""
    _one_of(
        "show",
        SHOWN,
        "Grid",
        "Encoder, decoder and cross-attention together; the one in focus alone; or source and "
        "target in one square.",
    )
    _one_of(
        "scale",
        SCALES,
        "Scale",
        "How weights become colours in the grid. Square root lifts small weights out of the "
        "dark; per row makes the largest weight of every row the brightest.",
    )
    st.selectbox(
        "Order of heads",
        ORDERS,
        key="order",
        help="Entropy: the most pointed head first. Distance: the nearest-looking first. Change: "
        "the head that the masks change most comes first.",
        **URL,
    )
    _one_of(
        "average",
        list(AVERAGES),
        "Mean over",
        "The head in focus by itself, or the mean over the heads of its layer, over its head "
        "number in all layers, or over both. For the picture in full and for the shaded text.",
    )
    _one_of(
        "special",
        SPECIAL_TOKENS,
        "Special tokens",
        "<s>, </s> and padding: shown; hidden; or hidden and each row scaled to 1 again.",
    )
    st.toggle(
        "Whole words",
        key="words",
        help="Pieces of a word are merged: rows averaged, columns summed.",
        **URL,
    )
    st.slider(
        "Hide weights below",
        0.0,
        MOST_HIDDEN,
        step=0.01,
        key="least",
        help="Smaller weights are drawn as 0.",
        **URL,
    )


def _reset_masks() -> None:
    st.session_state.update({key: True for key in MASKS} | {"pad_to": 0})
