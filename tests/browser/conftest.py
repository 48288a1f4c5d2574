"""A real Chromium, the words in which the tests speak to the app, and components without it."""

import inspect
import re
import shutil
import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, Playwright, expect, sync_playwright
from pypdf import PdfReader

from headlight.app import theme
from headlight.app.state import pages
from tests.conftest import serve
from tests.servers import asked_outside, audited

expect.set_options(timeout=30_000)
NAMES = ("chromium", "chromium-browser", "google-chrome")
DRAWN = ", ".join(dict.fromkeys(page.picture for page in pages.MENU))  # of any page
SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
BEGUN = ".st-key-browser_events"
PICKED = "kind", "layer", "head"
SIZE = {"width": 1280, "height": 900}
HEADER = ".st-key-stage_place"
CLOSE = ".st-key-close_drawer button >> visible=true"
PAGES = {page.title: page.path for page in pages.PAGES.values()}
# Notes when the page last asked the server for a run, and when the last run began and ended: fields
# 11 of Streamlit 1.67's BackMsg and 4 and 6 of its ForwardMsg. Of 6, the value 2 means that another
# run follows.
TRAFFIC = """
  window.traffic = { asked: 0, begun: -1, ended: -1 };
  const field = (bytes, wanted) => {
    let at = 0;
    const varint = () => {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte & 128);
      return value;
    };
    while (at < bytes.length) {
      const key = varint();
      const [name, wire] = [Math.floor(key / 8), key % 8];
      const value = wire === 0 || wire === 2 ? varint() : 0;
      if (name === wanted) return value;
      at += wire === 2 ? value : wire === 5 ? 4 : wire === 1 ? 8 : 0;
    }
    return -1;
  };
  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...given) {
      super(...given);
      window.traffic.asked = 0;  // what a closed socket was asked for will not come
      this.addEventListener("message", ({ data }) => {
        if (!(data instanceof ArrayBuffer)) return;
        const bytes = new Uint8Array(data);
        if (field(bytes, 4) >= 0) window.traffic.begun = performance.now();
        const status = field(bytes, 6);
        if (status >= 0 && status !== 2) window.traffic.ended = performance.now();
      });
    }
    send(data) {
      const bytes = ArrayBuffer.isView(data) ? data : new Uint8Array(data);
      if (field(bytes, 11) >= 0) window.traffic.asked = performance.now();
      super.send(data);
    }
  };
"""
IDLE = """
  () => new Promise((idle, late) => {
    let stage;
    setTimeout(() => late(`the page is not idle after a minute: waiting for ${stage}`), 60_000);
    const look = () => {
      stage = "the end of a run";
      const { asked, begun, ended } = window.traffic;
      // The end of a run before may come after what was asked since.
      const isOver = begun >= asked && ended >= begun;
      if (!isOver || !document.querySelector('SETTLED')) return setTimeout(look, 10);
      stage = "a frame";
      requestAnimationFrame(() => {
        stage = "an idle moment";
        // On a machine with other work there may be no idle moment for long.
        const soon = (done) => requestIdleCallback(done, { timeout: 1000 });
        soon(() => soon(() => {
          if (window.traffic.asked > ended) look();
          else idle();
        }));
      });
    };
    look();
  })
""".replace("SETTLED", SETTLED)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# A page of a test is gone before optimising its scripts has paid.
UNOPTIMISED = "--js-flags=--no-opt --no-maglev"


def on_paper(page: Page) -> list[str]:
    """The text of each sheet that a page is printed on."""
    sheets = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True))).pages
    return [" ".join(sheet.extract_text().split()) for sheet in sheets]


def executable() -> str:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "the browser tests need Chromium: apt-get install chromium"
    return path


def launch(playwright: Playwright, *more: str) -> Browser:
    arguments = [*ARGUMENTS, *more]
    return playwright.chromium.launch(executable_path=executable(), args=arguments)


@pytest.fixture(scope="session")
def context(tmp_path_factory):
    """One for all visits. It has a folder on the disk: without one Chromium compiles Streamlit's
    megabytes of scripts anew for every page."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("browser"),
            executable_path=executable(),
            args=[*ARGUMENTS, UNOPTIMISED],
            viewport=SIZE,
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context
        context.close()


@pytest.fixture(scope="session")
def chromium(context) -> Browser:
    """For contexts of a test's own."""
    return context.browser


