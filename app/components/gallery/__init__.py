"""All heads as live maps in groups, each a link that opens it on Attention. Two mounts share one
picture, as in head_grid: one receives the weights as bytes, the other what is said of the heads."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from streamlit.components.v2 import component

from headlight.app import theme
from headlight.app.components.registered import registered
from headlight.app.components.scripts import script
from headlight.app.text.formats import Parts

_mount = registered("gallery")
_mount_heads = component("headlight_gallery_heads", js=script("gallery/heads.js"))


@dataclass(frozen=True)
class GalleryHead:
    """A head: its `kind`, and its place as in `Place` and, `number` and `head` + 1, on screen.
    `bar`: what the model loses without it as a share of the largest loss, None where that is not
    known; `lost` the same in words; `missed`: whether the model is surely worse; `off`: whether it
    is switched off."""

    kind: str
    layer: int
    number: int
    head: int
    name: str
    habit: str
    caption: str
    finding: Parts
    bar: float | None = None
    lost: str = ""
    missed: bool = False
    off: bool = False


@dataclass(frozen=True)
class GalleryOptions:
    """What is drawn beside the weights. `heads` in their order; `habits`: each with its name and
    what such heads do; `kinds`: each with its name; `selected`: kind, layer and head of the
    selected one; `legend`: of the bars, and of the red ones; `note`: on what was measured; `says`:
    whether the page says nothing else above."""

    heads: Sequence[GalleryHead]
    habits: Sequence[tuple[str, str, str]]
    kinds: Sequence[tuple[str, str]]
    selected: tuple[str, int, int]
    legend: Sequence[str]
    note: str
    says: bool
    here: str


def gallery(packed: bytes, options: GalleryOptions, palette: theme.Palette) -> None:
    """Draw the gallery: `packed` as of packing.pack, and the `options`."""
    _mount(data=packed, key="gallery")
    look = {"palette": palette, "colour": theme.FOCUS}
    # Sent apart: it changes with the selection.
    _mount_heads(data=asdict(options) | look, key="gallery_heads", height=1)
