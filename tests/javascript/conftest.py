"""The app's JavaScript in the Node that Playwright ships: no browser, no document, one process."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from tests.conftest import ROOT

NODE = compute_driver_executable()[0]
HERE = Path(__file__).parent
# app/ has no package.json: Node sees by their syntax that its files are modules, and says so.
QUIET = "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"


class JavaScriptError(AssertionError):
    """What a function threw, with its stack."""


class Node:
    """A process that keeps the modules it has loaded, and what they hold."""

    def __init__(self):
        self.process = subprocess.Popen(
            [NODE, QUIET, HERE / "server.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def scope(self, *files: str) -> Callable:
        """evaluate(code, argument=None): the value of a JavaScript function of one argument, which
        sees what the files export, each given by its path from the root. Raises JavaScriptError."""
        paths = [(ROOT / file).as_uri() for file in files]

        def evaluate(code: str, argument=None):
            asked = {"files": paths, "code": code, "argument": argument}
            self.process.stdin.write(f"{json.dumps(asked)}\n")
            self.process.stdin.flush()
            said = json.loads(self.process.stdout.readline())
            if "error" in said:
                raise JavaScriptError(said["error"])
            return said["value"]

        return evaluate

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)


@pytest.fixture(scope="session")
def node():
    node = Node()
    yield node
    node.close()
