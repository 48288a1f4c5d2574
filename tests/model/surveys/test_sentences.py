"""Many sentences at a time are the same as one by one."""

import numpy as np
import pytest

from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.capture import view
from headlight.model.surveys.sentences import Line, Sentence, attend, encode, read, windows
from headlight.model.training.data import DataError
from tests.model.common import hooks, load, random_model

TEXTS = [
    "A dog runs.",
    "Two men are talking while a woman reads the newspaper.",
    "A",
    "A man in an orange hat is staring at something.",
    "the dog the",
]


def same(seen, trace):
    assert seen.texts == trace.texts
    assert seen.attention.keys() == trace.attention.keys()
    for kind, weights in trace.attention.items():
        np.testing.assert_allclose(seen.attention[kind], weights, rtol=0, atol=3e-6)


def test_a_batch_shows_what_each_shows_alone(en_de):
    lines = [Line(i, text, text[::2] if i % 2 else None) for i, text in enumerate(TEXTS)]
    found = attend(en_de, encode(en_de, lines))
    assert [seen.number for seen in found] == [0, 1, 2, 3, 4]
    for line, seen in zip(lines, found, strict=True):
        same(seen, en_de.trace(line.source, line.target))
    assert hooks(en_de.model) == 0


def test_a_classifier_has_no_target():
    reviews = load("reviews")
    lines = [Line(i, text) for i, text in enumerate(("a good film", "bad", "so bad " * 9))]
    for line, seen in zip(lines, attend(reviews, encode(reviews, lines)), strict=True):
        same(seen, reviews.trace(line.source))
    with pytest.raises(DataError, match="reads one text and no target"):
        encode(reviews, [Line(1, "a film", "good")])


@pytest.mark.parametrize(
    "tokens",  # the last are hyunwoongko's
    [dict(pad_id=-1), dict(bos_id=-1), dict(pad_id=-1, bos_id=-1, eos_id=-1),
     dict(pad_id=1, bos_id=2, eos_id=3)], ids=str,
)  # fmt: skip
def test_special_tokens_are_those_of_the_model(tokenizer, tokens):
    model = random_model(vocab_size=len(tokenizer), **tokens)
    checkpoint = Checkpoint(model, tokenizer, {}, "paper")
    lines = [Line(1, "the dog", "ein"), Line(2, "a", "ein Hund"), Line(3, "the dog and", "die")]
    for line, seen in zip(lines, attend(checkpoint, encode(checkpoint, lines)), strict=True):
        same(seen, checkpoint.trace(line.source, line.target))
    without = [Line(1, "the dog", "ein"), Line(2, "a")]
    if model.config.bos_id >= 0:
        assert len(attend(checkpoint, encode(checkpoint, without))) == 2
        return
    with pytest.raises(DataError, match=r"^Line 2: This model needs a target.*-1"):
        encode(checkpoint, without)
    with pytest.raises(DataError, match=r"^The target is empty\.$"):
        encode(checkpoint, [Line(1, "a", "")])


def test_the_logits_are_not_made(en_de, monkeypatch):
    own = view(en_de.model)
    monkeypatch.setattr(own.generator, "forward", lambda x: pytest.fail("logits were made"))
    held = Checkpoint(own, en_de.tokenizer, en_de.card, en_de.preset)
    assert len(attend(held, encode(held, [Line(1, "A dog.", "Ein Hund.")]))) == 1


def test_windows_keep_the_order_and_are_small():
    lengths = [10, 20, 10, 300, 5, 5, 90, 90]
    sentences = [Sentence(i, ([3] * n, [3] * (n // 2))) for i, n in enumerate(lengths)]
    found = list(windows(sentences, 10_000))
    assert [s.number for window in found for s in window] == list(range(8))
    for window in found:
        assert len(window) == 1 or sum(len(s.texts[0]) ** 2 for s in window) <= 10_000
    assert [len(window) for window in found] == [3, 1, 3, 1]
    assert list(windows([])) == []


def test_reading_a_file(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("A dog.\n\n  \nA cat.\tEine Katze.\r\nlast\u2028line", encoding="utf-8")
    assert read(file) == [
        Line(1, "A dog."),
        Line(4, "A cat.", "Eine Katze."),
        Line(5, "last\u2028line"),
    ]


@pytest.mark.parametrize("text", ["a\tb\tc", "ok\n\tb", "a\t\n"])
def test_a_line_that_is_neither_is_named(tmp_path, text):
    file = tmp_path / "lines.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=rf"lines.txt, line {1 + text.startswith('ok')}: "):
        read(file)


def test_a_line_too_long_or_with_half_a_character_is_named(en_de):
    """As Python has a byte of the command line that is no UTF-8."""
    with pytest.raises(DataError, match=r"^The text is not UTF-8\.$"):
        encode(en_de, [Line(1, "A \udcff dog.")])
    lines = [Line(1, "A dog."), Line(7, "dog" + " dog" * 1023)]
    with pytest.raises(DataError, match=r"Line 7: The source is 1,025 .* at most 1,024\."):
        encode(en_de, lines)
    with pytest.raises(DataError, match=r"^The target is 1,025 .* at most 1,024\."):
        encode(en_de, [Line(1, "A dog.", "Hund" + " Hund" * 1023)])
