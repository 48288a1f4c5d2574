"""Weights under the names that each system's own code gives them."""

import itertools
import math
import re
import warnings

import pytest
import torch

from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.pretrained.state_dicts import NO_TOKEN, load_foreign
from tests.devices import here
from tests.model.common import encoding, max_difference, random_ids, traced
from tests.model.pretrained.folders import default_type
from tests.model.test_variants import notebook

D, H, SRC, TGT = 12, 3, 30, 25
# A name and its shape. {a,b} stands for either; a name that ends in a dot has a weight and a bias.
SYSTEMS = {
    "annotated": """
        src_embed.0.lut.weight 30,12
        tgt_embed.0.lut.weight 25,12
        {src,tgt}_embed.1.pe 1,50,12
        generator.proj. 25,12
        {encoder,decoder}.norm.{a_2,b_2} 12
        encoder.layers.{0,1}.self_attn.linears.{0,1,2,3}. 12,12
        decoder.layers.0.{self,src}_attn.linears.{0,1,2,3}. 12,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.feed_forward.w_1. 20,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.feed_forward.w_2. 12,20
        encoder.layers.{0,1}.sublayer.{0,1}.norm.{a_2,b_2} 12
        decoder.layers.0.sublayer.{0,1,2}.norm.{a_2,b_2} 12""",
    "hyunwoongko": """
        encoder.emb.tok_emb.weight 30,12
        decoder.emb.tok_emb.weight 25,12
        decoder.linear. 25,12
        encoder.layers.{0,1}.attention.w_{q,k,v,concat}. 12,12
        decoder.layers.0.{self,enc_dec}_attention.w_{q,k,v,concat}. 12,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.ffn.linear1. 20,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.ffn.linear2. 12,20
        encoder.layers.{0,1}.norm{1,2}.{gamma,beta} 12
        decoder.layers.0.norm{1,2,3}.{gamma,beta} 12""",
    "vanilla": """
        {src_embedding.token,tgt_embedding.token,generator}.weight 30,12
        encoder.layers.{0,1}.multihead_attention.{query,key,value,output}_projector.weight 12,12
        decoder.layers.0.{first,second}_multihead_attention.{query,key}_projector.weight 12,12
        decoder.layers.0.{first,second}_multihead_attention.{value,output}_projector.weight 12,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.feed_forward_network.layers.0.weight 20,12
        {encoder.layers.0,encoder.layers.1,decoder.layers.0}.feed_forward_network.layers.3.weight 12,20
        encoder.layers.{0,1}.{first,second}_layer_normalization.gamma 12
        decoder.layers.0.{first,second,third}_layer_normalization.{gamma,beta} 12""",  # noqa: E501
    "van_dijck": """
        {input,target}_embedding.weight 30,12
        positional_encoder.positional_encoding 1,50,12
        linear. 30,12
        encoder.{0,1}.heads.{0,1,2}.linear_transform_{Q,K,V}. 7,4
        decoder.0.{masked,unmasked}_head.{0,1,2}.linear_transform_{Q,K,V}. 7,4
        {encoder.0.,encoder.1.,decoder.0.masked_,decoder.0.unmasked_}mha_fc_out. 12,21
        {encoder.0,encoder.1,decoder.0}.feed_forward.0. 20,12
        {encoder.0,encoder.1,decoder.0}.feed_forward.2. 12,20
        encoder.{0,1}.norm{1,2}. 12
        decoder.0.norm{1,2,3}. 12""",
    "bloem": """
        token_emb.weight 30,12
        pos_emb.weight 9,12
        toprobs. 4,12
        tblocks.{0,1}.attention.{tokeys,toqueries,tovalues}.weight 36,12
        tblocks.{0,1}.attention.unifyheads. 12,36
        tblocks.{0,1}.ff.0. 20,12
        tblocks.{0,1}.ff.2. 12,20
        tblocks.{0,1}.norm{1,2}. 12""",
}
# A name of theirs and ours, one of each kind that could be mistaken for another.
PAIRS = {
    "annotated": """
        encoder.layers.1.self_attn.linears.1.weight encoder.layers.1.self_attn.key.weight
        decoder.layers.0.src_attn.linears.3.bias decoder.layers.0.cross_attn.output.bias
        decoder.layers.0.sublayer.2.norm.a_2 decoder.layers.0.norm3.weight
        tgt_embed.0.lut.weight tgt_embedding.token.weight""",
    "hyunwoongko": """
        decoder.layers.0.enc_dec_attention.w_k.weight decoder.layers.0.cross_attn.key.weight
        decoder.layers.0.self_attention.w_concat.bias decoder.layers.0.self_attn.output.bias
        encoder.layers.0.norm2.gamma encoder.layers.0.norm2.weight""",
    "vanilla": """
        decoder.layers.0.second_multihead_attention.key_projector.weight decoder.layers.0.cross_attn.key.weight
        encoder.layers.1.feed_forward_network.layers.3.weight encoder.layers.1.feed_forward.linear2.weight
        decoder.layers.0.third_layer_normalization.beta decoder.layers.0.norm3.bias""",  # noqa: E501
    "van_dijck": """
        decoder.0.unmasked_head.2.linear_transform_V.bias decoder.layers.0.cross_attn.value.heads.2.bias
        encoder.1.heads.0.linear_transform_K.weight encoder.layers.1.self_attn.key.heads.0.weight
        decoder.0.masked_mha_fc_out.weight decoder.layers.0.self_attn.output.weight""",  # noqa: E501
    "bloem": """
        tblocks.1.attention.toqueries.weight encoder.layers.1.self_attn.query.weight
        tblocks.0.ff.2.weight encoder.layers.0.feed_forward.linear2.weight
        pos_emb.weight src_embedding.position.weight""",
}  # fmt: skip
PAIRS = {name: dict(line.split() for line in text.strip().splitlines())
         for name, text in PAIRS.items()}  # fmt: skip
