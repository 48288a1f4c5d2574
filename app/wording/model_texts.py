"""Sentences on how a model is built: positions, norms, queries and keys."""

from collections.abc import Mapping, Sequence

from headlight.app.wording.formats import escaped, percent
from headlight.model.analysis.projection import Answer, Plane
from headlight.model.probing.reference import without_counterpart
from headlight.model.probing.sites import embeddings_of
from headlight.model.probing.trace import Pass

UNTRAINED_HERE = "The models on this page have random weights, whichever model is selected."
ALTERNATING = "Sines and cosines alternate, from fast waves on the left to slow ones on the right."


def input_number(cell: tuple[int, int], token: str, numbers: Mapping[str, float]) -> str:
    """One number of the input of layer 1 and what it is made of; `cell`: position and dimension."""
    table, word, total = (f"{numbers[name]:.3f}".replace("-", "−") for name in numbers)
    return (
        f"Position {cell[0]}, “{escaped(token)}”, dimension {cell[1]}: **{table}** in the "
        f"positional table, **{word}** in the embedding, **{total}** in the input of layer 1."
    )


def in_plane(plane: Plane, answer: Answer, sides: tuple[str, str], width: int) -> str:
    """How much of a head's queries and keys, of `width` numbers, the plane keeps, and how far that
    misleads for one query."""
    query_title, key_title = sides
    whose = (
        f"Queries and keys both come from the {query_title}"
        if query_title == key_title
        else f"Queries come from the **{query_title}**, keys from the **{key_title}**"
    )
    text = (
        f"{whose}, {width} numbers each. The plane is a joint PCA of both and keeps "
        f"**{percent(plane.explained.sum())}** of their variance. The weights shown are the "
        "head's true weights. "
    )
    off = answer.off()
    if not off.size:
        return f"{text}With these masks, this query cannot attend at all: all its weights are zero."
    return (
        f"{text}Dot products in the plane are approximate: for this query, q·k ÷ √{width} is "
        f"off by {off.mean():.2f} on average, {off.max():.2f} at most. Weights computed from "
        f"the plane would move **{percent(answer.total_variation())}** of the row: trust the "
        "table."
    )


def positions(model) -> str:
    """The kind of positional table that a model has."""
    position = embeddings_of(model)[0].position
    if not all(side.table for side in model.sides()):
        return "None: this model rotates queries and keys instead."
    return getattr(position, "picture", ALTERNATING)


def place_of_norm(final: bool, stack: str) -> str:
    """Where a stack has its norms, and what that does to the length of vectors; a `final` norm
    means pre-norm."""
    if final:
        return (
            f"The norms of this {stack} come before its sublayers (pre-norm), so vectors are "
            "free to grow. A final norm follows the last layer."
        )
    return (
        f"Each layer of this {stack} ends with a norm (post-norm), which gives all vectors "
        "about the same length. There is no final norm."
    )


def massive_activations(tokens: Sequence[str], lengths: Sequence[float], top: float) -> str:
    """A note on vectors longer than `top`, where the colour scale ends; `lengths`: the greatest
    length of each token's vectors."""
    far = [f"“{token}”" for token, length in zip(tokens, lengths, strict=True) if length > top]
    if not far:
        return ""
    names = escaped(", ".join(far[:3]) + (" …" if len(far) > 3 else ""))
    return (
        f"The vector of {names} is up to {max(lengths):,.0f} long; the colour scale ends at "
        f"{top:,.0f}. Such massive activations (Sun et al. 2024) often belong to the first "
        "token, and many heads attend to them."
    )


POSITIONS = {  # kind of positions (model/analysis/positions.py) → what the model gets
    "sinusoidal": "sines and cosines as in the paper, with rows as long as the model's own",
    "learned": "a random table, as a learned one is before training, with rows as long as the "
    "model's own",
    "none": "zeros, so that only the words remain",
    "shifted": "the model's own table, starting at a later row, as if other words came first",
}


def compared(trace: Pass, kind: str) -> str:
    """Sentences on how queries and keys differ from their projections when they enter the
    scores."""
    site, sentences = trace.kinds[kind][0], ""
    if not trace.sides[site.query_side].table:
        sentences += (
            " Queries and keys are shown after their rotation by position, as the scores "
            "compare them."
        )
    if site.n_key_heads < site.n_heads:
        sentences += f" The {site.n_heads} heads share {site.n_key_heads} key heads."
    return sentences


def parts_without_twin(model) -> str:
    """The parts of a model without a counterpart in torch.nn.Transformer."""
    return " and ".join(without_counterpart(model))
