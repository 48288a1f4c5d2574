"""`make serve`, whose processes are killed: they are replaced, and all end with the first one."""

import http.client
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from websockets.sync.client import connect

from tests.app.test_serve import needs_nginx
from tests.conftest import ROOT
from tests.load import server
from tests.servers import free_port
from tests.waiting import wait_until

SOON, ROUNDS = 2.0, 20  # seconds, tries
pytestmark = pytest.mark.long


def seconds_until(condition, *arguments) -> float:
    start = time.monotonic()
    wait_until(condition, *arguments)
    return time.monotonic() - start


def expect_soon(what: str, times: list[float]) -> None:
    """Prints the times; of many rounds, compares the worst one with the bar."""
    print(f"{what}: median {statistics.median(times):.2f} s, worst {max(times):.2f} s of {times}")
    assert max(times) < SOON


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def status(port: int, path: str = "/_stcore/health", cookie: str = "") -> int:
    """Of an answer, or 0 where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Cookie": cookie})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


class Served:
    """A service as `make serve` starts it."""

    def __init__(self, running: server.Server, port: int):
        self.running, self.port = running, port

    def kill(self) -> float:
        """Kill the first process; seconds until nothing of the service is left."""
        left = self.running.processes()
        self.running.process.kill()
        return seconds_until(lambda: all(map(is_gone, left)) and is_free(self.port))

    def nginx(self) -> psutil.Process | None:
        return next((one for one in self._processes() if "nginx.conf" in _command(one)), None)

    def replicas(self) -> dict[int, psutil.Process]:
        """By the port that each listens on."""
        found = ((re.search(r"--server.port (\d+)", _command(one)), one)
                 for one in self._processes())  # fmt: skip
        return {int(port[1]): process for port, process in found if port}

    def led(self) -> dict[str, psutil.Process]:
        """Those that nginx leads visitors to, by the name in the cookie."""
        file = re.search(r"\S+nginx.conf", _command(self.nginx()))[0]
        upstreams = re.findall(r"upstream (\w+) { server \S+:(\d+); }", Path(file).read_text())
        replicas = self.replicas()
        return {name: replicas.get(int(port)) for name, port in upstreams}

    def is_whole(self) -> bool:
        """Whether all are ready, the one in reserve, too."""
        replicas = self.replicas()
        return len(replicas) == 3 and all(map(status, replicas)) and all(self.led().values())

    def is_replaced(self, victim: psutil.Process, name: str) -> bool:
        """Whether another process was started, and the visitors of that name are led to others."""
        return (
            len(self.replicas()) == 3
            and victim not in self.led().values()
            and status(self.port, cookie=f"headlight={name}") == 200
        )

    def is_led_again(self, master: psutil.Process, workers: list[psutil.Process]) -> bool:
        """Whether there is another nginx, and nothing left of this one."""
        return (
            all(map(is_gone, workers))
            and self.nginx() not in (None, master)
            and status(self.port) == 200
        )

    def _processes(self) -> list[psutil.Process]:
        return psutil.Process(self.running.process.pid).children()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it is gone
        return ""


@contextmanager
def serving(models: Path, replicas: int, **environment: str):
    port = free_port()
    command = ["-m", "headlight.app.server.serve", "--port", str(port), "--replicas", str(replicas)]
    environment["OMP_NUM_THREADS"] = "1"
    with server.running([*command, "--models", str(models)], port, **environment) as running:
        yield Served(running, port)


def test_one_process_ends_with_the_first(models):
    times = []
    for _ in range(ROUNDS):
        with serving(models, 1) as served:
            assert served.replicas().keys() == {served.port} and status(served.port) == 200
            for path in ("/_stcore/script-health-check", "/_stcore/metrics"):
                assert status(served.port, path) == 404, "this is not for visitors"
            times.append(served.kill())
    expect_soon("one process, gone", times)


@needs_nginx
def test_a_process_that_is_killed_is_replaced_and_all_end_with_the_first(models):
    replaced, again, gone = [], [], []
    with serving(models, 2) as served:
        for _ in range(ROUNDS):
            master, replicas = served.nginx(), served.replicas()
            workers = master.children()
            assert workers
            master.kill()
            again.append(seconds_until(served.is_led_again, master, workers))
            assert served.replicas() == replicas
        for _ in range(ROUNDS):
            wait_until(served.is_whole)
            (name, victim), (other, stays) = served.led().items()
            master, cookie = served.nginx(), {"Cookie": f"headlight={other}"}
            address = f"ws://127.0.0.1:{served.port}/_stcore/stream"
            with connect(address, additional_headers=cookie) as visitor:
                victim.kill()
                replaced.append(seconds_until(served.is_replaced, victim, name))
                assert visitor.ping().wait(10), "another visitor was disturbed"
            assert served.led()[other] == stays and served.nginx() == master
        gone.append(served.kill())
    for _ in range(ROUNDS - 1):
        with serving(models, 2) as served:
            gone.append(served.kill())
    expect_soon("a replica, replaced", replaced)
    expect_soon("nginx, started again", again)
    expect_soon("several processes, gone", gone)


FIRST = """
import sys
from headlight.app.server.replicas import Child
print(Child(["sh", "-c", "sleep 600 & sleep 600"]).guardian.pid, flush=True)
sys.stdin.read()
"""


def group(number: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == number and not is_gone(process):
                members.append(process)
        except (ProcessLookupError, psutil.Error):
            pass
    return members


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_child_ends_with_its_parent_and_takes_its_own_along(end):
    """However the parent ends: killed, by another signal, or by itself."""
    command = [sys.executable, "-c", FIRST]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes, text=True) as first:
        number = int(first.stdout.readline())
        wait_until(lambda: len(group(number)) == 4)
        if end:
            first.send_signal(end)
        else:
            first.stdin.close()
        first.wait()
        wait_until(lambda: not group(number))
