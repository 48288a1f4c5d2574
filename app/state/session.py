"""This session's settings as valid values, and what is remembered between runs.

Only `headlight.app.state` touches st.session_state, except that a widget's callback may read its
own value.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import streamlit as st

from headlight.app import theme
from headlight.app.server.fair_queue import one_asker
from headlight.app.server.streamlit_internals import get_script_run_ctx, runtime
from headlight.app.state import address, catalog, lines, progress, settings
from headlight.app.state.history import History
from headlight.app.state.messages import Stopped
from headlight.app.state.pages import EXPORT, HOME, PAGES
from headlight.app.state.setting import ABSENT, Context
from headlight.app.state.settings import MASKS, OF_ROOMS, SETTINGS
from headlight.model.probing.sites import Place
from headlight.model.sites import Site

# A hidden widget, drawn last, that has the number of the address opened last. What the browser
# reports before it has drawn that comes with the values that its widgets had before.
OPENED = "opened"
DECODED_UNDER = "pad_to", "changes", *MASKS  # what affects how a model decodes a target


@dataclass(frozen=True)
class Origin:
    """The origin of a target: the source line at that time, and, if a model decoded it, the
    settings it used."""

    target: str
    line: str
    decoded: tuple = ()


def _connection() -> object:
    """This session's connection to its browser; None if there is none, or no server."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return None
    return runtime.get_instance().get_client(context.session_id)


@dataclass(slots=True)
class Memo:
    """What is remembered between runs apart from widgets: the last valid values, so that nothing is
    lost when a run is aborted or a page is not shown, and a few notes of the pages."""

    session: str = field(default_factory=lambda: uuid4().hex)  # under which its models are cached
    connection: object = field(default_factory=_connection)  # during the last run that ended
    page: str = HOME  # drawn by this run
    drawn: dict[str, Any] = field(default_factory=dict)  # values on the screen, see `finish`
    last_page: str = HOME  # the last one other than Export
    stopped: tuple | None = None  # the request whose computation the user stopped
    stopped_sweep: tuple | None = None

    # Settings
    context: Context | None = None  # the last valid values; None before the first run
    text_model: str | None = None  # the model for which the texts were chosen
    origin: Origin | None = None  # of the target
    history: History = field(default_factory=History)
    pairs: dict[str, str] = field(default_factory=dict)  # pasted source → its target
    left_out: tuple[str, int] = "", 0  # see `left_out`: the text of the box, the count
    query: str = ""  # of the address, when the last run began
    obeys: bool = False  # see `obey`
    what_if: str | None = None  # the changes when the menu What if was last drawn
    runs: dict[bool | None, Any] = field(default_factory=dict)  # see selection.run

    # Widgets
    chosen_by_code: set[str] = field(default_factory=set)  # settings, since each was last drawn
    widgets: set[str] = field(default_factory=set)  # settings that stand on the screen
    send_all: bool = False  # the browser may have forgotten values: send them again
    labels: dict[str, Any] = field(default_factory=dict)  # of a popover, of a select's options
    idle: dict[str, Any] = field(default_factory=dict)  # settings that do not concern this model
    offered: dict[str, Any] = field(default_factory=dict)  # setting → its default when last drawn

    # Browser
    sent: dict[str, Any] = field(default_factory=dict)  # see `is_new_to_browser`
    opened: int = 0  # addresses that the browser has opened in this session, as by Back
    old: dict[str, Any] = field(default_factory=dict)  # what its widgets had then, see OPENED

    # The stage
    is_staged: bool = False  # whether it has been shown: from then on every page keeps it
    is_looked: bool = False  # whether this run has told it what may be seen
    looks: int = 0  # told so far
    place: tuple[int, Mapping[str, str]] = field(default_factory=lambda: (0, {}))  # see `lead`
    asked: list[dict[str, Any]] = field(default_factory=list)  # questions that wait
    drawer: str = ""  # the page on which it is open

    # Pages
    opened_on: tuple | None = None  # the head that was selected when its table was opened
    pack: Any = None  # the bundle opened on Export
    recording: str = ""  # the name of one that was dropped there last
    refused: str = ""  # why an uploaded file could not be opened
    lesson: Any = None  # see LessonMemo of running_lesson.py
    led_to: dict[str, str] = field(default_factory=dict)  # on the stage, by this teacher
    room_said: Any = None  # what the room asked as the stage was drawn
    is_led: bool = False  # whether the page was drawn as one that follows the teacher's
    room_problem: str = ""  # why the last act in the room was refused


