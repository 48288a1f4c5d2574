"""This session: what is chosen, as valid values, and its own views of the models.

The only file that touches st.session_state, apart from what a widget tells its own callback. A
page asks here once for the run, its view and what it draws, and passes them on.
"""

import gc
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import board, catalog, compute, labels, progress, settings
from app.catalog import ModelView
from app.pages import EXPORT, HOME, PAGES
from app.setting import ABSENT, Context, Limits, Setting
from app.settings import AVERAGES, DIFFERENCE, MASKS, OTHER, SETTINGS, TO_OTHER, WITHOUT
from model.analysis.reading import Reading
from model.masks import Masks
from model.probing.changes import (
    CannotChange,
    Change,
    Patched,
    check,
    parse,
    readable,
    written,
)
from model.probing.run import FINAL, Run
from model.probing.trace import CannotRead, read_of
from model.transformer import Site

COLLECT_EVERY = 50  # runs of all sessions
REMEMBERED = 200  # lines of changes, to undo
MOST_LINES = 50  # of those that were typed, where each takes a pass
BUTTONS = 12  # more choices than these are a list


class NothingToShow(Exception):
    """Ends a page after it has shown why. st.stop() would end the whole run."""


class Stopped(NothingToShow):
    """Ends what takes long, where the user has stopped it."""


@dataclass(frozen=True)
class Origin:
    """Where a target comes from: the line that was read when it was chosen, and where a model
    decoded it, the settings under which it did."""

    target: str
    line: str
    decoded: tuple = ()


class History:
    """The lines of changes that a session has had, for undo and redo."""

    def __init__(self):
        self.lines, self.at = [""], 0

    def hear(self, line: str) -> None:
        """Of the line by now; a new one takes the place of all that were undone."""
        if line != self.lines[self.at]:
            self.lines = [*self.lines[: self.at + 1], line][-REMEMBERED:]
            self.at = len(self.lines) - 1

    def go(self, by: int) -> str:
        self.at = min(max(self.at + by, 0), len(self.lines) - 1)
        return self.lines[self.at]

    def can(self, by: int) -> bool:
        return 0 <= self.at + by < len(self.lines)


@dataclass(frozen=True)
class Focus:
    """The head that the pages show. Counted from 0, the layer among those of its kind, as the
    arrays of a trace have them; the screen counts from 1, and layers as the model has them."""

    kind: str
    layer: int
    head: int


# What is chosen


# What `memo` gives, while the script runs: to ask Streamlit for it takes locks, 190 times a run.
_notes: ContextVar[dict | None] = ContextVar("notes", default=None)


def memo() -> dict:
    """What is remembered from run to run, by no widget: the last valid values, so that a run that
    broke off or a page that is not shown loses nothing, and a few notes of the pages."""
    if (known := _notes.get()) is not None:
        return known
    try:
        return st.session_state["_memo"]
    except KeyError:
        st.session_state["_memo"] = {"last page": HOME, "session": uuid4().hex, "heard": 0}
        return st.session_state["_memo"]


@contextmanager
def running(page: str) -> Iterator[None]:
    """One run of the script, for a page. After a broken connection the browser may have missed
    the end of a run, and forgotten what stood in its widgets: then it is told again."""
    notes, connection = memo(), _connection()
    notes["tell"] = notes.setdefault("connection", connection) is not connection
    notes["page"] = page
    token = _notes.set(notes)
    try:
        settle(page)
        with progress.asked_by(progress.Asker(stop, _refuse)):
            yield
        notes |= {"connection": connection, "reads": values()["model"]}
    finally:
        _notes.reset(token)


def stop() -> None:
    """End what takes long in what is asked for by now, in a callback."""
    memo()["stopped"] = _asked_for()


def go_on() -> None:
    """Let it take long after all, in a callback."""
    memo().pop("stopped", None)


def _refuse() -> None:
    if memo().get("stopped") == _asked_for():
        raise Stopped


def _asked_for() -> tuple:
    return memo()["page"], dict(values())


