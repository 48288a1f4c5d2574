"""The bundle (on screen: evidence pack): one ZIP with a view, its numbers, and all that is needed
to reproduce them.

A bundle is opened in memory and nothing is written: only files with known names are unpacked, up to
a known size, and numbers are never unpickled.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

import numpy as np

from headlight.app.export import pictures, tables
from headlight.app.export.view import View, permalink
from headlight.app.state.pages import ALIASES, PAGES
from headlight.app.state.settings import SETTINGS
from headlight.app.text.formats import size
from headlight.app.text.part_names import head_name, kind_name
from headlight.model.pause import pause
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace
from headlight.model.recording.weights import KIND_NAME

FORMAT = "Headlight evidence pack"
VERSION = 2
IDENTICAL, OTHER_HARDWARE = 1e-6, 1e-4
RECORD, NUMBERS, README = "evidence.json", "weights.npz", "README.txt"
PICTURES = {
    f"{draw.__name__}.{ending}": partial(draw, ending=ending)
    for draw in (pictures.head, pictures.grid)
    for ending in ("png", "svg", "pdf")
} | {
    "page.html": pictures.page,
}
TABLES = ("weights.csv", "weights.parquet")
FILES = {RECORD, NUMBERS, README, *PICTURES, *TABLES}

LARGEST_BUNDLE = 100 * 2**20  # bytes, as in app/.streamlit/config.toml
LARGEST_NUMBERS = 48 * 2**20
LARGEST_TABLE = 32 * 2**20
LARGEST_RECORD = 2**20
ENTRY = b"PK\1\2"  # stands before each file in the list of a ZIP
MOST_ENTRIES = 32
LIBRARIES = ("torch", "numpy", "tokenizers", "safetensors", "streamlit", "matplotlib", "pyarrow")


class Unreadable(ValueError):
    """A bundle that cannot be opened, and why."""


@dataclass(frozen=True)
class Model:
    """Identifies weights: the model's name in the app, and the SHA-256 of `of`, a file or
    "parameters"."""

    name: str
    of: str
    sha256: str


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle. `attention`: kind → (layers, heads, query, key), or only that of
    `head` (kind, layer, head from 0), (1, 1, query, key). `tokens`: by title of their text,
    "source" and "target". `page`: the page of the view, whose settings are among `settings`."""

    settings: Mapping
    page: str
    model: Model
    versions: Mapping[str, str]
    attention: Mapping[str, np.ndarray]
    tokens: Mapping[str, tuple[str, ...]]
    head: tuple[str, int, int] | None


# Making a bundle


def contents(view: View) -> tuple[list[str], list[str], bool]:
    """The files of a bundle, a sentence on each omission, and whether it holds the weights of the
    selected head alone."""
    files, left_out = [RECORD, README, NUMBERS, *PICTURES], []
    one_head = tables.size(view, "npz", one_head=False) > LARGEST_NUMBERS
    if one_head:
        left_out.append(
            "All weights together would take about "
            f"{size(tables.size(view, 'npz', one_head=False))}, so the pack has only those of "
            "the selected head."
        )
    for name in TABLES:
        large = tables.size(view, name.rpartition(".")[2], one_head)
        if large <= LARGEST_TABLE:
            files.append(name)
        else:
            left_out.append(
                f"{name} would take about {size(large)} and is left out; {NUMBERS} has the same "
                "numbers."
            )
    return files, left_out, one_head


def make(view: View, model: Model) -> bytes:
    """The bundle of a view, computed with the weights of `model`."""
    files, left_out, one_head = contents(view)
    link = permalink(view.settings, view.page)
    head = dict(zip(("kind", "layer", "head"), view.head, strict=True)) if one_head else None
    record = {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(view.settings),
        "permalink": link,
        "model": vars(model),
        "versions": versions(),
        "attention": {
            kind: [side.title for side in view.trace.sides_of(kind)] for kind in view.trace.kinds
        },
        "numbers_of": head,
    }
    contents_of = {
        RECORD: json.dumps(record, indent=2, ensure_ascii=False).encode("utf-8"),
        README: _readme(view, model, link, files, left_out).encode("utf-8"),
        NUMBERS: tables.npz(view, one_head),
    }
    pause()
    if "weights.csv" in files:
        contents_of["weights.csv"] = tables.csv(view, one_head)
    if "weights.parquet" in files:
        contents_of["weights.parquet"] = tables.parquet(view, one_head)
    for name, draw in PICTURES.items():
        pause()
        contents_of[name] = draw(view)
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
        for name in files:
            pause()
            entry = zipfile.ZipInfo(name)  # no timestamp: the same view gives the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents_of[name])
    return bundle.getvalue()


def versions() -> dict[str, str]:
    numbers = {"python": python_version()}
    for name in LIBRARIES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            continue
    return numbers


