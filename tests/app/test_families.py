"""Other people's models in the app: small random folders in Hugging Face's layout."""

import shutil
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from headlight.app.results import layer_results
from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.state.pages import HOME
from headlight.app.text import block_texts, output_texts
from headlight.model.analysis.architecture import blocks
from headlight.model.checkpoint import load
from headlight.model.families.rotary import Rotation
from headlight.model.pretrained.contents import ROUNDED
from headlight.model.probing.head_steps import head_steps
from tests.model.pretrained.folders import FAMILIES, in_doubles, write
from tests.model.pretrained.test_sentence_encoders import DENSE, encoder

TEXT = "The dog sees the cat and it sees the dog."


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    for kind in FAMILIES:
        write(folder / kind, kind)
    return folder


@pytest.fixture
def models(folders):
    """See tests/conftest.py."""
    return folders


@pytest.fixture
def double(models):
    write(models / "double", "qwen3")
    in_doubles(models / "double")
    yield "double"
    shutil.rmtree(models / "double")


def test_the_figure_says_where_the_parameters_are_and_whether_they_are_rounded(double, folders):
    for name in (double, "qwen3"):
        checkpoint = load(folders / name)
        view = SimpleNamespace(model=checkpoint.model, checkpoint=checkpoint)
        shown = SimpleNamespace(view=view, trace=checkpoint.trace_run(checkpoint.run(TEXT)))
        said = layer_results.about_of(cast("Shown", shown))["text"]["end"]
        count = sum(parameter.numel() for parameter in checkpoint.model.parameters())
        assert f"In all, {count:,} parameters: attention " in said
        assert (ROUNDED in said) == (name == double)


EXAMPLES = dict(bert="[MASK]", gpt2="the capital of", qwen3="the capital of", marian="apples")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_model_opens_on_an_example_of_what_its_family_does(page, name):
    page.query_params["model"] = name
    page.run()
    assert not page.exception
    assert EXAMPLES[name] in page.session_state["source"]
    assert len(catalog.examples(name)) > 2


@pytest.mark.parametrize("name", FAMILIES)
def test_blocks_say_what_such_a_model_has(folders, name):
    """In the figure of the model; a table of positions has a block where there is one."""
    checkpoint = load(folders / name)
    run = checkpoint.run(TEXT)
    trace = checkpoint.trace_run(run)
    lengths = {side: len(text.ids) for side, text in trace.texts.items()}
    found = blocks(checkpoint.model, lengths)
    said = {block.part: block_texts.explained(checkpoint.model, trace, block) for block in found}
    said["attention"] = said[next(block.part for block in found if block.kind)]
    rotary = name in ("llama-groups", "qwen3")
    assert ("position" in said) == ("rotat" not in said["attention"]) == (not rotary)
    assert ("share their keys" in said["attention"]) == rotary
    assert ("normalised first" in said["attention"]) == (name == "qwen3")
    assert ("gates" in said["feed_forward"]) == rotary
    of_family = {"llama-groups": "SiLU", "qwen3": "SiLU", "marian": "SiLU"}
    activation = of_family.get(name, "GELU")
    assert f"a {activation}" in said["feed_forward"]
    assert ("segment" in said["embedding"]) == (name in ("bert", "minilm"))
    norms = " ".join(said.get(part, "") for part in ("norm", "add_norm"))
    assert ("RMSNorm" in norms) == rotary
    if "position" in said:
        assert ("learned" in said["position"]) == (name != "marian")
    assert ("an activation and a norm" in said.get("generator", "")) == (name == "bert")


@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "lasttoken"])
def test_a_sentence_encoder_says_how_it_makes_its_vector(page, folders, pooling):
    """In the figure of the model: what its pooling takes, its linear maps and the length."""
    name, modes = f"encoder-{pooling}", {"pooling_mode": pooling}
    maps = encoder(folders / "minilm", folders / name, modes, DENSE["two"], True)
    page.query_params.update(dict(model=name, source=TEXT))
    page.switch_page("stage").run()
    assert not page.exception and not page.error
    checkpoint = load(folders / name)
    run = checkpoint.run(TEXT)
    trace = checkpoint.trace_run(run)
    told = output_texts.output(checkpoint, run, lambda: trace)
    assert told == ("Output", "an embedding of 7 numbers")
    shown = {block.part: block for block in blocks(checkpoint.model, {"src": 5})}
    pooled, dense = (
        block_texts.explained(checkpoint.model, trace, shown[part]) for part in ("pooling", "dense")
    )
    takes = dict(mean="the mean", max="the maximum", cls="its first token", lasttoken="its last")
    assert takes[pooling] in pooled and "length" not in pooled
    assert "24 → 40" in dense and "40 → 7 and a GELU" in dense
    assert "divided by its length" in dense and shown["dense"].shape == (1, 7)
    numbers = sum(p.numel() for linear, _ in maps for p in linear.parameters())
    assert shown["dense"].parameters == numbers


def test_queries_and_keys_are_those_that_are_compared(folders):
    """Turned ones, of the shared key head: their product over √d_head is the model's score."""
    checkpoint = load(folders / "llama-groups")
    run = checkpoint.run(TEXT)
    trace = checkpoint.trace_run(run)
    (site, *_), head = trace.kinds["decoder"], 3
    query, key = head_steps(checkpoint.model, run, site, head).compared
    expected = trace.scores["decoder"][0][head]
    assert np.abs(query @ key.T / query.shape[1] ** 0.5 - expected).max() <= 1e-5


def test_angles_stand_in_the_place_of_a_table(folders):
    """Those by which the model turns a vector that lies along the first axis of each pair."""
    checkpoint = load(folders / "qwen3")
    run = checkpoint.run(TEXT)
    view = SimpleNamespace(model=checkpoint.model, checkpoint=checkpoint)
    shown = cast(Shown, SimpleNamespace(view=view, trace=checkpoint.trace_run(run)))
    found = layer_results.places_of(shown, checkpoint.model.sides()[0].title, 2)["angles"]
    count, pairs = len(run.texts[0].ids), checkpoint.model.config.d_head // 2
    rotation = next(part for part in checkpoint.model.modules() if isinstance(part, Rotation))
    along = torch.cat([torch.ones(count, pairs), torch.zeros(count, pairs)], dim=1)[None, None]
    cosine, sine = rotation(along, count)[0, 0, 2:].chunk(2, dim=1)
    assert np.allclose(np.cos(found), cosine, atol=1e-5)
    assert np.allclose(np.sin(found), sine, atol=1e-5)


def test_a_text_that_does_not_fit_into_memory_is_told(page, monkeypatch):
    """In a sentence with both numbers, where a page needs the weights."""
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 10)
    page.query_params.update(model="gpt2", source="A text that no other test has traced.")
    page.switch_page(HOME).run()
    assert not page.exception
    said = [one.value for one in (*page.error, *page.warning, *page.info)]
    assert any("Use a shorter text" in one for one in said), said
