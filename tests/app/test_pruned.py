"""A pruned checkpoint in the app: every page opens, and its missing heads are blank."""

import pytest
import torch

from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.state.pages import PAGES
from headlight.app.text import head_card
from headlight.model.checkpoint import load, save
from headlight.model.probing.capture import view
from headlight.model.probing.run import FINAL
from headlight.model.probing.sites import attention_at
from tests.app.common import forget_all, unfold


def write_pruned(checkpoint, folder):
    """The checkpoint without heads 1 and 2 of cross-attention's layer 1."""
    model = view(checkpoint.model)
    site = next(site for site in model.sites() if site.kind == "cross")
    projection = attention_at(model, site).output
    weight = projection.weight.detach().clone()  # the view shares it
    weight[:, : 2 * projection.in_features // site.n_heads] = 0
    projection.weight = torch.nn.Parameter(weight, requires_grad=False)
    gone = [{"kind": "cross", "layer": 0, "head": head} for head in range(2)]
    card = {"task": checkpoint.card["task"], "pruned": gone}
    save(folder, model, checkpoint.preset, checkpoint.tokenizer, card)


@pytest.fixture
def pruned(tmp_path, page, monkeypatch):
    """The app with one more model, which lacks heads 1 and 2 of cross-attention's layer 1."""
    copy = load("copy")
    write_pruned(copy, tmp_path / "pruned")
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(tmp_path)])
    forget_all()
    page.query_params.update(
        model="pruned", source="a b c d e", kind="cross", layer="1", head="1",
        measured_on="This sentence", all_heads="true",
    )  # fmt: skip
    yield page.run()
    forget_all()


@pytest.mark.long
def test_every_page_opens_on_a_head_that_is_gone(pruned):
    for page in PAGES.values():
        pruned.switch_page(page.key).run()
        assert not pruned.exception, page.key
        assert not pruned.error, page.key


def test_its_missing_heads_are_blank(pruned):
    model = catalog.view_of("pruned", FINAL, "cpu")
    trace = Shown(model, model.checkpoint.run("a b c d e")).trace
    there = trace.attention["cross"].any(axis=(2, 3))
    assert there.tolist() == [[False, False], [True, True]]
    unfold(pruned, "all_heads")
    table = pruned.dataframe[0].value.set_index(["attention", "layer", "head"])
    assert table.loc["cross", 1, 1].isna()[["entropy", "nearest", "distance"]].all()
    assert table["ablation"]["cross", 1, 1] == pytest.approx(0, abs=1e-6)
    assert not table.loc["cross", 2, 1].isna()[["entropy", "nearest"]].any()
    assert any(head_card.PRUNED in text.value for text in pruned.markdown)
    assert not pruned.warning
    pruned.session_state["layer"] = 2
    pruned.run()
    assert not any(head_card.PRUNED in text.value for text in pruned.markdown)
