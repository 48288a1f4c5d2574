"""A pruned checkpoint in the app: every page opens, and its missing heads are blank."""

import pytest

from headlight.app.results import passes
from headlight.app.state import catalog
from headlight.app.state.pages import PAGES
from headlight.app.wording import head_card
from headlight.model.checkpoint import load
from headlight.model.corpus.prune_command import write_pruned
from headlight.model.corpus.pruning import heads_of
from headlight.model.probing.run import FINAL
from tests.app.common import forget_all


@pytest.fixture
def pruned(tmp_path, page, monkeypatch):
    """The app with one more model, which lacks heads 1 and 2 of cross-attention's layer 1."""
    copy = load("copy")
    write_pruned(copy, heads_of(copy, "cross")[:2], tmp_path / "pruned")
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(tmp_path)])
    forget_all()
    page.query_params.update(
        model="pruned", source="a b c d e", kind="cross", layer="1", head="1",
        measured_on="This sentence",
    )  # fmt: skip
    yield page.run()
    forget_all()


@pytest.mark.long
def test_every_page_opens_on_a_head_that_is_gone(pruned):
    for page in PAGES.values():
        pruned.switch_page(page.key).run()
        assert not pruned.exception, page.key
        if page.key == "compare":
            assert any("PrunedSoftmax" in info.value for info in pruned.info)
        else:
            assert not pruned.error, page.key


def test_its_card_says_nothing_of_the_whole_model_s_heads(tmp_path):
    en_de = load("en-de")
    write_pruned(en_de, heads_of(en_de, "cross")[:2], tmp_path)
    card = load(tmp_path).card
    assert {"opens", "alignment", "scores"} <= set(en_de.card)
    assert not {"opens", "alignment", "scores", "domain"} & set(card) and len(card["pruned"]) == 2
    assert "heads that align" not in (tmp_path / "README.md").read_text()


def test_its_missing_heads_are_blank(pruned):
    model = catalog.view_of("pruned", FINAL, "cpu")
    trace = passes.trace_of(model, model.checkpoint.run("a b c d e"))
    there = trace.attention["cross"].any(axis=(2, 3))
    assert there.tolist() == [[False, False], [True, True]]
    pruned.switch_page("heads").run()
    table = pruned.dataframe[0].value.set_index(["attention", "layer", "head"])
    assert table.loc["cross", 1, 1].isna()[["entropy", "nearest", "distance"]].all()
    assert table["weights"]["cross", 1, 1] == table["weights"]["cross", 1, 2]  # all hatched
    assert table["ablation"]["cross", 1, 1] == pytest.approx(0, abs=1e-6)
    assert not table.loc["cross", 2, 1].isna()[["entropy", "nearest"]].any()
    for view in ("heads", "attention"):
        pruned.switch_page(view).run()
        assert any(text.value == head_card.PRUNED for text in pruned.markdown), view
        assert not pruned.warning  # of masks that leave nothing
    pruned.segmented_control(key="layer").set_value(2).run()
    assert not any(text.value == head_card.PRUNED for text in pruned.markdown)
