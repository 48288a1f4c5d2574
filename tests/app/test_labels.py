import numpy as np
import pytest

from headlight.app.results.head_table import head_table
from headlight.app.text import formats, head_card, notices, part_names
from headlight.model import load, presets
from headlight.model.analysis.head_metrics import measure, tokens_of
from headlight.model.analysis.reading import Reading
from headlight.model.rounding import percent
from headlight.model.tokenizer import Tokenizer
from tests.conftest import LINES
from tests.model.common import traced


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, vocab_size=300)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("the dog", ()),
        ("a\tb", ("invisible", "U+0009")),
        ("a\u200db", ("invisible", "U+200D")),
        ("\x00", ("invisible", "U+0000")),
        *((text, (f"U+{ord(text[0]):04X}",)) for text in ("🙂", "中文", "שלום")),
    ],
)
def test_what_cannot_be_seen_and_what_is_read_byte_by_byte_is_named(tokenizer, text, names):
    said = notices.notices("source", text, tokenizer.encode(text))
    assert bool(said) == bool(names)
    assert any(all(name in sentence for name in names) for sentence in said) or not names


@pytest.fixture(scope="module")
def seen(tokenizer):
    sizes = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=2)
    model = presets.build("paper", vocab_size=len(tokenizer), **sizes).eval()
    return traced(model, tokenizer.encode("the dog * sees"), tokenizer.encode("ein Hund sieht"))


def measured(seen):
    return {
        kind: measure(weights, *tokens_of(seen, kind)) for kind, weights in seen.attention.items()
    }


def test_table_of_heads_has_every_head_and_what_could_be_measured(seen):
    numbers = measured(seen)
    rows = head_table(numbers, seen)
    assert len(rows) == 2 + 4 + 4
    for row in rows:
        own = numbers[row["attention"]].numbers
        layer, head = row["layer"] - 1, row["head"] - 1
        assert row["entropy"] == pytest.approx(own["entropy"][layer, head])
        # No token of the decoder may attend to the next one, and only cross has a diagonal.
        assert (row["next"] is None) == (row["attention"] != "encoder")
        assert (row["the diagonal"] is None) == (row["attention"] != "cross")


def test_card_says_the_same_numbers_and_two_names(seen):
    numbers = measured(seen)["decoder"].numbers
    weights = seen.attention["decoder"][1, 0]
    card = head_card.card(seen, "decoder", weights, seen.row_words("decoder", 1, 0))
    line, nothing, *names = card.split("\n")
    assert names[-2:] == ["", names[-1]] and names.pop().startswith("Row “\\<s\\>” has")
    names.pop()
    assert f"Entropy {numbers['entropy'][1, 0]:.1f} bits" in line and not nothing
    assert f"previous {percent(numbers['previous'][1, 0])}" in line
    assert "next" not in line  # a causal decoder never sees it
    assert len(names) == 2 and all(name.startswith("- **") for name in names)


def test_card_of_rows_that_are_named_by_the_next_token_says_no_share_of_the_same_token():
    """It would be that of the tokens read, which the picture does not show."""
    trace, said = load("en-fr").trace("A big dog runs. The dog sees a dog."), {}
    for layer, head in np.ndindex(trace.attention["decoder"].shape[:2]):
        weights, words = (
            trace.attention["decoder"][layer, head],
            trace.row_words("decoder", layer, head),
        )
        card = head_card.card(trace, "decoder", weights, words)
        said.setdefault(trace.shift("decoder", layer, head), set()).add(", same token " in card)
    assert said[0] == {True} and said.get(1, {False}) == {False}
    words = trace.next_tokens
    card = head_card.card(trace, "decoder", trace.attention["decoder"][0, 0], words)
    assert ", same token " not in card


def test_card_of_a_text_of_one_token(tokenizer):
    model = presets.build("paper", vocab_size=len(tokenizer), d_model=16, n_heads=2, d_ff=16)
    one = traced(model.eval(), tokenizer.encode("a"), tokenizer.encode(""))
    words = one.row_words("decoder", 0, 0)
    card = head_card.card(one, "decoder", one.attention["decoder"][0, 0], words)
    assert "Too short to measure" in card and "only one visible key" in card


def test_text_in_markdown_is_shown_as_typed():
    assert formats.escaped("*a* <b> $x$") == r"\*a\* \<b\> \$x\$"


@pytest.mark.parametrize("special", ["show", "hide"])
@pytest.mark.parametrize("whole", [False, True])
def test_labels_are_those_of_the_picture(seen, special, whole):
    reading = Reading(words=whole, special=special)
    names, apart = part_names.side_labels(seen.src, reading)
    assert names == reading.each(seen.attention["encoder"], seen.src, seen.src).query
    assert len(apart) == len(names)
    if not whole:
        assert "".join(names).replace("·", "").startswith("thedog")


def test_spaces_are_where_they_were_typed(tokenizer):
    encoding = tokenizer.encode("the dog, sees")
    text = "".join(
        (" " if apart else "") + token.removeprefix("·")
        for token, apart in zip(encoding.tokens, part_names.spaced(encoding), strict=True)
    )
    assert text.strip() == "the dog, sees"
