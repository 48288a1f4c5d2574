"""From the paper to Llama: what each part that came later changes on the sentence."""

import streamlit as st

from app import charts, compute, session
from app.components.figure import panel
from app.views import _systems_in_words
from model.analysis.lineage import LINE, N_KEY_HEADS, SIZES


def draw(controls, projector: bool) -> None:
    effects = compute.lineage_of(*session.default_run())
    name = session.draw("swap", controls)
    swap, effect = LINE[name], effects[name]
    told, drawn = st.columns([2, 3], gap="medium")
    with told:
        st.markdown(_systems_in_words.swap(swap))
        st.markdown(_systems_in_words.effect(swap, effect))
    with drawn:
        curves = effect.curves
        across = charts.Axis(curves.across, curves.places)
        panel(
            swap.title,
            charts.lines(curves.lines, across, curves.up),
            "Both read your sentence with the same weights, but for the part that is swapped.",
            key="swap_figure",
            alt=f"{swap.title}: {', '.join(curves.lines)}",
            projector=projector,
        )
    st.subheader("One part after the other")
    st.markdown(_systems_in_words.lineage(effects))
    st.markdown(
        "Each row is the model of the row above with one part in the place of another; the first "
        f"is the paper's. All have {SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads, "
        f"{SIZES['d_model']} numbers a token and random weights, the same every time. After "
        f"“pre-norm” it is a GPT-2; after “groups”, with {N_KEY_HEADS} key heads, a Llama. "
        "Attention moved: the share of the decoder's attention weight that lies elsewhere than in "
        "the row above, mean over layers; the paper's model reads your sentence on both sides.  \n"
        "*Try: a word twice. Which swap makes its two vectors alike?*"
    )
