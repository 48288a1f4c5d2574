"""What a model that is not ours predicts, read off the output of its pass: the likeliest tokens of
each row, with their names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from headlight.model.probing.long_trace import MOST
from headlight.model.probing.trace import NO_ID, log_probabilities, most_probable
from headlight.model.recording.inputs import Read
from headlight.model.recording.texts import Names
from headlight.model.recording.weights import CannotRecord

if TYPE_CHECKING:
    from headlight.model.recording.recording import Recording

KINDS = ("next token", "masked token", "class")  # of Side.predicts, which a recording may have
SUM_ERROR = 1e-3
Name = Callable[[int, int | None], str]  # of an id, and of the one before it


@dataclass(frozen=True)
class Likeliest:
    """What one side of a recording predicts, as `Side.predicts` says it.

    best               ids and probabilities of the likeliest answers, (row, count) each
    labels             the same as text
    log_probabilities  of the id that follows each row, (row,); NaN where none is known; empty where
                       a class is predicted
    """

    side: str
    predicts: str
    best: tuple[np.ndarray, np.ndarray]
    labels: tuple[tuple[str, ...], ...]
    log_probabilities: np.ndarray

    def outputs(self, preceding: Iterable[int | None]) -> Mapping[tuple[int, int | None], str]:
        """(id, the id before it) → its label."""
        rows = zip(self.best[0].tolist(), self.labels, preceding, strict=True)
        return {(i, before): label for ids, labels, before in rows
                for i, label in zip(ids, labels, strict=True)}  # fmt: skip

    def described(self, number: int) -> tuple[dict[str, np.ndarray], dict]:
        """For the file of recording `number`: tensors, and the rest as JSON takes it."""
        arrays = (*self.best, self.log_probabilities)
        tensors = {name.format(number): np.ascontiguousarray(array)
                   for name, array in zip(TENSORS, arrays, strict=True)}  # fmt: skip
        rest = {"side": self.side, "predicts": self.predicts, "labels": [*map(list, self.labels)]}
        return tensors, rest


TENSORS = ("ids.{}", "probabilities.{}", "log_probabilities.{}")  # of the recording with a number


def predictions(
    side: str, predicts: str, logits: Tensor, following: Sequence[int],
    preceding: Iterable[int | None], name: Name,
) -> Likeliest:  # fmt: skip
    """Of logits (row, vocabulary)."""
    logits = logits.detach().float()
    best = most_probable(logits, None if predicts == "class" else MOST)
    labels = tuple(
        tuple(map(name, ids, repeat(before)))
        for ids, before in zip(best[0].tolist(), preceding, strict=True)
    )
    return Likeliest(side, predicts, best, labels, log_probabilities(logits, following))


def opened_predictions(
    described: Mapping, tensor: Callable[[str], np.ndarray], number: int,
    lengths: Mapping[str, int], following: Sequence[int],
) -> Likeliest:  # fmt: skip
    """What `described` wrote, of a file that may hold anything. `lengths`: of each side's text.
    Raises CannotRecord."""
    side, predicts = str(described["side"]), str(described["predicts"])
    if predicts not in KINDS or side not in lengths:
        raise CannotRecord("It predicts something of another kind, or of another text.")
    ids, shares, logs = (tensor(name.format(number)) for name in TENSORS)
    labels = tuple(tuple(map(str, row)) for row in described["labels"])
    rows = 1 if predicts == "class" else lengths[side]
    if not (
        ids.dtype.kind in "iu" and shares.dtype.kind == logs.dtype.kind == "f"
        and ids.ndim == 2 and len(ids) == rows and ids.size and ids.shape == shares.shape
        and [len(row) for row in labels] == [ids.shape[1]] * rows
        and logs.shape == (len(following),) and len(following) == rows * (predicts != "class")
    ):  # fmt: skip
        raise CannotRecord("Its predictions are not of one size.")
    if predicts == "class" and sorted(ids[0]) != [*range(len(ids[0]))]:
        raise CannotRecord("Its classes do not count from 0.")
    shares, logs = shares.astype(np.float32), logs.astype(np.float32)
    if not ((shares >= 0).all() and (shares.sum(axis=1) <= 1 + SUM_ERROR).all()):
        raise CannotRecord("Its probabilities are not between 0 and 1, or add up to more.")
    if (ids < 0).any() or (np.diff(shares, axis=1) > 0).any() or (logs > SUM_ERROR).any():
        raise CannotRecord("Its predictions are not the likeliest first.")
    return Likeliest(side, predicts, (ids.astype(np.int64), shares), labels, logs)


def known(all_predictions: Iterable[tuple[Likeliest, Sequence[int | None]]]) -> Name:
    """The labels that predictions and the ids before their rows have, as a function."""
    labels: dict[tuple[int, int | None], str] = {}
    for each, preceding in all_predictions:
        labels |= each.outputs(preceding)
    alone = {i: label for (i, _), label in labels.items()}

    def name(token_id: int, before: int | None) -> str:
        return labels.get((token_id, before)) or alone.get(token_id) or f"<{token_id}>"

    return name


# By the names of classes: the one that a model is of, or is made from.
CLASSIFIES = re.compile("For(?:Sequence|Image|Audio|Video)Classification")
WRITES = re.compile("ForCausalLM|ForConditionalGeneration")


def _predicts(model: Any, logits: Tensor, rows: int, is_causal: bool) -> str:
    """What logits (row, answer) say of a text of so many tokens, as Side.predicts; "" where that is
    not known."""
    kinds = " ".join(kind.__name__ for kind in type(model).__mro__)
    if CLASSIFIES.search(kinds):
        config = getattr(model, "config", None)
        is_one = getattr(config, "problem_type", None) in (None, "single_label_classification")
        fits = len(logits) == 1 < logits.shape[1] == len(getattr(config, "id2label", ()))
        return "class" if is_one and fits else ""
    head = model.get_output_embeddings()
    if head is None or tuple(logits.shape) != (
        rows,
        getattr(head, "out_features", logits.shape[1]),
    ):
        return ""
    if "MaskedLM" in kinds:
        return "masked token"
    return "next token" if is_causal or WRITES.search(kinds) else ""


def with_predictions(
    recording: "Recording", model: Any, output: Any, read: Read, names: Names, row: int,
) -> "Recording":  # fmt: skip
    """With what the output of the pass predicts, if anything."""
    logits = output.get("logits") if isinstance(output, Mapping) else None
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or row >= len(logits):
        return recording
    logits = logits[row] if logits.ndim == 3 else logits[row : row + 1]
    if (
        logits.ndim != 2 or not logits.amax(dim=-1).isfinite().all()
    ):  # of a row with a NaN it is one
        return recording
    is_written = "cross" in recording.kinds
    side = recording.sides["tgt" if is_written else next(iter(recording.sides))]
    text, ids = recording.texts[side.name], read.ids[is_written]
    own = {k: w for k, w in recording.attention.items() if recording.sides_of(k) == (side, side)}
    looks_ahead = any(np.triu(weights, 1).any() for weights in own.values())
    is_causal = "decoder" in own or (bool(own) and not looks_ahead)  # though a change let it look
    predicts = _predicts(model, logits, len(text.ids), is_causal)
    if predicts == "class":
        label = model.config.id2label
        made = predictions(side.name, predicts, logits, (), [None], lambda i, _: str(label[i]))
        return recording.predicting(made, (), "…")
    if not predicts or ids is None or len(ids) != len(text.ids):
        return recording
    if predicts == "next token":
        following = (*ids[1:], read.after)
        preceding = ids
    else:
        following = [NO_ID if role else i for i, role in zip(ids, text.roles, strict=True)]
        preceding = [None, *ids[:-1]]
    made = predictions(side.name, predicts, logits, following, preceding, names.after)
    end = "…" if read.after == NO_ID else names.after(read.after, None)
    return recording.predicting(made, following, end)
