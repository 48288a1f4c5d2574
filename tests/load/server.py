"""A server to be loaded, and what it takes of the machine."""

import os
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.conftest import ROOT
from tests.servers import free_port
from tests.waiting import wait_until

PATIENCE = 120  # seconds until it answers
MEGABYTE = 2**20


class Server:
    """A running server: its address, and its processes."""

    def __init__(self, process: subprocess.Popen, address: str, log: Path):
        self.process, self.address, self.log = process, address, log

    def is_ready(self) -> bool:
        """Whether it answers; the app's own service says so when it does."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=2).close()
        except OSError:
            return False
        return "starts" not in self.log.read_text() or "is ready" in self.log.read_text()

    def processes(self) -> list[psutil.Process]:
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def memory(self) -> float:
        """In megabytes, what its processes hold: resident, without what they share."""
        return sum(process.memory_full_info().uss for process in self.processes()) / MEGABYTE


@contextmanager
def running(command: list[str], port: int, **environment: str):
    """A Server by a command, until the block ends."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as output:
        options = {"cwd": ROOT, "env": os.environ | environment, "stderr": subprocess.STDOUT}
        process = subprocess.Popen([sys.executable, *command], stdout=output, **options)
        server = Server(process, f"http://127.0.0.1:{port}", Path(output.name))
        try:
            wait_until(server.is_ready, seconds=PATIENCE)
            yield server
        finally:
            process.terminate()
            process.wait(30)


def script(path: str):
    """`streamlit run` of a script."""
    port = free_port()
    options = ["--server.port", str(port), "--server.headless", "true"]
    options += ["--server.fileWatcherType", "none"]  # as the app has it
    return running(["-m", "streamlit", "run", path, *options], port)


def app(replicas: int = 1, **environment: str):
    """As `make serve` starts it."""
    port = free_port()
    options = ["--port", str(port), "--replicas", str(replicas)]
    return running(["-m", "headlight.app.server.serve", *options], port, **environment)
