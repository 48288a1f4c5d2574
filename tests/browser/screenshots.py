"""python -m tests.browser.screenshots: the pictures in assets/screenshots, taken anew."""

import itertools

from playwright.sync_api import sync_playwright

from tests.browser.conftest import PAGES, Visit, launch
from tests.conftest import ROOT, serve

WAYS = {  # name → width in pixels, colour scheme, projector mode
    "": (1280, "light", False),
    "-dark": (1920, "dark", False),
    "-projector": (1920, "light", True),
    "-phone": (390, "light", False),
}
WHAT_IF = "changes=cross.2.2%3Doff%3B+encoder%3Dhide%3A3%3B+cross%3Dhide%3A3"
MORE = {"what-if": WHAT_IF, "what-if-difference": f"{WHAT_IF}&shows=Difference"}
HEAD = "kind=cross&layer=2&head=2&at=Softmax"


def main() -> None:
    with serve(ROOT) as address, sync_playwright() as playwright, launch(playwright) as browser:
        for path, (way, looks) in itertools.product(PAGES.values(), WAYS.items()):
            if way and path:
                continue
            width, scheme, projector = looks
            size = {"width": width, "height": max(720, width * 9 // 16)}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            address_of = f"{path}?{HEAD}&projector={str(projector).lower()}"
            visit = Visit(context.new_page(), address).open(address_of)
            if not path:
                visit.page.locator(".target span").nth(4).click()
            visit.page.wait_for_timeout(1000)
            file = ROOT / "assets" / "screenshots" / f"{path or 'attention'}{way}.png"
            visit.page.screenshot(path=file)
            context.close()
        for name, query in MORE.items():
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            Visit(page, address).open(f"?{HEAD}&{query}")
            page.wait_for_timeout(1000)
            page.screenshot(path=ROOT / "assets" / "screenshots" / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main()
