"""The stage as the server tells it: one look in every run, which names what may be seen."""

import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch

from headlight.app.components import stage as component
from headlight.app.components.packing import id_of
from headlight.app.results import layer_results
from headlight.app.results.shown import Shown
from headlight.app.shell import stage as shell_stage
from headlight.app.state import catalog
from headlight.model import load
from headlight.model.analysis import residual
from headlight.model.analysis.attribution import attribution
from headlight.model.analysis.decomposition import Term
from headlight.model.checkpoint import SHIPPED
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.trace import read_of
from headlight.model.surveys.survey import Survey
from tests.app.common import components

VIEW, TEXT = "stage", "A dog runs."


@pytest.fixture
def sent(monkeypatch):
    """The weights that were sent, run for run."""
    sent = []
    monkeypatch.setattr(component, "_mount_run", lambda data, **other: sent.append(data))
    return sent


def look_of(page):
    (look,) = components(page, "stage_look")
    return look


def test_a_run_is_named_by_the_one_look_of_its_run(opened, sent):
    page = opened()
    assert look_of(page)["run"] == id_of(sent[-1]) and not look_of(page)["covered"]
    numbers = [look_of(page)["number"]]
    for _ in range(2):
        page.run()
        numbers.append(look_of(page)["number"])
    assert numbers == sorted(set(numbers))


def test_a_question_beside_an_act_is_answered_after_the_act(opened, monkeypatch):
    """Its region, drawn alone while settings have changed, leaves it to a run of the whole."""
    page, question = opened(), {"what": "about", "of": ""}
    page.session_state["_memo"].asked, reruns = [question], []
    with monkeypatch.context() as patched:
        patched.setattr(shell_stage.session, "is_running", lambda: False)
        patched.setattr(shell_stage.session, "running", lambda page: nullcontext())
        patched.setattr(shell_stage.session, "shows_all_but", lambda keys: False)
        patched.setattr(shell_stage.st, "rerun", lambda: reruns.append(1))
        page.run()
    assert reruns and page.session_state["_memo"].asked == [question]
    page.run()
    assert not page.session_state["_memo"].asked


@pytest.mark.parametrize(
    "settings",
    [
        {"source": ""},
        {"changes": "nonsense"},
        {"changes": "cross.9.9=off"},
        {"source": "a " * 2000},
    ],
)
def test_what_cannot_be_shown_is_covered_and_leaves_a_box_to_type(opened, sent, settings):
    """Also after a run."""
    page = opened()
    sent.clear()
    for key, value in settings.items():
        page.session_state[key] = value
    page.run()
    look = look_of(page)
    assert look["covered"] and look["run"] is None and look["types"]
    assert not sent and not page.exception and [*page.error, *page.info]


def test_what_is_done_has_what_undoes_it(opened, sent):
    changes = "encoder=hide:2; cross=hide:2; cross.2.3=off; decoder.1=off; encoder=hide:1"
    page = opened(changes=changes, causal="false")
    look, done = look_of(page), look_of(page)["done"]
    assert look["off"] == {"encoder": [], "decoder": [0, 1, 2, 3], "cross": [6]}
    assert look["hidden"] == {"source": [1], "target": []}  # cross-attention sees the first
    assert len(done) == 5
    for each in done:
        undo = each["undo"]
        if "changes" in undo:
            assert len(undo["changes"]) < len(changes)
        else:
            assert undo == {"reset": "causal"}


@pytest.fixture
def answered(opened, monkeypatch):
    """The answer to a question about the text, by a model that has all that is asked for."""
    sent = []
    monkeypatch.setattr(component, "_mount_more", lambda data, **other: sent.append(data))

    def ask(what, name="en-fr", text=TEXT, **more):
        page, question = opened(name, text), {"what": what, "of": ""} | more
        page.session_state["_memo"].asked = [question]
        page.run()
        assert not page.exception
        data = sent[-1]
        start = 4 + int.from_bytes(data[:4], "little")
        (answer,) = json.loads(data[4:start])["answers"]
        assert answer["of"] == question
        if "value" in answer:
            return answer["value"]
        sizes = np.cumsum([np.prod(shape) for shape in answer["shapes"].values()])[:-1]
        numbers = iter(np.split(np.frombuffer(data[start:], "<f4"), sizes))
        return {name: next(numbers).reshape(shape) for name, shape in answer["shapes"].items()}

    return ask


