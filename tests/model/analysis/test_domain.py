"""Whether a sentence is unlike what a model was trained on."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headlight.model import checkpoint
from headlight.model.analysis.domain import SPLIT, SURPRISE, Domain, split_share, surprise
from headlight.model.checkpoint import SHIPPED
from headlight.model.probing.trace import trace
from headlight.model.training import describe, tasks
from tests.model.common import in_short, load, random_model

DATA = os.environ.get("HEADLIGHT_DATA")
LINES = (Path(__file__).parent / "foreign_sentences.tsv").read_text(encoding="utf-8").splitlines()
FOREIGN = [line.split("\t")[1] for line in LINES]
FALSE_ALARMS = 0.03
OTHERS = [("en-fr", 0.55), ("copy", 1), ("reverse", 1)]


def unlike(held, texts) -> list[bool]:
    """For each text, whether the card's limits exclude it."""
    domain = Domain.of_card(held.card)
    measures = describe.measures(held, texts)
    each = (dict(zip(measures, v, strict=True)) for v in zip(*measures.values(), strict=True))
    return [domain.excludes(one) for one in each]


def examples(name: str) -> list[str]:
    lines = (SHIPPED.parent / "examples" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("name", "least"),
    # What a translator of everyday sentences cannot translate is often not noticed.
    [("en-de", 0.55), ("sort", 1)] + [pytest.param(*one, marks=pytest.mark.long) for one in OTHERS],
)
def test_foreign_sentences_are_noticed(name, least):
    found = unlike(load(name), FOREIGN)
    assert len(found) == 40 and sum(found) / 40 >= least


@pytest.mark.parametrize(
    "name",
    in_short(["en-de", "en-fr", "reviews", "copy", "reverse", "sort"], "en-fr", "reviews", "copy"),
)
def test_no_example_is_called_foreign(name):
    assert not any(unlike(load(name), examples(name)))


def test_letters_models_notice_what_is_no_row_of_letters():
    rows = {"d a c": False, "A little girl": True, "the dog": True, "ab": True, "a B c": True}
    for name in ("copy", "reverse", "sort"):
        assert unlike(load(name), list(rows)) == list(rows.values())


@pytest.mark.parametrize("name", ["en-de", "sort"])
def test_a_batch_is_measured_as_the_app_measures_one(name):
    held = load(name)
    texts = [*examples(name)[:3], FOREIGN[0]]
    measures = describe.measures(held, texts)
    for i, text in enumerate(texts):
        assert measures[SPLIT][i] == split_share(held.tokenizer, text)
        one = surprise(trace(held.model, held.run(text)))
        assert measures[SURPRISE][i] == pytest.approx(one, abs=1e-4)


def test_the_limit_is_a_quantile_of_the_distances():
    values = {SPLIT: [i / 100 for i in range(100)], SURPRISE: [i / 50 for i in range(100)]}
    domain = Domain.measured("made up", values, 0.9)
    each = [dict(zip(values, v, strict=True)) for v in zip(*values.values(), strict=True)]
    assert sum(map(domain.excludes, each)) == 10
    assert domain.excludes({SPLIT: 5.0, SURPRISE: 0.0})
    assert not domain.excludes({SPLIT: -5.0, SURPRISE: -5.0})  # simpler than usual is no notice
    assert Domain.of_card(json.loads(json.dumps({"domain": domain.to_card()}))) is not None
    letters = Domain.measured("letters", {SPLIT: [0.0] * 9, SURPRISE: [1e-9] * 9}, 0.995)
    assert not letters.excludes({SPLIT: 0.0, SURPRISE: 1e-6})  # rounding is not another text
    assert letters.excludes({SPLIT: 1 / 12, SURPRISE: 1e-9})


@pytest.mark.parametrize(
    "entry",
    [None, {}, "x", {"text": "a"}, {"ranges": {"split": [0, 0]}}, {"ranges": {"x": [0, 1]}}],
)
def test_a_card_that_holds_something_else_says_nothing(entry):
    whole = {"text": "a", "ranges": {"split": [0, 1]}, "limit": 1, "share": 0.9, "examples": 2}
    assert Domain.of_card({"domain": whole}) is not None
    broken = whole | entry if isinstance(entry, dict) and "ranges" in entry else entry
    assert Domain.of_card({"domain": broken}) is None
    assert Domain.of_card({}) is None


def test_the_command_writes_the_card(tmp_path, capsys, monkeypatch):
    task, of_card = tasks.toy("copy"), tasks.of_card
    examples = task.examples()
    some = {"train": examples["train"], "val": examples["val"][:20]}
    monkeypatch.setattr(
        tasks, "of_card", lambda *card: replace(of_card(*card), examples=lambda: some)
    )
    tokenizer = task.tokenizer(examples["train"][:100])
    model = random_model("pre_norm", vocab_size=len(tokenizer))
    about = {"task": "copy", "title": "A copy"}
    checkpoint.save(tmp_path, model, "pre_norm", tokenizer, about)
    describe.main([str(tmp_path)])
    assert "lower-case letters" in capsys.readouterr().out
    held = checkpoint.load(tmp_path)
    card = held.card
    run = held.run("a b")
    means = describe.mean_outputs(held, [held.run("a b")])
    for site in model.sites():
        seen = held.trace_run(run)
        heads = seen.attention[site.kind][site.layer] @ seen.value[site.kind][site.layer]
        assert np.abs(means[site.name].numpy() - heads.mean(axis=1)).max() <= 1e-6
        assert held.means[site.name].shape == means[site.name].shape
    assert held.trace("a b", changes="all=mean").run.changes
    assert Domain.of_card(card).examples == 20 and card["title"] == "A copy"
    assert "lower-case letters" in (tmp_path / "README.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="no checkpoint"):
        describe.main([str(tmp_path / "nothing")])


@pytest.mark.long
def test_false_alarms_on_captions_that_no_training_read():
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    tests = tasks.multi30k(Path(DATA) / "multi30k").tests()
    texts = [source for pairs in tests.values() for source, _ in pairs]
    for name in ("en-de", "en-fr"):
        assert sum(unlike(load(name), texts)) / len(texts) <= FALSE_ALARMS
