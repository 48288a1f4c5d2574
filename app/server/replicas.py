"""The processes of one service, and nginx in front of them."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from threading import Thread
from urllib.parse import urlsplit

from headlight.app.server import lan, limits

HERE = Path(__file__).resolve().parent
APP, ROOT = HERE.parent, HERE.parent.parent
LOOK = 0.2  # seconds between two checks of the processes
AGAIN = 2.0  # seconds before a process that died during its start is started again
PATIENCE = 120  # seconds for the first page
LAST_WORDS = 5  # seconds to shut down before it is killed
EVERYWHERE, HERE_ALONE = "0.0.0.0", "127.0.0.1"


class CannotServe(Exception):
    """Why, in a sentence."""


class Configuration(Template):
    """A template with @, because nginx uses the dollar sign."""

    delimiter = "@"


def configuration(replicas: dict[str, int], port: int, folder: Path) -> str:
    """nginx.conf for processes: name → port."""
    names = list(replicas)
    shares = [f"{100 / len(names):.2f}% {name};" for name in names[:-1]]
    believed = [f"set_real_ip_from {each};" for each in lan.proxies()]
    text = (HERE / "nginx.conf").read_text(encoding="utf-8")
    return Configuration(text).substitute(
        folder=folder,
        port=port,
        proxies="\n        ".join(
            [*believed, *(["real_ip_header X-Forwarded-For;"] * any(believed))]
        ),
        megabytes=limits.LARGEST_UPLOAD,
        too_large=limits.TOO_LARGE,
        upstreams="\n    ".join(
            f"upstream {name} {{ server {HERE_ALONE}:{at}; }}" for name, at in replicas.items()
        ),
        shares="\n        ".join([*shares, f"* {names[-1]};"]),
        names="\n        ".join(f"{name} {name};" for name in names),
        known="\n        ".join(f'{name} "";' for name in names),
    )


class Child(subprocess.Popen):
    """A process in a group with everything it starts. The group ends when we do, even if we are
    killed: a shell in it reads from a pipe, which the system closes then. Linux's signal on the
    death of a parent would not reach nginx's workers, and other systems have none. With the group
    go the `folders` that are its own."""

    def __init__(self, command: Sequence[str], folders: Sequence[Path] = (), **options):
        last_act = 'read _; rm -rf -- "$@"; kill -KILL 0'
        self.guardian = subprocess.Popen(
            ["sh", "-c", last_act, "sh", *folders], stdin=subprocess.PIPE, process_group=0
        )
        group = self.guardian.pid
        super().__init__(command, stdin=subprocess.DEVNULL, process_group=group, **options)

    def end_group(self) -> None:
        """Kill whatever is left of the group."""
        self.guardian.communicate()


def folder_for_nginx() -> Path:
    """For its configuration, uploads and long answers. If root starts nginx, its workers run as
    another user, who must be able to reach the folders that nginx makes for them in it."""
    folder = Path(tempfile.mkdtemp(prefix="headlight-"))
    folder.chmod(0o711)
    return folder


@dataclass
class Replica:
    """One process of the app."""

    name: str
    port: int
    process: Child
    is_ready: bool = False

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def await_first_page(self) -> None:
        """Sets `is_ready` at the first answer, which comes after the first page: see startup.py."""
        address = f"http://{HERE_ALONE}:{self.port}/_stcore/health"
        while self.is_alive and not self.is_ready:
            try:
                urllib.request.urlopen(address, timeout=PATIENCE).close()
                self.is_ready = True
            except OSError:
                time.sleep(LOOK)


class Service:
    """All processes of one service. A context manager, which ends them."""

    def __init__(self, port: int, replicas: int, arguments: Sequence[str]):
        self.port, self.arguments, self.wanted = port, arguments, replicas
        self.spare = int(replicas > 1)
        self.replicas: list[Replica] = []
        self.started, self.not_before = 0, 0.0
        self.nginx, self.led = None, {}  # name → port of the processes behind nginx
        self.addresses = lan.addresses(port)
        self.environment = os.environ | {
            lan.ADDRESS: self.addresses[0],
            # A client may send X-Forwarded-For as well: only nginx of ours, or who is named, is
            # believed.
            lan.BELIEVED: HERE_ALONE if replicas > 1 else ",".join(lan.proxies()),
            # Every session runs in its own threads, each of which would get its own memory arena.
            "MALLOC_ARENA_MAX": "2",
        }
        # A visitor's XSRF token must be valid in every process.
        self.environment.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", secrets.token_hex(32))
        if replicas > 1:
            cores = max((os.cpu_count() or 1) // replicas, 1)
            self.environment.setdefault("OMP_NUM_THREADS", str(cores))
        self.folder: Path | None = None  # of nginx

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *raised) -> None:
        processes = [replica.process for replica in self.replicas]
        processes += [self.nginx] if self.nginx else []
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LAST_WORDS)
            process.end_group()

    def start(self) -> None:
        """Start one more process."""
        alone = self.wanted == 1
        self.started += 1
        port = self.port if alone else _free_port()
        options = {
            "server.port": port,
            "server.address": EVERYWHERE if alone else HERE_ALONE,
            "server.headless": "true",
            "browser.serverAddress": urlsplit(self.addresses[0]).hostname,
            "browser.serverPort": self.port,
            "logger.hideWelcomeMessage": "true",
        }
        flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "streamlit", "run", str(APP / "main.py"), *flags]
        process = Child([*command, "--", *self.arguments], cwd=ROOT, env=self.environment)
        replica = Replica(f"replica{self.started}", port, process)
        self.replicas.append(replica)
        Thread(target=replica.await_first_page, daemon=True).start()

    def until_ready(self) -> None:
        """Start all processes and wait until they are ready. Raises CannotServe if one dies."""
        for _ in range(self.wanted + self.spare):
            self.start()
        while not all(replica.is_ready for replica in self.replicas):
            if not all(replica.is_alive for replica in self.replicas):
                raise CannotServe("The app stopped while starting. The reason is above.")
            time.sleep(LOOK)
        self.look()

    @property
    def serving(self) -> list[Replica]:
        """The processes that get visitors: the oldest ones that are ready."""
        return [replica for replica in self.replicas if replica.is_ready][: self.wanted]

    def look(self) -> None:
        """Replace dead processes, and update nginx."""
        for replica in [replica for replica in self.replicas if not replica.is_alive]:
            print(f"{replica.name} stopped (exit code {replica.process.returncode}).", flush=True)
            replica.process.end_group()
            self.replicas.remove(replica)
            if not replica.is_ready:
                self.not_before = time.monotonic() + AGAIN
        while len(self.replicas) < self.wanted + self.spare and time.monotonic() > self.not_before:
            self.start()
        if self.wanted > 1:
            self._lead({ready.name: ready.port for ready in self.serving})

    def _lead(self, ready: dict[str, int]) -> None:
        """Have nginx send new visitors to these processes; open connections stay."""
        nginx, folder = self.nginx, self.folder
        runs = nginx is not None and nginx.poll() is None
        if not ready or (runs and ready == self.led):
            return
        self.led = ready
        if nginx is not None and not runs:
            print(f"nginx ended ({nginx.returncode}).", flush=True)
            nginx.end_group()  # its workers still listen on the port
        if folder is None or not runs:
            folder = self.folder = folder_for_nginx()
        file = folder / "nginx.conf"
        file.write_text(configuration(ready, self.port, folder), encoding="utf-8")
        if nginx is not None and runs:
            nginx.send_signal(signal.SIGHUP)
            return
        command = ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(file)]
        self.nginx = Child(command, [folder])

    def run(self) -> None:
        """Run until a signal arrives."""
        while True:
            time.sleep(LOOK)
            self.look()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE_ALONE, 0))
        return probe.getsockname()[1]
