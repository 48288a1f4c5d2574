"""The first line of the bar: pages, model, sentence and menus. Each widget writes its own part of
the address, so that the address of a page is all one needs to come back to it."""

import streamlit as st

from headlight.app.components.page_links import page_links
from headlight.app.shell import menus
from headlight.app.state import widgets
from headlight.app.state.pages import GROUPS, Page

# On a narrow screen it unfolds the rest of the bar, see NARROW_STYLE in theme.py.
FOLD = '<details class="hl-fold"><summary>Controls</summary></details>'


def draw_menu(logo: str, page: Page) -> None:
    """The pages. They come before the page itself: one can leave a page that takes long."""
    links = ((group, pages[0].path or "", group == page.group) for group, pages in GROUPS.items())
    page_links("menu", links, page.path or "", logo)


def draw_texts() -> None:
    """Model and sentence, and the menus."""
    widgets.draw("model", widget_options={"width": 100, "label_visibility": "collapsed"})
    widgets.draw("source", widget_options={"height": "content", "label_visibility": "collapsed"})
    st.html(FOLD)
    menus.draw_examples()
    menus.draw_present()
    menus.draw_share()
    menus.draw_more()
