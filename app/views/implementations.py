"""The systems that describe a Transformer from scratch, and how they differ."""

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.matrices import Matrix, matrices
from headlight.app.results import layer_results, passes, system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.text.formats import escaped, table
from headlight.app.views import _small_examples as little_examples
from headlight.model.analysis.family import FAMILY_SIZES, N_LAYERS
from headlight.model.presets import PRESETS, parameters
from headlight.model.provenance import SOURCES, Source
from headlight.model.rounding import percent

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
        st.markdown(disagreements(source))
    if source.repairs:
        st.markdown("**Mistakes we corrected**")
        st.markdown(repairs(source))
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
        st.markdown(differences(measured))
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


def differences(measured: dict) -> str:
    """A Markdown table of differences between presets: which presets, and the effect `measured` on
    the sentence (model/analysis/family.py)."""
    m, n_tokens = measured, measured["tokens"]
    grows = {name: f"{m['lengths'][name][-1]:.1f}" for name in m["lengths"]}
    ratio = {
        name: f"{word:.1f} : {position:.1f}"
        for name, (word, position) in m["word_to_position"].items()
    }
    ignored, as_words = m["padded_mean"]
    rows = [
        (
            "Stacks",
            "encoder and decoder",
            "encoder only: bloem; decoder only: decoder_only",
            "attention sublayers in all layers: "
            + _each({n: str(m["attentions"][n]) for n in ("paper", "bloem", "decoder_only")}),
        ),
        (
            "Position of the norm",
            "after the sum",
            "before the sublayer, plus one after each stack: pre_norm, annotated",
            f"vector length at the input of layer 1: {m['lengths']['paper'][0]:.1f}; after the "
            f"last layer: **{grows['paper']}**; with the norms moved and the same weights: "
            f"**{grows['pre_norm']}**",
        ),
        (
            "Type of norm",
            "biased variance, eps 1e-5 inside the root",
            "unbiased, eps outside the root: annotated; eps 1e-12: hyunwoongko; unbiased: vanilla",
            "largest difference on the same vectors: "
            + _each({name: f"{far:.2g}" for name, far in m["norms"].items() if name != "paper"}),
        ),
        (
            "Scale of embeddings",
            "× √d_model",
            "unscaled: hyunwoongko (which never trains padding's vector), van_dijck, bloem",
            "length of word : length of position, "
            + _each({name: ratio[name] for name in ("paper", "annotated", "hyunwoongko", "bloem")}),
        ),
        (
            "Shared weights",
            "one matrix for both embeddings and the generator",
            "nothing: annotated, hyunwoongko, van_dijck",
            "cosine similarity of a token's source and target embeddings: "
            + _each(
                {
                    name: f"{m['sharing'][name]:.2f}"
                    for name in ("paper", "annotated", "hyunwoongko", "van_dijck")
                }
            ),
        ),
        (
            "Positions",
            "sinusoids from k = 0",
            "from k = 1: vanilla; learned: bloem",
            f"first number at position 1: {_each(_second(m['first_waves']))}",
        ),
        (
            "Masked scores",
            "−∞",
            "−1e9: annotated, van_dijck; −10000: hyunwoongko; −∞: vanilla, whose own code then "
            "gives NaN where nothing may be attended to (zeros here, as in paper)",
            f"a row that may attend to none of your {n_tokens} tokens gives each of them "
            + _each({name: f"{weight:.3f}" for name, weight in m["nothing_to_see"].items()}),
        ),
        (
            "Input of a head",
            "the whole vector, projected to d / h numbers",
            "a slice of it: van_dijck; the whole vector, projected to d numbers: bloem",
            "with all but the first slice of each vector erased, head 1's weights change by up to "
            + _each({name: f"{m['reach'][name]:.2g}" for name in ("paper", "van_dijck")}),
        ),
        (
            "Scaling",
            "scores ÷ √d_head",
            "queries and keys each ÷ ∜d_head: bloem",
            f"the same: largest difference of the weights **{m['fourth_roots']:.0e}** "
            f"({'within' if m['fourth_roots'] <= 1e-6 else 'NOT within'} 1e-6)",
        ),
        (
            "Biases",
            "in every projection and feed-forward layer",
            "none: vanilla; none on queries, keys and values: bloem",
            "number of biases: "
            + _each({name: f"{m['biases'][name]:,}" for name in ("paper", "vanilla", "bloem")}),
        ),
        (
            "Output",
            "logits; a softmax follows",
            "log-probabilities: annotated, bloem",
            "exponentiated, the outputs of a row add up to "
            + _each(
                {
                    name: f"{m['total_output'][name]:,.3f}"
                    for name in ("paper", "annotated", "bloem")
                }
            ),
        ),
        (
            "Dropout",
            "sublayers, sums of embeddings, attention weights",
            "only in the feed-forward: vanilla; none: van_dijck and bloem's notebook (our "
            "bloem can drop weights, sublayers and whole tokens); not on weights: hyunwoongko",
            "in training, a rate of 0.1 changes the encoder's output by "
            + _each(
                {
                    name: percent(m["dropout_noise"][name])
                    for name in ("paper", "hyunwoongko", "vanilla", "van_dijck")
                }
            ),
        ),
        (
            "Mean over positions",
            "none: it has a decoder",
            "bloem; its notebook counts padding too",
            f"8 tokens of padding move a class by {ignored:.4f} here, by **{as_words:.4f}** if "
            "they are counted",
        ),
        (
            "Initial weights",
            "Xavier uniform",
            "Kaiming uniform: hyunwoongko; PyTorch's own: vanilla, van_dijck, bloem",
            "how evenly heads attend before training (100%: equally to all tokens): "
            + _each({name: percent(share) for name, share in m["normalized_entropy"].items()}),
        ),
    ]
    return table(("What", "Paper", "Others", "On your sentence"), rows)


def _second(waves: dict[str, list[float]]) -> dict[str, str]:
    return {name: f"{wave[1]:.2f}" for name, wave in waves.items() if len(wave) > 1}


def _each(values: dict[str, str]) -> str:
    return ", ".join(f"{escaped(name)} **{value}**" for name, value in values.items())


def disagreements(source: Source) -> str:
    """A Markdown table: what a source's text says, what its code does, and what our preset does."""
    rows = [(d.what, d.text, d.code, d.ours) for d in source.disagreements]
    return table(("What", "Its text", "Its code", "Ours"), rows)


def repairs(source: Source) -> str:
    """A Markdown table of what was built as intended rather than as written, and the effect."""
    return table(("Mistake", "Ours"), [(r.mistake, r.changes) for r in source.repairs])
