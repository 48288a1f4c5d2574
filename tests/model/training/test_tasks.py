"""Tasks: their examples, and that no line of a test set is seen by training."""

import dataclasses
import functools
import gzip
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from headlight.model.tokenizer import SPECIAL
from headlight.model.training import tasks, train
from headlight.model.training.data import DataError
from headlight.model.transformer import Config
from tests.model.common import in_short

WORDS = ["ein", "der", "hund", "mann", "frau", "läuft", "springt", "sitzt", "rot", "blau"]


def sentences(count, extra=""):
    return [f"{WORDS[i % 10]} {WORDS[i // 10 % 10]} {WORDS[i // 3 % 10]} {extra}".strip()
            for i in range(count)]  # fmt: skip


@pytest.fixture
def captions(tmp_path):
    """A Multi30K of our own; its test files hold a word that stands nowhere else."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    splits = {"train": 60, "val": 12, "test_2016_flickr": 20, "test_2017_flickr": 5,
              "test_2017_mscoco": 5}  # fmt: skip
    for split, count in splits.items():
        extra = "zyzzyva" if split.startswith("test") else ""
        for side in ("en", "de"):
            text = "\n".join(sentences(count, extra)) + "\n"
            (folder / f"{split}.{side}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.fixture
def snippets(tmp_path):
    """An rt-polarity of our own; every tenth line holds a word that stands nowhere else."""
    folder = tmp_path / "reviews"
    folder.mkdir()
    for name in ("neg", "pos"):
        lines = sentences(200, name)
        lines[9::10] = [f"{line} zyzzyva" for line in lines[9::10]]
        (folder / f"rt-polarity.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@functools.cache
def watch() -> list[str]:
    """All files opened from now on: an audit hook stays for the life of the process."""
    files = []

    def note(event, arguments):
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            files.append(os.fspath(arguments[0]))

    sys.addaudithook(note)
    return files


@pytest.fixture
def opened():
    """The files opened while the test runs."""
    files = watch()
    files.clear()
    return files


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """The curve is not drawn, which takes longer than the training."""
    monkeypatch.setattr(train, "curve", lambda *rows: "<svg/>")


@functools.cache
def toy_examples(name):
    return tasks.toy(name).examples()


def run_training(task, folder):
    recipe = train.Recipe(epochs=2, max_tokens=300, warmup=5)
    task = dataclasses.replace(task, sizes=task.sizes | dict(d_model=16, d_ff=16), vocab_size=300)
    run = train.Training(task, recipe, folder, cpu=True)
    run.train()
    return run


def tokens(run):
    return {run.tokenizer.encoding([i]).tokens[0] for i in range(len(SPECIAL), len(run.tokenizer))}


def test_training_opens_no_test_file(captions, tmp_path, opened):
    run_training(tasks.multi30k(captions), tmp_path / "out")
    read = {Path(file).name for file in opened if str(captions) in file}
    assert read == {"train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz"}


def test_training_on_reviews_sees_no_test_line(snippets, tmp_path):
    """Neither the tokenizer, nor the steps, nor the choice of weights."""
    task = tasks.reviews(snippets)
    examples = task.examples()
    more = examples | {"val": [*examples["val"], *[("qqqqqqq", "positive")] * 50]}
    run = run_training(dataclasses.replace(task, examples=lambda: more), tmp_path / "out")
    assert not any("zyz" in token or "qq" in token for token in tokens(run))  # of training alone
    for split in tasks.SPLITS:
        for src, _ in run.pairs[split]:
            assert "zyzzyva" not in run.tokenizer.decode(src)
    (test,) = task.tests().values()
    assert len(test) == 40
    assert all("zyzzyva" in text for text, _ in test)


def test_reviews_are_split_by_line(snippets):
    found = tasks.reviews(snippets)
    counts = {split: len(examples) for split, examples in found.examples().items()}
    assert counts == {"train": 2 * 170, "val": 2 * 10}
    assert Counter(name for _, name in found.tests()["every tenth line"]) == {
        "negative": 20, "positive": 20,
    }  # fmt: skip


@pytest.mark.parametrize("name", in_short(tasks.TOYS, "sort"))
def test_toys(name):
    task = tasks.toy(name)
    examples, tests = toy_examples(name), task.tests()["unseen"]
    assert len(tests) == len({source for source, _ in tests}) == 1000
    seen = {source for split in examples.values() for source, _ in split}
    assert not seen & {source for source, _ in tests}
    for source, target in tests[:50]:
        letters = source.split()
        expected = {"copy": letters, "reverse": letters[::-1], "sort": sorted(letters)}[name]
        assert target.split() == expected
    assert task.examples() == examples


@pytest.mark.parametrize("direction", [["en", "de"], ["de", "en"]])
def test_a_card_says_which_way_a_model_translates(captions, direction):
    card = {"task": "multi30k", "direction": direction}
    assert tasks.of_card(card, captions).direction == tuple(direction)
    del card["direction"]  # as in cards of before there was one
    assert tasks.of_card(card, captions).direction == ("en", "de")
    there, back = (tasks.multi30k(captions, reverse).examples()["train"] for reverse in (0, 1))
    assert [(b, a) for a, b in there] == back
    with pytest.raises(DataError, match="no task 'chess'"):
        tasks.task("chess")
    with pytest.raises(DataError, match="needs a file"):
        tasks.task("pairs")


def test_pairs_are_split_without_overlap(tmp_path):
    file = tmp_path / "mine.tsv"
    lines = [f"{a}\t{b}" for a, b in zip(sentences(90), sentences(90)[::-1], strict=True)]
    file.write_text("\n".join(lines + lines), encoding="utf-8")
    examples = tasks.pairs(file).examples()
    assert len(examples["train"]) + len(examples["val"]) == len(set(lines))
    assert not set(examples["train"]) & set(examples["val"])


def test_encoding_of_examples(snippets):
    task = tasks.reviews(snippets)
    tokenizer = task.tokenizer(task.examples()["train"])
    from headlight.model.variants import ClassifierConfig

    config = ClassifierConfig(vocab_size=len(tokenizer), max_length=8)
    ((src, tgt),) = task.encode(tokenizer, [("ein hund", "positive")], config)
    assert tokenizer.decode(src) == "ein hund"
    assert src[-1] == config.eos_id
    assert tgt == [config.bos_id, 1]
    with pytest.raises(DataError, match="reads at most 8"):
        task.encode(tokenizer, [("ein " * 20, "negative")], config)


def test_a_model_without_the_tokens_of_a_target_cannot_learn_to_write_one(snippets, tokenizer):
    for tokens in (dict(bos_id=-1), dict(eos_id=-1)):
        config = Config(len(tokenizer), **tokens)
        with pytest.raises(DataError, match=r"needs a start token .* -1"):
            tasks.toy("copy").encode(tokenizer, [("a b", "a b")], config)
        ((src, _),) = tasks.reviews(snippets).encode(tokenizer, [("a b", "positive")], config)
        assert src == [*tokenizer.encode("a b").ids, *[2] * (config.eos_id == 2)]
