"""The page Query–key–value: what its pictures are given is what the head computed."""

import json
import re

import numpy as np
import pytest

from headlight.app.components.packing import as_sent
from headlight.app.results import memoize
from headlight.app.state.options import CLEAREST_ROW, SELECTED_HEAD, WORDS
from headlight.app.views import query_key_value
from headlight.app.views.query_key_value import KEYS, QUERY, VALUES
from headlight.model import Masks, load
from headlight.model.analysis import head_metrics
from headlight.model.analysis.projection import Answer, answer, principal_plane
from headlight.model.checkpoint import SHIPPED
from headlight.model.presets import PRESETS
from tests.app.common import forget_all
from tests.conftest import long_but

TEXT = "Two dogs run on the beach."
SHIPPED_NAMES = sorted(folder.parent.name for folder in SHIPPED.glob("*/config.json"))


def given(page, picture):
    """What a picture is sent."""
    sent = [json.loads(part.proto.json) for part in page.get("bidi_component") if part.proto.json]
    return next(data for data in sent if data.get("picture") == picture)


def said(page):
    return next(text.value for text in page.markdown if "is a joint PCA" in text.value)


@pytest.fixture(autouse=True, scope="module")
def forgotten():
    """The small presets, which would be those of other files."""
    forget_all()
    yield
    forget_all()


@pytest.fixture
def opened(new_page):
    """The page as a link opens it."""

    def open_with(**chosen):
        asked = dict(vectors=SELECTED_HEAD, model="en-de", source=TEXT) | chosen
        page = new_page()
        page.query_params.update({key: str(value) for key, value in asked.items()})
        page.switch_page("lookup").run()
        assert not page.exception
        return page

    return open_with


def look(page, **settings):
    for key, value in settings.items():
        page.session_state[key] = value
    page.run()
    assert not page.exception
    return page


def follow(page, number):
    """The query at a place of its text, counted from 1."""
    page.selectbox(key="follow").select_index(number).run()
    assert not page.exception


def own_trace():
    """The trace that the page read last. Of two passes the last digits differ."""
    entries = reversed(memoize.results_cache().entries.items())
    return next(made for (name, *_), (made, _) in entries if name == ("Shown.trace",))


def telling_row(trace, kind, layer, head):
    weights, keys = trace.attention[kind][layer, head], trace.texts_of(kind)[1].tokens
    rows = trace.row_words(kind, layer, head)
    row = head_metrics.most_telling_row(as_sent(weights), rows, keys)
    return min(1, len(rows) - 1) if row is None else row


def check(page, trace, kind, layer, head, asks=None):
    """Every number of the picture is that of the page's trace, or follows from it; and that is
    the `trace` of the model. `asks`: the query; by default the row that Attention marks."""
    data, expected, trace = given(page, "head"), trace, own_trace()
    assert np.allclose(trace.attention[kind], expected.attention[kind], atol=1e-5)
    assert trace.texts == expected.texts
    q, k = trace.query[kind][layer, head], trace.key[kind][layer, head]
    plane = principal_plane(np.concatenate([q, k]))
    sides = {kind: tuple(side.title for side in trace.sides_of(kind)) for kind in trace.kinds}
    tokens = trace.row_words(kind, layer, head), trace.texts_of(kind)[1].tokens
    for side, name, labels, vectors in zip(
        ("queries", "keys"), sides[kind], tokens, (q, k), strict=True
    ):
        assert data[side]["name"] == name and data[side]["labels"] == list(labels)
        assert np.abs(data[side]["points"] - plane.put(vectors)).max() <= 1e-6
    asks = telling_row(trace, kind, layer, head) if asks is None else asks
    assert data["chosen"] == asks
    weights = trace.attention[kind][layer, head, asks]
    assert np.abs(data["weights"] - weights).max() <= 1e-6
    assert np.abs(data["scores"] - trace.scores[kind][layer][head, asks]).max() <= 1e-6
    points = [np.array(data[side]["points"]) for side in ("queries", "keys")]
    flat = points[1] @ points[0][asks] / np.sqrt(q.shape[1])
    assert np.abs(data["inPlane"] - flat).max() <= 1e-6
    found = answer(plane, q[asks], k, np.array(data["scores"]), weights)
    text = said(page)
    assert f"keeps **{100 * plane.explained.sum():.0f}%**" in text
    if weights.any():
        mean, most = re.search(r"off by (\S+) on average, (\S+) at most", text).groups()
        off = np.abs(np.array(data["inPlane"]) - data["scores"])[weights > 0]
        assert (mean, most) == (f"{off.mean():.2f}", f"{off.max():.2f}")
        moved = f"{100 * found.total_variation():.0f}"
        assert re.search(r"would move \*\*(\S+)%", text)[1] in [moved, "<1"][: 1 + (moved == "0")]


