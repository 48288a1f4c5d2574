"""The stage in a browser: mounted once, without messages from depth to depth, and with nothing on
it that is covered."""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.conftest import serve

pytestmark = pytest.mark.browser
MA = "?model=en-fr&kind=cross&layer=3&head=3&follow=11+ma"
HTML = {"accept": "text/html"}
PLACE = ".st-key-stage_place"
FIRST_OF_CROSS = {"x": 906, "y": 130}  # in a window of 1280 × 900
EMBEDDING = {"x": 110, "y": 16}  # of the source
MOUNTS = "headlightStage.mounts"
# What can be read on the stage, while it is covered, in every frame from now on.
WATCH = """() => {
  window.leaks = [];
  const look = () => {
    const { root } = headlightStage.stage;
    if (document.documentElement.hasAttribute("data-stage-covered"))
      for (const part of root.querySelectorAll(".words, .line, .picture"))
        if (getComputedStyle(part).visibility !== "hidden") leaks.push(part.textContent);
    requestAnimationFrame(look);
  };
  look();
}"""
OPEN = """address => {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: { isLink: true } }));
}"""


# In every frame, whether the stage lies over the first screen while it waits.
SEEN_THROUGH = """() => {
  window.veiled = 0;
  const look = () => {
    const { root } = globalThis.headlightStage?.stage ?? {};
    if (root?.isConnected && document.getElementById("hl-first"))
      veiled += getComputedStyle(root).backgroundColor === "rgba(0, 0, 0, 0)" ? 0 : 1;
    requestAnimationFrame(look);
  };
  look();
}"""


def finding(visit):
    return visit.page.locator(f"{PLACE} .finding")


def press(visit, *keys):
    for key in keys:
        visit.page.keyboard.press(key)
        visit.page.wait_for_timeout(700)  # a depth is a way of 620 ms


def asked(visit):
    return visit.page.evaluate("traffic.asked")


def test_it_is_mounted_once_and_depths_take_no_message(visit):
    visit.open(MA)
    expect(finding(visit)).to_contain_text("about to write ma, cross 3.3 attends most to my (71%)")
    press(visit, "Enter")  # the scores of the head come once
    expect(finding(visit)).to_contain_text("q · k is 32.3")
    visit.settle()
    before = asked(visit)
    press(visit, "Escape", "1", "ArrowLeft", "ArrowRight", "2", "4", "ArrowRight", "ArrowRight")
    press(visit, "d", "d", "3", "ArrowDown", "ArrowUp")
    visit.page.get_by_role("button", name="Lines").click()
    press(visit, "4")
    expect(finding(visit)).to_contain_text("is 302, of 425 in all. my gets 71%, of 23%.")
    assert asked(visit) == before
    for said in ("depth=row", "cell=cross.3.3.11", "view=lines", "stop=weights"):
        assert said in visit.page.url
    press(visit, "Escape")
    expect(finding(visit)).to_contain_text("cross 3.3 attends most to my")
    page = visit.page
    page.get_by_role("button", name="Type another sentence").click()
    page.keyboard.type("A dog runs.")
    page.keyboard.press("Enter")
    expect(page.locator(f"{PLACE} .words")).to_contain_text("Un chien")
    page.get_by_label("Model", exact=True).select_option("english")
    expect(page.locator(f"{PLACE} .rail")).to_contain_text("decoder")
    page.get_by_role("button", name="Present", exact=True).click()
    page.get_by_role("button", name="Leave").click()
    visit.settle().go("Tokenizer")
    visit.go("Heads")
    expect(finding(visit)).to_contain_text("attends")
    assert page.evaluate(MOUNTS) == 1
    visit.expect_well()


