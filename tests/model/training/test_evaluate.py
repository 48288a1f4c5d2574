"""Scores, and the model card they are written into."""

import dataclasses
import json
import math
import os
import sys
from pathlib import Path

import pytest
import torch

from headlight.model import card, checkpoint, presets
from headlight.model.masks import Masks
from headlight.model.tokenizer import Tokenizer
from headlight.model.training import evaluate, tasks
from tests.devices import here
from tests.model.common import load, random_model

DATA = os.environ.get("HEADLIGHT_DATA")
SIZES = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)


@pytest.fixture
def folder(tmp_path):
    """An untrained checkpoint of the toy task `copy`."""
    torch.manual_seed(0)
    task = tasks.toy("copy")
    tokenizer = Tokenizer.train(["a b c d"], 270)
    model = presets.build("pre_norm", vocab_size=len(tokenizer), **SIZES).eval()
    about = {"task": "copy", "title": task.title, "data": task.data, "terms": task.terms}
    checkpoint.save(tmp_path, model, "pre_norm", tokenizer, about)
    return tmp_path


def test_perplexity_is_that_of_each_token_after_those_before():
    model = random_model("decoder_only").double()
    texts = [[1, 5, 9, 2], [1, 7, 7, 8, 4, 2], [1, 2]]
    losses = [
        -model(ids := here(torch.tensor([text[:i]])), *Masks().build(model, ids))[0, -1]
        .log_softmax(dim=-1)[text[i]]
        .item()
        for text in texts
        for i in range(1, len(text))
    ]
    found = evaluate.perplexity(model, [(text, text) for text in texts], most=8)
    assert found["perplexity"] == pytest.approx(math.exp(sum(losses) / len(losses)))
    assert 0 < found["interval"] < found["perplexity"]
    one = evaluate.perplexity(model, [(texts[0], texts[0])] * 3)
    assert one["interval"] == pytest.approx(0)  # every other test set is the same


def test_any_of_several_references_will_do():
    """And the interval is that of other test sets drawn from this one."""
    from sacrebleu.metrics import BLEU

    texts = ["Er läuft sehr schnell weg .", "Wir sind hier ganz allein .", "Das da ist mein Hund ."]
    others = ["Er rennt sehr schnell weg .", "Dort ist mein Hund !"]
    references = [[others[0], texts[0]], [texts[1]], [texts[2], others[1]]]
    figures = evaluate.bleu_and_chrf(texts, references)
    assert all(figures[name] == pytest.approx(100) for name in ("bleu_lc", "bleu", "chrf"))
    assert figures["interval"] == pytest.approx(0) and "case:lc" in figures["signature"]["bleu_lc"]
    lowered = evaluate.bleu_and_chrf([text.lower() for text in texts], references)
    assert lowered["bleu_lc"] == pytest.approx(100) and lowered["bleu"] < 90
    worse = evaluate.bleu_and_chrf([others[0], *texts[1:]], [[text] for text in texts])
    theirs = BLEU(lowercase=True).corpus_score([others[0], *texts[1:]], [texts])
    assert worse["bleu_lc"] == pytest.approx(theirs.score)
    assert worse["interval"] > 1


def test_a_source_with_several_translations_is_scored_once(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(evaluate, "translate", lambda _, texts, beam: asked.extend(texts) or texts)
    task = dataclasses.replace(tasks.toy("copy"), score="bleu")
    pairs = [("a b c d", "x"), ("a b c d", "a b c d"), ("d c b a", "d c b a")]
    figures = evaluate.evaluate(load(folder), task, pairs)
    assert asked == ["a b c d", "d c b a"]
    assert figures["bleu_lc"] == pytest.approx(100)


def test_translations_keep_their_order(folder):
    held = load(folder)
    texts = ["a b c d e f", "a", "c a b", "b"] * 3
    alone = [held.translate(text).text for text in texts]
    found = evaluate.translate(held, texts)
    assert [text[:20] for text in found] == [text[:20] for text in alone]


def test_exact_counts_whole_answers(folder, monkeypatch):
    held = load(folder)
    monkeypatch.setattr(evaluate, "translate", lambda held, texts, beam: ["a b", "b", "c"])
    examples = [("a b", "a b"), ("b a", "b a"), ("c", "c")]
    found = evaluate.evaluate(held, tasks.toy("copy"), examples)
    assert found == {"decode": "greedy", "exact": pytest.approx(200 / 3), "examples": 3}


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["evaluate", *map(str, arguments)])
    evaluate.main()


