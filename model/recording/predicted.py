"""What a model that is not ours predicts, read off the output of its pass."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from headlight.model.probing.trace import NO_ID
from headlight.model.recording.inputs import Read
from headlight.model.recording.predictions import predictions
from headlight.model.recording.recording import Recording
from headlight.model.recording.texts import Names

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
    recording: Recording, model: Any, output: Any, read: Read, names: Names, row: int,
) -> Recording:  # fmt: skip
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
