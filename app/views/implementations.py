"""The systems that describe a Transformer from scratch, and how they differ."""

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.matrices import Matrix, matrices
from headlight.app.results import layer_results, passes, system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.views import _small_examples as little_examples
from headlight.app.wording import exercises, system_texts
from headlight.model.analysis.family import FAMILY_SIZES, N_LAYERS
from headlight.model.presets import PRESETS, parameters
from headlight.model.provenance import SOURCES

LENGTHS, SYSTEM, DIFFERENCES, POSITIONS = PICTURES = (
    "Norm before or after",
    "One system",
    "Differences",
    "Positions",
)


def one_system(name: str, projector: bool) -> None:
    preset, source = PRESETS[name], SOURCES[name]
    st.markdown(
        f"**{preset.system}** · {source.address} · **{parameters(name):,}** parameters at "
        f"{preset.whose_sizes}  \nDiffers from the paper in: {preset.differs}. "
        f"{source.completed}"
    )
    if source.disagreements:
        st.markdown("**Where its text and its code disagree**")
        st.markdown(system_texts.disagreements(source))
    if source.repairs:
        st.markdown("**Mistakes we corrected**")
        st.markdown(system_texts.repairs(source))
    if name == "van_dijck":
        little_examples.van_dijck(system_results.three_words(), projector)
    elif name == "bloem":
        run = selection.run()
        view = selection.view(run)
        little_examples.self_attention_without_parameters(
            next(iter(passes.trace_of(view, run).texts.values())),
            layer_results.vectors_of(view, run),
            projector,
        )


def page() -> None:
    projector = session.values()["projector"]
    measured = system_results.family_of(*selection.default_run())
    with frame.controls():
        picture = widgets.draw("picture", options=PICTURES, default=LENGTHS)
        name = widgets.draw("system") if picture == SYSTEM else ""

    if picture == SYSTEM:
        one_system(name, projector)
    elif picture == DIFFERENCES:
        frame.finding("How they differ, and what that changes in your sentence")
        st.markdown(system_texts.differences(measured))
    elif picture == LENGTHS:
        layers = [*("in", *(f"layer {i + 1}" for i in range(N_LAYERS)))]
        frame.finding("A norm before the sublayer lets a token's vector grow from layer to layer.")
        frame.explain(
            "Mean length of the encoder's vectors (decoder_only: the decoder's) at the input of "
            "layer 1 and after each layer. A norm after the sum rescales every vector to "
            "length √d_model. A norm before the sublayer lets the sum grow. `paper` and "
            "`pre_norm` have the same weights."
        )
        values = np.array([*measured["lengths"].values()])
        matrices(
            [
                Matrix(
                    "length",
                    values,
                    *("system", "after", [*measured["lengths"]], layers),
                    weights=True,
                    largest=float(values.max()),
                )
            ],
            key="lengths",
        )
    else:
        frame.finding("The first number of each position's vector")
        frame.explain(
            "The paper's fastest wave turns one radian per position. vanilla starts at the paper's "
            "second frequency, k = 1. bloem's table is learned, so it is random before training."
        )
        matrices(
            [
                Matrix(
                    "first number",
                    np.array([*measured["first_waves"].values()]),
                    *("system", "position", [*measured["first_waves"]]),
                    ends=("{}", "{}"),
                    first=0,
                )
            ],
            key="waves",
        )
    frame.explain(
        "Eight ways to build a Transformer. You can choose each as a model, “…, untrained”. Here "
        f"all of them read your sentence at the same size ({N_LAYERS} layers per stack, "
        f"{FAMILY_SIZES['n_heads']} heads, {FAMILY_SIZES['d_model']} numbers per token). Their "
        "weights are random and the same every time, so you see how they are built.",
        exercises.LONGER,
    )
