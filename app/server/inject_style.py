"""Puts our style into the HTML document that Streamlit serves, so that nothing is drawn without it:
a style sent as a page element is applied some 0.2 s late. And keeps the words of the model, and
texts that change, from a browser that translates the page; see `explain` of frame.py."""

from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.app.server.first_screen import first_screen
from headlight.app.server.manifest import MANIFEST_PATH
from headlight.app.theme import DOCUMENT_STYLE

STYLE = f"<style>{DOCUMENT_STYLE}</style>".encode()
SCRIPT = (Path(__file__).parent / "translation.js").read_bytes()
# The language of the page, as Streamlit says it (1.67).
LANGUAGE = b'<html lang="en"'
HEAD_END = b"</head>"
MANIFEST = f'<link rel="manifest" href="{MANIFEST_PATH}">'.encode()
# Streamlit renders into this element. Its styles, also later ones, go into the head; ours follows
# them.
ROOT = b'<div id="root"'
# With these request headers the document may come compressed, or as 304 without a body.
PACKED = {b"accept-encoding", b"if-none-match", b"if-modified-since"}


class InjectStyle:
    """Middleware that changes HTML documents."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] == "http" and scope["method"] == "GET"
        if not reads or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        first = first_screen(scope.get("path", ""), scope.get("query_string", b""))
        start, body = None, b""

        async def styled(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if kind.startswith("text/html"):
                    start = message
                    return
            if start is None:  # a file, which may be large: passed on unbuffered
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            if ROOT in body:
                body = body.replace(LANGUAGE, LANGUAGE + b' translate="no"', 1)
                body = body.replace(HEAD_END, MANIFEST + HEAD_END, 1)
                body = body.replace(
                    ROOT, STYLE + b"<script>" + SCRIPT + b"</script>" + first + ROOT, 1
                )
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(body))
                del headers["etag"], headers["last-modified"]  # they describe the original file
                start = {**start, "headers": headers.raw}
            await send(start)
            await send({"type": "http.response.body", "body": body})

        plain = [(name, value) for name, value in scope["headers"] if name not in PACKED]
        await self.app({**scope, "headers": plain}, receive, styled)
