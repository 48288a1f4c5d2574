"""Settings × pages: where a setting matters, changing it changes what the page shows, in one view
with its widget, and changing it back restores that exactly; where not, it is not offered."""

import io
import re
from urllib.parse import parse_qs

import numpy as np
import pytest
from PIL import Image

from headlight.app.shell.sweeps import FIRST, WHOLE
from headlight.app.state.pages import EXPORT, HOME, PAGES
from headlight.app.state.settings import SETTINGS
from tests.browser.conftest import PAGES as PATHS

pytestmark = pytest.mark.long
LEAST = 0.01  # of the pixels
SHADE = 24  # of 255
STILL = """
  *, ::before, ::after { animation: none !important; transition: none !important;
    caret-color: transparent !important; }
"""
SCROLLED = "scrollY + document.querySelector('.stMain').scrollTop"
OTHERWISE = "shows=Other+run"
UNTRAINED, PRE_NORM = "model=paper%2C+untrained", "pre_norm%2C+untrained"
OTHER_RUN = ("other", "other_model", "other_step", "other_masks")
OF_A_HEAD = ("kind", "layer", "head")
READING = ("show", "scale", "colours", "average", "special", "words", "least")


def of_a_run(address: str = "", /, **others) -> dict:
    """The settings of the top bar that a run or its head depends on, each with the address at which
    it matters and what to change it to, on a page at an `class_address`."""
    texts = {
        "model": ("", "reverse"),
        "source": ("", "Two dogs run."),
        "target": ("", "Deux chiens courent."),
        "step": ("", "16"),
        "hold": ("step=16", False),
        "causal": ("kind=decoder", False),
        "src_padding": ("pad_to=30&kind=encoder", False),
        "tgt_padding": ("pad_to=30&causal=false&kind=decoder", False),
        "memory_padding": ("pad_to=30", False),
        "pad_to": ("", 30),
        "changes": ("", "all=uniform"),
        "shows": ("changes=all%3Duniform", "Before"),
        "other": (f"other=Two+dogs+run.&{OTHERWISE}", "A man sleeps on a bench in the park."),
        "kind": ("", "encoder"),
        "layer": ("", 3),
        "head": ("", 3),
        "other_model": (f"{UNTRAINED}&{OTHERWISE}&other_model={PRE_NORM}", ""),
        "other_step": (f"other_step=16&{OTHERWISE}", "256"),
        "other_masks": (f"causal=false&kind=decoder&other_masks=true&{OTHERWISE}", False),
    } | others
    return {key: ("&".join(filter(None, (address, q))), value) for key, (q, value) in texts.items()}


def without(settings: dict, *keys: str) -> dict:
    return {key: value for key, value in settings.items() if key not in keys}


READ_AS = {
    "average": ("", "heads"),
    "special": ("", "hide"),
    "words": ("source=A+Huntsman+runs.", True),
    "least": ("", 0.2),
}
TILES = {
    "show": ("", "one kind"),
    "scale": ("", "per row"),
}
# Page → setting → the address at which it matters there, and what to change it to. What stands
# in the top bar and in no page's list does not matter on that page.
MATTERS = {
    HOME: {},  # they stand in its drawer
    "inside": of_a_run("at=Softmax", at=("", "Values"), without=("", ["scaling"])),
    "lookup": {"scaled": ("", False)},
    "positions": {
        "model": ("", "reverse"),
        "source": ("", "Two dogs run."),
        "target": ("side=target", "Deux chiens courent."),
        "step": ("side=target", "16"),
        "hold": ("side=target&step=16", False),
        "pad_to": ("", 30),
        "causal": ("lab=Other+positions&instead=none", False),
        "src_padding": ("lab=Other+positions&instead=none&pad_to=30", False),
        "tgt_padding": ("lab=Other+positions&instead=none&pad_to=30&causal=false", False),
        "memory_padding": ("lab=Other+positions&instead=none&pad_to=30", False),
        "side": ("", "target"),
        "lab": ("", "Distance"),
        "base": ("lab=Wavelengths", 10),
        "pair": ("lab=Rotation", 40),
        "k": ("lab=Rotation", 9),
        "instead": ("lab=Other+positions", "learned"),
    },
    "tokenizer": {
        "model": ("", "reverse"),
        "source": ("", "Two dogs run."),
        "target": ("text=target", "Deux chiens courent."),
        "step": ("text=target&hold=false&step=16", "final"),
        "hold": ("text=target&step=16", False),
        "pad_to": ("source=Two+dogs.", 10),
        "text": ("", "target"),
    },
    "compare": of_a_run(),
    "lineage": {"source": ("", "Two dogs run."), "swap": ("", "rotary")},
    "learn": {},
    "bertviz": of_a_run(  # of a long text it shows the first rows: padding stands behind them
        bertviz=("", "model"),
        pad_to=("source=Two+dogs.", 10),
        src_padding=("source=Two+dogs.&pad_to=10&kind=encoder", False),
        memory_padding=("source=Two+dogs.&pad_to=10", False),
    ),
    EXPORT: of_a_run(weights_of=("", "selected head"), colours=("", "viridis")) | READ_AS | TILES,
}
# (page, setting) → why less than that changes in view, though it matters
UNSEEN = {(EXPORT, key): "of the files of all heads the page has no preview" for key in TILES} | {
    ("tokenizer", "pad_to"): "a token of padding is a row of the table",
}
CASES = [(page, key) for page, settings in MATTERS.items() for key in settings]
# Those of the top bar; `line` and `target` stand there for what is typed.
BAR = [key for key, setting in SETTINGS.items() if not setting.pages and setting.address]


