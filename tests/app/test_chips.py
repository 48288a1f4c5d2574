"""What the chips of changes say."""

import pytest

from headlight.app.text.part_names import chip
from headlight.model.probing.changes import VERBS, parse


def test_every_verb_has_words():
    assert all(change.words for change in VERBS.values())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("cross.1.2=off", "Cross 1.2 off"),
        ("all=uniform", "All uniform"),
        ("encoder=hide:3", "Encoder token 3 hidden"),
        ("decoder.2=mask:window-2", "Decoder layer 2 mask window-2"),
        ("encoder_feed_forward.2=skip", "Encoder feed forward layer 2 skipped"),
        ("cross.3.4=patch", "Cross 3.4 patched"),
        ("cross.3.4=patch:2,3", "Cross 3.4 patched at 2,3"),
        ("source=positions:none", "Source without positions"),
        ("source=positions:learned", "Source with learned positions"),
        ("cross.4=temperature:0.5", "Cross layer 4 temperature 0.5"),
    ],
)
def test_a_chip_says_what_is_changed(line, says):
    assert chip(*parse(line)) == says


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("encoder=hide:2", "Encoder “woman” hidden"),
        ("cross.1.2=hide:2,4", "Cross 1.2 “woman” and “sees” hidden"),
        ("encoder=hide:2,3,5", "Encoder 3 tokens hidden"),
        ("encoder=hide:5", "Encoder token 5 “a” hidden"),  # there are two
        ("encoder=hide:3,9", "Encoder token 3 “a” and token 9 hidden"),  # no such token
        ("encoder=forbid:2>1", "Encoder 2>1 masked"),
    ],
)
def test_a_hidden_token_is_named_by_its_word(line, says):
    assert chip(*parse(line), ("old", "woman", "a", "sees", "a", "</s>")) == says