SOME = {name: next(iter(pairs)) for name, pairs in PAIRS.items()}


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


def shapes(system):
    for line in SYSTEMS[system].strip().splitlines():
        names, sizes = line.split()
        shape = tuple(map(int, sizes.split(",")))
        parts = [part.split(",") for part in re.split(r"[{}]", names)]
        for name in map("".join, itertools.product(*parts)):
            if name.endswith("."):
                yield from ((f"{name}weight", shape), (f"{name}bias", shape[:1]))
            else:
                yield name, shape


def random_state(system):
    generator = torch.Generator().manual_seed(0)
    state = {key: torch.randn(shape, generator=generator) for key, shape in shapes(system)}
    for key in filter(is_table, state):
        state[key] = sinusoids(50)[None]
    if system == "vanilla":  # shares one matrix, as the paper does
        for name in ("tgt_embedding.token.weight", "generator.weight"):
            state[name] = state["src_embedding.token.weight"]
    return state


@pytest.mark.parametrize("system", SYSTEMS)
def test_weights_of_a_system_are_put_in_their_places(system):
    state = random_state(system)
    model = load_foreign(system, state, n_heads=H)
    own = dict(model.named_parameters(remove_duplicate=False))
    tables = [key for key in state if is_table(key)]
    assert len(own) == len(state) - len(tables)
    for theirs, ours in PAIRS[system].items():
        assert torch.equal(own[ours], state[theirs]), theirs
    values = {tensor.sum().item() for key, tensor in state.items() if key not in tables}
    assert values == {tensor.sum().item() for tensor in own.values()}
    ids = random_ids(6, 4, vocab_size=TGT)
    answers = here(model)(*[ids] * len(model.sides()))
    assert answers.isfinite().all() and not model.training


def refused(system, state, *words, **sizes):
    """The sentence that refuses a state dict; it holds these words."""
    with pytest.raises(ValueError) as caught:
        load_foreign(system, state, **dict(n_heads=H) | sizes)
    for word in words:
        assert word in str(caught.value), str(caught.value)


LAYERS = {"van_dijck": "encoder.1", "bloem": "tblocks.1"}  # of others encoder.layers.1


