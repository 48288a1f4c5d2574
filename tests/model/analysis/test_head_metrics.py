import math
import unicodedata
from collections import defaultdict

import numpy as np
import pytest

from headlight.model.analysis.head_metrics import (
    habit_of,
    measure,
    most_telling,
    nearest_names,
    over_sentences,
    rows_that_show,
    total_variation,
)

pytestmark = pytest.mark.filterwarnings("error")

SOURCE = ("a", "b", ",", "a", "…", "ing", "</s>")
TARGET = ("<s>", "b", "a", "!", "b")
PADDED = (*TARGET, "<pad>", "<pad>")
CASES = {  # kind, query, key, which keys each row may look at
    "encoder": ("encoder", SOURCE, SOURCE, np.ones((7, 7))),
    "causal decoder": ("decoder", TARGET, TARGET, np.tri(5)),
    "decoder that looks ahead": ("decoder", TARGET, TARGET, np.ones((5, 5))),
    "cross": ("cross", TARGET, SOURCE, np.ones((5, 7))),
    "cross, longer target": ("cross", TARGET, SOURCE[-3:], np.ones((5, 3))),
    "padding in sight": ("encoder", PADDED, PADDED, np.ones((7, 7))),
    "padding out of sight": ("decoder", PADDED, PADDED, np.tri(7) * np.r_[[1] * 5, 0, 0]),
    "nothing but punctuation": ("cross", TARGET, (",", "…"), np.ones((5, 2))),
    "rows without keys": ("cross", TARGET, SOURCE, np.ones((5, 7)) * np.c_[[1, 0, 1, 1, 0]]),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def random_weights(may, layers=2, heads=3, seed=0):
    """Softmax rows under a mask (query, key): (layers, heads, query, key)."""
    scores = np.random.default_rng(seed).normal(scale=2, size=(layers, heads, *may.shape))
    weights = np.exp(scores) * may
    return (weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)).astype(np.float32)


def by_hand(weights, may, query, key, kind):
    """The numbers of one head, (query, key), in plain loops: number → its value in each row
    that counts."""
    found = defaultdict(list)
    n, m = (len([p for p in side if p != "<pad>"]) for side in (query, key))
    rows = [i for i in range(n) if sum(may[i]) > 1]
    for i in rows:
        keys = [j for j in range(len(key)) if may[i][j]]
        entropy = sum(-weights[i][j] * math.log2(weights[i][j]) for j in keys)
        found["entropy"].append(entropy)
        found["breadth"].append((2**entropy - 1) / (len(keys) - 1))
        place = i * (m - 1) / (n - 1) if kind == "cross" else i
        found["distance"].append(sum(weights[i][j] * abs(j - place) for j in keys))
        wanted = {
            "first": [0],
            "end": [j for j in keys if key[j] == "</s>"],
            "punctuation": [j for j in keys if unicodedata.category(key[j][0])[0] == "P"],
        }
        if kind != "cross":
            wanted = {name: [] if i in such else such for name, such in wanted.items()}
            wanted |= {"itself": [i], "previous": [i - 1], "next": [i + 1]}
        else:
            wanted["diagonal"] = [min(keys, key=lambda j: (abs(j - place), -j))]
        wanted["same_token"] = [
            j for j in keys if key[j] == query[i] and (kind == "cross" or j != i)
        ]
        for name, such in wanted.items():
            such = {*such} & {*keys}
            if 0 < len(such) < len(keys):
                found[name].append(sum(weights[i][j] for j in such))
    if kind == "cross":
        largest = sum(max(weights[i][j] for i in rows) for j in range(len(key)))
        found["coverage"] = [largest / min(len(rows), m)] * len(rows)
    return found


def test_numbers_are_those_of_plain_loops(case):
    kind, query, key, may = case
    weights = random_weights(may)
    measured = measure(weights, query, key, kind != "cross")
    even = may / np.maximum(may.sum(-1, keepdims=True), 1)
    for layer, head in np.ndindex(2, 3):
        own = by_hand(weights[layer, head].tolist(), may, query, key, kind)
        uniform = by_hand(even.tolist(), may, query, key, kind)
        assert {*own} <= {*measured.numbers}
        for name in measured.numbers:
            rows = len(own[name])
            assert measured.rows[name][layer, head] == rows
            for ours, theirs in ((measured.numbers, own), (measured.uniform, uniform)):
                expected = sum(theirs[name]) / max(rows, 1)
                assert ours[name][layer, head] == pytest.approx(expected, abs=1e-5), name
        scores = [match.score for match in nearest_names(measured, layer, head, count=20)]
        assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
        assert len(nearest_names(measured, layer, head)) == 2


