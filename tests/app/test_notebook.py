"""The stage outside the app: in a notebook, and as a page of its own."""

import html
import re
import subprocess
import sys
import tomllib
from dataclasses import fields

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from headlight.app.components.packing import pack_trace
from headlight.app.components.stage_page import MANY, stage_page
from headlight.app.export.notebook import show
from headlight.app.theme import PRIMARY
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import load
from headlight.model.decoding.generate import Beam
from headlight.model.presets import build, preset_of
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import trace
from tests.conftest import ROOT
from tests.markup import Markup, opened
from tests.model.common import encoding, random_ids, random_model, run_of, traced

LESSON = ROOT / "assets" / "headlight.ipynb"


@pytest.mark.long
def test_the_lesson_runs_and_is_shipped_without_its_outputs(monkeypatch):
    """Where the package is installed, as `PYTHONPATH` has it here."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
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
    """Tokens travel deflated, as base64."""
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


def test_buttons_have_the_colour_of_the_app():
    theme = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())["theme"]
    assert {name: theme[name]["primaryColor"] for name in ("light", "dark")} == PRIMARY


def test_the_focus_is_counted_from_1_and_must_be_there(en_de):
    trace = en_de.trace("A dog.")
    for chosen, depth, focus in (
        ((), "heads", {"kind": "cross", "layer": 0, "head": 0}),
        (("encoder", 4, 2), "head", {"kind": "encoder", "layer": 3, "head": 1}),
    ):
        data = opened(show(trace, *chosen).page)
        assert (data["depth"], data["look"]["focus"]) == (depth, focus)
    for wrong in (("encoder", 5, 1), ("encoder", 0, 1), ("cross", 1, 5), ("self", 1, 1)):
        with pytest.raises(ValueError, match=r"there are encoder \(4 layers of 4 heads\), decoder"):
            show(trace, *wrong)
    with pytest.raises(ValueError, match="'blue' is not one of"):
        show(trace, theme="blue")


@pytest.mark.parametrize("preset", ["paper", "bloem", "window", "gpt2", "llama"])
def test_the_numbers_in_a_file_are_those_of_the_app(preset):
    """Of a model that turns queries and keys, a trace has them from before, so there are none."""
    depths = {field.name for field in fields(preset_of(preset).config) if field.default == 6}
    sizes = dict(vocab_size=53, d_model=16, n_heads=4, d_ff=32, max_length=16)
    model = build(preset, **sizes, **dict.fromkeys(depths, 2)).eval().requires_grad_(False)
    run = run_of(model, encoding(random_ids(9)), encoding(random_ids(7)))
    seen = trace(model, run)
    place = Place(*next((kind, 0, 0) for kind in seen.attention))
    data = opened(stage_page(seen, place, "", most=MANY))
    n_heads = sum(weights.shape[0] * weights.shape[1] for weights in seen.attention.values())
    known = data["look"]["alone"]["known"]
    assert len(data["answers"]) == 2 * len(known) == 2 * n_heads * (preset != "llama")
    for answer in data["answers"]:
        kind, layer, head = (answer["of"][name] for name in Place._fields)
        steps = head_steps(model, run, seen.kinds[kind][layer], head)
        expected = vars(steps) | dict(zip("qk", steps.compared, strict=True))
        for name, found in answer["found"].items():
            assert np.allclose(found, expected[name], atol=1e-5)
        if "weights" in answer["found"]:
            assert np.array_equal(answer["found"]["weights"] > 0, steps.mask)


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
    assert opened(show(seen).page)["look"]["focus"]["kind"] == "encoder"
    hidden = pack_trace(seen, Reading(special="hide", average="both", least=0.5))
    assert b"</s>" in pack_trace(seen, Reading()) and b"</s>" not in hidden


@pytest.fixture(scope="module")
def en_fr():
    return load("en-fr")


def test_arrays_count_from_0_and_what_is_named_as_on_the_screen_from_1(en_fr, tmp_path):
    trace = en_fr.trace("A red car.")
    head = trace.attention["cross"][2, 1]
    table = trace.to_dataframe()
    here = table[(table.attention == "cross") & (table.layer == 3) & (table["head"] == 2)]
    assert np.array_equal(here.weight.to_numpy().reshape(head.shape), head)
    labelled = trace.to_xarray("cross")
    assert np.array_equal(labelled.sel(layer=3, head=2), head)
    assert labelled.query_token.values.tolist() == [*trace.tgt.tokens]
    figure = show(trace, "cross", 3, 2)
    assert figure.selected == ("cross", 3, 2)
    assert np.array_equal(np.array(figure.to_plotly().data[0].z), head)
    assert "layer 3, head 2" in figure.save(tmp_path / "heads.html")
    assert (tmp_path / "heads.html").read_text(encoding="utf-8") == figure.page
    swept = en_fr.sweep(trace.run)
    line = swept[(swept.attention == "cross") & (swept.layer == 3) & (swept["head"] == 2)]
    assert line.change.tolist() == ["cross.3.2=off"]


def test_a_figure_of_plotly_shows_a_difference(en_fr):
    target = "Une voiture rouge."
    before = en_fr.trace("A red car.", target)
    after = en_fr.trace("A red car.", target, changes="cross=temperature:3")
    figure = show(after, "cross", 3, 2, minus=before).to_plotly()
    apart = after.attention["cross"][2, 1] - before.attention["cross"][2, 1]
    assert np.array_equal(np.array(figure.data[0].z), apart)
    assert -figure.layout.coloraxis.cmin == figure.layout.coloraxis.cmax == np.abs(apart).max()


def test_rows_are_named_by_what_they_read_or_predict(en_fr):
    trace = en_fr.trace("A red car.")
    row = trace.row(predicting="rouge")
    assert trace.tgt.tokens[row : row + 2] == ("voiture", "rouge")
    assert row == trace.row(reading="voiture")
    for wrong in ({"reading": "rouge "}, {"predicting": "<s>"}, {}):
        with pytest.raises(ValueError, match=r"No row (reads|predicts) .*There are|Name the token"):
            trace.row(**wrong)


def test_what_one_gets_is_one_line_when_it_is_printed(en_fr):
    run = en_fr.run("A red car.")
    trace, token = en_fr.trace_run(run), run.texts[1].ids[0]
    written = en_fr.generate("A red car.", Beam(2))
    values = [
        en_fr, run, trace, trace.attention, trace.scores, trace.src, written, en_fr.swept(run),
        en_fr.align("A red car."), en_fr.alignment, en_fr.attribution(run, 0, token),
        en_fr.decomposition(run, 0, token), show(trace), en_fr.model.config, run.masks,
    ]  # fmt: skip
    assert [text for text in map(repr, values) if "\n" in text or len(text) > 400] == []
    assert written.text == str(en_fr.translate("A red car.")) == "Une voiture rouge."
