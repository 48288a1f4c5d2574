"""This session's settings as valid values, and what is remembered between runs.

Only `headlight.app.state` touches st.session_state, except that a widget's callback may read its
own value.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from headlight.app.server.fair_queue import one_asker
from headlight.app.state import catalog, lines, progress, settings
from headlight.app.state.history import History
from headlight.app.state.messages import Stopped
from headlight.app.state.options import AVERAGES
from headlight.app.state.pages import EXPORT, HOME, PAGES
from headlight.app.state.setting import Context
from headlight.app.state.settings import MASKS, SETTINGS
from headlight.model.analysis.reading import Reading
from headlight.model.sites import Site


@dataclass(frozen=True)
class Origin:
    """The origin of a target: the source line at that time, and, if a model decoded it, the
    settings it used."""

    target: str
    line: str
    decoded: tuple = ()


@dataclass(frozen=True)
class Focus:
    """The selected head, counted from 0, its layer among those of its kind, as in a trace's arrays.
    The screen counts from 1, and layers as the model numbers them."""

    kind: str
    layer: int
    head: int


# Settings


# What `memo` returns during a script run: asking Streamlit would take locks, 190 times a run.
_notes: ContextVar[dict | None] = ContextVar("notes", default=None)


def memo() -> dict:
    """What is remembered between runs apart from widgets: the last valid values, so that nothing is
    lost when a run is aborted or a page is not shown, and a few notes of the pages."""
    if (known := _notes.get()) is not None:
        return known
    try:
        return st.session_state["_memo"]
    except KeyError:
        st.session_state["_memo"] = {"last page": HOME, "session": uuid4().hex, "heard": 0}
        return st.session_state["_memo"]


@contextmanager
def running(page: str) -> Iterator[None]:
    """One script run for a page. After a lost connection the browser may have missed the end of a
    run and forgotten its widgets' values; they are then sent again."""
    notes, connection = memo(), _connection()
    notes["tell"] = notes.setdefault("connection", connection) is not connection
    notes["page"] = page
    token = _notes.set(notes)
    try:
        settle(page)
        observer = progress.Observer(stop, _raise_if_stopped)
        with one_asker(), progress.observed_by(observer):
            yield
        notes |= {"connection": connection, "reads": values()["model"]}
    finally:
        _notes.reset(token)


def stop() -> None:
    """A callback: stop long work on what the settings ask for now."""
    memo()["stopped"] = _current_request()


def go_on() -> None:
    """A callback: do the work that was stopped."""
    memo().pop("stopped", None)


def _raise_if_stopped() -> None:
    if memo().get("stopped") == _current_request():
        raise Stopped


def _current_request() -> tuple:
    return memo()["page"], dict(values())


