"""The stage as the server tells it: one look in every run, which names what may be seen."""

import pytest

from headlight.app.components import stage as component
from headlight.app.components.packing import id_of
from tests.app.common import components

VIEW, TEXT = "stage", "A dog runs."


@pytest.fixture
def sent(monkeypatch):
    """The weights that were sent, run for run."""
    sent = []
    monkeypatch.setattr(component, "_mount_run", lambda data, **other: sent.append(data))
    return sent


def look_of(page):
    (look,) = components(page, "stage_look")
    return look


def test_a_run_is_named_by_the_one_look_of_its_run(opened, sent):
    page = opened()
    assert look_of(page)["run"] == id_of(sent[-1]) and not look_of(page)["covered"]
    numbers = [look_of(page)["number"]]
    for _ in range(2):
        page.run()
        numbers.append(look_of(page)["number"])
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "settings",
    [
        {"source": ""},
        {"changes": "nonsense"},
        {"changes": "cross.9.9=off"},
        {"source": "a " * 2000},
    ],
)
def test_what_cannot_be_shown_is_covered_and_leaves_a_box_to_type(opened, sent, settings):
    page = opened(**settings)
    assert look_of(page)["covered"] and look_of(page)["run"] is None and look_of(page)["types"]
    assert not sent and not page.exception and [*page.error, *page.info]


def test_a_cover_after_a_run_names_none(opened, sent):
    page = opened()
    before = len(sent)
    page.session_state["changes"] = "nonsense"
    page.run()
    assert look_of(page)["run"] is None and len(sent) == before


def test_what_is_done_has_what_undoes_it(opened, sent):
    changes = "encoder=hide:2; cross=hide:2; cross.1.2=off"
    page = opened(changes=changes, causal="false")
    done = look_of(page)["done"]
    assert len(done) == 3
    for each in done:
        undo = each["undo"]
        if "changes" in undo:
            assert len(undo["changes"]) < len(changes)
        else:
            assert undo == {"reset": "causal"}
