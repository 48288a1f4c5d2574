"""The first view, and what a click or the pointer does to it: in pixels, frames and bytes."""

import base64

import pytest
from playwright.sync_api import expect

from headlight.model import load

pytestmark = pytest.mark.browser
SIZES = (1280, 720), (1366, 768)
LEAST_TILES = 16
FRAMES = 2
BYTES = 26 * 1024  # of a click, both ways
LEAST_SHARE, LARGER = 0.3, 1.25  # of the screen; in Present, against the same page without

# Where things are, and whether a text fits its box. A placeholder has no scroll width of its own.
FIRST_VIEW = """() => {
  const { grid } = window.headlight;
  const box = (node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return { left, top, right, bottom };
  };
  const bar = box(document.querySelector(".st-key-top_bar"));
  const inside = ({ left, top, right, bottom }, from = 0) =>
    left >= 0 && top >= from && right <= innerWidth && bottom <= innerHeight;
  const tiles = grid.drawn.flatMap((section) => {
    const { left, top } = section.over.canvas.getBoundingClientRect();
    return Array.from({ length: section.part.layers * section.part.heads }, (_, place) => {
      const { x, y } = grid.corner(section, place);
      return { left: left + x, top: top + y, right: left + x + section.width,
        bottom: top + y + section.height };
    });
  });
  const head = grid.selected.picture, frame = head.parentElement;
  const source = document.querySelector('[aria-label="Source sentence"]');
  const target = [...document.querySelectorAll(".st-key-output button p")]
    .find((text) => text.getBoundingClientRect().width);
  const logo = [...document.querySelectorAll(".st-key-menu *")]
    .map(({ shadowRoot }) => shadowRoot?.querySelector("img")).find(Boolean);
  return {
    scrolled: document.querySelector(".stMain").scrollTop + scrollY,
    logo: logo && logo.complete && logo.naturalWidth > 0 && inside(box(logo)),
    name: logo?.alt,
    source: inside(box(source)) && source.scrollHeight <= source.clientHeight + 1 && source.value,
    target: inside(box(target)) && target.scrollWidth <= target.clientWidth + 1 &&
      target.textContent,
    tiles: tiles.filter((tile) => inside(tile, bar.bottom)).length,
    all: tiles.length,
    narrowest: Math.min(...grid.drawn.map((section) => section.width)),
    head: inside(box(head), bar.bottom) && frame.scrollWidth <= frame.clientWidth,
    lowest: box(head).bottom,
  };
}"""

# The frame after a click in which the head's picture is another one, counted from 1, and when the
# next began: then it had been drawn. Pointer and click come to us before the page.
WATCH = """() => {
  const { grid } = window.headlight;
  const look = () => grid.selected.picture.toDataURL();
  const before = look();
  window.painted = new Promise((done) => addEventListener("click", () => {
    const start = performance.now();
    let frame = 0;
    const next = () => {
      frame++;
      if (look() === before) return frame < 300 ? requestAnimationFrame(next) : done(null);
      requestAnimationFrame((now) => done({ frame, ms: now - start }));
    };
    requestAnimationFrame(next);
  }, { capture: true, once: true }));
}"""

# After `window.pass = 2`: two messages, which say that a run begins, and later the rest of them.
HOLD = """
  const Quick = window.WebSocket;
  window.WebSocket = class extends Quick {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", (event) => {
        if (!event.isTrusted || !("pass" in window) || window.pass-- > 0) return;
        event.stopImmediatePropagation();
        const { data, origin } = event;
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data, origin })), 1500);
      });
    }
  };
"""
FADING = """() => [...document.querySelectorAll('[data-testid="stElementContainer"]')].filter(
  (node) => node.getAnimations().length || getComputedStyle(node).opacity < 1).length"""
