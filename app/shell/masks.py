"""The masks of the model, and padding."""

import streamlit as st

from headlight.app import selection
from headlight.app.shell.layout import concerns, is_chosen
from headlight.app.state import session, widgets
from headlight.app.state.settings import MASKS
from headlight.app.text import notices

PADDING_MASKS = "src_padding", "tgt_padding", "memory_padding"


def there() -> list[str]:
    """The settings that the model has."""
    is_padded = session.values()["pad_to"] or len(session.context().known.sides) > 1
    return [
        key
        for key in filter(concerns, (*MASKS, "pad_to"))
        if is_padded or key not in PADDING_MASKS or is_chosen(key)
    ]


def draw() -> None:
    """Every mask of the model, and padding; where a padding mask is off and nothing is padded, why
    that changes nothing. A single text has padding masks once it is padded."""
    for key in there():
        given = {"on_change": _pass_over_idle_padding} if key == "pad_to" else {}
        widgets.draw(key, widget_options=given)
    chosen = session.values()
    is_off = any(concerns(key) and not chosen[key] for key in PADDING_MASKS)
    if is_off and chosen["line"] and (longest := selection.unpadded(chosen["pad_to"])):
        st.caption(notices.nothing_padded(longest))


def _pass_over_idle_padding() -> None:
    """Stepping up from no padding jumps to the shortest length that pads; stepping down returns. A
    callback."""
    before, now = session.values()["pad_to"], st.session_state.get("pad_to", 0)
    if abs(now - before) == 1 and (longest := selection.unpadded(now)):
        session.choose(pad_to=longest + 1 if now > before else 0)
