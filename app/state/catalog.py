"""The models that can be chosen: shipped ones, those in the folder `--models`, and the presets with
random weights.

A folder given by `--models` may be broken in any way. An error in one model is reported when that
model is chosen; the others stay usable.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import streamlit as st
import torch
from safetensors import safe_open

from headlight.app.server import arguments
from headlight.app.state.cache import ByteBoundedCache, forget_all, once
from headlight.app.state.dropped import YOURS, dropped
from headlight.app.state.lines import lines_of
from headlight.app.state.setting import Structure
from headlight.app.text import output_texts
from headlight.app.text.formats import escaped
from headlight.model.card import headline, parameter_count
from headlight.model.checkpoint import SHIPPED, Checkpoint, load, parameters_sha256, untrained
from headlight.model.files import read_within
from headlight.model.presets import PRESETS, parameters, preset_of, sides, without_tensors
from headlight.model.pretrained.contents import Contents
from headlight.model.pretrained.folder import contents_of, is_ours, layout_of
from headlight.model.pretrained.weights import Progress
from headlight.model.probing.capture import view
from headlight.model.probing.reference import Reference
from headlight.model.probing.run import FINAL
from headlight.model.recording.checkpoint import Recorded, load_recorded, title_of
from headlight.model.recording.in_memory import InMemory
from headlight.model.recording.recording import ENDING, about, is_recording
from headlight.model.sites import ProbedModel, Site
from headlight.model.training import snapshots

EXAMPLES, EXAMPLES_FILE = SHIPPED.parent / "examples", "examples.txt"
RECORDED = " (recording)"  # ends the name of a file of recordings
DEFAULT_MODEL, CLASSIFIER = "en-fr", "reviews"
UNTRAINED = {f"{preset}, untrained": preset for preset in PRESETS}  # model → its preset
LONGEST_CARD = 2**20  # bytes
LARGE = 30_000_000  # parameters; a model this large takes seconds to read
MODEL_BYTES = 3 * 2**29  # bytes of weights in memory: enough for all shipped models and presets
MOST_VIEWS = 64  # views of all sessions; one of `en-de` takes 0.3 MB


class UnreadableModel(ValueError):
    """A model that cannot be read, and why."""


@dataclass(frozen=True)
class ModelView:
    """One session's view of a model: its own modules over shared weights. Hooks belong to modules,
    so hooks of one session never fire in another."""

    name: str
    step: str
    device: str
    checkpoint: Checkpoint
    twin: Reference | None  # the same weights in torch.nn.Transformer, if it can express the model
    stamp: tuple = ()  # identifies the files that the weights were read from

    @property
    def model(self) -> ProbedModel:
        return self.checkpoint.model

    @property
    def tokenizer(self):
        return self.checkpoint.tokenizer

    @property
    def classes(self) -> tuple[str, ...]:
        return self.checkpoint.classes

    @property
    def reference(self) -> Reference | None:
        """A view of the twin, made on demand: few pages need it."""
        return self.twin and view(self.twin)

    def again(self) -> "ModelView":
        """A new view of the same weights."""
        return replace(self, checkpoint=replace(self.checkpoint, model=view(self.checkpoint.model)))

    @cached_property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return parameter_count(self.model)

    @property
    def nbytes(self) -> int:
        """Bytes of weights and buffers, those of the twin included; shared storage counts once. Of
        a recording those of its attention weights."""
        if isinstance(self.checkpoint, Recorded):
            return self.checkpoint.nbytes
        modules = filter(None, (self.model, self.twin))
        tensors = (t for module in modules for t in (*module.parameters(), *module.buffers()))
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        return sum(storages.values())


@once
def folders() -> dict[str, Path]:
    """Name → folder of every trained model, or file of recordings."""
    more = arguments.given().models
    parents = [SHIPPED, *([more] if more else [])]
    paths = [folder for parent in parents for folder in sorted(parent.glob("*")) if _is_one(folder)]
    paths.sort(key=lambda folder: folder != SHIPPED / DEFAULT_MODEL)
    return {_text(_name(folder)): folder for folder in paths}


def _name(folder: Path) -> str:
    return f"{folder.stem}{RECORDED}" if folder.suffix == ENDING else folder.name


def _is_one(folder: Path) -> bool:
    try:
        return is_recording(folder) if folder.suffix == ENDING else bool(layout_of(folder))
    except OSError:
        return True  # the reason is reported when it is chosen


def _text(value: object, most: int = 300) -> str:
    """`value` as text that can be sent to a browser, cut to `most` characters."""
    return str(value)[:most].encode("utf-8", "replace").decode()


_in_memory: dict[str, InMemory] = {}


def add(name: str, checkpoint: InMemory) -> None:
    """Offer a model that is in memory, before all others, to every session of this process."""
    _in_memory[name] = checkpoint
    forget_all()


def models() -> list[str]:
    """Names of all models: those in memory, trained ones, this session's recordings, then the
    presets with random weights."""
    return [*_in_memory, *folders(), *dropped(), *(UNTRAINED if folders() else ())]


def _is_recorded(name: str) -> bool:
    """Whether it is a file of recordings in a folder."""
    return name in folders() and folders()[name].suffix == ENDING


def trained(name: str) -> str:
    """The model itself if it is trained; for an untrained model, the trained one that lends it
    tokenizer, examples and targets (its own output would be noise)."""
    if name not in UNTRAINED:
        return name
    classifies = any(side.predicts == "class" for side in sides(UNTRAINED[name]))
    return CLASSIFIER if classifies else DEFAULT_MODEL


def examples(name: str) -> list[str]:
    """Example sentences for a model, from its own folder if it has some; the app opens on the
    first. Of a recording its texts."""
    return dropped()[name].recorded.lines if name in dropped() else _examples(name)


@once
def _examples(name: str) -> list[str]:
    try:
        if name in _in_memory:
            return list(_in_memory[name].lines) or examples("english")
        if _is_recorded(name):
            recorded = _shared(name, FINAL, device_of("auto")).checkpoint
            return recorded.lines if isinstance(recorded, Recorded) else []
        path = folders()[trained(name)] / EXAMPLES_FILE
        if not path.is_file():
            path = EXAMPLES / f"{_written_for(name)}.txt"
        small = path.is_file() and path.stat().st_size <= LONGEST_CARD
        return lines_of(path.read_text(encoding="utf-8")) if small else []
    except Exception:  # see above; what is wrong with the model is reported when it is chosen
        return []


def _written_for(name: str) -> str:
    """The name of our example file for a model: its own, or the English one for its family."""
    folder = folders()[trained(name)]
    if is_ours(folder):
        return trained(name)
    contents = contents_of(folder)
    reads_english = contents.card.get("direction", ["en"])[0] == "en"
    return preset_of(contents.family.preset).examples if reads_english else ""


@once  # needed several times in every script run
def alike(name: str) -> list[str]:
    """The other models with which a model can be compared: of the same vocabulary and ids, and as
    many layers and heads."""
    if name in dropped():
        return []
    shared = [other for other in models() if other not in dropped()]
    others = [other for other in shared if other != name and _tokens(other) == _tokens(name)]
    mine = _depth(name)
    return [other for other in others if None in (mine, _depth(other)) or _depth(other) == mine]


def _depth(name: str) -> tuple | None:
    """Layers of the encoder and of the decoder, and heads; None where only reading the model
    tells."""
    try:
        if preset := UNTRAINED.get(name):
            sizes = vars(without_tensors(preset).config)
        else:
            file = folders()[name] / "config.json"
            if file.stat().st_size > LONGEST_CARD:
                return None
            sizes = json.loads(file.read_text(encoding="utf-8"))["sizes"]
        return tuple(sizes[key] for key in ("n_encoder_layers", "n_decoder_layers", "n_heads"))
    except Exception:  # see above; what is wrong with it is reported when it is chosen
        return None


def _tokens(name: str) -> str:
    """Identifies a model's vocabulary: the hash of its tokenizer file, or of the tokens of a
    tokenizer in memory."""
    if name in _in_memory:
        tokens = sorted(_in_memory[name].tokenizer.theirs.get_vocab().items())
        return hashlib.sha256(repr(tokens).encode("utf-8", "surrogatepass")).hexdigest()
    try:
        files = (folders()[trained(name)] / "tokenizer.json",)
        return _sha256(files, _stamp(files))
    except (KeyError, OSError):
        return name  # what is wrong with it is reported when it is chosen


def pairs(name: str) -> list[tuple[str, str]]:
    """Minimal pairs for a model: two sentences that differ in one word."""
    path = EXAMPLES / f"{trained(name)}.pairs.tsv"
    lines = lines_of(path.read_text(encoding="utf-8")) if path.is_file() else []
    both = [line.partition("\t") for line in lines]
    return [(one, other) for one, _, other in both]


def devices() -> list[str]:
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["auto", "cpu", *cuda, *mps]


def device_of(choice: str) -> str:
    """Resolves "auto": the device of `headlight --device`, else the first accelerator, else the
    CPU."""
    if choice != "auto":
        return choice
    return arguments.given().device or (devices()[2:] or ["cpu"])[0]


@once
def steps(name: str) -> dict[str, str]:
    """Training step → score, in order; empty for a model without readable snapshots."""
    if name in UNTRAINED or name in _in_memory or name not in folders():
        return {}
    try:
        scores = {
            str(step): headline({"scores": [score]}) if score else ""
            for step, score in snapshots.steps(folders()[name]).items()
        }
    except Exception:  # see above; the final weights are available all the same
        return {}
    return scores | {FINAL: ""} if scores else {}


def cards() -> dict[str, str]:
    """Name → Markdown on what every model to choose from is, in a few words."""
    own = {name: each.recorded.card for name, each in dropped().items()}
    own = {name: _recorded_card(card["title"], card["look_for"]) for name, card in own.items()}
    return {name: own[name] if name in own else _card(name) for name in models()}


@once
def language(name: str) -> str:
    """The code of the language that a model writes; "" where that is not known."""
    try:
        folder = folders()[trained(name)]
        if is_ours(folder):
            card = json.loads(read_within(folder / "config.json", LONGEST_CARD))["card"]
        else:
            card = contents_of(folder).card
        code = card["direction"][-1]
        return code if re.fullmatch("[a-z]{2,3}", code) else ""
    except Exception:  # see above; what is wrong with it is reported when it is chosen
        return ""


def _recorded_card(title: str, notes: str) -> str:
    return f"{escaped(title)}  \n{escaped(notes)}"


@once
def _card(name: str) -> str:
    try:
        if name in _in_memory:
            return escaped(_in_memory[name].card["title"])
        folder = folders()[trained(name)]
        if _is_recorded(name):
            origin, notes = about(folder)
            return _recorded_card(title_of(origin), notes)
        if not is_ours(folder):
            return _foreign_card(contents_of(folder))
        file = folder / "config.json"
        if file.stat().st_size > LONGEST_CARD:
            return "cannot be read"
        config = json.loads(file.read_text(encoding="utf-8"))
        if preset := UNTRAINED.get(name):
            count = parameters(preset, config["sizes"]["vocab_size"])
            difference = f"Differs from the paper in: {PRESETS[preset].differs}."
            card = {"title": PRESETS[preset].system, "weights": "random", "look_for": difference}
        else:
            card = config["card"]
            with safe_open(folder / "model.safetensors", "pt") as weights:
                shapes = [weights.get_slice(key).get_shape() for key in weights.keys()]  # noqa: SIM118
            count = sum(map(math.prod, shapes))
        title, look_for = (_text(card.get(key, "")) for key in ("title", "look_for"))
        facts = [title, f"{count:,} parameters", headline(card)]
        return f"{escaped(' · '.join(filter(None, facts)))}  \n{escaped(look_for)}"
    except Exception:  # see above; what is wrong with it is reported when it is chosen
        return "cannot be read"


def _foreign_card(contents: Contents) -> str:
    terms = f"licence: {_text(contents.card.get('terms', 'not stated'))}"
    facts = _text(contents.card["title"]), f"{contents.parameters:,} parameters", terms
    return escaped(" · ".join(facts))


@once
def _models() -> ByteBoundedCache:
    """Weights, shared by all sessions. The two used last stay: they may be compared."""

    def gone(model) -> None:
        def is_of_it(key) -> bool:
            return key[1:] == model

        _views().forget(is_of_it)  # views would keep the weights alive

    return ByteBoundedCache(MODEL_BYTES, least=2, gone=gone)


@once
def _views() -> ByteBoundedCache:
    """Views of all sessions. Making a dropped one again takes 10 ms."""
    return ByteBoundedCache(most=MOST_VIEWS)


def _shared(name: str, step: str, device: str) -> ModelView:
    """Weights on a device, with their twin, shared by all sessions, or this session's recording.
    Never hook these modules; take a view. Raises UnreadableModel."""
    if own := dropped().get(name):
        return ModelView(name, FINAL, "cpu", own.recorded, None, (own.file, own.sha256))

    def make() -> ModelView:
        with st.spinner("Loading the model …"), _progress(name) as progress:
            return _read(name, step, device, progress)

    try:
        return _models().get((name, step, device), make, lambda model: model.nbytes)
    except Exception as error:  # see above
        why = f"{type(error).__name__}: {_text(' '.join(str(error).split()))}"
        raise UnreadableModel(f"The model “{name}” cannot be loaded ({why}).") from error


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """Shows the progress of reading a large model."""
    bar, told = None, 0

    def progress(count: int, total: int) -> None:
        nonlocal bar, told
        percent = 100 * count // total
        if total >= LARGE and percent > told:
            told, bar = percent, bar or st.empty()
            millions = f"{count / 1e6:,.0f} of {total / 1e6:,.0f} million parameters"
            bar.progress(percent, f"Loading {escaped(name)}: {millions}")

    yield progress
    if bar:
        bar.empty()


def _read(name: str, step: str, device: str, progress: Progress) -> ModelView:
    if name in _in_memory:
        return ModelView(name, step, device, _in_memory[name], None, (id(_in_memory[name]),))
    folder = folders()[trained(name)]
    stamp = _stamp(_files(name, step))
    if _is_recorded(name):
        return ModelView(name, step, device, load_recorded(folder), None, stamp)
    checkpoint = load(folder, progress)
    if name in UNTRAINED:
        checkpoint = untrained(UNTRAINED[name], checkpoint)
    elif step != FINAL:
        snapshots.put_into(checkpoint.model, folder, int(step))
        checkpoint = replace(checkpoint, means={})  # they belong to the final weights
    checkpoint.to(device)
    try:
        reference = Reference(checkpoint.model)
    except ValueError:
        reference = None
    return ModelView(name, step, device, checkpoint, reference, stamp)


def view_of(name: str, step: str, device: str) -> ModelView:
    """A new view of a model's weights. Raises UnreadableModel."""
    return _shared(name, step, device).again()


