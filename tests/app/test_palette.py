"""What the stage says that an act would do is what it does."""

import json
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from headlight.app.results import word_results
from headlight.app.results.shown import Shown
from headlight.app.server.fair_queue import FairQueue
from headlight.app.shell import stage
from headlight.app.state import catalog
from headlight.app.state.options import OTHER
from headlight.app.text import findings
from headlight.model import load
from headlight.model.checkpoint import SHIPPED
from tests.app.common import components
from tests.conftest import long_but

NAMES = sorted(folder.name for folder in SHIPPED.iterdir())


@pytest.fixture
def previews(monkeypatch):
    """What the page answers to a stage that asks about these acts."""
    sent = []
    monkeypatch.setattr(stage, "stage_answers", lambda _, answers, on_ask: sent.append(answers))

    def ask(page, acts):
        page.session_state["_memo"].asked = [{"what": "preview", "act": act} for act in acts]
        page.run()
        assert not page.exception
        return json.loads(json.dumps([found for _, found in sent[-1]]))

    return ask


def said(page):
    return components(page, "stage_said")[0]


def drawn(seed):
    """A model with a sentence of its own, changes, and acts: each with the settings that its click
    must choose, written here anew."""
    random = np.random.default_rng(seed)
    name = str(random.choice(NAMES))
    checkpoint = load(name)
    line = str(random.choice(list(dict.fromkeys(catalog.examples(name)))[:6]))
    trace = checkpoint.trace(line)
    kind = str(random.choice(sorted(trace.attention)))
    layers, heads, _, keys = trace.attention[kind].shape
    layer, head, key = (int(random.integers(most)) for most in (layers, heads, keys))
    side, first = trace.sides_of(kind)[1], checkpoint.model.sides()[0]
    hidden = [f"{each}=hide:{key + 1}" for each in trace.kinds if trace.sides_of(each)[1] == side]
    before = str(random.choice(["", f"{kind}.1.1=off", f"{kind}=uniform"]))
    at = {"kind": kind, "layer": layer, "head": head, "scope": "head"}
    changed = [
        ({"what": "hide", "side": side.title, "index": key}, "; ".join(hidden)),
        ({"what": "off", **at}, f"{kind}.{layer + 1}.{head + 1}=off"),
        ({"what": "temperature"}, "all=temperature:4.0"),
        *[({"what": "positions"}, f"{first.title}=positions:none")] * bool(first.table),
    ]
    cards = [
        (act, {"changes": "" if new == before else "; ".join(filter(None, (before, new)))})
        for act, new in changed
    ]
    if any("causal" in site.masks for site in checkpoint.model.sites()):
        cards.append(({"what": "causal"}, {"causal": "false"}))
    return name, line, before, cards


@pytest.mark.parametrize("seed", long_but(range(2), range(40)))
def test_a_preview_says_what_the_click_gives(new_page, previews, seed):
    name, line, before, cards = drawn(seed)

    def opened(**more):
        page = new_page()
        page.query_params.update(model=name, source=line, **more)
        return page.run()

    page = opened(changes=before)
    found = previews(page, [act for act, _ in cards])
    assert len(found) == len(cards)
    for (act, chosen), preview in zip(cards, found, strict=True):
        told = said(opened(**{"changes": before} | chosen))
        assert preview["now"] == told["now"], act
        if told["now"]:
            assert preview["rest"] == told["said"], act
        else:
            assert preview["said"] == [[*part] for part in findings.would(told["said"])], act
        assert "".join(text for text, _ in preview["brief"]).strip(), act


def test_a_word_is_swapped_for_one_of_the_examples_and_back(page, previews):
    page.query_params.update(model="en-fr", source="She has never seen the red car of my sister.")
    page.run()
    act = {"what": "swap", "index": 5}
    (preview,) = previews(page, [act])
    with_black = "She has never seen the black car of my sister."
    assert ["noire", "b"] in preview["said"] and preview["brief"][0] == ["black: ", ""]
    page.session_state["other"], page.session_state["shows"] = with_black, OTHER
    page.run()
    told = said(page)  # what it writes now stands in the texts
    assert (told["said"], told["now"]) == (preview["rest"], preview["now"])
    (preview,) = previews(page, [act])
    assert preview["brief"] == [["back as trained", ""]]
    assert previews(page, [act | {"index": 10}, act | {"index": 99}]) == [preview] * 2
    page.session_state["other"] = ""
    page.run()
    assert all("why" in each for each in previews(page, [act | {"index": i} for i in (10, 11, 99)]))


def test_two_words_change_places(page, previews):
    page.query_params.update(model="en-fr", source="A dog chases a cat.")
    page.run()
    act = {"what": "exchange", "index": 1, "beside": 5}
    found = previews(page, [act, act | {"index": 5, "beside": 1}])
    page.session_state["other"], page.session_state["shows"] = "A cat chases a dog.", OTHER
    page.run()
    told = said(page)["said"], said(page)["now"]
    assert [(each["rest"], each["now"]) for each in found] == [told] * 2 and found[0]["now"]
    wrong = [(2, 3), (1, 6), (1, 99), (7, 1)]  # parts of one word, no word, nothing, the end
    found = previews(page, [act | {"index": one, "beside": two} for one, two in wrong])
    assert all("why" in each for each in found)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("Wheelbarrows chase cats.", "Cats chase wheelbarrows."), ("It doesn't.", "Doesn't it.")],
)
def test_whole_words_change_places_and_a_sentence_begins_large(line, wanted):
    checkpoint = load("en-fr")
    view = SimpleNamespace(model=checkpoint.model, checkpoint=checkpoint)
    for text, other in ((line, wanted), (wanted, line)):
        run = checkpoint.run(text)
        shown, last = cast(Shown, SimpleNamespace(view=view, run=run)), len(run.texts[0].ids) - 2
        assert word_results.with_words_exchanged(shown, text, last, 0) == other


def test_nothing_is_computed_where_others_wait_or_a_lesson_asks(page, previews, monkeypatch):
    act = {"what": "temperature"}
    page.query_params.update(model="induction")
    page.run()
    monkeypatch.setattr("headlight.app.shell.palette.effect", pytest.fail)
    with monkeypatch.context() as busy:
        busy.setattr(FairQueue, "is_free", False)
        assert previews(page, [act]) == [stage.MISSING]
    asks = SimpleNamespace(veils=lambda: ["a row"])
    monkeypatch.setattr("headlight.app.shell.palette.running_lesson", asks)
    assert previews(page, [act]) == [stage.MISSING]
