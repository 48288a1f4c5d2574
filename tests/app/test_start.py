"""Streamlit's configuration lies beside the script, and is read wherever one stands; and who may
speak to the server."""

import http.client
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit import config
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from headlight.app import command, startup, theme
from headlight.app.server import lan, limits, security
from headlight.app.server.inject_style import InjectStyle
from headlight.app.server.security import SecurityMiddleware, is_own
from tests.conftest import ROOT, run_apart, serve
from tests.servers import asked_outside, audited

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A server that was started from another folder, and what says whom it asked."""
    folder = tmp_path_factory.mktemp("audit")
    with serve(ROOT, cwd=Path("/"), **audited(folder)) as address:
        yield address.removeprefix("http://"), lambda: asked_outside(folder)


def answer(host: str, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(host, timeout=20)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def listening(port: int) -> set[str]:
    """Addresses that somebody listens on, as Linux writes them."""
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            for line in list(lines)[1:]:
                address, state = line.split()[1], line.split()[3]
                host, at = address.split(":")
                if state == "0A" and int(at, 16) == port:
                    found.add(host)
    return found


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="asks Linux who listens")
def test_started_from_another_folder_it_listens_to_this_machine_alone(elsewhere):
    port = int(elsewhere[0].rpartition(":")[2])
    assert listening(port) == {"0100007F"}  # 127.0.0.1, its bytes turned round


def test_a_page_of_another_site_may_not_speak_to_the_server(elsewhere):
    """It is refused at once, and nobody is asked who the server is."""
    host, asked = elsewhere
    own = answer(host, "GET", "/_stcore/stream", Origin=f"http://{host}", **UPGRADE)
    assert own.status == 101
    for origin in ("evil.example", "", f"{host}.evil.example", "127.0.0.1"):
        origin = f"http://{origin}" if origin else "null"
        refused = answer(host, "GET", "/_stcore/stream", Origin=origin, **UPGRADE)
        assert refused.status == 403, origin
        upload = answer(host, "PUT", "/_stcore/upload_file/a/b", Origin=origin)
        assert upload.status == 403 and b"other sites" in upload.read()
        assert "default-src" in upload.headers["Content-Security-Policy"]
    assert asked() == []


def test_a_refusal_is_a_line_in_the_log_once(capsys):
    """To the visitor of a proxy that changes Host the page only stays grey."""
    headers = [(b"origin", b"https://a.example\x1b" + b"x" * 5000), (b"host", b"127.0.0.1:8501")]
    sent = []

    async def send(message):
        sent.append(message["type"])

    for _ in range(2):
        scope = {"type": "websocket", "path": "/_stcore/stream", "headers": headers}
        run_apart(SecurityMiddleware(None)(scope, None, send))
    (line,) = capsys.readouterr().err.splitlines()
    assert "https://a.example" in line and "127.0.0.1:8501" in line and "Host" in line
    assert line.isprintable() and len(line) <= 300
    assert sent == ["websocket.close"] * 2


def test_every_page_says_what_it_may_load(elsewhere):
    for path in ("/", "/heads", "/nowhere", "/_stcore/health"):
        headers = answer(elsewhere[0], "GET", path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'self'" in policy
        assert "http:" not in policy and "eval" not in policy and "*" not in policy
        assert headers["X-Frame-Options"] == "SAMEORIGIN"


def test_the_sites_that_are_named_may_frame_the_app(monkeypatch):
    named = ["--embed-in", "https://Moodle.example/", "--models", "x", "--embed-in=http://[::1]:80"]
    monkeypatch.setattr(sys, "argv", ["main.py", *named])
    headers = security.policies("127.0.0.1")
    allowed = "frame-ancestors 'self' https://moodle.example http://[::1]:80"
    assert headers["Content-Security-Policy"].endswith(allowed)
    assert "X-Frame-Options" not in headers


@pytest.mark.parametrize("text", [
    "", "*", "https://*", "https://*.a.example", "a.example", "https://", "https://a.example/x",
    "https://a.example; script-src *", "https://a.example http://b.example", "data:", "ftp://a",
    "https://u@a.example", "https://a_.example", "https://ä.example", "https://a:123456",
    "https://a.example\nX: y",
])  # fmt: skip
def test_what_is_no_site_is_refused_in_a_sentence(text, capsys):
    with pytest.raises(SystemExit):
        command.main(["--embed-in", text])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("headlight: error: argument --embed-in: ")
    assert said.endswith("such as https://moodle.example")


def test_a_browser_is_told_how_to_install_the_app(elsewhere):
    host, _ = elsewhere
    page = answer(host, "GET", "/heads", Accept="text/html").read().decode().partition("<body")[0]
    (path,) = re.findall('<link rel="manifest" href="([^"]+)">', page)
    told = json.loads(answer(host, "GET", path).read())
    (icon,) = told["icons"]
    found = answer(host, "GET", icon["src"])
    assert found.headers["Content-Type"].startswith(icon["type"])
    assert found.read().startswith(b"<svg")
    assert "default-src" in found.headers["Content-Security-Policy"]
    assert told["start_url"] == "/" and told["display"] == "standalone"


def test_a_document_has_our_style_whoever_packs_it_or_kept_another(elsewhere):
    """It stands below what Streamlit has in its head, and above what is drawn."""
    asks = {"Accept": "text/html,*/*", "Accept-Encoding": "gzip"}
    for path in ("/", "/heads"):
        document = answer(elsewhere[0], "GET", path, **asks)
        text = document.read().decode()
        assert theme.DOCUMENT_STYLE in text.partition("<body")[2].partition('<div id="root"')[0]
        assert int(document.headers["Content-Length"]) == len(text.encode())
        assert document.headers["ETag"] is None and "default-src" in str(document.headers)
    plain = answer(elsewhere[0], "GET", "/")
    assert theme.DOCUMENT_STYLE not in plain.read().decode()
    kept = {"If-None-Match": plain.headers["ETag"]}
    assert answer(elsewhere[0], "GET", "/", **kept).status == 304
    assert answer(elsewhere[0], "GET", "/", **asks, **kept).status == 200
    script = answer(elsewhere[0], "GET", "/_stcore/health", **asks)
    assert script.read() == b"ok"


@pytest.fixture
def asgi():
    """What a middleware sends around an app that answers with these chunks."""

    def through(middleware, scope, headers=(), chunks=(b"",)):
        sent = []

        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
            for i, chunk in enumerate(chunks, 1):
                more = i < len(chunks)
                await send({"type": "http.response.body", "body": chunk, "more_body": more})

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/"} | scope
        run_apart(middleware(app)(scope, None, send))
        return dict(sent[0]["headers"]), [message["body"] for message in sent[1:]]

    return through


@pytest.mark.parametrize("kind", ["text/html", "application/zip"])
def test_what_is_no_document_of_ours_is_left_as_it_is(asgi, kind):
    """An exported page, and a file, which goes on as it comes."""
    chunks = [b"<body>a page", b" of one's own</body>"]
    asks, given = [(b"accept", b"text/html")], [(b"content-type", kind.encode()), (b"etag", b"1")]
    headers, bodies = asgi(InjectStyle, {"headers": asks}, given, chunks)
    assert headers[b"etag"] == b"1"
    assert bodies == ([b"".join(chunks)] if kind == "text/html" else chunks)


def test_a_host_that_is_none_stays_out_of_the_policy(asgi):
    headers, _ = asgi(SecurityMiddleware, {"headers": [(b"host", b"x; script-src *")]})
    policy = headers[b"content-security-policy"].decode()
    assert "x;" not in policy and policy.count("script-src") == 1


def test_uploads_are_bounded_over_all_sessions(monkeypatch):
    """Those that are there, and those that are on their way; one that does not say how large it
    is counts as the largest."""
    taken, held = [], {}
    monkeypatch.setattr(security, "MOST_UPLOADED", 100)
    monkeypatch.setattr(security, "uploaded", lambda: held)
    guarded = SecurityMiddleware(lambda *asked: upload(*asked))

    async def put(size):
        statuses = []

        async def send(message):
            statuses.append(message.get("status"))

        headers = [] if size is None else [(b"content-length", str(size).encode())]
        scope = {"type": "http", "method": "PUT", "path": "/", "headers": headers}
        await guarded(scope, None, send)
        return statuses[0]

    async def upload(scope, receive, send):
        taken.append(dict(scope["headers"]).get(b"content-length"))
        if len(taken) == 1:  # another one while this is on its way
            assert await put(60) == 413
        await send({"type": "http.response.start", "status": 204, "headers": []})

    found = [run_apart(put(size)) for size in (60, 60, 101, None)]
    held["other"] = 50
    assert found + [run_apart(put(size)) for size in (50, 51)] == [204, 204, 413, 413, 204, 413]
    assert taken == [b"60", b"60", b"50"]


def test_what_is_too_large_is_refused_in_a_sentence(elsewhere):
    too_large = {"Content-Length": str(limits.LARGEST_UPLOAD * 2**20 + 1)}
    refused = answer(elsewhere[0], "PUT", "/_stcore/upload_file/a/b", **too_large)
    assert refused.status == 413 and refused.read().decode() == limits.TOO_LARGE


def test_nobody_may_run_the_script_or_count_sessions_by_an_address_of_streamlit_s(models):
    """Even where Streamlit is told to allow it."""
    with serve(models, STREAMLIT_SERVER_SCRIPT_HEALTH_CHECK_ENABLED="true") as address:
        host = address.removeprefix("http://")
        for path in ("/_stcore/script-health-check", "/_stcore/metrics"):
            for written in (path, f"{path}?families=sessions", path.replace("_", "%5f", 1)):
                for method in ("GET", "HEAD", "OPTIONS"):
                    assert answer(host, method, written).status == 404, written
        assert answer(host, "GET", "/_stcore/health").status == 200


@pytest.mark.parametrize("ends", ["ok", "timeout ok", "error"])
def test_a_class_is_answered_once_the_first_page_is_drawn(monkeypatch, ends):
    """A slow machine gets another try; where the page fails, the server does not start."""
    left = ends.split()

    async def run():
        why = left.pop(0)
        return why == "ok", why

    instance = SimpleNamespace(does_script_run_without_error=run)
    monkeypatch.setattr(startup.runtime, "get_instance", lambda: instance)
    monkeypatch.setattr(startup, "open_browser", lambda: None)
    monkeypatch.setenv(lan.ADDRESS, "http://192.0.2.1:8501")

    async def served():
        async with startup.lifespan(None):
            assert not left

    fails = pytest.raises(RuntimeError, match="first page")
    with fails if ends == "error" else nullcontext():
        run_apart(served())
    assert not left


def test_a_session_has_a_bound_of_its_own_and_what_one_left_makes_room(monkeypatch):
    files, active = MemoryUploadedFileManager("/upload"), {"one", "other"}
    for session, size in (("one", 7), ("other", 20)):
        files.add_file(session, UploadedFileRec(session, "pack.zip", "", bytes(size)))
    instance = SimpleNamespace(uploaded_file_mgr=files, is_active_session=active.__contains__)
    monkeypatch.setattr(security.runtime, "exists", lambda: True)
    monkeypatch.setattr(security.runtime, "get_instance", lambda: instance)
    monkeypatch.setattr(security, "MOST_UPLOADED", 40)
    monkeypatch.setattr(security, "MOST_OF_ONE", 30)
    assert security.uploaded() == {"one": 7, "other": 20}
    guard = SecurityMiddleware(None)
    assert guard.refusal("one", 24) == security.OF_ONE and not guard.refusal("one", 13)
    assert guard.refusal("one", 14) == security.FULL
    guard.coming["one"] = 13
    assert guard.refusal("one", 11) == security.OF_ONE and guard.refusal("one", 1) == security.FULL
    active.discard("other")
    assert not guard.refusal("one", 10) and security.uploaded() == {"one": 7}


def test_what_streamlit_s_configuration_allows_is_allowed(monkeypatch):
    values = {"server.enableCORS": True, "server.corsAllowedOrigins": ["https://a.example"]}
    monkeypatch.setattr(config, "get_option", values.get)
    assert is_own("https://a.example", "b.example") and not is_own("https://c.example", "b.example")
    assert is_own(None, "b.example") and is_own("https://b.example", "b.example")
    values["server.enableCORS"] = False
    assert is_own("https://c.example", "b.example")


RUNS_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path

file = {file!r}
script = open(file, encoding="utf-8").read().partition("from headlight")[0]
code, before = compile(script, file, "exec"), set(sys.path)
sys.setswitchinterval(1e-6)

def run(_):
    with modified_sys_path(file):
        exec(code, {{"__file__": file}})

with ThreadPoolExecutor(8) as sessions:
    list(sessions.map(run, range(4000)))
missing, first = before - set(sys.path), len(sys.path)
run(0)
print(sorted(missing), len(sys.path) - first)
"""


def test_sessions_that_run_at_once_leave_the_path_whole():
    """Without an entry of it the server cannot import what it has not imported yet."""
    code = RUNS_AT_ONCE.format(file=str(ROOT / "app" / "router.py"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.stdout.strip() == "[] 0", done.stderr


@pytest.mark.parametrize("headless", [True, False])
def test_the_app_is_shown_where_there_is_a_screen(monkeypatch, headless):
    values = {"server.headless": headless, "server.address": "0.0.0.0", "browser.serverPort": 8501}
    monkeypatch.setattr(config, "get_option", lambda name: values.get(name, ""))
    shown = []
    monkeypatch.setattr(startup.webbrowser, "open", shown.append)
    startup.open_browser()
    assert shown == ([] if headless else ["http://localhost:8501"])


IMPORTED_LATER = """
import sys
from headlight.app import startup
startup.import_ahead()
before = set(sys.modules)
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("app/router.py", default_timeout=60).run()
assert not app.exception, app.exception
later = [name.partition(".")[0] for name in set(sys.modules) - before]
print(sorted({name for name in later if later.count(name) > 20}))
"""


def test_the_first_page_imports_next_to_nothing():
    """All that takes long is imported while the browser starts."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED_LATER], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
