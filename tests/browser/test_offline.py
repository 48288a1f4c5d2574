"""The server asks nobody, the page asks only the server: that is asked of every test here. The
fixture `app` reads what an audit hook wrote of the server, and `visit` what the page requested;
test_walk.py opens every page. Here, that the hook hears."""

import os
import subprocess
import sys

import pytest

from tests.servers import asked_outside, audited

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("call", "heard"),
    [
        ("create_connection(('192.0.2.1', 9), 0.2)", ["socket.connect", "192.0.2.1"]),
        ("getaddrinfo('x.invalid', 80)", ["socket.getaddrinfo", "x.invalid"]),
        ("socket().bind(('0.0.0.0', 0))", ["socket.bind", "0.0.0.0"]),
        ("socket().bind(('127.0.0.1', 0))", None),
    ],
)
def test_the_hook_notices_an_attempt(tmp_path, call, heard):
    code = f"import socket\ntry: socket.{call}\nexcept OSError: 0"
    subprocess.run([sys.executable, "-c", code], env=os.environ | audited(tmp_path), check=True)
    assert (heard in asked_outside(tmp_path)) == (heard is not None)
