"""The BertViz page without a browser: what is drawn when, and what is said instead."""

import pytest

from headlight.app.state.options import DRAWN_AT_ONCE
from tests.app.common import words

PAGE = "bertviz"


@pytest.fixture
def bertviz(page):
    """The page for a model, a source and a view."""

    def opened(name: str, source: str = "the dog", view: str = "head"):
        page.query_params.update(model=name, source=source, target="ein Hund")
        page.run()
        page.switch_page(PAGE).run()
        return page.segmented_control(key="bertviz").set_value(view).run()

    return opened


def drawn(page) -> bool:
    assert not page.exception
    shown = [element for element in page.main if element.type == "bidi_component"]
    return any("html_frame" in element.proto.component_name for element in shown)


def test_a_text_of_many_tokens_is_drawn_when_asked_for(bertviz):
    page = bertviz("uneven", "the dog " * (DRAWN_AT_ONCE // 2))
    page.segmented_control(key="kind").set_value("encoder").run()
    assert not drawn(page) and not page.warning
    assert drawn(page.toggle(key="draw").set_value(True).run())


def test_a_layer_left_out_is_forgotten_where_there_is_none(bertviz):
    page = bertviz("uneven")
    page.segmented_control(key="kind").set_value("decoder").run()
    page.multiselect(key="leave_out").set_value([1, 5]).run()
    assert drawn(page) and "opens on layer 2" in words(page)
    page.segmented_control(key="kind").set_value("encoder").run()
    assert drawn(page) and page.multiselect(key="leave_out").value == [1]
    page.multiselect(key="leave_out").set_value([1, 2]).run()
    assert not drawn(page) and "Keep at least one" in page.info[0].value


def test_a_long_text_is_drawn_on_second_asking(bertviz):
    page = bertviz("uneven", "the dog " * 70, view="model")
    page.segmented_control(key="kind").set_value("encoder").run()
    page.toggle(key="draw").set_value(True).run()
    assert not drawn(page)
    assert "lines and boxes" in page.warning[0].value and "fewer layers" in page.warning[0].value
    assert drawn(page.button(key="draw_all_the_same").click().run())
    page.multiselect(key="leave_out").set_value([1]).run()  # half as much
    assert drawn(page) == (not page.warning)


def test_what_a_browser_cannot_draw_is_refused(bertviz):
    page = bertviz("uneven", "the dog " * 300, view="head")
    page.segmented_control(key="kind").set_value("encoder").run()
    assert not drawn(page) and "too much for a browser" in page.warning[0].value
    assert not [button for button in page.button if button.key == "draw_all_the_same"]
    page.text_area(key="source").set_value("the dog").run()
    assert drawn(page) and not page.warning
