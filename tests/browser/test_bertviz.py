"""The BertViz page: what BertViz draws of our numbers, and what it must not do."""

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.state.options import BERTVIZ
from headlight.model import checkpoint
from tests.browser.conftest import Visit
from tests.browser.test_walk import HAS_SCHEME
from tests.waiting import wait_until

pytestmark = pytest.mark.browser
SOURCE, TARGET = "the dog sees the cat", "ein Hund sieht"
HOSTILE = "</script><img src=x onerror=window.broken=1>"
DEPTH = {"encoder": 2, "decoder": 5, "cross": 5}  # of the model "uneven"
DIGITS = 1.01e-4  # of weights; the app may have run the model on other threads

# What the browser drew: data that d3 has bound to the lines.
LINES = """(rows, line) => rows.map((row) =>
  [...row.querySelectorAll(line)].map((drawn) => drawn.__data__))"""


class Drawn:
    """A page of BertViz in a frame, or alone."""

    def __init__(self, frame):
        self.frame = frame
        expect(frame.locator("svg")).to_be_visible()

    def rows(self, rows: str, line: str = "line") -> np.ndarray:
        return np.array(self.frame.locator(rows).evaluate_all(LINES, line), float)

    def texts(self, side: str) -> list[str]:
        return self.frame.locator(f"{side} text").all_text_contents()


def open_at(visit: Visit, view: str, **settings) -> Drawn:
    settings = {"model": "uneven", "source": SOURCE, "target": TARGET, **settings}
    query = "&".join(f"{key}={value}" for key, value in settings.items()).replace(" ", "+")
    visit.open(f"bertviz?bertviz={view}&{query}")
    return drawn(visit)


def drawn(visit: Visit) -> Drawn:
    return Drawn(visit.page.frame_locator(".st-key-bertviz_frame iframe"))


@pytest.fixture(scope="module")
def trace(models):
    return checkpoint.load(models / "uneven").trace(SOURCE, TARGET)


def sides(trace, kind):
    return {
        "encoder": (trace.src.tokens, trace.src.tokens),
        "decoder": (trace.tgt.tokens, trace.tgt.tokens),
        "cross": (trace.tgt.tokens, trace.src.tokens),
    }[kind]


def test_every_view_shows_the_numbers_of_a_head(visit, trace):
    """Of the last layer of cross-attention, its head 3, and of what is chosen inside the frame."""
    kind, layer = "cross", DEPTH["cross"]
    open_at(visit, BERTVIZ[0], kind=kind, layer=layer, head=3)
    for view, expect_view in zip(BERTVIZ, EXPECTED, strict=True):
        visit.choose("bertviz", view)
        expect_to_fit(drawn(visit))
        expect_view(drawn(visit), trace, kind, layer)
    expect_nothing_of_the_app_in_reach(drawn(visit))


def expect_head_view(seen, trace, kind, layer):
    assert (seen.texts("#left"), seen.texts("#right")) == tuple(map(list, sides(trace, kind)))
    for head, weights in enumerate(trace.attention[kind][layer - 1]):
        rows = seen.rows(f"#attention [head-index='{head}'] .tokenAttention")
        assert np.allclose(rows, weights, atol=DIGITS)
    visible = "[...document.querySelectorAll('#attention line')].map(l => l.__data__ > 0 ? "
    visible += "+(+l.getAttribute('stroke-opacity') > 0) : -1)"
    opacity = np.array(seen.frame.locator(":root").evaluate(f"() => {visible}"))
    opacity = opacity.reshape(trace.attention[kind][layer - 1].shape)
    assert (opacity[2] != 0).all()  # the selected head, and no other
    assert (np.delete(opacity, 2, axis=0) < 1).all()
    assert seen.frame.locator("#layer option").all_text_contents() == [
        str(i + 1) for i in range(layer)
    ]
    seen.frame.locator("#layer").select_option("1")
    rows = seen.rows("#attention [head-index='0'] .tokenAttention")
    assert np.allclose(rows, trace.attention[kind][0, 0], atol=DIGITS)


def expect_model_view(seen, trace, kind, layer):
    assert seen.frame.locator(".attn_background").count() == DEPTH[kind] * 4
    rows = seen.rows("g:has(> .attn_background) > g")
    assert np.allclose(
        rows.reshape(trace.attention[kind].shape), trace.attention[kind], atol=DIGITS
    )
    expect(seen.frame.get_by_text(f"Layer {layer}, Head 3")).to_be_visible()
    large = seen.rows(".attn-line-group")
    assert np.allclose(large, trace.attention[kind][layer - 1, 2], atol=DIGITS)
    seen.frame.locator("g:has(> #attn_background_0_1) > rect").last.click(force=True)
    expect(seen.frame.get_by_text("Layer 1, Head 2")).to_be_visible()
    large = seen.rows(".attn-line-group")
    assert np.allclose(large, trace.attention[kind][0, 1], atol=DIGITS)


def expect_neuron_view(seen, trace, kind, layer):
    query, key = trace.query[kind][layer - 1, 2], trace.key[kind][layer - 1, 2]
    assert np.allclose(seen.rows("#queries .vector", ".element"), query, atol=1e-5)
    assert np.allclose(seen.rows("#keys .vector", ".element"), key, atol=1e-5)
    weights = trace.attention[kind][layer - 1, 2]
    assert np.allclose(seen.rows("#expanded .qk-line-group", "path"), weights, atol=DIGITS)
    expect(seen.frame.locator("#expanded")).to_have_attribute("visibility", "visible")
    row = 1
    hint = seen.frame.locator("#placeholder").bounding_box()
    keys = seen.frame.locator("#expanded #rightText .token").first.bounding_box()
    assert hint["x"] + hint["width"] < keys["x"]
    tokens = seen.frame.locator("#expanded #leftText .token")
    assert tokens.all_text_contents() == list(sides(trace, kind)[0])
    tokens.nth(row).hover(force=True)
    scores = seen.rows("#dotproducts", ".dotproduct")[0]
    assert np.allclose(scores, trace.scores[kind][layer - 1][2][row], atol=1e-4)
    hidden = seen.frame.locator("#product .vector").evaluate_all(
        "vectors => vectors.map((vector) => vector.style.opacity === '0')"
    )
    assert hidden == [kind == "decoder" and i > row for i in range(len(hidden))]  # causal mask