def test_a_bar_opens_into_the_numbers_behind_it(visit):
    """What is said of them: tests/javascript/test_stage.py."""
    visit.open(f"lookup{MA}&vectors=Query%E2%80%93key+plane")  # a former picture
    expect(finding(visit)).to_contain_text("ma · my is 32.3")
    visit.open(f"{MA}&depth=row")
    page, picture = visit.page, visit.page.locator(f"{PLACE} canvas")
    current = page.locator(f"{PLACE} .rail [aria-current]")
    expect(finding(visit)).to_contain_text("q · k is 32.3")
    of = {"x": 717, "y": 440}  # the bar of the word before
    picture.click(position=of)
    expect(page.locator(f"{PLACE} .rail button").last).to_have_text("of")
    expect(current).to_have_text("ma")
    picture.click(position=of)
    expect(current).to_have_text("of")
    expect(finding(visit)).to_contain_text("ma · of is 26.0, a sum of 32 products")
    visit.settle()
    before = asked(visit)
    press(visit, "Shift+ArrowRight")
    expect(finding(visit)).to_contain_text("ma · my is 32.3, a sum of 32 products")
    press(visit, "ArrowLeft")
    expect(page.locator(f"{PLACE} .spoken").last).to_contain_text("the sum so far ")
    page.get_by_role("button", name="Largest first").click()
    expect(finding(visit)).to_contain_text("products add ")
    assert "depth=number" in page.url and "number=largest" in page.url
    press(visit, "Escape", "y")
    expect(finding(visit)).to_contain_text("Why my? It scores 5.7 above the other keys")
    press(visit, "Escape")
    before = asked(visit)
    expect(current).to_have_text("ma")
    press(visit, "5")
    expect(current).to_have_text("my")
    assert asked(visit) == before  # queries and keys of a head come once
    visit.expect_well()


def test_the_sentence_stands_there_before_the_app(visit):
    """In the document, and to be seen, until the stage has something to show or to cover."""
    visit.page.add_init_script(f"({SEEN_THROUGH})()")
    for address in ("?model=en-fr&source=A+<b>+dog.", "?model=en-fr&changes=nonsense"):
        document = visit.page.request.get(f"{visit.address}/{address}", headers=HTML).text()
        assert ('id="hl-first"' in document) and "A <b>" not in document
        visit.open(address)
        expect(visit.page.locator("#hl-first")).to_have_count(0)
        assert not visit.page.evaluate("veiled")


def test_the_model_stands_above_its_heads(visit):
    visit.open(f"model{MA}")  # a former address, as of the two views below
    page, picture = visit.page, visit.page.locator(f"{PLACE} canvas")
    spoken = page.locator(f"{PLACE} .spoken").last
    expect(finding(visit)).to_contain_text("10 of 16 cross heads attend most to my")
    visit.settle()
    before = asked(visit)
    picture.click(position=FIRST_OF_CROSS)  # a map is the way into its head
    expect(spoken).to_have_text("cross 1.1")
    expect(page.locator(f"{PLACE} .rail [aria-current]")).to_have_text("cross 1.1")
    assert asked(visit) == before
    press(visit, "1")
    for view, said in (("After each layer", "it would write 12 of 14"), ("Needs", "ma needs my")):
        page.get_by_role("button", name=view).click()
        expect(finding(visit)).to_contain_text(said)
    picture.focus()
    press(visit, "ArrowRight")  # another word, another question
    expect(finding(visit)).to_contain_text("sœur needs sister")
    page.keyboard.press("ArrowLeft")
    expect(spoken).to_contain_text("ma needs my")
    assert "depth=model" in page.url and "whole=needs" in page.url
    press(visit, "1")
    page.get_by_role("button", name="Maps").click()
    picture.click(position=EMBEDDING)
    expect(finding(visit)).to_contain_text("She, at place 1, is most like its neighbour: 97%")
    press(visit, "ArrowDown", "ArrowRight")
    for says in (page.locator(f"{PLACE} .legend"), spoken):
        expect(says).to_contain_text("Place 2, number 1: table 0.841")
    page.get_by_role("button", name="+ word").click()
    expect(finding(visit)).to_contain_text("has enters layer 1 as word + place 2")
    for former, said in (("attribution", "ma needs my"), ("residual", "If it stopped after")):
        visit.open(f"{former}{MA}" + "&picture=Source+words" * (former == "attribution"))
        expect(finding(visit)).to_contain_text(said)
    press(visit, "Enter")
    expect(page.locator(f"{PLACE} .rail [aria-current]")).to_have_text("Heads")
    visit.expect_well()


def test_a_row_leads_to_the_logit_of_its_word(visit):
    visit.open(f"attribution{MA}&score_at=3")  # a former page
    logit = "The logit of ma is 10.7, a sum of 39 parts. cross 4.3 adds the most: 2.0"
    expect(finding(visit)).to_have_text(f"{logit}; this head, cross 3.3, 0.5.")
    page, spoken = visit.page, visit.page.locator(f"{PLACE} .spoken").last
    visit.settle()
    before = asked(visit)
    press(visit, "Shift+ArrowRight")
    expect(spoken).to_contain_text("cross 3.4 adds 1.20, the sum so far 4.")
    assert asked(visit) == before
    press(visit, "Enter")  # selects that head; the word stays
    expect(finding(visit)).to_have_text(f"{logit}; this head, cross 3.4, 1.2.")
    assert all(part in page.url for part in ("stop=word", "depth=row", "cell=cross.3.4."))
    press(visit, "ArrowLeft")
    expect(finding(visit)).to_contain_text("of the effect on")
    visit.expect_well()


