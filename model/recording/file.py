"""A file of recordings: safetensors, with the texts in its metadata."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from headlight.model.recording.predictions import opened as opened_predictions
from headlight.model.recording.recording import FORMAT, KEY, Recording, recording
from headlight.model.recording.weights import CannotRecord, array_of, check
from headlight.model.tokenizer import Encoding

LARGEST_FILE, LONGEST_HEADER = 2**31, 2**24  # bytes
MOST_TEXTS = 1_000  # of a file
BEGINS = json.dumps({"format": FORMAT})[:-1]  # what stands under the key


def is_recording(path: str | Path) -> bool:
    """Whether a file says that it is one."""
    try:
        with safe_open(path, "np") as file:
            return (file.metadata() or {}).get(KEY, "").startswith(BEGINS)
    except (OSError, SafetensorError):
        return False


def opened(path: str | Path) -> list[Recording]:
    """The recordings of a file that `write` wrote, or of anyone's that says so. Raises
    CannotRecord."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CannotRecord(f"{path.name} is larger than {LARGEST_FILE / 1e9:.0f} GB.")
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if not metadata.get(KEY, "").startswith(BEGINS):
                raise CannotRecord(f"{path.name} is not a recording that this version reads.")
            described = json.loads(metadata[KEY])["recordings"]
            if not isinstance(described, list) or not 0 < len(described) <= MOST_TEXTS:
                raise CannotRecord(f"{path.name}: it describes no recordings.")
            return [_opened(file, i, each) for i, each in enumerate(described)]
    except CannotRecord:
        raise
    except OSError as error:
        raise CannotRecord(f"{path.name} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # the file may hold anything
        why = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
        raise CannotRecord(f"{path.name} is broken: {type(error).__name__}: {why}.") from None


def _opened(file, number: int, described: Mapping) -> Recording:
    read_by = {str(k): (str(query), str(key)) for k, (query, key) in described["read"].items()}
    texts = {str(side): _encoding(parts) for side, parts in described["texts"].items()}
    attention = {}
    for kind, sides in read_by.items():
        array = file.get_tensor(f"{number}.{kind}")
        if array.ndim != 4 or array.shape[-2:] != tuple(len(texts[side].ids) for side in sides):
            raise CannotRecord(f"{kind} has the shape {array.shape}, which does not fit its texts.")
        array = array_of(kind, array).astype(np.float32)
        if not min(array.shape):
            raise CannotRecord(f"{kind} is empty.")
        check(kind, array, partial=True)
        attention[kind] = array
    names = {kind: [str(name) for name in described["names"].get(kind, ())] for kind in attention}
    names = {kind: each for kind, each in names.items() if len(each) == len(attention[kind])}
    key_heads = {kind: [int(n) for n in described["key_heads"][kind]] for kind in attention}
    if any(len(each) != len(attention[kind]) for kind, each in key_heads.items()):
        raise CannotRecord("It does not say of each layer how many heads its keys have.")
    made = recording(
        attention, texts, read_by, names=names, key_heads=key_heads,
        titles={str(side): str(title) for side, title in described["titles"].items()},
        origin=str(described["origin"]), notes=tuple(map(str, described["notes"])),
    )  # fmt: skip
    if (predicted := described.get("predicted")) is None:
        return made
    following = [int(i) for i in predicted["following"]]
    lengths = {side: len(text.ids) for side, text in texts.items()}
    predictions = opened_predictions(predicted, file.get_tensor, number, lengths, following)
    return made.predicting(predictions, following, str(predicted["end"]))


def _encoding(parts: Sequence) -> Encoding:
    ids, tokens, offsets, roles = parts
    if not len(ids) == len(tokens) == len(offsets) == len(roles) > 0:
        raise CannotRecord("A text has parts of different lengths.")
    spans = tuple((int(start), int(end)) for start, end in offsets)
    if any(not 0 <= start <= end <= 10**7 for start, end in spans):
        raise CannotRecord("A token is at no place of its text.")
    return Encoding(tuple(map(int, ids)), tuple(map(str, tokens)), spans, tuple(map(str, roles)))
