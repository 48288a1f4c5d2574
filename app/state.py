"""Everything that outlives one run of a page: what the user set, and caches.

The only file with caches and session keys. Weights are shared by all sessions; modules, and
with them hooks, are each session's own (see model/capture.py).
"""

import argparse
import gc
import hashlib
import json
import math
import statistics
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock

import numpy as np
import streamlit as st
import torch
from safetensors import SafetensorError, safe_open

from app import words
from app.choices import AVERAGES, CHOICES, FINAL, complete
from model import family as members
from model import positions, residual, snapshots
from model.blocks import Block
from model.blocks import blocks as blocks_of
from model.capture import view
from model.checkpoint import SHIPPED, Checkpoint, load, parameters_sha256, untrained
from model.heads import Measured, elsewhere, measure, over_sentences
from model.inside import Inside, look_inside
from model.masks import Masks
from model.presets import PRESETS, parameters
from model.reading import Reading
from model.reference import Reference, ReferenceTrace
from model.tokenizer import Encoding
from model.trace import KINDS, TooLong, Trace, inputs_of, trace
from model.variants import ClassifierConfig, PositionsFromOne

EXAMPLES = SHIPPED.parent / "examples"
DEFAULT_MODEL, CLASSIFIER = "en-de", "reviews"
CORES = torch.get_num_threads()
SHORT = 400  # tokens; longer texts are quicker on all cores
TRACE_BYTES = 512 * 2**20
UNTRAINED = {f"{preset}, untrained": preset for preset in PRESETS}  # model → its preset
SEEDED = Lock()  # random weights come from one generator for all sessions
VIEWS = 8  # models that a session keeps its view of; a large one is 0.25 GB


@dataclass(frozen=True)
class Settings:
    """What the user set and a trace depends on. Each field is the key of a sidebar widget."""

    model: str
    step: str  # of its training; FINAL: what it became
    device: str
    source: str
    line: str  # which line of the source is read, where it has several
    target: str  # empty: the model's own
    causal: bool
    src_padding: bool
    tgt_padding: bool
    memory_padding: bool
    pad_to: int

    @property
    def weights(self) -> tuple[str, str, str]:
        """Which weights, and where: model, step, device."""
        return self.model, self.step or FINAL, device_of(self.device)

    @property
    def masks(self) -> Masks:
        return Masks(self.causal, self.src_padding, self.tgt_padding, self.memory_padding)

    @property
    def text(self) -> str:
        """The line that the model reads."""
        lines = lines_of(self.source)
        return self.line if self.line in lines else lines[0] if lines else ""


@dataclass(frozen=True)
class Display:
    """How pictures are drawn; a trace does not depend on it. Each field is the key of a sidebar
    widget."""

    show: str
    scale: str
    order: str
    projector: bool


@dataclass(frozen=True)
class Focus:
    """The head that the pages look at. Counted from 0; the screen counts from 1."""

    kind: str
    layer: int
    head: int


class NothingToShow(Exception):
    """Ends a page, or the sidebar, after it has said why. st.stop() would end the whole run."""


def is_rerun() -> bool:
    """Whether the run before drew the whole sidebar, for the same model. Ask once a run: a
    run whose sidebar breaks off must not count for the next one."""
    return st.session_state.pop("_drawn_for", None) == settings().weights


def sidebar_is_drawn() -> None:
    st.session_state["_drawn_for"] = settings().weights
    _spare_the_collector()


@st.cache_resource
def _spare_the_collector() -> None:
    """After every run Streamlit collects garbage, with all threads at a halt. To look through
    PyTorch's objects each time took 160 ms, in the middle of what the browser waits for."""
    gc.collect()
    gc.freeze()


def settings() -> Settings:
    return Settings(**{f.name: st.session_state.get(f.name, "") for f in fields(Settings)})


def focus() -> Focus:
    kind, layer, head = (st.session_state[key] for key in ("kind", "layer", "head"))
    return Focus(kind, min(layer, layers()[kind]) - 1, head - 1)


def display() -> Display:
    return Display(**{f.name: st.session_state.get(f.name, "") for f in fields(Display)})


def reading() -> Reading:
    """What is done to weights before they are shown."""
    chosen = {f.name: st.session_state.get(f.name, f.default) for f in fields(Reading)}
    return Reading(**chosen | {"average": AVERAGES.get(chosen["average"], "")})


def set_focus(kind: str, layer: int, head: int) -> None:
    """Layer and head counted from 0."""
    st.session_state.update(kind=kind, layer=layer + 1, head=head + 1)