def _connection() -> object:
    """What leads to this session's browser just now; None where it is away, or where there is no
    server."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return None
    return runtime.get_instance().get_client(context.session_id)


def settle(page: str) -> None:
    """Make all settings valid together, before anything is drawn."""
    notes = memo()
    if page != EXPORT:
        notes["last page"] = page
    context = get_script_run_ctx()
    back = context is not None and context.is_history_navigation
    asked = {}
    if "context" not in notes or back:
        asked = {key: st.query_params.get_all(key) for key in SETTINGS if key in st.query_params}
    notes["corrections"] = notes.pop("corrected", {})
    for key, value in notes["corrections"].items():
        st.session_state[key] = value
    chosen = _chosen()
    if back:  # Streamlit takes what the address has for its widgets, else their defaults
        chosen = {k: value for k, value in chosen.items() if not SETTINGS[k].stands_on(page)}
        chosen["device"] = values()["device"]
    _follow_the_model(chosen, notes.get("reads"))
    notes["context"] = settings.valid(chosen, catalog, asked)
    _part_source_from_target(chosen, asked)
    now = values()
    notes.setdefault("history", History()).hear(now["changes"])
    if "target" not in notes or notes["target"].target != now["target"]:
        notes["target"] = Origin(now["target"], now["line"])
    notes.setdefault("reads", values()["model"])


def _chosen() -> dict:
    """The last valid values, and over them what the widgets say by now."""
    before = values() if "context" in memo() else {}
    return {**before, **{key: st.session_state[key] for key in SETTINGS if key in st.session_state}}


def _follow_the_model(chosen: dict, before: str | None) -> None:
    """Another model than the one of the last run that was drawn to its end may speak another
    language: an example gives way to one of its own. What the user typed stays."""
    now = chosen.get("model")
    if before is None or now is None or catalog.trained(now) == catalog.trained(before):
        return
    if now not in catalog.models():
        return
    chosen["target"] = ""
    if chosen.get("source") in catalog.examples(before):
        chosen["source"] = (catalog.examples(now) or [""])[0]


def _part_source_from_target(chosen: dict, asked: Mapping) -> None:
    """Where lines of source and target were pasted, with a tab between: each goes into its own
    box, and with another line comes its target."""
    notes, now = memo(), values()
    if not SETTINGS["target"].concerns(context()):
        return
    line = now["line"].partition("\t")[0].strip()
    if pasted := "\t" in now["source"]:
        found = settings.pairs_of(now["source"])
        notes["pairs"] = dict(found)
        chosen |= {"source": "\n".join(notes["pairs"]), "line": line}
        notes["left out"] = chosen["source"], len(set(found)) - len(notes["pairs"])
    pairs, origin = notes.get("pairs", {}), notes.get("target", Origin("", ""))
    kept = pairs.get(origin.line) == origin.target == now["target"]
    moved = line != origin.line
    # What is pasted below a line that has no target there leaves the one that was typed.
    comes = line in pairs and ((pasted and (pairs[line] or moved)) or (moved and kept))
    if comes:
        chosen["target"] = pairs[line]
        notes["target"] = Origin(pairs[line], line)
    if comes or pasted:
        notes["context"] = settings.valid(chosen, catalog, asked)


def left_out() -> int:
    """How many pasted pairs gave way to a later one of the same source, while what is left of them
    stands in the box."""
    source, count = memo().get("left out", ("", 0))
    return count if values()["source"] == source else 0


@st.cache_resource(show_spinner=False)
def settle_the_process() -> None:
    """Once, after the first page was drawn; where a class is served, with all models read.

    When garbage is collected, all threads are at a halt: to look through PyTorch's objects each
    time took 160 ms, in the middle of what the browser waits for.
    """
    if board.address():
        catalog.read_all()
    gc.collect()
    gc.freeze()


_runs = itertools.count(1)  # of all sessions


def collect_garbage() -> None:
    """At the end of every so many runs: what sessions that are gone have left is not found by
    itself for long."""
    if next(_runs) % COLLECT_EVERY == 0:
        gc.collect()


def context() -> Context:
    """One for a whole run: what it asked of a model is not asked again."""
    return memo()["context"]


def values() -> dict[str, Any]:
    """Every setting of the top bar, and what is known of the pages' own."""
    return context().values


