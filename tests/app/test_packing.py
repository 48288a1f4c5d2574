"""What the browser is sent of the grid, read back as its script reads it."""

import json
from collections import Counter

import numpy as np
import pytest

from headlight.app.components.packing import (
    MOST_PROBABLE,
    PICTURE_CELLS,
    GridText,
    PackedAttention,
    answers_of,
    as_sent,
    id_of,
    pack,
    pack_trace,
    shrink,
    weight_bytes,
)
from headlight.model import load
from headlight.model.analysis.reading import Reading
from headlight.model.rounding import percent
from headlight.model.tokenizer import CONTINUES

STEP = 0.005  # between two bytes, at most


def rows_of_weights(*shape):
    weights = np.random.default_rng(0).gamma(0.3, size=shape).astype(np.float32) + 1e-9
    return weights / weights.sum(axis=-1, keepdims=True)


def unpack(data):
    length = int.from_bytes(data[:4], "little")
    header, cells = json.loads(data[4 : 4 + length]), data[4 + length :]
    found = {}
    for part in header["parts"]:
        shape = [part[name] for name in ("layers", "heads", "rows", "columns")]
        found[part["kind"]] = np.frombuffer(cells, np.uint8, np.prod(shape)).reshape(shape)
        cells = cells[np.prod(shape) :]
    assert not cells
    return header, found


def sides(source, target):
    return {
        name: GridText(name, [f"{name}{i} é" for i in range(n)], [True] * n)
        for name, n in (("source", source), ("target", target))
    }


def parts(source, target, layers=(2, 3)):
    encoder = rows_of_weights(layers[0], 2, source, source)
    causal = np.tril(rows_of_weights(layers[1], 2, target, target))
    cross = rows_of_weights(layers[1], 2, target, source)
    return [
        PackedAttention("encoder", "E", "source", "source", encoder, range(1, layers[0] + 1)),
        PackedAttention("decoder", "D", "target", "target", causal, range(1, layers[1] + 1)),
        PackedAttention("cross", "C", "target", "source", cross, range(1, layers[1] + 1)),
    ]


# Where a weight becomes another half of a percent, and the float32 on both sides.
ENDS = np.ravel([[np.nextafter(x, x - 1), x, np.nextafter(x, x + 1)]
                 for x in np.arange(1, 200, dtype=np.float32) / 200])  # fmt: skip


def weights_of(cells) -> np.ndarray:
    """The middle of the weights that bytes stand for."""
    cells = np.asarray(cells, dtype=float)
    fine, half = (cells - 0.5) / 54 * 0.005, np.minimum(1, (cells - 54 + 0.5) * 0.005)
    return np.where(cells < 2, 0, np.where(cells <= 54, fine, half))


def test_a_byte_tells_a_weight_and_what_is_masked():
    header, found = unpack(pack(sides(5, 7), parts(5, 7)))
    assert header["sides"]["target"]["labels"][6] == "target6 é"
    for part in parts(5, 7):
        cells = found[part.kind]
        assert np.abs(weights_of(cells) - part.weights).max() <= STEP / 2 + 1e-6
        assert np.allclose(as_sent(part.weights), weights_of(cells), atol=5e-5)
        assert np.array_equal(cells == 0, part.weights == 0)


def test_a_byte_is_the_same_whole_percent_as_its_weight():
    """As everywhere else on screen, also next to where it changes; and small weights, of which a
    long text has many, add up."""
    weights = np.random.default_rng(0).beta(0.3, 3, 2_000).astype(np.float32)
    weights = np.concatenate([weights[weights > 1e-4], ENDS, [1]])
    shown = weights_of(weight_bytes(weights))
    assert list(map(percent, shown)) == list(map(percent, weights))
    even = np.full(512, 1 / 512, dtype=np.float32)
    assert weights_of(weight_bytes(even)).sum() == pytest.approx(1, abs=0.05)


def test_same_pictures_have_the_same_id_and_others_another():
    sizes = (4, 5), (4, 5), (5, 4), (9_000, 4)  # of the last the header alone has over 64 kB
    packed = [pack(sides(*size), parts(min(size[0], 5), size[1])) for size in sizes]
    ids = [unpack(one)[0]["id"] for one in packed]
    assert ids[0] == ids[1] and len({*ids}) == 3
    assert id_of(b"".join(packed)) == "".join(ids)


@pytest.mark.parametrize("length", [1, PICTURE_CELLS, PICTURE_CELLS + 1, 1024])
def test_of_a_long_text_each_cell_is_the_largest_it_stands_for(length):
    part = PackedAttention("cross", "C", "target", "source", rows_of_weights(1, 1, 3, length), [1])
    header, found = unpack(pack(sides(length, 3), [part]))
    every = header["sides"]["source"]["every"]
    cells = found["cross"][0, 0]
    assert cells.shape == (3, -(-length // every)) and cells.shape[1] <= PICTURE_CELLS
    for i in range(cells.shape[1]):
        largest = part.weights[0, 0, :, i * every : (i + 1) * every].max(axis=1)
        assert np.array_equal(cells[:, i], weight_bytes(largest))
    assert shrink(part.weights, 1, 1) is part.weights


def test_the_most_probable_next_tokens_are_the_softmax_of_the_logits(en_de):
    trace = en_de.trace("a dog runs .")
    answers = answers_of(trace, lambda ids, _: [str(id) for id in ids])
    logits = trace.logits.astype(np.float64)
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    assert answers.side == "target" and len(answers.rows) == len(trace.texts["tgt"].tokens)
    for row, expected in zip(answers.rows, shares, strict=True):
        best = np.argsort(-expected)[:MOST_PROBABLE]
        assert [name for name, _ in row] == [str(id) for id in best]
        assert [share for _, share in row] == pytest.approx(expected[best], abs=2e-6)
    header, _ = unpack(pack_trace(trace, Reading(), answers))
    assert [[tuple(one) for one in row] for row in header["answers"]["rows"]] == answers.rows


@pytest.mark.parametrize("name", ["en-de", "en-fr", "english"])
def test_a_token_has_one_name_in_its_text_and_among_the_predictions(name):
    """“·it” in both where it continues a word."""
    checkpoint, continued = load(name), Counter()
    for text in ("Grandmother skateboards to Heidelberg.", "The little girl has two dogs."):
        trace = checkpoint.trace(text)
        tokens = trace.texts[trace.predicted.name].tokens
        ids, _ = trace.most_probable(MOST_PROBABLE)
        rows = answers_of(trace, checkpoint.outputs).rows
        for i, (wanted, best) in enumerate(zip(trace.following, ids.tolist(), strict=True)):
            if wanted in best and i + 1 < len(tokens):
                assert rows[i][best.index(wanted)][0] == tokens[i + 1]
                continued[tokens[i + 1].startswith(CONTINUES)] += 1
    assert min(continued[False], continued[True]) > 0


def test_of_merged_rows_nothing_is_predicted(en_de):
    trace = en_de.trace("a dog runs .", "Ein Hund rennt ebenfalls.")
    answers = answers_of(trace, lambda ids, _: [str(id) for id in ids])
    for reading in (Reading(words=True), Reading(special="hide")):
        assert unpack(pack_trace(trace, reading, answers))[0]["answers"] is None