def _readme(view, model: Model, link: str, files: list[str], left_out: list[str]) -> str:
    kind, *_ = view.head
    texts = " and ".join(f'"{side.title}"' for side in view.trace.sides.values())
    about = {
        RECORD: "all settings, the model's SHA-256 and the library versions",
        NUMBERS: f'the weights: numpy.load("weights.npz")["{kind}"][layer, head, query, key],\n'
        f"    counted from 0, and the tokens of each text as {texts}",
        "weights.csv": "the same as a table, with positions counted from 1:\n    "
        'pandas.read_csv("weights.csv", keep_default_na=False)\n    (a token '
        "that a spreadsheet would read as a formula starts with an apostrophe)",
        "weights.parquet": 'the same table: pandas.read_parquet("weights.parquet")',
        "head.png": f"{view.name}, as a picture",
        "head.svg": "the same, for scaling and editing",
        "head.pdf": "the same, for a paper",
        "grid.png": "every head of its kind, small",
        "grid.svg": "the same, for scaling and editing",
        "grid.pdf": "the same, for a paper",
        "page.html": "all heads in a browser, offline: click down to the numbers",
    }
    listed = "\n".join(f"{name}\n    {about[name]}" for name in files if name in about)
    omissions = "".join(f"\n{sentence}" for sentence in left_out)
    libraries = "\n".join(f"{name} {number}" for name, number in versions().items())
    return f"""Headlight evidence pack

What the attention heads of a Transformer attended to, and how to see it again.

Model: {model.name}
SHA-256 of its {model.of}: {model.sha256}
View: {view.name}

To check it: start Headlight (streamlit run app/main.py), open the page "Share" and drop this
ZIP there. The app restores the view, runs the model again and reports how well the numbers
agree.

Or append this to the address of the app, such as http://localhost:8501/
{link}

Files
{listed}
{omissions}
In every picture, a row is a query and a column is a key.

Made with
{libraries}
"""


# Opening a bundle


def read(data: bytes) -> Bundle:
    """The contents of a bundle. Raises Unreadable with a message for the user."""
    if len(data) > LARGEST_BUNDLE:
        raise Unreadable(
            f"It is too large: {size(len(data))}. The limit is {size(LARGEST_BUNDLE)}."
        )
    archive = _archive(data, "It")
    for name in archive.namelist():
        if name not in FILES:
            raise Unreadable(f"It contains a file that does not belong in a pack: {_quoted(name)}.")
    bundle, kinds = _record(_member(archive, RECORD, LARGEST_RECORD))
    texts = {title for sides in kinds.values() for title in sides}
    arrays = _arrays(_member(archive, NUMBERS, LARGEST_NUMBERS + LARGEST_RECORD), kinds, texts)
    tokens = {title: tuple(arrays.pop(title).tolist()) for title in texts & arrays.keys()}
    _check_shapes(arrays, tokens, kinds, bundle.head)
    return replace(bundle, attention=arrays, tokens=tokens)