def ending_in(tensor, number):
    tensor = tensor.to(number.dtype)
    tensor.view(-1)[-1] = number
    return tensor


def without(state, *beginnings):
    return {name: tensor for name, tensor in state.items() if not name.startswith(beginnings)}


def with_a_gap(state, last, gap):
    """Layers 0 and 2, or 1 and 2, are not two layers."""
    third = {name.replace(last, last[:-1] + "2"): state[name] for name in state
             if name.startswith(f"{last}.")}  # fmt: skip
    return without(state | third, f"{last[:-1]}{gap}.")


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_does_not_fit_is_named(system):
    state, name = random_state(system), SOME[system]
    shape, layer = tuple(state[name].shape), LAYERS.get(system, "encoder.layers.1")
    refused(system, state | {"engine.weight": torch.zeros(2)}, "no parameter 'engine.weight'")
    refused(system, without(state, name), f"lacks {name} of shape {shape}")
    for number in (
        torch.tensor(math.nan), torch.tensor(-math.inf), torch.tensor(1e300, dtype=torch.float64)
    ):  # fmt: skip
        spoilt = state | {name: ending_in(state[name].clone(), number)}
        refused(system, spoilt, name, "NaN, infinite or too large")
    for kind in ("complex64", "int64", "bool"):
        refused(system, state | {name: state[name].to(getattr(torch, kind))}, name, kind)
    for gap in (0, 1):
        refused(system, with_a_gap(state, layer, gap), f"lacks {layer[:-1]}{gap}.")
    refused(system, state, f"{system} has no size 'layers'", layers=2)
    if system != "bloem":
        decoder = layer.replace("encoder", "decoder").replace("1", "0")
        refused(system, without(state, decoder), f"lacks {decoder}.")
        refused(system, state, "n_decoder_layers=2 was given", n_decoder_layers=2)


def plus_one(*names):
    return lambda state: state | {name: state[name] + 1 for name in names}


V3 = "encoder.layers.0.feed_forward_network.layers.3.weight"
REFUSED = [  # system, what is made of its state, what the sentence says
    ("hyunwoongko", lambda s: s | {"decoder.linear.bias": torch.zeros(3)},
     "decoder.linear.bias of shape (3,) should have shape (25,)"),
    ("van_dijck", lambda s: without(s, "encoder.0.heads.1."),
     "lacks encoder.0.heads.1.linear_transform_Q.weight of shape (7, 4)"),
    ("vanilla", plus_one("tgt_embedding.token.weight"), "tgt_embedding.token.weight differ"),
    # With and without dropout, the second linear layer stands in another place.
    ("vanilla", lambda s: s | {V3.replace("3.w", "2.w"): s[V3] + 1}, "differ"),
    ("annotated", lambda s: [("generator.proj.weight", torch.zeros(TGT, D))], "this is a list"),
    ("annotated", lambda s: {0: torch.zeros(2)}, "0 is not a name"),
    ("annotated", lambda s: {"model": {}, "step": 3}, "model should be a tensor, not a dict"),
    ("annotated", lambda s: {"generator.proj.weight": torch.zeros(2, device="meta")}, "with data"),
    ("annotated", lambda s: {"generator.proj.weight": torch.eye(2).to_sparse()}, "a dense tensor"),
    ("annotated", lambda s: {"src_embed.0.lut.weight": torch.zeros(3)}, "(3,) should have 2 dim"),
]  # fmt: skip


@pytest.mark.parametrize("system, change, words", REFUSED)
def test_what_is_no_state_dict_of_a_system_is_refused(system, change, words):
    refused(system, change(random_state(system)), words)


def test_a_system_without_foreign_names_is_refused():
    with pytest.raises(ValueError, match="no tensor names are known for 'paper'"):
        load_foreign("paper", {})


