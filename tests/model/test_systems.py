"""Each system against a reading of its formulas in plain tensor operations."""

import math

import pytest
import torch
from torch import nn

from headlight.model import presets
from headlight.model.card import parameter_count
from headlight.model.masks import Masks
from headlight.model.presets import build
from headlight.model.probing.capture import capture
from headlight.model.variants import KeyValueAttention
from tests.devices import here, within
from tests.model.common import max_difference, random_ids

SYSTEMS = {
    "annotated": dict(tgt_vocab_size=31),
    "hyunwoongko": dict(tgt_vocab_size=31),
    "vanilla": dict(scale=100.0),
    "van_dijck": dict(hidden_size=5),
}
HIDDEN = {"annotated": -1e9, "hyunwoongko": -1e4, "vanilla": -math.inf, "van_dijck": -1e9}  # scores
SIZES = dict(vocab_size=53, d_model=24, n_heads=4, d_ff=40, max_length=40)
DEPTHS = dict(n_encoder_layers=2, n_decoder_layers=3)
SRC, TGT = random_ids(7, 5), random_ids(6, 4, vocab_size=31)


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)


def norm(system, x, weights, name):
    gain, shift = weights[f"{name}.weight"], weights.get(f"{name}.bias", 0)
    centred = x - x.mean(-1, keepdim=True)
    size = x.shape[-1]
    biased, unbiased = ((centred**2).sum(-1, keepdim=True) / n for n in (size, size - 1))
    root = {
        "annotated": unbiased.sqrt() + 1e-6,
        "hyunwoongko": (biased + 1e-12).sqrt(),
        "vanilla": (unbiased + 1e-5).sqrt(),
        "van_dijck": (biased + 1e-5).sqrt(),
    }[system]
    return gain * centred / root + shift


def attention(system, x, y, allowed, weights, name, seen):
    """Head by head. x asks, y is looked at; both (batch, length, d_model)."""
    n_heads, width = SIZES["n_heads"], SIZES["d_model"] // SIZES["n_heads"]
    heads, found = [], []
    for h in range(n_heads):
        own = slice(h * width, (h + 1) * width)
        q, k, v = (
            linear(z[..., own], weights, f"{name}.{part}.heads.{h}")
            if system == "van_dijck" else linear(z, weights, f"{name}.{part}")[..., own]
            for part, z in (("query", x), ("key", y), ("value", y))
        )  # fmt: skip
        scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
        scores = torch.where(allowed, scores, here(torch.tensor(HIDDEN[system])))
        shares = scores.exp() / scores.exp().sum(-1, keepdim=True)
        found.append(shares)
        heads.append(shares @ v)
    seen[f"{name}.softmax"] = torch.stack(found, dim=1)
    return linear(torch.cat(heads, dim=-1), weights, f"{name}.output")


def positions(system, length, d_model, scale):
    table = here(torch.zeros(length, d_model))
    for place in range(length):
        for i in range(d_model):
            k = i // 2 + (system == "vanilla")
            angle = place * scale ** (-2 * k / d_model)
            table[place, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return table


def by_hand(system, weights, src, tgt, scale=10000.0):
    """Output of the whole model, and the weights of every head by the attention's name."""
    seen = {}
    pre_norm = system == "annotated"

    def enter(ids, side):
        factor = math.sqrt(SIZES["d_model"]) if system in ("annotated", "vanilla") else 1
        found = weights[f"{side}_embedding.token.weight"][ids] * factor
        return found + positions(system, ids.shape[1], SIZES["d_model"], scale)

    def sublayer(x, name, part):
        if pre_norm:
            return x + part(norm(system, x, weights, name))
        return norm(system, x + part(x), weights, name)

    def feed_forward(name):
        return lambda z: linear(
            linear(z, weights, f"{name}.linear1").clamp(min=0), weights, f"{name}.linear2"
        )

    def attend(name, allowed, memory=None):
        def part(z):
            return attention(
                system, z, z if memory is None else memory, allowed, weights, name, seen
            )

        return part

    src_may = (src != 0)[:, None, :]
    places = here(torch.arange(tgt.shape[1]))
    tgt_may = (tgt != 0)[:, None, :] & (places <= places[:, None])
    x = enter(src, "src")
    for i in range(DEPTHS["n_encoder_layers"]):
        name = f"encoder.layers.{i}"
        x = sublayer(x, f"{name}.norm1", attend(f"{name}.self_attn", src_may))
        x = sublayer(x, f"{name}.norm2", feed_forward(f"{name}.feed_forward"))
    memory = norm(system, x, weights, "encoder.norm") if pre_norm else x
    y = enter(tgt, "tgt")
    for i in range(DEPTHS["n_decoder_layers"]):
        name = f"decoder.layers.{i}"
        y = sublayer(y, f"{name}.norm1", attend(f"{name}.self_attn", tgt_may))
        y = sublayer(y, f"{name}.norm2", attend(f"{name}.cross_attn", src_may, memory))
        y = sublayer(y, f"{name}.norm3", feed_forward(f"{name}.feed_forward"))
    y = norm(system, y, weights, "decoder.norm") if pre_norm else y
    logits = linear(y, weights, "generator")
    if system == "annotated":
        logits = logits - logits.exp().sum(-1, keepdim=True).log()
    return logits, seen


def made(system):
    """In eval mode, with random norms and biases: at their first values mistakes do not show."""
    torch.manual_seed(0)
    model = build(system, **SIZES, **DEPTHS, **SYSTEMS[system]).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in name and "weight" in name), std=0.2)
    return here(model)


