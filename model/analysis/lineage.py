"""From the paper to Llama: one part swapped at a time, and what each swap changes on one sentence.

Each model is a view of the previous one with some parts swapped. All other modules and weights are
shared, so any difference is due to the swap. After `pre_norm` it is GPT-2, after the last swap a
Llama (see presets.FAMILIES). All read one text, ids (1, length).
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor, nn

from headlight.model.analysis.head_metrics import total_variation
from headlight.model.card import parameter_count
from headlight.model.families.parts import (
    ActivatedFeedForward,
    GatedFeedForward,
    GroupedQueryAttention,
    NoPositions,
    RMSNorm,
)
from headlight.model.families.rotary import Rotary, RotaryScores
from headlight.model.masks import Masks
from headlight.model.presets import GENERATOR, build
from headlight.model.probing.capture import inputs_of, outputs_of, view
from headlight.model.probing.sites import attention_at, embedding_of, layers_of, predicted_side
from headlight.model.sites import LayerList, ProbedModel, Site
from headlight.model.transformer import EncoderLayer, FeedForward, MultiHeadAttention, Transformer
from headlight.model.variants import (
    DecoderOnly,
    DecoderOnlyConfig,
    LearnedPositions,
    PreNormEncoderLayer,
)

Part = TypeVar("Part", bound=nn.Module)
PAPER_MODEL = "paper"  # the model of the first swap
SEED = 0  # of all numbers that are drawn
SIZES = dict(d_model=128, n_heads=8, d_ff=512, n_encoder_layers=6, n_decoder_layers=6, dropout=0.0)
N_KEY_HEADS = 2
SHIFTS = 16  # positions by which a sentence is moved, at most


# Swapped parts


def decoder_alone(model: Transformer) -> DecoderOnly:
    sizes = {field.name: getattr(model.config, field.name) for field in fields(model.config)}
    alone = DecoderOnly(DecoderOnlyConfig(**sizes | {"n_encoder_layers": 0}))
    alone.tgt_embedding, alone.generator = model.tgt_embedding, model.generator
    for layer, old in zip(alone.decoder.layers, model.decoder.layers, strict=True):
        layer.self_attn, layer.norm1 = old.self_attn, old.norm1
        layer.feed_forward, layer.norm2 = old.feed_forward, old.norm3
    return alone


def learned_positions(model: DecoderOnly) -> DecoderOnly:
    """Initialised like the word embeddings, see reset_parameters."""
    config = model.config
    positions = LearnedPositions(config.max_length, config.d_model)
    nn.init.normal_(positions.weight, std=config.d_model**-0.5)
    model.tgt_embedding.position = positions
    return model


def unscaled(model: DecoderOnly) -> DecoderOnly:
    token = model.tgt_embedding.token
    sizes = token.num_embeddings, token.embedding_dim
    model.tgt_embedding.token = _keeping(nn.Embedding(*sizes), token)
    return model


def gelu(model: DecoderOnly) -> DecoderOnly:
    sizes = model.config.d_model, model.config.d_ff, "gelu_tanh"
    return _swapped(model, FeedForward, lambda old: _keeping(ActivatedFeedForward(*sizes), old))


def pre_norm(model: DecoderOnly) -> DecoderOnly:
    layers = [PreNormEncoderLayer(model.config) for _ in model.decoder.layers]
    for layer, old in zip(layers, model.decoder.layers, strict=True):
        for name, part in old.named_children():
            layer.set_submodule(name, part)
    model.decoder.layers = LayerList(layers)
    model.decoder.norm = nn.LayerNorm(model.config.d_model)
    return model


def rms_norm(model: DecoderOnly) -> DecoderOnly:
    width = model.config.d_model
    return _swapped(model, nn.LayerNorm, lambda old: _keeping(RMSNorm(width), old))


def no_biases(model: DecoderOnly) -> DecoderOnly:
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.register_parameter("bias", None)
    return model


def gated(model: DecoderOnly) -> DecoderOnly:
    """Three matrices in place of two, each a third narrower (Shazeer 2020, section 3)."""

    def make(old: nn.Module) -> nn.Module:
        new = GatedFeedForward(model.config.d_model, model.config.d_ff * 2 // 3)
        for weight in new.parameters():
            nn.init.xavier_uniform_(weight)
        return new

    return _swapped(model, FeedForward, make)


def rotary(model: DecoderOnly) -> DecoderOnly:
    model.tgt_embedding.position = NoPositions(model.config.d_model)
    for layer in model.decoder.layers:
        layer.self_attn.scores = RotaryScores(Rotary())
    return model


def grouped(model: DecoderOnly, n_key_heads: int = N_KEY_HEADS) -> DecoderOnly:
    """A group's key and value head is the mean of those that its heads had (Ainslie et al. 2023,
    section 2.1)."""
    d_model, n_heads = model.config.d_model, model.config.n_heads

    def make(old: MultiHeadAttention) -> nn.Module:
        sizes = d_model, n_heads, n_key_heads, model.config.d_head
        new = _keeping(GroupedQueryAttention(*sizes, old.scores), old)
        for name, linear in (("key", old.key), ("value", old.value)):
            groups = linear.weight.unflatten(0, (n_key_heads, -1, sizes[3]))
            new.get_submodule(name).weight = nn.Parameter(groups.mean(dim=1).flatten(0, 1))
        return new

    return _swapped(model, MultiHeadAttention, make)


def _swapped(model: DecoderOnly, kind: type, make: Callable[..., nn.Module]) -> DecoderOnly:
    """`model` with each part of type `kind` replaced by `make(part)`."""
    for name, part in list(model.named_modules()):
        if isinstance(part, kind):
            model.set_submodule(name, make(part))
    return model


def _keeping(new: Part, old: nn.Module) -> Part:
    """`new` with the parameters of `old` wherever name and shape agree."""
    for name, parameter in old.named_parameters():
        owner, _, leaf = name.rpartition(".")
        module = new.get_submodule(owner)
        there = getattr(module, leaf, None)
        if there is not None and there.shape == parameter.shape:
            setattr(module, leaf, parameter)
    return new


# Effects of each swap


@dataclass(frozen=True)
class Curves:
    """Lines over the same x values, and the numbers that a sentence quotes."""

    across: str
    places: Sequence[str]
    up: str
    lines: Mapping[str, Sequence[float]]
    numbers: Mapping[str, float | int | str]


def read_ahead(
    before: Transformer, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]
) -> Curves:
    """How far every token's last vector moves, relative to its length, when another token stands
    in the middle: of the paper's encoder and of the decoder alone."""
    middle = ids.shape[1] // 2
    other = ids.clone()
    other[0, middle] = (ids[0, middle] + 1) % before.config.vocab_size
    moved = {}
    for name, last in (
        ("the paper's encoder", before.encode),
        ("the decoder-only model", lambda text: after.hidden(text, *Masks().build(after, text))),
    ):
        one, two = last(ids)[0], last(other)[0]
        moved[name] = ((two - one).norm(dim=-1) / one.norm(dim=-1)).tolist()
    encoder, decoder = (max(line[:middle], default=0.0) for line in moved.values())
    return Curves(
        "token", tokens, "movement", moved,
        dict(token=middle + 1, encoder=encoder, decoder=decoder),
    )  # fmt: skip


