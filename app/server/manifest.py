"""What a browser asks for in order to install the app as one of its own: a manifest and an icon."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Route

from headlight.app.theme import PAPER

ICON = Path(__file__).resolve().parents[2] / "assets" / "icon.svg"
MANIFEST_PATH, ICON_PATH = "/manifest.webmanifest", "/icon.svg"
MANIFEST = {
    "name": "Headlight",
    "short_name": "Headlight",
    "description": "See what every attention head of a Transformer attends to",
    "id": "/",
    "start_url": "/",
    "display": "standalone",
    "background_color": PAPER["light"],
    "theme_color": PAPER["light"],
    "icons": [{"src": ICON_PATH, "sizes": "any", "type": "image/svg+xml"}],
}


def _manifest(_request: Request) -> JSONResponse:
    return JSONResponse(MANIFEST, media_type="application/manifest+json")


def _icon(_request: Request) -> FileResponse:
    return FileResponse(ICON, media_type="image/svg+xml")


ROUTES = [Route(MANIFEST_PATH, _manifest), Route(ICON_PATH, _icon)]
