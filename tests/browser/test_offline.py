"""The app with the network unplugged: the server asks nobody, the page asks only the server.

The visit runs in a network namespace of its own, where the machine allows one. Every name that
the server looks up and every address it connects or binds to is written down by an audit hook.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.conftest import DRAWN, PAGES, UNOPTIMISED, Visit, launch
from tests.conftest import ROOT, serve

pytestmark = pytest.mark.browser

HOOK = """
import os, sys
def write(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"):
        where = args[0] if event == "socket.getaddrinfo" else args[1]
        host = where[0] if isinstance(where, tuple) else where
        with open(os.environ["HEADLIGHT_AUDIT"], "a") as file:
            file.write(f"{event} {host}\\n")
sys.addaudithook(write)
"""


def audited(folder: Path) -> dict[str, str]:
    """The environment in which a Python process writes its socket calls to folder/audit."""
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": str(folder), "HEADLIGHT_AUDIT": str(folder / "audit")}


def events(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "audit").read_text().splitlines()]


def is_outside(event: str, host: str) -> bool:
    return event != "socket.bind" and host not in ("127.0.0.1", "localhost", "::1", "None")


def test_the_hook_notices_an_attempt(tmp_path):
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 0.2)\nexcept OSError: 0"
    subprocess.run([sys.executable, "-c", code], env=os.environ | audited(tmp_path), check=True)
    assert any(is_outside(*event) for event in events(tmp_path))


@pytest.mark.timeout(300)  # every page
def test_nobody_is_asked(models, tmp_path):
    alone = ["unshare", "-rn"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    command = [*alone, sys.executable, "-m", "tests.browser.test_offline", models, tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["drawn"] == list(PAGES)
    assert seen["outside"] == []
    assert ["socket.bind", "127.0.0.1"] in events(tmp_path)
    assert [event for event in events(tmp_path) if event[0] == "socket.bind"] == [
        ["socket.bind", "127.0.0.1"]
    ]
    assert [event for event in events(tmp_path) if is_outside(*event)] == []


def _visit(models: Path, folder: Path) -> None:
    """Every page once, in a browser; prints what was drawn and what was asked of others."""
    _loopback_up()
    drawn = []
    with (
        serve(models, **audited(folder)) as address,
        sync_playwright() as playwright,
        launch(playwright, UNOPTIMISED) as browser,
    ):
        visit = Visit(browser.new_page(), address).open()
        for title in PAGES:
            visit.go(title)
            if title == "BertViz":
                visit.page.frame_locator("iframe").locator("svg").wait_for()
            else:
                visit.page.wait_for_selector(DRAWN, timeout=60_000)
            drawn.append(title)
        print(json.dumps({"drawn": drawn, "outside": visit.outside()}))


def _loopback_up() -> None:
    """A new network namespace has its loopback down."""
    up, get_flags, set_flags = 1, 0x8913, 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, get_flags, request))[1]
        if not flags & up:
            fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))


if __name__ == "__main__":
    _visit(Path(sys.argv[1]), Path(sys.argv[2]))
