"""Other people's models in the app: every page of small random folders in Hugging Face's layout."""

import numpy as np
import pytest

from app.pages import PAGES
from model.checkpoint import load
from model.families.rotary import angles
from tests.model.pretrained.folders import FAMILIES, write

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
def opened(page):
    def open_with(name, key="", **more):
        page.query_params.update(dict(model=name, source=TEXT) | more)
        page.run()
        return page.switch_page(PAGES[key].file).run() if key else page

    return open_with


@pytest.mark.parametrize("name", FAMILIES)
def test_every_page_opens(opened, name):
    """Attribution takes apart what is a sum; of a masked-token head or an embedding it says so."""
    page = opened(name)
    assert page.session_state["model"] == name
    for key, entry in PAGES.items():
        page.switch_page(entry.file).run()
        assert not page.exception, key
        said = [error.value for error in page.error]
        assert all("no linear function" in text for text in said), key
        assert not said or (key == "attribution" and name in ("bert", "minilm"))


@pytest.mark.parametrize("at", ["Input", "Projections", "Scores", "Feed-forward"])
@pytest.mark.parametrize("name", FAMILIES)
def test_steps_say_what_such_a_model_does(opened, name, at):
    page = opened(name, "inside", at=at, layer="1")
    said = " ".join(text.value for text in page.markdown)
    assert not page.exception
    rotary = name in ("llama-groups", "qwen3")
    if at == "Input":
        assert ("the words alone" in said) == rotary
    if at == "Projections":
        assert ("are turned" in said) == rotary and ("share" in said) == rotary
        assert ("are normed, each by itself" in said) == (name == "qwen3")
    if at == "Feed-forward":
        formula = page.latex[0].value
        assert ("GELU" in formula) == (name in ("bert", "minilm", "gpt2"))
        assert ("odot" in formula) == rotary


def test_queries_and_keys_are_those_that_are_compared(folders):
    """Turned ones, of the shared key head: their product over √d_head is the model's score."""
    from model.probing.head_steps import head_steps

    checkpoint = load(folders / "llama-groups")
    run = checkpoint.run(TEXT)
    trace = checkpoint.trace_run(run)
    (site, *_), head = trace.kinds["decoder"], 3
    query, key = head_steps(checkpoint.model, run, site, head).compared
    expected = trace.scores["decoder"][0][head]
    assert np.abs(query @ key.T / query.shape[1] ** 0.5 - expected).max() <= 1e-5


def test_rotation_is_drawn_in_the_place_of_a_table(opened, folders):
    page = opened("qwen3", "positions")
    assert any("adds no table" in text.value for text in page.caption)
    config = load(folders / "qwen3").model.config
    import torch

    turned = angles(config.rotary, config.d_head, 4, torch.float32)
    assert turned.shape == (4, config.d_head // 2) and (turned[0] == 0).all()


def test_the_neuron_view_says_why_not(opened):
    page = opened("llama-groups", "bertviz", bertviz="neuron")
    assert any("heads share their keys" in text.value for text in page.info)
    assert not page.exception


def test_a_text_that_does_not_fit_into_memory_is_told_on_every_page(opened, monkeypatch):
    """In a sentence with both numbers, where a page needs the weights."""
    monkeypatch.setattr("model.probing.trace.available", lambda: 10)
    page = opened("gpt2", source="A text that no other test has traced.")
    for key, entry in PAGES.items():
        page.switch_page(entry.file).run()
        assert not page.exception, key
        said = [one.value for one in (*page.error, *page.warning, *page.info)]
        if key in ("attention", "heads", "residual"):
            assert any("take a shorter text" in one for one in said), (key, said)
