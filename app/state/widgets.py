"""A setting drawn as its widget: label, options and bounds follow from its declaration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.state.session import OPENED, choose, context, memo, values
from headlight.app.state.setting import ABSENT, Limits, Setting
from headlight.app.state.settings import SETTINGS

MAX_BUTTONS = 12  # more options than these become a list


Box = ModuleType | DeltaGenerator  # the whole page, `st`, or an element of it
_is_closed: ContextVar[bool] = ContextVar("is_closed", default=False)


@contextmanager
def in_menu(is_open: bool) -> Iterator[None]:
    """What is drawn here stands in a menu: while that is closed, settings are not drawn."""
    token = _is_closed.set(not is_open)
    try:
        yield
    finally:
        _is_closed.reset(token)


def draw(key: str, box: Box = st, widget_options: Mapping = MappingProxyType({}), **limits):
    """Draw a setting as declared and return its value (for an expander, the expander). A page can
    override its limits: `options`, `least`, `most`, `default`. `widget_options`: further arguments
    of the widget."""
    setting = SETTINGS[key]
    allowed = replace(setting.limits(context()), **limits)
    value = _value(key, allowed)
    if _is_closed.get():
        return value
    must_send = memo().send_all or _is_renamed(key, allowed, widget_options)
    must_send = must_send and value != allowed.default
    if _is_chosen_by_code(key) or must_send or value != st.session_state.get(key, allowed.default):
        st.session_state[key] = value
    memo().widgets.add(key)
    return _widget(setting, allowed, box, widget_options)


def _is_chosen_by_code(key: str) -> bool:
    """Whether a callback chose the value since the widget was drawn. Where a callback ends in a
    rerun, Streamlit takes the value for the browser's own and does not send it (1.67)."""
    chosen = memo().chosen_by_code
    is_chosen = key in chosen
    chosen.discard(key)
    return is_chosen


def stay_open(key: str, label: str) -> None:
    """Keeps an open popover open. Streamlit identifies one by its label too (1.67): it would close
    when that changes."""
    labels = memo().labels
    before, labels[key] = labels.get(key, label), label
    if before != label and st.session_state.get(key):
        st.session_state[key] = True


def _is_renamed(key: str, allowed: Limits, widget_options: Mapping) -> bool:
    """Whether the labels of a select's options have changed. Streamlit identifies a value by its
    label and would fall back to the first option."""
    name = widget_options.get("format_func")
    names = name and [name(option) for option in allowed.options]
    known = memo().labels
    before, known[key] = known.get(key, names), names
    return before != names


def _value(key: str, allowed: Limits) -> Any:
    """A setting's value within its limits. That of a page's own setting is recorded; those of the
    bar are valid before anything is drawn, and stay the same during a run."""
    known, offered = values(), memo().offered
    if not SETTINGS[key].pages:
        return allowed.nearest(known[key])
    value = st.session_state.get(key, known.get(key, ABSENT))
    if value == offered.get(key, ABSENT):
        value = ABSENT  # not chosen by the user: the default for another text or model
    offered[key] = allowed.default
    known[key] = allowed.default if value is ABSENT else allowed.nearest(value)
    return known[key]


def _widget(setting: Setting, allowed: Limits, box, widget_options: Mapping):
    label, kind = setting.label, type(setting.default)
    common = {"key": setting.key, "help": setting.help, **setting.look, **widget_options}
    options, default = list(allowed.options), allowed.default
    least, most = allowed.least, allowed.most
    if kind in (int, float):
        least, most = kind(least), kind(most)
    match setting.widget:
        case "toggle":
            return box.toggle(label, default, **common)
        case "segmented" if len(options) > MAX_BUTTONS:
            return box.selectbox(label, options, options.index(default), **common | {"width": 100})
        case "segmented":
            common |= {"wrap": True, "required": True}
            return box.segmented_control(label, options, default=default, **common)
        case "select":
            return box.selectbox(label, options, options.index(default), **common)
        case "slider":
            return box.slider(label, least, most, default, **common)
        case "number":
            return box.number_input(label, least, most, default, **common)
        case "line":
            return box.text_input(label, default, **common)
        case "area":
            return box.text_area(label, default, **common)
        case "pills":
            return box.pills(label, options, selection_mode="multi", default=default, **common)
        case "several":
            return box.multiselect(label, options, default, **common)
        case "expander":
            del common["help"]
            return box.expander(label, default, on_change="rerun", **common)
    raise ValueError(f"{setting.key}: there is no widget {setting.widget!r}")


def draw_opened() -> None:
    """Draw OPENED, last of all, until the browser has confirmed it."""
    if memo().old:
        st.session_state[OPENED] = str(memo().opened)
        st.text_input("Opened", key=OPENED)


def is_new(key: str) -> bool:
    """Whether a widget was not drawn in the run before."""
    return key not in st.session_state


def select_row(table: str, row: int | None) -> None:
    """Select a row of a table, or none, before the table is drawn."""
    rows = [] if row is None else [row]
    before = st.session_state.get(table)
    if before is None or list(before["selection"]["rows"]) != rows:
        st.session_state[table] = {"selection": {"rows": rows}}


# A click anywhere in a row selects it, not only in its box.
ROW_OR_CELL = "single-row", "single-cell"


def clicked_rows(table: str) -> list[int]:
    """The row in which a table of ROW_OR_CELL was clicked last, if any: it may have another row
    selected still."""
    chosen = st.session_state[table].selection
    return [row for row, _ in chosen.cells] or chosen.rows


def row_callback(table: str, rows: Sequence[Mapping]) -> Callable[[], None]:
    """Makes a callback that applies the settings of a table's selected row. Streamlit keeps
    callbacks for the whole session; one defined in a page would keep all its results alive."""

    def choose_row() -> None:
        for row in clicked_rows(table):
            choose(**rows[row])

    return choose_row


def current_row(rows: Sequence[Mapping]) -> int | None:
    """The first row whose settings, as row_callback takes them, are those of now; rows without
    any are none."""
    now = values().items()
    return next((i for i, row in enumerate(rows) if row and row.items() <= now), None)


def close(key: str) -> None:
    """Close a popover that this run has not drawn yet."""
    if st.session_state.get(key):
        st.session_state[key] = False
