"""The BertViz page: what BertViz draws of our numbers, and what it must not do."""

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.state.options import BERTVIZ
from headlight.model import checkpoint

pytestmark = pytest.mark.browser
SOURCE, TARGET = "the dog sees the cat", "ein Hund sieht"
KIND, LAYERS, HEAD = "decoder", 5, 3  # of the model "uneven": the last layer is shown
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


def test_every_view_shows_the_numbers_of_a_head(visit, models):
    """And of what is chosen inside the frame, from where nothing of the app is in reach."""
    trace = checkpoint.load(models / "uneven").trace(SOURCE, TARGET)
    texts = f"source={SOURCE}&target={TARGET}".replace(" ", "+")
    visit.open(f"bertviz?model=uneven&kind={KIND}&layer={LAYERS}&head={HEAD}&{texts}")
    for view, expect_view in zip(BERTVIZ, EXPECTED, strict=True):
        visit.choose("bertviz", view)
        seen = Drawn(visit.page.frame_locator(".st-key-bertviz_frame iframe"))
        expect_to_fit(seen)
        expect_view(seen, trace.tgt.tokens, trace.attention[KIND], trace)
    reach = "() => { try { return parent.document.title } catch (error) { return error.name } }"
    assert seen.frame.locator(":root").evaluate(reach) == "SecurityError"


def expect_head_view(seen, tokens, attention, _):
    assert (seen.texts("#left"), seen.texts("#right")) == (list(tokens), list(tokens))
    for head, weights in enumerate(attention[-1]):
        rows = seen.rows(f"#attention [head-index='{head}'] .tokenAttention")
        assert np.allclose(rows, weights, atol=DIGITS)
    visible = "[...document.querySelectorAll('#attention line')].map(l => l.__data__ > 0 ? "
    visible += "+(+l.getAttribute('stroke-opacity') > 0) : -1)"
    opacity = np.array(seen.frame.locator(":root").evaluate(f"() => {visible}"))
    opacity = opacity.reshape(attention[-1].shape)
    assert (opacity[2] != 0).all()  # the selected head, and no other
    assert (np.delete(opacity, 2, axis=0) < 1).all()
    assert seen.frame.locator("#layer option").all_text_contents() == [
        str(i + 1) for i in range(LAYERS)
    ]
    seen.frame.locator("#layer").select_option("1")
    rows = seen.rows("#attention [head-index='0'] .tokenAttention")
    assert np.allclose(rows, attention[0, 0], atol=DIGITS)


def expect_model_view(seen, tokens, attention, _):
    assert seen.frame.locator(".attn_background").count() == LAYERS * 4
    rows = seen.rows("g:has(> .attn_background) > g")
    assert np.allclose(rows.reshape(attention.shape), attention, atol=DIGITS)
    expect(seen.frame.get_by_text(f"Layer {LAYERS}, Head 3")).to_be_visible()
    large = seen.rows(".attn-line-group")
    assert np.allclose(large, attention[-1, HEAD - 1], atol=DIGITS)
    seen.frame.locator("g:has(> #attn_background_0_1) > rect").last.click(force=True)
    expect(seen.frame.get_by_text("Layer 1, Head 2")).to_be_visible()
    large = seen.rows(".attn-line-group")
    assert np.allclose(large, attention[0, 1], atol=DIGITS)


def expect_neuron_view(seen, tokens, attention, trace):
    query, key = trace.query[KIND][-1, HEAD - 1], trace.key[KIND][-1, HEAD - 1]
    assert np.allclose(seen.rows("#queries .vector", ".element"), query, atol=1e-5)
    assert np.allclose(seen.rows("#keys .vector", ".element"), key, atol=1e-5)
    weights = attention[-1, HEAD - 1]
    assert np.allclose(seen.rows("#expanded .qk-line-group", "path"), weights, atol=DIGITS)
    expect(seen.frame.locator("#expanded")).to_have_attribute("visibility", "visible")
    row = 1
    hint = seen.frame.locator("#placeholder").bounding_box()
    keys = seen.frame.locator("#expanded #rightText .token").first.bounding_box()
    assert hint["x"] + hint["width"] < keys["x"]
    left = seen.frame.locator("#expanded #leftText .token")
    assert left.all_text_contents() == list(tokens)
    left.nth(row).hover(force=True)
    scores = seen.rows("#dotproducts", ".dotproduct")[0]
    assert np.allclose(scores, trace.scores[KIND][-1][2][row], atol=1e-4)
    hidden = seen.frame.locator("#product .vector").evaluate_all(
        "vectors => vectors.map((vector) => vector.style.opacity === '0')"
    )
    assert hidden == [i > row for i in range(len(hidden))]  # causal mask


EXPECTED = expect_head_view, expect_model_view, expect_neuron_view


def expect_to_fit(seen):
    frame, halo = seen.frame.locator("svg").bounding_box(), 3
    for box in seen.frame.locator("svg text >> visible=true").all():
        box = box.bounding_box()
        assert frame["x"] - halo <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + halo
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + halo
