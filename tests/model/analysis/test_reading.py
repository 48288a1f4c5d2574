import itertools

import numpy as np
import pytest

from headlight.model.analysis.reading import (
    AVERAGES,
    SPECIAL_TOKENS,
    Reading,
    as_table,
    average,
    hide_special,
    merge,
    ordinary,
    threshold,
    words,
)
from headlight.model.tokenizer import SPECIAL, Encoding, special
from tests.model.common import load

PAD, BOS, EOS = map(special, range(3))
NOTHING = Encoding((), (), ())
SOURCE = "Die Donaudampfschifffahrt isn't 🙂🙂, die Donaudampfschifffahrt."
TARGET = "The ship </s> sails, the ship."
CHOICES = [
    Reading(*choice)
    for choice in itertools.product(AVERAGES, [False, True], SPECIAL_TOKENS, [0.0, 0.05])
]


@pytest.fixture(scope="module")
def tokenizer():
    return load("en-de").tokenizer


@pytest.fixture
def query(tokenizer):
    return BOS + tokenizer.encode(TARGET) + PAD * 2


@pytest.fixture
def key(tokenizer):
    return tokenizer.encode(SOURCE) + EOS + PAD * 3


def random_weights(*shape, seed=0):
    """(.., query, key), rows that sum to 1, some columns of some rows masked. Read-only."""
    draw = np.random.default_rng(seed)
    weights = draw.random(shape) ** 4 * (draw.random(shape) > 0.3)
    weights[..., -1] += 1e-3  # no row is empty
    weights = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    weights.flags.writeable = False
    return weights


@pytest.fixture
def attention(query, key):
    """(layers, heads, query, key)"""
    return random_weights(2, 3, len(query.ids), len(key.ids))


def without_rows(weights, *rows):
    """A copy in which these rows may attend to nothing."""
    weights = weights.copy()
    weights[..., rows, :] = 0
    return weights


def merged_by_loops(weights, query_groups, key_groups):
    """One head."""
    merged = np.zeros((len(query_groups), len(key_groups)))
    for i, query_group in enumerate(query_groups):
        filled = [q for q in range(*query_group) if weights[q].any()]
        for j, key_group in enumerate(key_groups):
            for q in filled:
                merged[i, j] += sum(weights[q, k] for k in range(*key_group)) / len(filled)
    return merged


def close(ours, expected):
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ein Hund.", ["Ein", "Hund", "."]),
        ("Donaudampfschifffahrt fährt", ["Donaudampfschifffahrt", "fährt"]),
        ("a dog, a dog", ["a", "dog", ",", "a", "dog"]),
        ("(yes)...!", ["(", "yes", ")", ".", ".", ".", "!"]),
        ("don't, geht’s", ["don't", ",", "geht’s"]),
        ("'twas 'n' it's'", ["'", "twas", "'", "n", "'", "it's", "'"]),
        ("well-known U.S.", ["well", "-", "known", "U", ".", "S", "."]),
        ("3.14 1,000. 10%", ["3.14", "1,000", ".", "10", "%"]),
        ("Hi 🙂🙂 x🙂y", ["Hi", "🙂", "🙂", "x", "🙂", "y"]),
        ("½ €5", ["½", "€", "5"]),
        ("你好 नमस्ते e\u0301a ❤\ufe0f", ["你好", "नमस्ते", "e\u0301a", "❤\ufe0f"]),
        ("a\tb\u00a0c\u200dd", ["a", "\\t", "b", "c", "\\u200d", "d"]),  # \u00a0 is read as a space
        ("a · b·c ·d", ["a", "·", "b", "·", "c", "·", "d"]),
        ("typed </s>", ["typed", "<", "/", "s", ">"]),
        ("1/4 🙂 1/4", ["1", "/", "4", "🙂", "1", "/", "4"]),
        ("two  spaces ", ["two", "␣", "spaces", "␣"]),
        ("", []),
    ],
)
def test_words_are_what_people_expect(tokenizer, text, expected):
    groups, labels = words(tokenizer.encode(text))
    assert list(labels) == expected
    assert len(groups) == len(labels)