def draw(key: str, box=st, look: Mapping = MappingProxyType({}), **limits):
    """Draw a setting by its declaration and give its value, or of an expander the expander. Where
    only the page knows what it may be, it gives the `limits`: `options`, `least`, `most`,
    `default`. `look`: what else its widget is told."""
    setting = SETTINGS[key]
    allowed = replace(setting.limits(context()), **limits)
    value = _value(key, allowed)
    told = (memo()["tell"] or _is_renamed(key, allowed, look)) and value != allowed.default
    if told or value != st.session_state.get(key, allowed.default):
        st.session_state[key] = value
    shown = _widget(setting, allowed, box, look)
    current = shown.open if setting.widget == "expander" else shown
    if current != value:
        _correct(key, value)
    return shown


def _is_renamed(key: str, allowed: Limits, look: Mapping) -> bool:
    """Whether the options of a select are called otherwise than before: Streamlit, which knows a
    value by its name, would fall back to the first one."""
    name = look.get("format_func")
    names = name and [name(option) for option in allowed.options]
    known = memo().setdefault("names", {})
    before, known[key] = known.get(key, names), names
    return before != names


def _value(key: str, allowed: Limits):
    """A setting's value within its limits, which is then the one that is known of it."""
    known, offered = values(), memo().setdefault("offered", {})
    value = st.session_state.get(key, known.get(key, ABSENT))
    if not SETTINGS[key].pages:
        value = known[key]
    elif value == offered.get(key, ABSENT):
        value = ABSENT  # nobody chose it: it is the default of another text or model
    offered[key] = allowed.default
    known[key] = allowed.default if value is ABSENT else allowed.nearest(value)
    return known[key]


def _correct(key: str, value) -> None:
    """A widget that is drawn for the first time takes its value from the address, whatever was
    chosen since. Once more, then, with the chosen one."""
    notes = memo()
    if key in notes["corrections"]:
        return
    notes["corrected"] = {key: value}
    st.rerun()


def _widget(setting: Setting, allowed: Limits, box, look: Mapping):
    label, kind = setting.label, type(setting.default)
    common = {"key": setting.key, "help": setting.help} | setting.look | look
    if setting.address:
        common["bind"] = "query-params"
    options, default = list(allowed.options), allowed.default
    if kind in (int, float):
        least, most = kind(allowed.least), kind(allowed.most)
    form = setting.format.format
    match setting.widget:
        case "toggle":
            return box.toggle(label, default, **common)
        case "segmented" if len(options) > BUTTONS:
            return box.selectbox(label, options, options.index(default), **common | {"width": 100})
        case "segmented":
            common |= {"wrap": True, "required": True}
            return box.segmented_control(label, options, default=default, **common)
        case "select":
            return box.selectbox(label, options, options.index(default), **common)
        case "steps":
            return box.select_slider(label, options, default, form, **common)
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


def choose(**chosen) -> None:
    """Set settings, in a callback. They are noted too: a run that breaks off before it has drawn
    their widgets would lose what stands in these alone."""
    st.session_state.update(chosen)
    values().update({key: value for key, value in chosen.items() if key in SETTINGS})


def select_row(table: str, row: int | None) -> None:
    """Select a row of a table, or none, before it is drawn."""
    rows = [] if row is None else [row]
    before = st.session_state.get(table)
    if before is None or list(before["selection"]["rows"]) != rows:
        st.session_state[table] = {"selection": {"rows": rows}}


def choosing(table: str, rows: Sequence[Mapping]) -> Callable[[], None]:
    """A callback of a table: the settings of the row that was selected. Streamlit keeps a callback
    as long as its session, and one that a page defines keeps all that the page has computed."""

    def choose_row() -> None:
        for row in st.session_state[table].selection.rows:
            choose(**rows[row])

    return choose_row


