"""The page Alignment, without a browser."""

import pytest

from headlight.app.results.habits import head_habits
from headlight.app.state.options import (
    ALIGNED_BY,
    AT_ROWS,
    BEST_HEADS,
    INFLUENCE,
    OF_LAYER,
    SELECTED,
)
from headlight.app.text.alignment import alignment_note
from headlight.app.views.alignment import agreement
from headlight.model import load
from headlight.model.analysis.alignment import HeadAlignment, of_influence, of_trace, pharaoh
from headlight.model.checkpoint import SHIPPED, untrained
from headlight.model.rounding import percent
from headlight.model.surveys.survey import FILE, Survey
from tests.app.common import words

TEXT = "A dog runs on the beach."
VIEW = "alignment"


def sites_of(model: str):
    if model.endswith(", untrained"):
        return untrained(model.removesuffix(", untrained"), load("en-de")).model.sites()
    return load(model).model.sites()


@pytest.mark.parametrize("by", ALIGNED_BY)
@pytest.mark.parametrize("model", ["en-de", "reverse"])
def test_every_model_with_two_texts_is_aligned(opened, model, by):
    page = opened(model, "h e l l o" if model == "reverse" else TEXT, aligned_by=by)
    assert not page.exception and not page.error
    assert len(page.dataframe[0].value) == sum(
        site.n_heads for site in sites_of(model) if site.kind == "cross"
    )


@pytest.mark.parametrize("model", ["reviews", "decoder_only, untrained"])
def test_a_model_of_one_text_says_why_not(opened, model):
    page = opened(model)
    assert any("nothing to align" in info.value for info in page.info) and not page.exception


@pytest.mark.parametrize("source", ["", "   ", "."])
def test_hardly_any_text_breaks_nothing(opened, source):
    assert not opened(source=source).exception


def test_a_head_of_another_kind_says_what_to_select(opened):
    page = opened(aligned_by="Selected head", kind="encoder")
    assert any("Select a head of" in info.value for info in page.info) and not page.exception


@pytest.mark.parametrize(
    ("step", "where"), [("16", "in this sentence"), ("final", "in other sentences")]
)
def test_what_the_card_does_not_know_is_measured_on_the_sentence(opened, step, where):
    page = opened(model="en-fr", step=step)
    assert where in words(page)


@pytest.fixture
def taken(monkeypatch):
    """Label → what the buttons give."""
    files = {}
    monkeypatch.setattr(
        "streamlit.delta_generator.DeltaGenerator.download_button",
        lambda self, label, data, *_, **__: files.update({label: data}),
    )
    return files


@pytest.mark.parametrize("at", AT_ROWS)
def test_the_files_hold_what_is_drawn(opened, taken, at):
    opened(aligned_by="Selected head", aligned_at=at, kind="cross", layer="3", head="1")
    en_de = load("en-de")
    shift = None if at == AT_ROWS[0] else AT_ROWS.index(at) - 1
    expected = en_de.alignment.of(of_trace(en_de.trace(TEXT)), [(2, 0)], shift).links()
    assert taken["Pharaoh"] == pharaoh(expected) + "\n"
    assert taken["CSV"].count("\n") == 1 + len(expected)


def test_influence_is_what_python_measures(opened, taken):
    opened(aligned_by="Influence")
    en_de = load("en-de")
    expected = of_influence(en_de.model, en_de.run(TEXT)).links()
    assert taken["Pharaoh"] == pharaoh(expected) + "\n"


@pytest.mark.parametrize("by", ALIGNED_BY)
def test_the_picker_stands_there_only_where_its_head_aligns(opened, by):
    page = opened(aligned_by=by, kind="cross", layer="2", head="1")
    about_a_head = by in (SELECTED, OF_LAYER)
    assert ("head" in {box.key for box in page.segmented_control}) == about_a_head
    assert ("switch_head" in {button.key for button in page.button}) == about_a_head


@pytest.mark.parametrize(("by", "are_averaged"), [(BEST_HEADS, True), (INFLUENCE, False)])
def test_what_is_lost_without_the_heads_that_are_averaged_is_said(opened, by, are_averaged):
    said = words(opened(aligned_by=by))
    for part in (
        "Over 500 sentences, ",
        "needed, whatever takes its place. Change in BLEU (95% interval): ",
        "without 1.2 (",
        "without 2.3 (",
    ):
        assert (part in said) == are_averaged


@pytest.mark.parametrize("name", ["en-de", "en-fr"])
def test_a_head_aligns_as_many_words_here_as_among_all_heads(name):
    checkpoint, survey = load(name), Survey.load(SHIPPED / name / FILE)
    trace = checkpoint.trace(TEXT)
    tiles = head_habits(survey.measured(trace.sites), trace, survey)
    shares = {
        (site.layer, head): percent(agreement(checkpoint.alignment, survey, site, (layer, head)))
        for layer, site in enumerate(trace.kinds["cross"])
        for head in range(site.n_heads)
    }
    captions = {(t.layer, t.head): t.caption for t in tiles if t.caption.startswith("aligns ")}
    assert captions and all(said == f"aligns {shares[at]}" for at, said in captions.items())


def test_the_note_names_the_heads_that_the_lines_show(en_de):
    sites, measured = sites_of("en-de"), HeadAlignment.of_card(en_de.card)
    cross = [site for site in sites if site.kind == "cross"]

    def note(*heads, shift=None):
        return alignment_note(measured, heads, cross, shift)

    assert note((1, 0), shift=1).endswith(
        "in cross-attention, layer 2 head 1. "
        "Here, each target word is the word about to be written."
    )
    read, written = "once the word is read", "as it is about to be written"
    averaged = "averaged over the {} cross-attention heads: {}."
    assert [measured.shifts[head] for head in ((0, 1), (1, 3), (2, 0))] == [0, 1, 1]
    assert note((0, 1), (2, 0)).endswith(
        averaged.format("two", f"1.2 ({read}) and 3.1 ({written})")
    )
    assert note((0, 1), (2, 0), shift=0).endswith(averaged.format("two", f"1.2 and 3.1 ({read})"))
    assert note((0, 1), (1, 3), (2, 0)).endswith(
        averaged.format("three", f"1.2 ({read}), 2.4 and 3.1 ({written})")
    )
    assert " that align best together: " in note(*measured.heads)
    assert note(*[(2, head) for head in range(4)]).endswith(
        "in cross-attention, layer 3, averaged over its 4 heads."
    )