def all_settings() -> dict:
    """What the sidebar says, the device apart; see app/choices.py."""
    return complete(st.session_state)


def restore(wanted: dict) -> None:
    """Set the sidebar, in a callback. Raises ValueError for what is not here."""
    name, step = wanted["model"], wanted["step"]
    if name not in models():
        raise ValueError(
            f"It is of the model “{name[:80]}”, which is not here. Put it into a folder DIR and "
            "start the app with: streamlit run app/main.py -- --models DIR"
        )
    if step != FINAL and step not in _steps(name):
        raise ValueError(f"It is of training step {step[:20]} of “{name}”, which is not here.")
    st.session_state.update({key: wanted[key] for key in CHOICES})
    if not _steps(name):
        del st.session_state["step"]  # no widget of it is drawn
    st.session_state.pop("_drawn_for", None)  # the sidebar comes first: it clamps what is not here


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


# Models


@st.cache_resource
def model_folders() -> dict[str, Path]:
    """Name → folder of every model to choose from: shipped ones, then those of `--models DIR`."""
    parser = argparse.ArgumentParser(prog="streamlit run app/main.py --", allow_abbrev=False)
    parser.add_argument("--models", type=Path, help="a folder of folders that model.train wrote")
    more = parser.parse_known_args(sys.argv[1:])[0].models
    parents = [SHIPPED, *([more] if more else [])]
    found = [config.parent for parent in parents for config in sorted(parent.glob("*/config.json"))]
    found.sort(key=lambda folder: folder != SHIPPED / DEFAULT_MODEL)
    return {folder.name: folder for folder in found}


def models() -> list[str]:
    """Every model to choose from: trained ones, then the presets with random weights."""
    return [*model_folders(), *(UNTRAINED if model_folders() else ())]


def trained(name: str) -> str:
    """A model itself, or the trained one whose pieces, examples and targets an untrained one is
    given: what it would write by itself is noise."""
    preset = PRESETS.get(UNTRAINED.get(name))
    if preset is None:
        return name
    return CLASSIFIER if issubclass(preset.config, ClassifierConfig) else DEFAULT_MODEL


def random_weights() -> str:
    """A sentence on the chosen model if it was never trained, else nothing."""
    name = settings().model
    if name not in UNTRAINED:
        return ""
    wrote = "" if trained(name) == CLASSIFIER else f" The target is written by {DEFAULT_MODEL}."
    return (
        f"**{UNTRAINED[name]}** was not trained: its weights are random, the same every time. The "
        f"pictures show how this system is built, not what it would learn.{wrote}"
    )


def examples(name: str) -> list[str]:
    """Example sentences for a model, the first one to open on."""
    path = EXAMPLES / f"{trained(name)}.txt"
    return lines_of(path.read_text(encoding="utf-8")) if path.is_file() else []


def devices() -> list[str]:
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["auto", "cpu", *cuda, *mps]


def device_of(choice: str) -> str:
    """What "auto" stands for: the first accelerator, else the CPU."""
    return (devices()[2:] or ["cpu"])[0] if choice == "auto" else choice


@st.cache_resource(max_entries=16, show_spinner="Reading the model …")
def _shared(name: str, step: str, device: str) -> tuple[Checkpoint, Reference | None]:
    """Weights on a device, and their twin, for all sessions. Hook none of it: take a view."""
    folder = model_folders()[trained(name)]
    checkpoint = load(folder)
    if name in UNTRAINED:
        with SEEDED:
            checkpoint = untrained(UNTRAINED[name], checkpoint)
    elif step != FINAL:
        snapshots.put_into(checkpoint.model, folder, int(step))
    checkpoint.model.to(device)
    try:
        return checkpoint, Reference(checkpoint.model)
    except ValueError:
        return checkpoint, None


def _own(name: str, step: str, device: str) -> tuple[Checkpoint, Reference | None]:
    """This session's views of a shared model and its twin."""
    views = st.session_state.setdefault("_views", {})
    if (name, step, device) not in views:
        checkpoint, reference = _shared(name, step, device)
        views[name, step, device] = (
            replace(checkpoint, model=view(checkpoint.model)),
            reference and view(reference),
        )
        if len(views) > VIEWS:
            del views[next(iter(views))]
    return views[name, step, device]


def checkpoint() -> Checkpoint:
    """The chosen model, this session's view of it. One that cannot be read ends the page."""
    try:
        return _own(*settings().weights)[0]
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        st.error(
            f"The model “{settings().model}” cannot be read ({type(error).__name__}: {error}). "
            "Choose another one above, or train it again."
        )
        raise NothingToShow from error