class Screen:
    """A page at 1280 × 720 with nothing in motion."""

    def __init__(self, visit):
        visit.page.set_viewport_size({"width": 1280, "height": 720})
        self.visit, self.page = visit, visit.page

    def open(self, page: str, query: str) -> "Screen":
        self.visit.open(f"{PAGES[page].path}?{query}")
        self.page.add_style_tag(content=STILL)
        return self

    def to(self, key: str) -> "Screen":
        """Where one changes a setting: its widget in view."""
        if not self.box_of(key) and self.widget(key).is_visible():
            self.widget(key).scroll_into_view_if_needed()
        self.place = self.page.evaluate(SCROLLED)
        return self

    def widget(self, key: str):
        return self.page.locator(f".st-key-{key}").first

    def box_of(self, key: str) -> str | None:
        """What opens to show a setting's widget, if anything has to."""
        if key in READING and self.page.locator(".st-key-display").count():
            return "display"
        boxes = {"device": "more"} | dict.fromkeys(OF_A_HEAD, "head_picker")
        boxes |= {"target": "output", "hold": "output"}
        boxes |= dict.fromkeys(("swap", "block", "all_layers"), "explained")
        boxes |= dict.fromkeys(("changes", *OTHER_RUN), "what_if")
        if key.startswith("score") and self.page.locator(".st-key-display").count():
            return "display"
        if key.startswith("score"):
            found = self.page.locator(".st-key-more_pictures").count()
            boxes |= dict.fromkeys([key] * found, "more_pictures")
        return boxes.get(key)

    def reveal(self, key: str) -> None:
        if box := self.box_of(key):
            self.page.locator(f".st-key-{box} button").first.click()
            self.page.wait_for_timeout(300)
            if self.widget(key).is_visible():  # a list of options closes as what it is in scrolls
                self.widget(key).scroll_into_view_if_needed()
                self.page.wait_for_timeout(300)

    def shows(self, key: str) -> bool:
        box = self.box_of(key)
        if box and not self.widget(box).is_visible():
            return False
        self.reveal(key)
        shown = self.widget(key).is_visible()
        self.rest()
        return shown

    def rest(self) -> None:
        """Nothing open, nothing in focus, nothing under the pointer."""
        self.page.keyboard.press("Escape")
        self.page.mouse.move(1279, 30)
        self.page.evaluate("document.activeElement?.blur()")
        self.visit.settle()
        self.page.wait_for_timeout(400)

    def set(self, key: str, value) -> None:
        """By its widget."""
        setting, box = SETTINGS[key], self.widget(key)
        self.reveal(key)
        match setting.widget:
            case "toggle":
                box.locator("label").first.click()
            case "segmented" | "pills":
                wanted = value if isinstance(value, list) else [value]
                chosen = box.locator("[aria-checked=true], [aria-pressed=true]")
                texts = wanted or chosen.all_inner_texts()
                for text in texts:
                    box.get_by_text(str(text), exact=True).click()
            case "select":
                box.get_by_role("combobox").click()
                name, exact = str(value) or "the same result", True
                if isinstance(value, int):  # a row, with its tokens behind the number, or none
                    name, exact = re.compile(f"^{value} " if value else f"{WHOLE}|{FIRST}"), False
                self.page.get_by_role("option", name=name, exact=exact).click()
            case "steps" | "slider":
                slider = box.get_by_role("slider")
                slider.focus()
                slider.press("Home")
                for _ in range(1000):
                    now = slider.get_attribute("aria-valuetext") or slider.input_value()
                    if now.replace(",", "") in (
                        str(value),
                        f"{value:.2f}" if key == "least" else "",
                    ):
                        break
                    slider.press("ArrowRight")
            case "number" | "line":
                field = box.locator("input").first
                field.fill(str(value))
                field.press("Enter")
            case "area":
                field = box.locator("textarea")
                field.fill(value)
                field.press("Control+Enter")
        self.visit.settle()
        self.rest()

    def picture(self, key: str) -> np.ndarray:
        """The result region, from where the setting is changed, black where its own widget stands:
        (height, width, rgb)."""
        assert self.page.evaluate(SCROLLED) == self.place
        pixels = np.array(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"))
        bar = self.page.locator(".st-key-top_bar").bounding_box()
        pixels[: round(bar["y"] + bar["height"]) + 1] = 0
        for box in self.page.locator(f".st-key-{key}").all():
            if place := box.bounding_box():
                x, y = max(0, round(place["x"]) - 4), max(0, round(place["y"]) - 4)
                pixels[y : y + round(place["height"]) + 8, x : x + round(place["width"]) + 8] = 0
        return pixels


@pytest.fixture
def screen(visit):
    return Screen(visit)


@pytest.mark.parametrize(("page", "key"), CASES)
def test_what_matters_changes_what_is_seen_and_back(screen, page, key):
    query, value = MATTERS[page][key]
    screen.open(page, query).to(key).rest()
    before = screen.picture(key)
    was = initial(screen, key, query)
    screen.set(key, value)
    after = screen.picture(key)
    screen.set(key, was)
    again = screen.picture(key)
    black = (before == 0).all(axis=2) | (after == 0).all(axis=2)
    region = 1280 * 720 - int(black.sum())
    changed = int(((before != after).any(axis=2) & ~black).sum()) / max(1, region)
    # The edges of what the sticky bar was painted over may differ by a shade.
    unlike = np.abs(before.astype(int) - again).max(axis=2) > SHADE
    left = int(unlike.sum())
    print(f"{page:10} {key:14} {changed:7.2%} {left:6} pixels left")
    assert (changed < LEAST) == ((page, key) in UNSEEN)
    assert left == 0


def initial(screen, key, query):
    """What a setting is now: what the address asks for, or what its widget has."""
    setting, box = SETTINGS[key], screen.widget(key)
    if asked := parse_qs(query).get(key):
        return setting.parse(asked)
    if screen.box_of(key) or setting.widget in ("toggle", "pills"):
        return setting.default
    match setting.widget:
        case "area":
            return box.locator("textarea").input_value()
        case "number" | "line":
            return box.locator("input").first.input_value()
        case "select":
            shown = box.get_by_role("combobox")
            return shown.input_value() or shown.inner_text()
        case "steps" | "slider":
            slider = box.get_by_role("slider")
            return (slider.get_attribute("aria-valuetext") or slider.input_value()).replace(",", "")
        case "segmented":
            return box.locator("[aria-checked=true]").inner_text()


@pytest.mark.parametrize("page", MATTERS)
def test_what_does_not_matter_is_not_offered(screen, page):
    screen.open(page, "step=16&pad_to=30")
    wanted = set(MATTERS[page]) | {"projector", "model", "source", "target", "line"}
    idle = {key for key in BAR if key not in wanted and screen.shows(key)}
    print(f"{page}: offered in vain: {sorted(idle)}")
    assert not idle


def test_every_page_has_its_table():
    assert set(MATTERS) == set(PAGES) and len(PATHS) == len(MATTERS)