def test_what_the_model_writes_lies_over_any_depth(visit):
    """What is said of it: tests/javascript/test_stage.py."""
    visit.open(f"generate{MA}")  # a former page
    page, current = visit.page, visit.page.locator(f"{PLACE} .rail [aria-current]")
    expect(finding(visit)).to_contain_text("en-fr writes Elle (77%)")
    visit.settle()
    before = asked(visit)
    press(visit, *["ArrowRight"] * 10)
    expect(finding(visit)).to_contain_text("Having read de, en-fr writes ma (88%)")
    expect(page.locator(f"{PLACE} .written")).to_contain_text("Elle n'a jamais vu la voiture")
    press(visit, "ArrowDown", "ArrowDown")
    expect(page.locator(f"{PLACE} .spoken").last).to_have_text("mon, 1.1%")
    assert asked(visit) == before
    press(visit, "Enter")
    expect(finding(visit)).to_have_text("ma → mon × It had 1.1%. The text goes on: sœur.")
    assert "beginning=" in page.url and "write=one" in page.url
    page.reload()
    expect(finding(visit)).to_contain_text("It had 1.1%")
    page.get_by_role("button", name="Undo: ma → mon").click()
    expect(finding(visit)).to_contain_text("en-fr writes Elle (77%)")
    page.get_by_role("button", name="5 beams").click()
    expect(finding(visit)).to_contain_text("Five beams find the same text")
    visit.open(f"generate{MA}&how=Sampling")
    expect(finding(visit)).to_contain_text("At temperature 1, ")
    page.get_by_role("spinbutton", name="temperature").fill("0.1")
    page.keyboard.press("Enter")
    expect(finding(visit)).to_contain_text("At temperature 0.1, all 8 texts")
    page.locator(f"{PLACE} canvas").focus()
    press(visit, "Escape")
    expect(current).to_have_text("cross 3.3")
    assert "write=" not in page.url
    press(visit, "4", " ", " ")  # and there it plays
    expect(finding(visit)).to_contain_text("en-fr writes </s>", timeout=20_000)
    press(visit, "Escape")
    expect(finding(visit)).to_contain_text("q · k is 32.3")
    visit.expect_well()


def test_pytorch_stands_beside_a_head(visit):
    visit.open(MA)
    page, picture = visit.page, visit.page.locator(f"{PLACE} canvas")
    same = re.compile(r"agrees: no head differs by more than 0.00000\d+\.$")
    page.get_by_role("button", name="More").click()
    visit.settle().page.get_by_role("link", name="PyTorch").click()
    expect(finding(visit)).to_have_text(same)
    expect(page.locator(".st-key-drawer")).to_have_count(0)
    picture.click(position={"x": picture.bounding_box()["width"] - 120, "y": 60})
    expect(finding(visit)).to_contain_text("in PyTorch.")  # a cell of the third matrix
    press(visit, "Escape", "ArrowDown", "o")
    expect(finding(visit)).to_have_text(re.compile(f"Cross 3.3 off .*{same.pattern}"))
    visit.expect_well()


def test_the_selection_is_one_on_the_stage_and_on_other_pages(visit):
    visit.open("row?model=en-fr&follow=11+ma&stop=exp")  # a former address
    expect(finding(visit)).to_contain_text("e to the power of 5.71 is 302")
    press(visit, "2", "ArrowLeft", "3", "ArrowDown")
    places = visit.page.locator(f"{PLACE} .rail button").all_inner_texts()
    visit.go("Inside a head")
    expect(visit.page.locator(f"{PLACE} .rail button")).to_have_text(places)
    step = visit.page.locator(".st-key-page_body")
    expect(step).to_contain_text(f"“{places[3]}” · “{places[4]}”")
    visit.open("?model=en-fr&depth=row&cell=cross.2.1.4&stop=output")
    expect(visit.page.locator(f"{PLACE} .rail")).to_contain_text("cross 2.1")
    expect(finding(visit)).to_contain_text("of the effect on")


