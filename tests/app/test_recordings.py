"""Recordings in the app: every page shows one, or says what it lacks."""

import hashlib
import json
import re

import numpy as np
import pytest
import torch
import transformers as tf

from headlight import record, save
from headlight.app.state import dropped
from headlight.app.state.options import BERTVIZ, HEADS_OF, MEASURED_ON
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import notices
from headlight.app.views import share
from headlight.model.recording.checkpoint import NO_MODEL
from tests.app.common import files_of, plain_text
from tests.model.common import in_short
from tests.model.recording.models import B, V, inputs_of, model_of

PICTURES = {"bidi_component", "dataframe", "iframe", "vega_lite_chart", "plotly_chart"}
NAMES = ["bert", "gpt2", "bart", "marian", "clip", "gpt_oss"]


def recordings_of(name):
    """Two of one model."""
    torch.manual_seed(0)
    if name == "marian":
        model = tf.MarianMTModel(tf.MarianConfig(**B)).eval()
    elif name == "clip":
        sizes = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4)
        sizes |= dict(intermediate_size=48)
        text = sizes | dict(vocab_size=V, max_position_embeddings=70, eos_token_id=2)
        pixels = sizes | dict(image_size=16, patch_size=8)
        model = tf.CLIPModel(tf.CLIPConfig(text_config=text, vision_config=pixels)).eval()
    else:
        model = model_of(name)
    for length in (7, 9):
        inputs = inputs_of({"marian": "bart", "clip": "bert"}.get(name, name), length)
        if name == "clip":
            inputs["pixel_values"] = torch.randn(1, 3, 16, 16)
        yield record(model, inputs=inputs)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for name in NAMES:
        save(folder / f"{name}.safetensors", recordings_of(name))
    return folder


WAYS = {  # page → what it draws otherwise, by its settings
    "take-away": [{"heads_of": of} for of in HEADS_OF],
    HOME: [{"all_heads": True, "measured_on": on, "numbers": True} for on in MEASURED_ON],
    "bertviz": [{"bertviz": view, "draw": True} for view in BERTVIZ],
}


def drawn(app, name, key, way):
    """A page of a recording, without an error."""
    app.query_params.update(model=f"{name} (recording)")
    for setting, value in way.items():
        app.session_state[setting] = value
    app.switch_page(key).run()
    assert not app.exception, (key, way, app.exception[0].value)
    assert not app.error and app.settings["model"] == f"{name} (recording)"
    return app


def shows(app, picture):
    """Whether what a page shows first is drawn, by the CSS selector of it."""
    name = re.search(r"st-key-(\w+)", picture)
    blocks, found = [app._tree], []
    while blocks:
        block = blocks.pop()
        blocks += getattr(block, "children", {}).values()
        found += [block.type, getattr(getattr(block, "proto", None), "id", "")]
    return any(f"-{name[1]}" in each for each in found) if name else "dataframe" in found


@pytest.mark.parametrize("name", in_short(NAMES, "bart", "clip"))
def test_every_page_shows_it_or_says_what_it_lacks(new_page, models, name):
    for key, page in PAGES.items():
        app = drawn(new_page(), name, key, {})
        said = [plain_text(info.value) for info in app.info]
        assert (notices.needs_more(NO_MODEL) in said) != page.weights, (key, said)
        assert shows(app, page.picture) == page.weights, key


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_way_of_drawing_it(new_page, models, name):
    for key, ways in WAYS.items():
        for way in ways:
            drawn(new_page(), name, key, way)


def export_of(app, monkeypatch):
    """The page Share, and what makes each of its files."""
    made = {}
    monkeypatch.setattr(
        share, "file_button", lambda label, make, *_, **more: made.update({label: make})
    )
    app.switch_page("take-away").run()
    assert not app.exception and not app.error
    return made


def drop(app, *files):
    for name, content in files:
        app.file_uploader(key="pack").set_value((name, content, ""))
        app.run()
        assert not app.exception
    return [plain_text(error.value) for error in app.error]


def options(app):
    return app.selectbox(key="model").options


