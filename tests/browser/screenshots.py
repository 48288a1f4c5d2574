"""python -m tests.browser.screenshots: the pictures in docs/pictures and the film in the README,
taken anew from the real app."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import sync_playwright

from headlight.app.live.build import main as build_page
from headlight.app.state.pages import PAGES
from tests.browser.conftest import Visit, launch
from tests.conftest import ROOT, serve

PICTURES = ROOT / "docs" / "pictures"
SIZE, WIDE, PHONE = (1280, 720), (1920, 1080), (390, 844)
COLOURS = 255  # of a picture, to keep it small
HIDDEN = "changes=encoder%3Dhide%3A3%3B+cross%3Dhide%3A3"  # the word "never"
OFF = "changes=cross.4.3%3Doff"
MORE = {  # name → address, size, scheme
    "change": (f"?{HIDDEN}", SIZE, "light"),
    "difference": (f"?{OFF}&shows=Difference", SIZE, "light"),
    "masks-off": ("?causal=false&kind=decoder&layer=2&head=1", SIZE, "light"),
    "present": ("?projector=true", SIZE, "light"),
    "dark": ("", WIDE, "dark"),
    "phone": ("", PHONE, "light"),
}
FRAME = (960, 540)  # of the film


def save(png: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    small = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(PICTURES / f"{name}.png", optimize=True)


@contextmanager
def visiting(browser, address: str, size=SIZE, scheme: str = "light") -> Iterator[Visit]:
    """Somebody who has answered the offer of a first lesson."""
    viewport = dict(zip(("width", "height"), size, strict=True))
    context = browser.new_context(viewport=viewport, color_scheme=scheme)
    context.add_init_script("localStorage.setItem('headlight lesson offered', 'yes')")
    yield Visit(context.new_page(), address)
    context.close()


def rest(page: BrowserPage, x: int = 2, y: int = 600) -> None:
    """Until tooltips are gone and what fades in is there."""
    page.mouse.move(x, y)
    page.wait_for_timeout(1200)


def of_pages(browser, address: str) -> None:
    for page in PAGES.values():
        with visiting(browser, address) as visit:
            visit.open(page.path)
            rest(visit.page)
            save(visit.page.screenshot(), page.key or "attention")
    for name, (path, size, scheme) in MORE.items():
        with visiting(browser, address, size, scheme) as visit:
            visit.open(path)
            rest(visit.page)
            save(visit.page.screenshot(), name)


def of_a_lesson(browser, address: str) -> None:
    with visiting(browser, address) as visit:
        visit.open("learn")
        visit.page.locator("[class*='st-key-lesson_row'] button").first.click()
        visit.settle()
        for _ in range(2):
            visit.page.get_by_role("button", name="Next").first.click()
            visit.settle()
        rest(visit.page)
        save(visit.page.screenshot(), "lesson")


def of_the_live_page(browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "en-de.html")
        build_page(["en-de", "--out", str(file)])
        with visiting(browser, "") as visit:
            visit.page.goto(file.as_uri())
            rest(visit.page)
            save(visit.page.screenshot(), "live-page")


def film(browser, address: str) -> None:
    """Point at a word, select a head, hide a word, present: some seconds each."""
    frames, lengths = [], []

    def shot(page: BrowserPage, milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append(picture.resize(FRAME, Image.Resampling.LANCZOS))
        lengths.append(milliseconds)

    with visiting(browser, address) as visit:
        page = visit.open("").page
        rest(page)
        shot(page, 2000)
        for at in (4, 7, 8):
            page.locator(".target span").nth(at).hover()
            page.wait_for_timeout(300)
            shot(page, 1100)
        box = page.locator(".stage").bounding_box()
        for x, y in ((0.85, 0.4), (0.35, 0.85), (0.62, 0.85)):
            page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
            visit.settle()
            page.wait_for_timeout(500)
            shot(page, 1100)
        page.locator(".source span").nth(2).click()
        page.wait_for_timeout(300)
        shot(page, 1100)
        page.keyboard.press("h")
        visit.settle()
        rest(page)
        shot(page, 3000)
        page.locator(".st-key-projector label").first.click()
        visit.settle()
        rest(page)
        shot(page, 2500)
    frames[0].save(
        PICTURES / "film.webp",
        save_all=True,
        append_images=frames[1:],
        duration=lengths,
        loop=0,
        quality=80,
        method=6,
    )


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with serve(ROOT) as address, sync_playwright() as playwright, launch(playwright) as browser:
        of_pages(browser, address)
        of_a_lesson(browser, address)
        of_the_live_page(browser)
        film(browser, address)


if __name__ == "__main__":
    main()