def near_positions(
    before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]
) -> Curves:
    """Cosine similarity of each position's vector with that of the first."""
    lines = {}
    for name, model in (("sinusoids", before), ("learned, untrained", after)):
        table = model.tgt_embedding.position(ids.shape[1])
        lines[name] = torch.cosine_similarity(table, table[:1]).tolist()
    # A single token has no neighbour.
    sinusoids, learned = (line[min(1, len(line) - 1)] for line in lines.values())
    added = parameter_count(after.tgt_embedding.position)
    rows = added // after.config.d_model
    numbers = dict(sinusoids=sinusoids, learned=learned, rows=rows, added=added)
    return Curves("position", _counted(ids.shape[1]), "cosine similarity", lines, numbers)


def word_lengths(
    before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]
) -> Curves:
    """L2 norms of each token's embedding, and of its position's."""
    lines = {
        "× √d_model": before.tgt_embedding.token(ids)[0],
        "unscaled": after.tgt_embedding.token(ids)[0],
        "its position": after.tgt_embedding.position(ids.shape[1]),
    }
    lengths = {name: vectors.norm(dim=-1).tolist() for name, vectors in lines.items()}
    scaled, plain, position = (sum(line) / len(line) for line in lengths.values())
    numbers = dict(scaled=scaled, plain=plain, position=position)
    return Curves("token", tokens, "L2 norm", lengths, numbers)


