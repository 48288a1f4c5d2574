"""What happens once per process: when the server starts, and after the first page."""

import gc
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from threading import Lock, Thread

import streamlit as st

from headlight.app.server import lan, room_stores
from headlight.app.server.checked_file import YOURS_PATH, checked_file
from headlight.app.server.streamlit_internals import config, get_display_address, get_url, runtime

# When two threads import a package at once, one of them may see it half initialised.
importing = Lock()


@asynccontextmanager
async def lifespan(_app) -> AsyncIterator[dict]:
    open_browser()
    room_stores.sweep()
    if lan.class_address():
        await draw_first_page()
    else:
        Thread(target=import_ahead, daemon=True).start()
    yield {}


async def draw_first_page() -> None:
    """Before anybody is answered, so that a class finds everything read and compiled. Raises
    RuntimeError if the page fails."""
    is_drawn, why = False, "timeout"
    while why == "timeout":
        is_drawn, why = await runtime.get_instance().does_script_run_without_error()
    if not is_drawn:
        raise RuntimeError("The first page cannot be drawn.")


def open_browser() -> None:
    """Opens the app in a browser unless headless, as Streamlit does for a plain script."""
    if not config.get_option("server.headless"):
        address = config.get_option("server.address") or "localhost"
        page = f"/{YOURS_PATH}" if checked_file() else ""
        webbrowser.open(f"{get_url(get_display_address(address)).rstrip('/')}{page}")


def import_ahead() -> None:
    """Imports what the first page needs while the browser starts: mainly PyTorch, and the modules
    that PyTorch imports when it first builds a model."""
    with importing:
        import pandas  # noqa: F401
        import pyarrow.dataset  # noqa: F401

        import headlight.app.shell.screen  # noqa: F401
        from headlight.app.state.catalog import DEFAULT_MODEL
        from headlight.model.checkpoint import load

    with suppress(Exception):  # errors are reported when the model is chosen
        load(DEFAULT_MODEL)


@st.cache_resource(show_spinner=False)
def settle_the_process() -> None:
    """Once per process, after the first page: freeze objects for the garbage collector, and load
    all models if a class is served.

    A collection stops all threads; scanning PyTorch's objects took 160 ms each time, while the
    browser waited.
    """
    if lan.class_address():
        from headlight.app.state import catalog  # with PyTorch, which takes seconds

        catalog.read_all()
    gc.collect()
    gc.freeze()