def test_a_line_of_changes_says_why_not(new_page, models):
    app = new_page()
    app.query_params.update(model="bart (recording)", changes="cross=off", other="x", shows="after")
    app.run()
    assert plain_text(app.error[0].value) == f"“cross=off”: {NO_MODEL}" and not app.exception
    assert app.run().error
    app.switch_page("bertviz").run()
    app.button(key="keep_readable").click().run()
    assert not app.error and not app.exception


def test_each_file_of_export_is_made_and_a_pack_is_the_same_again(new_page, models, monkeypatch):
    app = new_page()
    app.query_params.update(model="bart (recording)", kind="cross", layer="2", head="3")
    made = export_of(app, monkeypatch)
    content = {label: make() for label, make in made.items()}
    assert all(content.values())
    pack = files_of(content["Evidence pack"])
    digest = hashlib.sha256((models / "bart.safetensors").read_bytes()).hexdigest()
    assert json.loads(pack["evidence.json"])["model"] == {
        "name": "bart (recording)", "of": "bart.safetensors", "sha256": digest,
    }  # fmt: skip
    again = new_page().switch_page("take-away").run()
    assert drop(again, ("pack.zip", content["Evidence pack"])) == []
    assert "identical" in again.success[0].value
    assert (again.session_state["kind"], again.session_state["layer"]) == ("cross", 2)


def test_a_dropped_recording_is_one_sessions_own(new_page, models, monkeypatch):
    app, other = (new_page().switch_page("take-away").run() for _ in range(2))
    content, name = (models / "bart.safetensors").read_bytes(), "my file (yours)"
    assert drop(app, ("../my file.safetensors", content)) == []
    assert app.settings["model"] == name and name in plain_text(app.success[0].value)
    assert name in options(app) and options(app)[0] == options(other.run())[0]
    assert name not in options(other) and other.settings["model"] != name
    other.query_params.update(model=name)
    assert other.run().settings["model"] != name
    for key in (HOME, "bertviz"):
        app.switch_page(key).run()
        assert not app.exception and not app.error and app.settings["model"] == name
    pack = export_of(app, monkeypatch)["Evidence pack"]()
    made_of = json.loads(files_of(pack)["evidence.json"])["model"]
    assert made_of["sha256"] == hashlib.sha256(content).hexdigest()
    said = drop(other.switch_page("take-away").run(), ("pack.zip", pack))
    assert any("Drop that file here first" in each for each in said)
    # another file in its place
    bert = (models / "bert.safetensors").read_bytes()
    assert drop(app, ("my file.safetensors", bert)) == []
    assert options(app).count(name) == 1
    app.switch_page(HOME).run()
    assert not app.exception and app.settings["kind"] == "encoder"


@pytest.mark.long
def test_a_session_holds_so_many_and_so_much(new_page, models, monkeypatch):
    app = new_page().switch_page("take-away").run()
    content = (models / "bart.safetensors").read_bytes()
    files = [(f"{i}.safetensors", content) for i in range(dropped.MOST)]
    assert drop(app, *files) == []
    (said,) = drop(app, ("more.safetensors", content))
    assert "8 recordings" in said and len([n for n in options(app) if n.endswith("(yours)")]) == 8
    monkeypatch.setattr(dropped, "LARGEST", 60_000)
    (said,) = drop(new_page().switch_page("take-away").run(), *files[:9])
    assert "MB" in said


@pytest.mark.parametrize("trials", [8, pytest.param(200, marks=pytest.mark.long)])
def test_a_spoilt_file_gets_a_sentence(new_page, models, trials):
    whole = (models / "bart.safetensors").read_bytes()
    random = np.random.default_rng(0)
    app = new_page().switch_page("take-away").run()
    for trial in range(trials):
        spoilt = bytearray(whole[: random.integers(0, len(whole))] if trial % 2 else whole)
        for at in random.integers(0, max(len(spoilt), 1), 5 * (trial % 3)):
            if at < len(spoilt):
                spoilt[at] = random.integers(256)
        for said in drop(app, ("x.safetensors", bytes(spoilt))):
            assert said.endswith((".", "?")) and len(said) <= 340 and "\n" not in said
        if app.settings["model"] == "x (yours)":
            app.switch_page(HOME).run()
            assert not app.exception
            app.switch_page("take-away").run()