ABSENT = {"isMissing": True}
HEAD = {"kind": "cross", "layer": 2, "head": 1}


@pytest.mark.parametrize(
    ("what", "more", "wrong"),
    [
        ("scores", HEAD, [{"layer": 9}, {"head": 9}, {"kind": "other"}, {"what": "nothing"}]),
        ("carries", HEAD | {"row": 1}, [{"kind": "encoder"}, {"layer": 9}, {"head": 9}]),
        ("adds", {"row": 1}, [{"row": 999}]),
        ("needs", {"row": 1}, [{"row": 999}]),
        ("positions", {"side": "source", "from": 0}, [{"side": "none"}]),
    ],
)
def test_what_is_not_there_is_missing(answered, what, more, wrong):
    asked = {"what": what} | more
    assert [answered(**asked | each) for each in wrong] == [ABSENT] * len(wrong)
    assert answered(**asked) != ABSENT


def test_scores_of_a_head_are_those_of_its_steps(answered):
    model = load("en-fr")
    steps = head_steps(model.model, model.run(TEXT), model.model.sites()[-2], 1)
    for name, array in answered("scores", **HEAD).items():
        assert np.allclose(array, getattr(steps, name), atol=1e-5), name
    for name, array in answered("vectors", **HEAD).items():
        assert np.array_equal(array, getattr(steps, name)), name


def test_the_reasons_of_a_weight_are_those_of_the_model(answered):
    head, model = {"kind": "cross", "layer": 2, "head": 2}, load("en-fr")
    found = answered("why", **head, query=2, key=2)
    why = model.why(model.run(TEXT), "cross.3.3=3>3")
    assert np.sum(found["pairs"]) == pytest.approx(why.margin, abs=1e-4)
    assert np.max(np.array(found["pairs"])[:-1, :-1]) == pytest.approx(why.pairs.max())
    for axis, name in ((1, "rows"), (0, "columns")):
        assert np.sum(found["pairs"], axis) == pytest.approx([one["sum"] for one in found[name]])
    assert found["kind"] == why.kind and found["weight"] == pytest.approx(why.weight)
    assert (found["leading"] is None) == (why.kind not in ("meeting", "position"))
    named = [one["without"] for name in ("rows", "columns") for one in found[name]]
    for without in why.without.values():
        assert any(one == pytest.approx(without.weight, abs=1e-6) for one in named if one)
    masked = answered("why", **head | {"kind": "decoder"}, query=0, key=3)
    assert masked == {"cannot": "This key is masked, so there is nothing to explain."}


def test_what_it_would_write_after_each_layer_is_the_lens(answered):
    model, found = load("en-fr"), answered("after")
    lens = residual.lens(model.model, model.trace(TEXT))
    assert np.allclose(found["probability"], lens.probability, atol=1e-6)
    assert found["settled"] == lens.settled.tolist()
    assert np.shape(found["answers"]) == lens.best.shape


def test_the_drawers_table_has_the_numbers_of_the_stream_and_of_the_lens():
    view = catalog.view_of("en-fr", "final", "cpu")
    shown = Shown(view, view.checkpoint.run(TEXT))
    trace, table = shown.trace, pd.DataFrame(layer_results.vectors_of(shown))
    for name, side in trace.sides.items():
        x = torch.tensor(trace.stream[name]).double()
        own = table[table.text == side.title]
        length = own.pivot(index="layer", columns="place", values="length")
        assert np.allclose(length, x.norm(dim=-1), rtol=1e-6)
        turned = torch.nn.functional.cosine_similarity(x[:-1], x[1:], dim=-1)
        cosine = own.pivot(index="layer", columns="place", values="cosine")[1:]
        assert np.allclose(cosine.astype(float), turned, atol=1e-6)
    lens = residual.lens(view.model, trace)
    ranks = table.dropna(subset="rank").pivot(index="layer", columns="place", values="rank")
    assert np.array_equal(ranks.astype(int), lens.rank)


def test_the_look_tells_how_a_model_writes(opened, sent):
    told = look_of(opened("en-fr", width="3", seed="99999", beginning="5-7"))["write"]
    assert told == {"width": 3, "temperature": 1.0, "seed": 0, "beginning": "5-7"}