def test_command_prints_json_and_writes_the_card(folder, monkeypatch, capsys):
    task = tasks.toy("copy")
    few = dataclasses.replace(task, tests=lambda: {"unseen": task.tests()["unseen"][:5]})
    monkeypatch.setattr(tasks, "task", lambda *arguments: few)
    weights = (folder / "model.safetensors").read_bytes()
    for arguments in ((), ("--beam", 2), ("--beam", 2)):
        run(monkeypatch, folder, "--json", *arguments)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["decode"] for line in lines] == ["greedy", "beam 2", "beam 2"]
    assert checkpoint.load(folder).card["scores"] == lines[:2]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "| unseen | greedy |" in text
    assert "| unseen | beam 2 |" in text
    assert "parameters" in text
    assert task.data in text
    assert task.terms in text
    assert (folder / "model.safetensors").read_bytes() == weights


def test_a_card_without_a_task_is_one_sentence(folder, monkeypatch):
    checkpoint.write_card(folder, {})
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, folder)
    assert "no task None" in str(caught.value)


def test_headline():
    assert card.headline({}) == "not evaluated"
    scores = [
        {"set": "first", "decode": "greedy", "bleu_lc": 30.04, "bleu": 29.0},
        {"set": "second", "decode": "greedy", "bleu_lc": 50.0, "bleu": 49.0},
        {"set": "first", "decode": "beam 5", "bleu_lc": 31.26, "bleu": 30.0},
    ]
    assert card.headline({"scores": scores}) == "31.3 BLEU, lowercased (beam 5)"
    exact = {"set": "unseen", "decode": "greedy", "exact": 100.0, "examples": 1000}
    assert card.headline({"scores": [exact]}) == "100.0% exact (greedy)"


@pytest.mark.parametrize("tokens", [{}, dict(pad_id=-1), dict(pad_id=-1, eos_id=-1)], ids=str)
def test_a_classifier_answers_with_probabilities(tokenizer, tokens):
    model = random_model("bloem", vocab_size=len(tokenizer), **tokens)
    held = checkpoint.Checkpoint(model, tokenizer, {"classes": list(tasks.CLASSES)}, "bloem")
    texts = ["the dog", "a", "the dog and the cat", "a dog"]
    found = [held.classify(text) for text in texts]
    assert all(sum(p.values()) == pytest.approx(1) for p in found)
    assert all(tuple(p) == tasks.CLASSES for p in found)
    # In a batch the shorter are padded: that must change nothing.
    assert evaluate.classify(held, texts) == [max(p, key=p.get) for p in found]
    assert held.translate("good").ids == ()
    trace = held.trace("the dog")
    assert set(trace.attention) == {"encoder"} and trace.logits.shape == (1, 2)


FOLDERS = {"en-de": ".", "en-fr": ".", "english": ".", "reviews": "rt-polarity"}  # task → its data
WITHIN = 0.3  # another processor may choose another token where two are as good


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(folder.name for folder in checkpoint.SHIPPED.iterdir()))
def test_shipped_scores_are_those_of_the_card(name):
    held = load(name)
    where = FOLDERS.get(held.card["task"])
    if where and not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    task = tasks.task(held.card["task"], Path(DATA) / where if where else None)
    assert held.card["scores"]
    for score in held.card["scores"]:
        way, _, beam = score["decode"].partition(" ")
        beam = int(beam) if way == "beam" else 1
        found = evaluate.evaluate(held, task, task.tests()[score["set"]], beam=beam)
        assert found["decode"] == score["decode"]
        for measure in {"bleu_lc", "bleu", "chrf", "accuracy", "exact", "perplexity"} & set(score):
            assert found[measure] == pytest.approx(score[measure], abs=WITHIN), score["set"]