# What `memo` returns during a script run: asking Streamlit would take locks, 190 times a run.
_memo: ContextVar[Memo | None] = ContextVar("memo", default=None)


def memo() -> Memo:
    """This session's memo. It begins anew if the code of this file was reloaded meanwhile."""
    if (known := _memo.get()) is not None:
        return known
    if not isinstance(st.session_state.get("_memo"), Memo):
        st.session_state["_memo"] = Memo()
    return st.session_state["_memo"]


# Settings


@contextmanager
def running(page: str) -> Iterator[None]:
    """One script run for a page. After a lost connection the browser may have missed the end of a
    run and forgotten its widgets' values; they are then sent again. The address comes last: while
    the browser takes it, it draws nothing; but before a line on long work, which one may reload."""
    notes, connection = memo(), _connection()
    notes.send_all = notes.connection is not connection
    notes.page = page
    token = _memo.set(notes)
    try:
        settle(page)
        observer = progress.Observer(stop, _raise_if_stopped, write_address)
        with one_asker(), progress.observed_by(observer):
            yield
        write_address()  # a page limits its own settings while it draws them
        notes.connection, notes.text_model = connection, values()["model"]
    finally:
        _memo.reset(token)


def is_running() -> bool:
    """Whether a script run is in progress: `running` is entered."""
    return _memo.get() is not None


# Sessions whose last run of the whole script has not drawn the screen with its region: it is in
# progress, was cut short, or ended in an error. Not in session state: what asks for that may be
# where a run is cut.
_unfinished: set[str] = set()


def begin() -> None:
    """A run of the whole script begins: called before anything of Streamlit's."""
    if context := get_script_run_ctx():
        _unfinished.add(context.session_id)


def finish() -> None:
    """A run of the whole script has drawn the screen with its region."""
    memo().drawn = dict(values())
    if context := get_script_run_ctx():
        _unfinished.discard(context.session_id)


def shows_all_but(keys: Collection[str]) -> bool:
    """Whether the screen with its region shows all current settings of the page but these."""
    run, notes, now = get_script_run_ctx(), memo(), current_choices()
    if run is None or run.session_id in _unfinished:
        return False
    return all(
        value == notes.drawn.get(key)
        for key, value in now.items()
        if key not in keys and SETTINGS[key].stands_on(notes.page)
    )


def stop() -> None:
    """A callback: stop long work on what the settings ask for now."""
    memo().stopped = _current_request()


def go_on() -> None:
    """A callback: do the work that was stopped."""
    memo().stopped = None


def _raise_if_stopped() -> None:
    if memo().stopped == _current_request():
        raise Stopped


def _current_request() -> tuple:
    return memo().page, dict(values())


def settle(page: str) -> None:
    """Make all settings valid and consistent, before anything is drawn. Where the browser has just
    opened an address, as by Back, what is new in that decides."""
    notes = memo()
    if page != EXPORT:
        notes.last_page = page
    context = get_script_run_ctx()
    first = notes.context is None
    opens = context if context is not None and context.is_history_navigation else None
    sent = st.session_state.to_dict() if opens else {}
    _pass_over_old()
    chosen, from_address = current_choices(), address.read() if first or opens else {}
    if opens:  # what the page before did not draw was not in its address, and stays
        decided = SETTINGS.keys()
        if not (first or notes.obeys):
            moved = address.differences(notes.query, opens.query_string)
            decided = set() if address.stays() else moved
        chosen = {
            key: value
            for key, value in chosen.items()
            if key not in decided or not SETTINGS[key].stands_on(page)
        }
    _follow_the_model(chosen, notes.text_model)
    if opens and not PAGES[page].stage:
        chosen |= _from_stage()
    notes.context = here = settings.valid(chosen, catalog, from_address)
    notes.idle = {key: chosen[key] for key in chosen if not SETTINGS[key].concerns(here)}
    if opens:
        notes.opened += 1
        notes.old = {key: sent[key] for key in SETTINGS if key in sent}
        _choose_again(SETTINGS.keys() - chosen.keys())
    if context is None or not context.fragment_ids_this_run:
        notes.widgets.clear()
    notes.obeys = False
    notes.runs = {}
    _part_source_from_target(chosen, from_address)
    now = values()
    if notes.origin is None or notes.origin.target != now["target"]:
        notes.origin = Origin(now["target"], now["line"])
    notes.history.hear(now["changes"], notes.origin if notes.origin.decoded else None)
    if notes.text_model is None:
        notes.text_model = now["model"]


