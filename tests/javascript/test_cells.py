"""What the stage reads from its bytes, and the colours, places and numbers of pictures: against
NumPy, Plotly and the Python that packs the bytes."""

import math

import numpy as np
import pytest
from plotly.colors import find_intermediate_color, unlabel_rgb

from headlight.app import theme
from headlight.app.components import matrix as matrices
from headlight.app.components import packing
from headlight.app.components.packing import PICTURE_CELLS, GridText, PackedAttention

FILES = (
    "app/components/stage/cells.js",
    "app/components/shared/colours.js",
    "app/components/shared/heatmap.js",
    "app/components/shared/numbers.js",
)
SCALES = {"viridis": theme.WEIGHTS["viridis"]} | theme.INKED
random = np.random.default_rng(0)


@pytest.fixture(scope="module")
def page(node):
    return node.scope(*FILES)


# Packing


def weights_of(layers, heads, rows, columns, masked=0.3):
    weights = random.random((layers, heads, rows, columns)).astype(np.float32)
    return np.where(random.random(weights.shape) < masked, 0, weights)


def packed(lengths: dict, parts: list[PackedAttention]) -> list[int]:
    sides = {
        name: GridText(name.capitalize(), [f"{name} é {i}" for i in range(n)], [True] * n)
        for name, n in lengths.items()
    }
    return list(packing.pack(sides, parts))


PACKED = "const grid = unpack(Uint8Array.from(packed));"


def attention(source, target, layers=(2, 3, 3), numbers=((), (), ())):
    shapes = ((source, source), (target, target), (target, source))
    names = (("source", "source"), ("target", "target"), ("target", "source"))
    kinds = zip(("encoder", "decoder", "cross"), names, shapes, layers, numbers, strict=True)
    return [
        PackedAttention(
            kind, kind, *sides, weights_of(depth, 2, *shape), numbered or list(range(1, depth + 1))
        )
        for kind, sides, shape, depth, numbered in kinds
    ]


SIZES = [(1, 1), (5, 7), (0, 3), (3, 0), (PICTURE_CELLS + 1, 2), (2, 2 * PICTURE_CELLS + 1)]


