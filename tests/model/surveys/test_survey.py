"""The survey: its table out of numbers one can foresee, its errors, and the command."""

import itertools
import os
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from pyarrow import parquet

from headlight.model.analysis import head_metrics
from headlight.model.analysis.statistics import holm, randomisation_test, resamples
from headlight.model.checkpoint import SHIPPED
from headlight.model.probing.changes import parse
from headlight.model.surveys import survey_command, survey_work
from headlight.model.surveys.importance import (
    DRAWS,
    Example,
    Unit,
    examples_of,
    losses,
    quality,
)
from headlight.model.surveys.sentences import Line
from headlight.model.surveys.survey import SURVEY_COLUMNS, SURVEY_RULES, Survey
from headlight.model.surveys.survey_table import (
    baseline_rows,
    exchanges,
    row,
)
from tests.model.surveys.test_trace_command import python

PARTS = 3 + 12 + 10 + 4  # counts, trust, the model as it is; heads, sublayers, layers


def losses_of(chance: np.random.Generator, effects: np.ndarray, n: int) -> tuple:
    """Loss and tokens of n sentences, plain and with each part off, which costs so many nats a
    sentence: (sentence, 2), (part, sentence, 2)."""
    tokens = chance.integers(5, 25, n).astype(float)
    shared = chance.gamma(2, 1, n) * tokens
    loss = shared + chance.normal(0, 0.3, (1 + len(effects), n)) * tokens
    loss[1:] += effects[:, None]
    plain, *without = np.stack([loss, np.broadcast_to(tokens, loss.shape)], axis=-1)
    return plain, np.array(without)


