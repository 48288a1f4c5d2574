"""Where the maps of the gallery of heads stand: app/components/gallery/index.js, without a
document."""

import pytest

FIT = """({ counts, width, height }) =>
  sideBySide(counts, width, height, 30, (across) => (across < 150 ? 56 : 40))"""


@pytest.fixture(scope="module")
def drawing(node):
    return node.scope("app/components/gallery/index.js")


@pytest.mark.parametrize(
    "counts", [[15, 10, 19, 4], [4], [8, 3, 1], [1], [16, 16, 16]], ids=lambda counts: str(counts)
)
@pytest.mark.parametrize(("width", "height"), [(1246, 450), (1886, 800), (1240, 560)])
def test_groups_fill_the_room_and_stay_in_it(drawing, counts, width, height):
    found = drawing(FIT, {"counts": counts, "width": width, "height": height})
    across, down, columns = found["width"], found["height"], found["columns"]
    rows = max(-(-count // of) for count, of in zip(counts, columns, strict=True))
    below = 56 if across < 150 else 40
    total = sum(columns)
    gaps = 24 * (len(counts) - 1) + 8 * (total - len(counts))
    assert total * across + gaps <= width and 30 + rows * (down + below) <= height
    assert across >= 80 and down >= 24 and across <= 1.8 * down + 1 and down <= 1.05 * across + 1
    # Another number of rows leaves no larger maps.
    for other in range(1, max(counts) + 1):
        each = [-(-count // other) for count in counts]
        room = (width - 24 * (len(counts) - 1) - 8 * (sum(each) - len(counts))) / sum(each)
        tall = min((height - 30) / other - (56 if room < 150 else 40), 1.05 * room)
        fits = min(room, 1.8 * tall) >= 80 and tall >= 24
        assert not fits or min(room, 1.8 * tall) * tall <= across * down * 1.1


def test_what_would_be_too_small_scrolls(drawing):
    assert drawing(FIT, {"counts": [200, 200], "width": 1246, "height": 450}) is None
