"""The router, which Streamlit runs for every session and click; main.py is the server of it."""

import sys
import time
from pathlib import Path

import streamlit as st

# Our packages live in the folder above this one. All sessions share the path, so it is changed in
# single steps: who copies it while another thread inserts and removes may lose an entry for good.
# Streamlit itself does so in every run, unless it finds this folder there.
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
if sys.path[-1] != str(HERE):
    sys.path.append(str(HERE))

from app import session, theme  # noqa: E402
from app.pages import HOME, PAGES  # noqa: E402
from app.top_bar import top_bar  # noqa: E402

ICON = ROOT / "assets" / "icon.svg"  # a file of ours: a named icon comes from a font server
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
# The page stands first in the document, for readers and keyboards, and is drawn first; the style
# puts the bar on top of it.
content, bar = st.container(key="content"), st.container(key="top_bar")
bar.empty()  # else the bar, which is drawn last, takes no room before
with session.running(page.key):
    try:
        chosen = session.values()
        style = theme.style(chosen["projector"], page.idle)
        st.html(f"<style>{style}</style>")
        if session.is_new("styled", True) and style:
            time.sleep(theme.HEAD_START)
        with content, session.answered():
            chosen_page.run()
    finally:
        with bar, session.within_memory():
            top_bar(page)
session.settle_the_process()
session.collect_garbage()
