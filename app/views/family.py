"""The systems that describe a Transformer from scratch, and how they differ."""

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import panel
from headlight.app.results import layer_results, passes, system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.views import _small_examples as little_examples
from headlight.app.wording import system_texts
from headlight.model.analysis.family import LAYERS, SIZES
from headlight.model.presets import PRESETS, parameters
from headlight.model.provenance import SOURCES

projector = session.values()["projector"]
controls = frame.controls()
measured = system_results.family_of(*selection.default_run())
name = widgets.draw("system", controls)
preset, source = PRESETS[name], SOURCES[name]
system, lengths = st.columns(2, gap="medium")
with system:
    st.markdown(
        f"**{preset.system}** · {source.address} · **{parameters(name):,}** parameters at "
        f"{preset.whose_sizes}  \nDiffers from the paper in: {preset.differs}. "
        f"{source.completed}"
    )
    if source.disagreements:
        st.markdown("**Where its text and its code disagree**")
        st.markdown(system_texts.disagreements(source))
    if source.repairs:
        st.markdown("**Built as meant**")
        st.markdown(system_texts.repairs(source))
layers = [*("in", *(f"layer {i + 1}" for i in range(LAYERS)))]
with lengths:
    panel(
        "Norm before or after: how long a token's vector becomes",
        charts.lines(measured["lengths"], charts.Axis("after", layers), "length"),
        "Mean length of the encoder's vectors (of decoder_only, the decoder's) as they enter "
        "layer 1 and after each layer. A norm after the sum sets every token back to one "
        "length, √d_model; one before the sublayer leaves the sum to grow. paper and pre_norm "
        "have the same weights.",
        key="lengths_figure",
        alt="Mean length of the vectors through the encoder's layers, a line a system",
        projector=projector,
    )
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

st.subheader("What they do differently, and what it does to your sentence")
st.markdown(system_texts.differences(measured))

positions = [str(i) for i in range(measured["tokens"])]
panel(
    "Positions: the first number of each position's vector",
    charts.lines(measured["first_waves"], charts.Axis("position", positions), "value"),
    "The paper's quickest wave turns one radian a position; vanilla's first frequency is its "
    "second, k = 1; bloem's table is learned and random before training.",
    key="waves_figure",
    alt="The first dimension of three positional tables over the positions of the sentence",
    projector=projector,
)
st.markdown(
    "Eight ways to build the same idea. Each can be chosen above as a model, “…, "
    "untrained”. Here all of them read your sentence at one size "
    f"({LAYERS} layers a stack, {SIZES['n_heads']} heads, {SIZES['d_model']} numbers a "
    "token) with random weights, the same every time, so that what you see is how they are "
    "built.  \n*Try: a longer sentence. Which numbers move, and which belong to the system?*"
)
