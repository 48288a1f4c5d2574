"""Serves a class: `headlight --serve [--port 8501] [--replicas 4] [--models DIR]`.

The app runs in several processes. Each draws its first page before it gets visitors. A process that
dies is replaced. Several processes run behind nginx, which always sends a visitor to the same one,
and a spare process is ready to take over. However this process ends, all of them end.
"""

import argparse
import re
import shutil
import signal
import socket
import sys
from collections.abc import Sequence

from headlight.app.server import lan
from headlight.app.server.replicas import EVERYWHERE, CannotServe, Service


def _check(port: int, replicas: int) -> None:
    """Raises CannotServe."""
    if sys.platform == "win32":  # no process groups, with which everything ends that was started
        raise CannotServe("--serve needs Linux or macOS. On Windows, start it in WSL.")
    if replicas > 1 and shutil.which("nginx") is None:
        raise CannotServe(
            "Several processes need nginx, which is not installed. Please run: apt-get install "
            "nginx"
        )
    address = lan.class_address()
    if address and not re.fullmatch(r"https?://[\w.-]+(:\d+)?/?", address):
        raise CannotServe(
            f"{lan.ADDRESS} is {address!r}. Give the address that students open, such as "
            "https://headlight.example.org."
        )
    try:
        lan.proxies()
    except ValueError as error:
        raise CannotServe(str(error)) from None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((EVERYWHERE, port))
        except OSError as error:
            raise CannotServe(
                f"Port {port} cannot be used ({error.strerror}). Choose another one."
            ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="headlight --serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument(
        "--replicas", type=int, default=1, help="number of processes; more than one needs nginx"
    )
    args, options = parser.parse_known_args(arguments)
    if args.replicas < 1:
        parser.error("--replicas must be 1 or more")
    # Also when the terminal is closed: nginx would take SIGHUP as a request to reload.
    for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
        signal.signal(getattr(signal, name), lambda *_: sys.exit(0))
    print("Headlight is starting …", flush=True)
    try:
        _check(args.port, args.replicas)
        with Service(args.port, args.replicas, options) as service:
            service.until_ready()
            first, *more = service.addresses
            others = f"\nor one of these: {', '.join(more)}" if more else ""
            print(f"Headlight is ready. Write on the board: {first}{others}", flush=True)
            service.run()
        return 0
    except CannotServe as why:
        print(why, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
