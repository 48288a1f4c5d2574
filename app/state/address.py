"""Settings in the address. Streamlit keeps there what its widgets are bound to; this is for what no
widget has drawn yet, as in a menu that was never opened."""

from collections.abc import Collection
from contextlib import suppress
from urllib.parse import parse_qs

import streamlit as st
from streamlit.errors import StreamlitAPIException

from headlight.app.server.streamlit_internals import get_script_run_ctx
from headlight.app.state.settings import SETTINGS


def read() -> dict[str, list[str]]:
    """The texts of the settings in the address. A number that cannot be meant is taken out of it:
    on infinity Streamlit's own reading for the widget raises (1.67)."""
    texts = {key: st.query_params.get_all(key) for key in SETTINGS if key in st.query_params}
    odd = [key for key in texts if SETTINGS[key].is_odd_number(texts[key])]
    take_out(odd)
    return {key: texts[key] for key in texts if key not in odd}


def write(key: str, text: str | list[str]) -> None:
    """Write the value of a setting, before its widget is drawn. Streamlit does so itself for a
    widget that the run before drew, and refuses it here; any other takes what the address held when
    the session began (1.67)."""
    texts = [text] if isinstance(text, str) else text
    if st.query_params.get_all(key) == texts:
        return
    with suppress(StreamlitAPIException):
        st.query_params[key] = texts
        if run := get_script_run_ctx():
            with run.session_state.query_params() as params:
                params.set_initial_query_params_from_current()


def take_out(keys: Collection[str]) -> None:
    """Also for the widgets of these settings that are not drawn yet."""
    if keys and (run := get_script_run_ctx()):
        with run.session_state.query_params() as params:
            for key in keys:
                params.remove_param(key)
            params.set_initial_query_params_from_current()


def restore(query: str, page: str) -> None:
    """Put back what a change of page takes out of the address: Streamlit removes the parameters of
    widgets that the browser has not seen, as in menus that were never opened (1.67)."""
    for key, texts in parse_qs(query, keep_blank_values=True).items():
        if key in SETTINGS and SETTINGS[key].stands_on(page):
            write(key, texts)


def differences(before: str, now: str) -> set[str]:
    """Keys that two query strings give other texts."""
    old, new = (parse_qs(query, keep_blank_values=True) for query in (before, now))
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}
