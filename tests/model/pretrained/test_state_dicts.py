"""Weights under the names that each system's own code gives them."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
import torch

from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.presets import build
from headlight.model.pretrained.state_dicts import NO_TOKEN, load_foreign
from tests.devices import here
from tests.model.common import encoding, max_difference, random_ids, traced
from tests.model.pretrained.folders import default_type
from tests.model.test_variants import notebook

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
    found |= {"positional_encoder.positional_encoding": (1, 50, D)} | linear("linear", SRC, D)
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


def is_table(name):
    return name.endswith((".pe", "positional_encoding"))


def sinusoids(length, first=0, scale=10000.0, d_model=D):
    """A positional table as the systems compute it: in float32, column by column."""
    position = torch.arange(length).float()
    columns = []
    for i in range(d_model):
        k = i // 2 + first
        angle = position * math.exp(-2 * k * math.log(scale) / d_model)
        columns.append(angle.cos() if i % 2 else angle.sin())
    return torch.stack(columns, dim=1)


def random_state(system):
    generator = torch.Generator().manual_seed(0)
    state = {key: torch.randn(shape, generator=generator) for key, shape in system().items()}
    for key in filter(is_table, state):
        state[key] = sinusoids(50)[None]
    if system is vanilla:  # shares one matrix, as the paper does
        for name in ("tgt_embedding.token.weight", "generator.weight"):
            state[name] = state["src_embedding.token.weight"]
    return state


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)
def test_weights_of_a_system_are_put_in_their_places(system):
    name, state = system.__name__, random_state(system)
    model = load_foreign(name, state, n_heads=H)
    own = dict(model.named_parameters(remove_duplicate=False))
    tables = [key for key in state if is_table(key)]
    assert len(own) == len(state) - len(tables)
    for theirs, ours in PAIRS[name].items():
        assert torch.equal(own[ours], state[theirs]), theirs
    values = {tensor.sum().item() for key, tensor in state.items() if key not in tables}
    assert values == {tensor.sum().item() for tensor in own.values()}
    ids = random_ids(6, 4, vocab_size=TGT)
    answers = here(model)(*[ids] * len(model.sides()))
    assert answers.isfinite().all() and not model.training


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)
def test_what_is_missing_or_strange_is_named(system):
    name, state = system.__name__, random_state(system)
    with pytest.raises(ValueError, match=r"no parameter 'engine\.weight'"):
        load_foreign(name, state | {"engine.weight": torch.zeros(2)}, n_heads=H)
    theirs = next(iter(PAIRS[name]))
    shape = tuple(state.pop(theirs).shape)
    with pytest.raises(ValueError, match=re.escape(f"lacks {theirs} of shape {shape}")):
        load_foreign(name, state, n_heads=H)


def test_a_size_that_does_not_fit_is_named():
    state = random_state(hyunwoongko)
    state["decoder.linear.bias"] = torch.zeros(3)
    with pytest.raises(ValueError, match=r"decoder.linear.bias of shape \(3,\) .* \(25,\)"):
        load_foreign("hyunwoongko", state, n_heads=H)


def test_a_system_without_foreign_names_is_refused():
    with pytest.raises(ValueError, match="no tensor names are known for 'paper'"):
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
    again = here(load_foreign("bloem", state, pad_id=0))
    assert max_difference(again(ids), here(model)(ids)) == 0


def refused(system, state, *words, **sizes):
    """The sentence that refuses a state dict; it holds these words."""
    with pytest.raises(ValueError) as caught:
        load_foreign(system.__name__, state, **dict(n_heads=H) | sizes)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def every_system(test):
    return pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)(test)


SOME = {system.__name__: next(iter(PAIRS[system.__name__])) for system in SYSTEMS}
NOT_NUMBERS = {
    "NaN": torch.tensor(math.nan),
    "infinite": torch.tensor(-math.inf),
    "too large": torch.tensor(1e300, dtype=torch.float64),
}
KINDS = {"complex64": torch.complex64, "int64": torch.int64, "bool": torch.bool}


@every_system
@pytest.mark.parametrize("number", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_numbers_must_be_finite(system, number):
    state, name = random_state(system), SOME[system.__name__]
    state[name] = state[name].to(number.dtype)
    state[name].view(-1)[-1] = number
    refused(system, state, name, "NaN, infinite or too large")


@every_system
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_must_be_real(system, kind):
    state, name = random_state(system), SOME[system.__name__]
    refused(system, state | {name: state[name].to(KINDS[kind])}, name, kind)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_floats_of_less_precision_are_read(kind, recwarn):
    state = {name: tensor.to(kind) for name, tensor in random_state(annotated).items()}
    model = load_foreign("annotated", state, n_heads=H)
    assert torch.equal(model.generator.weight, state["generator.proj.weight"].float())
    assert not recwarn.list


def test_float64_is_rounded_with_a_warning_or_kept():
    state = {name: tensor.double() + 1e-12 for name, tensor in random_state(annotated).items()}
    with pytest.warns(UserWarning, match="float64 weights of annotated are rounded") as warned:
        model = load_foreign("annotated", state, n_heads=H)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert torch.equal(model.generator.weight, state["generator.proj.weight"].float())
    with default_type(torch.float64), warnings.catch_warnings(action="error"):
        model = load_foreign("annotated", state, n_heads=H)
    assert torch.equal(model.generator.weight, state["generator.proj.weight"])


@every_system
def test_a_size_that_the_system_does_not_have_is_named(system):
    refused(system, random_state(system), f"{system.__name__} has no size 'layers'", layers=2)


def test_heads_that_share_the_width_are_not_taken_for_one():
    """As in Bloem's later package `former`, once its embeddings are called as in the notebook: a
    query of all heads together is as wide as the model there."""
    state = random_state(bloem)
    for name in [name for name in state if ".attention." in name]:
        state[name] = state[name][..., :D] if "unifyheads" in name else state[name][:D]
    state |= {name: tensor[:D] for name, tensor in state.items() if name.endswith("heads.bias")}
    with pytest.raises(ValueError, match="does not say how many heads it has; give n_heads"):
        load_foreign("bloem", state)
    refused(bloem, state, "of shape (12, 12) should have shape (36, 12)")
    assert load_foreign("bloem", state, n_heads=1).config.n_heads == 1


@pytest.mark.parametrize(
    "given, word",
    [
        ([("generator.proj.weight", torch.zeros(TGT, D))], "this is a list"),
        (None, "this is a NoneType"),
        ({0: torch.zeros(2)}, "0 is not a name"),
        ({"generator.proj.weight": np.zeros((TGT, D))}, "generator.proj.weight should be a tensor"),
        ({"model": {}, "step": 3}, "model should be a tensor, not a dict"),
        ({"generator.proj.weight": torch.zeros(2, device="meta")}, "with data"),
        ({"generator.proj.weight": torch.eye(2).to_sparse()}, "a dense tensor"),
        ({}, "lacks src_embed.0.lut.weight"),
        ({"src_embed.0.lut.weight": torch.zeros(3)}, "(3,) should have 2 dimensions"),
    ],
)
def test_what_is_no_state_dict_is_refused(given, word):
    refused(annotated, given, word)


LAYERS = {
    "annotated": "encoder.layers.1",
    "hyunwoongko": "encoder.layers.1",
    "vanilla": "encoder.layers.1",
    "van_dijck": "encoder.1",
    "bloem": "tblocks.1",
}


@every_system
@pytest.mark.parametrize("gap", [0, 1])
def test_a_layer_that_is_missing_is_named(system, gap):
    """Layers 0 and 2, or 1 and 2, are not two layers."""
    state, last = random_state(system), LAYERS[system.__name__]
    for name in [name for name in state if name.startswith(f"{last}.")]:
        state[name.replace(last, last[:-1] + "2")] = state[name]
    missing = last[:-1] + str(gap)
    state = {name: t for name, t in state.items() if not name.startswith(f"{missing}.")}
    refused(system, state, f"lacks {missing}.")


@pytest.mark.parametrize("system", [annotated, hyunwoongko, vanilla, van_dijck])
def test_a_stack_that_is_missing_is_named(system):
    state = random_state(system)
    layer = LAYERS[system.__name__].replace("encoder", "decoder").replace("1", "0")
    state = {name: t for name, t in state.items() if not name.startswith(layer)}
    refused(system, state, f"lacks {layer}.")
    refused(system, random_state(system), "n_decoder_layers=2 was given", n_decoder_layers=2)


@pytest.mark.parametrize("system", [annotated, hyunwoongko, vanilla])
def test_heads_that_shapes_do_not_tell_are_asked_for(system):
    """8, the usual number, would be as plausible as 4 and as silent."""
    wider = {
        name: torch.zeros([16 if size == D else size for size in tensor.shape])
        for name, tensor in random_state(system).items()
        if not is_table(name)
    }
    with pytest.raises(ValueError, match="give n_heads"):
        load_foreign(system.__name__, wider)
    assert load_foreign(system.__name__, wider, n_heads=4).config.n_heads == 4
    refused(system, wider, "d_model (16) must be a multiple of n_heads (3)")


CONTRADICTED = [
    (bloem, "n_heads", 2, "tblocks.0.attention.toqueries.weight of shape (36, 12)"),
    (van_dijck, "n_heads", 2, "encoder.0.heads.2."),
    (van_dijck, "hidden_size", 64, "encoder.0.heads.0.linear_transform_Q.weight"),
    (bloem, "max_length", 5, "pos_emb.weight of shape (9, 12)"),
    (bloem, "n_classes", 2, "toprobs.weight of shape (4, 12)"),
    (annotated, "max_length", 1024, "src_embed.1.pe"),
    (annotated, "d_model", 24, "src_embed.0.lut.weight of shape (30, 12)"),
    (hyunwoongko, "tgt_vocab_size", 30, "decoder.emb.tok_emb.weight of shape (25, 12)"),
    (hyunwoongko, "d_ff", 2048, "encoder.layers.0.ffn.linear1.weight of shape (20, 12)"),
    (vanilla, "n_encoder_layers", 6, "encoder.layers.1."),
]


@pytest.mark.parametrize("system, size, given, told_by", CONTRADICTED)
def test_a_size_that_contradicts_the_weights_is_refused(system, size, given, told_by):
    refused(system, random_state(system), f"{size}={given} was given", told_by, **{size: given})


def test_a_head_that_is_missing_is_named():
    state = random_state(van_dijck)
    state = {name: t for name, t in state.items() if ".heads.1." not in name}
    refused(van_dijck, state, "lacks encoder.0.heads.1.linear_transform_Q.weight of shape (7, 4)")


@pytest.mark.parametrize("name", ["tgt_embedding.token.weight", "generator.weight"])
def test_matrices_that_differ_do_not_become_one(name):
    state = random_state(vanilla)
    state[name] = state[name] + 1
    refused(vanilla, state, "src_embedding.token.weight", name, "differ")


def test_two_names_of_one_parameter_must_agree():
    """With and without dropout, the second linear layer stands in another place."""
    state, name = random_state(vanilla), "encoder.layers.0.feed_forward_network.layers."
    refused(vanilla, state | {f"{name}2.weight": state[f"{name}3.weight"] + 1}, "differ")


def test_layers_alone_are_read_with_a_vocabulary_that_is_given():
    """All that vanilla-transformer has; embeddings begin with random weights."""
    whole = {n: t for n, t in random_state(vanilla).items() if ".layers." in n}
    encoder = {n: t for n, t in whole.items() if n.startswith("encoder")}
    refused(vanilla, whole, "give vocab_size")
    for state, sizes in ((whole, {}), (encoder, dict(n_decoder_layers=0))):
        model = load_foreign("vanilla", state, n_heads=H, vocab_size=SRC, **sizes)
        key = "encoder.layers.1.self_attn.key.weight"
        assert torch.equal(
            model.get_parameter(key),
            state["encoder.layers.1.multihead_attention.key_projector.weight"],
        )
        ids = (random_ids(length, vocab_size=SRC) for length in (4, 3))
        assert here(model)(*ids).isfinite().all()
    refused(vanilla, encoder, "lacks decoder.layers.0.", vocab_size=SRC)
    refused(hyunwoongko, {n: t for n, t in random_state(hyunwoongko).items() if "emb" not in n},
            "lacks encoder.emb.tok_emb.weight", vocab_size=SRC)  # fmt: skip


# Where each system keeps its table, and how it counts frequencies.
TABLES = {
    "annotated": ("src_embed.1.pe", "tgt_embed.1.pe", 0),
    "hyunwoongko": ("encoder.emb.pos_emb.encoding", "decoder.emb.pos_emb.encoding", 0),
    "vanilla": ("positional_encoding.embeddings", "embeddings", 1),
    "van_dijck": ("positional_encoder.positional_encoding", None, 0),
}


@pytest.mark.parametrize("system", [annotated, hyunwoongko, vanilla, van_dijck])
def test_a_saved_table_gives_the_longest_sentence_and_is_checked(system):
    first, second, k = TABLES[system.__name__]
    bare = {name: t for name, t in random_state(system).items() if not is_table(name)}
    for length in (40, 5000):
        state = bare | {first: sinusoids(length, k)}
        model = load_foreign(system.__name__, state, n_heads=H)
        assert model.config.max_length == length
        own = model.src_embedding.position(length)
        assert own.shape == (length, D) and max_difference(own, sinusoids(length, k)) < 1e-3
    if second:
        one = bare | {second: sinusoids(40, k)}
        assert load_foreign(system.__name__, one, n_heads=H).config.max_length == 40
        refused(system, one | {first: sinusoids(60, k)}, "of shape", "should have shape")
    refused(system, bare | {first: sinusoids(40, k, scale=1000.0)}, first, "positional table")
    refused(system, bare | {first: sinusoids(40, 1 - k)}, first, "positional table")
    refused(system, bare | {first: sinusoids(40, k, d_model=10)}, first, "(40, 10)")
    assert load_foreign(system.__name__, bare, n_heads=H).config.max_length == 1024


def test_a_table_of_another_scale_is_read_with_that_scale():
    state = random_state(vanilla) | {"embeddings": sinusoids(40, 1, scale=100.0)}
    assert load_foreign("vanilla", state, n_heads=H, scale=100.0).config.max_length == 40


def tokens(model):
    return model.config.pad_id, model.config.bos_id, model.config.eos_id


@every_system
def test_special_tokens_are_the_system_s_own(system):
    state = random_state(system)
    known = (1, 2, 3) if system is hyunwoongko else (NO_TOKEN,) * 3
    assert tokens(load_foreign(system.__name__, state, n_heads=H)) == known
    given = dict(pad_id=2, bos_id=0, eos_id=1)
    assert tokens(load_foreign(system.__name__, state, n_heads=H, **given)) == (2, 0, 1)
    refused(system, state, "pad_id=30 is not in the vocabulary of", pad_id=30)


def test_a_word_is_no_padding():
    """hyunwoongko's token 0 is <unk>, a word as any other; its token 1 is padding."""
    model = load_foreign("hyunwoongko", random_state(hyunwoongko), n_heads=H)
    src, tgt = torch.tensor([[2, 0, 7, 3, 1]]), torch.tensor([[2, 5]])
    src_mask, _, _ = Masks().build(model, src, tgt)
    assert src_mask.flatten().tolist() == [True, True, True, True, False]
    run = traced(model, encoding(src[0, 1:3]), encoding(tgt[0, 1:]), pad_to=6)
    assert run.src.ids == (0, 7, 3, 1, 1, 1) and run.src.tokens[2:] == ("</s>", *["<pad>"] * 3)
    assert run.tgt.ids[0] == 2 and run.tgt.tokens[0] == "<s>"
    assert greedy_decode(model, src, max_length=4)