def parameters(model):
    """By name, shared ones under all of theirs."""
    return dict(model.named_parameters(remove_duplicate=False))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_does_what_its_formulas_say(system):
    model = made(system)
    with capture(model) as seen:
        logits = model(SRC, TGT, *Masks().build(model, SRC, TGT))
    scale = SYSTEMS[system].get("scale", 10000.0)
    expected, weights = by_hand(system, parameters(model), SRC, TGT, scale)
    assert max_difference(logits, expected) <= within(1e-5) * max(1, expected.abs().max())
    assert seen.keys() == weights.keys() and len(seen) == 8
    for name in seen:
        assert max_difference(seen[name], weights[name]) <= within(1e-5), name


def test_hyunwoongko_has_the_published_number_of_parameters():
    sizes = presets.own_sizes("hyunwoongko")
    with torch.device("meta"):
        assert parameter_count(build("hyunwoongko", **sizes)) == 55_207_087
    assert presets.parameters("hyunwoongko") == 55_207_087


def test_key_and_value_may_have_widths_of_their_own():
    theirs = nn.MultiheadAttention(
        512, 8, kdim=256, vdim=256, bias=False, batch_first=True
    ).requires_grad_(False)
    theirs = here(theirs)
    ours = here(KeyValueAttention(512, 8, 256, 256).requires_grad_(False))
    for name in "qkv":
        ours_of = {"q": ours.query, "k": ours.key, "v": ours.value}[name]
        ours_of.weight.copy_(getattr(theirs, f"{name}_proj_weight"))
    ours.output.weight.copy_(theirs.out_proj.weight)
    query, key, value = (here(torch.randn(2, *size)) for size in ((5, 512), (7, 256), (7, 256)))
    with capture(ours) as seen:
        found = ours(query, key, value)
    expected, weights = theirs(query, key, value, average_attn_weights=False)
    assert max_difference(found, expected) <= within(1e-5)
    assert max_difference(seen["softmax"], weights) <= within(1e-5)


def test_dropout_stands_where_each_system_has_it():
    def rates(system):
        model = build(system, **SIZES, **DEPTHS, **SYSTEMS[system], dropout=0.3)
        layer = model.decoder.layers[0]
        return (
            model.tgt_embedding.dropout.p,
            layer.self_attn.dropout.p,
            layer.feed_forward.dropout.p if hasattr(layer.feed_forward, "dropout") else 0,
            layer.dropout.p,
        )

    assert {system: rates(system) for system in SYSTEMS} == {
        "annotated": (0.3, 0.3, 0.3, 0.3),
        "hyunwoongko": (0.3, 0, 0.3, 0.3),
        "vanilla": (0, 0, 0.3, 0),
        "van_dijck": (0, 0, 0, 0),
    }


def test_first_weights_of_van_dijck_are_pytorch_s_own():
    model = build("van_dijck", **SIZES, **DEPTHS)
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            bound = part.in_features**-0.5
            assert 0.8 * bound < part.weight.abs().max() <= bound, name
            assert 0 < part.bias.abs().max() <= bound, name
    assert model.src_embedding.token.weight.std().item() == pytest.approx(1, abs=0.1)


def test_the_vector_of_padding_is_not_trained_in_hyunwoongko():
    model = made("hyunwoongko").requires_grad_(True)
    model(SRC, TGT).square().sum().backward()
    for embedding in (model.src_embedding, model.tgt_embedding):
        gradient = embedding.token.weight.grad
        assert not gradient[0].any() and gradient.any()
    without = build("hyunwoongko", **SIZES, **DEPTHS, pad_id=-1)
    assert without.src_embedding.token.padding_idx is None


def test_the_parts_are_printed(capsys):
    """The table of all presets is on the page Commands."""
    presets.main(["van_dijck"])
    parts = capsys.readouterr().out
    assert (
        "encoder.layers.0.self_attn.query.heads.5.weight" in parts
        and "64 × 3" in parts
        and "its own sizes" in parts
    )