def reset(key: str) -> None:
    """Set a setting to its default, in a callback."""
    choose(**{key: SETTINGS[key].limits(context()).default})


def focus_on(kind: str, layer: int, head: int, count: int) -> None:
    """Choose the head that the pages show, in a callback; as Focus counts. It is the browser's
    selection number `count`."""
    memo()["heard"] = count
    if site := site_of(kind, layer):
        choose(kind=kind, layer=site.layer + 1, head=head + 1)


def site_of(kind: str, layer: int) -> Site | None:
    """Of the model that is chosen by now: a message may be late, and of another one's."""
    structure = context().structure
    sites = structure.kinds.get(kind, ()) if structure else ()
    return sites[layer] if layer < len(sites) else None


def follow(row: int) -> None:
    """Follow a query of the selected head on the pages that follow one, in a callback. Of merged or
    hidden tokens a row is none of the text."""
    if not values()["words"] and values()["special"] == SETTINGS["special"].default:
        choose(follow=f"{row + 1} ")


def draw_token(key: str, tokens: Sequence[str], first: str) -> int | None:
    """Draw a choice of one of the tokens and give its place; None for the option `first`, which is
    always there."""
    options = [first, *(f"{i + 1} {token}" for i, token in enumerate(tokens))]
    chosen = options.index(draw(key, options=options))
    return chosen - 1 if chosen else None


def focus() -> Focus:
    chosen = values()
    numbers = [site.layer + 1 for site in context().structure.kinds[chosen["kind"]]]
    return Focus(chosen["kind"], numbers.index(chosen["layer"]), chosen["head"] - 1)


def reading() -> Reading:
    """What is done to weights before they are shown."""
    chosen = values()
    return Reading(AVERAGES[chosen["average"]], chosen["words"], chosen["special"], chosen["least"])


# Links and files


def last_page() -> str:
    """The page one was on before Export."""
    return memo()["last page"]


def to_share() -> dict:
    """The settings that a file holds: the top bar's, and those of the page one was on. What does
    not concern the model is as nobody chose it."""
    here = context()
    return {
        key: value if SETTINGS[key].concerns(here) else SETTINGS[key].default
        for key, value in settings.shared(values(), last_page()).items()
    }


def restore(wanted: Mapping, page: str) -> None:
    """Set everything that a file holds, in a callback. Raises ValueError for what is not here."""
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
    notes["reads"] = wanted["model"]  # its texts come along
    notes.pop("target", None)
    notes["last page"] = page if page in PAGES else HOME


# The run


def view(run: Run | None = None, device: str = "") -> ModelView:
    """This session's view of a run's model, or of the chosen one. One that cannot be read ends
    the page."""
    if not catalog.models():
        show_message("There is no model in assets/checkpoints. Train one: python -m model train")
        raise NothingToShow
    chosen = values()
    name, step = (run.checkpoint, run.step) if run else (chosen["model"], chosen["step"])
    return _view(name, step, device or catalog.device_of(chosen["device"]))


def _view(name: str, step: str, device: str) -> ModelView:
    try:
        return catalog.view_for(memo()["session"], name, step, device)
    except catalog.UnreadableModel as error:
        show_message(f"{error} Choose another one above, or train it again.")
        raise NothingToShow from error


def text() -> str:
    """The line that the model reads. Without one the page ends."""
    if not (line := values()["line"]):
        st.info("Type a sentence into the box above to see what the heads attend to.")
        raise NothingToShow
    return line


def typed() -> tuple[str, str]:
    """What was typed as the source and the target of the run that is shown; "" for a target that
    the model writes."""
    chosen = values()
    other = chosen["other"].strip() if chosen["shows"] == OTHER else ""
    return other or chosen["line"], chosen["target"].strip()


def masks() -> Masks:
    return Masks(**{name: values()[name] for name in MASKS})


