"""A file of a survey that anyone may have written is shown, or refused in a sentence that names the
file and the fault; the pages work on without it."""

import json
import random
import shutil

import pyarrow as pa
import pytest
from pyarrow import parquet

from headlight.app.results.head_table import head_table, surveyed_on
from headlight.app.state.options import SURVEY, THIS_SENTENCE
from headlight.app.text import head_card
from headlight.model.analysis.head_metrics import measured
from headlight.model.checkpoint import SHIPPED, load
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.sites import Place
from headlight.model.surveys.clearest import surveyed_habit
from headlight.model.surveys.survey import CARD, FILE, Survey
from tests.app.common import unfold
from tests.conftest import long_but

MUTATIONS = 150
ODD = [None, True, -1, 0, 1.5, 10**9, 1e300, float("nan"), float("inf"), "", "head", "x" * 1000,
       [], [None], {"a": 1}, b"\xff"]  # fmt: skip


@pytest.fixture(scope="module")
def copy():
    return load("copy")


@pytest.fixture(scope="module")
def whole():
    """Rows and card."""
    survey = Survey.load(SHIPPED / "copy")
    return list(survey.rows), dict(survey.card)


def write(file, rows, card):
    """With the columns that the rows have, of whatever type they are."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, UnicodeError):  # of several types
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    table = pa.table(columns)
    parquet.write_table(table.replace_schema_metadata({CARD: json.dumps(card).encode()}), file)


def replaced(rows, number, name, value):
    return [row | {name: value} if i == number else row for i, row in enumerate(rows)]


def without(name, value):
    return lambda rows, card: ([row for row in rows if row[name] != value], card)


def show(survey, checkpoint, trace):
    """Everything that is told of a survey."""
    kinds = survey.measured(checkpoint.model.sites())
    head_table(kinds, trace, survey=survey)
    texts = [surveyed_on(survey, True)]
    for site in checkpoint.model.sites():
        for head in range(site.n_heads):
            place = Place(site.kind, site.layer, head)
            surveyed_habit(survey, *place)
            texts.append(head_card.in_all_sentences(survey, place))
            texts += head_card.importance(survey, place)
    assert all(len(text) < 1000 for text in texts)


def test_mutated_files_are_shown_or_refused_in_a_sentence(copy, whole, tmp_path):
    chance, (rows, card), refused = random.Random(0), whole, 0
    trace, file = copy.trace("a b c"), tmp_path / FILE
    assert {kind: heads.numbers["entropy"].shape for kind, heads in measured(trace).items()}

    def mutated():
        number, name = chance.randrange(len(rows)), chance.choice([*rows[0]])
        match chance.randrange(6):
            case 0 | 1:
                return replaced(rows, number, name, chance.choice(ODD)), card
            case 2:
                return [row | {name: chance.choice(ODD)} for row in rows], card
            case 3:
                return rows[: chance.randrange(len(rows))], card
            case 4:
                return chance.sample(rows, chance.randrange(len(rows) + 1)) + rows[:number], card
            case 5:
                key = chance.choice(["score", "sentences", "parameters", "data", "test"])
                odd = [value for value in ODD if not isinstance(value, bytes)]
                return rows, card | {key: chance.choice([*odd, "bleu", "loss", 3, [card]])}

    for _ in range(MUTATIONS):
        write(file, *mutated())
        try:
            survey = Survey.load(file)
        except CannotLoad as error:
            said, refused = str(error), refused + 1
            assert said.startswith(f"{file} is not a usable survey: ") and said[-1] == "."
            assert len(said) < len(str(file)) + 350 and "\n" not in said
        else:
            if survey.covers(copy.model.sites()):
                show(survey, copy, trace)
    assert MUTATIONS / 2 < refused < MUTATIONS


FAULTS = {  # what is wrong → rows and card of it, and what is said
    "score": (lambda rows, card: (rows, card | {"score": "beauty"}), "“beauty” and not one of"),
    "sentences": (lambda rows, card: (rows, card | {"sentences": "many"}), "“sentences” of its"),
    "fewer rows": (without("measure", "loss"), "encoder 1.1 has no row of “loss”"),
    "no number": (
        lambda rows, card: (replaced(rows, 5, "value", float("nan")), card),
        "in its row 6, “value” is not a finite number",
    ),
    "no metrics": (without("measure", "distance"), "of what encoder heads attend to are missing"),
    "a head too few": (without("head", 2), "with other heads"),
    "markdown": (lambda rows, card: (rows, card | {"score": "[a](http://x.example)"}), "score"),
}


@pytest.fixture
def folder(models):
    """A model of one's own with its survey."""
    folder = models / "copied"
    yield shutil.copytree(SHIPPED / "copy", folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("fault", long_but(["score", "markdown"], FAULTS))
def test_pages_say_it_and_work_on_without(folder, page, whole, fault):
    make, why = FAULTS[fault]
    write(folder / FILE, *make(*whole))
    page.query_params.update(model="copied", source="a b c")
    page.run()
    assert not page.exception and not page.error
    unfold(page, "all_heads")
    assert not page.exception and not page.error
    assert page.selectbox(key="measured_on").value == THIS_SENTENCE
    assert len(page.dataframe) == 1
    (info,) = page.info
    shown = info.value.replace("\\", "")
    assert why in shown and "survey" in shown and "](" not in info.value
    page.selectbox(key="measured_on").set_value(SURVEY).run()
    assert not page.exception and page.info[0].value == info.value