def alone(chromium, file):
    """A file in a browser that has no network: the page, what it asked for, and its errors."""
    page = chromium.new_context(offline=True, viewport={"width": 1280, "height": 1400}).new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    return page, asked, errors


@pytest.fixture(scope="session")
def app(models, tmp_path_factory):
    """The app, which asks nobody and listens to nobody else, whatever the tests do with it."""
    folder = tmp_path_factory.mktemp("audit")
    with serve(models, **audited(folder)) as address:
        yield address
    assert "socket.bind 127.0.0.1" in (folder / "audit").read_text()
    assert asked_outside(folder) == []


class Visit:
    """One browser page on the app. `requests` and `errors` hold what it did unasked."""

    def __init__(self, page: Page, address: str):
        self.page, self.address = page, address
        self.requests, self.errors, self.loading = [], [], set()
        self.prepared, self.size = False, page.viewport_size
        page.add_init_script(TRAFFIC)
        page.on("request", self._load)
        page.on("requestfinished", lambda request: self.loading.discard(request))
        page.on("requestfailed", lambda request: self.loading.discard(request))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _load(self, request) -> None:
        if request.resource_type != "eventsource":  # one that a room never ends
            self.loading.add(request)

    def open(self, path: str = "") -> "Visit":
        """Go to an address of the app, in a session of its own."""
        self.page.goto(f"{self.address}/{path}")
        # Before its first run a page is idle.
        self.page.wait_for_selector(BEGUN, state="attached", timeout=60_000)
        return self.idle()

    def settle(self) -> "Visit":
        """Wait until what was done has run. Keys and sliders tell the server after a rest."""
        self.page.wait_for_timeout(250)
        return self.idle()

    def idle(self) -> "Visit":
        """Wait until the run that the page asked for has ended and is drawn, by scripts that may
        have to be loaded first."""
        self.page.wait_for_timeout(50)  # a click is told by then
        self.page.evaluate(IDLE)
        while self.loading:
            self.page.wait_for_timeout(20)
            self.page.evaluate(IDLE)
        return self

    def menu(self, key: str) -> Locator:
        """Open a menu, if it is not open. A button that explains itself stands in the
        document twice, for a mouse and for a finger (Streamlit 1.67)."""
        button = self.page.locator(f".st-key-{key} button >> visible=true").first
        if button.get_attribute("aria-expanded") != "true":
            button.click()
            self.idle()
        return button

    def type(self, text: str, label: str = "Sentence") -> "Visit":
        """Into the header, or a field of the drawer."""
        header = self.page.locator(HEADER)
        if label != "Sentence":
            self.unfold()
        elif (pencil := header.locator(".pencil")).is_visible():
            pencil.click()
        if label == "Target":
            self.menu("output")
        within = header if label == "Sentence" else self.page
        box = within.get_by_label(label, exact=True).locator("visible=true")
        box.fill(text)
        box.press("Enter")
        self.idle()
        if label == "Target":
            self.page.keyboard.press("Escape")
            self.idle()
        return self

    def choose(self, group: str, option: str | int) -> "Visit":
        """Choose an option of a setting, by button or from a list; kind, layer and head are in a
        menu."""
        if group in PICKED:
            self.menu("head_picker")
        widget = self.page.locator(f".st-key-{group}")
        if (listed := widget.get_by_role("combobox")).count():
            listed.click()
            self.page.get_by_role("option", name=str(option), exact=True).click()
        else:
            widget.get_by_text(str(option), exact=True).click()
        if group in PICKED:
            self.idle()
            self.page.keyboard.press("Escape")
        return self.idle()

    def expect_head(self, kind: str, layer: int, head: int) -> "Visit":
        """The head that the header names: its kind, layer and head from 1."""
        named = self.page.locator(f"{HEADER} .rail button").nth(2)
        expect(named).to_have_text(f"{kind} {layer}.{head}")
        return self

    def switch(self, label: str) -> "Visit":
        """On the page, or else in the drawer."""
        if not (control := self.page.get_by_text(label, exact=True)).is_visible():
            self.unfold()
        control.click()
        return self.idle()

    def go(self, title: str) -> "Visit":
        """To a page, by the header alone: its rail, a link, a view, or a link of its drawer."""
        wanted = next(page for page in pages.PAGES.values() if page.title == title)
        entry = wanted
        header = self.page.locator(HEADER)
        self.fold()
        if wanted.stage:
            header.locator(".rail button").nth(2).click()
            self.page.wait_for_selector(".st-key-stage_body", state="attached")
            return self.idle().fold()
        if wanted.group in (pages.LEARN, pages.SHARE):
            header.get_by_role("link", name=wanted.group, exact=True).click()
            entry = next(page for page in pages.PAGES.values() if page.group == wanted.group)
        else:
            self.unfold()
            menu = self.page.locator(".st-key-menu")
            menu.get_by_role("link", name=entry.view, exact=True).click()
        for page in dict.fromkeys((entry, wanted)):
            if page != entry:
                header.get_by_role("link", name=page.view, exact=True).click()
            self.page.wait_for_url(re.compile(rf"/{page.path}\b"))
            self.idle().fold()
        return self

    def unfold(self) -> "Visit":
        """Open the drawer."""
        more = self.page.locator(HEADER).get_by_role("button", name="More", exact=True)
        if more.get_attribute("aria-expanded") != "true":
            more.click()
            expect(self.page.locator(CLOSE)).to_be_focused()
        return self.idle()

    def fold(self) -> "Visit":
        """Close the drawer, if it is open."""
        if (close := self.page.locator(CLOSE)).count():
            close.click()
            expect(close).to_have_count(0)
        return self.idle()

    def back(self, path: str) -> "Visit":
        """Back to a page, from another that `go` may have reached by the first of its group."""
        for _ in range(2):
            if urlsplit(self.page.url).path != path:
                self.page.go_back()
                self.settle()
        assert urlsplit(self.page.url).path == path
        return self

    def canvas(self, key: str, place: int = 0) -> Locator:
        """One of the matrices that stand side by side."""
        canvas = self.page.locator(f".st-key-{key} canvas").nth(place)
        expect(canvas).to_have_attribute("style", re.compile("width"))  # it is painted
        return canvas

    def prepare(self, script: str) -> None:
        """Run a script before those of every document. Thereafter the tab is not used again."""
        self.page.add_init_script(script)
        self.prepared = True

    def leave(self) -> None:
        """Make the tab like a new one."""
        self.page.evaluate("sessionStorage.clear()")
        self.page.goto("about:blank")
        self.page.set_viewport_size(self.size)
        self.page.emulate_media(color_scheme="light")
        self.page.mouse.move(0, 0)
        for seen in (self.requests, self.errors, self.loading):
            seen.clear()

    def expect_well(self) -> None:
        """No error of ours on the page, none in the browser, nothing asked of another host."""
        exceptions = self.page.get_by_test_id("stException")
        print(*exceptions.all_inner_texts(), sep="\n")  # pytest shows it where the next line fails
        expect(exceptions).to_have_count(0)
        assert self.errors == []
        assert self.outside() == []

    def outside(self) -> list[str]:
        """What the page asked of anyone but the app."""
        local = (self.address, "data:", "blob:")
        return [url for url in self.requests if not url.startswith(local)]


