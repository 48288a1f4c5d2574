"""A lesson in a live page: its questions and marks against the app's, and what a student does."""

from functools import cache

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.live import lesson as live_lesson
from headlight.app.live.build import page
from headlight.model.checkpoint import load
from tests.browser.test_live_page import (  # noqa: F401
    browser,
    new_tab,
    opened_in_a_tab,
)

pytestmark = pytest.mark.browser
LESSONS = live_lesson.CARRIED


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of a lesson, as a file."""
    folder = tmp_path_factory.mktemp("lessons")

    @cache
    def built(name):
        model = LESSONS[name]
        carried = live_lesson.carried(live_lesson.find(name), model, cache(load))
        path = folder / f"{name}.html"
        path.write_text(page(model, carried=carried), encoding="utf-8")
        return path

    return built


# The page


class Lesson:
    """The lesson of an opened page."""

    def __init__(self, tab):
        self.tab, self.panel = tab, tab.page.locator("#lesson")

    def press(self, name):
        self.panel.get_by_role("button", name=name, exact=True).click()
        self.tab.answered()
        return self

    def to(self, title):
        while title != self.panel.get_by_role("heading").inner_text():
            self.press("Next")
        return self

    def says(self):
        return self.panel.get_by_role("status").inner_text()


def test_a_row_is_covered_until_the_question_is_answered(opened):
    tab = opened("shares")
    lesson = Lesson(tab)
    expect(lesson.panel).to_contain_text("step 1 of 10")
    lesson.to("Your turn")
    row = tab.page.locator(".text .target span").nth(2)
    row.hover()
    assert "is covered until you answer" in tab.finding()
    for hidden in ("#views", "#change", ".tools"):
        expect(tab.page.locator(hidden).first).to_be_hidden()
    tiles = tab.grid()[1]
    tab.page.locator(".stage").press("o")  # nothing can be changed
    assert tab.answered().text("state") == "As trained"
    lesson.press("listening")
    assert lesson.says() == "You said listening. Try once more."  # with the hint, still covered
    row.hover()
    assert "is covered until you answer" in tab.finding()
    lesson.press("of")
    assert lesson.says() == "You said of. The answer is group."
    expect(lesson.panel).to_contain_text("Gruppe gives 90% of its attention to group.")
    assert tab.grid()[1] != tiles
    row.hover()
    assert "attends most to group" in tab.finding()
    lesson.press("Back").press("Next")  # what was answered stays answered
    assert lesson.says() == "You said of. The answer is group."
    expect(tab.page.locator("#views")).to_be_visible()
    lesson.to("Out of order").press("Show me")
    assert lesson.says() == "Shown, so it does not count. The answer is talking."
    assert "step=4" in tab.page.url
    tab.page.reload()
    expect(lesson.panel).to_contain_text("Out of order")
    tab.answered()


def test_no_link_leads_behind_the_cover_and_a_phone_shows_the_question_first(opened):
    tab = opened("shares", "#step=3&view=alignment&changes=cross.1.2=temperature:2.0")
    expect(tab.page.locator("#lines")).to_be_hidden()
    tab.page.locator(".text .target span").nth(2).hover()
    assert "is covered until you answer" in tab.finding()
    found = Axe().run(tab.page)
    assert found.violations_count == 0, found.generate_report()
    tab.page.set_viewport_size({"width": 390, "height": 720})
    tab.page.emulate_media(color_scheme="dark")
    found = Axe().run(tab.page)
    assert found.violations_count == 0, found.generate_report()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    above, below = (tab.page.locator(part).bounding_box()["y"] for part in ("#lesson", "main"))
    assert above <= below  # before the picture
    expect(tab.page.locator("#lesson")).to_be_in_viewport()
