"""Where tiles, cells and labels stand: app/components/head_grid/grid.js and selected.js, without a
document. Whether they are in view is asked in tests/browser/test_head_grid.py."""

import math

import pytest

WALK = """({ section, layers }) => {
  const { corner, unfolded } = Grid.prototype, { part, left, top, stepX, stepY } = section;
  const box = { left, top, across: stepX, down: stepY, rows: layers, columns: part.heads };
  return Array.from({ length: layers * part.heads }, (_, place) => {
    const { x, y } = corner(section, place);
    return [x, y, cellUnder(...unfolded(section, [x + 1, y + 1]), box)];
  });
}"""
LETTER = 0.5  # the width of a letter, in its height
LAYOUT = """({ width, rows, columns, rowNames, names, presented }) => {
  const context = { measureText: (text) => ({
    width: LETTER * parseFloat(context.font) * text.length,
  }) };
  const grid = { wide: false, isPresented: presented, font: 16, family: "sans-serif" };
  const state = { grid, box: { clientWidth: width }, rowNames };
  return SelectedHead.prototype.layout.call(state, context, { rows, columns }, names);
}""".replace("LETTER", str(LETTER))


@pytest.fixture(scope="module")
def drawing(node):
    files = ("head_grid/grid.js", "head_grid/selected.js", "shared/heatmap.js")
    return node.scope(*(f"app/components/{file}" for file in files))


@pytest.mark.parametrize(
    ("layers", "heads", "tall"), [(4, 4, 4), (20, 4, 7), (3, 1, 1), (9, 16, 9)]
)
def test_a_point_of_a_tile_leads_back_to_it_in_every_column(drawing, layers, heads, tall):
    left, top, width, height = 20.5, 30, 40, 25
    section = dict(part={"heads": heads}, left=left, top=top, stepX=width + 4, stepY=height + 4)
    section |= dict(foldX=left + heads * (width + 4), tall=tall)
    found = drawing(WALK, {"section": section, "layers": layers})
    assert [cell for *_, cell in found] == [[*divmod(at, heads)] for at in range(len(found))]
    corners = {(x, y) for x, y, _ in found}
    assert len(corners) == layers * heads
    assert max(y for _, y in corners) <= top + (tall - 1) * (height + 4)
    assert max(x for x, _ in corners) < math.ceil(layers / tall) * section["foldX"]


@pytest.mark.parametrize("layers", [8, 11, 12, 30, 70, 200])
def test_many_layers_stand_in_the_columns_that_leave_the_largest_tiles(drawing, layers):
    """Of a room of 600 × 500 px. It is one where that leaves 44 px, or the best less than 20."""
    sizes = [min(600 / n / 8, 500 / math.ceil(layers / n)) for n in range(1, layers + 1)]
    best = 1 + sizes.index(max(sizes))
    folds = 1 if layers < 9 or sizes[0] >= 44 or max(sizes) < 20 else best
    size = f"(count) => Math.min(600 / count / 8, 500 / Math.ceil({layers} / count))"
    assert drawing(f"() => Grid.prototype.folds.call({{ large: true }}, {layers}, {size})") == folds
    assert drawing(f"() => Grid.prototype.folds.call({{ large: false }}, {layers}, {size})") == 1


@pytest.mark.parametrize("presented", [False, True])
@pytest.mark.parametrize("length", [1, 4, 8, 14])
@pytest.mark.parametrize("count", [1, 3, 8, 20, 45, 120])
def test_labels_are_read_level_slanting_or_from_below_and_cells_fill_the_room(
    drawing, count, length, presented
):
    width, names = 900, ["x" * length] * count
    asked = dict(width=width, rows=count, columns=count, rowNames=names, names=names)
    place = drawing(LAYOUT, asked | {"presented": presented})
    letters, across = place["letters"], place["across"]
    assert (16 if presented else 0.62 * 16) <= letters <= 0.85 * 16 or presented
    assert min(across, place["down"]) >= letters  # every label has its line
    assert place["left"] >= LETTER * letters * length + 1.6 * letters
    assert place["width"] == across * count and place["height"] == place["down"] * count
    fits = place["whole"][0] <= width
    assert fits or letters - 1 < (16 if presented else 0.62 * 16)  # else it would be smaller
    each = (width - place["left"] - 2) / count
    turned = place["turned"]
    assert (turned == 0) == (LETTER * letters * length + 8 <= each)
    if turned == pytest.approx(math.pi / 4):
        high = math.sqrt(0.5) * (LETTER * letters * length + letters)
        assert across >= letters and place["top"] >= high
    elif turned:
        assert turned == pytest.approx(math.pi / 2)
    assert across <= (160 if presented else 140) and place["down"] <= (110 if presented else 72)
