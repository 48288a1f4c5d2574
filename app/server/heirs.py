"""Old addresses lead to the page that took their place, with all their parameters."""

import re
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headlight.app.server import renamed

PAGE = re.compile(r"/[\w-]*", re.ASCII)
# Path and parameter of an old address → the path that shows it now; the parameter is gone.
HEIRS = {("/family", ("implementations", "2017 to today")): "/lineage"}


class HeirsMiddleware:
    """Redirects old addresses. Streamlit's own switch of pages raises while widgets are bound to
    the address, so this happens before it (1.67)."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (heir := heir_of(scope["path"], scope["query_string"])):
            await RedirectResponse(heir, status_code=302)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def heir_of(path: str, query: bytes) -> str:
    """The address that took the place of one, or "". Of no page of ours it is "": a path such as
    //host would lead to another host."""
    if not PAGE.fullmatch(path):
        return ""
    old = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
    new_path, pairs = path, [(key, renamed.now(key, value)) for key, value in old]
    for pair in pairs:
        if heir := HEIRS.get((path, pair)):
            new_path, pairs = heir, [other for other in pairs if other != pair]
    if (new_path, pairs) == (path, old):
        return ""
    return f"{new_path}?{urlencode(pairs)}" if pairs else new_path
