"""Recordings as files: what is read is what was written, and nothing in a file is trusted."""

import copy
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from torch import nn

from headlight import load, record, save
from headlight.model.checkpoint import Checkpoint
from headlight.model.recording.recording import KEY
from headlight.model.recording.weights import CannotRecord
from headlight.model.tokenizer import Tokenizer
from tests.conftest import LINES
from tests.model.common import in_short, random_model
from tests.model.recording.models import some

TEXTS = LINES[:3]


@pytest.fixture(scope="module")
def traces():
    tokenizer = Tokenizer.train(LINES, vocab_size=300)
    model = random_model("paper", vocab_size=len(tokenizer)).eval()
    ours = Checkpoint(model, tokenizer, {}, "paper")
    return [ours.trace(text, target) for text, target in zip(TEXTS, reversed(TEXTS), strict=True)]


@pytest.mark.parametrize(("half", "error"), [(False, 0), (True, 5e-4)])
def test_each_weight_is_the_traces(traces, tmp_path, half, error):
    file = tmp_path / "all.safetensors"
    save(file, traces, half)
    back = load(file)
    assert back.lines == TEXTS
    for line, expected in zip(back.lines, traces, strict=True):
        found = back.trace(line)
        assert found.texts == expected.texts
        places = [(s.kind, s.layer, s.name, s.n_heads, s.n_key_heads) for s in expected.sites]
        assert [(s.kind, s.layer, s.name, s.n_heads, s.n_key_heads) for s in found.sites] == places
        for kind, array in expected.attention.items():
            assert np.abs(found.attention[kind] - array).max() <= error
    again = tmp_path / "again.safetensors"
    save(again, back.recordings, half)
    assert again.read_bytes() == file.read_bytes()


def test_a_text_is_told_from_one_that_reads_the_same(tmp_path):
    """By what was read: source and target, with special tokens or without, before other targets."""
    cross = {kind: some((2, 4, *shape)) for kind, shape in
             {"encoder": (2, 2), "decoder": (3, 3), "cross": (3, 2)}.items()}  # fmt: skip
    same = record(cross, ["a", "b"], ["</s>", "a", "b"])
    other = record(cross, ["a", "b"], ["</s>", "b", "a"])
    save(tmp_path / "x.safetensors", [same, other])
    back = load(tmp_path / "x.safetensors")
    assert back.lines == ["a b", "a b (2)"]
    assert [back.trace(line).tgt for line in back.lines] == [same.tgt, other.tgt]
    assert back.trace("a b", "b a").tgt == other.tgt
    bare, framed = (
        record(some((2, 4, 2, 2)), ["a", "b"]),
        record(some((2, 4, 4, 4)), ["<s>", "a", "b", "</s>"]),
    )
    save(tmp_path / "x.safetensors", [bare, framed])
    back = load(tmp_path / "x.safetensors")
    assert [len(back.trace(line).src.ids) for line in back.lines] == [2, 4]


def nodes(value, path=()):
    """The places of everything in a JSON value."""
    yield path
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for key, each in inner.items() if isinstance(inner, dict) else ():
        yield from nodes(each, (*path, key))


ODD = (None, -1, 0, "", [], {}, 1e400, 10**30, 2.5, True, "\ud800", "x" * 5000, "a\nb\tc", [[]],
       "cross", "decoder", [0, 1], "../x")  # fmt: skip


def spoilt(described, count):
    """What a file says, with something odd in one place, or without it; each from a seed."""
    deep = {}  # places by their depth: most are numbers of tokens
    for path in nodes(described):
        deep.setdefault(len(path), []).append(path)
    for seed in range(count):
        random = np.random.default_rng(seed)
        places = deep[1 + seed % (len(deep) - 1)]
        content = copy.deepcopy(described)
        *path, last = places[random.integers(len(places))]
        parent = content
        for key in path:
            parent = parent[key]
        if random.random() < 0.2:
            del parent[last]
        else:
            parent[last] = ODD[random.integers(len(ODD))]
        yield content


@pytest.mark.parametrize("count", in_short([100, 400], 100))
def test_whatever_a_file_says_is_checked(traces, tmp_path, count):
    file = tmp_path / "x.safetensors"
    save(file, traces[:2])
    arrays = load_file(file)
    with safe_open(file, "np") as opened:
        content = json.loads(opened.metadata()[KEY])
    refused = 0
    for described in spoilt(content["recordings"], count):
        changed = json.dumps({"format": content["format"], "recordings": described})
        save_file(arrays, file, {KEY: changed})
        try:
            back = load(file)
        except CannotRecord as error:
            assert str(error).endswith(".") and len(str(error)) <= 300 and "\n" not in str(error)
            refused += 1
            continue
        for line in back.lines:
            line.encode("utf-8")
            assert len(line.splitlines()) == 1
            found = back.trace(line)
            for kind, array in found.attention.items():
                assert array.shape[-2:] == tuple(len(text.tokens) for text in found.texts_of(kind))
            repr(found).encode("utf-8")
            save(file, found)
    assert refused > count / 2


def test_what_is_no_file_of_recordings_says_so(traces, tmp_path):
    other = [traces[0], record(some(), list("abcde"))]
    for name, what, says in (
        ("x.pt", traces, r"saved as \.safetensors"), ("x.safetensors", [], "1 to 1,000"),
        ("x.safetensors", 3, "as record"), ("x.safetensors", other, "other heads"),
    ):  # fmt: skip
        with pytest.raises(CannotRecord, match=says):
            save(tmp_path / name, what)
        assert not (tmp_path / name).exists()


def test_a_model_in_memory_is_sent_elsewhere():
    with pytest.raises(TypeError, match="record"):
        load(nn.Linear(1, 1))