def _connection() -> object:
    """This session's connection to its browser; None if there is none, or no server."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return None
    return runtime.get_instance().get_client(context.session_id)


def settle(page: str) -> None:
    """Make all settings valid and consistent, before anything is drawn."""
    notes = memo()
    if page != EXPORT:
        notes["last page"] = page
    context = get_script_run_ctx()
    back = context is not None and context.is_history_navigation
    from_address = {}
    if "context" not in notes or back:
        from_address = {
            key: st.query_params.get_all(key) for key in SETTINGS if key in st.query_params
        }
    else:  # what a closed menu sends is older than what was chosen elsewhere since
        for key in notes.get("in closed menus", ()):
            if key in st.session_state and st.session_state[key] != values()[key]:
                st.session_state[key] = values()[key]
    st.session_state.update(notes.pop("chosen again", {}))
    notes["corrections"] = notes.pop("corrected", {})
    for key, value in notes["corrections"].items():
        st.session_state[key] = value
    chosen = current_choices()
    if back:  # Streamlit sets widgets from the address, or else to their defaults
        chosen = {k: value for k, value in chosen.items() if not SETTINGS[k].stands_on(page)}
        chosen["device"] = values()["device"]
    _follow_the_model(chosen, notes.get("reads"))
    notes["context"] = settings.valid(chosen, catalog, from_address)
    _part_source_from_target(chosen, from_address)
    now = values()
    if "target" not in notes or notes["target"].target != now["target"]:
        notes["target"] = Origin(now["target"], now["line"])
    decoded = notes["target"] if notes["target"].decoded else None
    notes.setdefault("history", History()).hear(now["changes"], decoded)
    notes.setdefault("reads", values()["model"])


def current_choices() -> dict:
    """The last valid values, updated from the widgets."""
    before = values() if "context" in memo() else {}
    state = st.session_state.to_dict()  # at once: each key by itself takes locks
    return {**before, **{key: state[key] for key in SETTINGS if key in state}}


def _follow_the_model(chosen: dict, before: str | None) -> None:
    """After a change of model, an example sentence is replaced by one of the new model, which may
    read another language. Text typed by the user stays."""
    now = chosen.get("model")
    if before is None or now is None or catalog.trained(now) == catalog.trained(before):
        return
    if now not in catalog.models():
        return
    chosen["target"] = ""
    if chosen.get("source") in catalog.examples(before):
        chosen["source"] = (catalog.examples(now) or [""])[0]


def _part_source_from_target(chosen: dict, from_address: Mapping) -> None:
    """Splits pasted lines of source, tab, target between the two boxes; when another line is
    chosen, its target follows."""
    notes, now = memo(), values()
    if not SETTINGS["target"].concerns(context()):
        return
    line = now["line"].partition("\t")[0].strip()
    if pasted := "\t" in now["source"]:
        pasted_pairs = lines.pairs_of(now["source"])
        notes["pairs"] = dict(pasted_pairs)
        chosen |= {"source": "\n".join(notes["pairs"]), "line": line}
        notes["left out"] = chosen["source"], len(set(pasted_pairs)) - len(notes["pairs"])
    pairs, origin = notes.get("pairs", {}), notes.get("target", Origin("", ""))
    unchanged = pairs.get(origin.line) == origin.target == now["target"]
    moved = line != origin.line
    # A typed target stays if the pasted pair has none for this line.
    comes = line in pairs and ((pasted and (pairs[line] or moved)) or (moved and unchanged))
    if comes:
        chosen["target"] = pairs[line]
        notes["target"] = Origin(pairs[line], line)
    if comes or pasted:
        notes["context"] = settings.valid(chosen, catalog, from_address)


def left_out() -> int:
    """How many pasted pairs were dropped for a later one with the same source, as long as the
    pasted text is in the box."""
    source, count = memo().get("left out", ("", 0))
    return count if values()["source"] == source else 0


def context() -> Context:
    """Validated settings, cached per script run."""
    return memo()["context"]


def values() -> dict[str, Any]:
    """The values of all settings of the top bar, and of the pages' own as far as they are known."""
    return context().values


def choose(**chosen) -> None:
    """Set settings. A callback. The values are also recorded here: a run that is aborted before
    their widgets are drawn would lose them."""
    memo().pop("chosen again", None)
    st.session_state.update(chosen)
    values().update({key: value for key, value in chosen.items() if key in SETTINGS})


def choose_again(**chosen) -> None:
    """Set settings as the next run begins, unless others are chosen until then: a browser that
    follows a link at once may send what its widgets showed before."""
    memo()["chosen again"] = chosen


def reset(key: str) -> None:
    """Reset a setting to its default. A callback."""
    choose(**{key: SETTINGS[key].limits(context()).default})


def focus_on(kind: str, layer: int, head: int, count: int, query: int | None = None) -> None:
    """Select a head, counted as in Focus; `count` numbers the browser's selections; `query`: as
    choose_query takes it. A callback."""
    memo()["heard"] = count
    if site := site_of(kind, layer):
        choose(kind=kind, layer=site.layer + 1, head=head + 1)
        if query is not None:
            choose_query(query)