def mean_loss(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def test_a_head_is_needed_where_each_replacement_costs_more_than_the_control():
    """Costs one can foresee: what differs by nothing but chance is not beyond the control."""
    chance, n = np.random.default_rng(3), 200
    costs = {  # by head: off, its mean, other texts, the control
        "all": (4.0, 4.0, 5.0, 1.0), "other texts": (1.0, 1.0, 5.0, 1.0),
        "off": (4.0, 1.0, 1.0, 1.0),
        "none": (3.0, 3.0, 3.0, 3.0), "better": (-4.0, -4.0, -4.0, 0.0),
    }  # fmt: skip
    plain, _ = losses_of(chance, np.zeros(1), n)
    numbers = {"plain": {"loss": plain}}
    for i, of_head in enumerate(costs.values()):
        noise = chance.normal(0, 0.5, (4, n))
        numbers[str(i)] = {
            name: plain + np.stack([cost + error, np.zeros(n)], axis=-1)
            for name, cost, error in zip(("loss", "mean", "resample", "random"), of_head, noise,
                                         strict=True)
        }  # fmt: skip
    plan = SimpleNamespace(
        examples=range(n), units=[Unit("head", "cross", 0, i, ()) for i in range(len(costs))]
    )
    rows = baseline_rows(plan, numbers, resamples(n, 200), seed=0)
    survey = Survey(tuple(rows), {})
    needed = [survey.needed("cross", 0, i) for i in range(len(costs))]
    assert needed == [True, False, False, False, False]
    beyond = {"zero": False, "mean": False, "resample": True}
    assert survey.costly("cross", 0, 1) == beyond and not any(survey.costly("cross", 0, 3).values())
    per_token = (numbers["0"]["resample"] - plain)[:, 0].sum() / plain[:, 1].sum()
    found = survey.head("cross", 0, 0)
    assert found["resample"]["value"] == pytest.approx(per_token)
    assert found["resample − random"]["value"] == pytest.approx(
        found["resample"]["value"] - found["random"]["value"]
    )
    assert found["resample"]["low"] < per_token < found["resample"]["high"]


@pytest.mark.parametrize("effect", [0.0, 1.5])
def test_its_p_values_are_those_of_all_exchanges(effect):
    """Of ten sentences all 1,024, counted."""
    plain, without = losses_of(np.random.default_rng(9), np.array([effect, 0.0]), 10)
    value = np.abs(mean_loss(without.sum(1)) - mean_loss(plain.sum(0)))
    exact = np.zeros(2)
    for choice in itertools.product([False, True], repeat=10):
        swapped = np.array(choice)[:, None]
        for i, other in enumerate(without):
            one, two = np.where(swapped, other, plain), np.where(swapped, plain, other)
            exact[i] += abs(mean_loss(two.sum(0)) - mean_loss(one.sum(0))) >= value[i] - 1e-12
    found = randomisation_test(plain, without, mean_loss, 40_000)
    assert found == pytest.approx(exact / 1024, abs=0.01)


def test_resamples_and_holm_by_hand():
    plain, without = losses_of(np.random.default_rng(9), np.array([50.0]), 100)
    assert randomisation_test(plain, without, mean_loss, 99).tolist() == [0.01]  # none is as far
    assert exchanges([Unit("head", "cross", 0, i, ()) for i in range(4)]) == 800
    assert holm(np.array([0.01, 0.04, 0.03, 0.5])).tolist() == [0.04, 0.09, 0.09, 0.5]
    drawn = resamples(7, 50, seed=3)
    assert (drawn.sum(axis=1) == 7).all() and drawn.std() > 0
    assert np.array_equal(drawn, resamples(7, 50, seed=3))


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Arguments of a small survey."""
    file, chance = tmp_path_factory.mktemp("lines") / "lines.tsv", random.Random(0)
    texts = [" ".join(chance.sample("abcdefghijkl", chance.randint(2, 12))) for _ in range(16)]
    file.write_text("\n".join(f"{text}\t{text}" for text in texts))
    return ["copy", "--file", str(file), "--aligned", "6", "--samples", "60"]


@pytest.fixture(scope="module")
def copy_survey(some, tmp_path_factory):
    out = tmp_path_factory.mktemp("survey") / "one.parquet"
    survey_command.main([*some, "--out", str(out)])
    return out


def test_the_table_says_what_it_says_of_every_head(copy_survey):
    survey = Survey.load(copy_survey)
    assert list(copy_survey.parent.iterdir()) == [copy_survey]  # no parts are left
    assert all(list(row) == list(SURVEY_COLUMNS) for row in survey.rows)
    assert survey.card["model"] == "copy" and survey.card["sentences"] == 16
    heads = {(r["kind"], r["layer"], r["head"]) for r in survey.rows if r["part"] == "head"}
    assert len(heads) == 12 and len(survey.of("loss", "sublayer")) == 10
    assert len(survey.of("exact", "layer")) == 4 and len(survey.of("loss", "model")) == 1
    for one in survey.rows:
        if one["low"] is not None:
            assert one["low"] <= one["value"] + 1e-9 and one["value"] <= one["high"] + 1e-9
        for number in one["best"] or ():
            assert survey.card["texts"][str(number)][0]
    for kind, layer, head in heads:
        measures = survey.head(kind, layer - 1, head - 1)
        for name in survey.names(kind, layer - 1, head - 1):
            rule = SURVEY_RULES[name.name]
            assert measures[rule.measure]["value"] >= rule.least
            assert name.sure == (measures[rule.measure]["low"] >= rule.least)
    rho = {r["measure"]: r["value"] for r in survey.rows if r["measure"].startswith("ρ")}
    assert len(rho) == 10 and all(-1 <= value <= 1 for value in rho.values())
    assert rho["ρ attention, removal"] > 0.3  # one source letter matters, and attention is on it
    names = {n.name for n in survey.names("cross", 1, 1)}
    assert {"positional", "alignment"} <= names  # it copies: a diagonal
    assert survey.head("cross", 1, 1)["positional"]["at"] == 0
    assert survey.head("cross", 1, 1)["alignment"]["at"] == 1  # it reads one before


def test_what_was_stopped_goes_on(copy_survey, some, tmp_path, monkeypatch, capsys):
    out, done, stopped_at = tmp_path / "stopped.parquet", [], 9

    def count(plan, part, of=survey_work.Plan.done):
        if len(done) == stopped_at:
            raise KeyboardInterrupt
        done.append(part)
        return of(plan, part)

    monkeypatch.setattr(survey_work.Plan, "done", count)
    with pytest.raises(SystemExit):
        survey_command.main([*some, "--out", str(out)])
    assert capsys.readouterr().err == "Stopped. The same command continues from here.\n"
    stopped_at = -1
    survey_command.main([*some, "--out", str(out)])
    assert len(done) == len(set(done)) == PARTS  # none twice
    assert out.read_bytes() == copy_survey.read_bytes()
    assert list(tmp_path.iterdir()) == [out]


LAUNCH = ["-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no",
          "--dynamo_backend", "no", "--multi_gpu", "--num_processes", "2"]  # fmt: skip


@pytest.mark.long
def test_two_processes_give_the_same_table(copy_survey, some, tmp_path):
    out = tmp_path / "two.parquet"
    done = python(*LAUNCH, "-m", "headlight", "survey", *some, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == copy_survey.read_bytes()


def test_parts_are_dealt_out_and_each_is_done_once(monkeypatch, tmp_path):
    """Of three processes, without starting them."""
    checkpoint = survey_command.opened("copy", "cpu")
    examples = tuple(Example(i, "a", ([30] * i + [2], [1]), None, "a") for i in range(1, 8))
    plan = survey_work.Plan(checkpoint, examples, "exact", 3)
    monkeypatch.setattr(survey_work, "CHUNK", 2)
    done = []
    monkeypatch.setattr(survey_work.Plan, "done", lambda plan, part: done.append(part) or {})
    for index in range(3):
        process = survey_work.Processes(index, 3, "cpu")
        monkeypatch.setattr(survey_work.Processes, "gather", lambda self, share: None)
        survey_work.work(plan, tmp_path, process)  # which others are writing to
    assert sorted(done) == sorted(plan.parts) and len(plan.chunks) == 4
    assert sorted(i for chunk in plan.chunks for i in chunk) == list(range(7))


def test_another_plan_takes_no_part_of_it_over():
    checkpoint = survey_command.opened("copy", "cpu")
    example = Example(1, "a", ([30, 2], [1, 30]), None, "a")
    plan = survey_work.Plan(checkpoint, (example,), "exact", 3)
    others = [
        replace(plan, examples=(replace(example, reference="b"),)),
        replace(plan, measure=""),
        replace(plan, n_aligned=2),
        replace(plan, checkpoint=survey_command.opened("reverse", "cpu")),
    ]
    assert len({one.fingerprint for one in (plan, *others)}) == 5
    assert plan.fingerprint == replace(plan).fingerprint


def test_of_a_file_and_what_cannot_be_surveyed(tmp_path, monkeypatch, capsys):
    file, out = tmp_path / "lines.txt", tmp_path / "out.parquet"
    file.write_text("a b c\tc b a\n\nb\tb\n")
    given = ["--file", str(file), "--out", str(out), "--samples", "10"]
    with monkeypatch.context() as patch:  # parts that cannot be removed do no harm
        patch.setattr(os, "rmdir", Mock(side_effect=PermissionError))
        survey_command.main(["reverse", *given])
    (parts,) = tmp_path.glob(".*")
    parts.rmdir()
    survey = Survey.load(out)
    assert survey.card["sentences"] == 2 and survey.card["score"] == "exact"
    file.write_text("good\nbad , very bad film\n")
    survey_command.main(["reviews", *given])
    survey = Survey.load(out)
    assert survey.card["score"] == "" and not survey.of("accuracy") and survey.of("loss")
    capsys.readouterr()
    for text, said in (
        ("good\tgood\nbad\tnegative", "'good' is not one of this model's classes"),
        ("good\tpositive", "one sentence is not enough"),
    ):
        file.write_text(text)
        with pytest.raises(SystemExit):
            survey_command.main(["reviews", *given])
        assert said in (error := capsys.readouterr().err) and error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"lines.txt", "out.parquet"}


def test_an_encoder_that_is_read_once_changes_nothing():
    """To the last digit, and it is the decoder's heads for which it is."""
    checkpoint = survey_command.opened("reverse", "cpu")
    lines = [Line(i, text, text[::-1]) for i, text in enumerate(("a b c", "d e", "f g h i"), 1)]
    plan = survey_work.Plan(checkpoint, tuple(examples_of(checkpoint, lines)), "exact", 0)
    times = []
    checkpoint.model.encoder.layers[0].register_forward_pre_hook(lambda *_: times.append(1))
    for i, unit in enumerate(plan.units):
        times.clear()
        found = plan.done((0, str(i)))
        again = len(times)
        expected = losses(checkpoint, plan.examples, unit.changes)
        assert np.array_equal(found["loss"], expected[plan.chunks[0]])
        right = quality(checkpoint, plan.examples, "exact", unit.changes)
        assert np.array_equal(found["exact"], right[plan.chunks[0]])
        if not unit.kind.startswith("encoder") and i > 4:
            assert again == 0
        elif unit.kind.startswith("encoder"):
            assert again == 2 + (1 + 2 * DRAWS) * (unit.part == "head")
    assert survey_work.changes_target_alone(checkpoint.model, parse("cross.1=off; decoder=skip"))
    assert not survey_work.changes_target_alone(checkpoint.model, parse("all.1=off"))


def test_its_metrics_are_those_of_all_rows_together(copy_survey, some):
    survey, copy = Survey.load(copy_survey), survey_command.opened("copy", "cpu")
    texts = [line.split("\t") for line in Path(some[2]).read_text().splitlines()]
    each = [head_metrics.measured(copy.trace(*pair)) for pair in texts]
    found = survey.measured(copy.model.sites())
    for kind, measured in found.items():
        expected = head_metrics.over_sentences([one[kind] for one in each])
        for name, rows in expected.rows.items():
            if rows.any():
                assert np.array_equal(measured.rows[name], rows)
                assert np.allclose(measured.numbers[name], expected.numbers[name], atol=1e-6)
                assert np.allclose(measured.uniform[name], expected.uniform[name], atol=1e-6)
        for name, scores in expected.scores.items():
            if name in measured.scores:
                assert np.allclose(measured.scores[name], scores, atol=1e-5, equal_nan=True)
    assert set(found) == {"encoder", "decoder", "cross"} and survey.covers(copy.model.sites())
    assert not survey.covers(survey_command.opened("en-de", "cpu").model.sites())


@pytest.mark.parametrize("broken", ["bytes", "columns", "card"])
def test_what_is_no_survey_is_refused(copy_survey, tmp_path, broken):
    file, table = tmp_path / "survey.parquet", parquet.read_table(copy_survey)
    if broken == "bytes":
        file.write_bytes(b"no table")
    else:
        table = table.drop(["p_holm"]) if broken == "columns" else table
        card = {"headlight": "[]"} if broken == "card" else table.schema.metadata
        parquet.write_table(table.replace_schema_metadata(card), file)
    with pytest.raises(
        ValueError, match={"bytes": "Parquet", "columns": "p_holm", "card": "card"}[broken]
    ):
        Survey.load(file)


def test_numbers_that_are_none_are_missing():
    one = row("head", "loss", value=np.float64(1.5), p=np.nan, layer=np.int64(2))
    assert one["value"] == 1.5 and one["p"] is None and one["layer"] == 2 and one["best"] is None
    assert Survey.load(SHIPPED / "nowhere") is None


def test_a_survey_that_is_too_large_is_not_unpacked(copy_survey, monkeypatch):
    assert Survey.load(copy_survey)
    monkeypatch.setattr("headlight.model.surveys.survey.MAX_SURVEY_ROWS", 10)
    monkeypatch.setattr("pyarrow.parquet.read_table", None)
    with pytest.raises(ValueError, match="it is too large"):
        Survey.load(copy_survey)
