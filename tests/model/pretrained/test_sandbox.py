"""A tokenizer that would take all memory, or hours, is refused before it reads a text here; one
that fails on a single text later says so in a sentence."""

import shutil
import sys

import psutil
import pytest
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

from headlight.model.checkpoint import load, save
from headlight.model.pretrained import sandbox
from headlight.model.pretrained.command import CannotAdd, add
from headlight.model.pretrained.sandbox import try_tokenizer
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.tokenizer import CannotRead
from tests.model.common import in_short
from tests.model.pretrained.folders import write

HARMLESS = r"(☃+☃+)+y"  # on what is tried; not on thirty snowmen


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "gpt2"
    write(folder, "gpt2")
    as_it_is = '{"tokenizer_class": "PreTrainedTokenizerFast"}'  # tokenizer.json says it all
    (folder / "tokenizer_config.json").write_text(as_it_is)
    return folder


def changed(good, folder, change):
    shutil.copytree(good, folder)
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    change(backend)
    backend.save(str(folder / "tokenizer.json"))
    return folder


def split(pattern):
    def change(backend):
        first = pre_tokenizers.Split(Regex(pattern), "isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([first, backend.pre_tokenizer])

    return change


def multiplied(times, by=10):
    def change(backend):
        steps = [normalizers.Replace("a", "a" * by) for _ in range(times)]
        backend.normalizer = normalizers.Sequence(steps)

    return change


EXPLODING = {
    "a regular expression": (split("(x+x+)+y"), "it fails on a text: “Onig: Regex search"),
    "one for digits": (split(r"([0-9]+)*\."), "it fails on a text: “Onig: Regex search"),
    "a text of terabytes": (multiplied(12), r"needs more than 1\.1 GB of memory"),
    "a text of gigabytes": (multiplied(9), r"needs more than 1\.1 GB of memory"),
    "a text of kilobytes": (multiplied(4), "tokens or characters; the limit is 64 for each"),
}


@pytest.mark.parametrize("what", in_short(EXPLODING, *(EXPLODING.keys() - {"a text of gigabytes"})))
def test_it_is_refused_with_the_limit_and_this_process_is_as_before(what, good, tmp_path):
    change, sentence = EXPLODING[what]
    folder = changed(good, tmp_path / "source", change)
    process = psutil.Process()
    memory, children = process.memory_info().rss, process.children()
    with pytest.raises(CannotAdd, match=f"not a usable tokenizer: .*{sentence}"):
        add(str(folder), tmp_path / "models")
    assert not list((tmp_path / "models").iterdir())
    with pytest.raises(CannotLoad, match=sentence):
        load(folder)
    assert process.memory_info().rss - memory < 2**28
    assert process.children() == children


def slow(backend):
    """Each search takes a quarter of a second, just below the steps that the library allows."""
    backend.normalizer = normalizers.Sequence(
        [normalizers.Replace("a", "b" * 50), normalizers.Replace("b", "a" * 20 + " ")]
    )
    split("(a+a+)+y")(backend)


def test_one_that_takes_hours_ends_at_the_limit_of_time(good, tmp_path, monkeypatch):
    folder = changed(good, tmp_path / "slow", slow)
    monkeypatch.setattr(sandbox, "MOST_SECONDS", 1)
    with pytest.raises(CannotLoad, match="it needs more than 1 seconds"):
        load(folder)


def test_where_no_other_limit_can_be_set_there_is_the_clock(good, monkeypatch):
    monkeypatch.setattr(sandbox, "PATIENCE", 0.01)
    monkeypatch.setattr(sandbox, "_refused", {})
    with pytest.raises(CannotLoad, match=r"it needs more than 0\.01 seconds"):
        load(good)


def test_a_text_that_the_library_gives_up_on(good, tmp_path):
    """The tokenizer reads others, before and after."""
    tokenizer = load(changed(good, tmp_path / "later", split(HARMLESS))).tokenizer
    first = tokenizer.encode("the dog").ids
    for read in (
        tokenizer.encode,
        tokenizer.pre_tokens,
        tokenizer.word_ids,
        lambda text: tokenizer.encode_batch([text]),
    ):
        with pytest.raises(CannotRead, match=r"fails on this text: Onig: Regex search error.*\.$"):
            read("☃" * 30)
    assert tokenizer.encode("the dog").ids == first


def test_our_own_folders_are_tried_too(good, tmp_path):
    checkpoint = load("reverse")
    for name, change in (("whole", lambda backend: None), ("bad", multiplied(12))):
        save(tmp_path / name, checkpoint.model, checkpoint.preset, checkpoint.tokenizer, {})
        backend = Tokenizer.from_file(str(tmp_path / name / "tokenizer.json"))
        change(backend)
        backend.save(str(tmp_path / name / "tokenizer.json"))
    load(tmp_path / "whole")
    with pytest.raises(CannotLoad, match="of memory"):
        load(tmp_path / "bad")


def test_sentencepiece_is_tried(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(
        sys.modules["headlight.model.pretrained.tokenizers"], "try_tokenizer",
        lambda where, content, kind: tried.append((where.name, kind)),
    )  # fmt: skip
    write(tmp_path, "marian")
    load(tmp_path)
    assert tried == [("source.spm", "sentencepiece"), ("target.spm", "sentencepiece")]


def test_each_is_tried_once(good, tmp_path, monkeypatch):
    """By its content: another folder with the same one is as good."""
    calls = []
    run = sandbox.subprocess.run
    monkeypatch.setattr(sandbox, "_refused", {})
    monkeypatch.setattr(
        sandbox.subprocess, "run", lambda *args, **more: calls.append(1) or run(*args, **more)
    )
    shutil.copytree(good, tmp_path / "copy")
    for folder in (good, tmp_path / "copy", good):
        load(folder)
    assert len(calls) == 1
    load(changed(good, tmp_path / "other", split(HARMLESS)))
    assert len(calls) == 2
    load("copy")  # shipped with the program: it is ours
    assert len(calls) == 2


def test_its_process_imports_little_and_takes_no_library_from_where_it_stands(
    good, tmp_path, monkeypatch
):
    """It is started for every tokenizer; PyTorch alone would take it a second."""
    for name in ("tokenizers.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('this was run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # each import on standard error
    children, run = [], sandbox.subprocess.run

    def noted(*args, **more):
        children.append(run(*args, **more))
        return children[-1]

    monkeypatch.setattr(sandbox.subprocess, "run", noted)
    monkeypatch.setattr(sandbox, "_refused", {})
    try_tokenizer(good, (good / "tokenizer.json").read_bytes())
    (child,) = children
    lines = child.stderr.decode().splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert child.returncode == 0 and "tokenizers" in imported
    assert imported.isdisjoint({"headlight", "numpy", "torch", "transformers"})
