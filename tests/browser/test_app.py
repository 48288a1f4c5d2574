"""The app as a person meets it: what only a browser shows."""

import pytest
from playwright.sync_api import expect

from headlight.app.state.pages import PAGES
from headlight.app.text.keys import BY_PAGE, EVERYWHERE
from tests.browser.conftest import CLOSE, HEADER

pytestmark = pytest.mark.browser


def test_the_link_is_copied(visit):
    """That it brings everything back is asked in test_journeys.py."""
    visit.open("inside").type("Zwei Hunde rennen.", "Target").switch("Causal mask").go("Share")
    visit.page.get_by_role("button", name="Copy", exact=True).click()
    expect(visit.page.get_by_text("Copied.")).to_be_visible()
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert all(part in copied for part in ("/inside?", "causal=false", "target=Zwei"))


def test_out_of_range_link_falls_back_and_is_written_back(visit):
    visit.open("?kind=sideways&layer=99&head=0&pad_to=100000&causal=perhaps&model=nobody")
    expect(visit.page.locator(".stage .words .w").first).to_be_visible()
    # Written back a moment after the drawing.
    visit.page.wait_for_function(
        "() => !/(kind|layer|head|pad_to|causal|model)=/.test(location.search)"
    )


def test_the_drawer_takes_the_focus_and_gives_it_back(visit):
    """On the stage and on a page. Esc leaves a field of it first, then it, and then no more."""
    page = visit.page
    more = page.locator(HEADER).get_by_role("button", name="More", exact=True)
    for path in ("?projector=true&depth=row", "tokenizer"):
        visit.open(path)
        if "projector" in path:
            page.get_by_role("button", name="Leave", exact=True).click()
            visit.idle()
        for is_typed in (False, True):
            visit.unfold()  # which expects the focus there
            if is_typed:
                page.locator(".st-key-drawer textarea").first.press("Escape")
                expect(page.locator(CLOSE)).to_be_visible()
            page.keyboard.press("Escape")
            expect(page.locator(CLOSE)).to_have_count(0)
            expect(more).to_be_focused()


def test_what_is_closed_brings_nothing_old_back(visit):
    """Its widgets are nowhere in the browser, which hears of no later choice and sends the old
    one."""
    visit.open("bertviz?model=uneven&source=the+dog&target=ein+Hund&kind=cross&layer=2")
    visit.choose("kind", "encoder").expect_head("encoder", 2, 1)
    visit.type("cross.1=off", "Changes").fold()
    visit.page.get_by_role("button", name="Undo: Cross layer 1 off").click()
    visit.settle().choose("layer", 1)
    visit.switch("Causal mask").expect_head("encoder", 1, 1)
    for page in ("Inside a head", "Heads"):
        visit.go(page).settle()
        asked = visit.page.url
        assert "kind=encoder" in asked or "cell=encoder.1" in asked, page
        assert "changes=" not in asked and "causal=false" in asked, page


def test_back_leads_to_the_place_one_was_at(visit):
    place = "document.querySelector('.stMain').scrollTop"
    visit.page.set_viewport_size({"width": 1280, "height": 500})
    visit.open("take-away")
    visit.page.evaluate(f"{place} = 200")
    visit.settle()  # the header is out of sight
    visit.page.locator(HEADER).get_by_role("link", name="Learn").evaluate("(a) => a.click()")
    visit.page.wait_for_url("**/learn?*")
    visit.idle().back("/take-away")
    visit.page.wait_for_function(f"() => {place} === 200")


def test_a_page_that_shows_nothing_says_why_once_and_takes_another_sentence(visit):
    """Too long, empty, or under changes that are none."""
    page = visit.page
    for path, said in (
        (f"tokenizer?source={'a+dog+' * 600}", "This model reads at most"),
        ("bertviz?changes=nonsense", "is not a change"),
        ("take-away?source=&line=", "Type a sentence above"),
    ):
        visit.open(path)
        box = page.locator(HEADER).get_by_role("textbox", name="Sentence")
        message = page.get_by_text(said)
        expect(message).to_have_count(1)
        expect(message).to_be_in_viewport(ratio=1)
        if "changes" in path:
            page.get_by_role("button", name="Keep the valid changes").click()
            visit.idle()
        visit.type("A dog runs.")
        expect(box).to_be_hidden()
        expect(page.locator(HEADER).locator(".words")).to_contain_text("Un chien")


def test_a_link_of_the_header_opens_its_page_in_a_new_tab_too(visit):
    """With all that stands in the address."""
    visit.open("tokenizer?source=A+dog+runs.")
    header = visit.page.locator(HEADER)
    for name, path in (("Learn", "learn"), ("Share", "take-away")):
        address = header.get_by_role("link", name=name, exact=True).evaluate("({ href }) => href")
        assert address == f"{visit.address}/{path}?source=A+dog+runs."
    with visit.page.context.expect_page() as opening:
        header.get_by_role("link", name="Share").click(modifiers=["ControlOrMeta"])
    opened = opening.value
    expect(opened.locator(PAGES["take-away"].picture)).to_be_visible()
    assert "source=A+dog+runs." in opened.url and "/tokenizer" in visit.page.url


def test_a_question_mark_opens_the_keys_of_the_page(visit):
    visit.open("inside?projector=true")
    sheet = visit.page.get_by_role("dialog", name="Keys")
    visit.page.keyboard.press("?")
    assert sheet.get_by_role("row").count() == len(BY_PAGE["inside"]) + len(EVERYWHERE)
    step = visit.page.get_by_role("heading", name=". ").inner_text()
    for key in ("ArrowRight", "Escape"):  # neither reaches the page behind it
        expect(sheet).to_be_visible()
        visit.page.keyboard.press(key)
    expect(sheet).to_be_hidden()
    assert visit.page.get_by_role("heading", name=". ").inner_text() == step
    assert "projector=true" in visit.page.url
    visit.open("inside").unfold()
    visit.page.get_by_role("button", name="Keys").click()
    assert sheet.get_by_text(BY_PAGE["inside"][0][1]).is_visible()
    sheet.get_by_role("button", name="Close").click()
    visit.fold().page.locator(HEADER).locator(".pencil").click()
    visit.page.keyboard.press("?")
    expect(sheet).to_be_hidden()
