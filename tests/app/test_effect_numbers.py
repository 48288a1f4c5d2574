"""What each part is needed for, in numbers."""

import numpy as np
import pytest

from headlight.app.shell import effect, frame
from headlight.app.text import findings
from headlight.model.checkpoint import SHIPPED
from headlight.model.surveys.survey import Survey
from tests.app.common import finished, unfold, words

VIEW, TEXT = "stage", "A dog runs."


def said(page) -> str:
    return words(page).replace("\\", "")


def probability(model, text, changes="", row=None, token=None):
    """That of the whole target that the model writes without changes, or of one token."""
    target = model.translate(text)
    ids = [*target.ids, model.model.config.eos_id]
    logits = model.trace(text, changes=changes).logits.astype(float)
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares[range(len(ids)), ids].prod() if row is None else shares[row, token]


@pytest.mark.parametrize("row", [None, 2])
def test_what_is_needed_most_is_that_of_passes_of_our_own(opened, en_de, row):
    more = {} if row is None else {"score_at": str(row + 1)}
    page, trace = finished(unfold(opened(**more), "all_effects")), en_de.trace(TEXT)
    token = None if row is None else int(trace.logits[row].argmax())
    left = {
        (site.kind, site.layer + 1, head + 1): probability(
            en_de, TEXT, f"{site.kind}.{site.layer + 1}.{head + 1}=off", row, token
        )
        for site in trace.sites
        for head in range(site.n_heads)
    }
    kind, layer, head = place = min(left, key=left.get)
    name = {"cross": "cross-attention"}.get(kind, f"{kind} self-attention")
    before = findings.percent(probability(en_de, TEXT, "", row, token))
    what = "the output" if row is None else f"“{en_de.outputs([token])[0]}”"
    assert (
        f"In this text, without *{name}, layer {layer}, head {head}*, the probability of {what} "
        f"falls from {before} to {findings.percent(left[place])}, more than without any other"
    ) in said(page)


@pytest.mark.parametrize("view", ["stage", "take-away"])
def test_what_a_change_did_is_asked_once(page, monkeypatch, view):
    """The page may ask for it, and the frame around it."""
    calls, runs, make, what = [], [], frame.make, effect.effect

    def counted() -> list:
        calls.append(len(runs))
        return what()

    monkeypatch.setattr(effect, "effect", counted)
    monkeypatch.setattr(
        frame, "make", lambda *args, **given: runs.append(None) or make(*args, **given)
    )
    page.query_params.update(source=TEXT, changes="cross.2.3=off")
    page.run()
    page.switch_page(view).run()
    assert not page.exception and calls == list(range(1, len(runs) + 1))


def test_the_table_names_a_part_before_its_effect(opened, en_de):
    page = finished(unfold(opened(), "all_effects"))
    table = page.dataframe[0].value
    assert [*table.columns] == ["part", "effect"]
    assert "Cross 4.3" in set(table["part"]) and table["effect"].is_monotonic_increasing
    page.segmented_control(key="sweep").set_value("Sublayers skipped").run()
    assert "Cross-attention 2" in set(finished(page).dataframe[0].value["part"])
    page.segmented_control(key="sweep").set_value("Tokens hidden").run()
    assert "Source: 2 dog" in set(finished(page).dataframe[0].value["part"])


def test_the_selected_head_is_told_and_a_row_selects_another(opened, en_de):
    page = unfold(opened(kind="cross", layer="2", head="3"), "all_effects")
    page = finished(page)
    before, after = (
        findings.percent(probability(en_de, TEXT, changes)) for changes in ("", "cross.2.3=off")
    )
    needed = Survey.load(SHIPPED / "en-de").needed("cross", 1, 2)
    over = f"; over 500 sentences, {'a' if needed else 'no'} clear loss."
    name, moves = "Cross-attention, layer 2, head 3", f"from {before} to {after}{over}"
    assert before != after
    assert f"{name}: without it, the probability of the output falls {moves}" in said(page)
    (row,) = page.session_state["effects_table"]["selection"]["rows"]
    assert page.dataframe[0].value["part"][row] == "Cross 2.3"
    page.text_input(key="changes").set_value("cross.2.3=off")
    assert f"{name} is off." in said(finished(page.run()))


SMALL, FAR = 1e-5, 1e-5 * np.exp(-3.18)
NEEDED = {  # before, after → what is said of the part that is needed most
    (0.5, 0.4995): "Almost nothing is lost without any single head.",
    (0.5, 0.6): "No prob",
    (0, 0): "No prob",
    (SMALL, FAR): "In this text, without a, the log-probability of the output falls by 3.18, more "
    "than without any other head.",
}
WITHOUT = {  # … of the selected head
    (0.5, 0.4995): "A head: without it, the probability of the output stays the same.",
    (0.101, 0.103): "stays at 10%.",
    (0.1, 0.3): "rises from 10% to 30%.",
    (FAR, SMALL): "stays below 0.1%; the log-probability rises by 3.18.",
}


def test_small_changes_are_none_and_small_probabilities_are_compared_by_their_logarithms():
    for both, said in NEEDED.items():
        found = findings.most_needed("a", "head", "the output", *both)
        assert "".join(text for text, _ in found).startswith(said)
    for both, said in WITHOUT.items():
        ((found, _),) = findings.without_head("A head", "the output", *both)
        assert found.endswith(said)