@pytest.mark.parametrize("name", ["english", "reviews"])
def test_only_a_model_that_writes_is_asked_what_it_writes(answered, name):
    found = answered("write", name, how="one")
    if name == "reviews":
        assert found == {"cannot": "This model predicts a class; it writes no text."}
    else:
        assert [step["id"] for step in found["steps"]] == list(load(name).generate(TEXT).path)


@pytest.mark.parametrize("name", ["en-fr", "english", "reverse"])
def test_the_logit_of_a_word_is_the_sum_of_its_parts(answered, name):
    model, text = load(name), "a b c" if name == "reverse" else TEXT
    trace, row = model.trace(text), 1
    found = answered("adds", name, text, row=row)
    best = int(trace.most_probable(1)[0][row, 0])
    wanted = model.decomposition(model.run(text), row, best)
    assert [term["value"] for term in found["terms"]] == pytest.approx(wanted.values, abs=1e-5)
    assert sum(term["value"] for term in found["terms"]) == pytest.approx(found["logit"], abs=1e-4)
    shares = np.exp(trace.logits[row].astype(float))
    assert found["probability"] == pytest.approx(shares[best] / shares.sum(), abs=1e-6)
    assert found["count"] == len(shares)
    heads = [
        (one["kind"], one["layer"], one["head"]) for term in found["terms"] if (one := term["head"])
    ]
    own = [site for site in trace.sites if site.query_side == trace.predicted.name]
    assert len({*heads}) == sum(site.n_heads for site in own)


def test_what_each_key_brings_to_a_word_is_what_the_head_carries(answered):
    model, row = load("en-fr"), 1
    best = int(model.trace(TEXT).most_probable(1)[0][row, 0])
    wanted = model.carried(model.run(TEXT), row, best, Term("head", "cross", 2, 1))
    found = answered("carries", **HEAD, row=row)
    assert found["values"][0] == pytest.approx(wanted.values, abs=1e-5)


def test_what_a_word_needs_is_what_attention_and_removal_say(answered):
    model, row = load("en-fr"), 1
    found = answered("needs", row=row)
    run = model.run(TEXT)
    trace = model.trace_run(run)
    best, share = (some[row, 0] for some in trace.most_probable(1))
    given = attribution(model.model, run, row, int(best))
    assert tuple(found["words"]) == given.words and found["all"] == pytest.approx(share, abs=1e-6)
    assert np.allclose(found["attention"], given.values["attention"], atol=1e-6)
    # All words of this text are one token.
    lost = np.log(found["all"]) - np.log(found["probability"])
    assert np.allclose(lost, given.values["removal"], atol=1e-4)


@pytest.mark.parametrize(("name", "side"), [("en-fr", "target"), ("reviews", "source")])
def test_what_places_add_is_the_models_own_table(answered, name, side):
    checkpoint = load(name)
    model, run = checkpoint.model, checkpoint.run(TEXT)
    (own,) = [one for one in model.sides() if one.title == side]
    embedding, ids = model.get_submodule(own.embedding), read_of(model, run)[own.name].ids
    found = answered("positions", name, **{"side": side, "from": 1})
    wanted = {"table": embedding.position(len(ids)), "token": embedding.token(torch.tensor(ids))}
    wanted["embedded"] = embedding(torch.tensor([ids]))[0]
    for part, vectors in wanted.items():
        assert np.allclose(found[part], vectors.detach()[1:], atol=1e-5), part


def test_orders_of_the_heads_are_those_of_survey_and_sweep(answered):
    model = load("en-fr")
    swept = model.swept(model.run(TEXT))
    told = answered("effect")
    effects, survey = told["effects"], Survey.load(SHIPPED / "en-fr")
    assert told["sentences"] == 500
    kind, layer, head = told["needed"]
    lost = {
        (row["kind"], row["layer"], row["head"]): row["value"]
        for row in survey.of("loss")
        if survey.needed(row["kind"], int(row["layer"]) - 1, int(row["head"]) - 1)
    }
    assert lost[kind, layer, head] == max(lost.values())
    for kind, wanted in swept.by_head(model.trace(TEXT).kinds).items():
        assert np.allclose(np.array(effects[kind], float), wanted, atol=1e-4, equal_nan=True)
    habits = answered("habit")
    heads = {(head["kind"], head["layer"], head["head"]) for head in habits["heads"]}
    assert len(heads) == len(habits["heads"]) == 48 and habits["sentences"] == 500
    assert {head["habit"] for head in habits["heads"]} == {habit for habit, _ in habits["groups"]}
