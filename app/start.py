"""What the server does once, as it starts."""

import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from threading import Thread

from streamlit import config, runtime
from streamlit.web.server.server_util import get_display_address, get_url

from app import board


@asynccontextmanager
async def starting(_app) -> AsyncIterator[dict]:
    open_browser()
    if board.address():
        await draw_first_page()
    else:
        Thread(target=import_ahead, daemon=True).start()
    yield {}


async def draw_first_page() -> None:
    """Before anybody is answered, so that a class finds everything read and compiled. Raises
    RuntimeError if the page fails."""
    why = "timeout"
    while why == "timeout":
        is_drawn, why = await runtime.get_instance().does_script_run_without_error()
    if not is_drawn:
        raise RuntimeError("The first page cannot be drawn.")


def open_browser() -> None:
    """Shows the app where there is a screen, as Streamlit does with a script by itself."""
    if not config.get_option("server.headless"):
        address = config.get_option("server.address") or "localhost"
        webbrowser.open(get_url(get_display_address(address)))


def import_ahead() -> None:
    """Imports what the first page needs while the browser starts: mostly PyTorch, and what PyTorch
    itself imports when it first builds a model."""
    import pandas  # noqa: F401
    import pyarrow.dataset  # noqa: F401

    import app.look
    import app.top_bar  # noqa: F401
    from app.catalog import DEFAULT_MODEL
    from model.checkpoint import load

    with suppress(Exception):  # what is wrong with it is reported when it is chosen
        load(DEFAULT_MODEL)
