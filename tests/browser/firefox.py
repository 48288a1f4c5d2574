"""Firefox by WebDriver BiDi (w3.org/TR/webdriver-bidi): Playwright drives only its own build."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("firefox", "firefox-esr")
PATIENCE = 120  # seconds for Firefox to start, and for any answer


@contextmanager
def launched(profile: Path, width: int = 1280, height: int = 720) -> Iterator["Firefox"]:
    """Firefox without a network. Skips the test where it is not installed."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("Firefox is not installed: apt-get install firefox-esr")
    # Requests to any host go to a port where nobody answers.
    proxy = {"type": 1, "http": "127.0.0.1", "http_port": 9, "ssl": "127.0.0.1", "ssl_port": 9}
    lines = [f"user_pref('network.proxy.{name}', {value!r});" for name, value in proxy.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    process = subprocess.Popen(
        [program, "--headless", "--no-remote", "--remote-debugging-port=0", f"--width={width}",
         f"--height={height}", "--profile", str(profile)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with connect(_address(profile, process), max_size=None) as socket:
            yield Firefox(socket)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _address(profile: Path, process: subprocess.Popen) -> str:
    """Firefox writes it into its profile as soon as it listens."""
    file, start = profile / "WebDriverBiDiServer.json", time.monotonic()
    while not (file.exists() and (text := file.read_text("utf-8")).endswith("}")):
        assert process.poll() is None, "Firefox ended at once"
        assert time.monotonic() - start < PATIENCE, "Firefox does not listen"
        time.sleep(0.05)
    server = json.loads(text)
    return f"ws://{server['ws_host']}:{server['ws_port']}/session"


class Firefox:
    """Its first tab. `errors` holds the warnings and errors of the console."""

    def __init__(self, socket: ClientConnection):
        self.errors, self._socket, self._count = [], socket, 0
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded"])
        (first,) = self.command("browsingContext.getTree")["contexts"]
        self._tab = first["context"]

    def command(self, method: str, **params) -> dict:
        """The result of a command. Raises AssertionError with what Firefox says against it."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("method") == "log.entryAdded":
                if answer["params"]["level"] in ("warn", "error"):
                    self.errors.append(answer["params"]["text"])
            elif answer.get("id") == self._count:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, address: str) -> None:
        self.command("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, expression: str):
        """The value of an expression of JavaScript, which may be a promise, as JSON brings it."""
        answer = self.command(
            "script.evaluate", expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self._tab}, awaitPromise=True,
        )  # fmt: skip
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return json.loads(answer["result"].get("value", "null"))

    def press(self, key: str) -> None:
        """A key, as the element that has the focus gets it."""
        presses = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keys", "actions": presses}]
        self.command("input.performActions", context=self._tab, actions=actions)