def test_acts_stand_in_the_sentence_and_are_undone_there(visit):
    visit.open(MA)
    visit.page.locator(f"{PLACE} .w", has_text="never").click()
    visit.page.get_by_role("button", name="Hide H", exact=True).click()
    visit.settle()
    expect(finding(visit)).to_contain_text("“never” hidden")
    expect(visit.page.locator(f"{PLACE} .w.lost").first).to_be_visible()
    slider = visit.page.get_by_label("Before to after")
    slider.fill("0")
    expect(visit.page.locator(f"{PLACE} .w.lost")).to_have_count(0)
    press(visit, "o")
    visit.settle()
    expect(finding(visit)).to_contain_text("Cross 3.3 off")
    visit.page.go_back()
    visit.settle()
    expect(finding(visit)).not_to_contain_text("off ×")
    visit.page.get_by_role("button", name="Undo: “never” hidden").click()
    visit.settle()
    expect(finding(visit)).to_contain_text("attends most to my (71%)")
    press(visit, "4")  # a question right behind acts is answered
    expect(finding(visit)).to_contain_text("best: q · k is")
    visit.expect_well()


def test_nothing_is_seen_where_the_server_covers_it(visit):
    visit.open(MA)
    page = visit.page
    page.evaluate(WATCH)
    for address, said in (
        ("/?model=en-fr&changes=nonsense", "nonsense"),
        (f"/{MA}", ""),
        ("/?model=en-fr&source=&line=", "Type a sentence"),
        ("/?lesson=1-shares&step_of_lesson=3", "Covered until you answer"),
    ):
        page.evaluate(OPEN, address)
        visit.settle()
        if said:
            expect(page.locator(".st-key-stage_body").get_by_text(said).first).to_be_visible()
            if "lesson" not in address:  # whose question stands there
                expect(finding(visit)).to_be_hidden()
    page.evaluate(OPEN, "/?model=en-fr&source=&line=")
    visit.settle()
    page.get_by_role("textbox", name="Sentence").fill("A dog runs.")
    page.keyboard.press("Enter")
    expect(page.locator(f"{PLACE} .words")).to_contain_text("Un chien")
    question = "Which English token does it attend to most?"  # the lesson's own words may be read
    assert not [leak for leak in page.evaluate("leaks") if question not in leak]
    visit.expect_well()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_small_windows(visit, scheme):
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    visit.open(MA)
    for size in ((1280, 720), (390, 844)):
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        page.locator(f"{PLACE} canvas").focus()
        for view in ("1", "Positions", "2", "4", " ", "beams", "Sampled", "3", "PyTorch"):
            if len(view) == 1:
                page.locator(f"{PLACE} canvas").focus()
                press(visit, view)
            else:
                page.get_by_role("button", name=re.compile(f"{view}$")).click()
            page.evaluate(AXE_SCRIPT)
            found = page.evaluate(
                "axe.run('.st-key-stage_place').then(({ violations }) => violations)"
            )
            assert not found, [(one["id"], one["nodes"][0]["html"]) for one in found]
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.locator(f"{PLACE} canvas").focus()
    press(visit, "3", "ArrowRight")
    expect(page.locator(f"{PLACE} .spoken[aria-live]")).to_contain_text(re.compile(r"%|masked"))
    visit.expect_well()


@pytest.mark.long
def test_a_question_asked_without_a_server_is_answered_by_the_next_one(models, context):
    with serve(models) as address:
        visit = Visit(context.new_page(), address).open(MA)
        expect(finding(visit)).to_contain_text("attends most to my")
        port = int(address.rpartition(":")[2])
    press(visit, "2", "ArrowLeft", "4")  # depths work; the scores of another head are wanted
    expect(finding(visit)).to_contain_text("are on their way")
    with serve(models, port=port):
        page = visit.page
        connected = "[data-testid=stApp][data-test-connection-state=CONNECTED]"
        page.wait_for_selector(connected, timeout=60_000)
        expect(finding(visit)).to_contain_text("q · k is")
        press(visit, "o")
        visit.settle()
        expect(finding(visit)).to_contain_text("off ×")
        assert page.evaluate(MOUNTS) == 1 and visit.errors == []
        page.close()


def test_colours_of_the_system_keep_what_colours_say(visit):
    visit.page.emulate_media(forced_colors="active")
    visit.open(MA)
    expect(finding(visit)).to_contain_text("attends most to my (71%)")
    matrix = visit.page.get_by_role("button", name="Matrix")
    expect(matrix).to_have_css("text-decoration-line", "underline")
    expect(visit.page.locator(f"{PLACE} .legend i")).to_have_css(
        "background-image", re.compile("gradient")
    )