def view_for(session: str, name: str, step: str, device: str) -> ModelView:
    """A session's view of a model's weights. Raises UnreadableModel."""
    model = name, step, device
    if name in dropped():  # by its name it could be an earlier file
        return view_of(*model)
    return _views().get((session, *model), lambda: view_of(*model))


def read_all() -> None:
    """Read all trained models ahead of time, until half of the memory for weights is used."""
    for name in folders():
        with suppress(UnreadableModel):  # the reason is reported when it is chosen
            _shared(name, FINAL, device_of("auto"))
        if _models().bytes > MODEL_BYTES / 2:
            return


def structure(name: str, step: str, device: str) -> Structure | None:
    """The sides and sites of a model; None if it cannot be read."""
    try:
        view = _shared(name, step, device_of(device))
    except UnreadableModel:
        return None
    model = view.model
    opens = _opens(view.checkpoint.card, model.sites())
    return Structure(
        model.sides(), model.sites(), view.checkpoint.parts(), opens, view.checkpoint.lacks
    )


def _opens(card: dict, sites: Sequence[Site]) -> dict:
    """The head that the model's card says to open on, counted from 1; empty if it names none that
    exists."""
    opens = card.get("opens")
    for site in sites:
        for head in range(site.n_heads):
            if opens == {"kind": site.kind, "layer": site.layer, "head": head}:
                return {"kind": site.kind, "layer": site.layer + 1, "head": head + 1}
    return {}


