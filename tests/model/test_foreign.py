"""Weights under the names that each system's own code gives them."""

import itertools

import pytest
import torch

from model.presets import build, load_foreign
from tests.model.common import max_difference, random_ids

D, H, FF, SRC, TGT, WIDE = 12, 3, 20, 30, 25, 7
ENCODER, DECODER = range(2), range(1)


def linear(name, outputs, inputs, bias=True):
    return {f"{name}.weight": (outputs, inputs)} | ({f"{name}.bias": (outputs,)} if bias else {})


def norm(name, gain="gamma", shift="beta"):
    return {f"{name}.{gain}": (D,)} | ({f"{name}.{shift}": (D,)} if shift else {})


def annotated():
    found = {"src_embed.0.lut.weight": (SRC, D), "tgt_embed.0.lut.weight": (TGT, D)}
    found |= {"src_embed.1.pe": (1, 50, D), "tgt_embed.1.pe": (1, 50, D)}
    found |= linear("generator.proj", TGT, D)
    for stack, layers, attentions in (
        ("encoder", ENCODER, ["self_attn"]),
        ("decoder", DECODER, ["self_attn", "src_attn"]),
    ):
        found |= norm(f"{stack}.norm", "a_2", "b_2")
        for i in layers:
            layer = f"{stack}.layers.{i}"
            for attention, part in itertools.product(attentions, range(4)):
                found |= linear(f"{layer}.{attention}.linears.{part}", D, D)
            found |= linear(f"{layer}.feed_forward.w_1", FF, D)
            found |= linear(f"{layer}.feed_forward.w_2", D, FF)
            for place in range(len(attentions) + 1):
                found |= norm(f"{layer}.sublayer.{place}.norm", "a_2", "b_2")
    return found


def hyunwoongko():
    found = {"encoder.emb.tok_emb.weight": (SRC, D), "decoder.emb.tok_emb.weight": (TGT, D)}
    found |= linear("decoder.linear", TGT, D)
    for stack, layers, attentions in (
        ("encoder", ENCODER, ["attention"]),
        ("decoder", DECODER, ["self_attention", "enc_dec_attention"]),
    ):
        for i in layers:
            layer = f"{stack}.layers.{i}"
            for attention, part in itertools.product(attentions, ["q", "k", "v", "concat"]):
                found |= linear(f"{layer}.{attention}.w_{part}", D, D)
            found |= linear(f"{layer}.ffn.linear1", FF, D) | linear(f"{layer}.ffn.linear2", D, FF)
            for place in range(1, len(attentions) + 2):
                found |= norm(f"{layer}.norm{place}")
    return found


def vanilla():
    tables = ("src_embedding.token", "tgt_embedding.token", "generator")
    found = {f"{name}.weight": (SRC, D) for name in tables}
    for stack, layers, attentions in (
        ("encoder", ENCODER, ["multihead_attention"]),
        ("decoder", DECODER, ["first_multihead_attention", "second_multihead_attention"]),
    ):
        for i in layers:
            layer = f"{stack}.layers.{i}"
            for attention, part in itertools.product(
                attentions, ["query", "key", "value", "output"]
            ):
                found |= linear(f"{layer}.{attention}.{part}_projector", D, D, bias=False)
            found |= linear(f"{layer}.feed_forward_network.layers.0", FF, D, bias=False)
            found |= linear(f"{layer}.feed_forward_network.layers.3", D, FF, bias=False)
            for place in ("first", "second", "third")[: len(attentions) + 1]:
                shift = "beta" if stack == "decoder" else None
                found |= norm(f"{layer}.{place}_layer_normalization", shift=shift)
    return found


