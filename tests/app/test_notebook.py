"""The grid outside the app: in a notebook, and as a page of its own."""

import html
import re
import subprocess
import sys
import tomllib

import nbformat
import pytest
from nbclient import NotebookClient

from headlight.app.components.packing import pack_trace
from headlight.app.export.notebook import show
from headlight.app.theme import PRIMARY
from headlight.model.analysis.reading import Reading
from tests.conftest import ROOT
from tests.markup import Markup
from tests.model.common import encoding, random_ids, random_model, traced

LESSON = ROOT / "assets" / "headlight.ipynb"


@pytest.mark.long
def test_the_lesson_runs_and_is_shipped_without_its_outputs():
    lesson = nbformat.read(LESSON, as_version=4)
    cells = [cell for cell in lesson.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    NotebookClient(lesson, timeout=120, resources={"metadata": {"path": LESSON.parent}}).execute()
    shown = "".join(
        out.data.get("text/html", "") for cell in cells for out in cell.outputs if "data" in out
    )
    assert shown.count("<iframe") == 2
    last = cells[-1].outputs[0].data["text/plain"]
    rows = [line.split() for line in last.splitlines()[2:]]
    assert all(float(before) == 0 < float(without) for _, before, without in rows)


def test_a_frame_holds_the_page_as_it_is(en_de):
    shown = show(en_de.trace("say \"<b> & it's"))
    tag = re.fullmatch(r"<iframe [^<>]*></iframe>", shown._repr_html_())
    assert tag, "something in the page ends the frame"
    assert html.unescape(re.search('srcdoc="([^"]*)"', tag[0])[1]) == shown.page
    assert repr(shown) == "<What every head attends to>"


def test_no_text_ends_a_script(en_de):
    """Tokens travel with the weights, as base64."""
    plain, awkward = (
        show(en_de.trace(text)).page for text in ("a", "</script><script>alert(1)</script><!--")
    )
    plain_tags, tags = ([tag for tag, _ in Markup(page).tags] for page in (plain, awkward))
    assert plain_tags == tags
    assert "alert(1)" not in awkward


def test_nothing_is_asked_of_anybody(en_de):
    page = show(en_de.trace("A dog.")).page
    assert not re.search(r"https?://|//cdn|<link|<img|@import|url\(", page)


def test_a_loaded_model_is_shown_over_a_text(en_de):
    line = "cross.1.2=off"
    given = en_de.trace("a dog", "ein Hund", changes=line)
    pages = {
        show(en_de, "a dog", "ein Hund", changes=changes).page
        for changes in (line, [line], given.run.changes)
    }
    assert pages == {show(given).page}


@pytest.mark.parametrize("mistaken", [
    lambda model, trace: show("en-de", "a dog"),
    lambda model, trace: show(trace, nonsense=1),
    lambda model, trace: show(trace, "cross", 1, 1, 1),
    lambda model, trace: show(trace, head=(1, 2)),
    lambda model, trace: show(model, ["a dog", "a cat"]),
    lambda model, trace: show(model, "a dog", changes=["cross.1.2=off", 3]),
])  # fmt: skip
def test_what_cannot_be_shown_is_said_in_a_sentence(en_de, mistaken):
    with pytest.raises((TypeError, ValueError), match=r"^[A-Za-z].*\.$"):
        mistaken(en_de, en_de.trace("a dog", "ein Hund"))


def test_the_page_has_the_colours_of_the_app():
    theme = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())["theme"]
    assert {name: theme[name]["primaryColor"] for name in ("light", "dark")} == PRIMARY


def test_the_focus_is_counted_from_1_and_must_be_there(en_de):
    trace = en_de.trace("A dog.")
    assert '"focus": {"kind": "cross", "layer": 0, "head": 0}' in show(trace).page
    page = show(trace, "encoder", 4, 2).page
    assert '"focus": {"kind": "encoder", "layer": 3, "head": 1}' in page
    for wrong in (("encoder", 5, 1), ("encoder", 0, 1), ("cross", 1, 5), ("self", 1, 1)):
        with pytest.raises(ValueError, match=r"there are encoder \(4 layers of 4 heads\), decoder"):
            show(trace, *wrong)
    with pytest.raises(ValueError, match="'blue' is not one of"):
        show(trace, theme="blue")


def test_a_widget_has_only_heads_that_are_there(en_de):
    widget = show(en_de.trace("A dog."), "encoder", 2, 3).widget
    assert widget.head == ("encoder", 2, 3) and widget.cell == (0, 0)
    widget.head = ("cross", 4, 4)
    for wrong in (("encoder", 5, 1), ("cross", 1, 0), ("self", 1, 1)):
        with pytest.raises(ValueError, match=r"There is no .* there are encoder"):
            widget.head = wrong
    assert widget.head == ("cross", 4, 4)


def test_a_notebook_needs_no_streamlit_and_what_is_not_installed_is_asked_for_when_it_is_needed():
    code = """
import sys
for name in ("streamlit", "anywidget", "traitlets", "IPython", "transformers", "plotly", "PIL"):
    sys.modules[name] = None  # an import of it fails
import numpy as np
from headlight import load, record, show
shown = show(load("copy").trace("b a d"))
assert "<iframe" in shown._repr_html_()
show(np.full((1, 1, 2, 2), 0.5), ["a", "b"])
try:
    shown.widget
except ImportError as error:
    assert str(error).startswith("A widget needs anywidget. Run: ")
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_readings_and_classifiers_are_packed():
    model = random_model("bloem", n_decoder_layers=0)
    seen = traced(model, encoding(random_ids(5)), encoding(random_ids(1)[:, :0]))
    assert b'"target"' not in pack_trace(seen, Reading())
    assert '"kind": "encoder"' in show(seen).page
    hidden = pack_trace(seen, Reading(special="hide", average="both", least=0.5))
    assert b"</s>" in pack_trace(seen, Reading()) and b"</s>" not in hidden
