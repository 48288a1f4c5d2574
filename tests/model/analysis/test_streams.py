"""Scores as sums, against a computation by hand: hooks and einsum of the test's own, norms by their
definition, rotation by complex numbers."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import nn

from headlight.model import presets
from headlight.model.analysis.streams import Parts, RecordedPass, Words
from headlight.model.analysis.why import pairs_of
from headlight.model.probing.changes import parse
from headlight.model.probing.run import Run
from headlight.model.probing.sites import attention_at
from headlight.model.probing.trace import ids_of, read_of
from headlight.model.tokenizer import CannotRead, Encoding
from tests.model.common import here, in_short, load

SIZES = dict(vocab_size=53, d_model=24, n_heads=4, d_ff=40, max_length=40)
LLAMAS = {
    "llama": {},
    "llama grouped": dict(n_key_heads=2, query_bias=True, output_bias=True),
    "llama normed": dict(n_key_heads=2, normed_heads=True, head_size=8),
}
RANDOM = [*presets.PRESETS, "gpt2", "bert", "marian", *LLAMAS]
BY_HAND = ["paper", "pre_norm", "decoder_only", "gpt2", "bert", "llama", "llama grouped"]
SHIPPED = {
    "en-fr": "She has never seen the red car of my sister.",
    "en-de": "Did you see the man who stole my bike?",
    "english": "The little girl in the red dress was playing with her dog.",
    "induction": "h e a d l i g t h e a d l i g t",
}
WIDE, NARROW = torch.float64, torch.float32
SHORT = ["paper", "bert", "llama grouped"]


@lru_cache
def made(name, dtype=WIDE):
    """A model and a run; norms and biases too are random."""
    if name in SHIPPED:
        checkpoint = load(name)
        return checkpoint.model.to(dtype), checkpoint.run(SHIPPED[name])
    preset, more = name.partition(" ")[0], LLAMAS.get(name, {})
    torch.manual_seed(0)
    fields = presets.preset_of(preset).config.__dataclass_fields__
    depths = {"n_encoder_layers": 2, "n_decoder_layers": 3}
    sizes = SIZES | {k: v for k, v in depths.items() if k in fields and fields[k].default} | more
    model = presets.build(preset, **{k: v for k, v in sizes.items() if k in fields}).eval()
    for of, parameter in model.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in of and "weight" in of), std=0.2)
    texts = []
    for length in (6, 5)[: len(model.sides())]:
        ids = tuple(torch.randint(3, 53, (length,)).tolist())
        texts.append(Encoding(ids, tuple(map(str, ids)), tuple((i, i + 1) for i in range(length))))
    return here(model.requires_grad_(False).to(dtype)), Run(tuple(texts))


def recorded_by_hand(model, run):
    """Name → (input, output) of every module."""
    seen, hooks = {}, []
    for name, module in model.named_modules():
        hooks.append(
            module.register_forward_hook(
                lambda m, i, o, name=name: seen.__setitem__(name, (i[0] if i else None, o))
            )
        )
    ids = ids_of(model, read_of(model, run))
    with torch.no_grad():
        model(*ids, *run.masks.build(model, *ids))
    for hook in hooks:
        hook.remove()
    return seen


def linear_norm(norm, x):
    """A norm with its scale held, by its definition: a function, and its shift."""
    x, weight, bias = x.double(), norm.weight.double(), getattr(norm, "bias", None)
    shift = torch.zeros_like(weight) if bias is None else bias.double()
    if type(norm).__name__ == "RMSNorm":
        scale = 1 / ((x**2).mean(-1, keepdim=True) + norm.eps).sqrt()
        return lambda v: v * scale * weight, shift
    scale = 1 / (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    return lambda v: (v - v.mean(-1, keepdim=True)) * scale * weight, shift


def stream_by_hand(model, seen, side, until):
    """What the sublayer `until` reads, or what leaves the last norm: part → vectors, and biases."""
    embedding, at = model.get_submodule(side.embedding), side.embedding
    parts = {"token": seen[f"{at}.token"][1][0].double(), "position": seen[f"{at}.position"][1]}
    parts["position"] = parts["position"].reshape(parts["token"].shape).double()
    bias = torch.zeros_like(parts["token"])

    def normed(norm, x):
        through, shift = linear_norm(norm, x)
        return {name: through(part) for name, part in parts.items()}, through(bias) + shift

    if hasattr(embedding, "norm"):
        x = seen[f"{at}.norm"][0][0]
        bias = x.double() - sum(parts.values())  # of segments
        parts, bias = normed(embedding.norm, x)
    for layer_name in side.layers:
        layer = model.get_submodule(layer_name)
        for sub, norm_name in layer.sublayers.items():
            at, norm = f"{layer_name}.{sub}", layer.get_submodule(norm_name)
            x, module = seen[f"{layer_name}.{norm_name}"][0][0], layer.get_submodule(sub)
            if at == until:
                return normed(norm, x) if layer.norm_first else (parts, bias)
            if "attn" in sub:
                weights, value = (seen[f"{at}.{of}"][1][0].double() for of in ("softmax", "value"))
                groups = module.n_key_heads
                value = value.unflatten(-1, (groups, -1))
                value = value.repeat_interleave(len(weights) // groups, 1)
                matrix = module.output.weight.double().unflatten(1, (len(weights), -1))
                wrote = torch.einsum("hqk,khd,mhd->hqm", weights, value, matrix)
                parts |= {f"{at}.{h}": of_head for h, of_head in enumerate(wrote)}
                if module.output.bias is not None:
                    bias = bias + module.output.bias.double()
            else:
                parts[at] = seen[at][1][0].double()
            if not layer.norm_first:
                parts, bias = normed(norm, x)
    norm = model.get_submodule(side.norm)
    return (parts, bias) if isinstance(norm, nn.Identity) else normed(norm, seen[side.norm][0][0])


def pairs_by_hand(model, run, site, head):
    """(term, position, d_head) of queries, divided, and of keys, both turned."""
    seen, sides, found = recorded_by_hand(model, run), {s.name: s for s in model.sides()}, []
    attention, group = attention_at(model, site), head * site.n_key_heads // site.n_heads
    own = site.name if site.key_side == site.query_side else None
    for which, side, at, count, index in (
        ("query", site.query_side, site.name, site.n_heads, head),
        ("key", site.key_side, own, site.n_key_heads, group),
    ):
        parts, bias = stream_by_hand(model, seen, sides[side], at)
        projection = getattr(attention, which)
        width = projection.out_features // count
        rows = slice(index * width, (index + 1) * width)
        vectors = torch.stack([*parts.values(), bias]) @ projection.weight.double()[rows].T
        if projection.bias is not None:
            vectors[-1] += projection.bias.double()[rows]
        if hasattr(attention.scores, "query_rotation"):
            half = width // 2
            frequencies = 10000.0 ** (-torch.arange(half).double() / half)
            angle = (torch.arange(vectors.shape[1])[:, None] * frequencies).to(vectors)
            turn = torch.polar(torch.ones_like(angle), angle)
            turned = torch.complex(vectors[..., :half], vectors[..., half:]) * turn
            vectors = torch.cat([turned.real, turned.imag], -1)
        found.append(vectors)
    return found[0] * found[0].shape[-1] ** -0.5, found[1]


def scores_of(recorded, site, head, by):
    """As the sum of all pairs, (query, key), and the size of the largest pair."""
    _, q, _, k = pairs_of(recorded, site, head, by)
    pairs = torch.einsum("aqd,bkd->abqk", q.double(), k.double())
    return pairs.sum(dim=(0, 1)), max(1.0, float(pairs.abs().max()))


@pytest.mark.parametrize("dtype", [NARROW, WIDE])
@pytest.mark.parametrize("by", [Parts, Words])
@pytest.mark.parametrize("name", in_short([*RANDOM, *SHIPPED], *SHORT, "llama normed", "bloem"))
def test_pairs_add_up_to_the_score(name, by, dtype):
    model, run = made(name, dtype)
    recorded = RecordedPass(model, run)
    tolerance = 1e-4 if dtype == NARROW else 1e-10
    for site in model.sites():
        for head in (0, site.n_heads - 1):
            sums, largest = scores_of(recorded, site, head, by)
            expected = recorded.outputs[site.name, "scores"][0, head]
            assert (sums - expected).abs().max() <= tolerance * largest, site.name


@pytest.mark.parametrize("name", in_short([*BY_HAND, *SHIPPED], *SHORT))
def test_pairs_are_those_of_a_computation_by_hand(name):
    model, run = made(name)
    recorded = RecordedPass(model, run)
    for site in model.sites():
        for head in (0, site.n_heads - 1):
            asks, q, offers, k = pairs_of(recorded, site, head, Parts)
            expected = pairs_by_hand(model, run, site, head)
            for found, by_hand, names in zip((q, k), expected, (asks, offers), strict=True):
                assert found.shape == by_hand.shape and len(names) == len(found)
                assert (found - by_hand).abs().max() <= 1e-10 * max(1, by_hand.abs().max())


def test_a_word_is_what_it_brings_where_nothing_mixes_words():
    """Layer 1 reads the embedding: of a query there its own word, position and biases alone."""
    model, run = made("pre_norm")
    site = model.sites()[0]
    names, q, _, _ = pairs_of(RecordedPass(model, run), site, 1, Words)
    of_token = [i for i, one in enumerate(names) if one.side == site.query_side]
    own = q[of_token].norm(dim=-1)
    assert (own - own.diagonal().diag()).abs().max() < 1e-12 and own.diagonal().min() > 0


def test_positions_that_are_not_added_bring_nothing():
    model, run = made("paper")
    run = Run(run.texts, changes=parse("source=positions:none; target=positions:none"))
    for site in model.sites():
        names, q, _, _ = pairs_of(RecordedPass(model, run), site, 1, Words)
        assert {one.what for one, of in zip(names, q, strict=True) if of.any()} == {
            "token",
            "biases",
        }


@pytest.mark.parametrize(
    "line",
    in_short(
        ["decoder.1.2=off", "cross.1=temperature:2.0; encoder=hide:2", "encoder.2=uniform",
         "source=positions:none", "decoder_feed_forward.1=skip", "encoder.1=skip"],
        "cross.1=temperature:2.0; encoder=hide:2",
    ),
)  # fmt: skip
def test_under_changes(line):
    model, run = made("en-fr", NARROW)
    recorded = RecordedPass(model, Run(run.texts, changes=parse(line)))
    by = Parts if "off" in line else Words
    for site in model.sites()[::3]:
        sums, largest = scores_of(recorded, site, 1, by)
        expected = recorded.outputs[site.name, "scores"][0, 1].double()
        assert (sums - expected).abs().max() <= 1e-4 * largest


@pytest.mark.parametrize("act", in_short([torch.relu, torch.tanh], torch.tanh))
def test_a_feed_forward_of_ones_own(act):
    """The same computation is shared out as ours is; another is refused."""

    def feed_forward(x, w1, b1, w2, b2):
        return act(x @ w1.T + b1) @ w2.T + b2

    en_fr, cell = load("en-fr"), "cross.1.1=3>2"
    run, own = en_fr.run("A dog runs."), en_fr.with_parts(feed_forward=feed_forward)
    if act is torch.tanh:
        with pytest.raises(CannotRead, match="are no sum"):
            own.why(run, cell)
    else:
        assert np.abs(own.why(run, cell).pairs - en_fr.why(run, cell).pairs).max() < 1e-4
