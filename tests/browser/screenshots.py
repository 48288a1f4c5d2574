"""python -m tests.browser.screenshots: the pictures in docs/pictures and the film in the README,
taken anew from the real app."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Locator, sync_playwright
from playwright.sync_api import Page as BrowserPage

from headlight.app.live.build import main as build_page
from headlight.app.server.checked_file import YOURS_PATH
from headlight.app.state.pages import MENU, PAGES
from tests.browser.conftest import Visit, launch
from tests.conftest import ROOT, serve

PICTURES = ROOT / "docs" / "pictures"
SIZE, PHONE = (1280, 720), (390, 844)
MORE = {  # name → address, size, scheme
    "present": ("?projector=true", SIZE, "light"),
    "dark": ("", SIZE, "dark"),
    "phone": ("", PHONE, "light"),
}
MINE = """def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -float("inf"))
    return scores.softmax(-1) @ v
"""
AT_REST = (2, 600)  # of the pointer: it points at nothing there
POINTER = [(0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12)]
STEPS, STEP = 8, 40  # frames of a way of the pointer, and milliseconds of each
WAITING = 1100  # milliseconds to read a frame, if nothing else is said


def save(png: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # smallest, and true to small spots of colour, which the default merges
    small = picture.quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    small.save(PICTURES / f"{name}.png", optimize=True)


@contextmanager
def visiting(browser, address: str, size=SIZE, scheme: str = "light") -> Iterator[Visit]:
    viewport = dict(zip(("width", "height"), size, strict=True))
    context = browser.new_context(viewport=viewport, color_scheme=scheme)
    yield Visit(context.new_page(), address)
    context.close()


def rest(page: BrowserPage) -> None:
    """Until tooltips are gone and what fades in is there."""
    page.mouse.move(*AT_REST)
    page.wait_for_timeout(1200)


@contextmanager
def taken(browser, address: str, name: str, *options) -> Iterator[Visit]:
    """A visit, of which a picture is taken in the end."""
    with visiting(browser, address, *options) as visit:
        yield visit
        rest(visit.page)
        save(visit.page.screenshot(), name)


def of_pages(browser, address: str) -> None:
    every = {page.key: (page.path, SIZE, "light") for page in PAGES.values()}
    for name, (path, *options) in (every | MORE).items():
        with taken(browser, address, name, *options) as visit:
            visit.open(path)


def of_a_lesson(browser, address: str) -> None:
    with taken(browser, address, "lesson") as visit:
        visit.open("learn")
        visit.page.locator(".st-key-lesson_cards button").first.click()
        visit.settle()
        for _ in range(2):
            visit.page.get_by_role("button", name="Next").first.click()
            visit.settle()


def of_a_file(browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "my_attention.py")
        file.write_text(MINE, encoding="utf-8")
        picture = next(page.picture for page in MENU if page.key == YOURS_PATH)
        check = ["--check", str(file)]
        with serve(ROOT, arguments=check) as at, taken(browser, at, YOURS_PATH) as visit:
            visit.open(YOURS_PATH)
            visit.page.locator(picture).wait_for(timeout=60_000)


def of_the_live_page(browser) -> None:
    with tempfile.TemporaryDirectory() as folder, taken(browser, "", "live-page") as visit:
        file = Path(folder, "en-de.html")
        build_page(["en-de", "--out", str(file)])
        visit.page.goto(file.as_uri())


class Film:
    """Frames of a page, with the pointer, which a screenshot leaves out."""

    def __init__(self, visit: Visit):
        self.visit, self.at = visit, AT_REST
        self.frames, self.milliseconds = [], []

    def show(self, milliseconds: int = WAITING) -> None:
        """The page as it is now."""
        self.shot = Image.open(io.BytesIO(self.visit.page.screenshot())).convert("RGB")
        self._frame(milliseconds)

    def _frame(self, milliseconds: int) -> None:
        frame = self.shot.copy()
        pointer = [(self.at[0] + x, self.at[1] + y) for x, y in POINTER]
        ImageDraw.Draw(frame).polygon(pointer, "black", "white", 2)
        self.frames.append(frame)
        self.milliseconds.append(milliseconds)

    def point(self, x: float, y: float) -> None:
        (left, top), mouse = self.at, self.visit.page.mouse
        for step in range(1, STEPS + 1):
            share = step / STEPS
            self.at = left + share * (x - left), top + share * (y - top)
            self._frame(STEP)
        mouse.move(x, y)

    def point_at(self, one: Locator) -> None:
        box = one.bounding_box()
        self.point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.visit.page.wait_for_timeout(300)

    def click(self, milliseconds: int = WAITING, flight: int = 0) -> None:
        """What is pointed at; `flight`: pictures on the way to what it leads to."""
        self.visit.page.mouse.click(*self.at)
        for _ in range(flight):
            self.show(STEP * 3)
        self.visit.settle()
        self.visit.page.wait_for_timeout(1200)
        self.show(milliseconds)

    def save(self, file: Path) -> None:
        first, *others = self.frames
        how = dict(duration=self.milliseconds, loop=0, quality=80, method=6, minimize_size=True)
        first.save(file, save_all=True, append_images=others, **how)


def film(browser, address: str) -> None:
    """Hide a word and show it again; from the model to all heads, to one of them, to a row."""
    with visiting(browser, address) as visit:
        page = visit.open("").page
        film, stage = Film(visit), page.locator(".st-key-stage_place")
        rest(page)
        film.show(700)
        film.point_at(stage.locator(".w", has_text="never").first)
        film.click(400)
        film.point_at(page.get_by_role("button", name="Hide H", exact=True))
        page.wait_for_timeout(900)
        film.show(1200)
        film.click(1500)
        film.point_at(page.get_by_role("button", name="Undo: “never” hidden"))
        film.click(300)
        rail = stage.locator(".rail button")
        for name, pause in (("Model", 1300), ("Heads", 300)):
            film.point_at(rail.filter(has_text=name).first)
            film.click(pause, flight=3)
        film.point_at(page.get_by_role("button", name="By habit"))
        film.click(1300, flight=3)
        for depth, told in ((2, "attends most"), (3, "fits the key"), (4, "a sum of")):
            film.point_at(rail.nth(depth))
            film.click(STEP, flight=3)
            stage.get_by_text(told).first.wait_for()
            page.wait_for_timeout(800)
            film.show(700 if depth < 4 else 1400)
        film.save(PICTURES / "film.webp")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with serve(ROOT) as address, sync_playwright() as playwright, launch(playwright) as browser:
        of_pages(browser, address)
        of_a_lesson(browser, address)
        of_a_file(browser)
        of_the_live_page(browser)
        film(browser, address)


if __name__ == "__main__":
    main()
