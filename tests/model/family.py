"""Differences between the presets, as numbers on one sentence, for the laws of presets.

All members are built at one size, so that they differ only in their parts. Every function below
takes ids of one sentence, (1, length), and measures one difference.
"""

import math
from collections.abc import Callable
from dataclasses import fields

import torch
from torch import Tensor, nn

from headlight.model.masks import Masks
from headlight.model.pause import unbroken
from headlight.model.presets import GENERATOR, PRESETS, build
from headlight.model.probing.capture import capture, outputs_of, view
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    embeddings_of,
    final_norm_of,
    kinds_of,
    layers_of,
)
from headlight.model.sites import ProbedModel
from headlight.model.transformer import (
    Embedding,
    FeedForward,
    MaskedSoftmax,
    MultiHeadAttention,
)
from headlight.model.variants import FilledSoftmax, StdNorm, UnbiasedNorm

FAMILY_SIZES = dict(d_model=128, n_heads=8, d_ff=512, dropout=0.1)
N_LAYERS, DEPTHS = 6, ("n_encoder_layers", "n_decoder_layers")
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "paper": nn.LayerNorm,
    "annotated": StdNorm,
    "hyunwoongko": lambda d_model: nn.LayerNorm(d_model, eps=1e-12),
    "vanilla": lambda d_model: UnbiasedNorm(d_model, bias=False),
}


def members(vocab_size: int, max_length: int, seed: int = 0) -> dict[str, ProbedModel]:
    """Every preset with random weights from `seed`, in eval mode. Uses PyTorch's global random
    generator: hold GENERATOR."""
    models = {}
    for name, preset in PRESETS.items():
        sizes = dict(vocab_size=vocab_size, max_length=max_length) | FAMILY_SIZES
        # A stack that a system lacks keeps its Config's depth of 0.
        depths = {f.name: f.default for f in fields(preset.config) if f.name in DEPTHS}
        sizes |= {name: N_LAYERS for name, depth in depths.items() if depth}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            models[name] = build(name, **sizes).eval().requires_grad_(False)
    # The same weights with norms moved: only the place of the norms differs.
    models["pre_norm"].load_state_dict(models["paper"].state_dict(), strict=False)
    return models


def lengths(model: ProbedModel, src: Tensor) -> list[float]:
    """Mean length of the first stack's vectors: as they enter layer 1, then after each layer."""
    model, (side, *_) = view(model), model.sides()
    modules = [embedding_of(model, side), *layers_of(model, side)]
    with outputs_of(dict(enumerate(modules))) as outputs:
        first_stack(model, src)
    return [outputs[i].norm(dim=-1).mean().item() for i in range(len(modules))]


def first_stack(model: ProbedModel, src: Tensor, masks: Masks = Masks()) -> Tensor:
    """The last vectors of a model's first text, (1, length, d_model). `model` must be the caller's
    own view."""
    side, ids = model.sides()[0], [src] * len(model.sides())
    with outputs_of({side: final_norm_of(model, side)}) as outputs:
        model.hidden(*ids, *masks.build(model, *ids))
    return outputs[side]


def norms(x: Tensor) -> dict[str, float]:
    """The largest difference between each system's norm and the paper's, on the same vectors
    (length, d_model)."""
    outputs = {name: make(x.shape[-1])(x) for name, make in NORMS.items()}
    return {name: (out - outputs["paper"]).abs().max().item() for name, out in outputs.items()}


def word_to_position(model: ProbedModel, src: Tensor) -> tuple[float, float]:
    """Mean lengths of the word's and of the position's vector in what enters layer 1."""
    embedding = first_embedding(model)
    token, position = embedding.token(src)[0], embedding.position(src.shape[1])
    return token.norm(dim=-1).mean().item(), position.norm(dim=-1).mean().item()


def first_embedding(model: ProbedModel) -> Embedding:
    return embedding_of(model, model.sides()[0])


def first_attention(model: ProbedModel) -> MultiHeadAttention:
    return attention_at(model, model.sites()[0])


def sharing(model: ProbedModel, ids: Tensor) -> float:
    """Mean cosine between a token's vector as a source and as a target."""
    sides = (embedding.token.weight[ids] for embedding in embeddings_of(model))
    return nn.functional.cosine_similarity(*sides, dim=-1).mean().item()


def first_wave(model: ProbedModel, length: int) -> list[float]:
    """The first number of each positional vector."""
    return first_embedding(model).position(length)[:, 0].tolist()


def nothing_to_see(length: int) -> dict[str, float]:
    """The weight on each of `length` keys in a row that may attend to none of them."""
    scores, mask = torch.zeros(length), torch.zeros(length, dtype=torch.bool)
    softmax = {
        "paper": MaskedSoftmax(),
        "annotated": FilledSoftmax(-1e9),
        "hyunwoongko": FilledSoftmax(-1e4),
    }
    return {name: part(scores, mask)[0].item() for name, part in softmax.items()}


