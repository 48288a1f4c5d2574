"""Errors end here as a sentence for the user."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from headlight.app.results import memoize
from headlight.app.shell.edits import keep_valid_changes
from headlight.app.state import catalog, progress
from headlight.app.state.messages import NothingToShow, Stopped, show_message
from headlight.app.state.session import context, go_on
from headlight.app.text import notices
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead


@contextmanager
def memory_errors_as_messages() -> Iterator[None]:
    """Turns an out-of-memory error into a message."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not memoize.is_out_of_memory(error):
            raise
        show_message(
            "This needs more memory than is free. Use a shorter text or a smaller model. Your "
            "text is still there."
        )


@contextmanager
def errors_as_messages(part: str = "") -> Iterator[None]:
    """Turns errors of a page, or of a `part` beside it, into messages."""
    try:
        with memory_errors_as_messages():
            yield
    except Stopped:
        progress.stopped_line(notices.STOPPED, f"go_on{part}", go_on)
    except NothingToShow as nothing:
        if why := str(nothing):
            st.info(why)
    except catalog.UnreadableModel as error:
        show_message(error)
    except CannotRead as error:
        show_message(f"{error} Your text is still in the box.")
    except CannotChange as error:
        where = " Fix it under “More”." if context().can_change else ""
        show_message(f"{error}{where}")
        st.button("Keep the valid changes", on_click=keep_valid_changes, key=f"keep_readable{part}")
