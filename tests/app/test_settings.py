"""Settings are valid together, always: in a session, in the address, in a file."""

import random
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from headlight.app.state import session, settings, widgets
from headlight.app.state.lines import lines_of
from headlight.app.state.pages import PAGES
from headlight.app.state.setting import ABSENT, Structure
from headlight.app.state.settings import MASKS, SETTINGS, headers
from headlight.model.checkpoint import load
from headlight.model.probing.run import FINAL
from headlight.model.probing.sites import parts_of
from tests.app.common import complete
from tests.conftest import ROOT
from tests.model.common import random_model


class Here:
    """Two translators, one with training steps, and a classifier."""

    def models(self):
        return ["big", "small", "classifier"]

    def devices(self):
        return ["auto", "cpu"]

    def steps(self, model):
        return ["10", "1000", FINAL] if model == "big" else []

    def examples(self, model):
        return [f"an example of {model}", "another"]

    def alike(self, model):
        return [other for other in ("big", "small") if model in ("big", "small") and model != other]

    def structure(self, model, step, device):
        return structure(model)


@cache
def structure(model):
    depths = {"big": {"n_decoder_layers": 5}, "small": {"n_decoder_layers": 1}}.get(model, {})
    preset = "bloem" if model == "classifier" else "paper"
    built = random_model(preset, n_encoder_layers=2, **depths)
    return Structure(built.sides(), built.sites(), parts_of(built.sites(), built.sides()))


HERE = Here()


def valid(*given) -> dict:
    return settings.valid(*given).values


def test_a_fresh_start_is_as_trained_for_every_model():
    for model in HERE.models():
        fresh = valid({"model": model}, HERE)
        assert all(fresh[mask] is True for mask in MASKS)
        assert fresh["source"] == fresh["line"] == f"an example of {model}"
        assert fresh["step"] == FINAL and fresh["layer"] == fresh["head"] == 1
    assert valid({}, HERE)["model"] == "big" and valid({}, HERE)["kind"] == "cross"


def test_each_setting_is_clamped_given_those_before_it():
    chosen = dict(model="big", step="10", kind="decoder", layer=5, head=4, causal=False)
    assert valid(chosen, HERE) == valid(chosen, HERE) | chosen
    small = valid(chosen | {"model": "small"}, HERE)
    assert small["step"] == FINAL and small["layer"] == 1 and not small["causal"]
    classifier = valid(chosen | {"model": "classifier", "target": "Hund"}, HERE)
    assert classifier["kind"] == "encoder" and classifier["layer"] == 2
    assert classifier["causal"] is True and classifier["target"] == ""
    assert valid({"source": "a\n\nb", "line": "b"}, HERE)["line"] == "b"
    assert valid({"source": "a\nc", "line": "b"}, HERE)["line"] == "a"


@pytest.mark.parametrize("key", SETTINGS)
def test_drawing_a_widget_changes_no_value(monkeypatch, key):
    """Code reads the same before a widget and after it, within one run. A page's own setting is
    known once it was chosen or drawn; only limits that the page gives may change it."""
    chance, setting = random.Random(0), SETTINGS[key]
    monkeypatch.setattr(widgets.st, "session_state", {})
    for model in HERE.models():
        options = setting.among or (() if callable(setting.options) else setting.options)
        for value in (setting.default, *options, setting.least, setting.most):
            chosen = {mask: chance.random() < 0.5 for mask in MASKS} | {"model": model}
            context = settings.valid(chosen | {key: value}, HERE)
            memo, before = session.Memo(context=context), dict(context.values)
            monkeypatch.setattr(widgets, "memo", lambda memo=memo: memo)
            monkeypatch.setattr(widgets, "values", lambda context=context: context.values)
            limits = setting.limits(context)
            drawn = widgets._value(key, limits)
            if not setting.pages or limits.allows(before.get(key)):
                assert drawn == before[key]
            if not setting.pages:  # and with limits that a page gives it
                widgets._value(key, replace(limits, options=limits.options[:1], most=limits.least))
            assert context.values == before | {key: drawn}


