"""The small examples from the systems' own texts, computed live."""

import numpy as np
import streamlit as st
import torch

from headlight.app import charts
from headlight.app.components.figure import figure
from headlight.model.analysis.family import ThreeWords, look_up, plain_self_attention
from headlight.model.masks import causal_mask
from headlight.model.tokenizer import Encoding

# Van Dijck's examples: three words, vectors in the plane, a sentence with a mask.
THREE = ("our", "input", "sentence")
CLAIMED = {"fun": 0.45, "exciting": 0.45, "boring": 0.1}
VALUES = {"fun": 10.0, "exciting": 9.0, "boring": -3.0}
KEYS = {"fun": (5.0, -3.0), "exciting": (6.0, -1.0), "boring": (-4.0, 8.0)}
QUERY = (8.0, -5.0)  # “rollercoaster”
CAUSAL = "I keep ice-cream in my freezer"


def van_dijck(three: ThreeWords, projector: bool) -> None:
    st.markdown(
        "**“our input sentence”**: a vocabulary of 3, random vectors of 3 numbers. Vectors, "
        "positions, and their sum, the input of layer 1:"
    )
    position = charts.Axis("word", THREE)
    largest = max(part.abs().max().item() for part in (three.token, three.embedded))
    parts = {"embedding": three.token, "position": three.position, "sum": three.embedded}
    figure(
        charts.tables(
            {name: vectors.numpy() for name, vectors in parts.items()}, position, largest, True
        ),
        key="three_words_figure",
        alt="Three words of three numbers each: embedding, position, and their sum",
        projector=projector,
    )
    st.markdown("One head projects each to 64 numbers, compares them and divides by √64 = 8:")
    figure(
        charts.attention(
            three.weights.numpy(),
            charts.Axis("query", THREE),
            charts.Axis("key", THREE),
            numbers=True,
        ),
        key="three_weights_figure",
        alt="Attention weights of three words",
        projector=projector,
    )

    st.markdown("**A dictionary that answers by similarity**: what is a “rollercoaster” worth?")
    claimed = sum(CLAIMED[word] * VALUES[word] for word in VALUES)
    terms = " + ".join(f"{CLAIMED[word]} · ({VALUES[word]:g})" for word in VALUES)
    st.markdown(f"With the weights set by hand in the text: {terms} = **{claimed:.2f}**")
    scores, weights, blended = look_up(
        torch.tensor(QUERY), torch.tensor(list(KEYS.values())), torch.tensor(list(VALUES.values()))
    )
    rows = [
        f"| {word} | {KEYS[word]} | {score:g} | {score / 2**0.5:.2f} | {weight:.4f} | "
        f"{VALUES[word]:g} |"
        for word, score, weight in zip(VALUES, scores.tolist(), weights.tolist(), strict=True)
    ]
    st.markdown(
        f"With vectors, where rollercoaster is {QUERY}:\n\n| word | key | score q·k | ÷ √2 | "
        "weight | value |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + f"\n\nThe blended value is **{blended.item():.2f}**: nearly all of “fun”. A score "
        "that is 2 points higher gives about four times the weight."
    )

    st.markdown(
        f"**The causal mask** of “{CAUSAL}”: a word may attend to itself and to the words "
        "before it."
    )
    may = causal_mask(len(CAUSAL.split())).numpy().reshape(len(CAUSAL.split()), -1)
    axes = (charts.Axis(name, CAUSAL.split()) for name in ("query", "key"))
    figure(
        charts.mask(may, *axes),
        key="causal_figure",
        alt="The causal mask: yes on and below the diagonal",
        projector=projector,
    )


def self_attention_without_parameters(encoding: Encoding, x: np.ndarray, projector: bool) -> None:
    """`x`: the tokens' vectors, (length, d_model)."""
    weights, blended = plain_self_attention(torch.from_numpy(x))
    st.markdown(
        "**Self-attention without any parameters**: weights softmax(x·xᵀ), with the chosen "
        "model's own vectors for your tokens. A token attends to tokens like it, and most of "
        "all to itself. Only the vectors are learned."
    )
    figure(
        charts.attention(
            weights.numpy(),
            charts.Axis("query", encoding.tokens),
            charts.Axis("key", encoding.tokens),
            numbers=True,
        ),
        key="plain_figure",
        alt="Attention without parameters, on the sentence",
        projector=projector,
    )
    st.markdown("Times x: the vectors before and after mixing.")
    position = charts.Axis("token", encoding.tokens)
    largest = float(np.abs(x).max())
    for name, vectors in {"x": x, "softmax(x·xᵀ)·x": blended.numpy()}.items():
        st.caption(name)
        figure(
            charts.vectors(vectors, position, largest),
            key=f"plain_{'before' if name == 'x' else 'after'}_figure",
            alt=f"{name}: one vector per token",
            projector=projector,
        )