def _from_stage() -> dict[str, Any]:
    """What was selected on the stage, which the browser alone knows, as another page opens."""
    if not (found := address.cell()):
        return {}
    kind, layer, head, row, key = found
    places = {"follow": row and f"{row} ", "to": key and f"{key} "}
    return {"kind": kind, "layer": int(layer), "head": int(head)} | {
        setting: place for setting, place in places.items() if place
    }


def _pass_over_old() -> None:
    """See OPENED."""
    notes, state = memo(), st.session_state
    if state.get(OPENED) == str(notes.opened):
        notes.old = {}
    _choose_again([key for key, value in notes.old.items() if state.get(key, ABSENT) == value])


def _choose_again(keys: Iterable[str]) -> None:
    """Choose what is known of settings; a page's own that is not known gets its default when it is
    drawn."""
    for key in keys:
        if key in values():
            choose(**{key: values()[key]})
        else:
            st.session_state.pop(key, None)
            memo().chosen_by_code.add(key)


def write_address() -> None:
    """Write into the address what differs from the defaults: of the bar, and of the page."""
    notes, here = memo(), context()
    texts = {}
    for key, setting in SETTINGS.items():
        if setting.address and setting.stands_on(notes.page) and key in here.values:
            default = notes.offered.get(key) if setting.pages else setting.limits(here).default
            if here[key] != (setting.default if default is None else default):
                texts[key] = setting.as_text(here[key])
    if run := get_script_run_ctx():
        keeps = PAGES[notes.page].stage
        address.write(texts, again=run.is_history_navigation, keeps_cell=keeps)
        notes.query = run.query_string


def current_choices() -> dict:
    """The last valid values, updated from the widgets."""
    before = values() if memo().context else {}
    state = st.session_state.to_dict()  # at once: each key by itself takes locks
    # For a region the browser may still send what a widget had that is gone (1.67).
    run, there = get_script_run_ctx(), memo().widgets
    known = there if run and run.fragment_ids_this_run else SETTINGS
    return {**before, **memo().idle} | {
        key: state[key] for key in SETTINGS if key in state and key in known
    }


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
        notes.pairs = dict(pasted_pairs)
        chosen |= {"source": "\n".join(notes.pairs), "line": line}
        notes.left_out = chosen["source"], len(set(pasted_pairs)) - len(notes.pairs)
    pairs, origin = notes.pairs, notes.origin or Origin("", "")
    unchanged = pairs.get(origin.line) == origin.target == now["target"]
    moved = line != origin.line
    # A typed target stays if the pasted pair has none for this line.
    comes = line in pairs and ((pasted and (pairs[line] or moved)) or (moved and unchanged))
    if comes:
        chosen["target"] = pairs[line]
        notes.origin = Origin(pairs[line], line)
    if comes or pasted:
        notes.context = settings.valid(chosen, catalog, from_address)


def left_out() -> int:
    """How many pasted pairs were dropped for a later one with the same source, as long as the
    pasted text is in the box."""
    source, count = memo().left_out
    return count if values()["source"] == source else 0


def context() -> Context:
    """Validated settings, cached per script run."""
    found = memo().context
    assert found is not None  # settled at the start of the run
    return found


def values() -> dict[str, Any]:
    """The values of all settings of the top bar, and of the pages' own as far as they are known."""
    return context().values


@contextmanager
def supposing(**chosen) -> Iterator[None]:
    """The settings in the block are those that there would be if these were chosen."""
    notes = memo()
    before = notes.context, notes.runs
    notes.context, notes.runs = settings.valid({**values(), **chosen}, catalog), {}
    try:
        yield
    finally:
        notes.context, notes.runs = before


def choose(**chosen) -> None:
    """Set settings. A callback. The values are also recorded here: a run that is aborted before
    their widgets are drawn would lose them."""
    st.session_state.update(chosen)
    memo().chosen_by_code.update(chosen)
    values().update({key: value for key, value in chosen.items() if key in SETTINGS})


def open_with(**chosen) -> None:
    """Set settings, the model among them, before those of a session's first run are made valid."""
    memo().text_model = chosen["model"]
    st.session_state.update(chosen)


def lead(place: Mapping[str, str]) -> None:
    """Show a place of the stage, as PLACES names it. Each time anew, since the browser moves on."""
    memo().place = memo().place[0] + 1, place


def reset(*keys: str) -> None:
    """Reset settings to their defaults. A callback."""
    choose(**{key: SETTINGS[key].limits(context()).default for key in keys})