SHIFTS = """
  window.shifts = [];
  new PerformanceObserver((list) => window.shifts.push(...list.getEntries()
    .filter((entry) => !entry.hadRecentInput)
    .map(({ value, startTime, sources }) => [value, Math.round(startTime), sources.map(
      ({ node, previousRect: a, currentRect: b }) => [
        node?.getAttribute?.("class")?.match(/st-?[a-zA-Z_-]+/g),
        ...[a, b].map(({ x, y, width, height }) => [x, y, width, height].map(Math.round))])])))
    .observe({ type: "layout-shift", buffered: true });
"""
TILE = """([kind, layer, head]) => {
  const { grid } = window.headlight;
  const section = grid.drawn.find((one) => one.part.kind === kind);
  const box = section.over.canvas.getBoundingClientRect();
  const { x, y } = grid.corner(section, layer * section.part.heads + head);
  return [box.left + x + section.width / 2, box.top + y + section.height / 2];
}"""


def small(visit, size=SIZES[0]):
    visit.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    return visit


def tile(visit, *which):
    """The middle of a tile: kind, layer and head, counted from 0."""
    return visit.page.evaluate(TILE, which)


def test_the_first_view_has_name_sentence_translation_masks_tiles_and_the_head(visit):
    small(visit).open()
    for size in SIZES:
        small(visit, size).idle()
        seen = visit.page.evaluate(FIRST_VIEW)
        print(seen)
        assert seen["scrolled"] == 0
        assert seen["logo"] and visit.page.title() == "Headlight"
        assert seen["source"] == "She has never seen the red car of my sister."
        assert seen["target"].startswith("Model en-fr wrote: Elle n'a jamais")
        assert seen["tiles"] >= LEAST_TILES
        assert seen["head"], seen
        for key in ("causal", "src_padding", "tgt_padding", "memory_padding", "pad_to"):
            box = visit.page.locator(f".st-key-{key}").bounding_box()
            assert box["y"] + box["height"] <= size[1], key
    small(visit).idle()
    expect_pointing_to_move_nothing(visit)
    expect_an_act_to_say_what_it_did_until_something_else_is_pointed_at(visit)
    expect_the_sentence_box_to_be_low_again_once_enter_is_pressed(visit)


def expect_pointing_to_move_nothing(visit):
    visit.page.evaluate(SHIFTS)
    visit.page.wait_for_timeout(100)
    visit.page.evaluate("window.shifts.length = 0")
    for side in ("source", "target"):
        for span in visit.page.locator(f".{side} span").all()[::2]:
            span.hover()
    for kind in ("encoder", "decoder", "cross"):
        for layer in range(4):
            visit.page.mouse.move(*tile(visit, kind, layer, layer))
    head = visit.page.locator(".selected canvas").last.bounding_box()
    for part in (0.5, 0.6, 0.7, 0.8, 0.9):
        visit.page.mouse.move(
            head["x"] + part * head["width"], head["y"] + part * head["height"], steps=3
        )
    visit.page.wait_for_timeout(200)
    assert visit.page.evaluate("window.shifts") == []


def expect_an_act_to_say_what_it_did_until_something_else_is_pointed_at(visit):
    page = visit.page
    page.locator(".source span").nth(2).click()
    page.keyboard.press("h")
    visit.settle()
    message = page.locator(".message")
    expect(message).to_contain_text("falls from")
    page.mouse.move(2, 700)
    expect(message).to_contain_text("falls from")
    page.locator(".source span").nth(5).hover()
    expect(message).not_to_contain_text("falls from")
    page.keyboard.press("x")
    visit.settle()


def expect_the_sentence_box_to_be_low_again_once_enter_is_pressed(visit):
    box = visit.page.get_by_label("Source sentence", exact=True)
    before = box.bounding_box()
    box.click()
    box.fill("A dog sleeps, and a girl in a blue dress plays with a red ball in the park.")
    while_typing = box.bounding_box()
    assert while_typing["height"] > before["height"]
    assert while_typing["x"] == before["x"]  # the model beside it can be chosen
    box.press("Enter")
    visit.settle()
    expect(visit.page.locator(".st-key-output")).to_contain_text("Un chien")
    assert box.bounding_box() == before