def test_whatever_a_model_writes_has_words(tokenizer):
    framed = BOS + tokenizer.encode("dog") + EOS + PAD * 2
    assert words(framed)[1] == ("<s>", "dog", "</s>", "<pad>", "<pad>")
    draw = np.random.default_rng(0)
    for _ in range(300):
        encoding = tokenizer.encoding(draw.integers(0, len(tokenizer), draw.integers(0, 12)))
        groups, labels = words(encoding)
        assert [i for group in groups for i in range(*group)] == list(range(len(encoding.ids)))
        assert all(label and label.encode("utf-8") for label in labels)


def test_merging_is_a_mean_of_rows_and_a_sum_of_columns(query, key, attention):
    groups = words(query)[0], words(key)[0]
    attention = without_rows(attention, 0, 4, 5)
    merged = merge(attention, *groups)
    assert merged.dtype == np.float32
    for layer, head in np.ndindex(2, 3):
        close(merged[layer, head], merged_by_loops(attention[layer, head], *groups))


@pytest.mark.parametrize("renormalise", [False, True])
def test_hiding_drops_special_rows_and_columns(query, key, attention, renormalise):
    kept, rows, columns = hide_special(attention, query, key, renormalise)
    for layer, head in np.ndindex(2, 3):
        expected = []
        for q, query_id in enumerate(query.ids):
            row = [attention[layer, head, q, k] for k, i in enumerate(key.ids) if i > 2]
            if query_id > 2:
                expected.append([w / sum(row) for w in row] if renormalise else row)
        close(kept[layer, head], expected)
    assert rows == Encoding(query.ids[1:-2], query.tokens[1:-2], query.offsets[1:-2])
    assert columns == Encoding(key.ids[:-4], key.tokens[:-4], key.offsets[:-4])


def test_a_row_of_special_tokens_alone_stays_zero(query, key, attention):
    attention = attention.copy()
    attention[..., 1, :] = np.eye(len(key.ids))[-1]
    for renormalise in (False, True):
        kept, _, _ = hide_special(attention, query, key, renormalise)
        assert not kept[..., 0, :].any()
        assert np.isfinite(kept).all()


def test_typed_special_tokens_are_not_hidden(tokenizer):
    encoding = tokenizer.encode(" ".join(SPECIAL))
    assert ordinary(BOS + encoding + EOS) == list(range(1, len(encoding.ids) + 1))
    weights = random_weights(len(encoding.ids), len(encoding.ids))
    kept, rows, _ = hide_special(weights, encoding, encoding)
    np.testing.assert_array_equal(kept, weights)
    assert rows == encoding


def test_average_is_the_mean_over_what_it_says(attention):
    layers, heads = attention.shape[:2]
    chosen = {
        "": [(1, 2)],
        "heads": [(1, head) for head in range(heads)],
        "layers": [(layer, 2) for layer in range(layers)],
        "both": list(np.ndindex(layers, heads)),
    }
    assert set(chosen) == set(AVERAGES)
    for over, which in chosen.items():
        mean = average(attention, over, layer=1, head=2)
        close(mean, sum(attention[at] for at in which) / len(which))
        close(mean.sum(axis=-1), 1)


def test_threshold_leaves_out_what_is_smaller_and_nothing_else(attention):
    shown = threshold(attention, 0.05)
    for at in np.ndindex(attention.shape):
        assert shown[at] == (attention[at] if attention[at] >= 0.05 else 0)
    np.testing.assert_array_equal(threshold(attention, 0), attention)
    np.testing.assert_array_equal(threshold(np.array([[0.25, 0.5]]), 0.5), [[0, 0.5]])


@pytest.mark.parametrize("most", [None, 0, 7, 10_000])
def test_a_table_holds_the_largest_weights_in_order(most):
    weights = threshold(random_weights(6, 5), 0.1)
    query, key = list("abcabc"), list("vwxyz")
    rows = [
        (q + 1, query[q], k + 1, key[k], float(weights[q, k]))
        for q in range(6)
        for k in range(5)
        if weights[q, k]
    ]
    largest = sorted(rows, key=lambda row: -row[4])[:most]
    table, left_out = as_table(weights, query, key, most)
    assert list(table) == ["query position", "query", "key position", "key", "weight"]
    assert list(zip(*table.values(), strict=True)) == sorted(
        largest, key=lambda row: (row[0], -row[4])
    )
    assert left_out == len(rows) - len(largest)
    equal, left_out = as_table(np.array([[0.25, 0.5, 0.25], [0, 0, 0]]), ["a", "b"], list("xyz"))
    assert equal["key"] == ["y", "x", "z"] and left_out == 0  # in the order of the key