def steps() -> dict[str, dict]:
    """Training steps of the chosen model to look back at → score, the first one first; empty
    for a model without snapshots."""
    return _steps(st.session_state["model"])


@st.cache_data
def _steps(name: str) -> dict[str, dict]:
    if name in UNTRAINED:
        return {}
    found = {str(step): score for step, score in snapshots.steps(model_folders()[name]).items()}
    return found | {FINAL: {}} if found else {}


def model_sha256() -> tuple[str, str]:
    """What tells the chosen weights from others: of which file, or of "its parameters" for
    random ones, and its SHA-256."""
    chosen = settings()
    of, folder = "model.safetensors", model_folders()[trained(chosen.model)]
    if chosen.model in UNTRAINED:
        return "its parameters", _sha256_of_parameters(chosen.weights)
    if chosen.weights[1] != FINAL:
        of = snapshots.file_of(folder, int(chosen.step)).relative_to(folder).as_posix()
    return of, _sha256(folder / of)


@st.cache_data(max_entries=64)
def _sha256(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@st.cache_data(max_entries=64)
def _sha256_of_parameters(weights: tuple[str, str, str]) -> str:
    own, _ = _own(*weights)
    return parameters_sha256(own.model)


def layers() -> dict[str, int]:
    """The chosen model's kinds of attention → how many layers have them."""
    sizes = checkpoint().model.config
    depth = {"encoder": sizes.n_encoder_layers, "decoder": sizes.n_decoder_layers}
    found = {kind: depth[stack] for kind, (stack, _) in KINDS.items()}
    return {kind: count for kind, count in found.items() if count}


@st.cache_data
def cards() -> dict[str, dict]:
    """Name → card of every model to choose from, and its number of `parameters`, read without
    its weights."""
    return {name: _card(name) for name in models()}


def _card(name: str) -> dict:
    folder = model_folders()[trained(name)]
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if preset := UNTRAINED.get(name):
            count = parameters(preset, config["sizes"]["vocab_size"])
            said = f"Differs from the paper in: {PRESETS[preset].differs}."
            title = PRESETS[preset].system
            return {"title": title, "weights": "random", "look_for": said, "parameters": count}
        card = config["card"]
        with safe_open(folder / "model.safetensors", "pt") as weights:
            names = list(weights.keys())
            shapes = [weights.get_slice(name).get_shape() for name in names]
        return card | {"parameters": sum(map(math.prod, shapes))}
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return {}  # what is wrong with it is said when it is chosen


@st.cache_resource
def positions_by_scale(length: int = 64, d_model: int = 128) -> dict[int, np.ndarray]:
    """Scale N → the positional table of mr-raccoon-97/vanilla-transformer, (length, d_model)."""
    scales = (1, 10, 100, 1000, 10000)
    return {scale: PositionsFromOne(length, d_model, scale).table.numpy() for scale in scales}


# Traces


class _ByteBoundedCache:
    """Least recently used results go first when all together are larger than `limit` bytes."""

    def __init__(self, limit: int):
        self.limit, self.held, self.lock = limit, OrderedDict(), Lock()

    def get(self, key, make, size):
        with self.lock:
            if key in self.held:
                self.held.move_to_end(key)
                return self.held[key][0]
        made = make()  # outside the lock: another session need not wait for this one
        with self.lock:
            self.held[key] = made, size(made)
            while len(self.held) > 1 and sum(n for _, n in self.held.values()) > self.limit:
                self.held.popitem(last=False)
        return made


@st.cache_resource
def _cache() -> _ByteBoundedCache:
    return _ByteBoundedCache(TRACE_BYTES)


@st.cache_data(max_entries=1000, show_spinner="Writing the target …")
def _translation(
    weights: tuple[str, str, str], text: str, masks: Masks = Masks(), pad_to: int = 0
) -> Encoding:
    """What the model writes for a text."""
    return _own(*weights)[0].translate(text, masks, pad_to)


def translate_under_masks() -> None:
    """Put what the model says under the current masks and padding into the target box."""
    chosen = settings()
    if not chosen.text:
        return
    try:
        found = _translation(chosen.weights, chosen.text, chosen.masks, chosen.pad_to)
    except TooLong:
        return  # the page that is drawn next says so
    st.session_state["target"] = checkpoint().tokenizer.decode(found.ids)


def _target(weights: tuple[str, str, str], text: str) -> Encoding:
    """The target that a model reads where none was typed."""
    name, step, device = weights
    return _translation((trained(name), step, device), text)


def current_pair() -> tuple[Encoding, Encoding]:
    """Source and target of the current settings. Raises TooLong."""
    chosen, tokenizer = settings(), checkpoint().tokenizer
    typed = chosen.target.strip()
    target = tokenizer.encode(typed) if typed else _target(chosen.weights, chosen.text)
    return tokenizer.encode(chosen.text), target


def current_trace() -> Trace:
    """The trace of the current settings. Without one to show, says why and ends the page."""
    checkpoint()  # says so if it cannot be read
    with _answer_bad_text():
        return _trace(settings())


@contextmanager
def _answer_bad_text() -> Iterator[None]:
    """Says why there is nothing to see of the current text, and ends the page."""
    if not settings().text:
        st.info("Type a sentence into the box on the left to see what the heads look at.")
        raise NothingToShow
    try:
        yield
    except TooLong as error:
        st.error(f"{error} Your text is still in the box: shorten it there.")
        raise NothingToShow from error


def inside(left_out: tuple[str, ...]) -> Inside:
    """The head in focus, step by step, with steps left out."""
    chosen, at = settings(), focus()
    own, _ = _own(*chosen.weights)

    def make():
        src, tgt = current_pair()
        where = at.kind, at.layer, at.head
        return look_inside(own.model, src, tgt, *where, chosen.masks, chosen.pad_to, left_out)

    return kept(("inside", at, left_out), make, lambda made: made.nbytes)


def blocks() -> list[Block]:
    """The chosen model as blocks, with their shapes for the current sentence."""
    current = current_trace()
    return blocks_of(checkpoint().model, len(current.src.ids), len(current.tgt.ids))


def kept(name, make, size):
    """What `make` gives for the current settings and `name`, made once; `size` of it in bytes."""
    return _cache().get((name, settings()), make, size)


def measured() -> dict[str, Measured]:
    """Numbers of all heads for the current trace."""
    current = current_trace()

    def make():
        with st.spinner("Measuring the heads …"):
            return {kind: _measure(current, kind) for kind in current.attention}

    return kept("measured", make, lambda made: 10_000)


def _measure(trace: Trace, kind: str) -> Measured:
    query, key = words.sides(trace, kind)
    return measure(trace.attention[kind], query.pieces, key.pieces, kind)


@st.cache_data(max_entries=32, show_spinner="Measuring the heads on the example sentences …")
def measured_on_examples(weights: tuple[str, str, str]) -> dict[str, Measured]:
    """Numbers of all heads, over the example sentences of the model with these weights."""
    own, _ = _own(*weights)
    encode = own.tokenizer.encode
    traces = [
        trace(own.model, encode(text), _target(weights, text)) for text in examples(weights[0])
    ]
    return {
        kind: over_sentences([_measure(one, kind) for one in traces])
        for kind in (traces[0].attention if traces else ())
    }


def change() -> dict[str, np.ndarray]:
    """How much each head is changed by the current masks, (layers, heads): the share of a row's
    weight that lies elsewhere than with all masks on, mean over rows."""
    now, before = current_trace().attention, standard_trace().attention

    def make():
        return {kind: elsewhere(now[kind], before[kind]) for kind in now}

    return kept("change", make, lambda made: sum(moved.nbytes for moved in made.values()))


def standard_trace() -> Trace:
    """The same pass with all masks as they were in training."""
    return _trace(
        replace(settings(), causal=True, src_padding=True, tgt_padding=True, memory_padding=True)
    )


def _trace(chosen: Settings) -> Trace:
    src, tgt = current_pair()
    own, _ = _own(*chosen.weights)

    def make():
        # One core for a short text. More would wait for each other at every small product, and
        # for long where the browser, on the same machine, is drawing.
        torch.set_num_threads(1 if len(src.ids) + len(tgt.ids) < SHORT else CORES)
        with st.spinner("Running the model …"):  # seen after half a second
            return trace(own.model, src, tgt, chosen.masks, chosen.pad_to)

    return _cache().get(chosen, make, lambda made: made.nbytes)


def positional_table(side: str) -> np.ndarray:
    """All rows of the chosen model's own table, (position, d_model); side is "src" or "tgt"."""
    own = checkpoint().model
    embedding = getattr(own, f"{side}_embedding")
    return positions.own_table(embedding.position, own.config.max_length).float().cpu().numpy()


def own_answers() -> positions.Answers:
    """What the model answers as it is."""
    sizes = checkpoint().model.config
    return positions.answers(current_trace(), sizes.pad_id, sizes.eos_id)


def under_positions(kind: str, shift: int) -> positions.Effect:
    """What positions of another kind (see model/positions.py) change for the current settings."""
    before, own, chosen = current_trace(), checkpoint().model, settings()
    shift = shift if kind == "shifted" else 0

    def make():
        with st.spinner("Running the model under other positions …"):
            return positions.effect(own, before, current_pair(), chosen.pad_to, kind, shift)

    return kept(
        ("positions", kind, shift),
        make,
        lambda made: 10_000 + sum(moved.nbytes for moved in made.moved.values()),
    )


def written_under_positions(kind: str, shift: int) -> str:
    """What the chosen model itself writes under positions of another kind."""
    own, chosen = checkpoint(), settings()

    def make():
        with st.spinner("Writing the target …"), positions.under(own.model, kind, shift):
            return own.tokenizer.decode(own.translate(chosen.text).ids)

    return kept(("written", kind, shift), make, len)


def swapped(first: int, second: int, kind: str = "") -> positions.Reordered:
    """Two pieces of the source in each other's place, with the model's own positions or those of
    a `kind`."""
    (src, tgt), own, chosen = current_pair(), checkpoint().model, settings()
    order = positions.swap(len(src.ids), first, second)

    def make():
        with st.spinner("Running the model on both orders …"):
            return positions.reordered(own, (src, tgt), order, chosen.masks, chosen.pad_to, kind)

    return kept(("swapped", order, kind), make, lambda made: 10_000 + 2 * made.before.nbytes)


def lens() -> residual.Lens:
    """What the model would answer if it stopped at each layer."""
    own, seen = checkpoint().model, current_trace()

    def make():
        with st.spinner("Asking every layer …"):
            return residual.lens(own, seen)

    return kept("lens", make, lambda made: made.nbytes)


@st.cache_resource(show_spinner="Building one model of every system …")
def _members() -> dict[str, torch.nn.Module]:
    own, _ = _own(DEFAULT_MODEL, FINAL, "cpu")
    with SEEDED:
        return members.members(len(own.tokenizer), own.model.config.max_length)


def family() -> dict:
    """What the presets do differently, measured on the current sentence and its target, or the
    one that the default model writes (see model/family.py); with the number of `pieces`."""
    chosen, standard = settings(), (DEFAULT_MODEL, FINAL, "cpu")
    own, _ = _own(*standard)
    encode = own.tokenizer.encode

    def make():
        typed = chosen.target.strip()
        target = encode(typed) if typed else _translation(standard, chosen.text)
        pair = inputs_of(own.model.config, encode(chosen.text), target)
        src, tgt = (torch.tensor([side.ids]) for side in pair)
        models = _members()
        with st.spinner("Measuring the differences …"), SEEDED, torch.no_grad():
            return members.measure(models, src, tgt) | {"pieces": src.shape[1]}

    with _answer_bad_text():
        return _cache().get(("family", chosen.text, chosen.target), make, lambda made: 100_000)


def source_vectors() -> np.ndarray:
    """What the chosen model's table holds for the pieces of the source, (length, d_model)."""
    embedding = checkpoint().model.src_embedding.token
    ids = torch.tensor(current_trace().src.ids, device=embedding.weight.device)
    return embedding.weight[ids].float().cpu().numpy()


@st.cache_resource
def three_words() -> members.ThreeWords:
    """Van Dijck's first example."""
    with SEEDED:
        return members.three_words()


@dataclass(frozen=True)
class Timing:
    """Median seconds of a forward pass without hooks."""

    ours: float
    theirs: float


def current_reference() -> tuple[ReferenceTrace, Timing] | None:
    """The same pass in torch.nn.Transformer; None where it has no such model."""
    chosen = settings()
    own, reference = _own(*chosen.weights)
    if reference is None:
        return None
    src, tgt = current_pair()

    def make():
        seen = reference.trace(src, tgt, chosen.masks, chosen.pad_to)
        return seen, _time(own, reference, src, tgt, chosen)

    return kept("reference", make, lambda made: made[0].nbytes)


@torch.no_grad()
def _time(own, reference, src, tgt, chosen: Settings, rounds: int = 5) -> Timing:
    config = own.model.config
    pair = inputs_of(config, src, tgt, chosen.pad_to)
    src, tgt = (torch.tensor([side.ids], device=chosen.weights[-1]) for side in pair)
    masks = chosen.masks.build(src, tgt, config.pad_id)
    passes = (lambda: own.model(src, tgt, *masks), lambda: reference(src, tgt, chosen.masks))
    seconds = [[], []]
    for _ in range(rounds):
        for forward, measured in zip(passes, seconds, strict=True):
            start = time.perf_counter()
            forward().sum().item()  # waits for a GPU
            measured.append(time.perf_counter() - start)
    return Timing(*map(statistics.median, seconds))
