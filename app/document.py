"""The document that a browser opens: Streamlit's, with our style in it, so that nothing is drawn
before it. A style that comes with the page's elements is applied some 0.2 s after them."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.theme import DOCUMENT_STYLE

STYLE = f"<style>{DOCUMENT_STYLE}</style>".encode()
# Below the body's beginning: what stands in its head, Streamlit's own style follows later.
BEGINNING = re.compile(rb"<body[^>]*>")
# A document that is asked for with these may come packed, or not at all.
PACKED = {b"accept-encoding", b"if-none-match", b"if-modified-since"}


class Document:
    """Puts the style into what is asked for as a document."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] == "http" and scope["method"] == "GET"
        if not reads or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        start, body = {}, b""

        async def styled(message: Message) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            whole = BEGINNING.sub(lambda tag: tag[0] + STYLE, body, count=1)
            headers = MutableHeaders(raw=start["headers"])
            if whole != body:
                headers["content-length"] = str(len(whole))
                del headers["etag"], headers["last-modified"]  # they are of the file alone
            await send(start)
            await send({"type": "http.response.body", "body": whole})

        plain = [(name, value) for name, value in scope["headers"] if name not in PACKED]
        await self.app(scope | {"headers": plain}, receive, styled)