def site_of(kind: str, layer: int) -> Site | None:
    """A site of the current model; None if it has no such layer (a late message may refer to
    another model)."""
    structure = context().structure
    sites = structure.kinds.get(kind, ()) if structure else ()
    return sites[layer] if layer < len(sites) else None


def choose_query(row: int) -> None:
    """Choose the query that pages about one query show; below 0 none, so that they show the row
    that Attention marks. A callback. Ignored while tokens are merged or hidden, because rows are
    then not tokens."""
    if not values()["words"] and values()["special"] == SETTINGS["special"].default:
        choose(follow=SETTINGS["follow"].default if row < 0 else f"{row + 1} ")


def focus() -> Focus:
    chosen = values()
    numbers = [site.layer + 1 for site in context().structure.kinds[chosen["kind"]]]
    return Focus(chosen["kind"], numbers.index(chosen["layer"]), chosen["head"] - 1)


def reading() -> Reading:
    """How weights are processed for display."""
    chosen = values()
    return Reading(AVERAGES[chosen["average"]], chosen["words"], chosen["special"], chosen["least"])


# Links and files


def last_page() -> str:
    """The page that was open before Export."""
    return memo()["last page"]


def to_share() -> dict:
    """The settings saved in a file: those of the top bar and of the last page. Settings that do not
    apply to the model have their default."""
    here = context()
    return {
        key: value if SETTINGS[key].concerns(here) else SETTINGS[key].default
        for key, value in settings.shared(values(), last_page()).items()
    }


def restore(wanted: Mapping, page: str) -> None:
    """Restore the settings of a file. A callback. Raises ValueError if its model or step is not
    available."""
    if message := catalog.missing(wanted["model"], wanted["step"]):
        raise ValueError(message)
    notes = memo()
    for key, setting in SETTINGS.items():
        if not setting.address or not setting.stands_on(page):
            continue
        if key in wanted:
            choose(**{key: wanted[key]})
        else:
            st.session_state.pop(key, None)
            values().pop(key, None)
    notes["reads"] = wanted["model"]  # the texts come from the file as well
    notes.pop("target", None)
    notes["last page"] = page if page in PAGES else HOME


# Runs


def history() -> History:
    return memo()["history"]


def read_line(line: str) -> None:
    """Select a line, adding it if necessary. A callback. Lines typed by the user stay."""
    typed = lines.lines_of(values()["source"])
    if line not in typed:
        own_lines = [
            typed_line
            for typed_line in typed
            if typed_line not in catalog.examples(values()["model"])
        ]
        choose(source="\n".join([*own_lines, line]))
    choose(line=line, target="")


def decoding_settings() -> tuple:
    """The settings that affect how a target is decoded."""
    return tuple(values()[key] for key in ("model", "step", "pad_to", "changes", *MASKS))


def decode_target(origin: Origin | None) -> None:
    """Make a decoded text the target, or with None let the model write it. A callback."""
    memo()["target"] = origin or Origin("", values()["line"])
    choose(target=memo()["target"].target)


def badges() -> list[tuple[str, str]]:
    """Key and label of each setting that differs from the model as trained. The target's label also
    says whether it belongs to another source or was decoded under other settings."""
    origin = memo()["target"]
    if origin.line != values()["line"]:
        text = "Target of another source"
    elif not origin.decoded:
        text = SETTINGS["target"].badge
    elif origin.decoded == decoding_settings():
        text = "Translated with these settings"
    else:
        text = "Translation out of date"
    labels = dict(settings.badges(context()))
    return [*(labels | ({"target": text} if "target" in labels else {})).items()]


def has_typed_target() -> bool:
    """Whether the target was typed or pasted, not written by a model."""
    return bool(values()["target"]) and not memo()["target"].decoded


def is_new_to_browser(name: str, value) -> bool:
    """Whether this value differs from the last one sent under this name; records it."""
    sent, memo()[name] = memo().get(name), value
    return sent != value
