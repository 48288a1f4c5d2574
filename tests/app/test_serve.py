"""A class is served: by one process, or by several behind nginx."""

import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from headlight.app.server import lan, limits, serve
from headlight.app.server import replicas as replicas_module
from tests.servers import free_port
from tests.waiting import wait_until

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


def listens(port) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def named(name):
    """A server that answers with its name, and its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(name.encode())

        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{len(body)} bytes".encode())

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@contextmanager
def nginx(replicas):
    written = partial(replicas_module.configuration, replicas)
    with running_nginx(written) as (address, folder):
        yield address
    assert not folder.exists()


@contextmanager
def running_nginx(configuration):
    """The address of nginx with what a function of its port and folder writes, and that folder."""
    port, folder = free_port(), replicas_module.folder_for_nginx()
    file = folder / "nginx.conf"
    file.write_text(configuration(port, folder))
    process = replicas_module.Child(["nginx", "-p", folder, "-e", "stderr", "-c", file], [folder])
    try:
        wait_until(listens, port)
        yield f"http://127.0.0.1:{port}", folder
    finally:
        process.terminate()
        process.wait(10)
        process.end_group()


def visit(address, cookie=""):
    """Who answered, and the cookies that were given."""
    request = urllib.request.Request(address, headers={"Cookie": cookie} if cookie else {})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read().decode(), "; ".join(response.headers.get_all("Set-Cookie", []))


@needs_nginx
def test_a_visitor_finds_the_same_process_again():
    with (
        named("replica1") as first,
        named("replica2") as second,
        nginx({"replica1": first, "replica2": second}) as address,
    ):
        visits = [visit(address) for _ in range(30)]
        assert {name for name, _ in visits} == {"replica1", "replica2"}
        for name, given in visits:
            assert given.startswith(f"headlight={name};") and "HttpOnly" in given
            assert visit(address, given.partition(";")[0]) == (name, "")


@needs_nginx
def test_a_visitor_of_a_process_that_is_gone_is_given_another():
    with named("replica3") as port, nginx({"replica3": port}) as address:
        name, given = visit(address, "headlight=replica1")
        assert name == "replica3" and given.startswith("headlight=replica3;")
        hostile = 'headlight=127.0.0.1:22"{}'
        assert visit(address, hostile)[0] == "replica3"


def put(address, size):
    """Status and text of the answer to an upload of so many bytes."""
    request = urllib.request.Request(address, bytes(size), method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@needs_nginx
def test_an_upload_comes_through_nginx_and_a_too_large_one_gets_our_sentence():
    """It is more than nginx holds in memory."""
    with named("replica1") as port, nginx({"replica1": port}) as address:
        size = limits.LARGEST_UPLOAD * 2**20
        assert put(address, size) == (200, f"{size} bytes")
        assert put(address, size + 1) == (413, limits.TOO_LARGE)


def test_every_address_names_this_machine_and_none_itself_alone():
    addresses = lan.addresses(8501)
    assert f"http://{socket.gethostname()}:8501" == addresses[-1]
    assert not any("127." in one or "localhost" in one for one in addresses[:-1])


def test_the_environment_names_the_address_that_students_open(monkeypatch, capsys):
    """Such as that of a proxy, or of the machine that a container runs on."""
    monkeypatch.setenv(lan.ADDRESS, "https://headlight.example.org")
    assert lan.addresses(8501) == ["https://headlight.example.org"]
    monkeypatch.setenv(lan.ADDRESS, "example.org")
    assert serve.main(["--port", str(free_port())]) == 1
    assert "HEADLIGHT_ADDRESS is 'example.org'. Give" in capsys.readouterr().err


def test_the_qr_code_is_a_picture_of_its_text():
    first, other = (lan.qr_code(f"http://192.168.1.{n}:8501") for n in (20, 21))
    root = ElementTree.fromstring(first)
    assert root.tag.endswith("svg") and root.get("width") == root.get("height")
    assert first != other


@pytest.fixture
def started(monkeypatch):
    """A service that leads and starts in name alone, and whom it led visitors to."""
    led = []

    def start(service):
        service.started += 1
        process = SimpleNamespace(poll=lambda: None, returncode=-9, end_group=lambda: None)
        number = service.started
        replica = replicas_module.Replica(f"replica{number}", number, process, number < 4)
        service.replicas.append(replica)

    monkeypatch.setattr(replicas_module.Service, "_lead", lambda self, ready: led.append([*ready]))
    monkeypatch.setattr(replicas_module.Service, "start", start)

    def made(count):
        service = replicas_module.Service(1, count, [])
        service.until_ready()
        return service, led

    return made


def test_the_process_that_stands_ready_takes_the_place_of_one_that_died(started):
    """At once; those who still have theirs keep it, and another one is started to stand ready."""
    service, led = started(2)
    assert len(service.replicas) == 3 and led == [["replica1", "replica2"]]
    service.replicas[0].process.poll = lambda: -9
    service.look()
    assert led[-1] == ["replica2", "replica3"]
    assert [one.name for one in service.replicas] == ["replica2", "replica3", "replica4"]
    service.replicas[0].process.poll = lambda: -9  # replica 4 is not ready yet
    service.look()
    assert led[-1] == ["replica3"] and len(service.replicas) == 3
    service.replicas[1].is_ready = True
    service.look()
    assert led[-1] == ["replica3", "replica4"]
    assert len(started(1)[0].replicas) == 1  # one alone has no other beside it


def test_the_folder_of_a_process_goes_with_it_even_if_we_are_killed(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "file").touch()
    code = """
import os, pathlib, sys
from headlight.app.server.replicas import Child
Child(["sleep", "60"], [pathlib.Path(sys.argv[1])])
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, folder], cwd=tmp_path, check=False)
    assert done.returncode == -9
    wait_until(lambda: not folder.exists())


def test_without_nginx_several_processes_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert serve.main(["--port", str(free_port()), "--replicas", "2"]) == 1
    assert "apt-get install nginx" in capsys.readouterr().err
