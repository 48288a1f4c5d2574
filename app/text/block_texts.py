"""Texts of the figure of a model: what each of its blocks does, and where its parameters are."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from headlight.app.text.formats import times
from headlight.app.text.part_names import token_title
from headlight.model.analysis.architecture import (
    EMBEDDINGS,
    LAYER_OUTPUTS,
    OUTPUT,
    Block,
    blocks,
)
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    final_norm_of,
    layers_of,
    predicted_side,
    sublayers_of,
)
from headlight.model.probing.trace import Pass
from headlight.model.rounding import percent
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.transformer import MultiHeadAttention

START = {"embedding": "embedding", "position": "positions"}
NORMS = {"add_norm": "⊕: sum, then norm", "norm": "⊕: sum; norm before each part"}
END = {"generator": "linear", "log_softmax": "log softmax"}


def towers(model: ProbedModel) -> list[dict[str, Any]]:
    """What stands in each stack of a model, as the stage draws it: `side`, the title of its text;
    `start`; for each of its `layers` the kind of each attention and the names of other sublayers,
    in their order; `end`, what makes a prediction of its output; `sums`, what ⊕ does."""
    listed, found = blocks(model, {side.name: 1 for side in model.sides()}), []
    for side in model.sides():
        of_stack = [block for block in listed if block.stack == side.stack]
        count = len(side.layers)
        layers = [[block for block in of_stack if block.layer == at] for at in range(count)]
        norms = {block.part for block in of_stack if block.layer is not None} & NORMS.keys()
        found.append(
            {
                "side": side.title,
                "start": " + ".join(START[b.part] for b in of_stack if b.part in START),
                "layers": [
                    [block.kind or block.part for block in layer if block.part not in NORMS]
                    for layer in layers
                ],
                "sums": NORMS[norms.pop()] if norms else "⊕: sum",
                "end": ", ".join(
                    END.get(block.part, block.part)
                    for block in listed
                    if block.stack == OUTPUT and side == predicted_side(model)
                ),
            }
        )
    return found


def explained(model, trace: Pass, block: Block) -> str:
    """What a block does, and whose parameters it shares."""
    shares = f" It shares parameters with the {block.shares}." * bool(block.shares)
    return _explained(model, trace, block) + shares


def _explained(model, trace: Pass, block: Block) -> str:
    if block.stack == OUTPUT:
        return _output(model.generator, trace.predicted, block.part)
    side = next(side for side in model.sides() if side.stack == block.stack)
    if block.site:
        return _attention(attention_at(model, block.site), block.site, trace, block)
    if block.part == "embedding":
        return _embedding(model, embedding_of(model, side))
    if block.part == "position":
        return _position(embedding_of(model, side).position)
    if block.part == "feed_forward" and block.layer is not None:
        return _feed_forward(layers_of(model, side)[block.layer].feed_forward, model.config)
    if block.layer is None:
        return _norm(final_norm_of(model, side), block)
    norms = {name: norm for name, _, norm in sublayers_of(layers_of(model, side)[block.layer])}
    return _norm(norms[block.sublayer], block)


def _of_itself(part: nn.Module) -> str:
    """What a part that differs from the paper's says of itself on screen."""
    return getattr(part, "explained", "")


def _attention(attention: MultiHeadAttention, site: Site, trace: Pass, block: Block) -> str:
    _, key = trace.sides_of(block.kind)
    keys = {
        "": "all from this stack",
        LAYER_OUTPUTS: f"queries from this stack, keys and values from the {key.stack}'s output",
        EMBEDDINGS: f"queries from this stack, keys and values from the {key.title}'s embeddings",
    }[block.keys]
    sentences = [
        "Each head compares queries with keys. Its output is the mean of the values, weighted "
        f"by these matches: {keys}.",
        f"Weights: {times(block.weights)} (head × query × key).",
    ]
    if site.n_key_heads < site.n_heads:
        shared = site.n_heads // site.n_key_heads
        sentences.append(f"Every {shared} of the {site.n_heads} heads share their keys and values.")
    sentences += filter(None, map(_of_itself, (attention.query, attention.scores)))
    if "causal" in site.masks and trace.masks.causal:
        sentences.append("No token may attend to a later one.")
    if site.window:
        sentences.append(f"A token may attend only to those fewer than {site.window} away.")
    return " ".join(sentences)


def _embedding(model: ProbedModel, embedding: nn.Module) -> str:
    sentences = f"{token_title(model)}: one learned vector per token.", _of_itself(embedding)
    return " ".join(filter(None, sentences))


def _position(table: nn.Module) -> str:
    what = _of_itself(table) or "sines and cosines of the position"
    return f"Added to the embeddings, because attention alone ignores order: {what}."


def _feed_forward(module: nn.Module, config) -> str:
    activation = type(getattr(module, "activation", nn.ReLU())).__name__
    narrow, wide = f"{config.d_model:,}", f"{config.d_ff:,}"
    maps = _of_itself(module) or (
        "Two linear maps, {narrow} → {wide} → {narrow}, with a {activation} in between."
    )
    sizes = {"narrow": narrow, "wide": wide, "activation": activation}
    return f"{maps.format(**sizes)} Each position is processed separately."


def _norm(module: nn.Module, block: Block) -> str:
    if block.part == "add_norm":
        sentences = (
            "The residual connection adds the sublayer's input to its output; the norm follows "
            "(post-norm, as in the paper)."
        )
    elif block.sublayer:
        sentences = (
            "Pre-norm: the sublayer reads normalised vectors. The residual path, added at ⊕, is "
            "not normalised."
        )
    else:
        sentences = (
            "The residual stream, normalised once after the last layer, as a pre-norm stack needs."
        )
    return f"{sentences} {_of_itself(module)}".strip()


def _output(generator: nn.Module, predicted: Side, part: str) -> str:
    each = "class" if predicted.predicts == "class" else "token of the vocabulary"
    sentences = {
        "mean": "One vector for the whole text: the mean over all tokens except padding.",
        "generator": f"{_of_itself(generator) or 'A'} logit for each {each}.",
        "softmax": "Turns the logits into probabilities that add up to 1 in each row.",
        "log_softmax": "Turns the logits into log-probabilities.",
    }
    return (sentences | getattr(generator, "blocks", {}))[part]


def parameter_shares(shown: Sequence[Block]) -> dict[str, float]:
    """Part of a model → its share of the parameters."""
    parts = {
        "attention": lambda block: block.kind,
        "feed-forward": lambda block: block.part == "feed_forward",
        "embeddings and generator": lambda block: (
            block.part in ("embedding", "position", "dense", "generator")
        ),
    }
    total = sum(block.parameters for block in shown)
    return {
        name: sum(block.parameters for block in shown if counts(block)) / total
        for name, counts in parts.items()
    }


def model_in_numbers(shown: Sequence[Block]) -> str:
    """The number of parameters of a model, and how they are shared out."""
    total = sum(block.parameters for block in shown)
    shares = (f"{name} {percent(share)}" for name, share in parameter_shares(shown).items())
    return f"{total:,} parameters: {', '.join(shares)}."