def test_a_row_that_one_head_alone_was_denied_does_not_count_for_it():
    weights = random_weights(np.ones((7, 7)))
    weights[1, 2, 3] = 0
    rows = measure(weights, SOURCE, SOURCE, True).rows["entropy"]
    assert rows.tolist() == [[7, 7, 7], [7, 7, 6]]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_single_token_says_nothing(kind):
    weights = np.ones((1, 2, 1, 1), dtype=np.float32)
    measured = measure(weights, ("<s>",), ("</s>",), kind != "cross")
    assert not any(values.any() for values in (*measured.numbers.values(), *measured.rows.values()))
    assert nearest_names(measured, 0, 1) == [] and habit_of(measured, 0, 0) is None
    assert rows_that_show(weights, ("<s>",), ("</s>",), kind != "cross", 0, 1, "broad") == []


def test_a_head_without_numbers_spoils_those_of_no_other():
    """And is measured without a warning."""
    kind, query, key, may = CASES["cross"]
    weights = random_weights(may)
    whole = measure(weights, query, key, kind != "cross", may > 0)
    weights[0, 1] = np.nan
    spoilt = measure(weights, query, key, kind != "cross", may > 0)
    others = np.ones(weights.shape[:2], bool)
    others[0, 1] = False
    for name, values in whole.numbers.items():
        np.testing.assert_array_equal(spoilt.numbers[name][others], values[others])
    assert np.isnan(spoilt.numbers["coverage"][0, 1])


# name → kind, query, key, the key that each row looks at
LONG = (*"abcde", ",", *"fgabh", ".", "</s>")
WRITTEN = ("<s>", *"ABCDEFGHIJKL")
POINTED = {
    "previous token": ("encoder", LONG, LONG, lambda i: max(i - 1, 0)),
    "next token": ("encoder", LONG, LONG, lambda i: min(i + 1, 12)),
    "itself": ("encoder", LONG, LONG, lambda i: i),
    "first-token sink": ("encoder", LONG, LONG, lambda i: 0),
    "end-of-sentence sink": ("encoder", LONG, LONG, lambda i: 12),
    "punctuation": ("encoder", LONG, LONG, lambda i: 5 if i < 6 else 11),
    "same token": ("encoder", LONG, LONG, lambda i: {0: 8, 8: 0, 1: 9, 9: 1}.get(i, 12 - i)),
    "diagonal": ("cross", WRITTEN, LONG, lambda i: i),
    "one-to-one": ("cross", WRITTEN, LONG, lambda i: 12 - i),
}
POINTED |= {
    f"{name}, {where}": (kind, *sides, point)
    for name, where, kind, sides, point in (
        ("previous token", "decoder", "decoder", (WRITTEN, WRITTEN), lambda i: max(i - 1, 0)),
        ("end-of-sentence sink", "cross", "cross", (WRITTEN, LONG), lambda i: 12),
        ("punctuation", "cross", "cross", (WRITTEN, LONG), lambda i: 5 if i % 2 else 11),
        ("diagonal", "shorter source", "cross", (WRITTEN, SOURCE), lambda i: int(i / 2 + 0.5)),
    )
}


def synthetic(kind, query, key, head):
    """One head beside a uniform one, which gives every key in sight some weight: head 0 of
    (1, 2, query, key)."""
    may = np.tri(len(query)) if kind == "decoder" else np.ones((len(query), len(key)))
    return np.stack([head, may / may.sum(-1, keepdims=True)])[None].astype(np.float32)


@pytest.mark.parametrize("name", POINTED)
def test_a_head_that_only_points_has_its_textbook_name(name):
    kind, query, key, point = POINTED[name]
    name = name.partition(",")[0]
    weights = synthetic(kind, query, key, np.eye(len(key))[[point(i) for i in range(len(query))]])
    measured = measure(weights, query, key, kind != "cross")
    best, other = nearest_names(measured, 0, 0)
    assert (best.name, best.score) == (name, pytest.approx(1))
    assert "100%" in best.reason
    assert other.score <= best.score
    broad, other = nearest_names(measured, 0, 1)
    assert (broad.name, broad.score) == ("broad", pytest.approx(1))
    assert other.score == pytest.approx(0, abs=1e-6)


def test_half_the_way_from_uniform_to_the_textbook_scores_one_half():
    weights = synthetic("encoder", LONG, LONG, np.roll(np.eye(13), -1, axis=1))
    mixed = weights.mean(axis=1, keepdims=True)
    mixed = np.concatenate([mixed, weights], axis=1)
    found = nearest_names(measure(mixed, LONG, LONG, True), 0, 0)
    assert found[0].name == "previous token"
    assert found[0].score == pytest.approx(0.5)
    assert found[0].reason == ("54% of its weight is on the previous token (uniform head: 8%)")


