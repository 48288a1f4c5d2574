"""Settings, views and bundles as tests of several files make them, and Markdown as Streamlit shows
it."""

import io
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from headlight.app.export.view import View
from headlight.app.results import memoize, sweep_results
from headlight.app.results.shown import Shown
from headlight.app.state import cache, catalog, session
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import SETTINGS, shared
from headlight.app.text.formats import MARKS
from headlight.model.probing.sites import Place
from tests.conftest import ROOT

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NOTHING = "\ue000"  # in the place of an empty span
# What Streamlit 1.67 makes of texts once Markdown is parsed, each text by itself.
LATE = re.compile(
    r"https?://[-.\w]|www\.|[-.\w+]@[-\w]+\.|:[\w+-]+:|(?:^|\s)(?:<->|->|<-|--|>=|<=|~=)(?:\s|$)",
    re.IGNORECASE,
)


class App(AppTest):
    """The app without a browser, of which any page may be the first to be drawn, as by a link:
    switch_page(...).run(). Streamlit's own switches between files alone. Its `menus` and the
    stage's drawer are open: what they hold is drawn only then."""

    menus: Sequence[str] = ()

    def __init__(self, root: Path = ROOT, timeout: int = 60):
        super().__init__(root / "app" / "router.py", default_timeout=timeout)
        self.switch_page(HOME)

    def run(self, *, timeout: float | None = None) -> "App":
        for menu in self.menus:
            self.session_state[menu] = True
        if "_memo" not in self.session_state:
            self.session_state["_memo"] = session.Memo()
        self.session_state["_memo"].drawer = self.key
        return super().run(timeout=timeout)

    @property
    def settings(self) -> dict:
        """The session's, also those in closed menus."""
        return self.session_state["_memo"].context.values

    def switch_page(self, key: str) -> "App":
        self._page_hash, self.key = calc_hash(PAGES[key].path), key
        return self


def forget_all() -> None:
    """Drop what is computed once per process, or cached."""
    cache.forget_all()
    st.cache_resource.clear()
    st.cache_data.clear()


def complete(chosen) -> dict:
    """The settings that a file holds where only some were chosen."""
    defaults = {key: setting.default for key, setting in SETTINGS.items() if not setting.pages}
    return shared(defaults | dict(chosen), "")


def view_of(trace, kind="cross", layer=2, head=1) -> View:
    chosen = {"kind": kind, "layer": layer + 1, "head": head + 1, "model": "en-de", "source": "A"}
    return View(trace, complete(chosen), Place(kind, layer, head))


def files_of(bundle: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def unfold(page, *folds):
    """The stage with these parts of its drawer open."""
    page.switch_page(HOME)
    for fold in folds:
        page.session_state[fold] = True
    return page.run()


def output(page) -> str:
    """The label of the menu that holds the model's output."""
    blocks = [page._tree]
    while blocks:
        block = blocks.pop()
        blocks += getattr(block, "children", {}).values()
        if block.type == "popover" and block.proto.popover.help.startswith("Edit the target"):
            return block.proto.popover.label
    raise AssertionError("there is no output")


def finished(page):
    """The page after all passes of its sweep, which AppTest does not make by itself."""
    sweeps_made = [key for key in memoize.results_cache().entries if key[0][0] == "sweep"]
    (_, name, score), device, _, run = sweeps_made[-1]
    view = catalog.view_of(run.checkpoint, run.step, device)
    while sweep_results.sweep_of(Shown(view, run), name, score, further=True).missing:
        pass
    return page.run()


def words(page) -> str:
    """All that the page says outside of boxes, in Markdown, its finding included."""
    texts = [text.value for text in (*page.markdown, *page.caption)]
    for look in components(page, "stage_said"):
        for said in look.get("finding") or [[*look.get("now", ()), *look.get("said", ())]]:
            texts.append("".join(f"{MARKS[tag]}{text}{MARKS[tag]}" for text, tag in said))
    return " ".join(texts)


def components(page, name: str) -> list:
    """The data of the components whose names contain this one."""
    return [
        json.loads(element.proto.json)
        for element in page.main
        if element.type == "bidi_component" and name in element.proto.component_name
    ]


def plain_text(markdown: str) -> str:
    """The text that Streamlit shows of Markdown that is nothing but text; fails where it is more,
    apart from what our own sentences set in bold or italics or strike through."""
    pieces = re.split(r"(\\.)", markdown.replace(":small[]", NOTHING), flags=re.DOTALL)
    bare = "".join(pieces[::2])
    assert not re.search(r"\$|:[\w-]+\[|:material/", bare), markdown
    text = ""
    for token in MARKDOWN.parse("".join(pieces)):
        assert token.type.removesuffix("_open").removesuffix("_close") in ("paragraph", "inline"), (
            markdown
        )
        for inner in token.children or ():
            known = "(strong|em|s)_(open|close)|text(_special)?|softbreak"
            assert re.fullmatch(known, inner.type), markdown
            text += "\n" if inner.type == "softbreak" else inner.content
    for piece in text.split(NOTHING):
        assert not LATE.search(piece), markdown
    return text.replace(NOTHING, "")
