"""The document that a browser opens: Streamlit's, with our style in it, so that nothing is drawn
before it. A style that comes with the page's elements is applied some 0.2 s after them."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.theme import DOCUMENT_STYLE

STYLE = f"<style>{DOCUMENT_STYLE}</style>".encode()
# What Streamlit draws into. Its own style is in the head, also what comes later: ours is behind.
ROOT = b'<div id="root"'
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
        start, body = None, b""

        async def styled(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if kind.startswith("text/html"):
                    start = message
                    return
            if start is None:  # a file, which may be large
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            if ROOT in body:
                body = body.replace(ROOT, STYLE + ROOT, 1)
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(body))
                del headers["etag"], headers["last-modified"]  # they are of the file alone
                start |= {"headers": headers.raw}
            await send(start)
            await send({"type": "http.response.body", "body": body})

        plain = [(name, value) for name, value in scope["headers"] if name not in PACKED]
        await self.app(scope | {"headers": plain}, receive, styled)
