"""A file of recordings: safetensors, with the texts in its metadata. Nothing in it is trusted."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load as from_bytes

from headlight.model.files import open_regular
from headlight.model.messages import LONGEST_MESSAGE, reason, short
from headlight.model.probing.trace import NO_ID
from headlight.model.recording.predictions import opened as opened_predictions
from headlight.model.recording.recording import (
    FORMAT,
    KEY,
    LARGEST,
    LONGEST_HEADER,
    MOST_TEXTS,
    Recording,
    recording,
)
from headlight.model.recording.weights import CannotRecord, array_of, check
from headlight.model.tokenizer import OTHER_SPECIAL, ROLES, Encoding

BEGINS = json.dumps({"format": FORMAT})[:-1]  # what stands under the key
LONGEST_NOTE, MOST_NOTES = 300, 20  # characters; of a recording


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