def test_what_the_address_cannot_mean_is_not_heard():
    address = dict(layer=["99"], kind=["sideways"], pad_to=["1000"], causal=["perhaps"], at=["x"])
    assert valid({}, HERE, address) == valid({}, HERE)
    address = dict(layer=["2"], kind=["decoder"], pad_to=["9"], causal=["false"], at=["Softmax"])
    found = valid({}, HERE, address)
    assert (found["layer"], found["kind"], found["pad_to"]) == (2, "decoder", 9)
    assert found["causal"] is False and found["at"] == "Softmax"
    assert valid({"layer": 3}, HERE, address)["layer"] == 3  # chosen since


@pytest.mark.parametrize("key", SETTINGS)
def test_every_value_is_written_into_an_address_as_it_is_read(key):
    """And a select shows it there as it is: Streamlit writes its labels, and reads them there."""
    setting = SETTINGS[key]
    options = setting.among or (() if callable(setting.options) else setting.options)
    for value in [setting.default, *options]:
        if isinstance(setting.default, list):
            value = [value] if value != setting.default else value
        text = setting.as_text(value)
        assert setting.parse(text if isinstance(text, list) else [text]) == value
    assert setting.parse([]) in (ABSENT, [])
    assert setting.look.get("format_func", str)("16") == "16"


def test_a_row_is_read_by_its_number():
    """Streamlit writes an option into the address as it is drawn."""
    parse = SETTINGS["score_at"].parse
    assert parse(["3 kleines → Mädchen"]) == parse(["3"]) == 3
    assert parse(["x 3"]) is ABSENT


def test_a_header_says_what_is_not_as_trained():
    chosen = complete({"causal": False, "pad_to": 24, "step": "256", "layer": 3})
    assert headers(complete({})) == []
    assert headers(chosen) == ["step 256", "without the causal mask", "padded to 24 tokens"]


def test_what_a_run_depends_on_has_a_name_and_pages_exist():
    for setting in SETTINGS.values():
        assert bool(setting.name) == setting.run, setting.key
        assert set(setting.pages) <= set(PAGES), setting.key
    assert [key for key, setting in SETTINGS.items() if not setting.address] == ["device"]
    run = {key for key, setting in SETTINGS.items() if setting.run}
    assert run == {
        "model", "step", "hold", "source", "line", "target", *MASKS, "pad_to", "changes", "other",
        "other_model", "other_step", "other_masks", "shows",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", []), (" \n\t", []), ("a", ["a"]), ("a\n\n b \n", ["a", "b"]), ("a\x0bb", ["a\x0bb"])],
)
def test_lines(text, lines):
    assert lines_of(text) == lines


# In the app


def opened(page, **chosen):
    page.query_params.update(chosen)
    return page.run()


def test_an_untrained_model_takes_its_target_from_the_trained_one(page):
    """Not from an earlier step of it that was looked at before."""
    opened(page, model="annotated, untrained", source="A dog runs.")
    expected = page.text_input(key="target").proto.placeholder
    page.selectbox(key="model").set_value("en-fr").run()
    first = page.selectbox(key="step").options[0]
    page.selectbox(key="step").set_value(first).run()
    page.toggle(key="hold").set_value(False).run()
    early = page.text_input(key="target").proto.placeholder
    page.selectbox(key="model").set_value("annotated, untrained").run()
    assert not page.exception and not page.error
    assert page.text_input(key="target").proto.placeholder == expected != early


def test_a_session_that_outlives_a_reload_of_the_code_keeps_its_settings(page):
    """Streamlit loads an edited file again; what a session remembers is then of an older class."""
    opened(page, source="the dog", target="ein Hund")
    page.toggle(key="causal").set_value(False).run()
    page.session_state["_memo"] = SimpleNamespace(context=None)
    page.run()
    assert not page.exception and not page.error
    context = page.session_state["_memo"].context
    assert (context["line"], context["causal"]) == ("the dog", False)