def test_float64_is_rounded_with_a_warning_or_kept(recwarn):
    for kind in (torch.float16, torch.bfloat16):  # are read without one
        state = {name: tensor.to(kind) for name, tensor in random_state("annotated").items()}
        model = load_foreign("annotated", state, n_heads=H)
        assert torch.equal(model.generator.weight, state["generator.proj.weight"].float())
    assert not recwarn.list
    state = {name: tensor.double() + 1e-12 for name, tensor in random_state("annotated").items()}
    with pytest.warns(UserWarning, match="float64 weights of annotated are rounded") as warned:
        model = load_foreign("annotated", state, n_heads=H)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert torch.equal(model.generator.weight, state["generator.proj.weight"].float())
    with default_type(torch.float64), warnings.catch_warnings(action="error"):
        model = load_foreign("annotated", state, n_heads=H)
    assert torch.equal(model.generator.weight, state["generator.proj.weight"])


def test_heads_that_share_the_width_are_not_taken_for_one():
    """As in Bloem's later package `former`, once its embeddings are called as in the notebook: a
    query of all heads together is as wide as the model there."""
    state = random_state("bloem")
    for name in [name for name in state if ".attention." in name]:
        state[name] = state[name][..., :D] if "unifyheads" in name else state[name][:D]
    state |= {name: tensor[:D] for name, tensor in state.items() if name.endswith("heads.bias")}
    with pytest.raises(ValueError, match="does not say how many heads it has; give n_heads"):
        load_foreign("bloem", state)
    refused("bloem", state, "of shape (12, 12) should have shape (36, 12)")
    assert load_foreign("bloem", state, n_heads=1).config.n_heads == 1


@pytest.mark.parametrize("system", ["annotated", "hyunwoongko", "vanilla"])
def test_heads_that_shapes_do_not_tell_are_asked_for(system):
    """8, the usual number, would be as plausible as 4 and as silent."""
    wider = {
        name: torch.zeros([16 if size == D else size for size in tensor.shape])
        for name, tensor in random_state(system).items()
        if not is_table(name)
    }
    with pytest.raises(ValueError, match="give n_heads"):
        load_foreign(system, wider)
    assert load_foreign(system, wider, n_heads=4).config.n_heads == 4
    refused(system, wider, "d_model (16) must be a multiple of n_heads (3)")


CONTRADICTED = [
    ("bloem", "n_heads", 2, "tblocks.0.attention.toqueries.weight of shape (36, 12)"),
    ("van_dijck", "n_heads", 2, "encoder.0.heads.2."),
    ("van_dijck", "hidden_size", 64, "encoder.0.heads.0.linear_transform_Q.weight"),
    ("bloem", "max_length", 5, "pos_emb.weight of shape (9, 12)"),
    ("annotated", "d_model", 24, "src_embed.0.lut.weight of shape (30, 12)"),
    ("hyunwoongko", "tgt_vocab_size", 30, "decoder.emb.tok_emb.weight of shape (25, 12)"),
    ("vanilla", "n_encoder_layers", 6, "encoder.layers.1."),
]


@pytest.mark.parametrize("system, size, given, told_by", CONTRADICTED)
def test_a_size_that_contradicts_the_weights_is_refused(system, size, given, told_by):
    refused(system, random_state(system), f"{size}={given} was given", told_by, **{size: given})


def test_layers_alone_are_read_with_a_vocabulary_that_is_given():
    """All that vanilla-transformer has; embeddings begin with random weights."""
    whole = {n: t for n, t in random_state("vanilla").items() if ".layers." in n}
    encoder = {n: t for n, t in whole.items() if n.startswith("encoder")}
    refused("vanilla", whole, "give vocab_size")
    for state, sizes in ((whole, {}), (encoder, dict(n_decoder_layers=0))):
        model = load_foreign("vanilla", state, n_heads=H, vocab_size=SRC, **sizes)
        key = "encoder.layers.1.self_attn.key.weight"
        assert torch.equal(
            model.get_parameter(key),
            state["encoder.layers.1.multihead_attention.key_projector.weight"],
        )
        ids = (random_ids(length, vocab_size=SRC) for length in (4, 3))
        assert here(model)(*ids).isfinite().all()
    refused("vanilla", encoder, "lacks decoder.layers.0.", vocab_size=SRC)
    refused("hyunwoongko", {n: t for n, t in random_state("hyunwoongko").items() if "emb" not in n},
            "lacks encoder.emb.tok_emb.weight", vocab_size=SRC)  # fmt: skip


