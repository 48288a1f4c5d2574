"""What a page says in place of a picture."""

from collections.abc import Callable

import streamlit as st

from headlight.app.text import formats
from headlight.model.messages import LONGEST_MESSAGE, short


class NothingToShow(Exception):
    """Ends a page after it has shown why, or with a sentence that is shown in its place. st.stop()
    would end the whole run."""


class Stopped(NothingToShow):
    """Ends what takes long, where the user has stopped it."""


def show_message(message: object, box: Callable = st.error) -> None:
    """A sentence in a box. It may quote what was typed, or what stands in an address or a file:
    all of it is text, none of it Markdown."""
    box(formats.escaped(short(message, LONGEST_MESSAGE)))
