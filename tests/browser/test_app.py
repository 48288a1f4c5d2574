"""The app as a person meets it: what only a browser shows."""

import pytest
from playwright.sync_api import expect

from headlight.app import theme
from headlight.app.state.pages import ALIASES, PAGES
from headlight.app.text.keys import BY_PAGE, EVERYWHERE

pytestmark = pytest.mark.browser


def test_the_link_is_copied(visit):
    """That it brings everything back is asked in test_journeys.py."""
    visit.open("inside").type("Zwei Hunde rennen.", "Target").switch("Causal mask")
    visit.menu("share")
    visit.page.get_by_role("button", name="Copy link").click()
    expect(visit.page.get_by_text("Copied.")).to_be_visible()
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    assert "causal=false" in visit.page.url and "target=Zwei" in visit.page.url


def test_out_of_range_link_falls_back_and_is_written_back(visit):
    visit.open("?kind=sideways&layer=99&head=0&pad_to=100000&causal=perhaps&model=nobody")
    expect(visit.page.locator(".stage .words .w").first).to_be_visible()
    # Written back a moment after the drawing.
    visit.page.wait_for_function(
        "() => !/(kind|layer|head|pad_to|causal|model)=/.test(location.search)"
    )


@pytest.mark.parametrize(
    ("path", "key"), [(path, ALIASES[path]) for path in ("family", "export", "query-key-value")]
)
def test_the_address_of_a_page_that_is_gone_opens_the_one_in_its_place(visit, path, key):
    visit.open(f"{path}?source=A+dog+runs.&picture=One+system")
    visit.page.wait_for_url(f"**/{PAGES[key].path}?*")
    expect(visit.page.locator(PAGES[key].picture)).to_be_visible()
    assert "source=A+dog+runs." in visit.page.url


def test_a_menu_that_was_closed_brings_nothing_old_back(visit):
    """Its widgets are nowhere in the browser, which hears of no later choice and sends the old
    one."""
    visit.open("inside?model=uneven&source=the+dog&target=ein+Hund&kind=cross&layer=2")
    visit.choose("kind", "encoder").expect_head("Encoder self-attention", 2, 1)
    visit.menu("what_if")
    visit.type("cross.1=off", "Changes")
    visit.page.keyboard.press("Escape")
    visit.idle()
    visit.page.get_by_role("button", name="Switch off head 2.1").click()
    visit.settle().choose("layer", 1)
    visit.switch("Causal mask").expect_head("Encoder self-attention", 1, 1)
    expect(visit.page.get_by_text("+1 more")).to_be_visible()  # than three chips
    for page in ("PyTorch", "Heads"):
        visit.go(page).settle()
        for part in ("changes=cross.1%3Doff%3B+encoder.2.1%3Doff", "kind=encoder"):
            assert part in visit.page.url, page


def test_back_leads_to_the_place_one_was_at(visit):
    place = "document.querySelector('.stMain').scrollTop"
    visit.page.set_viewport_size({"width": 1280, "height": 500})
    visit.open("take-away")
    visit.page.evaluate(f"{place} = 200")
    visit.settle().go("Tokenizer").back("/take-away")
    visit.page.wait_for_function(f"() => {place} === 200")


def test_what_is_reserved_is_what_the_bar_takes(visit):
    """Else they push the page down as they arrive, or leave a hole."""
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    heights = theme.BAR, theme.STATE, theme.ROW_OF_PAGE
    for query in ("model=uneven&source=dog", "causal=false&changes=cross.1.1%3Doff"):
        visit.open(f"inside?{query}")
        lines = (visit.page.locator(f".st-key-{key}") for key in ("bar", "state", "page"))
        assert [round(line.bounding_box()["height"]) for line in lines] == [*heights]


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
    visit.open("inside").menu("more")
    visit.page.get_by_role("button", name="Keys").click()
    assert sheet.get_by_text(BY_PAGE["inside"][0][1]).is_visible()
    sheet.get_by_role("button", name="Close").click()
    visit.page.get_by_role("textbox", name="Source sentence").press("?")
    expect(sheet).to_be_hidden()