def _archive(data: bytes, what: str) -> zipfile.ZipFile:
    """A ZIP with few entries, each of which can be read. Their number is checked before the list of
    them is read, which could have millions."""
    if not data.startswith(b"PK"):
        raise Unreadable(f"{what} is not a ZIP file.")
    if data.count(ENTRY) > MOST_ENTRIES:
        raise Unreadable(f"{what} contains more files than a pack does.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # of zipfile, struct and Unicode
        raise Unreadable(
            f"{what} is incomplete or damaged: its list of files cannot be read."
        ) from error
    if len(set(archive.namelist())) < len(archive.namelist()):
        raise Unreadable(f"{what} contains two files of the same name.")
    for entry in archive.infolist():
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable(
                f"{_quoted(entry.filename)} in it is compressed in an unsupported way."
            )
    return archive


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """One file of a ZIP. No more of it is unpacked than the list of files says."""
    if name not in archive.namelist():
        raise Unreadable(f"It lacks {name}.")
    if archive.getinfo(name).file_size > most:
        raise Unreadable(f"{name} in it is larger than {size(most)} when unpacked.")
    try:
        return archive.read(name)
    except Exception as error:  # zlib, zipfile and struct each raise errors of their own
        raise Unreadable(f"{name} in it is damaged or encrypted.") from error


def _record(content: bytes) -> tuple[Bundle, Mapping[str, tuple[str, str]]]:
    """What evidence.json says, every setting checked, and the texts of each kind of attention."""
    try:
        record = json.loads(content)
        if record["format"] == FORMAT and record["version"] != VERSION:
            raise Unreadable(
                "It was made by another version of Headlight, with a different pack format."
            )
        settings, one = record["settings"], record.get("numbers_of")
        paths = {page.path: page.key for page in PAGES.values()} | ALIASES
        page = paths[record["permalink"].partition("?")[0]]
        model = Model(*(record["model"][field.name] for field in fields(Model)))
        versions = {str(name): str(number) for name, number in record["versions"].items()}
        kinds = {kind: (query, key) for kind, (query, key) in record["attention"].items()}
        titles = {title for sides in kinds.values() for title in sides}
        head = None if one is None else (one["kind"], one["layer"], one["head"])
        if not (
            record["format"] == FORMAT
            and isinstance(settings, dict)
            and all(isinstance(text, str) for text in vars(model).values())
            and all(map(KIND_NAME.fullmatch, [*kinds, *titles]))
            and kinds.keys().isdisjoint(titles)
            and settings["kind"] in kinds
            and (head is None or (head[0] in kinds and all(map(_is_count, head[1:]))))
        ):
            raise ValueError("not as it is written here")
    except Unreadable:
        raise
    except (ValueError, RecursionError, TypeError, LookupError, AttributeError) as error:
        raise Unreadable(f"Its {RECORD} is damaged, or is not that of a {FORMAT}.") from error
    known = _settings_of(page)
    for key, setting in known.items():
        if key not in settings:
            # A page does not always draw all its settings, and older packs lack newer ones.
            if setting.pages or not setting.run:
                continue
            raise Unreadable(f"Its {RECORD} lacks the setting “{key}”.")
        if not setting.could_be(settings[key]):
            raise Unreadable(
                f"Its {RECORD} has an invalid value for “{key}”: "
                f"{_quoted(json.dumps(settings[key]))}."
            )
    settings = {key: settings[key] for key in known if key in settings}
    return Bundle(settings, page, model, versions, {}, {}, head), kinds


def _settings_of(page: str) -> dict:
    """The settings in a bundle made on a page."""
    return {
        key: setting
        for key, setting in SETTINGS.items()
        if setting.address and setting.stands_on(page)
    }


def _is_count(value: object) -> bool:
    """Whether it can count layers or heads."""
    return type(value) is int and 0 <= value < 1000


def _arrays(content: bytes, kinds: Mapping, texts: set[str]) -> dict[str, np.ndarray]:
    """The arrays of weights.npz: weights and tokens, checked for type and size."""
    lengths = {entry.filename: entry.file_size for entry in _archive(content, NUMBERS).infolist()}
    if sum(lengths.values()) > LARGEST_NUMBERS + LARGEST_RECORD:
        most = size(LARGEST_NUMBERS + LARGEST_RECORD)
        raise Unreadable(f"{NUMBERS} in it is larger than {most} when unpacked.")
    lengths.pop("settings.npy", None)  # evidence.json says the same
    if not lengths.keys() <= {f"{name}.npy" for name in kinds.keys() | texts}:
        raise Unreadable(f"Its {NUMBERS} contains an array that does not belong in a pack.")
    arrays = {}
    for file, length in lengths.items():
        name = file.removesuffix(".npy")
        try:
            array = np.load(io.BytesIO(content), allow_pickle=False)[file]
            if not 0 < array.nbytes < length:
                raise ValueError("the file does not hold them")
        except Exception as error:  # the header is parsed as Python source and may contain anything
            raise Unreadable(
                f"The array “{name}” in {NUMBERS} cannot be read: it does not match its header, or "
                "it is a pickle, which could run programs."
            ) from error
        (_check_weights if name in kinds else _check_tokens)(name, array)
        arrays[name] = array
    return arrays


def _check_weights(name: str, array: np.ndarray) -> None:
    if array.dtype != np.float32 or array.ndim != 4 or not array.flags.c_contiguous:
        raise Unreadable(
            f"The array “{name}” in {NUMBERS} should be float32 with four axes, but is "
            f"{array.dtype.name[:40]} with {array.ndim}."
        )
    if not (array.min() >= 0 and array.max() <= 1 + IDENTICAL * 10):  # nor NaN
        raise Unreadable(f"The weights “{name}” in {NUMBERS} are not between 0 and 1.")


def _check_tokens(name: str, array: np.ndarray) -> None:
    try:
        if array.ndim != 1:
            raise ValueError("no list")
        "".join(array.tolist()).encode("utf-8")
    except Exception as error:  # of NumPy too: numbers that are no characters
        raise Unreadable(
            f"The array “{name}” in {NUMBERS} contains something other than text."
        ) from error


def _check_shapes(arrays: dict, tokens: dict, kinds: Mapping, head: tuple | None) -> None:
    if not arrays:
        raise Unreadable(f"Its {NUMBERS} contains no weights.")
    for kind, weights in arrays.items():
        expected = tuple(len(tokens.get(name, ())) for name in kinds[kind])
        if weights.shape[2:] != expected:
            raise Unreadable(
                f"The weights “{kind}” in {NUMBERS} are {weights.shape[2]} × "
                f"{weights.shape[3]}, but there are {expected[0]} × {expected[1]} tokens."
            )
    if head and (list(arrays) != [head[0]] or arrays[head[0]].shape[:2] != (1, 1)):
        raise Unreadable(f"Its {NUMBERS} does not belong to the head that {RECORD} names.")


def _quoted(text: str) -> str:
    shown = "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in text[:60])
    return f"“{shown}{'…' if len(text) > 60 else ''}”"


# Comparing bundles


@dataclass(frozen=True)
class Agreement:
    """How well a bundle and a trace agree. `verdict`: "identical", "same model, other hardware" or
    "different"; `explanation`: sentences; `largest`: the largest difference between weights, None
    if they cannot be compared."""

    verdict: str
    explanation: list[str]
    largest: float | None = None


def compare(bundle: Bundle, trace: Trace, model: Model) -> Agreement:
    """Compare with a `trace` computed here under the bundle's settings, with the weights of
    `model`."""
    explanation = []
    same = model.sha256 == bundle.model.sha256
    if not same:
        explanation.append(
            f"This is a different model: the SHA-256 of {bundle.model.of[:40]} starts with "
            f"{bundle.model.sha256[:12]} in the pack, that of {model.of} with "
            f"{model.sha256[:12]} here."
        )
    if message := _other_tokens(bundle, trace):
        return Agreement("different", [*explanation, message])
    pairs = {}
    for kind, theirs in bundle.attention.items():
        ours = trace.attention.get(kind)
        if bundle.head and ours is not None:
            _, layer, head = bundle.head
            ours = ours[layer : layer + 1, head : head + 1]
        if ours is None or ours.shape != theirs.shape:
            here = "none" if ours is None else f"{ours.shape[0]} layers of {ours.shape[1]} heads"
            there = f"{theirs.shape[0]} layers of {theirs.shape[1]} heads"
            name = kind_name(trace, kind) if kind in trace.kinds else f"The attention “{kind}”"
            message = f"{name} has {there} in the pack and {here} here."
            return Agreement("different", [*explanation, message])
        pairs[kind] = np.abs(ours - theirs).max(axis=(2, 3))
    if missing := [] if bundle.head else [kind for kind in trace.attention if kind not in pairs]:
        names = " and ".join(trace.kinds[kind][0].title for kind in missing)
        message = f"The pack has no weights for {names}."
        return Agreement("different", [*explanation, message])
    kind = max(pairs, key=lambda kind: pairs[kind].max())
    largest = float(pairs[kind].max())
    layer, head = np.unravel_index(pairs[kind].argmax(), pairs[kind].shape)
    if bundle.head:
        _, layer, head = bundle.head
    where = head_name(trace, Place(kind, int(layer), int(head)))
    count = sum(theirs.size for theirs in bundle.attention.values())
    if largest <= IDENTICAL:
        verdict = "identical"
        message = f"All {count:,} weights agree {f'to {largest:.0e}' if largest else 'exactly'}."
    elif largest <= OTHER_HARDWARE:
        verdict = "same model, different hardware"
        message = f"The {count:,} weights agree to {largest:.0e}, within rounding ({where})."
    else:
        verdict = "different"
        heads = sum(int((far > OTHER_HARDWARE).sum()) for far in pairs.values())
        total = sum(far.size for far in pairs.values())
        message = (
            f"{heads} of {total} heads differ by more than {OTHER_HARDWARE:g}. The largest "
            f"difference in weight is {largest:.2g}, in {where}."
        )
    if not same and verdict != "different":
        message += " Still, the numbers for this text agree."
    if verdict != "identical" and (others := _other_versions(bundle)):
        message += f" {others}"
    return Agreement(verdict, [*explanation, message], largest)


def _other_tokens(bundle: Bundle, trace: Trace) -> str:
    """A sentence on the first token that differs."""
    for side in trace.sides.values():
        name, here = side.title, trace.texts[side.name].tokens
        there = bundle.tokens.get(name, ())
        if tuple(there) == tuple(here):
            continue
        at = next(
            (i for i, pair in enumerate(zip(there, here, strict=False)) if pair[0] != pair[1]),
            min(len(there), len(here)),
        )
        shown = [_quoted(side[at]) if at < len(side) else "nothing" for side in (there, here)]
        return (
            f"The {name} is split into other tokens: position {at + 1} is {shown[0]} in the "
            f"pack and {shown[1]} here."
        )
    return ""


def _other_versions(bundle: Bundle) -> str:
    here = versions()
    others = [
        f"{name} {bundle.versions[name][:20]} in the pack, {number} here"
        for name, number in here.items()
        if name in bundle.versions and bundle.versions[name] != number
    ]
    return f"Different versions: {'; '.join(others)}." if others else ""