def test_rows_that_show_a_name_are_those_beyond_a_uniform_head():
    head = np.tri(6) / np.tri(6).sum(-1, keepdims=True)
    for i in (1, 3, 5):  # all on the previous token, of 2, 4 and 6 keys
        head[i] = np.eye(6)[i - 1]
    query = ("<s>", *"abcde")
    weights = synthetic("decoder", query, query, head)
    where = weights, query, query, True, 0, 0
    assert rows_that_show(*where, "previous token") == [5, 3, 1]
    assert rows_that_show(*where, "previous token", count=1) == [5]
    assert rows_that_show(*where, "broad") == [2, 4]
    assert rows_that_show(*where[:-1], 1, "previous token") == []
    assert rows_that_show(*where, "next token") == []
    with pytest.raises(KeyError):
        rows_that_show(*where, "one-to-one")


def test_rows_that_show_a_local_head_are_the_near_ones():
    head = np.eye(7)[[6, 1, 6, 2, 4, 0, 0]]
    weights = synthetic("encoder", SOURCE, SOURCE, head)
    # Rows 1, 4 and 3 are 0, 0 and 1 from their place; uniform ones are 16 / 7, 13 / 7, 12 / 7.
    assert rows_that_show(weights, SOURCE, SOURCE, True, 0, 0, "local", 7) == [1, 4, 3]


def test_rows_that_show_an_alignment_look_where_no_other_does():
    head = np.eye(7)[[0, 3, 3, 5, 6]]
    weights = synthetic("cross", TARGET, SOURCE, head)
    assert rows_that_show(weights, TARGET, SOURCE, False, 0, 0, "one-to-one") == [0, 3, 4]


def test_over_sentences_is_the_mean_over_all_rows(case):
    kind, query, key, may = case
    weights = random_weights(may)
    one = measure(weights, query, key, kind != "cross")
    other = measure(
        random_weights(np.ones((9, 9)), seed=1), SOURCE + TARGET[:2], LONG[-9:], kind != "cross"
    )
    both = over_sentences([one, other])
    for name, rows in both.rows.items():
        assert (rows == one.rows[name] + other.rows[name]).all()
        for field in ("numbers", "uniform"):
            total = sum(getattr(m, field)[name] * m.rows[name] for m in (one, other))
            np.testing.assert_allclose(getattr(both, field)[name] * rows, total, atol=1e-6)


def test_total_variation_is_half_of_what_moved_in_each_row():
    random = np.random.default_rng(0)
    now, before = random.dirichlet(np.ones(6), size=(2, 2, 3, 4))  # (layers, heads, query, key)
    moved = total_variation(now, before)
    assert moved.shape == (2, 3)
    by_hand = [sum(abs(now[1, 2, row] - before[1, 2, row])) / 2 for row in range(4)]
    assert moved[1, 2] == pytest.approx(np.mean(by_hand))
    ends = np.eye(6)[None, None, :1], np.eye(6)[None, None, 3:4]
    assert total_variation(*ends) == 1


def test_the_most_telling_head_attends_to_certain_tokens():
    """An alignment, in the place of the sink and of the head that is uniform."""
    uniform = np.full((5, 7), 1 / 7)
    sink, alignment = np.zeros((2, 5, 7))
    sink[:, -1] = 1
    alignment[range(5), [3, 0, 2, 1, 4]] = 1
    for at in np.ndindex(2, 2):
        weights = np.stack([[sink, uniform], [uniform, sink]])
        weights[at] = 0.9 * alignment + 0.1 / 7
        assert most_telling(measure(weights, TARGET, SOURCE, False)) == at
    previous = np.eye(7, k=-1)
    previous[0, 0] = 1
    broad = np.full((7, 7), 1 / 7)
    weights = np.stack([[broad, broad], [broad, 0.9 * previous + 0.1 / 7]])
    assert most_telling(measure(weights, SOURCE, SOURCE, True)) == (1, 1)


TEXT = ("a", "b", "c", "d", "e", "f", "g", "</s>")
PERFECT = {  # habit → weights (query, key) of a head that does nothing else
    "neighbours": np.eye(8, k=-1) + np.eye(8, k=0) * [1, *[0] * 7],
    "sink": np.eye(8)[[7] * 8],
    "spread": np.full((8, 8), 1 / 8),
}


@pytest.mark.parametrize("habit", PERFECT)
def test_a_head_that_does_one_thing_has_that_habit(habit):
    weights = PERFECT[habit].astype(np.float32)[None, None]
    found = habit_of(measure(weights, TEXT, TEXT, True, np.ones((8, 8), bool)), 0, 0)
    assert found and found[0] == habit and found[1].score > 0.8


def test_between_two_texts_heads_align():
    """By their weights, or by what a survey saw of them."""
    anew = ("s", "t", "u", "v", "w", "x", "y", "z")
    one = measure(
        np.eye(8)[None, None].astype(np.float32), anew, TEXT, False, np.ones((8, 8), bool)
    )
    even = measure(np.full((1, 1, 8, 8), 1 / 8), anew, TEXT, False, np.ones((8, 8), bool))
    names = [habit_of(*given)[0] for given in ((one, 0, 0), (even, 0, 0), (even, 0, 0, 0.5))]
    assert names == ["align", "spread", "align"]
