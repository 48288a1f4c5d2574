"""What stands between the network and Streamlit: whose pages may speak to the server, what of it is
closed, how much may be uploaded to it, and what a page of it may load."""

import re
import sys
from collections import Counter
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from headlight.app.server import arguments
from headlight.app.server.limits import LARGEST_UPLOAD, TOO_LARGE
from headlight.app.server.streamlit_internals import config, runtime

REFUSED = "Pages on other sites may not use this server."
FULL = "Too much is being uploaded at once. Please try again in a few minutes."
OF_ONE = "This page has uploaded as much as it may. Remove a file there, or reload the page."
MOST_UPLOADED = 2**29  # bytes over all sessions; five files of the largest size
MOST_OF_ONE = 2 * LARGEST_UPLOAD * 2**20  # of a session: a file, and another in its place
UPLOAD = re.compile(r".*/upload_file/([^/]+)/[^/]+")  # of Streamlit (1.67): session, file
# Streamlit's own addresses: one runs the whole script for every caller, the other counts sessions.
# Closed to all, because behind a proxy everybody seems to be on this machine.
CLOSED = ("/_stcore/script-health-check", "/_stcore/metrics")
READING = {"GET", "HEAD", "OPTIONS"}
HOST = re.compile(r"[\w.:\[\]-]+")  # checks a Host header before it goes into the policy
# Streamlit's page, its components and BertViz's page need inline scripts and styles, so these are
# allowed. Nothing is loaded from or sent to other hosts, and no other site may frame the page, but
# those that whoever starts the app names.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "frame-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}


class SecurityMiddleware:
    """Refuses requests from pages of other sites, and adds a content security policy to every
    response.

    Streamlit refuses a WebSocket from another site, too, but first asks an outside host for its own
    address (1.67), which may be out of reach. It keeps an uploaded file as long as the session
    lives.
    """

    def __init__(self, app: ASGIApp):
        self.app = app
        self.coming: Counter[str] = Counter()  # session → bytes of its uploads in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(policies(headers.get("host", "")))
            await send(message)

        changes = scope["type"] == "websocket" or scope["method"] not in READING
        if changes and not is_own(headers.get("origin"), headers.get("host", "")):
            log_refusal(headers["origin"], headers.get("host", ""))
            refusal = PlainTextResponse(REFUSED, 403)
            answer = refusal if scope["type"] == "http" else WebSocketClose(1008, REFUSED)
            await answer(scope, receive, guarded)
            return
        if scope["path"].endswith(CLOSED):
            await PlainTextResponse("Not found", 404)(scope, receive, guarded)
            return
        if length(headers) > LARGEST_UPLOAD * 2**20:
            await PlainTextResponse(TOO_LARGE, 413)(scope, receive, guarded)
            return
        coming = length(headers) if scope.get("method") == "PUT" else 0
        match = UPLOAD.fullmatch(scope["path"])
        session = match[1] if match else ""
        if coming and (refusal := self.refusal(session, coming)):
            await PlainTextResponse(refusal, 413)(scope, receive, guarded)
            return
        self.coming[session] += coming
        try:
            await self.app(scope, receive, guarded)
        finally:
            self.coming[session] -= coming
            self.coming += Counter()  # forgets the sessions without any

    def refusal(self, session: str, size: int) -> str:
        """Why a session cannot upload so many bytes more; "" if it can."""
        held = Counter(uploaded()) + self.coming
        if held[session] + size > MOST_OF_ONE:
            return OF_ONE
        if held.total() + size > MOST_UPLOADED:
            remove_left()
            held = Counter(uploaded()) + self.coming
        return FULL if held.total() + size > MOST_UPLOADED else ""


def length(headers: Headers) -> int:
    """The length of a request in bytes; if it is not given, the largest allowed upload."""
    content_length = headers.get("content-length", "")
    return int(content_length) if content_length.isdecimal() else LARGEST_UPLOAD * 2**20


def uploaded() -> dict[str, int]:
    """Session → bytes of its uploaded files that Streamlit holds."""
    return {
        session: sum(len(file.data) for file in list(files.values()))
        for session, files in list(_uploads().items())
    }


def remove_left() -> None:
    """Remove the files of sessions whose page is closed: Streamlit keeps them until a page is
    closed again (1.67)."""
    for session in list(_uploads()):
        if not runtime.get_instance().is_active_session(session):
            runtime.get_instance().uploaded_file_mgr.remove_session_files(session)


def _uploads() -> dict:
    """Session → its files by name, as Streamlit has them (1.67)."""
    if not runtime.exists():
        return {}
    files = runtime.get_instance().uploaded_file_mgr
    return files.file_storage  # pyright: ignore[reportAttributeAccessIssue]  # of the class it uses


def is_own(origin: str | None, host: str) -> bool:
    """Whether a request comes from this server's pages, from an origin that Streamlit's
    configuration allows, or from no page at all."""
    if origin is None or not config.get_option("server.enableCORS"):
        return True
    return urlsplit(origin).netloc == host or origin in config.get_option(
        "server.corsAllowedOrigins"
    )


@lru_cache(maxsize=100)  # each is said once
def log_refusal(origin: str, host: str) -> None:
    """To a visitor the page only stays grey."""
    print(
        f"Refused: a page of {origin[:80]!a} asked for the host {host[:80]!a}. If that "
        "page is ours, the proxy must pass Host on as the browser sent it; see docs/serve.md.",
        file=sys.stderr,
        flush=True,
    )


def policies(host: str) -> dict[str, str]:
    """The security headers of a response, for requests to `host`."""
    policy = dict(POLICY)
    if HOST.fullmatch(host):  # some browsers do not count WebSockets as 'self'
        policy["connect-src"] += f" ws://{host} wss://{host}"
    hosts = arguments.given().embed_in
    policy["frame-ancestors"] = " ".join((policy["frame-ancestors"], *hosts))
    # X-Frame-Options knows no list; the policy counts alone where it is left out.
    return ({} if hosts else {"X-Frame-Options": "SAMEORIGIN"}) | {
        "Content-Security-Policy": "; ".join(
            f"{name} {sources}" for name, sources in policy.items()
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",  # the address contains the user's text
    }