def test_pytorch_fits_into_a_small_window_in_present(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("compare?projector=true")
    last = visit.page.get_by_text("Having read")
    expect(last).to_be_in_viewport(ratio=1)
    box = visit.canvas("comparison", 2).bounding_box()
    assert box["y"] + box["height"] <= last.bounding_box()["y"]
    canvas = visit.canvas("comparison", 0)
    framed = canvas.evaluate("({ matrix: { follow, column } }) => [follow, column]")
    visit.click_cell("comparison", 0, framed)  # chooses it, which nobody had
    assert canvas.evaluate("({ matrix: { pinned } }) => pinned")
    visit.page.keyboard.press("Escape")
    visit.settle()
    assert not visit.canvas("comparison", 0).evaluate("({ matrix: { pinned } }) => pinned")
    visit.click_cell("comparison", 1, (2, 3))
    trace = load("en-fr").trace("She has never seen the red car of my sister.")
    read, key = trace.texts["tgt"].tokens, trace.texts["src"].tokens
    said = f"Having read “{read[2]}”, about to write “{read[3]}”: weight on “{key[3]}” "
    expect(visit.page.locator(".st-key-hero")).to_contain_text(said)
    visit.click_cell("comparison", 0, (2, 3))  # lets it go
    expect(visit.page.locator(".st-key-hero")).not_to_contain_text(said)
    visit.click_cell("comparison", 0, (2, 3))
    expect(visit.page.locator(".st-key-hero")).to_contain_text(said)
    visit.page.keyboard.press("Escape")  # so does this, and only then it leaves Present
    expect(visit.page.locator(".st-key-hero")).not_to_contain_text(said)
    leave = visit.page.locator(".st-key-leave_present >> visible=true")
    expect(leave).to_have_count(1)
    visit.page.keyboard.press("Escape")
    expect(leave).to_have_count(0)


def test_who_wrote_the_target_is_said_beside_two_chips_and_in_present(visit):
    two = "changes=cross.1.2=off;cross.1.3=off"
    for address in (f"attention?{two}", f"compare?{two}&projector=true&shows=Difference"):
        visit.page.set_viewport_size({"width": 1280, "height": 720})
        visit.open(address)
        state = visit.page.locator(".st-key-state")
        expect(state.locator("[class*='st-key-change_'] button >> visible=true")).to_have_count(2)
        told = state.locator(".st-key-output button p >> visible=true")
        if "projector" not in address:
            expect(told).to_contain_text("Model en-fr wrote:")
        else:  # there the finding tells it, and the picker is hidden
            expect(state).to_contain_text("Cross 3.3")
            expect(state.locator(".st-key-leave_present")).to_be_in_viewport(ratio=1)
        assert state.evaluate("(row) => row.scrollWidth <= row.clientWidth")
    visit.open("attention?projector=true")
    expect(visit.page.locator(".st-key-state")).to_contain_text("Model en-fr wrote: Elle")
    visit.page.set_viewport_size({"width": 1920, "height": 1080})
    visit.open(f"attention?projector=true&{two}")  # there is room for both
    told = visit.page.locator(".st-key-state .st-key-output button p >> visible=true")
    expect(told).to_contain_text("Model en-fr wrote:")


CHANGED = "attention?causal=false&changes=cross.4%3Doff"


def test_a_long_finding_is_written_small_enough_to_fit(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    heights = "(message) => [message.scrollHeight, message.clientHeight]"
    unmasked = "attention?changes=cross.4%3Doff"
    for address in (CHANGED, f"{CHANGED}&projector=true", unmasked):
        message = visit.open(address).page.locator(".message")
        if address == unmasked:  # the word has a button
            visit.page.locator(".source span").nth(3).click()
            visit.switch("Causal mask")
        expect(message).to_contain_text("Without the causal mask, the decoder peeks: ")
        expect(message).to_contain_text("In the original translation, after")
        needed, room = message.evaluate(heights)
        assert needed <= room + 1, address


def test_what_is_not_drawn_yet_fades_once_a_run_is_slow(visit):
    """Not before: every element would be a layer of its own to compose, in every run."""
    visit.prepare(HOLD)
    page = visit.open().page
    box = page.get_by_label("Source sentence", exact=True)
    page.evaluate("window.pass = 2")
    box.fill("A dog runs.")
    box.press("Control+Enter")
    page.wait_for_selector('[data-stale="true"]', state="attached")
    assert page.evaluate(FADING) == 0
    page.wait_for_function(f"() => ({FADING})() > 10", timeout=2000)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_function(f"() => ({FADING})() === 0", timeout=5000)
    expect(page.locator(".source span").nth(1)).to_have_text("dog")


def test_all_tiles_and_the_head_are_in_view_when_the_bar_has_grown(visit):
    """Below a line more, in which the changes stand."""
    small(visit).open("attention?pad_to=30&kind=cross&layer=1&head=2")
    before = visit.page.evaluate(FIRST_VIEW)
    visit.page.mouse.click(*tile(visit, "cross", 0, 1))
    visit.page.keyboard.press("o")
    expect(visit.page.get_by_role("button", name="Cross 1.2 off ×")).to_be_visible()
    visit.settle()
    seen = visit.page.evaluate(FIRST_VIEW)
    print(before, seen, sep="\n")
    assert seen["scrolled"] == 0
    assert seen["tiles"] == seen["all"] == before["all"] and seen["head"], seen


def test_a_click_on_a_tile_paints_its_head_in_two_frames_and_sends_little(visit):
    small(visit).open()
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Network.enable")
    sizes = {"Received": [], "Sent": []}

    def count(way):
        def hear(event):
            frame = event["response"]
            data = frame["payloadData"]
            sizes[way].append(len(base64.b64decode(data) if frame["opcode"] == 2 else data))

        session.on(f"Network.webSocketFrame{way}", hear)

    for way in sizes:
        count(way)
    visit.page.wait_for_timeout(500)
    seen = []
    for which in (("cross", 2, 1), ("encoder", 1, 0), ("decoder", 3, 2), ("cross", 1, 3)):
        for frames in sizes.values():
            frames.clear()
        visit.page.evaluate(WATCH)
        visit.page.mouse.click(*tile(visit, *which))
        painted = visit.page.evaluate("window.painted")
        visit.settle()
        painted |= {way: sum(frames) for way, frames in sizes.items()}
        seen.append(painted)
        print(which, painted)
    session.detach()
    assert sorted(one["frame"] for one in seen)[len(seen) // 2] <= FRAMES, seen  # a busy machine
    assert all(0 < one["Received"] + one["Sent"] < BYTES for one in seen), seen


def expect_in_first_view(page, text):
    box = page.get_by_text(text).bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"]


def test_present_shows_a_larger_picture_and_keeps_through_pages_and_reload(visit):
    """Without tiles, bar and panel, which is at its top on every page; Esc leaves it when nothing
    else is left to let go of."""
    area = """() => {
      const { width, height } = window.headlight.grid.selected.picture.getBoundingClientRect();
      return width * height;
    }"""
    page = small(visit).open("attention?model=en-fr").page
    expect_in_first_view(page, "no clear loss without it")
    visit.switch("Causal mask")
    expect_in_first_view(page, "no clear loss without it")
    visit.switch("Causal mask")
    before = page.evaluate(area)
    assert before >= LEAST_SHARE * 1280 * 720
    page.locator(".st-key-projector label").first.click()
    page.wait_for_function(f"least => ({area})() >= least", arg=LARGER * before)
    visit.settle()
    for hidden in (".st-key-bar", ".st-key-panel", ".stage"):
        expect(page.locator(hidden)).not_to_be_visible()
    expect_bar_and_panel_to_cover_nothing(visit)
    expect_escape_to_go_back_step_by_step(visit)
    for key in "bp":
        page.keyboard.press(key)
    panel = page.locator(".st-key-panel")
    panel.evaluate("(panel) => panel.scrollTo(0, 9999)")
    page.locator(".st-key-menu").get_by_role("link", name="Model").click()
    # By its class: another page may bring another one.
    page.wait_for_function(
        """() => {
          const panel = document.querySelector(".st-key-panel");
          return panel?.scrollTop === 0 && panel.scrollHeight > innerHeight;
        }"""
    )
    page.reload()
    visit.settle()
    expect(page.locator(".st-key-leave_present button >> visible=true")).to_be_visible()
    page.keyboard.press("Escape")
    visit.settle()
    expect(page.locator(".st-key-bar")).to_be_visible()
    assert "projector" not in page.url


def expect_bar_and_panel_to_cover_nothing(visit):
    """The picture makes room for them, and stays whole and in its corner."""
    page = visit.page

    def box(selector):
        return page.locator(f"{selector} >> visible=true").last.bounding_box()

    picture, state = box(".selected canvas"), box(".st-key-state")
    page.keyboard.press("p")
    visit.settle()
    beside, answers = box(".selected canvas"), box(".answers h3")
    assert (beside["x"], beside["y"]) == (picture["x"], picture["y"])
    for shown in (".source span", ".target span"):
        assert box(shown)["x"] + box(shown)["width"] <= answers["x"], shown
    page.keyboard.press("b")
    visit.settle()
    bar, line, texts = box(".st-key-bar"), box(".st-key-page"), box(".message")
    assert bar["y"] + bar["height"] <= box(".st-key-state")["y"]
    assert line["y"] + line["height"] <= texts["y"]
    assert box(".selected canvas")["y"] + box(".selected canvas")["height"] <= 720
    expect(page.locator(".st-key-more button >> visible=true").first).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    visit.settle()
    assert (box(".selected canvas"), box(".st-key-state")) == (picture, state)


def expect_escape_to_go_back_step_by_step(visit):
    page = visit.page
    page.locator(".source span").nth(3).click()
    page.keyboard.press("b")
    visit.menu("display")
    opened = page.get_by_test_id("stPopoverBody")
    expect(opened).to_be_visible()
    left = []
    for _ in range(3):
        page.keyboard.press("Escape")
        visit.settle()
        state = "[document.documentElement.matches('[data-bar]'), !!headlight.grid.pinned]"
        left.append([opened.count(), *page.evaluate(state)])
    assert left == [[0, True, True], [0, False, True], [0, False, False]]
    assert "projector" in page.url
    page.locator(".message").click()
    page.keyboard.press("ArrowRight")  # a key draws a ring around what has the focus
    assert page.evaluate("document.activeElement === document.body")


def test_the_line_of_chips_ends_within_the_window(visit):
    changes = "cross.1.2%3Doff%3B+encoder%3Dhide%3A3"
    small(visit).open(
        f"attention?causal=false&pad_to=20&changes={changes}&memory_padding=false&step=1"
    )
    widths = "() => [...document.querySelectorAll('.st-key-state *')].map("

    def ends():
        return visit.page.evaluate(f"{widths} node => node.getBoundingClientRect().right)")

    assert len(ends()) > 20 and max(ends()) <= 1280
    visit.page.locator(".st-key-projector label").first.click()
    visit.settle()
    leave = visit.page.locator(".st-key-leave_present button >> visible=true")
    expect(leave).to_be_in_viewport(ratio=1)
    assert max(ends()) <= 1280


def test_a_label_stands_whole_in_the_line_of_chips_or_not_at_all(visit):
    page = small(visit).page
    query = "attention?model=en-fr&source=A+man+in+an+orange+hat+is+staring+at+something.&changes="
    for changes, whole in (("", True), ("%3B+encoder.1.1%3Doff%3B+cross.3.1%3Doff", False)):
        visit.open(f"{query}all%3Dhide%3A2{changes}")
        button = page.get_by_role("button", name="Use the new translation")  # read out in any case
        expect(button).to_be_visible()
        label = button.locator("[data-testid=stMarkdownContainer]")
        cut = label.evaluate("label => label.scrollWidth > label.clientWidth")
        hidden = label.evaluate("label => getComputedStyle(label).clipPath != 'none'")
        assert hidden != whole and not (whole and cut)
        assert (button.bounding_box()["width"] > 100) == whole


@pytest.mark.parametrize("path", ["attention?projector=true", "inside"])
def test_what_is_chosen_fits_its_box(visit, path):
    small(visit).open(path)
    cut = visit.page.evaluate(
        """() => [...document.querySelectorAll(".react-aria-ComboBox input")]
          .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth)
          .map((box) => box.value)"""
    )
    assert not cut