def van_dijck():
    found = {"input_embedding.weight": (SRC, D), "target_embedding.weight": (SRC, D)}
    found |= {"positional_encoder.positional_encoding": (1, 3, D)} | linear("linear", SRC, D)
    for stack, layers, attentions in (
        ("encoder", ENCODER, [("heads", "mha_fc_out")]),
        ("decoder", DECODER, [(f"{m}_head", f"{m}_mha_fc_out") for m in ("masked", "unmasked")]),
    ):
        for i in layers:
            for heads, output in attentions:
                for head, part in itertools.product(range(H), "QKV"):
                    name = f"{stack}.{i}.{heads}.{head}.linear_transform_{part}"
                    found |= linear(name, WIDE, D // H)
                found |= linear(f"{stack}.{i}.{output}", D, H * WIDE)
            found |= linear(f"{stack}.{i}.feed_forward.0", FF, D)
            found |= linear(f"{stack}.{i}.feed_forward.2", D, FF)
            for place in range(1, len(attentions) + 2):
                found |= norm(f"{stack}.{i}.norm{place}", "weight", "bias")
    return found


def bloem():
    found = {"token_emb.weight": (SRC, D), "pos_emb.weight": (9, D)} | linear("toprobs", 4, D)
    for i in ENCODER:
        for part in ("tokeys", "toqueries", "tovalues"):
            found |= linear(f"tblocks.{i}.attention.{part}", H * D, D, bias=False)
        found |= linear(f"tblocks.{i}.attention.unifyheads", D, H * D)
        found |= linear(f"tblocks.{i}.ff.0", FF, D) | linear(f"tblocks.{i}.ff.2", D, FF)
        for place in (1, 2):
            found |= norm(f"tblocks.{i}.norm{place}", "weight", "bias")
    return found


SYSTEMS = [annotated, hyunwoongko, vanilla, van_dijck, bloem]
# A name of theirs → ours, one of each kind that could be mistaken for another.
PAIRS = {
    "annotated": {
        "encoder.layers.1.self_attn.linears.1.weight": "encoder.layers.1.self_attn.key.weight",
        "decoder.layers.0.src_attn.linears.3.bias": "decoder.layers.0.cross_attn.output.bias",
        "decoder.layers.0.sublayer.2.norm.a_2": "decoder.layers.0.norm3.weight",
        "decoder.norm.b_2": "decoder.norm.bias",
        "tgt_embed.0.lut.weight": "tgt_embedding.token.weight",
    },
    "hyunwoongko": {
        "decoder.layers.0.enc_dec_attention.w_k.weight": "decoder.layers.0.cross_attn.key.weight",
        "decoder.layers.0.self_attention.w_concat.bias": "decoder.layers.0.self_attn.output.bias",
        "encoder.layers.1.attention.w_v.weight": "encoder.layers.1.self_attn.value.weight",
        "encoder.layers.0.norm2.gamma": "encoder.layers.0.norm2.weight",
    },
    "vanilla": {
        "decoder.layers.0.second_multihead_attention.key_projector.weight": (
            "decoder.layers.0.cross_attn.key.weight"
        ),
        "encoder.layers.1.feed_forward_network.layers.3.weight": (
            "encoder.layers.1.feed_forward.linear2.weight"
        ),
        "decoder.layers.0.third_layer_normalization.beta": "decoder.layers.0.norm3.bias",
    },
    "van_dijck": {
        "decoder.0.unmasked_head.2.linear_transform_V.bias": (
            "decoder.layers.0.cross_attn.value.heads.2.bias"
        ),
        "encoder.1.heads.0.linear_transform_K.weight": (
            "encoder.layers.1.self_attn.key.heads.0.weight"
        ),
        "decoder.0.masked_mha_fc_out.weight": "decoder.layers.0.self_attn.output.weight",
    },
    "bloem": {
        "tblocks.1.attention.toqueries.weight": "encoder.layers.1.self_attn.query.weight",
        "tblocks.0.ff.2.weight": "encoder.layers.0.feed_forward.linear2.weight",
        "pos_emb.weight": "src_embedding.position.weight",
    },
}


def random_state(system):
    generator = torch.Generator().manual_seed(0)
    state = {key: torch.randn(shape, generator=generator) for key, shape in system().items()}
    if system is vanilla:  # shares one matrix, as the paper does
        for name in ("tgt_embedding.token.weight", "generator.weight"):
            state[name] = state["src_embedding.token.weight"]
    return state


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)
def test_weights_of_a_system_are_put_in_their_places(system):
    name, state = system.__name__, random_state(system)
    model = load_foreign(name, state, n_heads=H)
    own = dict(model.named_parameters(remove_duplicate=False))
    tables = [key for key in state if key.endswith((".pe", "positional_encoding"))]
    assert len(own) == len(state) - len(tables)
    for theirs, ours in PAIRS[name].items():
        assert torch.equal(own[ours], state[theirs]), theirs
    values = {tensor.sum().item() for key, tensor in state.items() if key not in tables}
    assert values == {tensor.sum().item() for tensor in own.values()}
    ids = random_ids(6, 4, vocab_size=TGT)
    assert model(ids, ids).isfinite().all() and not model.training


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)
def test_what_is_missing_or_strange_is_named(system):
    name, state = system.__name__, random_state(system)
    with pytest.raises(ValueError, match=r"no parameter 'engine\.weight'"):
        load_foreign(name, state | {"engine.weight": torch.zeros(2)}, n_heads=H)
    theirs, ours = next(iter(PAIRS[name].items()))
    del state[theirs]
    with pytest.raises(ValueError, match=f"no weights for {ours}"):
        load_foreign(name, state, n_heads=H)


def test_a_size_that_does_not_fit_is_named():
    state = random_state(hyunwoongko)
    state["decoder.linear.bias"] = torch.zeros(3)
    with pytest.raises(ValueError, match=r"generator.bias of shape \(3,\) has no place"):
        load_foreign("hyunwoongko", state, n_heads=H)


def test_a_system_without_foreign_names_is_refused():
    with pytest.raises(ValueError, match="no names are known of 'paper'"):
        load_foreign("paper", {})


def test_our_own_weights_come_back_through_their_names():
    """The whole model, through Bloem's names: the same answer."""
    torch.manual_seed(0)
    sizes = dict(vocab_size=SRC, d_model=D, n_heads=H, d_ff=FF, n_encoder_layers=2, max_length=9)
    model = build("bloem", **sizes, n_classes=4).eval()
    names = {"query": "toqueries", "key": "tokeys", "value": "tovalues", "output": "unifyheads"}
    state = {}
    for key, tensor in model.state_dict().items():
        key = key.replace("src_embedding.token", "token_emb").replace("generator", "toprobs")
        key = key.replace("src_embedding.position", "pos_emb").replace("encoder.layers", "tblocks")
        key = key.replace("feed_forward.linear1", "ff.0").replace("feed_forward.linear2", "ff.2")
        for ours, theirs in names.items():
            key = key.replace(f"self_attn.{ours}", f"attention.{theirs}")
        state[key] = tensor
    ids = random_ids(6, 4, vocab_size=SRC)
    assert max_difference(load_foreign("bloem", state)(ids), model(ids)) == 0
