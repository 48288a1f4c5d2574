"""What the README names exists, and so do the tests that SECURITY.md names."""

import doctest
import inspect
import re

import pytest

import headlight
from headlight.model.checkpoint import SHIPPED
from headlight.model.presets import PRESETS
from headlight.model.tokenizer import Encoding
from tests import documentation
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_is_offered_is_there_and_is_what_the_readme_takes():
    assert all(getattr(headlight, name) for name in headlight.__all__)
    assert "open" not in headlight.__all__ and callable(headlight.open)  # as Python's own
    taken = re.findall(r"^from headlight import (.*)$", README, flags=re.MULTILINE)
    assert {name.strip() for line in taken for name in line.split(",")} <= {*headlight.__all__}


# What load_foreign opens, somebody else's code has written.
EXAMPLES = {name: getattr(headlight, name) for name in headlight.__all__ if name != "load_foreign"}
EXAMPLES |= {"Encoding": Encoding, "Trace.row": headlight.Trace.row, "headlight": headlight}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    """With the public names at hand."""
    monkeypatch.chdir(tmp_path)
    text, names = inspect.getdoc(EXAMPLES[name]), {**EXAMPLES}
    example = doctest.DocTestParser().get_doctest(text, names, name, name, None)
    assert example.examples
    printed = []
    doctest.DocTestRunner().run(example, out=printed.append)
    assert printed == [], "".join(printed)


def test_every_preset_and_model_that_is_named_exists():
    told = (ROOT / "docs" / "your-own-model.md").read_text(encoding="utf-8")
    presets = re.findall(r"^\| `(\w+)` \| ", told, flags=re.MULTILINE)
    assert len(presets) == 5 and {*presets} <= {*PRESETS}
    named = re.findall(r"assets/checkpoints/([\w-]+)/README", README)
    assert {*named} == {folder.name for folder in SHIPPED.iterdir()}


def test_scores_are_those_of_the_cards():
    figures = re.findall(r"[\d.]+ ± [\d.]+", README)
    table = documentation.scores()
    assert len(figures) == 6 and [figure for figure in figures if figure not in table] == []


def test_what_shows_a_promise_exists():
    promises = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[2] for line in promises if line.startswith("| ")][1:]
    assert len(rows) == 22
    for row in rows:
        named = re.findall(r"`([\w/.]+)`", row)
        assert named and all((ROOT / name).exists() for name in named), row