def expect_nothing_of_the_app_in_reach(seen):
    reach = "() => { try { return parent.document.title } catch (error) { return error.name } }"
    assert seen.frame.locator(":root").evaluate(reach) == "SecurityError"


EXPECTED = expect_head_view, expect_model_view, expect_neuron_view


def expect_to_fit(seen):
    frame, halo = seen.frame.locator("svg").bounding_box(), 3
    for box in seen.frame.locator("svg text >> visible=true").all():
        box = box.bounding_box()
        assert frame["x"] - halo <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + halo
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + halo


@pytest.mark.long
def test_sides_of_different_length_fit_the_picture_and_hostile_text_stays_text(visit):
    open_at(visit, BERTVIZ[0], source="dog", target=f"{TARGET} {TARGET}", kind="cross")
    for view in BERTVIZ:
        expect_to_fit(drawn(visit.choose("bertviz", view)))
    visit.type(HOSTILE).type(HOSTILE, "Target")
    visit.switch("Draw")  # a text of so many tokens is drawn on demand
    visit.menu("output")
    assert "onerror" in visit.page.get_by_label("Target", exact=True).input_value()
    visit.page.keyboard.press("Escape")
    for view in BERTVIZ:
        visit.choose("bertviz", view)
        seen = drawn(visit)
        expect(seen.frame.locator("img")).to_have_count(0)
        assert not seen.frame.locator(":root").evaluate("() => 'broken' in window")
        assert not visit.page.evaluate("() => 'broken' in window")


@pytest.mark.long
def test_the_frame_is_as_high_as_the_picture_and_stays_while_nothing_changes(visit):
    seen = open_at(visit, "head", source=SOURCE + 8 * " the dog", kind="encoder")
    high = height(visit)
    seen.frame.locator(":root").evaluate("() => { window.same = true; }")
    visit.switch("Causal mask").switch("Causal mask")
    assert drawn(visit).frame.locator(":root").evaluate("() => window.same")
    visit.type("the dog")
    assert height(visit) < high


def height(visit: Visit) -> float:
    """Of the frame, once it is that of the page inside."""
    frame = visit.page.locator(".st-key-bertviz_frame iframe")
    inside = drawn(visit).frame.locator(":root")
    for _ in range(50):
        outer = frame.bounding_box()["height"]
        if abs(outer - inside.bounding_box()["height"]) <= 1:
            return outer
        visit.page.wait_for_timeout(100)
    raise AssertionError("the frame has another height than the page inside")


@pytest.mark.long
def test_link_and_theme_and_projector(visit):
    """The address brings back view, layers left out and head; letters are large enough."""
    visit.page.set_viewport_size({"width": 1920, "height": 1080})
    visit.page.emulate_media(color_scheme="dark")
    open_at(visit, "model", kind="decoder", layer=5, head=2, projector="true")
    visit.page.keyboard.press("b")
    visit.page.locator(".st-key-leave_out input").click()
    visit.page.get_by_role("option", name="3", exact=True).click()
    visit.settle()
    visit.open(visit.page.url.removeprefix(f"{visit.address}/"))
    dark = letters(visit, "dark")
    leave = visit.page.locator(".st-key-leave_present button >> visible=true")
    leave.click()
    # A theme that changes while the click is still on its way can bring Present back.
    expect(leave).to_have_count(0)
    visit.page.emulate_media(color_scheme="light")
    visit.page.wait_for_function(HAS_SCHEME, arg="light")
    visit.settle()
    assert "projector" not in visit.page.url
    # The frame is drawn anew twice: in light colours, and with the letters of the page.
    wait_until(lambda: rests(visit) and dark >= 1.3 * letters(visit, "light"))
    assert letters(visit, "light") >= 20


def rests(visit: Visit) -> bool:
    """Whether the frame keeps its page for a while: Chromium does not always answer what is asked
    of a page that goes."""
    frame = visit.page.locator(".st-key-bertviz_frame iframe")
    before = frame.get_attribute("srcdoc")
    visit.page.wait_for_timeout(700)
    return frame.get_attribute("srcdoc") == before


def letters(visit: Visit, scheme: str) -> float:
    """How high they are, in the page at this address and in the theme of the app."""
    assert "leave_out=3" in visit.page.url and "bertviz=model" in visit.page.url
    seen = drawn(visit)
    expect(seen.frame.locator(".attn_background")).to_have_count(4 * 4)
    expect(seen.frame.get_by_text("Layer 5, Head 2")).to_be_visible()
    expect(seen.frame.locator(":root")).to_have_attribute("data-theme", scheme)
    background, height = seen.frame.locator(":root").evaluate(
        """() => [getComputedStyle(document.documentElement).backgroundColor,
             document.querySelector("svg text.token").getBoundingClientRect().height]"""
    )
    theirs = visit.page.locator(".stApp").evaluate("a => getComputedStyle(a).backgroundColor")
    assert background == theirs
    visit.screenshot(f"bertviz-{scheme}")
    visit.expect_well()
    return height
