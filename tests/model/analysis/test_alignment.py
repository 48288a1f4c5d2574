"""Word alignments: against loops over tokens, against passes by hand, and where one can foresee
them."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.model import load
from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import (
    JUST_READ,
    PREDICTED,
    SHIFTS,
    HeadAlignment,
    WordWeights,
    aligning_kind,
    measured,
    of_influence,
    of_trace,
)
from headlight.model.analysis.reading import words
from headlight.model.checkpoint import untrained

TEXT = "A Huntsman's dog runs on the beach."


@pytest.mark.parametrize("shift", SHIFTS)
def test_attention_between_words_is_that_of_their_tokens(shift):
    trace = load("en-de").trace(TEXT)
    found = of_trace(trace)
    spans = [
        [(group, name) for group, name in zip(*words(text), strict=True) if text.ids[group[0]] > 2]
        for text in (trace.tgt, trace.src)
    ]
    rows, columns = spans
    assert found.target == tuple(name for _, name in rows)
    assert found.source == tuple(name for _, name in columns) and "dog" in found.source
    weights = trace.attention["cross"]
    for i, ((start, stop), _) in enumerate(rows):
        for j, ((first, last), _) in enumerate(columns):
            cells = weights[:, :, start - shift : stop - shift, first:last]
            expected = cells.sum(axis=-1).mean(axis=-1)
            assert np.abs(found.weights[shift, :, :, i, j] - expected).max() <= 1e-6


def test_influence_is_what_a_pass_without_the_token_loses():
    en_de = load("en-de")
    run = en_de.run("A dog runs.")
    found = of_influence(en_de.model, run)
    target = en_de.tokenizer.decode(run.texts[1].ids)

    def log_shares(line):
        logits = en_de.trace("A dog runs.", target, changes=line).logits.astype(float)
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    plain, without = log_shares(""), log_shares("encoder=hide:2; cross=hide:2")
    ids = run.texts[1].ids
    lost = [plain[i, token] - without[i, token] for i, token in enumerate(ids)]
    assert len(found.target) == len(ids)  # each word is a token here
    assert np.abs(found.weights[:, found.source.index("dog")] - lost).max() <= 1e-4
    assert found.links() >= {(found.source.index("dog"), found.target.index("Hund"))}


def sentences(n_heads: int, length: int = 40) -> tuple[list[WordWeights], list[WordWeights]]:
    """Attention and influence of two sentences, whose words need each other crosswise. Heads of one
    layer: the first finds the first three quarters of the words where they are read, the second
    the others where they are predicted, the rest none."""
    names = tuple(map(str, range(length)))
    needed = np.eye(length)[::-1]
    wrong = np.roll(needed, 1, axis=-1)
    heads = np.tile(wrong, (len(SHIFTS), 1, n_heads, 1, 1))
    part = length * 3 // 4
    heads[JUST_READ, 0, 0, :part] = 2 * needed[:part]
    heads[PREDICTED, 0, 1, part:] = 2 * needed[part:]
    return [WordWeights(names, names, heads)] * 2, [WordWeights(names, names, needed)] * 2


def test_heads_are_measured_at_both_rows_and_the_set_grows_while_that_helps():
    found = measured(*sentences(4))
    assert np.asarray(found.agreement).tolist() == [[[0.75, 0, 0, 0]], [[0, 0.25, 0, 0]]]
    assert found.heads == [(0, 0), (0, 1)] and found.together == 1 and found.words == 80
    assert found.shifts[0, :2].tolist() == [JUST_READ, PREDICTED]


@pytest.mark.parametrize("more, heads", [(1, 1), (3, 1), (4, 2), (9, 2)])
def test_a_head_that_helps_as_chance_may_is_left_out(more, heads):
    """Of 81 words it adds k, √(81 k / (81 − k)) standard errors: from 4 on these are two."""
    names = tuple(map(str, range(81)))
    needed = np.eye(81)[::-1]
    wrong = np.roll(needed, 1, axis=-1)
    weights = np.tile(wrong, (len(SHIFTS), 1, 2, 1, 1))
    weights[:, 0, 0, :60] = 2 * needed[:60]
    weights[:, 0, 1, 60 : 60 + more] = 3 * needed[60 : 60 + more]
    no_words = WordWeights((), (), np.zeros((2, 1, 4, 0, 0)))
    assert measured([no_words], [WordWeights((), (), np.zeros((0, 0)))]) is None
    words = WordWeights(names, names, weights)
    found = measured([words], [WordWeights(names, names, needed)])
    assert found.heads == [(0, 0), (0, 1)][:heads]
    assert found.together == round((60 + more * (heads > 1)) / 81, 4)


def test_the_best_set_is_the_mean_of_its_heads_each_at_its_row():
    attention, influence = sentences(3)
    found = measured(attention, influence)
    assert found.of(attention[0]).links() == influence[0].links()
    one, other = (found.of(attention[0], [head]).weights for head in found.heads)
    assert np.array_equal(found.of(attention[0]).weights, (one + other) / 2)
    at_read = found.of(attention[0], [(0, 1)], JUST_READ).weights
    assert np.array_equal(at_read, attention[0].weights[JUST_READ, 0, 1])


@pytest.mark.parametrize("name", ["en-de", "reverse", "copy", "sort"])
def test_shipped_cards_say_which_heads_align(name):
    """And what they say is what is measured here, on other sentences, for the best of them."""
    checkpoint = load(name)
    known = checkpoint.alignment
    best = known.heads[0]
    assert HeadAlignment.of_card({"alignment": known.to_card()}) == known
    single = max(value for rows in known.agreement for layer in rows for value in layer)
    assert known.agreement[known.shifts[best]][best[0]][best[1]] == single <= known.together
    texts = ["A man is riding a horse.", "Two dogs play in the snow."] if name == "en-de" else [
        "h e a d", "l i g h t"
    ]  # fmt: skip
    runs = [checkpoint.run(text) for text in texts]
    here = measured(
        [of_trace(checkpoint.trace_run(run)) for run in runs],
        [of_influence(checkpoint.model, run) for run in runs],
    )
    assert here.agreement[known.shifts[best]][best[0]][best[1]] >= 0.6


def test_reverse_is_aligned_by_its_card_and_a_model_without_one_by_its_influence():
    reverse = load("reverse")
    mirrored = {(4 - i, i) for i in range(5)}
    assert reverse.align("w o r l d").links() == mirrored
    without = replace(reverse, card={})
    assert without.alignment is None
    with pytest.warns(UserWarning, match="no chosen heads: by influence"):
        assert without.align("w o r l d").links() == mirrored
    with pytest.raises(ValueError, match="aligns nothing"):
        load("reviews").align("a good film")


CARD = {"agreement": [[[1]], [[0]]], "heads": [[0, 0]], "together": 1, "words": 3}


@pytest.mark.parametrize(
    "change",
    [{"agreement": [[[1]]]}, {"agreement": "x"}, {"heads": [[0, 5]]}, {"heads": []}, {"by": []}],
)  # fmt: skip
def test_a_card_with_something_else_by_this_name_says_nothing(change):
    assert HeadAlignment.of_card({"alignment": CARD}) is not None
    for card in ({"alignment": CARD | change}, {"alignment": change}, {"alignment": None}, {}):
        assert HeadAlignment.of_card(card) is None


def test_only_attention_from_what_is_written_to_another_text_aligns():
    kinds = {}
    for name in ("en-de", "reviews"):
        model = load(name).model
        kinds[name] = aligning_kind(model.sites(), model.sides())
    assert kinds == {"en-de": "cross", "reviews": None}
    untrained_decoder = untrained("decoder_only", load("en-de")).model
    assert aligning_kind(untrained_decoder.sites(), untrained_decoder.sides()) is None


def test_shares_are_of_what_is_positive():
    weights = np.array([[2.0, -5.0, 6.0], [-1.0, 0.0, -2.0]])
    found = WordWeights(("a", "b", "c"), ("x", "y"), weights).shares()
    assert found.weights.tolist() == [[0.25, 0, 0.75], [0, 0, 0]]


def test_pharaoh_error_rate_and_diagonal():
    assert alignment.pharaoh(frozenset({(1, 0), (0, 2), (0, 0)})) == "0-0 0-2 1-0"
    gold = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)})]
    assert alignment.error_rate(gold, gold) == 0
    assert alignment.error_rate([frozenset(), frozenset()], gold) == 1
    assert alignment.error_rate([frozenset({(0, 0)}), frozenset({(0, 0)})], gold) == (
        pytest.approx(1 - 4 / 5)
    )
    assert alignment.diagonal(4, 4) == {(i, i) for i in range(4)}
    assert alignment.diagonal(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert alignment.diagonal(0, 3) == frozenset()