@pytest.fixture(scope="session")
def tabs() -> list[Visit]:
    """The tab of the last visit, to be used again."""
    return []


@pytest.fixture(scope="session")
def visiting(context, tabs, app):
    """For visits that several tests share; where one is alone, `visit`."""

    @contextmanager
    def visiting():
        visit = tabs.pop() if tabs else Visit(context.new_page(), app)
        before = context.pages  # one is left open: without any Chromium ends
        yield visit
        visit.expect_well()
        for page in context.pages:
            if page not in before:
                page.close()
        if visit.prepared:
            visit.page.close()
        else:
            visit.leave()
            tabs.append(visit)

    return visiting


@pytest.fixture
def visit(visiting):
    """In the tab of the visit before, which has Streamlit's scripts compiled: a third less work
    than in a new one."""
    with visiting() as visit:
        yield visit


# What Streamlit 1.67 gives a component: its theme, and a shadow root of its own with its style.
BLANK = f"""
<!doctype html>
<title>components</title>
<style>
  :root {{
    color-scheme: light dark; font-size: {theme.PAGE}px; --st-font: sans-serif;
    --st-text-color: light-dark({theme.INK["light"]}, {theme.INK["dark"]});
    --st-background-color: light-dark({theme.PAPER["light"]}, {theme.PAPER["dark"]});
    --st-primary-color: light-dark({theme.PRIMARY["light"]}, {theme.PRIMARY["dark"]});
    --st-border-color: #8884; --st-button-radius: 0.5rem;
  }}
  body {{ background: var(--st-background-color); }}
</style>
<body>
"""
MOUNT = """async ({ key, html, css, js, data, bytes }) => {
  window.mounts ??= {};
  const place = () => {
    const host = document.body.appendChild(document.createElement("div"));
    host.className = `st-key-${key}`;
    const root = host.attachShadow({ mode: "open" });
    root.append(Object.assign(document.createElement("style"), { textContent: css }),
      document.createRange().createContextualFragment(html));
    return root;
  };
  if (!mounts[key]) {
    const address = URL.createObjectURL(new Blob([js], { type: "text/javascript" }));
    mounts[key] = { root: place(), place, sent: [], component: (await import(address)).default };
  }
  const { root, sent, component } = mounts[key];
  if (bytes) data = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  mounts[key].fill = (parentElement) => component({ data, parentElement,
    setTriggerValue: (name, value) => sent.push([name, JSON.parse(JSON.stringify(value))]) });
  mounts[key].fill(root);
}"""
# While it draws a run Streamlit 1.67 may have a component on the page twice, and take the newer one
# away. It also calls what ends a run that the next one overtook, with the component still there.
DISTURB = """(key) => {
  const { root, place, fill } = mounts[key];
  const passing = place();
  const end = fill(passing);
  passing.host.remove();
  end?.();
  fill(root)?.();
}"""