def sha256(view: ModelView) -> tuple[str, str]:
    """The names of the weight files and their SHA-256; for random weights, "its parameters" and
    their hash. Raises UnreadableModel if the files have changed since they were read."""
    if view.name in dropped():
        file, digest = view.stamp
        return file, digest
    if view.name in UNTRAINED or view.name in _in_memory:
        return "its parameters", _sha256_of_parameters(view.name)
    try:
        folder, files = folders()[view.name], _files(view.name, view.step)
        stamp = _stamp(files)
        if stamp == view.stamp:
            inside = [file for file in files if file != folder]
            names = ", ".join(file.relative_to(folder).as_posix() for file in inside) or folder.name
            return names, _sha256(files, stamp)
    except (OSError, ValueError):
        pass  # files that are missing or broken have changed, too
    raise UnreadableModel(
        f"The files of the model “{view.name}” were changed or removed after loading, so they "
        "cannot be checked. The model in memory is the one that was loaded. Restart the app to "
        "load the new files."
    )


def _files(name: str, step: str) -> tuple[Path, ...]:
    """The files that hold a model's weights; none for random weights. Raises OSError and
    ValueError."""
    if name in UNTRAINED:
        return ()
    folder = folders()[name]
    if step != FINAL:
        return (snapshots.file_of(folder, int(step)),)
    if _is_recorded(name):
        return (folder,)
    if is_ours(folder):
        return (folder / "model.safetensors",)
    return contents_of(folder).files