def test_a_mask_that_does_not_concern_the_model_is_not_lost(page):
    opened(page, model="uneven", causal="false", source="the dog", target="ein Hund")
    page.selectbox(key="model").set_value("classifier").run()
    assert page.session_state["_memo"].context["causal"] is True
    assert not [toggle for toggle in page.toggle if toggle.key == "causal"]
    page.selectbox(key="model").set_value("uneven").run()
    assert page.toggle(key="causal").value is False


def test_the_pages_own_controls_are_remembered(page):
    opened(page, model="uneven", source="the dog sees", target="ein Hund")
    page.switch_page("inside").run()
    page.segmented_control(key="at").set_value("Softmax").run()
    page.switch_page("tokenizer").run()
    page.switch_page("inside").run()
    assert page.segmented_control(key="at").value == "Softmax"
    page.text_area(key="source").set_value("a cat").run()
    assert not page.exception


def test_a_text_typed_just_before_the_click_is_the_one_that_is_translated(page):
    from headlight.model import load

    opened(page, model="en-de", source="A dog runs.")
    page.text_area(key="source").set_value("Two men sleep.")
    page.button(key="translate_again").click().run()
    en_de = load("en-de")
    written = en_de.translate("Two men sleep.").text
    assert not page.exception and page.text_input(key="target").value == written


LOST = """
import streamlit as st

from headlight.app.shell import edits
from headlight.app.state import session

session.settle("stage")
for tile in [("self", 0, 0), ("cross", 9, 0), ("cross", 0, 9)]:  # late, of another model
    edits.edit("off", **dict(zip(("kind", "layer", "head"), tile, strict=True)))
edits.edit("off", kind="cross", layer=1, head=2)
session.focus_on("cross", 2, 1, -1, -1)
for key in ("kind", "layer", "head"):
    del st.session_state[key]  # as Streamlit does where a run breaks off before their widgets
session.focus_on("self", 0, 0, -1, -1)  # a late message, of another model
session.settle("stage")
st.session_state["focus"] = session.focus()._asdict()
st.session_state["line"] = session.values()["changes"]
"""


def test_what_was_chosen_outlives_a_run_that_broke_off_and_late_messages(models, monkeypatch):
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(models)])
    page = AppTest.from_string(LOST, default_timeout=60).run()
    assert not page.exception
    assert page.session_state["focus"] == {"kind": "cross", "layer": 2, "head": 1}
    assert page.session_state["line"] == "cross.2.3=off"


def test_the_number_of_threads_is_given_back(monkeypatch):
    import torch

    from headlight.app.results import memoize

    monkeypatch.setattr(memoize, "CORES", 2)
    torch.set_num_threads(2)
    model = load("copy").model
    try:
        with memoize.threads(model, 10):
            assert torch.get_num_threads() == 1
        with pytest.raises(RuntimeError), memoize.threads(model, 10):
            raise RuntimeError
        assert torch.get_num_threads() == 2
        short, long = memoize.threads(model, 10), memoize.threads(model, memoize.SHORT)
        short.__enter__()
        long.__enter__()  # another session, before the first one is done
        short.__exit__(None, None, None)
        long.__exit__(None, None, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_only_the_session_touches_the_session_state():
    """Apart from what a widget, whose value only Streamlit knows, tells its own callback."""
    allowed = {
        "shell/drawer.py", "shell/lesson.py", "shell/masks.py", "shell/more_changes.py",
        "shell/room.py", "views/share.py", "state/dropped.py", "state/session.py",
        "state/widgets.py",
    }  # fmt: skip
    for file in (ROOT / "app").rglob("*.py"):
        name = file.relative_to(ROOT / "app").as_posix()
        if "st.session_state" in file.read_text(encoding="utf-8"):
            assert name in allowed or name.startswith("components/"), name


def test_one_function_writes_the_address():
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "app").rglob("*.py")]
    writes = r"query_params(\[|\.(from_dict|update|clear|pop)\()|\bbind=|\"bind\""
    assert sum(len(re.findall(writes, source)) for source in sources) == 1