def changed_settings() -> list[str]:
    """Keys of the settings that make the model, or what is shown of it, differ from the one as
    trained. The target is a text, and none of them."""
    changed = [key for key, _ in badges() if key != "target"]
    return changed + (["changes"] if values()["changes"] else [])


def focus_on(kind: str, layer: int, head: int, query: int, key: int) -> None:
    """Select a head, counted as in Place, and its row and column; below 0 none, so that pages about
    one row show the clearest one, and its largest weight. A callback."""
    if site := site_of(kind, layer):
        choose(kind=kind, layer=site.layer + 1, head=head + 1)
        choose_tokens(follow=query, to=key)


def site_of(kind: str, layer: int) -> Site | None:
    """A site of the current model; None if it has no such layer (a late message may refer to
    another model)."""
    structure = context().structure
    sites = structure.kinds.get(kind, ()) if structure else ()
    return sites[layer] if layer < len(sites) else None


def choose_tokens(**places: int) -> None:
    """Choose the query (`follow`), the key (`to`) or both, each from 0; below 0 none. A callback of
    pages where every row and column is one token."""
    for setting, place in places.items():
        choose(**{setting: f"{place + 1} " if place >= 0 else SETTINGS[setting].default})


def chosen_cell() -> dict[str, int]:
    """The selected row and column, from 0, each −1 if there is none."""
    return {"query": chosen_token("follow"), "key": chosen_token("to")}


def chosen_token(setting: str) -> int:
    """The place, from 0, of the chosen query (`follow`) or key (`to`); −1 if there is none."""
    number = values().get(setting, "").partition(" ")[0]
    return int(number) - 1 if number.isdecimal() and len(number) < 6 else -1


def focus() -> Place:
    chosen = values()
    numbers = [site.layer + 1 for site in context().known.kinds[chosen["kind"]]]
    return Place(chosen["kind"], numbers.index(chosen["layer"]), chosen["head"] - 1)


def palette() -> theme.Palette:
    """The scale in which weights are drawn."""
    return theme.WEIGHTS[values()["colours"]]


def stops() -> Sequence[str]:
    """Its stops, for pictures that the server draws: those for a light or a dark page."""
    return theme.stops_of(palette(), st.context.theme.type or "light")


# Links and files


def last_page() -> str:
    """The page that was open before Export."""
    return memo().last_page


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
        if not setting.address or key in OF_ROOMS or not setting.stands_on(page):
            continue
        if key in wanted:
            choose(**{key: wanted[key]})
        else:
            st.session_state.pop(key, None)
            values().pop(key, None)
    notes.text_model = wanted["model"]  # the texts come from the file as well
    notes.origin = None
    notes.last_page = page if page in PAGES else HOME


def obey(addresses: Iterable[str]) -> None:
    """If the browser has just opened one of these addresses, as by Back, it decides all settings:
    those that it does not name are as by default. Called before those of this run are made
    valid."""
    run = get_script_run_ctx()
    if run is not None and run.is_history_navigation:
        query = parse_qs(run.query_string)
        memo().obeys |= any(parse_qs(urlsplit(address).query) == query for address in addresses)


# Runs


def history() -> History:
    return memo().history


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
    return tuple(values()[key] for key in (*DECODED_UNDER, "model", "step"))


def decode_target(origin: Origin | None) -> None:
    """Make a decoded text the target, or with None let the model write it. A callback."""
    memo().origin = origin = origin or Origin("", values()["line"])
    choose(target=origin.target)


def badges() -> list[tuple[str, str]]:
    """Key and label of each setting that differs from the model as trained. The target's label also
    says whether it belongs to another source or was decoded under other settings."""
    origin = memo().origin
    assert origin is not None  # settled with the settings
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


def target_settings() -> str:
    """Which settings a decoded target was decoded under, other than those of the model as trained:
    “these”, as they are now, or “other”; empty for every other target."""
    origin = memo().origin
    decoded = origin.decoded if values()["target"] and origin else ()
    as_trained = tuple(SETTINGS[key].default for key in DECODED_UNDER)
    if decoded[: len(as_trained)] in ((), as_trained):
        return ""
    return "these" if decoded == decoding_settings() else "other"


def has_typed_target() -> bool:
    """Whether the target was typed or pasted, not written by a model."""
    origin = memo().origin
    return bool(values()["target"]) and not (origin and origin.decoded)


def is_new_to_browser(name: str, value) -> bool:
    """Whether this value differs from the last one sent under this name; records it."""
    sent = memo().sent
    before, sent[name] = sent.get(name), value
    return before != value
