"""The first line of the bar: pages, model, sentence and menus. Each widget writes its own part of
the address, so that the address of a page is all one needs to come back to it."""

import random
from functools import partial
from pathlib import Path

import streamlit as st

from headlight.app.components.browser import copy_link
from headlight.app.components.page_links import page_links
from headlight.app.components.room import room_form
from headlight.app.live import build
from headlight.app.results import memoize
from headlight.app.server import lan
from headlight.app.shell import running_lesson
from headlight.app.shell.layout import concerns, menu, st_page
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import EXPORT, GROUPS, PAGES, Page
from headlight.app.text import formats

# On a narrow screen it unfolds the rest of the bar, see NARROW_STYLE in theme.py.
FOLD = '<details class="hl-fold"><summary>Controls</summary></details>'

ANY = "Random example"


def draw_lines() -> None:
    """The typed lines, to choose from."""
    if concerns("line"):
        widgets.draw("line", widget_options={"width": 150, "label_visibility": "collapsed"})


def draw_examples() -> None:
    """The example sentences of the selected model."""
    known = catalog.examples(session.values()["model"])
    if len(known) > 1:
        st.menu_button(
            "",
            [*known, ANY],
            icon=":material/menu_book:",
            help="Example sentences",
            key="example",
            on_click=_take_example,
            args=(known,),
            format_func=formats.escaped,
            type="tertiary",
        )


def _take_example(known: list[str]) -> None:
    chosen = st.session_state["example"]
    if chosen == ANY:
        chosen = random.choice([text for text in known if text != session.values()["source"]])
    if chosen:
        session.choose(source=chosen, target="")


def draw_present() -> None:
    widgets.draw("projector", widget_options={"width": "content"})


def draw_share() -> None:
    share = st.popover("Share", key="share", on_change="rerun")
    with share:
        if share.open:
            copy_link()
            with st.container(key="export_link"):
                st.page_link(
                    st_page(PAGES[EXPORT]),
                    label="Pictures, numbers, a web page, or a ZIP with which others can verify "
                    "your result",
                    icon=":material/download:",
                )
            _draw_live_page(session.values()["model"])
            if not session.values()["room"]:
                _draw_room()


def _draw_room() -> None:
    st.markdown("**A room for a class**")
    room_form()
    if not lan.class_address():
        st.caption("Start the app with `make serve`, so that others can reach it.")


def _draw_live_page(name: str) -> None:
    """The model as one HTML file, or why it cannot be one."""
    if running_lesson.veils():
        st.caption("Live page: answer the open question first, or press *Show me*.")
        return
    if lacks := session.context().lacks:
        st.caption(f"Live page: it takes a whole model. {lacks}")
        return
    if (folder := catalog.folders().get(name)) is None:
        st.caption(f"Live page: {formats.escaped(name)} has random weights. Choose another model.")
        return
    try:
        build.check(folder)
    except (OSError, ValueError, LookupError) as error:
        st.caption(f"Live page: {formats.escaped(str(error))}")
        return
    st.download_button(
        "Live page",
        memoize.one_at_a_time(partial(_live_page, folder)),
        f"{name}.html",
        "text/html",
        icon=":material/public:",
        help="The model in one HTML file that runs in any browser, without internet or "
        "installation. Mail it, or put it on a web server.",
        key="live_page",
        on_click="ignore",
    )


def _live_page(folder: Path) -> bytes:
    return build.page(folder).encode("utf-8")


def draw_more() -> None:
    """The keys, the device, the address for a class, and what each model is."""
    look = {"icon": ":material/more_vert:", "help": "Keys, device, models", "type": "tertiary"}
    with menu("", "more", **look) as more:
        if not more.open:
            return
        st.button("Keys", key="keys", icon=":material/keyboard:")
        widgets.draw("device")
        if address := lan.class_address():
            st.markdown(f"Address for the class: **{address}**")
            st.image(lan.qr_code(address), width=260)
        cards, chosen = catalog.cards(), session.values()["model"]
        if chosen in cards:
            st.markdown(f"**{formats.escaped(chosen)}**: {cards.pop(chosen)}")
        with st.expander("Other models"):
            for name, card in cards.items():
                st.markdown(f"**{formats.escaped(name)}**: {card}")


def draw_menu(logo: str, page: Page) -> None:
    """The pages. They come before the page itself: one can leave a page that takes long."""
    links = ((group, pages[0].path or "", group == page.group) for group, pages in GROUPS.items())
    page_links("menu", links, page.path or "", logo)


def draw_texts(page: Page) -> None:
    """Model and sentence, and the menus."""
    widgets.draw("model", widget_options={"width": 100, "label_visibility": "collapsed"})
    widgets.draw("source", widget_options={"height": "content", "label_visibility": "collapsed"})
    st.html(FOLD)
    draw_lines()
    has_menus = "menus" not in page.idle
    if has_menus:
        draw_examples()
    draw_present()
    if has_menus:
        draw_share()
        draw_more()
