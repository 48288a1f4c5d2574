"""Sentences on what a change did."""

import re

import numpy as np

from headlight.app.text import findings


def text(parts) -> str:
    return "".join(part for part, _ in parts)


def test_what_is_said_to_change_differs_as_printed_and_a_bound_is_tight():
    rng = np.random.default_rng(0)
    pairs = [*rng.uniform([0.002, 0.001], [0.98, 0.012], (500, 2)), *rng.random((200, 2)) / 2]
    halves = [(percent / 200, 0.005) for percent in range(1, 199)]  # 12.5% is 13% here and there
    for before, by in [*pairs, *halves, (0.12, 0.01), (0.33, 0.01)]:
        said = text(findings.moved("a", "b", before, before + by))
        if bound := re.search(r"by at most ([\d.]+) percentage points", said):
            assert by - 1e-9 <= float(bound[1]) / 100 < by + 0.001, (said, by)
        else:
            found = re.fullmatch("After a, the probability of b rises from (.+) to (.+)\\.", said)
            assert found and found[1] != found[2], said


def test_what_is_compared_stands_first():
    moved = findings.moved("roten", "Kleid", 0.93, 0.07)
    lead = findings.with_other("A dog runs.", "en-de", "")
    said = "With “A dog runs.” and model en-de instead, after roten, the probability of Kleid falls"
    assert text(findings.after_lead(lead, moved)).startswith(said)
    assert text(findings.after_lead(lead, [(findings.SAME_OUTPUT, "")])).endswith(
        "the output stays the same."
    )


def test_an_empty_text_is_not_struck_through():
    parts = findings.writes("Now it writes:", [("Der Hund.", "s")], "")
    assert parts == [("Now it writes nothing. ", "")]
    assert findings.writes("it writes", [("Der.", "b")], "Der.")[0] == ("it writes “", "")


def test_what_a_decoder_sees_at_once_is_not_what_it_writes():
    said = findings.moved("roten", "Kleid", 0.93, 0.07, findings.FINISHED)
    whole = "Given the whole text, the probability of Kleid after roten falls"
    assert text(said) == f"{whole} from 93% to 7%."


def test_punctuation_is_quoted():
    said = findings.moved(".", "</s>", 0.93, 0.07)
    assert text(said) == "After “.”, the probability of </s> falls from 93% to 7%."
    assert [part for part in said if part[1]] == [("</s>", "em")]


def test_small_probabilities_are_not_said_to_be_none():
    assert findings.percent(0.0049) == "<1%" and findings.percent(0) == "0%"
    assert findings.percent(0.0051) == "1%" and findings.percent(0.996) == "100%"
