"""The page Take away without a browser: packs that are opened again, and those that are not."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from threading import Event
from types import SimpleNamespace

import pytest

from headlight.app.export import bundle
from headlight.app.export.bundle import Model
from headlight.app.results import memoize
from headlight.app.state import catalog
from headlight.model import Masks, load
from tests.app.common import complete, files_of, plain_text, view_of
from tests.app.export.test_bundle import BROKEN, recorded, set_to

PAGE = "take-away"
SEEN = {
    "model": "uneven", "source": "the dog sees", "target": "ein Hund", "causal": False,
    "kind": "decoder", "layer": 5, "head": 3, "pad_to": 6,
}  # fmt: skip


@cache
def packed(models) -> bytes:
    """A pack of the model "uneven", as if from another start of the app."""
    chosen = complete(SEEN)
    own = load(models / "uneven")
    sha = hashlib.sha256((models / "uneven" / "model.safetensors").read_bytes()).hexdigest()
    trace = own.trace(
        chosen["source"], chosen["target"], Masks(causal=chosen["causal"]), chosen["pad_to"]
    )
    view = replace(view_of(trace, "decoder", 4, 2), settings=chosen)
    return bundle.make(view, Model(chosen["model"], "model.safetensors", sha))


def inside_of(content) -> dict:
    """The settings of a pack, and controls of the page Inside."""
    controls = {"at": "Softmax", "follow": "2 ei"}
    return json.loads(content[bundle.RECORD])["settings"] | controls


@pytest.fixture
def take_away(page):
    """The page, on a small model."""
    page.query_params.update(model="short", source="a man")
    return page.switch_page(PAGE).run()


def drop(page, content: bytes):
    page.file_uploader(key="pack").set_value(("pack.zip", content, "application/zip"))
    page.run()
    assert not page.exception
    return page


@pytest.mark.parametrize("name", ["uneven", "classifier"])
def test_every_model_can_be_taken_away(page, name):
    page.query_params.update(model=name, source="the dog", target="ein Hund")
    page.switch_page(PAGE).run()
    assert not page.exception and not page.error
    assert len(page.download_button) == 9
    assert not any(button.disabled for button in page.download_button)
    page.segmented_control(key="weights_of").set_value("selected head").run()
    assert not page.exception


def test_a_pack_restores_the_view_and_the_numbers_agree(take_away, models):
    page = drop(take_away, packed(models))
    for key, value in SEEN.items():
        assert page.session_state[key] == value, key
    assert page.toggle(key="causal").value is False
    assert not page.error and not page.warning
    assert "**identical**" in page.success[0].value


def test_a_pack_brings_back_the_page_it_was_of_and_its_controls(take_away, models):
    content = files_of(packed(models))
    page = drop(take_away, recorded(content, permalink="inside?", settings=inside_of(content)))
    assert page.success and "identical" in page.success[0].value
    assert [link for link in page.get("page_link") if "Back to Inside a head" in link.proto.label]
    page.switch_page("inside").run()
    assert not page.exception and page.segmented_control(key="at").value == "Softmax"
    assert any("6. Softmax" in text.value and "“ei”" in text.value for text in page.markdown)


def test_a_changed_view_is_not_compared_until_it_is_restored(take_away, models):
    page = drop(take_away, packed(models))
    page.segmented_control(key="layer").set_value(1).run()
    assert page.success  # another head of the same numbers
    page.toggle(key="causal").set_value(True).run()
    assert not page.success and "the causal mask" in page.info[0].value
    again = next(button for button in page.button if button.label.startswith("Restore"))
    again.click().run()
    assert page.success and page.session_state["layer"] == 5
    page.file_uploader(key="pack").set_value(None)
    page.run()
    assert not page.success and page.session_state["layer"] == 5


def test_a_model_that_is_not_here_leaves_the_view_as_it_is(take_away, models):
    page = drop(take_away, set_to(files_of(packed(models)), model="[gone](http://x)"))
    assert "is missing" in page.error[0].value and "](" not in page.error[0].value
    assert page.session_state["model"] == "short"
    page = drop(page, set_to(files_of(packed(models)), step="77"))
    assert "training step 77" in page.error[0].value


def test_other_weights_of_the_same_name_are_noticed(take_away, models):
    page = drop(take_away, set_to(files_of(packed(models)), step="10"))
    assert "SHA" in page.warning[0].value and page.selectbox(key="step").value == "10"


def test_a_head_that_is_not_there_is_clamped(take_away, models):
    page = drop(take_away, packed(models))
    page = drop(page, set_to(files_of(packed(models)), kind="encoder", layer=900, head=900))
    assert page.session_state["layer"] == 2 and page.session_state["head"] == 4
    assert page.success


@pytest.mark.parametrize("name", ["cut in half", "pickle"])
def test_a_broken_pack_changes_nothing_and_the_session_goes_on(take_away, models, name):
    good = packed(models)
    breaks, _ = BROKEN[name]
    before = dict(catalog._views().entries)
    page = drop(take_away, breaks(good, files_of(good)))
    assert plain_text(page.error[0].value).startswith("The file could not be opened.")
    assert page.session_state["model"] == "short"
    assert dict(catalog._views().entries) == before
    page = drop(page, good)
    assert not page.error and page.success


def test_a_text_too_long_leaves_a_way_back(take_away, models):
    page = drop(take_away, set_to(files_of(packed(models)), model="short", source="dog " * 50))
    assert "at most 12" in page.error[0].value
    assert drop(page, packed(models)).success


def test_a_large_view_says_what_is_left_out(page, monkeypatch):
    monkeypatch.setattr("headlight.app.export.tables.LARGEST_FILE", 100_000)
    monkeypatch.setattr("headlight.app.export.bundle.LARGEST_TABLE", 100_000)
    page.query_params.update(model="uneven", source="the dog sees " * 8, target="ein Hund")
    page.switch_page(PAGE).run()
    (disabled,) = (button.label for button in page.download_button if button.disabled)
    assert disabled.startswith("CSV") and "are not made here" in page.info[0].value
    assert any("weights.csv would take about" in said.value for said in page.caption)
    page.segmented_control(key="weights_of").set_value("selected head").run()
    assert not any(button.disabled for button in page.download_button)


@pytest.fixture
def connected(monkeypatch):
    """Names of the sessions whose browsers are there."""
    names = {"first", "second"}
    runtime = SimpleNamespace(is_active_session=names.__contains__)
    monkeypatch.setattr(memoize.runtime, "exists", lambda: True)
    monkeypatch.setattr(memoize.runtime, "get_instance", lambda: runtime)
    return names


def made(monkeypatch, session, make):
    with monkeypatch.context() as patch:
        context = SimpleNamespace(session_id=session)
        patch.setattr(memoize, "get_script_run_ctx", lambda: context)
        return memoize.one_at_a_time(make)


def test_files_are_made_one_at_a_time_and_who_waits_may_leave(connected, monkeypatch):
    begun, release, came = Event(), Event(), []

    def long():
        begun.set()
        release.wait(10)
        return b"first"

    first = made(monkeypatch, "first", long)
    second = made(monkeypatch, "second", lambda: came.append("second") or b"second")
    with ThreadPoolExecutor(2) as pool:
        try:
            one = pool.submit(first)
            assert begun.wait(10)
            other = pool.submit(second)
            connected.remove("second")
            assert other.result(10) == b"" and not came and not one.done()
        finally:
            release.set()
        assert one.result(10) == b"first"
    connected.add("second")
    assert second() == b"second" and came == ["second"]
    with pytest.raises(ZeroDivisionError):
        made(monkeypatch, "first", lambda: 1 / 0)()
    assert second() == b"second"  # nothing is held by what failed


def test_a_pack_whose_asker_has_left_ends_at_its_next_file(connected, monkeypatch):
    view = view_of(load("en-de").trace("A dog runs.", "Ein Hund."))
    drawn = []

    def draw(view):
        drawn.append(view)
        connected.clear()
        return b"picture"

    monkeypatch.setattr(bundle, "PICTURES", dict.fromkeys(bundle.PICTURES, draw))
    model = Model("en-de", "model.safetensors", "0" * 64)
    assert made(monkeypatch, "first", lambda: bundle.make(view, model))() == b""
    assert len(drawn) == 1
    connected.add("first")
    monkeypatch.setattr(bundle, "PICTURES", dict.fromkeys(bundle.PICTURES, lambda view: b"x"))
    assert files_of(made(monkeypatch, "first", lambda: bundle.make(view, model))())