def reach(model: ProbedModel, src: Tensor) -> float:
    """The largest change in the first head's weights when every token keeps only the first of
    `n_heads` slices of its vector. 0: the head never reads the rest."""
    attention, x = view(first_attention(model)), first_embedding(model)(src)
    only = torch.zeros_like(x)
    width = x.shape[-1] // attention.n_heads
    only[..., :width] = x[..., :width]
    weights = []
    for inputs in (x, only):
        with capture(attention) as outputs:
            attention(inputs, inputs, inputs)
        weights.append(outputs["softmax"][:, 0])
    return (weights[0] - weights[1]).abs().max().item()


def fourth_roots(model: ProbedModel, src: Tensor) -> float:
    """Queries and keys each divided by the fourth root of the head size, against scores divided
    once by its root: the largest difference of the first layer's weights."""
    attention, x = view(first_attention(model)), first_embedding(model)(src)
    with capture(attention) as outputs:
        attention(x, x, x)
    q, k = attention.split(attention.query(x)), attention.split(attention.key(x))
    once = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return (outputs["softmax"] - once).abs().max().item()


def biases(model: ProbedModel) -> int:
    """The number of bias parameters in all layers."""
    parts = [
        linear
        for part in model.modules()
        if isinstance(part, MultiHeadAttention | FeedForward)
        for linear in part.modules()
        if isinstance(linear, nn.Linear) and linear.bias is not None
    ]
    return sum(linear.bias.numel() for linear in parts)


def total_output(model: ProbedModel, src: Tensor, tgt: Tensor) -> float:
    """The sum of the exponentials of the generator's outputs, mean over rows: 1 if they are
    log-probabilities."""
    return model(*(src, tgt)[: len(model.sides())]).exp().sum(dim=-1).mean().item()


def dropout_noise(model: ProbedModel, src: Tensor, seed: int = 0) -> float:
    """How much dropout at SIZES' rate moves the first stack's output: the length of the change,
    relative to the output's."""
    noisy = view(model).train()
    with GENERATOR, unbroken(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = first_stack(noisy, src)
    quiet = first_stack(view(model), src)
    return ((first - quiet).norm() / quiet.norm()).item()


def padded_mean(model: ProbedModel, src: Tensor, padding: int) -> tuple[float, float]:
    """How much `padding` tokens behind the sentence, or as many as the model has room for, move a
    class's probability: with padding left out of attention and mean as here, and treated like words
    as in the notebook."""
    padding = min(padding, model.config.max_length - src.shape[1])
    longer = nn.functional.pad(src, (0, padding), value=model.config.pad_id)
    before = model(src).softmax(dim=-1)
    left_out = model(longer, *Masks().build(model, longer)).softmax(dim=-1)
    memory = first_stack(view(model), longer, Masks(src_padding=False))
    as_words = model.generator(memory.mean(dim=1, keepdim=True)).softmax(dim=-1)
    return tuple((after - before).abs().max().item() for after in (left_out, as_words))


def normalized_entropy(model: ProbedModel, src: Tensor) -> float:
    """Mean entropy of the rows of all heads of the first stack, as a share of the largest there
    can be: 1 attends to all keys alike."""
    model = view(model)
    kind, *_ = kinds_of(model.sites()).values()
    softmax = {site.layer: attention_at(model, site).softmax for site in kind}
    with outputs_of(softmax) as outputs:
        first_stack(model, src)
    weights = torch.cat(list(outputs.values()))
    entropy = torch.special.entr(weights).sum(dim=-1).mean().item()
    return entropy / math.log(src.shape[1]) if src.shape[1] > 1 else 1.0


def measure(models: dict[str, ProbedModel], src: Tensor, tgt: Tensor, padding: int = 8) -> dict:
    """Every difference on one sentence pair, by the names of the functions above; of those that
    belong to one member alone the number itself, of others preset → number."""

    def each(function, *arguments, of=models):
        return {name: function(models[name], *arguments) for name in of}

    length, pairs = src.shape[1], [name for name in models if len(models[name].sides()) > 1]
    return {
        "attentions": each(lambda model: len(model.sites())),
        "lengths": each(lengths, src),
        "norms": norms(first_embedding(models["paper"])(src)[0]),
        "word_to_position": each(word_to_position, src),
        "sharing": each(sharing, src[0], of=pairs),
        # sinusoids from k = 0, from k = 1, and a learned table before training
        "first_waves": each(first_wave, length, of=("paper", "vanilla", "bloem")),
        "nothing_to_see": nothing_to_see(length),
        "reach": each(reach, src),
        "fourth_roots": fourth_roots(models["bloem"], src),
        "biases": each(biases),
        "total_output": each(total_output, src, tgt),
        "dropout_noise": each(dropout_noise, src),
        "padded_mean": padded_mean(models["bloem"], src, padding),
        "normalized_entropy": each(normalized_entropy, src),
    }


def look_up(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A soft dictionary: scores q·k, weights softmax(scores / √width), and the blended value.
    query: (width,); keys: (key, width); values: (key,)."""
    scores = keys @ query
    weights = (scores / math.sqrt(query.shape[0])).softmax(dim=-1)
    return scores, weights, weights @ values