@pytest.mark.parametrize("ids", [torch.zeros(1, 5), torch.tensor([[4, 0, 0, 6], [0, 1, 2, 3]])])
def test_bloem_counts_every_token(ids):
    ids = ids.long()
    model = load_foreign("bloem", random_state(bloem))
    mask = Masks().build(model, ids)
    assert max_difference(model(ids, *mask)[:, 0], notebook(model, ids)[0]) <= 1e-5


def test_a_source_of_padding_alone_has_a_class():
    model = load_foreign("bloem", random_state(bloem), pad_id=0)
    empty = model(torch.zeros(1, 5, dtype=torch.long))[0, 0]
    assert max_difference(empty, model.generator.bias.log_softmax(dim=-1)) <= 1e-6


def test_wide_heads_need_not_divide_the_width():
    """Five heads on a width of 16, as Bloem's code allows."""
    whole = random_state(bloem)
    state = {
        name: torch.randn(5 * D, D) if "attention.to" in name
        else torch.randn(D, 5 * D) if name.endswith("unifyheads.weight") else tensor
        for name, tensor in whole.items()
    }  # fmt: skip
    model = load_foreign("bloem", state)
    assert model.config.n_heads == 5 and D % 5 and model.config.d_head == D
    ids = torch.tensor([[4, 7, 2]])
    assert max_difference(model(ids)[:, 0], notebook(model, ids)[0]) <= 1e-5