def activations(
    before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]
) -> Curves:
    """The distribution of the outputs of layer 1's activation."""
    places = [i / 10 for i in range(-5, 16)]  # centres of the bins
    hidden = {}
    for name, model in (("ReLU", before), ("GELU", after)):
        linear2 = _first_layer(model).feed_forward.linear2
        with inputs_of({name: linear2}) as inputs:
            _read(model, ids)
        hidden[name] = inputs[name][0].flatten()
    shares = {
        name: (torch.histc(values, len(places), -0.55, 1.55) / len(values)).tolist()
        for name, values in hidden.items()
    }
    zeros = {name: (values == 0).float().mean().item() for name, values in hidden.items()}
    numbers = dict(relu=zeros["ReLU"], gelu=zeros["GELU"])
    return Curves("activation output", list(map(str, places)), "share", shares, numbers)


def lengths(before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]) -> Curves:
    """Mean L2 norm of the vectors as they enter layer 1 and after each layer."""
    lines = {}
    for name, model in (("norm after the sum", before), ("norm before", after)):
        side = predicted_side(model)
        modules = [embedding_of(model, side), *layers_of(model, side)]
        with outputs_of(dict(enumerate(modules))) as outputs:
            _read(model, ids)
        lines[name] = [outputs[i].norm(dim=-1).mean().item() for i in range(len(modules))]
    post, pre = lines.values()
    places = ["in", *(f"layer {i}" for i in range(1, len(post)))]
    numbers = dict(enters=pre[0], post=post[-1], pre=pre[-1])
    return Curves("after", places, "L2 norm", lines, numbers)


def means(before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]) -> Curves:
    """The mean of each token's numbers behind the first norm; and how far that norm's output moves
    when what enters is ten times as long."""
    normed = {}
    for name, model in (("LayerNorm", before), ("RMSNorm", after)):
        norm = _first_layer(model).norm1
        with inputs_of({name: norm}) as inputs:
            _read(model, ids)
        (x,) = inputs[name]
        normed[name] = norm(x)[0]
    lines = {name: values.mean(dim=-1).tolist() for name, values in normed.items()}
    scaled = (norm(10 * x)[0] - normed["RMSNorm"]).norm() / normed["RMSNorm"].norm()
    largest = {name: max(map(abs, line)) for name, line in lines.items()}
    numbers = dict(layer=largest["LayerNorm"], rms=largest["RMSNorm"], scaled=scaled.item())
    return Curves("token", tokens, "mean", lines, numbers)


def biases(before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]) -> Curves:
    """How far attention moves, layer by layer, without the biases of all queries, or of all keys.
    Biases start at zero; here they are drawn at random, as large as a projection's outputs."""
    randomized = view(before)
    sites = [attention_at(randomized, site) for site in randomized.sites()]
    with GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        for attention in sites:
            for projection in (attention.query, attention.key):
                projection.bias = nn.Parameter(torch.randn_like(projection.bias))
    weights, lines = _attention(randomized, ids), {}
    for name in ("query", "key"):
        without = view(randomized)
        for site in without.sites():
            attention_at(without, site).get_submodule(name).register_parameter("bias", None)
        lines[f"without the {name} biases"] = _moved(weights, _attention(without, ids))
    query, key = map(max, lines.values())
    fewer = parameter_count(before) - parameter_count(after)
    places = [f"layer {i + 1}" for i in range(len(sites))]
    return Curves("in", places, "weight moved", lines, dict(query=query, key=key, fewer=fewer))


def products(before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]) -> Curves:
    """The length of layer 1's feed-forward output as its input is scaled: L2 norms relative to that
    for the original input."""
    factors = (0.25, 0.5, 1.0, 2.0, 4.0)
    lines, sizes = {}, {}
    for name, model in (("GELU", before), ("SwiGLU", after)):
        feed_forward = _first_layer(model).feed_forward
        with inputs_of({name: feed_forward}) as inputs:
            _read(model, ids)
        (x,) = inputs[name]
        long = [feed_forward(factor * x).norm().item() for factor in factors]
        lines[name] = [value / long[factors.index(1.0)] for value in long]
        sizes[name] = parameter_count(feed_forward)
    double = factors.index(2.0)
    numbers = dict(
        gelu=lines["GELU"][double], swiglu=lines["SwiGLU"][double],
        gelu_size=sizes["GELU"], swiglu_size=sizes["SwiGLU"],
    )  # fmt: skip
    return Curves("input ×", [f"{factor:g}" for factor in factors], "output ×", lines, numbers)