@pytest.mark.parametrize("source, target", SIZES)
def test_the_grid_is_unpacked_as_it_was_packed(page, source, target):
    parts = attention(source, target, numbers=((), (2, 4, 6), (2, 4, 6)))
    found = page(
        f"(packed) => {{ {PACKED} return grid.parts.map((p) => [...p.cells]); }}",
        packed({"source": source, "target": target}, parts),
    )
    every = {"source": -(-source // PICTURE_CELLS) or 1, "target": -(-target // PICTURE_CELLS) or 1}
    for part, cells in zip(parts, found, strict=True):
        shrunk = packing.shrink(part.weights, every[part.query], every[part.key])
        assert cells == packing.weight_bytes(shrunk).ravel().tolist()


def test_bytes_in_the_midst_of_others_are_unpacked(page, node):
    """Streamlit may hand over a view into a larger message."""
    parts = attention(3, 4)
    inside = [7, 7, 7, *packed({"source": 3, "target": 4}, parts), 7]
    cells = page(
        """(all) => [...unpack(Uint8Array.from(all).subarray(3, all.length - 1)).parts[2].cells]""",
        inside,
    )
    assert cells == packing.weight_bytes(parts[2].weights).ravel().tolist()
    values = random.normal(size=(3, 5)).astype(np.float32)
    matrix = matrices.Matrix("ü", values, "rows", "columns")
    cells = node.scope("app/components/matrices/index.js")(
        "(all) => [...unpack(Uint8Array.from(all).subarray(3)).matrices[1].cells]",
        [7, 7, 7, *matrices.pack([matrix, matrix])],
    )
    assert cells == values.ravel().tolist()


@pytest.mark.parametrize("shape", [(1, 1), (0, 4), (3, PICTURE_CELLS + 1)])
def test_matrices_are_unpacked_as_they_were_packed(node, shape):
    values = random.normal(size=shape).astype(np.float32)
    if values.size:
        values[0, 0] = np.nan
    one = matrices.Matrix("é", values, "a", "b", weights=True)
    found = node.scope("app/components/matrices/index.js")(
        """(packed) => unpack(Uint8Array.from(packed)).matrices
             .map((one) => [one.title, one.values, one.palette, [...one.cells]])""",
        list(matrices.pack([one, one])),
    )
    for title, size, palette, cells in found:
        assert (title, size, palette) == ("é", list(shape), theme.INKED)
        assert np.array_equal(np.array(cells, np.float32), values.ravel(), equal_nan=True)


def test_the_keys_that_a_row_may_attend_to_are_counted(page):
    parts = attention(4, 3)
    counts = page(
        f"""(packed) => {{ {PACKED}
          return [0, 1, 2].map((row) => visibleKeys(grid.parts[2], 5, row));
        }}""",
        packed({"source": 4, "target": 3}, parts),
    )
    assert counts == np.count_nonzero(parts[2].weights[2, 1], axis=-1).tolist()


# Colours


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_runs_evenly_through_its_stops(page, name):
    palette = SCALES[name]
    last = len(palette) - 1
    shares = [0, 1, -3, 7, *random.random(50), *(i / last for i in range(last + 1))]
    found = page("([palette, s]) => s.map(ramp(palette))", [palette, shares])
    for share, colour in zip(shares, found, strict=True):
        place = min(max(share, 0), 1) * last
        low = min(int(place), last - 1)
        ends = [str(tuple(bytes.fromhex(palette[i][1:]))) for i in (low, low + 1)]
        expected = find_intermediate_color(*(f"rgb{e}" for e in ends), place - low, colortype="rgb")
        assert np.allclose(colour, unlabel_rgb(expected), atol=1e-9)


def test_pixels_are_the_rounded_colours_of_the_scale(page):
    pixels, colours = page(
        """(palette) => [[...new Uint8Array(pixelColours(palette).buffer)],
             Array.from({ length: 256 }, (_, i) => ramp(palette)(i / 255))]""",
        theme.INKED["light"],
    )
    pixels = np.reshape(pixels, (256, 4))
    assert (pixels[:, 3] == 255).all() and len(np.unique(pixels, axis=0)) > 200
    assert np.abs(pixels[:, :3] - np.array(colours)).max() <= 0.5


# Under the pointer


def test_the_cell_under_the_pointer(page):
    box = dict(left=30.5, top=12, across=3.25, down=7, rows=9, columns=20)
    points = [(random.uniform(0, 120), random.uniform(0, 90)) for _ in range(300)]
    right, low = box["left"] + 20 * 3.25, box["top"] + 9 * 7
    points += [(30.5, 12), (30.49, 12), (right, 13), (31, low), (right - 0.01, low - 0.01)]
    under = "([points, box]) => points.map(([x, y]) => cellUnder(x, y, box))"
    for (x, y), cell in zip(points, page(under, [points, box]), strict=True):
        row, column = math.floor((y - 12) / 7), math.floor((x - 30.5) / 3.25)
        inside = 0 <= row < 9 and 0 <= column < 20
        assert cell == ([row, column] if inside else None)
    for empty in (dict(rows=0), dict(columns=0)):
        assert page(under, [[[31, 13]], box | empty]) == [None]


# Numbers


NUMBERS = {
    "percent(0)": "0%", "percent(0.125)": "13%", "percent(1)": "100%", "percent(0.12345, 1)":
    "12.3%", "minus('-1.5')": "−1.5", "tenths(2)": "2", "tenths(-2.04)": "−2", "tenths(-0.04)": "0",
    "tenths(-7.25)": "−7.3", "short(0)": "0.00", "short(-0.001)": "0.00", "short(-9.994)": "−9.99",
    "short(12.34)": "12.3", "short(-123.4)": "−123", "short(12345)": "1e+4", "exact(0)": "0",
    "exact(0.5)": "0.5", "exact(1.23456789)": "1.234568", "exact(-0.0000123)": "-1.23e-5",
}  # fmt: skip


def test_numbers_are_written(page):
    assert {call: page(f"() => {call}") for call in NUMBERS} == NUMBERS


def test_short_numbers_are_short(page):
    values = (random.normal(size=200) * 10 ** random.uniform(-3, 4, size=200)).tolist()
    for value, text in zip(values, page("(v) => v.map(short)", values), strict=True):
        text = text.replace("−", "-")
        assert len(text.lstrip("-")) <= 5
        power = math.floor(math.log10(abs(value)))
        digit = power if power >= 4 else min(0, max(-2, power - 2))  # the last one that is shown
        assert abs(float(text) - value) <= 0.5 * 10**digit + 1e-9


# Looking up


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_looking_up_is_softmax_and_mean(node, count, size):
    query, keys = random.normal(size=2) * size, random.normal(size=(count, 2))
    values, divisor = random.normal(size=count), math.sqrt(2)
    found = node.scope("app/components/plane/index.js")(
        "([q, k, v, d]) => lookUp(q, k, v, d)",
        [query.tolist(), keys.tolist(), values.tolist(), divisor],
    )
    scores = keys @ query
    parts = np.exp(scores / divisor - (scores / divisor).max())
    weights = parts / parts.sum()
    assert np.allclose(found["scores"], scores) and np.allclose(found["weights"], weights)
    assert found["answer"] == pytest.approx(weights @ values)
