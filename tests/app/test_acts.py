"""What an act on the stage costs, in numbers that do not depend on the machine: how often the model
runs, what is drawn for it, how many messages it takes, and how large they are. A feature that adds
to them should be seen here."""

from operator import le

import pytest
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from headlight.model.decoding import search
from headlight.model.transformer import Transformer

SENTENCES = "A man rides a bicycle.", "Two dogs run on the beach."
LONG = " ".join(["A man rides a bicycle and two dogs run on the beach."] * 6)
HEAD = {"kind": "encoder", "layer": 0, "head": 1}
CELL = HEAD | {"query": 2, "key": 1}


def nodes(block) -> int:
    """Elements and the boxes that they stand in."""
    children = getattr(block, "children", {}).values()
    return 1 + sum(map(nodes, children))


@pytest.fixture
def act(page, monkeypatch):
    """Opens the stage, and counts for each act, of settings or a question, the passes over whole
    texts and the translations, what is drawn, the messages, and kB of those that are new: of others
    the browser gets a hash."""
    counts, known = {}, set()

    def counting(what, function, size=lambda *given: 1):
        def call(*args, **given):
            counts[what] += size(*args)
            return function(*args, **given)

        return call

    monkeypatch.setattr(Transformer, "hidden", counting("passes", Transformer.hidden))
    greedy = counting("translations", search.greedy_decode)
    monkeypatch.setattr("headlight.model.checkpoint.greedy_decode", greedy)

    def size(_, message):
        content = message.SerializeToString()
        is_known = content in known
        known.add(content)
        return 0 if is_known else len(content)

    enqueue = counting("bytes", ScriptRunContext.enqueue, size)
    monkeypatch.setattr(ScriptRunContext, "enqueue", counting("messages", enqueue))
    page.query_params.update(model="en-de", source=SENTENCES[0])

    def do(question=None, **settings):
        counts.update(passes=0, translations=0, messages=0, bytes=0)
        for key, value in settings.items():
            page.session_state[key] = value
        if question:
            page.session_state["_memo"].asked = [question | {"of": ""}]
        AppTest.run(page)  # with its drawer closed
        assert not page.exception
        run = counts["passes"], counts["translations"]
        return run, (nodes(page.main), counts["messages"], counts["bytes"] / 1000)

    return do


ONCE = 22, 25, 20  # what is drawn at most, with which messages, of so many new kB
QUESTION = 29, 32, 20  # with its answers at the foot
OPENING, LONG_TEXT = 360, 250  # kB: the scripts of the stage; the weights of 150 tokens


def test_what_an_act_runs_and_sends(act):
    found = {
        "opening": act(),
        "nothing": act(),
        "Enter": act(source=SENTENCES[1], line=SENTENCES[1]),
        "a mask": act(causal=False),
        "as trained": act(causal=True),
        "a head off": act(changes="cross.1.1=off"),
        "on again": act(changes=""),
        "a word hidden": act(changes="encoder=hide:1; cross=hide:1"),
        "shown again": act(changes=""),
        "a lesson": act(lesson="1-shares"),
        "its next step": act(step_of_lesson=3),
        "without it": act(lesson=""),
        "preview": act({"what": "preview", "act": {"what": "off", **HEAD}}),
        "scores": act({"what": "scores", **HEAD}),
        "why": act({"what": "why", **CELL}),
        "by effect": act({"what": "effect"}),
        "by habit": act({"what": "habit"}),
        "after each layer": act({"what": "after"}),
        "needs": act({"what": "needs", "row": 2}),
        "beams": act({"what": "write", "how": "beams", "width": 5}),
        "a long text": act(source=LONG, line=LONG),
    }
    assert {name: run for name, (run, _) in found.items()} == {
        "opening": (1, 1),
        "nothing": (0, 0),
        "Enter": (1, 1),
        "a mask": (1, 1),  # what it writes now
        "as trained": (0, 0),
        "a head off": (1, 1),
        "on again": (0, 0),
        "a word hidden": (1, 1),
        "shown again": (0, 0),
        "a lesson": (4, 4),  # its sentences
        "its next step": (0, 0),
        "without it": (0, 0),
        "preview": (1, 1),
        "scores": (1, 0),
        "why": (2, 0),
        "by effect": (1, 0),  # of all heads at once
        "by habit": (0, 0),
        "after each layer": (0, 0),
        "needs": (1, 0),
        "beams": (1, 0),
        "a long text": (1, 1),
    }
    most = {"opening": (*ONCE[:2], OPENING), "a long text": (*ONCE[:2], LONG_TEXT)}
    most["its next step"] = QUESTION
    for name, (_, sent) in found.items():
        assert all(map(le, sent, most.get(name, ONCE))), (name, sent)
