"""Behind a proxy, each visitor counts by their own address, and nobody can make one up."""

import http.client
import re
from contextlib import contextmanager
from threading import Thread
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from headlight.app.server import lan, replicas
from headlight.app.server.rooms import LETTERS
from tests.app.test_killed import serving
from tests.app.test_serve import needs_nginx, nginx, running_nginx
from tests.conftest import ROOT
from tests.servers import free_port
from tests.waiting import wait_until

pytestmark = needs_nginx
DOCUMENTED = re.search(r"```nginx\n(.+?)```", (ROOT / "docs" / "serve.md").read_text(), re.S)[1]
FORGED = {"X-Forwarded-For": "203.0.113.7, 203.0.113.8"}
HEAD = """daemon off; worker_processes 1; error_log stderr error; pid {folder}/pid;
events {{}}
http {{
access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
server {{ listen 127.0.0.1:{port};
"""


@contextmanager
def documented(behind: str):
    """The address of nginx with the lines of the documentation, before an app."""
    lines = DOCUMENTED.replace("http://127.0.0.1:8501", behind)
    assert lines != DOCUMENTED
    head = lambda port, folder: HEAD.format(folder=folder, port=port) + lines + "}}"  # noqa: E731
    with running_nginx(head) as (address, _):
        yield address


@contextmanager
def counting(believed: str, monkeypatch):
    """The port of a server that answers with the address by which it counts a visitor."""
    monkeypatch.setenv(lan.BELIEVED, believed)
    routes = [Route("/", lambda request: PlainTextResponse(request.client.host))]
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=port, log_level="error"))
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield port
    finally:
        server.should_exit = True
        thread.join()


def ask(address: str, source: str, path: str = "/", **headers: str) -> tuple[int, str]:
    """Status and text of the answer to somebody with an address of their own."""
    host, port = urlsplit(address).netloc.split(":")
    connection = http.client.HTTPConnection(host, int(port), 20, source_address=(source, 0))
    connection.request("GET", path, headers=FORGED | headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("named", ["", "127.0.0.1", "192.0.2.1, 127.0.0.0/30"])
def test_each_visitor_is_counted_by_their_own_address(processes, named, monkeypatch):
    """Where the proxy is not named, all behind it are one, and nobody else is believed either."""
    monkeypatch.setenv(lan.PROXY, named)
    believed = replicas.Service(1, processes, []).environment[lan.BELIEVED]
    visitors = "127.0.0.5", "127.0.0.6", "127.0.0.1"
    with counting(believed, monkeypatch) as port, nginx({"replica1": port}) as inner:
        direct = inner if processes > 1 else f"http://127.0.0.1:{port}"
        with documented(direct) as outer:
            seen = [ask(outer, each)[1] for each in visitors]
        assert seen == [*(visitors if named else ["127.0.0.1"] * 3)]
        assert [ask(direct, each)[1] for each in visitors[:2]] == [*visitors[:2]]


def test_a_proxy_that_is_none_is_said_in_a_sentence(monkeypatch, capsys):
    from headlight.app import command
    from headlight.app.server import serve

    monkeypatch.setenv(lan.PROXY, "nginx;")
    sentence = "HEADLIGHT_PROXY is 'nginx;'. Give the proxy's address, such as 127.0.0.1."
    assert serve.main(["--port", str(free_port())]) == 1
    assert command.main(["--port", str(free_port())]) == 2
    assert capsys.readouterr().err.splitlines() == [sentence] * 2


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
def test_tries_of_one_student_hit_nobody_else(models, processes):
    with (
        serving(models, processes, HEADLIGHT_PROXY="127.0.0.1") as served,
        documented(served.running.address) as address,
    ):
        names = [*served.led()] if processes > 1 else [""]

        def tries(source: str, count: int) -> list[int]:
            return [
                ask(
                    address,
                    source,
                    f"/room/AAAA{LETTERS[i % 20]}",
                    **{"X-Forwarded-For": f"203.0.113.{i}", "Cookie": f"headlight={name}"},
                )[0]
                for name in names
                for i in range(count)
            ]

        assert tries("127.0.0.5", 25) == [*[404] * 20, *[429] * 5] * len(names)
        assert tries("127.0.0.6", 1) == [404] * len(names)