def changes() -> tuple[Change, ...]:
    """What is changed in the model. Raises CannotChange."""
    found = parse(values()["changes"])
    check(found, context().structure.parts)
    return found


def history() -> History:
    return memo()["history"]


def keep_readable() -> None:
    """Of a line of changes that cannot be followed, what can, in a callback."""
    choose(changes=written(readable(values()["changes"], context().structure.parts)))


def less_run() -> Run | None:
    """The run whose weights are taken from those that are shown, where a difference is asked for.
    Raises CannotRead and CannotChange."""
    shows = values()["shows"]
    if shows == DIFFERENCE:
        return run(changed=False)
    return other_run() if shows == TO_OTHER else None


def other_run() -> Run | None:
    """The run that one compares with and patches from: another sentence with the same target,
    another model or training step, other masks; None where nothing is other. Raises CannotRead,
    also for a model that has other heads."""
    if not context().has_other:
        return None
    chosen, plain = values(), run(changed=False)
    texts = plain.texts
    name = chosen["other_model"] or chosen["model"]
    step = chosen["other_step"] or (
        chosen["step"] if chosen["step"] in catalog.steps(name) else FINAL
    )
    if line := chosen["other"].strip():
        texts = (view().checkpoint.encode(line), *texts[1:])
    other = replace(
        plain,
        texts=texts,
        masks=Masks() if chosen["other_masks"] else plain.masks,
        checkpoint=name,
        step=step,
    )
    here, there = (one.model.sites() for one in (view(), view(other)))
    if here != there:
        raise CannotRead(
            f"“{name}” has other layers or heads than “{chosen['model']}”. Runs are compared where "
            "both have the same."
        )
    return other


def run(changed: bool | None = None) -> Run:
    """What the settings ask for; with the changes, without them, or, where None is given, as the
    user wants it shown. Raises CannotRead and CannotChange."""
    chosen, model_view = values(), view()
    if changed is None and chosen["shows"] == OTHER:
        return other_run()
    if changed is None:
        changed = chosen["shows"] != WITHOUT
    made = changes() if changed else ()
    patched = any(isinstance(one, Patched) for one in made)
    target = chosen["target"].strip()
    return _run(
        model_view,
        text(),
        target,
        masks=masks(),
        pad_to=chosen["pad_to"],
        changes=made,
        other=other_run() if patched else None,
    )


def run_unchanged() -> Run:
    """The same without what is changed in the model."""
    return replace(run(), changes=(), other=None)


def tell_unchanged() -> None:
    """A sentence for a page that leaves the changes out."""
    if run().changes:
        st.caption("The changes are left out on this page: it shows the model as it is.")


def default_run() -> tuple[ModelView, Run]:
    """The same texts as the default model reads them, with all its masks, on the CPU. Raises
    CannotRead."""
    model_view = _view(catalog.DEFAULT_MODEL, FINAL, "cpu")
    return model_view, _run(model_view, text(), values()["target"].strip())


def own_run() -> tuple[ModelView, Run]:
    """The chosen model at the end of its training, by itself: all masks, no padding, the target
    that it writes. Raises CannotRead."""
    model_view = _view(values()["model"], FINAL, catalog.device_of(values()["device"]))
    return model_view, _run(model_view, text())


def example_runs() -> list[Run]:
    """The chosen model on each of its example sentences."""
    model_view = view()
    return [_run(model_view, line) for line in catalog.examples(model_view.name)]


def sentence_runs() -> dict[str, Run]:
    """Line → the chosen model on it: the example sentences, and the first lines that were typed,
    without those that the model cannot read."""
    model_view, runs = view(), {}
    typed = settings.lines_of(values()["source"])[:MOST_LINES]
    for line in dict.fromkeys([*catalog.examples(model_view.name), *typed]):
        with suppress(CannotRead):
            run = _run(model_view, line)
            read_of(model_view.model, run)
            runs[line] = run
    return runs


