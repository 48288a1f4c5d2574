"""Serves the app in this process, on this machine alone, with a model that is in memory:

headlight.open(model, tokenizer)

or, from a shell, `headlight --live script.py:model`.
"""

import re
import runpy
import sys
import threading
import time
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headlight.model.arguments import whole
from headlight.model.extras import of_extra
from headlight.model.recording.in_memory import in_memory
from headlight.model.recording.weights import CannotRecord

HOST = "127.0.0.1"
LONGEST_START = 60.0  # seconds
TOKENIZER = "tokenizer"  # its name in a script that names a model alone


class CannotOpen(ValueError):
    """Why the app cannot be served here, in a sentence."""


@dataclass(frozen=True)
class Opened:
    """The app, served in this process until `close()`, or until the process ends. A notebook shows
    its address as a link."""

    address: str

    def wait(self) -> None:
        """Return when the app is closed, or on Ctrl+C."""
        try:
            while _server.is_running():
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        _server.stop()

    def __repr__(self) -> str:
        return f"<Headlight on {self.address}>"

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank">Headlight on {self.address}</a>'


class _Server:
    """The one server of this process."""

    def __init__(self):
        self.port, self.uvicorn, self.thread = 0, None, None
        self.lock = threading.Lock()

    def is_running(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def start(self, port: int) -> None:
        """Raises CannotOpen."""
        with self.lock:
            if not self.is_running():
                self._start(port)

    def _start(self, port: int) -> None:
        with of_extra("The app"):
            import uvicorn

            from headlight.app.main import app
        from headlight.app.server import first_screen, ports
        from headlight.app.server.streamlit_internals import config

        if why := ports.problem(port):
            raise CannotOpen(why)
        first_screen.opens = ""  # the model that is handed over opens, not ours
        config.set_option("server.headless", True)
        config.set_option("server.port", port)
        config.set_option("server.address", HOST)
        settings = uvicorn.Config(app, HOST, port, log_level="warning", ws_max_size=2**30)
        self.port, self.uvicorn = port, uvicorn.Server(settings)
        self.thread = threading.Thread(target=self.uvicorn.run, daemon=True)
        self.thread.start()
        until = time.monotonic() + LONGEST_START
        while not self.uvicorn.started:
            if not self.is_running() or time.monotonic() > until:
                raise CannotOpen(f"The app did not start on port {port}.")
            time.sleep(0.02)

    def stop(self) -> None:
        if self.uvicorn is not None and self.thread is not None:
            self.uvicorn.should_exit = True
            self.thread.join()


_server = _Server()


def open(
    model: Any,
    tokenizer: Any,
    *texts: str,
    name: str = "",
    port: int = 8501,
    browser: bool = True,
    wait: bool | None = None,
) -> Opened:
    """The whole dashboard on a model of transformers that is in memory, served by this process on
    this machine alone. It opens on `texts`. `name`: what the list of models calls it. `wait`: until
    Ctrl+C; by default in a script, and not where one can type on, as in a notebook. A second model
    joins the first.

    The model keeps its weights, hooks and modes; while a pass over it is made, nobody else may call
    it. Raises CannotRecord and CannotOpen, a sentence each.
    """
    whole("port", port, 1, 2**16 - 1)
    checkpoint = in_memory(model, tokenizer, *texts)
    _server.start(port)

    from headlight.app.state import catalog  # which Streamlit warns about before it serves

    name = name or _name_of(model)
    name = f"{name} (yours)" if name in catalog.folders() else name
    catalog.add(name, checkpoint)
    opened = Opened(f"http://{HOST}:{_server.port}/?model={quote(name)}")
    if browser:
        webbrowser.open(opened.address)
    if wait or (wait is None and not _is_interactive()):
        print(f"Headlight is on {opened.address} (Ctrl+C ends it)", flush=True)
        opened.wait()
    return opened


def _name_of(model: Any) -> str:
    path = getattr(getattr(model, "config", None), "_name_or_path", "") or ""
    return re.sub(r"[\x00-\x1f]", "", Path(str(path)).name)[:80] or type(model).__name__


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def live(named: str, port: int) -> int:
    """`headlight --live script.py:model`: run a script, and open what it calls so: a model, whose
    tokenizer it calls `tokenizer`, a tuple of both, or a function that returns either."""
    try:
        model, tokenizer, *texts = _named(named)
        open(model, tokenizer, *texts, port=port, wait=True)
    except (CannotRecord, CannotOpen) as why:
        print(why, file=sys.stderr)
        return 2
    return 0


def _named(named: str) -> tuple:
    """What a script calls so. Raises CannotOpen, and whatever the script raises."""
    file, _, name = named.rpartition(":")
    if not file or not name.isidentifier():
        raise CannotOpen(
            f"--live takes a script and a name in it, like script.py:model, not {named[:80]}."
        )
    if not Path(file).is_file():
        raise CannotOpen(f"There is no script {file}.")
    # Not as a program: what it does only then is left out.
    sys.path.insert(0, str(Path(file).absolute().parent))
    found = runpy.run_path(file)
    if name not in found:
        raise CannotOpen(f"{file} has nothing called {name}.")
    value = found[name]
    if callable(value) and not hasattr(value, "parameters"):
        value = value()
    if isinstance(value, tuple):
        return value if len(value) > 1 else (*value, found.get(TOKENIZER))
    return value, found.get(TOKENIZER)
