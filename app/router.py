"""The Streamlit entry script, run for every session and interaction; main.py serves it."""

import sys
from pathlib import Path

import streamlit as st

# All sessions share sys.path. Streamlit inserts this folder in every run and removes it again,
# unless it finds it at the end; a thread that copies the path meanwhile may lose an entry for good.
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if sys.path[-1] != str(HERE):
    sys.path.append(str(HERE))

from headlight.app import startup  # noqa: E402

with startup.importing:
    from headlight.app.server import garbage
    from headlight.app.shell import layout, screen
    from headlight.app.state import session
    from headlight.app.state.pages import ALIASES, FORMER_PLACES, HOME, PAGES

ICON = ROOT / "assets" / "icon.svg"  # our own file: a named icon would be loaded from a font server
session.begin()
st.set_page_config(page_title="Headlight", page_icon=str(ICON), layout="wide")

pages = {page.path: layout.st_page(page) for page in PAGES.values()}
others = [st.Page(PAGES[key].draw, url_path=path) for path, key in ALIASES.items()]
chosen_page = st.navigation([*pages.values(), *others], position="hidden")
path, query = chosen_page.url_path, st.query_params.to_dict()
for meant in (*filter(None, map(query.get, ("picture", "vectors", "how"))), ""):
    if place := FORMER_PLACES.get((path, meant)):
        st.switch_page(pages[PAGES[HOME].path], query_params=place | query)
if path in ALIASES:
    st.switch_page(pages[PAGES[ALIASES[path]].path], query_params=query)
screen.draw(PAGES[path or HOME], chosen_page.run)
startup.settle_the_process()
garbage.collect_garbage()
