"""What an act costs, in numbers that do not depend on the machine: what is drawn for it, and how
often the model runs. A feature that adds to them should be seen here."""

import pytest

from headlight.model.decoding import search
from headlight.model.transformer import Transformer

SENTENCES = "A man rides a bicycle.", "Two dogs run on the beach."


def nodes(block) -> int:
    """Elements and the boxes that they stand in."""
    children = getattr(block, "children", {}).values()
    return 1 + sum(map(nodes, children))


@pytest.fixture
def counted(page, monkeypatch):
    """Opens the stage, and counts for each act what is drawn, the passes over whole texts and the
    translations."""
    counts = {"passes": 0, "translations": 0}

    def counting(what, function):
        def call(*args, **given):
            counts[what] += 1
            return function(*args, **given)

        return call

    monkeypatch.setattr(Transformer, "hidden", counting("passes", Transformer.hidden))
    greedy = counting("translations", search.greedy_decode)
    monkeypatch.setattr("headlight.model.checkpoint.greedy_decode", greedy)
    page.menus = ()
    page.query_params.update(model="en-de", source=SENTENCES[0])
    page.run()

    def act(do) -> tuple[int, int, int]:
        counts.update(passes=0, translations=0)
        do().run()
        assert not page.exception
        return nodes(page.main), counts["passes"], counts["translations"]

    return page, act


MOST = 90  # elements and boxes of the stage with its drawer open


def test_what_an_act_draws_and_runs(counted):
    page, act = counted
    source, causal = page.text_area(key="source"), page.toggle(key="causal")
    found = {
        "nothing": act(lambda: page),
        "Enter": act(lambda: source.set_value(SENTENCES[1])),
        "a mask": act(lambda: causal.set_value(False)),
        "as trained": act(lambda: causal.set_value(True)),
        "a head off": act(lambda: page.text_input(key="changes").set_value("cross.1.1=off")),
        "on again": act(lambda: page.button(key="undo").click()),
    }
    assert {name: counts[1:] for name, counts in found.items()} == {
        "nothing": (0, 0),
        "Enter": (1, 1),
        "a mask": (1, 1),
        "as trained": (0, 0),
        "a head off": (1, 1),  # what it writes now
        "on again": (0, 0),
    }
    assert all(drawn <= MOST for drawn, *_ in found.values()), found