def shifted_scores(
    before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]
) -> Curves:
    """The largest change of a score of layer 1 between the sentence's tokens when it stands so
    many positions later, behind copies of its first token. In layer 1 a query or a key depends on
    its own token and position alone."""
    length, limit = ids.shape[1], before.config.max_length
    shifts = range(max(1, min(SHIFTS, limit - length) + 1))
    lines = {}
    for name, model in (("learned positions", before), ("rotary positions", after)):
        layer, embedding = _first_layer(model), model.tgt_embedding
        scores = []
        for shift in shifts:
            x = layer.norm1(embedding(torch.cat([ids[:, :1].expand(-1, shift), ids], dim=1)))
            with outputs_of({"scores": layer.self_attn.scores}) as outputs:
                layer.self_attn(x, x, x)
            scores.append(outputs["scores"][..., shift:, shift:])
        lines[name] = [(moved - scores[0]).abs().max().item() for moved in scores]
    learned, turned = (line[-1] for line in lines.values())
    numbers = dict(shift=len(shifts) - 1, learned=learned, rotary=turned)
    return Curves("positions later", list(map(str, shifts)), "change of a score", lines, numbers)


def kept(before: DecoderOnly, after: DecoderOnly, ids: Tensor, tokens: Sequence[str]) -> Curves:
    """Bytes of keys and values of all layers, token by token, with fewer and fewer key heads."""
    lines, n_heads = {}, before.config.n_heads
    counts = [n for n in range(n_heads, 0, -1) if n_heads % n == 0]
    with GENERATOR, torch.random.fork_rng(devices=[]):  # new layers draw weights, then replaced
        models = [grouped(view(before), count) for count in counts]
    for n_key_heads, model in zip(counts, models, strict=True):
        each = cached_bytes(model, ids)
        name = f"{n_key_heads} key head{'s' if n_key_heads > 1 else ''}"
        lines[name] = [each * (i + 1) for i in range(ids.shape[1])]
    numbers = dict(
        heads=n_heads, groups=N_KEY_HEADS, tokens=ids.shape[1],
        before=cached_bytes(before, ids) * ids.shape[1],
        after=cached_bytes(after, ids) * ids.shape[1],
    )  # fmt: skip
    return Curves("after token", tokens, "bytes", lines, numbers)


def cached_bytes(model: ProbedModel, ids: Tensor) -> int:
    """Keys and values of one token in all layers, as its projections give them."""
    sites = _own_sites(model)
    modules = {
        (site.layer, name): attention_at(model, site).get_submodule(name)
        for site in sites
        for name in ("key", "value")
    }
    with outputs_of(modules) as outputs:
        _read(model, ids[:, :1])
    return sum(output.nbytes for output in outputs.values())


def _own_sites(model: ProbedModel) -> list[Site]:
    """The sites of the decoder's self-attention."""
    return [site for site in model.sites() if site.kind == "decoder"]


def _first_layer(model: DecoderOnly) -> EncoderLayer:
    return next(iter(model.decoder.layers))


def _read(model: ProbedModel, ids: Tensor) -> None:
    """A pass over the text; the paper's model reads it as source and target."""
    texts = [ids] * len(model.sides())
    model.hidden(*texts, *Masks().build(model, *texts))


def _attention(model: ProbedModel, ids: Tensor) -> Tensor:
    """The decoder's weights, (layers, heads, query, key)."""
    softmax = {site.layer: attention_at(model, site).softmax for site in _own_sites(model)}
    with outputs_of(softmax) as outputs:
        _read(model, ids)
    return torch.cat(list(outputs.values()))


def _moved(before: Tensor, after: Tensor) -> list[float]:
    """Share of a row's weight that lies elsewhere, mean over rows and heads: (layer,)."""
    return total_variation(after.cpu().numpy(), before.cpu().numpy()).mean(axis=1).tolist()


# The line


@dataclass(frozen=True)
class Swap:
    """One part replaced by another.

    year, source   of the paper that brought it into Transformers, or made it usual there
    was, becomes   both in words; part: its class in our code
    why            the reason that its authors or their successors give
    put            makes the model behind it of a view of the model before it
    measure        what it changes; title: of that figure; finding: its numbers in a sentence
    """

    year: int
    source: str
    was: str
    becomes: str
    why: str
    part: str
    put: Callable[..., ProbedModel]
    measure: Callable[..., Curves]  # of both models, ids and tokens
    title: str
    finding: str


