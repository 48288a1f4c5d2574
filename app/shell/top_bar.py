"""The bar above every page. Each widget writes its own part of the address, so that the address
of a page is all one needs to come back to it.
"""

import streamlit as st

from headlight.app.components.browser_events import browser_events
from headlight.app.components.copy_link import copy_link
from headlight.app.components.player import player
from headlight.app.shell import edits
from headlight.app.shell.display_menu import READING, draw_score_menu
from headlight.app.shell.examples import draw_examples
from headlight.app.shell.layout import concerns, draw_where_open, row
from headlight.app.shell.more_menu import draw_more_menu
from headlight.app.shell.output import draw_not_finite, draw_output
from headlight.app.shell.what_if import OTHER_RUN, draw_minimal_pairs, draw_ready_made
from headlight.app.state import catalog, session, widgets
from headlight.app.state.options import ABLATION, PATCHING
from headlight.app.state.pages import EXPORT, PAGES, Page
from headlight.app.state.settings import MASKS, SETTINGS
from headlight.app.wording import change_texts, notices

# On a narrow screen it unfolds the rest of the bar, see NARROW_STYLE in theme.py.
FOLD = '<details class="hl-fold"><summary>Controls</summary></details>'


def top_bar(page: Page) -> None:
    with row("texts"):
        widgets.draw("model", widget_options={"width": 190, "label_visibility": "collapsed"})
        widgets.draw(
            "source", widget_options={"height": "content", "label_visibility": "collapsed"}
        )
        st.html(FOLD)
        draw_examples()
        draw_more_menu()
    if session.context().structure is None:  # the page shows why
        st.title(page.title, anchor=False)
        return
    if count := session.left_out():
        st.info(notices.left_out(count))
    draw_output(page)
    draw_not_finite()
    with row("masks"):
        for key in filter(concerns, MASKS):
            widgets.draw(key, widget_options={"width": "content"})
        st.markdown(SETTINGS["pad_to"].label, width="content")
        widgets.draw("pad_to", widget_options={"width": 110, "label_visibility": "collapsed"})
        if concerns("step"):
            _steps()
    with row("page"):
        st.title(page.title, anchor=False, width="content")
        if page.head:
            for key in ("kind", "layer", "head"):
                if key != "kind":
                    st.markdown(SETTINGS[key].label, width="content")
                widgets.draw(key, widget_options={"label_visibility": "collapsed"})
            st.button(
                "",
                icon=":material/power_settings_new:",
                on_click=edits.edit,
                kwargs={"what": "off"} | vars(session.focus()),
                help="Switch the selected head off, or on again (O on the tiles)",
                key="switch_head",
            )
        st.space("stretch")
        what_if = st.popover("What if", icon=":material/science:", key="what_if", on_change="rerun")
        with what_if:
            widgets.draw("changes")
            with st.container(horizontal=True):
                draw_where_open(what_if, OTHER_RUN, page)
            if what_if.open:
                if page.head:
                    draw_ready_made()
                draw_minimal_pairs()
                st.markdown(change_texts.CHANGES)
        if page.reading:
            display = st.popover(
                "Display", icon=":material/tune:", key="display", on_change="rerun"
            )
            with display:
                draw_where_open(display, READING, page)
                if session.values()["order"] in (ABLATION, PATCHING):
                    draw_score_menu()
        if page.key != EXPORT:
            st.page_link(PAGES[EXPORT].file, label="Export", icon=":material/download:")
        copy_link()
        browser_events()


def _steps() -> None:
    chosen = session.values()
    steps = list(catalog.steps(chosen["model"]))
    player(steps, chosen["step"], on_step=lambda step: session.choose(step=step))
    widgets.draw("step", widget_options={"width": 160, "label_visibility": "collapsed"})