def _stamp(files: Sequence[Path]) -> tuple:
    """Inode, time and size of each file. Raises OSError."""
    stats = (file.stat() for file in files)
    return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)


@st.cache_data(max_entries=64, show_spinner=False)
def _sha256(files: tuple[Path, ...], stamp: tuple) -> str:
    """SHA-256 over the files, one after another."""
    digest = hashlib.sha256()
    for file in files:
        with open(file, "rb") as content:
            while chunk := content.read(2**20):
                digest.update(chunk)
    return digest.hexdigest()


@st.cache_data(max_entries=64, show_spinner=False)
def _sha256_of_parameters(name: str) -> str:
    return parameters_sha256(_shared(name, FINAL, "cpu").model)


def random_weights(name: str) -> str:
    """A notice for a model with random weights; "" for a trained one."""
    if name not in UNTRAINED:
        return ""
    writes = any(side.writes for side in sides(UNTRAINED[name]))
    wrote = f" {output_texts.only_reads(DEFAULT_MODEL)}" if writes else ""
    return (
        f"**{UNTRAINED[name]}** is untrained: its weights are random, but always the same. The "
        f"pictures show how it is built, not what it would learn.{wrote}"
    )


def missing(name: str, step: str) -> str:
    """Why a model or training step that a file asks for is not available; "" if it is."""
    if name not in models() and name.endswith(YOURS):
        return f"It needs the recording “{name[:80]}”. Drop that file here first."
    if name not in models():
        return (
            f"It needs the model “{name[:80]}”, which is missing. Put it into a folder DIR and "
            "start the app with: headlight --models DIR"
        )
    if step != FINAL and step not in steps(name):
        return f"It needs training step {step[:20]} of “{name}”, which is missing."
    return ""
