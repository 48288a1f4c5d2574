"""A recording: attention weights without the model that they come from, as a trace, and its file:
safetensors, with the texts in its metadata. Its weights are checked, and nothing in a file is
trusted. What cannot be shown says so with layer, head and row, which count from 1 as on the screen.
"""

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from headlight.model.files import open_regular, replace_file
from headlight.model.masks import Masks
from headlight.model.messages import LONGEST_MESSAGE, reason, short
from headlight.model.probing.run import Run
from headlight.model.probing.trace import NO_ID, Trace
from headlight.model.recording.predictions import Likeliest, known, opened_predictions
from headlight.model.recording.texts import Words, texts_of
from headlight.model.recording.weights import (
    KIND_NAME,
    MOST_LAYERS,
    TITLES,
    CannotRecord,
    array_of,
    check,
    kind_by_weights,
    layers_by_name,
    stacked,
)
from headlight.model.sites import Side, Site
from headlight.model.tokenizer import OTHER_SPECIAL, ROLES, Encoding

KEY, FORMAT = "headlight", "recording 1"  # in a file's metadata
BEGINS = json.dumps({"format": FORMAT})[:-1]  # what stands under the key
LONGEST_NOTE, MOST_NOTES = 300, 20  # characters; of a recording
HOLDS = "attention weights and the texts, which anyone who has this file can read"
ENDING = ".safetensors"
MOST_TEXTS = 1_000  # of a file
LARGEST, LONGEST_HEADER = 2**31, 2**24  # bytes of a file: its weights in float32, its texts
MOST_KINDS, MOST_HEADS = 16, 20_000  # that can be shown


