"""Pairs that a model makes for the targets of its own training text."""

import dataclasses
import gzip
from collections import Counter

import pytest
import torch
from torch.testing import assert_close

from headlight.model import checkpoint, presets
from headlight.model.decoding.generate import Sampling
from headlight.model.tokenizer import Tokenizer
from headlight.model.training import back_translation, tasks, train
from headlight.model.training.back_translation import back_translated, drawn, main
from headlight.model.training.data import DataError, read_tsv

SIZES = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)
PAIRS = [(f"a dog {i}", f"ein Hund {i}") for i in range(40)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return path


@pytest.fixture
def folder(tmp_path, file):
    """An untrained checkpoint of these pairs."""
    torch.manual_seed(0)
    task = tasks.pairs(file)
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], 300)
    model = presets.build("pre_norm", vocab_size=len(tokenizer), **SIZES).eval()
    about = {"task": "pairs", "title": task.title, "data": task.data, "terms": task.terms}
    checkpoint.save(tmp_path / "model", model, "pre_norm", tokenizer, about)
    return tmp_path / "model"


def test_tokens_are_drawn_as_often_as_they_are_probable():
    logits = torch.tensor([0.5, 0.3, 0.2]).log().repeat(20_000, 1)
    for temperature, expected in ((1.0, [0.5, 0.3, 0.2]), (0.5, [25 / 38, 9 / 38, 4 / 38])):
        how = Sampling(temperature)
        counts = Counter(drawn(logits, how, torch.Generator().manual_seed(0)).tolist())
        shares = torch.tensor([counts[i] / 20_000 for i in range(3)])
        assert_close(shares, torch.tensor(expected), atol=0.02, rtol=0)


def test_a_seed_gives_the_same_pairs_again_and_another_seed_others(folder):
    held = checkpoint.load(folder)
    texts = [target for _, target in PAIRS]
    first, again, other = (back_translated(held, texts, Sampling(seed=i)) for i in (1, 1, 2))
    assert first == again != other
    assert {target for _, target in first} <= set(texts) and len(first) > 20


def test_a_tab_in_a_text_is_no_tab_between_texts(folder):
    held = checkpoint.load(folder)
    found = back_translated(held, ["ein\tHund\u2028läuft", "ein Hund", " "], Sampling())
    assert {target for _, target in found} <= {"ein Hund läuft", "ein Hund"}
    assert not any(set("\t\n\u2028") & set(text) for pair in found for text in pair)


def test_the_command_writes_pairs_that_a_training_reads(folder, file, tmp_path, capsys):
    out = tmp_path / "more.tsv"
    main([str(folder), "--data", str(file), "--out", str(out), "--samples", "2"])
    pairs, own = read_tsv(out), tasks.pairs(file)
    assert f"{len(pairs)} pairs of 38 texts" in capsys.readouterr().out
    assert len(pairs) == len(set(pairs))
    # The texts that were read are those of training, none of validation.
    assert {text for _, text in pairs} <= {source for source, _ in own.examples()["train"]}

    task = dataclasses.replace(tasks.with_more(own, out), sizes=SIZES | {"dropout": 0.1})
    recipe = train.Recipe(epochs=1, max_tokens=512, warmup=2)
    run = train.Training(task, recipe, tmp_path / "run")
    assert len(run.pairs["train"]) == 38 + len(pairs) and len(run.pairs["val"]) == 2
    run.train()
    (row,) = checkpoint.load(tmp_path / "run").card["recipes"]
    assert row["also"] == "more.tsv"


def test_texts_without_a_translation_are_read_once_each(folder, file, tmp_path, capsys):
    plain, packed = tmp_path / "plain.de", tmp_path / "packed.de.gz"
    plain.write_text("ein Hund 1\n\nein Hut\n")
    packed.write_bytes(gzip.compress(b"ein Hut \nein Hund 2\n"))
    out = tmp_path / "more.tsv"
    arguments = [str(folder), "--data", str(file), "--out", str(out), "--texts"]
    main([*arguments, str(plain), str(packed)])
    assert "of 3 texts" in capsys.readouterr().out
    found = {text for _, text in read_tsv(out)}
    assert found and found <= {"ein Hund 1", "ein Hut", "ein Hund 2"}
    with pytest.raises(SystemExit, match="no file"):
        main([*arguments, str(tmp_path / "nothing.de")])


def test_a_model_that_translates_nothing_is_one_sentence(folder, file, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="does not"):
        tasks.with_more(tasks.task("copy"), file)
    monkeypatch.setattr(back_translation.tasks, "task", lambda *_: tasks.toy("copy"))
    with pytest.raises(SystemExit, match="does not translate"):
        main([str(folder), "--data", str(file), "--out", str(tmp_path / "more.tsv")])
    with pytest.raises(SystemExit, match="no checkpoint"):
        main([str(tmp_path / "nothing"), "--out", str(tmp_path / "more.tsv")])
