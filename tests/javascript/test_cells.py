"""What the grid computes from its bytes, and the colours, places and numbers of pictures: tables
against NumPy, Plotly and the Python that packs the bytes."""

import math

import numpy as np
import pytest
from plotly.colors import find_intermediate_color, unlabel_rgb

from headlight.app import theme
from headlight.app.components import matrix as matrices
from headlight.app.components import packing
from headlight.app.components.packing import PICTURE_CELLS, GridText, PackedAttention
from tests.app.test_packing import weights_of as weights_seen

FILES = (
    "app/components/head_grid/cells.js",
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


# The joint square


def square(parts, lengths):
    """Straight from the definition: for each layer and head, every cell of every kind in place."""
    first = {"source": 0, "target": lengths["source"]}
    layers = sorted({number for part in parts for number in part.numbers})
    length = sum(lengths.values())
    cells = np.zeros((len(layers), parts[0].weights.shape[1], length, length), np.uint8)
    for part in parts:
        for number, weights in zip(part.numbers, part.weights, strict=True):
            for (head, row, column), byte in np.ndenumerate(packing.weight_bytes(weights)):
                at = first[part.query] + row, first[part.key] + column
                cells[(layers.index(number), head, *at)] = byte
    return layers, cells


UNEQUAL = [
    ((2, 3, 3), ((), (), ())),
    ((4, 1, 2), ((), (3,), (2, 4))),
    ((1, 2, 1), ((2,), (), (1,))),
]


@pytest.mark.parametrize("layers, numbers", UNEQUAL)
@pytest.mark.parametrize("source, target", [(1, 1), (4, 6)])
def test_the_joint_square_holds_every_kind_in_its_place(page, source, target, layers, numbers):
    lengths = {"source": source, "target": target}
    parts = attention(source, target, layers, numbers)
    found = page(
        f"""(packed) => {{ {PACKED}
          const {{ cells, numbers, rows, columns, heads }} = joint(grid.parts, grid.sides);
          return {{ cells: [...cells], numbers, shape: [numbers.length, heads, rows, columns] }};
        }}""",
        packed(lengths, parts),
    )
    expected_layers, expected = square(parts, lengths)
    assert found["numbers"] == expected_layers and found["shape"] == list(expected.shape)
    assert found["cells"] == expected.ravel().tolist()


def test_what_does_not_fit_together_makes_no_square(page):
    def made(parts, **lengths):
        code = f"(packed) => {{ {PACKED} return joint(grid.parts, grid.sides) !== null; }}"
        return page(code, packed(lengths, parts))

    encoder, decoder, cross = attention(3, 4)
    assert made([encoder, decoder, cross], source=3, target=4)
    assert not made([encoder], source=3, target=0)  # one text alone
    assert not made([encoder, encoder, cross], source=3, target=4)  # two kinds in one place
    other = PackedAttention("cross", "C", "target", "source", weights_of(3, 5, 4, 3), [1, 2, 3])
    assert not made([encoder, decoder, other], source=3, target=4)  # unequal heads


@pytest.mark.parametrize("layers, numbers", UNEQUAL)
def test_cells_rows_and_layers_of_the_square_go_both_ways(page, layers, numbers):
    """Every cell of every tile: whose it is, and that the way back leads to the same tile."""
    lengths = {"source": 2, "target": 3}
    parts = attention(2, 3, layers, numbers)
    cells = page(
        f"""(packed) => {{ {PACKED}
          const part = joint(grid.parts, grid.sides), found = [];
          for (let tile = 0; tile < part.layers * part.heads; tile++)
            for (let row = 0; row < part.rows; row++)
              for (let column = 0; column < part.columns; column++) {{
                const cell = cellOf(part, grid.sides, tile, row, column);
                found.push(cell && {{ ...cell, back: rowOf(part, cell.tile) * part.heads
                  + cell.tile.head }});
              }}
          return found;
        }}""",
        packed(lengths, parts),
    )
    texts = [("source", 0), ("source", 1), ("target", 0), ("target", 1), ("target", 2)]
    called = {part.kind: list(part.numbers) for part in parts}
    all_numbers = sorted({number for some in called.values() for number in some})
    kinds = {("source", "source"): "encoder", ("target", "target"): "decoder"}
    kinds["target", "source"] = "cross"
    places = ((tile, row, column) for tile in range(2 * len(all_numbers)) for row in texts
              for column in texts)  # fmt: skip
    for cell, (tile, row, column) in zip(cells, places, strict=True):
        kind = kinds.get((row[0], column[0]))
        number = all_numbers[tile // 2]
        if kind is None or number not in called[kind]:
            assert cell is None
            continue
        layer = called[kind].index(number)
        assert cell["tile"] == {"kind": kind, "layer": layer, "head": tile % 2}
        assert tuple(cell["row"].values()) == row and tuple(cell["column"].values()) == column
        assert cell["back"] == tile


def test_a_cell_of_a_long_text_stands_for_the_first_of_its_tokens(page):
    parts = attention(PICTURE_CELLS + 1, 2)
    cell = page(
        f"(packed) => {{ {PACKED} return cellOf(grid.parts[2], grid.sides, 5, 1, 100); }}",
        packed({"source": PICTURE_CELLS + 1, "target": 2}, parts),
    )
    assert cell["column"] == {"side": "source", "index": 200}
    assert cell["row"] == {"side": "target", "index": 1}


# Walking, order and mean


def test_tiles_stand_in_their_order(page):
    tiles = random.permutation(12).tolist()
    places = page(
        "(tiles) => tiles.map((_, tile) => [placeOf({ tiles }, tile), placeOf(undefined, tile)])",
        tiles,
    )
    back = page("(tiles) => tiles.map((_, place) => tileAt({ tiles }, place))", tiles)
    assert back == tiles
    assert [tiles[place] for place, _ in places] == list(range(12))
    assert [place for _, place in places] == list(range(12))
    assert page("() => tileAt(undefined, 5)") == 5


def neighbours(page, sections, focus, move):
    return page("([s, focus, move]) => neighbour(s, focus, move)", [sections, focus, move])


def section(kind, layers, heads, tiles=None):
    part = {"kind": kind, "layers": layers, "heads": heads, "numbers": list(range(1, layers + 1))}
    return {"part": part, "order": {"tiles": tiles} if tiles else None}


DIRECTIONS = {"left": [0, -1], "right": [0, 1], "up": [-1, 0], "down": [1, 0]}


def test_walking_over_an_edge_leads_to_the_next_kind_and_no_further(page):
    sections = [section("encoder", 2, 3), section("decoder", 4, 2)]

    def step(kind, layer, head, way):
        focus = {"kind": kind, "layer": layer, "head": head}
        found = neighbours(page, sections, focus, DIRECTIONS[way])
        return found and tuple(found.values())

    assert step("encoder", 0, 0, "right") == ("encoder", 0, 1)
    assert step("encoder", 0, 2, "right") == ("decoder", 0, 0)
    assert step("encoder", 1, 2, "down") == ("decoder", 0, 1)  # it has two heads
    assert step("decoder", 3, 0, "left") == ("encoder", 1, 2)  # it has two layers
    assert step("decoder", 0, 1, "up") == ("encoder", 1, 1)
    for nowhere in (("encoder", 0, 0, "left"), ("encoder", 0, 1, "up"), ("decoder", 3, 1, "down")):
        assert step(*nowhere) is None
    assert step("cross", 0, 0, "right") is None  # not shown


def test_walking_follows_the_order_of_the_tiles(page):
    tiles = random.permutation(6).tolist()
    sections = [section("encoder", 2, 3, tiles)]
    for place, tile in enumerate(tiles):
        focus = {"kind": "encoder", "layer": tile // 3, "head": tile % 3}
        found = neighbours(page, sections, focus, DIRECTIONS["right"])
        if place % 3 == 2:
            assert found is None
        else:
            beside = tiles[place + 1]
            assert (found["layer"], found["head"]) == (beside // 3, beside % 3)


def test_in_the_joint_square_walking_stops_where_a_kind_has_no_layer(page):
    parts = attention(2, 3, (3, 1, 2), ((), (2,), (1, 3)))
    found = page(
        f"""(packed) => {{ {PACKED}
          const sections = [{{ part: joint(grid.parts, grid.sides) }}];
          const from = (kind, layer, move) => neighbour(sections, {{ kind, layer, head: 1 }}, move);
          return [from("encoder", 1, [1, 0]), from("cross", 0, [1, 0]), from("cross", 1, [0, -1]),
            from("decoder", 0, [-1, 0])];
        }}""",
        packed({"source": 2, "target": 3}, parts),
    )
    assert found == [
        {"kind": "encoder", "layer": 2, "head": 1},
        None,  # cross-attention has layers 1 and 3 alone
        {"kind": "cross", "layer": 1, "head": 0},
        None,
    ]


@pytest.mark.parametrize("average", ["", "heads", "layers", "both"])
def test_means_are_over_heads_and_layers(page, average):
    parts = attention(4, 3)
    axes = {"": (), "heads": (1,), "layers": (0,), "both": (0, 1)}[average]
    focus = {"kind": "cross", "layer": 1, "head": 0}
    rows, columns = page(
        f"""([packed, look]) => {{ {PACKED}
          const part = grid.parts[2], tiles = averaged(part, look);
          const of = (at, asQuery) => [...meanWeights(part, tiles, [at], asQuery)];
          return [[0, 1, 2].map((at) => of(at, true)), [0, 1, 2, 3].map((at) => of(at, false))];
        }}""",
        [packed({"source": 4, "target": 3}, parts), {"focus": focus, "average": average}],
    )
    seen = weights_seen(packing.weight_bytes(parts[2].weights))
    mean = seen.mean(axis=axes, keepdims=True)
    expected = mean[1 if mean.shape[0] > 1 else 0, 0]
    assert np.allclose(rows, expected, atol=1e-6) and np.allclose(columns, expected.T, atol=1e-6)


def seen_as(part):
    """The weights that the browser knows, from their bytes."""
    return weights_seen(packing.weight_bytes(part.weights))


def test_of_several_tokens_queries_are_averaged_and_keys_summed(page):
    parts = attention(4, 3)
    query, key = page(
        f"""(packed) => {{ {PACKED}
          const of = (asQuery) => [...meanWeights(grid.parts[2], [3], [0, 2], asQuery)];
          return [of(true), of(false)];
        }}""",
        packed({"source": 4, "target": 3}, parts),
    )
    weights = seen_as(parts[2])[1, 1]
    assert np.allclose(query, weights[[0, 2]].mean(axis=0), atol=1e-6)
    assert np.allclose(key, weights[:, [0, 2]].sum(axis=1), atol=1e-6)


def test_links_are_the_largest_weights_between_two_groups_of_tokens(page):
    parts = attention(4, 3)
    from_, to = [("target", 1), ("target", 2)], [("source", 0), ("source", 3)]
    found = page(
        f"""([packed, tokens, to]) => {{ {PACKED}
          const named = (all) => all.map(([side, index]) => ({{ side, index }}));
          const selected = {{ tokens: named(tokens), to: named(to) }};
          return links(grid.parts, grid.sides, selected, () => 0, 99)
            .map(({{ kind, layer, head, weight }}) => [kind, layer, head, weight]);
        }}""",
        [packed({"source": 4, "target": 3}, parts), from_, to],
    )
    weights = seen_as(parts[2])[:, :, [1, 2]][..., [0, 3]].sum(axis=-1).mean(axis=-1)
    expected = {("cross", *at): weights[at] for at in np.ndindex(weights.shape) if weights[at]}
    assert {tuple(one[:3]): pytest.approx(one[3], abs=1e-6) for one in found} == expected
    assert [one[3] for one in found] == sorted((one[3] for one in found), reverse=True)


def test_within_one_text_links_go_both_ways(page):
    parts = attention(4, 3)
    found = page(
        f"""(packed) => {{ {PACKED}
          const token = (index) => ({{ side: "source", index }});
          const selected = {{ tokens: [token(0)], to: [token(2)] }};
          return links(grid.parts, grid.sides, selected, () => 0, 99)
            .map(({{ layer, head, queries, weight }}) => [layer, head, queries[0].index, weight]);
        }}""",
        packed({"source": 4, "target": 3}, parts),
    )
    weights = seen_as(parts[0])
    for layer, head, query, weight in found:
        assert weight == pytest.approx(weights[layer, head, query, 2 - query], abs=1e-6)
    assert {query for *_, query, _ in found} == {0, 2}


def test_clicks_on_tokens_select_link_extend_and_leave(page):
    def clicks(*tokens):
        return page(
            """(clicks) => {
              let all = null;
              for (const [index, extend] of clicks)
                all = select(all, { side: "source", index }, extend);
              return all && [all.tokens, all.to].map((some) => some.map((one) => one.index));
            }""",
            [[int(str(token).strip("+")), str(token).startswith("+")] for token in tokens],
        )

    assert clicks(1) == [[1], []]
    assert clicks(1, 1) is None
    assert clicks(1, 2) == [[1], [2]]
    assert clicks(1, 2, 3) == [[3], []]
    assert clicks(1, "+2", 3, "+4") == [[1, 2], [3, 4]]
    assert clicks(1, 2, 1) == [[2], []]
    assert clicks(1, 2, 2) == [[1], []]
    assert clicks("+5") == [[5], []]


@pytest.mark.parametrize("scale", ["linear", "square root", "per row"])
def test_a_row_is_shown_on_its_scale(page, scale):
    row = [0.0, 0.04, 0.25, 0.5]
    shown = page("([row, scale]) => scaled(row, { scale, least: 0.05 })", [row, scale])
    kept = np.where(np.array(row) < 0.05, 0, row)
    of = {"linear": kept, "square root": np.sqrt(kept), "per row": kept / 0.5}
    assert np.allclose(shown, of[scale])
    assert page("() => scaled([0, 0], { scale: 'per row', least: 0 })") == [0, 0]


def test_a_filter_leaves_out_the_heads_without_the_pattern(page):
    found = page(
        f"""(packed) => {{ {PACKED}
          const faded = {{ encoder: [0, 3], decoder: [0], cross: [0, 1] }};
          const square = joint(grid.parts, grid.sides);
          const of = (part) => [0, 1, 2, 3].map((tile) => isFaded(part, faded, tile));
          return [of(grid.parts[0]), of(square), isFaded(grid.parts[0], {{}}, 0)];
        }}""",
        packed({"source": 4, "target": 3}, attention(4, 3)),
    )
    assert found == [[True, False, False, True], [True, False, False, False], False]


def test_the_keys_that_a_row_may_attend_to_are_counted(page):
    parts = attention(4, 3)
    counts = page(
        f"""(packed) => {{ {PACKED}
          return [0, 1, 2].map((row) => visibleKeys(grid.parts[2], {{ layer: 2, head: 1 }}, row));
        }}""",
        packed({"source": 4, "target": 3}, parts),
    )
    assert counts == np.count_nonzero(parts[2].weights[2, 1], axis=-1).tolist()


# Colours


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_runs_evenly_through_its_stops(page, name):
    palette = SCALES[name]
    shares = [
        0,
        1,
        -3,
        7,
        *random.random(50),
        *(i / (len(palette) - 1) for i in range(len(palette))),
    ]
    found = page("([palette, s]) => s.map(ramp(palette))", [palette, shares])
    for share, colour in zip(shares, found, strict=True):
        place = min(max(share, 0), 1) * (len(palette) - 1)
        low = min(int(place), len(palette) - 2)
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


@pytest.mark.parametrize("scale", ["linear", "square root", "per row"])
@pytest.mark.parametrize("least", [0, 0.4])
def test_tiles_are_painted_byte_by_byte(page, scale, least):
    """`colours` are their own numbers here, so that a pixel tells which one was taken."""
    shape = dict(layers=2, heads=3, rows=4, columns=5)
    weights = weights_of(*shape.values())
    weights[0, 0, 1] = 0  # a row that may attend to nothing
    cells = packing.weight_bytes(weights)
    found = page(
        """([part, look]) => {
          const pixels = new Uint32Array(part.cells.length);
          const colours = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
          paintTiles(pixels, part, look, colours);
          return [...pixels];
        }""",
        [
            shape | {"cells": cells.ravel().tolist()},
            dict(scale=scale, least=least),
        ],
    )  # fmt: skip
    seen = weights_seen(cells)
    shown = np.where(seen < least, 0, seen)
    if scale == "square root":
        shown = np.sqrt(shown)
    if scale == "per row":
        shown /= np.maximum(seen.max(axis=-1, keepdims=True), weights_seen(2))
    expected = np.where(cells > 0, 1000 + np.floor(255 * shown + 0.5), 0)
    sheet = expected.transpose(0, 2, 1, 3).reshape(2 * 4, 3 * 5)
    assert np.array_equal(found, sheet.ravel())


@pytest.mark.parametrize("every", [(2, 2), (3, 2), (1, 3), (5, 7)])
def test_a_pixel_for_several_cells_has_the_colour_of_their_mean(page, every):
    """Of those that are not masked; none where most are."""
    layers, heads, rows, columns = 2, 3, 5, 7
    weights = weights_of(layers, heads, rows, columns)
    weights[:, :, 0, :4] = 0
    cells = packing.weight_bytes(weights)
    found = page(
        """([part, every, count]) => {
          const pixels = new Uint32Array(count);
          const colours = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
          paintTiles(pixels, part, { scale: "linear", least: 0 }, colours, every);
          return [...pixels];
        }""",
        [
            dict(
                layers=layers, heads=heads, rows=rows, columns=columns, cells=cells.ravel().tolist()
            ),
            every,
            layers * heads * -(-rows // every[0]) * -(-columns // every[1]),
        ],
    )
    seen = weights_seen(cells)
    blocks = [
        [
            (
                seen[..., r : r + every[0], c : c + every[1]],
                cells[..., r : r + every[0], c : c + every[1]],
            )
            for c in range(0, columns, every[1])
        ]
        for r in range(0, rows, every[0])
    ]

    def colour(weights, bytes_of):
        real = (bytes_of > 0).sum(axis=(-1, -2))
        mean = weights.sum(axis=(-1, -2)) / np.maximum(real, 1)
        is_drawn = 2 * real >= np.prod(bytes_of.shape[-2:])
        return np.where(is_drawn, 1000 + np.floor(255 * mean + 0.5), 0)

    sheet = np.stack([np.stack([colour(*b) for b in line], axis=-1) for line in blocks], axis=-2)
    expected = sheet.transpose(0, 2, 1, 3).reshape(layers * sheet.shape[2], -1)
    assert np.abs(np.array(found) - expected.ravel()).max() <= 1  # 32 bits: a rounding


def test_a_tile_merges_as_many_cells_as_have_one_pixel(page):
    asked = [(128, 128, 25.5, 25.5), (20, 20, 60, 60), (130, 40, 60, 30)]
    found = page(
        """(all) => all.map(([rows, columns, width, height]) =>
          merged({ rows, columns }, width, height))""",
        asked,
    )
    assert found == [[5, 5], [1, 1], [4, 1]]


def test_tiles_of_a_difference_have_no_change_in_the_middle_of_the_scale(page):
    found = page(
        """(part) => {
          const pixels = new Uint32Array(part.cells.length);
          const colours = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
          paintTiles(pixels, part, { scale: "square root", least: 0.4 }, colours);
          return [...pixels];
        }""",
        dict(layers=1, heads=1, rows=1, columns=5, cells=[0, 1, 128, 191, 255], signed=0.4),
    )
    assert found == [0, 1000, 1128, 1191, 1255]  # masked, −0.4, 0, 0.2, +0.4


# Under the pointer


def test_the_cell_under_the_pointer(page):
    box = dict(left=30.5, top=12, across=3.25, down=7, rows=9, columns=20)
    points = [(random.uniform(0, 120), random.uniform(0, 90)) for _ in range(300)]
    edge = (box["left"] + 20 * 3.25, box["top"] + 9 * 7)
    points += [
        (30.5, 12),
        (30.49, 12),
        (edge[0], 13),
        (31, edge[1]),
        (edge[0] - 0.01, edge[1] - 0.01),
    ]
    found = page("([points, box]) => points.map(([x, y]) => cellUnder(x, y, box))",
                          [points, box])  # fmt: skip
    for (x, y), cell in zip(points, found, strict=True):
        row, column = math.floor((y - 12) / 7), math.floor((x - 30.5) / 3.25)
        inside = 0 <= row < 9 and 0 <= column < 20
        assert cell == ([row, column] if inside else None)
    for empty in (dict(rows=0), dict(columns=0)):
        assert page("(box) => cellUnder(31, 13, box)", box | empty) is None


# Numbers


@pytest.mark.parametrize(
    "call, text",
    [
        ("percent(0)", "0%"),
        ("percent(0.125)", "13%"),
        ("percent(1)", "100%"),
        ("percent(0.12345, 1)", "12.3%"),
        ("minus('-1.5')", "−1.5"),
        ("tenths(2)", "2"),
        ("tenths(-2.04)", "−2"),
        ("tenths(-0.04)", "0"),
        ("tenths(-7.25)", "−7.3"),
        ("short(0)", "0.00"),
        ("short(-0.001)", "0.00"),
        ("short(-9.994)", "−9.99"),
        ("short(12.34)", "12.3"),
        ("short(-123.4)", "−123"),
        ("short(12345)", "1e+4"),
        ("exact(0)", "0"),
        ("exact(0.5)", "0.5"),
        ("exact(1.23456789)", "1.234568"),
        ("exact(-0.0000123)", "-1.23e-5"),
    ],
)
def test_numbers_are_written(page, call, text):
    assert page(f"() => {call}") == text


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
