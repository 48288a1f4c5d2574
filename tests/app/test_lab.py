"""The positions lab and the page Residual stream: what they show is what was computed."""

import base64
import json
import re

import numpy as np
import pytest

from headlight.model.analysis import positions
from headlight.model.probing import position_tables
from headlight.model.probing.capture import view
from tests.app.common import App, forget_all, words
from tests.conftest import long_but
from tests.model.common import CHECKPOINTS

TEXT, TARGET = "Two dogs run on the beach.", "Zwei Hunde rennen am Strand."
UNTRAINED = ["pre_norm", "vanilla", "van_dijck", "bloem"]
MODELS = long_but(
    ["en-de", "reviews", "van_dijck, untrained"],
    [*(path.name for path in CHECKPOINTS), *(f"{name}, untrained" for name in UNTRAINED)],
)
LAB = ["Wavelengths", "Distance", "Rotation", "Other encodings", "Swap two words"]


@pytest.fixture(scope="module")
def app():
    page = App(timeout=120)
    page.menus = ("more_pictures",)
    page.query_params.update(model="en-de", source=TEXT, target=TARGET)
    yield page.run()
    forget_all()


def show(app, view, model="en-de", **chosen):
    """A page with our sentence and target, whatever was shown before."""
    app.switch_page(view)
    if app.session_state["model"] != model:  # another one empties the target
        app.session_state["model"] = model
        app.run()
    for key, value in (dict(source=TEXT, target=TARGET) | chosen).items():
        app.session_state[key] = value
    return app.run()


@pytest.fixture
def lab(app):
    """Opens a section of the lab."""

    def open_(section, model="en-de"):
        show(app, "positions", model, lab=section)
        assert not app.exception and not app.error
        return app

    return open_


def traces(page, key):
    """The traces of the figure with a key, its arrays as numpy's."""
    for chart in page.get("plotly_chart"):
        if f"-{key}" in chart.proto.id:
            return [
                {name: _array(value) for name, value in trace.items()}
                for trace in json.loads(chart.proto.spec)["data"]
            ]
    raise AssertionError(f"no figure {key}")


def _array(value):
    if not isinstance(value, dict) or "bdata" not in value:
        return value
    array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    shape = [int(n) for n in str(value.get("shape", len(array))).split(",")]
    return array.reshape(shape)


def picture(app, name):
    app.segmented_control(key="picture").set_value(name).run()
    assert not app.exception
    return app


def said(page):
    return "\n".join(text.value for text in (*page.caption, *page.markdown, *page.info))


def bold(page, before):
    """The number in bold behind some words."""
    return float(re.search(rf"{before}[^*]*\*\*([-\d.,e+]+)", said(page))[1].replace(",", ""))


@pytest.fixture(scope="module")
def loaded(en_de):
    return en_de, view(en_de.model), en_de.trace(TEXT, TARGET)


@pytest.mark.parametrize("model", MODELS)
def test_every_section_works_with_every_model(app, small_presets, model):
    page = show(app, "positions", model, lab=LAB[0])
    for section in LAB:
        if section != LAB[0]:
            page.segmented_control(key="lab").set_value(section).run()
        assert not page.exception and not page.error
        assert page.get("plotly_chart")


def test_wavelengths_and_the_scale(lab):
    page = lab("Wavelengths")
    own, scaled = traces(page, "wavelengths_figure")
    expected = 2 * np.pi * 10_000 ** (np.arange(64) / 64)
    assert np.asarray(own["y"]) == pytest.approx(expected, rel=1e-6)
    assert np.asarray(scaled["y"]) == pytest.approx(expected, rel=1e-6)
    page.select_slider(key="base").set_value(1).run()
    own, scaled = traces(page, "wavelengths_figure")
    assert np.asarray(own["y"]) == pytest.approx(expected, rel=1e-6)
    assert np.asarray(scaled["y"]) == pytest.approx(2 * np.pi, rel=1e-6)
    near = np.asarray(traces(picture(page, "Similarity"), "nearness_figure")[1]["y"])
    assert near == pytest.approx(np.cos(np.arange(64)), abs=1e-6)
    page.select_slider(key="base").set_value(10_000).run()