@pytest.mark.parametrize(("kind", "layer", "head"), [("encoder", 1, 4), ("decoder", 3, 2)])
def test_every_number_is_the_traces(opened, en_de, kind, layer, head):
    trace = en_de.trace(TEXT)
    page = opened(kind=kind, layer=layer, head=head)
    for asks in (0, 3):
        follow(page, asks + 1)
        check(page, trace, kind, layer - 1, head - 1, asks)
    assert f"come from the {'source' if kind == 'encoder' else 'target'}" in said(page)


def test_cross_attention_says_where_queries_and_keys_come_from(opened, en_de):
    page = opened(kind="cross", layer=1, head=1)
    check(page, en_de.trace(TEXT), "cross", 0, 0)
    assert "Queries come from the **target**, keys from the **source**" in said(page)


@pytest.mark.parametrize("name", long_but(["en-fr", "reviews"], SHIPPED_NAMES))
def test_every_shipped_model(opened, name):
    text = TEXT if name in ("en-de", "en-fr", "reviews") else "b d a c"
    page = opened(model=name, source=text, layer=1, head=1)
    kind = page.session_state["kind"]
    check(page, load(name).trace(text), kind, 0, 0)


@pytest.mark.parametrize("preset", long_but(["vanilla", "bloem"], PRESETS))
def test_every_untrained_preset(opened, small_presets, preset):
    page = opened(model=f"{preset}, untrained")
    data = given(page, "head")
    assert not page.error and sum(data["weights"]) == pytest.approx(1, abs=1e-5)
    scores = np.array(data["scores"])[np.array(data["weights"]) > 0]
    parts = np.exp(scores - scores.max())
    weights = np.array(data["weights"])
    assert np.abs(parts / parts.sum() - weights[weights > 0]).max() <= 1e-5


@pytest.mark.parametrize("name", ["uneven", "short", "classifier"])
@pytest.mark.parametrize("source", ["the dog", "a"])
def test_other_depths_and_short_texts(opened, models, name, source):
    trace = load(models / name).trace(source, None if name == "classifier" else "a")
    depths = {kind: weights.shape[0] for kind, weights in trace.attention.items()}
    for kind, depth in depths.items():
        page = opened(model=name, source=source, target="a", kind=kind, layer=depth, head=4)
        check(page, trace, kind, depth - 1, 3)


def test_a_long_text_is_shown_whole(opened):
    page = opened(source=" ".join([TEXT] * 14), target=TEXT, kind="encoder")
    data = given(page, "head")
    assert len(data["keys"]["labels"]) == len(data["weights"]) > 64
    assert len(json.dumps(data)) < 40_000


def test_masks_are_the_traces(opened, en_de):
    page = opened(kind="decoder", layer=1, head=1)
    follow(page, 1)
    assert given(page, "head")["weights"] == [1] + [0] * (len(en_de.translate(TEXT).ids))
    look(page, pad_to=20, kind="encoder", src_padding=False)
    trace = en_de.trace(TEXT, masks=Masks(src_padding=False), pad_to=20)
    check(page, trace, "encoder", 0, 0, 0)


def test_a_query_that_may_look_at_nothing_is_told_so():
    plane = principal_plane(np.eye(3))
    text = query_key_value.in_plane(
        plane, Answer(np.ones(3), np.zeros(3), np.zeros(3)), ("source",) * 2, 3
    )
    assert "cannot attend at all" in text and "off by" not in text


def test_a_shorter_sentence_keeps_the_query_in_range(opened):
    page = opened(kind="cross", layer=1, head=2)
    follow(page, 5)
    assert given(page, "head")["chosen"] == 4
    look(page, target="Hund")
    assert len(given(page, "head")["queries"]["labels"]) < 5
    assert page.session_state["follow"] == CLEAREST_ROW
    assert given(page, "head")["chosen"] == telling_row(own_trace(), "cross", 0, 1)


def test_the_dictionary_is_the_texts_and_its_scaling_a_switch(opened):
    page = opened(vectors=WORDS)
    data = given(page, "look_up")
    assert [tuple(v["at"]) for v in data["vectors"]] == [QUERY, *KEYS.values()]
    assert [v["name"] for v in data["vectors"]] == ["rollercoaster", *KEYS]
    assert data["values"] == list(VALUES.values()) == [10, 9, -3]
    assert data["divisor"] == pytest.approx(2**0.5)
    page.toggle(key="scaled").set_value(False).run()
    assert given(page, "look_up")["divisor"] == 1


@pytest.mark.parametrize(("text", "says"), [("", "Type a sentence"), ("dog " * 2000, "at most")])
def test_a_text_that_cannot_be_read_is_answered_and_keeps_the_words(opened, text, says):
    page = opened(source=text)
    assert says in [*page.info, *page.error][0].value
    page.segmented_control(key="vectors").set_value(WORDS).run()
    assert not page.exception and given(page, "look_up")