# Where each system keeps its table, and how it counts frequencies.
TABLES = {
    "annotated": ("src_embed.1.pe", "tgt_embed.1.pe", 0),
    "hyunwoongko": ("encoder.emb.pos_emb.encoding", "decoder.emb.pos_emb.encoding", 0),
    "vanilla": ("positional_encoding.embeddings", "embeddings", 1),
    "van_dijck": ("positional_encoder.positional_encoding", None, 0),
}


@pytest.mark.parametrize("system", ["annotated", "hyunwoongko", "vanilla", "van_dijck"])
def test_a_saved_table_gives_the_longest_sentence_and_is_checked(system):
    first, second, k = TABLES[system]
    bare = {name: t for name, t in random_state(system).items() if not is_table(name)}
    for length in (40, 5000):
        state = bare | {first: sinusoids(length, k)}
        model = load_foreign(system, state, n_heads=H)
        assert model.config.max_length == length
        own = model.src_embedding.position(length)
        assert own.shape == (length, D) and max_difference(own, sinusoids(length, k)) < 1e-3
    if second:
        one = bare | {second: sinusoids(40, k)}
        assert load_foreign(system, one, n_heads=H).config.max_length == 40
        refused(system, one | {first: sinusoids(60, k)}, "of shape", "should have shape")
    refused(system, bare | {first: sinusoids(40, k, scale=1000.0)}, first, "positional table")
    refused(system, bare | {first: sinusoids(40, 1 - k)}, first, "positional table")
    refused(system, bare | {first: sinusoids(40, k, d_model=10)}, first, "(40, 10)")
    assert load_foreign(system, bare, n_heads=H).config.max_length == 1024
    if system == "vanilla":  # whose scale is a size
        scaled = bare | {first: sinusoids(40, k, scale=100.0)}
        assert load_foreign(system, scaled, n_heads=H, scale=100.0).config.max_length == 40


def tokens(model):
    return model.config.pad_id, model.config.bos_id, model.config.eos_id


@pytest.mark.parametrize("system", SYSTEMS)
def test_special_tokens_are_the_system_s_own(system):
    state = random_state(system)
    known = (1, 2, 3) if system == "hyunwoongko" else (NO_TOKEN,) * 3
    assert tokens(load_foreign(system, state, n_heads=H)) == known
    given = dict(pad_id=2, bos_id=0, eos_id=1)
    assert tokens(load_foreign(system, state, n_heads=H, **given)) == (2, 0, 1)
    refused(system, state, "pad_id=30 is not in the vocabulary of", pad_id=30)


def test_a_word_is_no_padding():
    """hyunwoongko's token 0 is <unk>, a word as any other; its token 1 is padding."""
    model = load_foreign("hyunwoongko", random_state("hyunwoongko"), n_heads=H)
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
    model = load_foreign("bloem", random_state("bloem"))
    mask = Masks().build(model, ids)
    assert max_difference(model(ids, *mask)[:, 0], notebook(model, ids)[0]) <= 1e-5
    model = load_foreign("bloem", random_state("bloem"), pad_id=0)
    empty = model(torch.zeros(1, 5, dtype=torch.long))[0, 0]  # of padding alone
    assert max_difference(empty, model.generator.bias.log_softmax(dim=-1)) <= 1e-6


def test_wide_heads_need_not_divide_the_width():
    """Five heads on a width of 16, as Bloem's code allows."""
    whole = random_state("bloem")
    state = {
        name: torch.randn(5 * D, D) if "attention.to" in name
        else torch.randn(D, 5 * D) if name.endswith("unifyheads.weight") else tensor
        for name, tensor in whole.items()
    }  # fmt: skip
    model = load_foreign("bloem", state)
    assert model.config.n_heads == 5 and D % 5 and model.config.d_head == D
    ids = torch.tensor([[4, 7, 2]])
    assert max_difference(model(ids)[:, 0], notebook(model, ids)[0]) <= 1e-5
