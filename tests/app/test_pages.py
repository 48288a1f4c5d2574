"""What pages have in common; tests/app/test_every_page.py draws each with every model."""

import ast
import re

from streamlit.testing.v1 import AppTest

from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import MASKS
from tests.conftest import ROOT


def test_no_module_of_ours_is_loaded_twice(page):
    import sys

    page.run()
    assert not page.exception
    ours = (str(ROOT / "app"), str(ROOT / "model"))
    paths = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    files = [path for path in paths if path.startswith(ours)]
    assert str(ROOT / "app" / "state" / "session.py") in files
    assert len(files) == len(set(files))
    assert {"session", "charts", "sidebar"}.isdisjoint(sys.modules)


def test_a_page_s_module_is_called_like_its_title():
    for entry in PAGES.values():
        name = re.sub(r"\W+", "_", entry.title.lower())
        assert entry.module in (name, f"{name}_page"), entry.title


def test_a_single_token_can_be_taken_along(page):
    for name in ("uneven", "classifier"):
        page.query_params.update(model=name, source="dog", target=".", causal="false")
        page.switch_page("take-away").run()
        assert not page.exception and not page.error


def test_what_does_not_fit_is_refused_on_every_page(page):
    page.query_params["model"] = "short"
    page.query_params["source"] = "the dog sees the cat and the cat sees the dog"
    page.run()
    for view in set(PAGES) - {"learn", "lineage", "lookup"}:  # they need no run
        page.switch_page(view).run()
        assert not page.exception
        assert "at most 12" in page.error[0].value
    page.switch_page(HOME).run()
    page.button(key="translate_again").click().run()
    assert not page.exception and "at most 12" in page.error[0].value
    page.text_area(key="source").set_value("the dog").run()
    assert not page.error


def test_a_classifier_gives_probabilities_and_asks_for_no_target(page):
    page.query_params.update(model="classifier", source="the dog")
    for padding, masks in ((0, set()), (9, {"src_padding"})):  # something to mask once padded
        page.run()
        if padding:
            page.number_input(key="pad_to").set_value(padding).run()
        assert {toggle.key for toggle in page.toggle} & set(MASKS) == masks
    assert any("bad\\," in text.value or "good\\," in text.value for text in page.markdown)
    assert "target" not in [box.key for box in page.text_input]
    page.switch_page("bertviz").run()
    assert page.segmented_control(key="kind").options == ["encoder"]


def test_no_table_shows_the_index_of_its_data_frame():
    calls = [
        node
        for path in (ROOT / "app").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "dataframe"
    ]
    options = [{given.arg: ast.unparse(given.value) for given in call.keywords} for call in calls]
    assert len(calls) > 5 and {given.get("hide_index") for given in options} == {"True"}


def test_an_open_drawer_does_not_wait_on_another_page(page):
    page.run()
    for key, is_open in ((HOME, True), ("learn", False), (HOME, False)):
        AppTest.run(page.switch_page(key))
        assert bool(page.session_state["_memo"].drawer) == is_open, key
