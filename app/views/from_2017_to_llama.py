"""From the paper to Llama: what each later part changes for this sentence."""

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.results import system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.wording import exercises, system_texts
from headlight.model.analysis.lineage import LINE, N_KEY_HEADS, SIZES

ALL_PARTS, PART = PICTURES = "One part after another", "One part"


def page() -> None:
    projector = session.values()["projector"]
    effects = system_results.lineage_of(*selection.default_run())
    with frame.controls():
        picture = widgets.draw("picture", options=PICTURES, default=ALL_PARTS)
        name = widgets.draw("swap") if picture == PART else ""
    if picture == PART:
        swap, effect = LINE[name], effects[name]
        curves = effect.curves
        frame.finding(f"{swap.title}, before and after the swap")
        frame.explain(system_texts.swap(swap))
        frame.explain(system_texts.effect(swap, effect))
        frame.explain(
            "Both models read your sentence with the same weights, except for the replaced part.",
            exercises.TWICE,
        )
        figure(
            charts.lines(curves.lines, charts.Axis(curves.across, curves.places), curves.up),
            key="swap_figure",
            alt=f"{swap.title}: {', '.join(curves.lines)}",
            projector=projector,
            compact=True,
        )
    else:
        frame.finding(f"A Llama is the Transformer of 2017 with {len(effects)} parts swapped")
        with st.container(key="swaps"):
            st.markdown(system_texts.lineage(effects))
        frame.explain(
            "The paper's model has every part under “Before”. Each row replaces one more part. "
            "**One part** shows what that changes on your sentence. "
            f"All have {SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads, "
            f"{SIZES['d_model']} numbers per token, and random weights that are the same every "
            "time. After “norm before each sublayer” it is a GPT-2. After the last row, with "
            f"{N_KEY_HEADS} key heads, it is a Llama. Attention moved: the share of the decoder's "
            "weight that went elsewhere because of this swap, as a mean over layers. The paper's "
            "model reads your sentence as source and target."
        )
