"""Serves a class: `python -m app.serve [--port 8501] [--replicas 4] [--models DIR]`.

The app runs in so many processes. Each has drawn its first page before anybody is told of it, and
one that dies is replaced. Several stand behind nginx, which leads a visitor to the same one again;
one more is ready to take the place of one that dies. However this process ends, all of them end.
"""

import argparse
import os
import secrets
import shutil
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

from app import board, limits

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LOOK = 0.2  # seconds between two looks at the processes
AGAIN = 2.0  # seconds until one is started that ended before it was ready
PATIENCE = 120  # seconds for the first page
LAST_WORDS = 5  # seconds to end by itself
EVERYWHERE, HERE_ALONE = "0.0.0.0", "127.0.0.1"


class CannotServe(Exception):
    """Why, in a sentence."""


class Configuration(Template):
    """nginx has variables of its own, with a dollar sign."""

    delimiter = "@"


def configuration(replicas: dict[str, int], port: int, folder: Path) -> str:
    """nginx.conf for processes, by name and port."""
    names = list(replicas)
    shares = [f"{100 / len(names):.2f}% {name};" for name in names[:-1]]
    text = (HERE / "nginx.conf").read_text(encoding="utf-8")
    return Configuration(text).substitute(
        folder=folder,
        port=port,
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
    death of a parent would not reach nginx's workers, and other systems have none."""

    def __init__(self, command: Sequence[str], **options):
        self.guardian = subprocess.Popen(
            ["sh", "-c", "read _; kill -KILL 0"], stdin=subprocess.PIPE, process_group=0
        )
        group = self.guardian.pid
        super().__init__(command, stdin=subprocess.DEVNULL, process_group=group, **options)

    def end_group(self) -> None:
        """Kill whatever is left of the group."""
        self.guardian.communicate()


def folder_for_nginx() -> tempfile.TemporaryDirectory:
    """For its configuration, uploads and long answers. If root starts nginx, its workers run as
    another user, who must be able to reach the folders that nginx makes for them in it."""
    folder = tempfile.TemporaryDirectory(prefix="headlight-")
    os.chmod(folder.name, 0o711)
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
        """Sets `is_ready` at the first answer, which comes after the first page: see start.py."""
        address = f"http://{HERE_ALONE}:{self.port}/_stcore/health"
        while self.is_alive and not self.is_ready:
            try:
                urllib.request.urlopen(address, timeout=PATIENCE).close()
                self.is_ready = True
            except OSError:
                time.sleep(LOOK)


class Service:
    """All processes of one service; a context manager, which ends them."""

    def __init__(self, port: int, replicas: int, arguments: Sequence[str]):
        self.port, self.arguments, self.wanted = port, arguments, replicas
        self.spare = int(replicas > 1)
        self.replicas: list[Replica] = []
        self.started, self.not_before = 0, 0.0
        self.nginx, self.led = None, {}  # name → port of those that nginx leads to
        self.addresses = board.addresses(port)
        self.environment = os.environ | {
            board.ADDRESS: self.addresses[0],
            # Every session runs in threads of its own, each of which would take memory apart.
            "MALLOC_ARENA_MAX": "2",
        }
        # A visitor's token against forgery holds in every process.
        self.environment.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", secrets.token_hex(32))
        if replicas > 1:
            cores = max((os.cpu_count() or 1) // replicas, 1)
            self.environment.setdefault("OMP_NUM_THREADS", str(cores))
        self.folder = folder_for_nginx()

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
        self.folder.cleanup()

    def start(self) -> None:
        """One more process."""
        alone = self.wanted == 1
        self.started += 1
        port = self.port if alone else _free_port()
        options = {
            "server.port": port,
            "server.address": EVERYWHERE if alone else HERE_ALONE,
            "server.headless": "true",
            "browser.serverAddress": self.addresses[0].split("/")[2].rpartition(":")[0],
            "browser.serverPort": self.port,
            "logger.hideWelcomeMessage": "true",
        }
        flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "streamlit", "run", str(HERE / "main.py"), *flags]
        process = Child([*command, "--", *self.arguments], cwd=ROOT, env=self.environment)
        replica = Replica(f"replica{self.started}", port, process)
        self.replicas.append(replica)
        Thread(target=replica.await_first_page, daemon=True).start()

    def until_ready(self) -> None:
        """Start all. Raises CannotServe where one ends instead."""
        for _ in range(self.wanted + self.spare):
            self.start()
        while not all(replica.is_ready for replica in self.replicas):
            if not all(replica.is_alive for replica in self.replicas):
                raise CannotServe("The app ended while it was starting; why stands above.")
            time.sleep(LOOK)
        self.look()

    @property
    def serving(self) -> list[Replica]:
        """Those that visitors are led to: the oldest ones that are ready."""
        return [one for one in self.replicas if one.is_ready][: self.wanted]

    def look(self) -> None:
        """Replace what has died, and lead visitors to those that serve."""
        for replica in [replica for replica in self.replicas if not replica.is_alive]:
            print(f"{replica.name} ended ({replica.process.returncode}).", flush=True)
            replica.process.end_group()
            self.replicas.remove(replica)
            if not replica.is_ready:
                self.not_before = time.monotonic() + AGAIN
        while len(self.replicas) < self.wanted + self.spare and time.monotonic() > self.not_before:
            self.start()
        if self.wanted > 1:
            self._lead({one.name: one.port for one in self.serving})

    def _lead(self, ready: dict[str, int]) -> None:
        """Have nginx lead visitors to these, who are connected to others stay so."""
        runs = self.nginx is not None and self.nginx.poll() is None
        if not ready or (runs and ready == self.led):
            return
        self.led, folder = ready, Path(self.folder.name)
        file = folder / "nginx.conf"
        file.write_text(configuration(ready, self.port, folder), encoding="utf-8")
        if runs:
            self.nginx.send_signal(signal.SIGHUP)
            return
        if self.nginx is not None:
            print(f"nginx ended ({self.nginx.returncode}).", flush=True)
            self.nginx.end_group()  # its workers still listen on the port
        self.nginx = Child(["nginx", "-p", str(folder), "-e", "stderr", "-c", str(file)])

    def run(self) -> None:
        """Until a signal ends it."""
        while True:
            time.sleep(LOOK)
            self.look()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE_ALONE, 0))
        return probe.getsockname()[1]


def _check(port: int, replicas: int) -> None:
    """Raises CannotServe."""
    if replicas > 1 and shutil.which("nginx") is None:
        raise CannotServe(
            "Several processes stand behind nginx, which is not here. Please run: "
            "apt-get install nginx"
        )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((EVERYWHERE, port))
        except OSError as error:
            raise CannotServe(
                f"Port {port} cannot be had ({error.strerror}). Please choose another one: "
                f"make serve PORT={port + 1}"
            ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app.serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--replicas", type=int, default=1, help="processes; more than one: nginx")
    args, others = parser.parse_known_args(arguments)
    if args.replicas < 1:
        parser.error("--replicas is 1 or more")
    # Where its terminal is closed, too: nginx would take that for a wish to read its settings anew.
    for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
        signal.signal(getattr(signal, name), lambda *_: sys.exit(0))
    print("Headlight starts …", flush=True)
    try:
        _check(args.port, args.replicas)
        with Service(args.port, args.replicas, others) as service:
            service.until_ready()
            first, *more = service.addresses
            print(f"Headlight is ready. Write on the board: {first}")
            print(f"or one of these: {', '.join(more)}", flush=True)
            service.run()
    except CannotServe as why:
        print(why, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