class Mounted:
    """Components of the app in a blank page, with the scripts, styles and data that the app gives
    Streamlit. A second call of one brings it other data, as a run of the app does."""

    def __init__(self, page: Page):
        self.page, self.errors = page, []
        page.on("pageerror", self._note)
        page.set_content(BLANK)

    def _note(self, error: Error) -> None:
        self.errors.append(str(error))

    def leave(self) -> None:
        """Make the tab like a new one. The pointer goes home first: once it has moved over an empty
        document, Chromium does not tell what is drawn there that it leaves."""
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(color_scheme="light")
        self.page.remove_listener("pageerror", self._note)

    def __call__(self, component: Callable, *args, **kwargs) -> "Mounted":
        """Call a function of headlight.app.components, whose mounts come here."""
        module = sys.modules[component.__module__]
        with pytest.MonkeyPatch.context() as patch:
            for name, mount in vars(module).copy().items():
                if name.startswith("_mount"):
                    patch.setattr(module, name, partial(self._mount, mount))
            component(*args, **kwargs)
        return self

    def _mount(self, mount: Callable, *, key: str, data: dict | bytes | None = None, **_) -> None:
        given = inspect.getclosurevars(mount).nonlocals
        as_bytes = isinstance(data, bytes)
        self.page.evaluate(
            MOUNT,
            {
                "key": key,
                "html": given["html"] or "",
                "css": given["css"] or "",
                "js": given["js"],
                "data": None if as_bytes else data,
                "bytes": b64encode(data).decode() if as_bytes else None,
            },
        )

    def disturb(self, key: str) -> None:
        """As a run does that is drawn slowly: nothing of it may be seen thereafter."""
        self.page.evaluate(DISTURB, key)

    def sent(self, key: str) -> list[tuple[str, object]]:
        """What the component has sent the app since this was asked last: name and value."""
        found = self.page.evaluate("(key) => mounts[key].sent.splice(0)", key)
        return [tuple(one) for one in found]


@pytest.fixture(scope="session")
def blank(chromium):
    """A tab in which time stands still but for `page.clock.run_for`, to be used again."""
    with chromium.new_context(viewport=SIZE, has_touch=True) as context:
        context.clock.install(time=0)
        context.clock.pause_at(1000)
        yield context.new_page()


@pytest.fixture
def mounted(blank):
    mounted = Mounted(blank)
    yield mounted
    mounted.leave()
    assert mounted.errors == []