@pytest.mark.parametrize("reading", CHOICES, ids=str)
def test_a_reading_is_its_steps_in_order(reading, query, key, attention):
    picture = reading.apply(attention, 1, 2, query, key)
    weights = average(attention, reading.average, 1, 2)
    if reading.special != "show":
        renormalise = reading.special == "hide and renormalise"
        weights, query, key = hide_special(weights, query, key, renormalise)
    labels = query.tokens, key.tokens
    if reading.words:
        (rows, row_labels), (columns, column_labels) = words(query), words(key)
        weights, labels = merge(weights, rows, columns), (row_labels, column_labels)
    np.testing.assert_array_equal(picture.weights, threshold(weights, reading.least))
    assert (picture.query, picture.key) == labels
    assert picture.weights.shape == (len(picture.query), len(picture.key))
    steps = [reading.average, reading.special != "show", reading.words, reading.least]
    assert len(picture.notes) == sum(map(bool, steps))


def test_a_reading_of_many_heads_is_that_of_each(query, key, attention):
    reading = Reading(words=True, special="hide and renormalise", least=0.05)
    grid = reading.each(attention, query, key)
    for layer, head in np.ndindex(2, 3):
        one = reading.apply(attention, layer, head, query, key)
        close(grid.weights[layer, head], one.weights)
        assert (one.query, one.key) == (grid.query, grid.key)


def test_what_is_said_holds_the_right_numbers():
    side = Encoding((7, 8, 2), ("a", "b", "</s>"), ((0, 1), (2, 3), (0, 0)))
    head = np.array([[0.38, 0.02, 0.6], [0.3, 0.5, 0.2], [0, 0, 1]], dtype=np.float32)
    attention = np.stack([head, head])[None]  # (1, 2, query, key)
    assert Reading("heads", special="hide", least=0.05).apply(
        attention, 0, 0, side, side
    ).notes == [
        "Mean over the 2 heads of layer 1.",
        "Special tokens are hidden; their weight, up to 60% of a row, is not shown.",
        "Weights below 0.05 are hidden: 2% of all weight.",  # 0.02 of 1.2
    ]
    said = [
        Reading(over, words=True, special="hide and renormalise")
        .apply(attention, 0, 1, side, side)
        .notes
        for over in ("layers", "both")
    ]
    assert (
        said[0][1:]
        == said[1][1:]
        == [
            "Special tokens are hidden; their weight, up to 60% of a row, is left out, and rows "
            "are rescaled to 100%.",
            "Tokens are merged into words: rows averaged, columns summed.",
        ]
    )
    assert [sentences[0] for sentences in said] == [
        "Mean of head 2 over 1 layer.",
        "Mean over 2 heads in 1 layer.",
    ]


@pytest.mark.parametrize("sides", [(NOTHING, NOTHING), (BOS, BOS + EOS), (NOTHING, PAD * 3)])
def test_sides_without_any_word_are_empty_pictures(sides):
    weights = np.ones((1, 2, *(len(side.ids) for side in sides)), dtype=np.float32)
    for reading in CHOICES:
        picture = reading.apply(weights, 0, 0, *sides)
        assert picture.weights.shape == (len(picture.query), len(picture.key))
        as_table(picture.weights, picture.query, picture.key, most=5)


def test_undefined_weights_stay_undefined(query, key, attention):
    """PyTorch's softmax of nothing; a picture must not show it as zeros."""
    attention = attention.copy()
    attention[..., 1, :] = np.nan
    picture = Reading("both", True, "hide and renormalise", 0.05).apply(attention, 0, 0, query, key)
    assert np.isnan(picture.weights[0]).all()
    assert np.isfinite(picture.weights[1:]).all()
    assert not any("nan" in sentence for sentence in picture.notes)


@pytest.mark.parametrize("choice", [{"average": "rows"}, {"special": "drop"}])
def test_a_choice_that_there_is_not_is_refused(choice, attention):
    with pytest.raises(ValueError, match=next(iter(choice.values()))):
        Reading(**choice)
    with pytest.raises(ValueError, match="rows"):
        average(attention, "rows", 0, 0)
