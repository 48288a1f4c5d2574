"""What a model opens on, and what is said of settings that do nothing."""

import numpy as np

from headlight.model import load


def test_the_model_of_repeated_rows_opens_on_its_induction_head(page):
    page.query_params.update(model="induction")
    page.run()
    chosen = [page.session_state["_memo"].context[key] for key in ("kind", "layer", "head")]
    row = "q w e r t y u i o"
    weights = load("induction").trace(f"{row} {row}").attention[chosen[0]][chosen[1] - 1]
    letters = len(row.split())  # the token <s> stands before them
    to_next = [weights[chosen[2] - 1, i, i - letters + 1] for i in range(letters + 1, 2 * letters)]
    assert np.mean(to_next) > 0.9


def test_padding_passes_over_what_pads_nothing(page, models):
    page.query_params.update(model="uneven", source="the dog sees the cat", pad_to="3")
    page.switch_page("bertviz").run()
    trace = load(models / "uneven").trace("the dog sees the cat")
    shortest = min(len(text.ids) for text in trace.texts.values())
    page.number_input(key="pad_to").set_value(0).run()
    for step, reached in ((1, shortest + 1), (shortest, 0)):  # what pads nothing is passed over
        page.number_input(key="pad_to").set_value(step).run()
        assert page.number_input(key="pad_to").value == reached