LINE = {
    "decoder only": Swap(
        2018,
        "Liu et al. 2018, Radford et al. 2018",
        "encoder and decoder",
        "one stack of decoder layers without cross-attention",
        "Any text can then train the model: each token predicts the next, and no translations are "
        "needed.",
        "headlight.model.variants.DecoderOnly",
        decoder_alone,
        read_ahead,
        "How far each final vector moves when the middle token changes",
        "Replace token {token}. In the paper's encoder, vectors before it move by up to "
        "{encoder:.1%} of their length. In the decoder-only model they move by "
        "{decoder:.1%}, because it never reads ahead. So one pass can predict at every "
        "position at once.",
    ),
    "learned positions": Swap(
        2018,
        "Radford et al. 2018, Devlin et al. 2018",
        "sinusoids",
        "one learned vector per position",
        "Training, not a formula, then decides what a position means. The paper had found both "
        "equally good.",
        "headlight.model.variants.LearnedPositions",
        learned_positions,
        near_positions,
        "Similarity of the other positions to the first",
        "Positions 1 and 2 have a cosine similarity of {sinusoids:.2f} as sinusoids and "
        "{learned:.2f} as learned vectors before training. The model must learn that they "
        "are neighbours. It has {added:,} more parameters, and no vector for positions beyond "
        "{rows:,}.",
    ),
    "unscaled": Swap(
        2018,
        "Radford et al. 2018, Devlin et al. 2018",
        "token embeddings × √d_model",
        "unscaled token embeddings",
        "Learned position vectors start as short as word vectors, so words need no factor to stand "
        "out.",
        "torch.nn.Embedding",
        unscaled,
        word_lengths,
        "Length of word vectors and position vectors",
        "Same weights: a word's vector has length {scaled:.1f} with the factor √d_model and "
        "{plain:.1f} without it; its position's has {position:.1f}. Without the factor, "
        "layer 1 gets about as much position as word.",
    ),
    "GELU": Swap(
        2018,
        "Hendrycks and Gimpel 2016, Radford et al. 2018",
        "ReLU",
        "GELU",
        "Where ReLU gives zero, it passes no gradient. GELU is smooth, and made fewer errors in "
        "its authors' tests.",
        "headlight.model.families.parts.ActivatedFeedForward",
        gelu,
        activations,
        "Output of the activation in layer 1",
        "Exactly zero, so that no gradient passes: {relu:.1%} of the hidden numbers with "
        "ReLU, {gelu:.1%} with GELU. GELU makes negative numbers small instead.",
    ),
    "pre-norm": Swap(
        2019,
        "Radford et al. 2019, Xiong et al. 2020",
        "norm after each sum",
        "norm before each sublayer, plus one after the last",
        "Norms on the residual path make deep models hard to train. With that path free, gradients "
        "reach every layer.",
        "headlight.model.variants.PreNormEncoderLayer",
        pre_norm,
        lengths,
        "Length of a token's vector from layer to layer",
        "A vector enters layer 1 with length {enters:.1f}. With norms after the sums it "
        "leaves the last layer with {post:.1f}, √d_model, whatever was added. With norms "
        "before the sublayers it leaves with {pre:.1f}: nothing rescales it on the way.",
    ),
    "RMSNorm": Swap(
        2019,
        "Zhang and Sennrich 2019, Touvron et al. 2023",
        "LayerNorm",
        "RMSNorm",
        "It works as well without subtracting the mean, and takes less time.",
        "headlight.model.families.parts.RMSNorm",
        rms_norm,
        means,
        "Mean of each token's vector after the first norm",
        "LayerNorm subtracts each vector's mean (up to {layer:.1e} remains); RMSNorm keeps "
        "it (up to {rms:.3f}). Both discard the length: if the input is ten times as long, "
        "RMSNorm's output moves by {scaled:.1e} of its length.",
    ),
    "no biases": Swap(
        2019,
        "Raffel et al. 2019 (in their code), Chowdhery et al. 2022, Touvron et al. 2023",
        "layers with biases",
        "projections and feed-forwards without biases",
        "Biases add little beside large matrices. PaLM found large models more stable to train "
        "without them.",
        "torch.nn.Linear(…, bias=False)",
        no_biases,
        biases,
        "Random biases removed: how far attention moves",
        "{fewer:,} fewer parameters. Biases start at zero; here they are random. A key bias "
        "adds one number to all scores of a row, which the softmax ignores. Without key biases "
        "the weights move by {key:.1e}, without query biases by {query:.1%}.",
    ),
    "SwiGLU": Swap(
        2020,
        "Shazeer 2020, Touvron et al. 2023",
        "GELU between two matrices",
        "SwiGLU: two projections multiplied, then a third matrix",
        "With as many parameters it predicted text better than ReLU and GELU. Its author offers no "
        "explanation.",
        "headlight.model.families.parts.GatedFeedForward",
        gated,
        products,
        "Response of the feed-forward to a longer input",
        "Twice the input makes the output {gelu:.2f} times as long with GELU and "
        "{swiglu:.2f} times with SwiGLU, which multiplies two projections. With three "
        "matrices, each a third narrower, {gelu_size:,} parameters per feed-forward become "
        "{swiglu_size:,}.",
    ),
    "rotary": Swap(
        2021,
        "Su et al. 2021, Touvron et al. 2023",
        "positions added to the embeddings",
        "queries and keys rotated by their positions",
        "Often only the distance between two tokens matters. Rotation makes scores depend on just "
        "that.",
        "headlight.model.families.rotary.RotaryScores",
        rotary,
        shifted_scores,
        "The same sentence at later positions: how far a score moves",
        "Shifted by {shift} positions, a score of layer 1 between two tokens changes by up to "
        "{learned:.2f} with learned positions and {rotary:.1e} with rotary ones. "
        "With rotary positions only distance counts, and no table is needed.",
    ),
    "groups": Swap(
        2023,
        "Ainslie et al. 2023, Touvron et al. 2023",
        "one key and value head per query head",
        "groups of query heads that share one",
        "A model that writes stores the keys and values of all tokens. Fewer heads of them take "
        "less memory, at almost the same quality.",
        "headlight.model.families.parts.GroupedQueryAttention",
        grouped,
        kept,
        "Keys and values to store while writing a text",
        "{heads} query heads share {groups} key and value heads: storing your {tokens} "
        "tokens takes {after:,} bytes instead of {before:,}. Each shared head starts as "
        "the mean of those it replaces.",
    ),
}