def read_line(line: str) -> None:
    """Have the model read a line, in a callback. Lines of the user's own stay."""
    typed = settings.lines_of(values()["source"])
    if line not in typed:
        own = [one for one in typed if one not in catalog.examples(values()["model"])]
        choose(source="\n".join([*own, line]))
    choose(line=line, target="")


def _run(model_view: ModelView, line: str, target: str = "", **given) -> Run:
    """A model on a line. A target that nobody typed is written with the masks as trained, so that
    it stays while they are switched."""
    run = Run((model_view.checkpoint.encode(line),), **given)
    run = replace(run, checkpoint=model_view.name, step=model_view.step)
    if len(model_view.model.sides()) == 1:
        return run
    if target:
        return replace(run, texts=(*run.texts, model_view.checkpoint.encode(target, 1)))
    step = FINAL if values()["hold"] else model_view.step
    written = compute.target_of(_writer(model_view, step), line)
    masks = run.masks.over(written.ids, model_view.model.config.pad_id)
    return replace(run, texts=(*run.texts, written), masks=masks)


def _writer(model_view: ModelView, step: str) -> ModelView:
    """Who writes the targets of a model: itself at a step, or for an untrained one a trained
    model."""
    name = catalog.trained(model_view.name)
    if (name, step) == (model_view.name, model_view.step):
        return model_view
    return _view(name, step if name == model_view.name else FINAL, model_view.device)


def translate_under_masks() -> None:
    """Put what the model writes under the current masks and padding into the target box, in a
    callback."""
    # A text typed just before the click comes with it.
    memo()["context"] = settings.valid(_chosen(), catalog)
    chosen = values()
    if not chosen["line"]:
        return
    try:
        model_view = view()
        writer = _writer(model_view, model_view.step)
        target = compute.target_of(writer, chosen["line"], masks(), chosen["pad_to"])
    except (NothingToShow, CannotRead, CannotChange):
        return  # the page that is drawn next says why
    text = model_view.tokenizer.target.decode(target.ids)
    memo()["target"] = Origin(text, chosen["line"], _decoded_under())
    choose(target=text)


def _decoded_under() -> tuple:
    """What the model decodes a target under."""
    return tuple(values()[key] for key in ("model", "step", "pad_to", *MASKS))


def badges() -> list[tuple[str, str]]:
    """Key and a few words for each setting that makes the model other than it was trained. Of a
    target they say too whether it is that of another source, or was decoded otherwise."""
    origin = memo()["target"]
    if origin.line != values()["line"]:
        text = "Target of another source"
    elif not origin.decoded:
        text = SETTINGS["target"].badge
    elif origin.decoded == _decoded_under():
        text = "Translated with these settings"
    else:
        text = "Translated with other settings"
    labels = dict(settings.badges(context()))
    return [*(labels | ({"target": text} if "target" in labels else {})).items()]


def show_message(message: object, box: Callable = st.error) -> None:
    """A sentence in a box. It may quote what was typed, or what stands in an address or a file:
    all of it is text, none of it Markdown."""
    box(labels.escaped(str(message)))


@contextmanager
def within_memory() -> Iterator[None]:
    """What does not fit into memory ends here, with a sentence; what it had taken is free again."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not compute.is_out_of_memory(error):
            raise
        show_message(
            "This takes more memory than is free on this machine. Take a shorter text or a smaller "
            "model; what you typed is still there."
        )


@contextmanager
def answered() -> Iterator[None]:
    """What cannot be shown ends here, with a sentence."""
    try:
        with within_memory():
            yield
    except Stopped:
        progress.stopped(labels.STOPPED, "go_on", go_on)
    except NothingToShow:
        pass
    except catalog.UnreadableModel as error:
        show_message(error)
    except CannotRead as error:
        show_message(f"{error} Your text is still in the box.")
    except CannotChange as error:
        show_message(f"{error} The line stands under “What if” above.")
        st.button("Keep the changes that can be made", on_click=keep_readable, key="keep_readable")


def is_new(name: str, value) -> bool:
    """Whether the browser has not been sent this value by that name."""
    sent, memo()[name] = memo().get(name), value
    return sent != value
