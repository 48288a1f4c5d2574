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


COVERED = "This row is covered until you answer."


def test_a_row_is_covered_until_the_question_is_answered(opened):
    tab = opened("shares")
    lesson = Lesson(tab)
    expect(lesson.panel).to_contain_text("step 1 of 10")
    lesson.to("Your turn")
    row = tab.page.locator(".side:not(.written)").last.get_by_text("Gruppe", exact=True)
    row.click()
    expect(tab.finding).to_have_text(COVERED)
    covered = tab.pixels()
    tab.page.locator("canvas").focus()
    tab.press("o")  # nothing can be changed
    assert tab.done() == []
    tab.press("Enter")  # nor do its numbers tell
    expect(tab.finding).to_have_text(COVERED)
    tab.press("3")
    lesson.press("listening")
    assert lesson.says() == "You said listening. Try once more."  # with the hint, still covered
    expect(tab.finding).to_have_text(COVERED)
    lesson.press("of")
    assert lesson.says() == "You said of. The answer is group."
    expect(lesson.panel).to_contain_text("Gruppe gives 90% of its attention to group.")
    expect(tab.finding).to_contain_text("attends most to group (90%)")
    assert tab.pixels() != covered
    tab.page.locator("canvas").focus()
    tab.press("Enter")
    expect(tab.finding).to_contain_text("q · k is")
    lesson.press("Back").press("Next")  # what was answered stays answered
    assert lesson.says() == "You said of. The answer is group."
    row.click()
    expect(tab.finding).to_contain_text("attends most to group (90%)")
    lesson.to("Out of order").press("Show me")
    assert lesson.says() == "Shown, so it does not count. The answer is talking."
    assert "step=4" in tab.page.url
    tab.page.reload()
    expect(lesson.panel).to_contain_text("Out of order")
    tab.answered()


def test_no_link_leads_behind_the_cover_and_a_phone_shows_the_question_first(opened):
    place = "view=best&depth=row&cell=cross.1.2.3"
    tab = opened("shares", f"#step=3&{place}&changes=cross.1.2=temperature:2.0")
    expect(tab.finding).to_contain_text(COVERED)
    more = tab.more()
    expect(more.get_by_label("Source padding mask")).to_be_disabled()
    found = Axe().run(tab.page)
    assert found.violations_count == 0, found.generate_report()
    more.get_by_role("button", name="Close").click()
    tab.page.set_viewport_size({"width": 390, "height": 720})
    tab.page.emulate_media(color_scheme="dark")
    tab.page.wait_for_timeout(400)  # colours are on their way for 250 ms
    found = Axe().run(tab.page)
    assert found.violations_count == 0, found.generate_report()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    above, below = (tab.page.locator(part).bounding_box()["y"] for part in ("#lesson", ".stage"))
    assert above <= below  # before the picture
    expect(tab.page.locator("#lesson")).to_be_in_viewport()