@dataclass(frozen=True)
class SwapEffect:
    """The effect of a swap on a text: parameters, and bytes of keys and values per token, each
    before and after; the share of weight that moved in the decoder's attention, mean over rows and
    heads, for each layer; and the swap's own figure."""

    parameters: tuple[int, int]
    cached: tuple[int, int]
    moved: list[float]
    curves: Curves

    @property
    def nbytes(self) -> int:
        """The size in bytes, roughly."""
        return 8 * sum(map(len, self.curves.lines.values())) + 1000


def members(vocab_size: int, max_length: int, seed: int = SEED) -> dict[str, ProbedModel]:
    """The paper's model, then the model behind each swap of LINE, in eval mode, with random weights
    from `seed`. Draws from PyTorch's one generator: nobody else may meanwhile."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = dict(vocab_size=vocab_size, max_length=max_length) | SIZES
        models = {PAPER_MODEL: build("paper", **sizes).eval().requires_grad_(False)}
        for name, swap in LINE.items():
            before = list(models.values())[-1]
            models[name] = swap.put(view(before)).eval().requires_grad_(False)
    return models


@torch.no_grad()
def effects(
    models: Mapping[str, ProbedModel], ids: Tensor, tokens: Sequence[str]
) -> dict[str, SwapEffect]:
    """What each swap changes on a text of `tokens`."""
    views = {name: view(model) for name, model in models.items()}
    weights, measured = _attention(views[PAPER_MODEL], ids), {}
    for (_, before), (name, after) in itertools.pairwise(views.items()):
        earlier, curves = weights, LINE[name].measure(before, after, ids, tokens)
        parameters = parameter_count(before), parameter_count(after)
        cached = cached_bytes(before, ids), cached_bytes(after, ids)
        weights = _attention(after, ids)  # of two models at a time, to save memory for long texts
        measured[name] = SwapEffect(parameters, cached, _moved(earlier, weights), curves)
    return measured


def _counted(length: int) -> list[str]:
    return [str(i + 1) for i in range(length)]
