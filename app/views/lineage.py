"""From the paper to Llama: what each later part changes for this sentence."""

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import panel
from headlight.app.results import system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.wording import system_texts
from headlight.model.analysis.lineage import LINE, N_KEY_HEADS, SIZES

projector = session.values()["projector"]
controls = frame.controls()
effects = system_results.lineage_of(*selection.default_run())
name = widgets.draw("swap", controls)
swap, effect = LINE[name], effects[name]
text_column, figure_column = st.columns([2, 3], gap="medium")
with text_column:
    st.markdown(system_texts.swap(swap))
    st.markdown(system_texts.effect(swap, effect))
with figure_column:
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
st.markdown(system_texts.lineage(effects))
st.markdown(
    "Each row is the model of the row above with one part in the place of another; the first "
    f"is the paper's. All have {SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads, "
    f"{SIZES['d_model']} numbers a token and random weights, the same every time. After "
    f"“pre-norm” it is a GPT-2; after “groups”, with {N_KEY_HEADS} key heads, a Llama. "
    "Attention moved: the share of the decoder's attention weight that lies elsewhere than in "
    "the row above, mean over layers; the paper's model reads your sentence on both sides.  \n"
    "*Try: a word twice. Which swap makes its two vectors alike?*"
)
