"""From the paper to Llama: what each later part changes for this sentence."""

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.results import system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.wording import system_texts
from headlight.model.analysis.lineage import LINE, N_KEY_HEADS, SIZES

PART, ALL_PARTS = PICTURES = "One part", "One part after the other"

projector = session.values()["projector"]
effects = system_results.lineage_of(*selection.default_run())
with frame.controls():
    picture = widgets.draw("picture", options=PICTURES, default=PART)
    name = widgets.draw("swap") if picture == PART else ""
if picture == PART:
    swap, effect = LINE[name], effects[name]
    curves = effect.curves
    frame.finding(f"{swap.title}: the same sentence, read before and after the swap")
    frame.explain(system_texts.swap(swap))
    frame.explain(system_texts.effect(swap, effect))
    frame.explain(
        "Both read your sentence with the same weights, but for the part that is swapped.",
        "a word twice. Which swap makes its two vectors alike?",
    )
    figure(
        charts.lines(curves.lines, charts.Axis(curves.across, curves.places), curves.up),
        key="swap_figure",
        alt=f"{swap.title}: {', '.join(curves.lines)}",
        projector=projector,
        compact=True,
    )
else:
    frame.finding("From the Transformer of 2017 to a Llama, one part after the other")
    st.markdown(system_texts.lineage(effects))
    frame.explain(
        "Each row is the model of the row above with one part in the place of another; the first "
        f"is the paper's. All have {SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads, "
        f"{SIZES['d_model']} numbers a token and random weights, the same every time. After "
        f"“pre-norm” it is a GPT-2; after “groups”, with {N_KEY_HEADS} key heads, a Llama. "
        "Attention moved: the share of the decoder's attention weight that lies elsewhere than in "
        "the row above, mean over layers; the paper's model reads your sentence on both sides."
    )
