"""The Streamlit entry script, run for every session and interaction; main.py serves it."""

import sys
import time
from pathlib import Path

import streamlit as st

# All sessions share sys.path. Streamlit inserts this folder in every run and removes it again,
# unless it finds it at the end; a thread that copies the path meanwhile may lose an entry for good.
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if sys.path[-1] != str(HERE):
    sys.path.append(str(HERE))

from headlight.app import startup, theme  # noqa: E402
from headlight.app.server import garbage  # noqa: E402
from headlight.app.shell import errors  # noqa: E402
from headlight.app.shell.top_bar import top_bar  # noqa: E402
from headlight.app.state import session  # noqa: E402
from headlight.app.state.pages import HOME, PAGES  # noqa: E402

ICON = ROOT / "assets" / "icon.svg"  # our own file: a named icon would be loaded from a font server
st.set_page_config(page_title="Headlight", page_icon=str(ICON), layout="wide")

st.logo(ROOT / "assets" / "logo.svg", size="large")

groups = {}
for entry in PAGES.values():
    groups.setdefault(entry.group, []).append(
        st.Page(
            HERE / entry.file,
            title=entry.title,
            url_path=entry.path,
            help=entry.help,
            default=entry.key == HOME,
        )
    )
chosen_page = st.navigation(groups, position="top")
page = PAGES[chosen_page.url_path or HOME]
# The page comes first in the document, for screen readers and keyboards, and is drawn first; CSS
# moves the bar above it.
content, bar = st.container(key="content"), st.container(key="top_bar")
bar.empty()  # reserves room for the bar, which is drawn last
with session.running(page.key):
    try:
        chosen = session.values()
        style = theme.style(chosen["projector"], page.idle)
        st.html(f"<style>{style}</style>")
        if session.is_new_to_browser("styled", True) and style:
            time.sleep(theme.HEAD_START)
        with content, errors.errors_as_messages():
            chosen_page.run()
    finally:
        with bar, errors.memory_errors_as_messages():
            top_bar(page)
startup.settle_the_process()
garbage.collect_garbage()