@dataclass(frozen=True, repr=False, eq=False)
class Recording(Trace):
    """A trace of which only the weights are known, and what was predicted, if anything: all other
    numbers are empty. `notes`: what is unusual about the weights, a sentence each."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)
    predictions: Likeliest | None = field(default=None, kw_only=True)

    def most_probable(self, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """As Trace has them, of at most MOST where rows are tokens; of no row where nothing is
        predicted."""
        if self.predictions is None:
            return np.zeros((0, 0), int), np.zeros((0, 0), np.float32)
        ids, shares = self.predictions.best
        return ids[:, :count], shares[:, :count]

    @property
    def log_probabilities(self) -> np.ndarray:
        """As Trace has them; empty where nothing is predicted."""
        return np.zeros(0) if self.predictions is None else self.predictions.log_probabilities

    def outputs(
        self, ids: Iterable[int], preceding: Iterable[int | None] = repeat(None)
    ) -> list[str]:
        """Labels of what is predicted, as Checkpoint.outputs has them."""
        name = known([(self.predictions, self.preceding)] if self.predictions else [])
        return [name(*pair) for pair in zip(ids, preceding, strict=False)]

    def predicting(self, predictions: Likeliest, following: Sequence[int], end: str) -> "Recording":
        """The same with predictions; `following` and `end` as Pass has them."""
        side = replace(self.sides[predictions.side], predicts=predictions.predicts)
        sides = {name: replace(one, predicts="") for name, one in self.sides.items()}
        return replace(
            self, sides=sides | {side.name: side}, predictions=predictions,
            following=tuple(following), end=end,
        )  # fmt: skip

    def save(self, path: str | Path, half: bool = False) -> None:
        """Write this one alone, see `save`."""
        save(path, self, half)


def recording(
    attention: Mapping[str, np.ndarray],
    texts: Mapping[str, Encoding],
    read: Mapping[str, tuple[str, str]],
    *,
    titles: Mapping[str, str] = {},
    names: Mapping[str, Sequence[str]] = {},
    layers: Mapping[str, Sequence[int]] = {},
    key_heads: Mapping[str, Sequence[int]] = {},
    **known,
) -> Recording:
    """A recording of checked weights, kind → (layers, heads, query, key), and of texts by side.
    `read`: kind → the sides of its queries and keys; `titles`: of sides; `names`: kind → names of
    the modules, and likewise the numbers of the `layers`, from 0, and the number of heads of the
    keys; `known`: further fields. Raises CannotRecord."""
    titles = {name: titles.get(name, name) for name in texts}
    _check_names(attention, texts, read, titles)
    for what in (names, layers, key_heads):
        if any(len(each) != len(attention[kind]) for kind, each in what.items()):
            raise CannotRecord("it does not say of each layer what it is.")
    numbers = {kind: layers.get(kind, range(len(weights))) for kind, weights in attention.items()}
    for kind, each in numbers.items():
        if not all(a < b for a, b in pairwise(each)) or not 0 <= each[0] <= each[-1] < MOST_LAYERS:
            raise CannotRecord(f"{kind}: layers are numbered from 1 to {MOST_LAYERS}, in order.")
    if sum(w.shape[0] * w.shape[1] for w in attention.values()) > MOST_HEADS:
        raise CannotRecord(f"It has more than {MOST_HEADS:,} heads.")
    across = {query for query, key in read.values() if query != key}
    stacks = {query: kind for kind, (query, key) in read.items() if query == key}
    sides = {
        name: Side(name, titles[name], stacks.get(name, name), "", (), "", writes=name in across)
        for name in texts
    }
    sites = tuple(
        Site(
            kind, number, names[kind][i] if kind in names else f"{kind}.{number}", *read[kind],
            TITLES.get(kind, f"{kind} attention"), (), weights.shape[1],
            key_heads[kind][i] if kind in key_heads else weights.shape[1],
        )
        for kind, weights in attention.items()
        for i, number in enumerate(numbers[kind])
    )  # fmt: skip
    for weights in attention.values():
        weights.flags.writeable = False
    parts = "table token final scores query key value output feed_forward stream"
    nothing = {part: {} for part in parts.split()}
    run = Run(tuple(texts.values()), Masks())
    return Recording(
        run, sides, sites, dict(texts), (), "…", attention=dict(attention),
        logits=np.zeros((0, 0), np.float32), **nothing, **known,
    )  # fmt: skip


def _check_names(
    attention: Mapping[str, np.ndarray],
    texts: Mapping[str, Encoding],
    read: Mapping[str, tuple[str, str]],
    titles: Mapping[str, str],
) -> None:
    """Raises CannotRecord unless kinds and texts have names of their own, and each has weights."""
    called = [*attention, *titles.values()]
    if wrong := [name for name in (*called, *texts) if not KIND_NAME.fullmatch(name)]:
        raise CannotRecord(f"“{short(wrong[0])}” is no name of an attention or of a text.")
    if len({*called}) < len(called):
        raise CannotRecord("Two of its kinds of attention and texts have the same name.")
    if {side for sides in read.values() for side in sides} != {*texts} or not attention:
        raise CannotRecord("It does not say which attention reads which text.")
    if len(attention) > MOST_KINDS:
        raise CannotRecord(f"It has more than {MOST_KINDS} kinds of attention.")


def of_trace(trace: Trace, origin: str = "", notes: Sequence[str] = ()) -> Recording:
    """A trace of one of our own models, of which the weights are kept. Raises CannotRecord."""
    if isinstance(trace, Recording):
        return trace
    for kind, weights in trace.attention.items():
        check(kind, weights, True, [site.layer for site in trace.kinds[kind]])
    return recording(
        {kind: weights.copy() for kind, weights in trace.attention.items()}, trace.texts,
        {kind: (sites[0].query_side, sites[0].key_side) for kind, sites in trace.kinds.items()},
        titles={name: side.title for name, side in trace.sides.items()},
        names={kind: [site.name for site in sites] for kind, sites in trace.kinds.items()},
        layers={kind: [site.layer for site in sites] for kind, sites in trace.kinds.items()},
        key_heads={k: [site.n_key_heads for site in sites] for k, sites in trace.kinds.items()},
        origin=origin, notes=tuple(notes),
    )  # fmt: skip


def recording_of(
    found: Mapping[str, Sequence[np.ndarray]], tokens: Words = None, target: Words = None, *,
    partial: bool = False, notes: Sequence[str] = (), names: Mapping[str, Sequence[str]] = {},
    key_heads: Mapping[str, Sequence[int]] = {}, **known,
) -> Recording:  # fmt: skip
    """A recording of kind → for each layer (heads, query, key), once they are checked; a kind ""
    is named by its weights. The rest as `read` and `recording` take it. Raises CannotRecord."""
    if not found:
        raise CannotRecord("There are no weights in it.")
    notes, attention, numbers, named = list(notes), {}, {}, {}
    for kind, layers in found.items():
        own = layers_by_name(names[kind]) if kind in names else [*range(len(layers))]
        array = stacked(kind, layers, own)
        notes += check(kind, array, partial, own)
        called = kind or kind_by_weights(array)
        attention[called], numbers[called] = array.astype(np.float32), own
        named |= {called: names[kind]} if kind in names else {}
    texts, titles, read = texts_of(attention, tokens, target)
    return recording(
        attention, texts, read, titles=titles, names=named, layers=numbers, key_heads=key_heads,
        notes=tuple(notes), **known,
    )  # fmt: skip


def save(path: str | Path, recordings: Trace | Iterable[Trace], half: bool = False) -> None:
    """Write recordings, or traces, to a .safetensors file that `load` reads. The file holds their
    texts. With `half`, weights are stored in float16: half the size, each within 0.0005. Raises
    CannotRecord where recordings have different heads, and OSError.

    >>> save("ab.safetensors", load("copy").trace("a b"))
    >>> load("ab.safetensors").trace("a b").attention["cross"].shape
    (2, 2, 3, 3)
    """
    path = Path(path)
    if path.suffix != ENDING:
        raise CannotRecord(f"A recording is saved as {ENDING}, not as {short(path.name)}.")
    given: list = list(recordings) if isinstance(recordings, Iterable) else [recordings]
    if not all(isinstance(one, Trace) for one in given):
        raise CannotRecord("What is saved are recordings, as record(…) makes them.")
    if not 0 < len(given) <= MOST_TEXTS:
        raise CannotRecord(f"A file holds 1 to {MOST_TEXTS:,} recordings, not {len(given):,}.")
    whole = [of_trace(one) for one in given]
    check_alike(whole)
    if (needed := sum(one.nbytes for one in whole)) > LARGEST:
        raise CannotRecord(
            f"These weights take {needed / 1e9:,.1f} GB; a file holds at most {LARGEST / 1e9:,.1f}."
        )
    tensors, described = {}, []
    for i, one in enumerate(whole):
        for kind, weights in one.attention.items():
            stored = weights.astype(np.float16) if half else weights
            tensors[f"{i}.{kind}"] = np.ascontiguousarray(stored)
        predicted = {}
        if one.predictions:
            arrays, rest = one.predictions.described(i)
            tensors |= arrays
            predicted = {"predicted": rest | {"following": [*one.following], "end": one.end}}
        described.append(
            {
                "texts": {side: [*map(list, text.parts)] for side, text in one.texts.items()},
                "titles": {name: side.title for name, side in one.sides.items()},
                "read": {kind: [s[0].query_side, s[0].key_side] for kind, s in one.kinds.items()},
                "names": {kind: [s.name for s in sites] for kind, sites in one.kinds.items()},
                "layers": {kind: [s.layer for s in sites] for kind, sites in one.kinds.items()},
                "key_heads": {k: [s.n_key_heads for s in sites] for k, sites in one.kinds.items()},
                "origin": one.origin,
                "notes": list(one.notes),
                **predicted,
            }
        )
    # Under one key: safetensors writes several in any order.
    content = {"format": FORMAT, "holds": HOLDS, "recordings": described}
    metadata = {KEY: json.dumps(content, ensure_ascii=False)}
    if len(metadata[KEY].encode()) > LONGEST_HEADER // 2:  # quotes are escaped there
        raise CannotRecord("These texts are too long for a file.")
    replace_file(path, to_bytes(tensors, metadata))


def check_alike(recordings: Sequence[Recording]) -> None:
    """Raises CannotRecord unless all have the same heads and read as many texts."""
    first = recordings[0]
    for i, one in enumerate(recordings):
        if (one.sites, one.sides) != (first.sites, first.sides):
            raise CannotRecord(
                f"Recording {i + 1} has other heads or texts than the first. Use a file for each."
            )


def is_recording(path: Path) -> bool:
    """Whether a file says that it is one. Raises OSError."""
    try:
        with open_regular(path) as file:
            return bool(_described(file))
    except OSError:
        raise
    except Exception:  # the file may hold anything
        return False


def about(path: Path) -> tuple[str, str]:
    """Where the first recording of a file comes from, and what is unusual about it, without its
    weights. Raises OSError, and anything for a file that is broken."""
    with open_regular(path) as file:
        _, (first, *_) = _described(file)
    return _line(first["origin"]), " ".join(_notes(first))


def opened(source: Path | bytes, name: str = "", most: int = LARGEST) -> list[Recording]:
    """The recordings of a file that `save` wrote, or of anyone's that says so: a path, or what such
    a file holds, and the `name` to call it by; at most so many bytes of weights. Raises
    CannotRecord."""
    name = short(source.name if isinstance(source, Path) else name)
    try:
        with open_regular(source) if isinstance(source, Path) else io.BytesIO(source) as stream:
            header, described = _described(stream)
        shapes = [entry["shape"] for key, entry in header.items() if key != "__metadata__"]
        needed = sum(4 * int(np.prod([float(n) for n in shape])) for shape in shapes)
        if needed > most:
            raise CannotRecord(
                f"{name}: its weights take {needed / 1e6:,.0f} MB, more than the "
                f"{most / 1e6:,.0f} MB that there is room for."
            )
        if isinstance(source, Path):
            with safe_open(source, "np") as file:
                return _recordings(file.get_tensor, described)
        return _recordings(from_bytes(source).__getitem__, described)
    except CannotRecord as error:
        prefix = "" if str(error).startswith(name) else f"{name}: "
        raise CannotRecord(short(f"{prefix}{error}", LONGEST_MESSAGE)) from None
    except OSError as error:
        raise CannotRecord(f"{name} cannot be read: {reason(error)}.") from None
    except Exception as error:  # the file may hold anything
        raise CannotRecord(f"{name} is broken: {type(error).__name__}: {reason(error)}.") from None


def _described(stream: BinaryIO) -> tuple[dict, list[dict]]:
    """The header of a file, and what it says of each recording."""
    length = int.from_bytes(stream.read(8), "little")
    if length > LONGEST_HEADER:
        raise CannotRecord("it is not a recording, or its texts are too long.")
    header = json.loads(stream.read(length))
    content = header.get("__metadata__", {}).get(KEY, "")
    if not content.startswith(BEGINS):
        raise CannotRecord("it is not a recording that this version reads.")
    described = json.loads(content)["recordings"]
    if not isinstance(described, list) or not 0 < len(described) <= MOST_TEXTS:
        raise CannotRecord("it describes no recordings.")
    return header, described


def _recordings(tensor: Callable[[str], np.ndarray], described: list[dict]) -> list[Recording]:
    return [_opened(tensor, i, each) for i, each in enumerate(described)]


def _opened(tensor: Callable[[str], np.ndarray], number: int, described: Mapping) -> Recording:
    read_by = {str(k): (str(query), str(key)) for k, (query, key) in described["read"].items()}
    texts = {str(side): _encoding(parts) for side, parts in described["texts"].items()}
    layers, key_heads = (
        {kind: [_count(n) for n in described[key][kind]] for kind in read_by}
        for key in ("layers", "key_heads")
    )
    attention = {}
    for kind, sides in read_by.items():
        array = tensor(f"{number}.{kind}")
        if array.ndim != 4 or array.shape[-2:] != tuple(len(texts[side].ids) for side in sides):
            raise CannotRecord(f"{kind} has the shape {array.shape}, which does not fit its texts.")
        array = array_of(kind, array)
        if not min(array.shape):
            raise CannotRecord(f"{kind} is empty.")
        if len(layers[kind]) == len(array):  # else it is refused below
            check(kind, array, True, layers[kind])
        attention[kind] = array.astype(np.float32)
    names = {kind: [_line(name) for name in described["names"][kind]] for kind in attention}
    made = recording(
        attention, texts, read_by, names=names, layers=layers, key_heads=key_heads,
        titles={str(side): str(title) for side, title in described["titles"].items()},
        origin=_line(described["origin"]), notes=tuple(_notes(described)),
    )  # fmt: skip
    if (predicted := described.get("predicted")) is None:
        return made
    following = [i if i == NO_ID else _count(i) for i in predicted["following"]]
    predicted |= {"labels": [[_readable(label) for label in row] for row in predicted["labels"]]}
    lengths = {side: len(text.ids) for side, text in texts.items()}
    predictions = opened_predictions(predicted, tensor, number, lengths, following)
    return made.predicting(predictions, following, _line(predicted["end"]))


def _line(text: object) -> str:
    return short(_readable(text), LONGEST_NOTE)


def _notes(described: Mapping) -> list[str]:
    return [_line(note) for note in described["notes"][:MOST_NOTES]]


def _readable(text: object) -> str:
    """Text that can be sent to a browser: JSON may hold lone surrogates."""
    return str(text).encode("utf-8", "replace").decode()


def _count(number: object) -> int:
    if type(number) is not int or not 0 <= number < 2**31:
        raise CannotRecord("a number in it is none that can be counted to.")
    return number


def _encoding(parts: Sequence) -> Encoding:
    ids, tokens, offsets, roles = parts
    if not len(ids) == len(tokens) == len(offsets) == len(roles) > 0:
        raise CannotRecord("a text has parts of different lengths.")
    spans = tuple((_count(start), _count(end)) for start, end in offsets)
    if any(not start <= end <= 10**7 for start, end in spans):
        raise CannotRecord("a token is at no place of its text.")
    known = ("", *ROLES, OTHER_SPECIAL)
    if not all(role in known for role in roles):
        raise CannotRecord("a token has a role that no token has.")
    return Encoding(
        tuple(map(_count, ids)), tuple(map(_readable, tokens)), spans, tuple(map(str, roles))
    )
