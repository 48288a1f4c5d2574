"""The bytes and shares that a live page makes itself, against the Python that makes the app's: the
same to the last digit, since both start from the same numbers here."""

import base64

import numpy as np
import pytest

from headlight.app.components import packing
from headlight.app.components.packing import PARTS, PICTURE_CELLS
from tests.app.test_packing import ENDS, rows_of_weights
from tests.app.test_packing import unpack as unpacked

random = np.random.default_rng(0)


@pytest.fixture(scope="module")
def live(node):
    return node.scope("app/live/packing.js", "app/components/shared/weights.js")


def as_json(array: np.ndarray) -> list:
    """Numbers as float32 has them."""
    return array.astype(np.float32).astype(float).ravel().tolist()


def test_every_weight_has_the_byte_that_the_app_gives_it(live):
    """A weight in the middle of each of the steps that both cut 1 into; and the ends, of
    1 and of the steps."""
    middles = (np.arange(PARTS) + 0.5) / PARTS
    weights = np.append(middles, [0, 1e-9, 1, -0.5, *ENDS]).astype(np.float32)
    found = live("(weights) => weights.map(byteOf)", as_json(weights))
    assert found == packing.weight_bytes(np.maximum(weights, 0)).tolist()
    assert live("() => [byteOf(NaN), byteOf(Infinity)]") == [0, 254]


def test_every_byte_stands_for_the_weight_that_the_app_gives_it(live):
    """But for the smallest, of which a long row has many: nothing, so that they add up to 1."""
    weights = np.append(0, (np.arange(PARTS) + 0.5) / PARTS).astype(np.float32)
    sent = packing.weight_bytes(weights)
    found = live("(bytes) => bytes.map(weightOf)", sent.tolist())
    assert np.abs(found - np.where(sent == 1, 0, packing.as_sent(weights))).max() <= 1e-6


PACK = """({ sides, parts }) => {
  const layersOf = (weights, heads, rows, columns) => weights.map((layer) =>
    ({ shape: [1, heads, rows, columns], data: Float32Array.from(layer) }));
  const read = ({ weights, shape, ...part }) => ({ ...part, heads: shape[0],
    layers: layersOf(weights, ...shape) });
  return Buffer.from(pack("id", sides, parts.map(read), null)).toString("base64");
}"""


def packed(live, lengths, weights):
    """What a live page packs of encoder and cross-attention, of the (layers, heads, query, key)
    given by kind."""
    sides = {
        name: {"name": name, "labels": [f"{name} é"] * n, "spaced": [True] * n, "following": []}
        for name, n in lengths.items()
    }
    parts = [
        dict(kind=kind, name=kind, query=query, key="source", shifts=[], shape=of.shape[1:])
        | {"numbers": list(range(1, len(of) + 1)), "weights": [as_json(layer) for layer in of]}
        for (kind, of), query in zip(weights.items(), ("source", "target"), strict=True)
    ]
    return unpacked(base64.b64decode(live(PACK, {"sides": sides, "parts": parts})))


def masked(weights):
    return np.where(random.random(weights.shape) < 0.2, 0, weights).astype(np.float32)


@pytest.mark.parametrize("source", [1, 7, PICTURE_CELLS + 44])
def test_cells_are_those_of_the_app_also_where_one_stands_for_several(live, source):
    weights = {
        kind: masked(rows_of_weights(2, 3, rows, source))
        for kind, rows in (("encoder", source), ("cross", 5))
    }
    header, cells = packed(live, {"source": source, "target": 5}, weights)
    every = -(-source // PICTURE_CELLS)
    assert header["sides"]["source"]["every"] == every
    for kind, rows in (("encoder", every), ("cross", 1)):
        expected = packing.weight_bytes(packing.shrink(weights[kind], rows, every))
        assert np.array_equal(cells[kind], expected)


def test_the_most_probable_outputs_and_their_shares(live):
    """Of equals the first; six digits, as the app sends them."""
    logits = random.normal(scale=3, size=(40, 30)).astype(np.float32)
    logits[:, 7] = logits[:, 3]
    logits[5, 0], logits[6, -1] = 60, 60  # all of the probability
    found = live(
        """({ logits, width }) => predictions({ data: Float32Array.from(logits), width },
             (id, row) => `${row}:${id}`)""",
        {"logits": as_json(logits), "width": 30},
    )
    shares = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    for row, (best, of_row) in enumerate(zip(found, shares, strict=True)):
        ids = np.argsort(-of_row, kind="stable")[:5]
        assert [label for label, _ in best] == [f"{row}:{id}" for id in ids]
        assert [share for _, share in best] == [pytest.approx(of_row[id], abs=6e-7) for id in ids]
        assert all(round(share, 6) == share for _, share in best)