def test_a_chosen_cell_is_read_out_in_the_table_the_embedding_and_the_sum(lab, loaded):
    page, trace = lab("Table and sum"), loaded[2]
    token = trace.texts["src"].tokens[1]
    page.selectbox(key="position").set_value(f"1 {token}")
    page.selectbox(key="dimension").set_value(5).run()
    finding = words(page)
    assert "dimension 5" in finding
    numbers = re.findall(r"\*\*(−?\d\.\d+)\*\*", finding)
    found = [float(number.replace("−", "-")) for number in numbers]
    parts = [each["src"][1, 5] for each in (trace.table, trace.token, trace.embedded)]
    assert found == pytest.approx(parts, abs=0.0006)


def test_rotation(lab, en_de):
    page = lab("Rotation")
    page.slider(key="pair").set_value(5)
    page.slider(key="k").set_value(7).run()
    turn = 7 * 10_000 ** (-5 / 64)
    formula = page.latex[0].value
    numbers = [float(n) for n in re.findall(r"-?\d\.\d{6}", formula)]
    expected = [np.cos(turn), np.sin(turn), -np.sin(turn), np.cos(turn)]
    assert numbers == pytest.approx(expected, abs=1e-6) and r"\neq" not in formula
    assert bold(page, "Largest error over all 1,017 positions p") <= 1e-6
    points = en_de.model.src_embedding.position(64)[:, 10:12].numpy()
    drawn = traces(page, "turn_figure")[1]
    count = len(drawn["x"])
    assert count > 7 and np.abs(points[:count, 0] - drawn["x"]).max() <= 1e-6
    page = lab("Rotation", "reviews")  # 32 pairs, 256 positions: what is chosen is clamped
    assert bold(page, "Largest error") > 0.01 and r"\neq" in page.latex[0].value


@pytest.mark.parametrize("kind", position_tables.POSITION_KINDS)
def test_other_positions(lab, loaded, kind):
    page = picture(lab("Other encodings"), "Heads")
    page.segmented_control(key="instead").set_value("shifted").run()
    page.slider(key="shift").set_value(4).run()
    page.segmented_control(key="instead").set_value(kind).run()
    assert not page.exception
    assert ("shift" in [slider.key for slider in page.slider]) == (kind == "shifted")
    en_de, model, before = loaded
    expected = positions.effect(model, before, kind, 4)
    shown = traces(page, "moved_figure")[0]["z"]
    assert np.abs(shown - np.concatenate(list(expected.moved.values()))).max() <= 1e-6
    kinds, answers = (picture(page, name).dataframe[0].value for name in ("Heads", "Predictions"))
    row = kinds[kinds["positions"].str.startswith(kind)].iloc[0]
    assert row["cross moved"] == pytest.approx(expected.moved["cross"].mean(), abs=1e-6)
    assert row["the target's tokens"] == pytest.approx(expected.answers.wanted.mean(), abs=1e-6)
    own = positions.predictions(before)
    assert row["predictions that change"] == (own.best != expected.answers.best).sum()
    assert np.abs(answers["its probability, own positions"] - own.wanted).max() <= 1e-6
    assert np.abs(answers.iloc[:, 3] - expected.answers.wanted).max() <= 1e-6
    other = f"all=positions:{'shifted-4' if kind == 'shifted' else kind}"
    written = en_de.translate(TEXT, changes=other).text
    assert written in said(page).replace("\\", "")


def test_swapped_words(lab, loaded):
    page = lab("Swap two words")
    page.selectbox(key="first").select_index(1)
    page.selectbox(key="second").select_index(5).run()
    assert not page.exception
    _, model, seen = loaded
    order = positions.swap(len(seen.run.texts[0].ids), 1, 5)
    lines = traces(picture(page, "How far"), "followed_figure")
    tables = traces(picture(page, "Distances"), "swap_figure")
    for trace, line, kind in zip(tables, lines, ("", "none"), strict=True):
        expected = positions.reordered(model, seen.run, order, kind=kind)
        length = len(order)
        assert np.abs(trace["z"] - expected.distances[:length, :length]).max() <= 1e-6
        assert np.abs(np.asarray(line["y"]) - expected.moved[:length]).max() <= 1e-6
    assert bold(page, ", without: ") <= 1e-5 and "**cannot tell the difference**" in said(page)
    assert np.asarray(traces(page, "swap_figure")[1]["z"])[1, 5] <= 1e-5
    page.selectbox(key="second").select_index(1).run()
    assert "are the same" in said(page)
    page.text_area(key="source").set_value("dog").run()
    assert not page.exception and "nothing to swap" in said(page)
    page.text_area(key="source").set_value("dog " * 90).run()
    assert not page.exception and "first 64 of 90 tokens" in said(page)
