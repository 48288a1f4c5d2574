"""Weights in the forms in which people have them: as transformers returns them, in one array, or by
name. All become kind → (layers, heads, query, key); the steps of generate() become one pass."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headlight.model.recording.recording import Recording, recording_of
from headlight.model.recording.texts import Words
from headlight.model.recording.weights import (
    OF_TRANSFORMERS,
    TITLES,
    CannotRecord,
    array_of,
    kinds_by_name,
    layer_of,
    layers_of,
    name_of,
)

PATTERN = "hook_pattern"  # what TransformerLens calls weights
NO_ENCODER = "There are no weights of the encoder among them, so it is not shown."
ByKind = dict[str, list[np.ndarray]]


def read(
    weights, tokens: Words = None, target: Words = None, *, row: int = 0, kind: str = "",
    origin: str = "", partial: bool = False,
) -> Recording:  # fmt: skip
    """A recording of weights in any of the forms that this file's beginning names. `tokens`: of the
    text, or of the source; `target`: of what a decoder reads; numbers stand for tokens that are not
    given. `row`: of a batch, from 0. `kind`: what to call the weights of one array. `partial`: rows
    may add up to less than 1, as where a sink takes the rest. Raises CannotRecord."""
    found, notes, names = by_kind(weights, row, kind and name_of(kind))
    return recording_of(
        found, tokens, target, partial=partial, notes=notes, origin=origin, names=names
    )


def by_kind(weights, row: int, kind: str = "") -> tuple[ByKind, list[str], dict[str, list[str]]]:
    """Kind → for each layer (heads, query, key); notes; and kind → names of its layers, where they
    are known. A kind that is only known by the weights is called ""."""
    if isinstance(weights, Mapping) or hasattr(weights, "cache_dict"):
        weights = dict(getattr(weights, "cache_dict", weights))
        if "sequences" in weights:
            return *generated(weights, row), {}
        if theirs := {k: v for k, v in weights.items() if k in OF_TRANSFORMERS and _is_there(v)}:
            found = {OF_TRANSFORMERS[k]: layers_of(k, v, row) for k, v in theirs.items()}
            return found, [*_batch_note(theirs.values(), row), *without_encoder(found)], {}
        if any(name in OF_TRANSFORMERS for name in weights):
            raise CannotRecord(
                "It has no attention weights. Ask for them with output_attentions=True, of a model "
                'loaded with attn_implementation="eager".'
            )
        found, names = _named(weights, row)
        return found, [], names
    if isinstance(weights, str | bytes) or weights is None:
        raise CannotRecord(f"{type(weights).__name__} is not attention weights.")
    if isinstance(weights, Sequence):
        return {kind: layers_of("attentions", weights, row)}, _batch_note([weights], row), {}
    array = array_of("the array", weights)
    if not 2 <= array.ndim <= 5:
        raise CannotRecord(
            f"The array has {array.ndim} axes; weights have layers, heads, queries and keys."
        )
    while array.ndim < 4:
        array = array[None]
    name = kind or "attentions"
    return {kind: layers_of(name, list(array), row)}, _batch_note([list(array)], row), {}


def _is_there(layers) -> bool:
    """Whether it holds anything: of a model without cross-attention transformers returns ()."""
    return layers is not None and not (isinstance(layers, Sequence) and not len(layers))


def _batch_note(groups: Iterable[Sequence], row: int) -> list[str]:
    of_batches = (x for layers in groups for x in layers if getattr(x, "ndim", 0) == 4)
    sizes = {layer.shape[0] for layer in of_batches}
    return [f"Row {row + 1} of a batch of {max(sizes)}."] if sizes and max(sizes) > 1 else []


def without_encoder(found: ByKind) -> list[str]:
    return [NO_ENCODER] if "cross" in found and "encoder" not in found else []


def _named(weights: Mapping, row: int) -> tuple[ByKind, dict[str, list[str]]]:
    """Weights by name: a kind is a name without its layer's number, as `kinds_by_name` says it.
    Kinds under their own names stand for all layers."""
    names = [name for name in weights if isinstance(name, str)]
    patterns = [name for name in names if name.endswith(PATTERN)]
    ours = [name for name in names if name in TITLES]
    if not patterns and ours:
        return {
            name: layers_of(name, list(array_of(name, weights[name])), row) for name in ours
        }, {}
    names = patterns or names
    if not names:
        raise CannotRecord("It names no weights.")
    kinds = kinds_by_name(names)
    found = {
        kind: [layer_of(name, weights[name], row) for name in of_kind]
        for kind, of_kind in kinds.items()
    }
    return found, kinds


def generated(output: Mapping, row: int) -> tuple[ByKind, list[str]]:
    """The steps of `generate`, put together to one pass over all that was read: a row for each
    token but the last one written, which nobody read."""
    read = {name: array_of(name, output[name]) for name in ("sequences", "beam_indices")
            if name == "sequences" or output.get(name) is not None}  # fmt: skip
    if any(ids.ndim != 2 or not 0 <= row < len(ids) for ids in read.values()):
        raise CannotRecord(f"There is no row {row + 1} among the sequences of generate().")
    sequences = read["sequences"]
    beams = read["beam_indices"][row].astype(int) if "beam_indices" in read else None
    found, before = {}, 0
    for name, kind in OF_TRANSFORMERS.items():
        steps = output.get(name)
        if steps is None or not _is_there(steps):
            continue
        if kind == "encoder":  # one pass, of the texts before they were given to beams
            size = len(np.atleast_1d(array_of(name, steps[0])))
            found[kind] = layers_of(name, steps, row * size // len(sequences))
            continue
        if not isinstance(steps, Sequence) or not steps or not isinstance(steps[0], Sequence):
            raise CannotRecord(f"{name} of generate() should hold the layers of each step.")
        if beams is not None:
            ended = np.flatnonzero(beams < 0)
            steps = steps[: ended[0] if len(ended) else len(beams)]
        rows = [row if beams is None else int(beams[i]) for i in range(len(steps))]
        by_layer = [
            [layer_of(f"{name}, step {i + 1}, layer {j + 1}", layer, at) for j, layer in
             enumerate(step)] for i, (step, at) in enumerate(zip(steps, rows, strict=True))
        ]  # fmt: skip
        depths = {len(step) for step in by_layer} or {0}
        if len(depths) > 1:
            raise CannotRecord(f"{name}: its steps have {min(depths)} to {max(depths)} layers.")
        if not min(depths):
            raise CannotRecord(f"{name} of generate() holds no layer.")
        if kind != "cross":
            first = max(map(_read_at_first, by_layer[0]))
            if beams is None and all(step[0].shape[1] == 1 for step in by_layer[1:]):
                first = max(first, sequences.shape[1] - len(steps))
            before = first - by_layer[0][0].shape[1]
            if beams is None and _ends([step[0] for step in by_layer], before)[
                -1
            ] == sequences.shape[1] > len(steps):
                raise CannotRecord(
                    f"{name}: its steps read a token that is not in its sequences, so that the "
                    "rows cannot be named."
                )
        # A decoder alone attends to what it has written, too.
        kind, join = kind or "decoder", _joined_cross if kind == "cross" else _joined
        layers = [*zip(*by_layer, strict=True)]
        for layer in layers:
            if len(heads := {len(step) for step in layer}) > 1:
                raise CannotRecord(f"{name}: its steps have {min(heads)} to {max(heads)} heads.")
        found[kind] = [join(layer, name, before) for layer in layers]
    if not found:
        raise CannotRecord(
            "This output of generate() has no weights. Call it with output_attentions=True and "
            "return_dict_in_generate=True."
        )
    if not before:
        return found, without_encoder(found)
    rows = f"The first {before:,} tokens come from a cache, so their rows are empty."
    return found, [rows, *without_encoder(found)]


def _read_at_first(step: np.ndarray) -> int:
    """How many tokens the first step (heads, query, key) attends to, at least: those of a cache
    that it was given, too, but not the room behind them in one of a fixed size."""
    return max(step.shape[1], *(np.flatnonzero(step.any(axis=(0, 1))) + 1), 0)


def _ends(steps: Sequence[np.ndarray], before: int) -> list[int]:
    """How many tokens were read at the end of each step. With a cache a step has the rows of new
    tokens alone, and without one all."""
    ends = [before + steps[0].shape[1]]
    for step in steps[1:]:
        rows, keys = step.shape[1:]
        is_cached = (rows <= ends[-1] and rows < keys) or rows == 1
        ends.append(ends[-1] + rows if is_cached else max(rows, ends[-1]))
    return ends


def _joined(steps: Sequence[np.ndarray], name: str, before: int) -> np.ndarray:
    """Self-attention, step by step (heads, query, key), as one (heads, length, length). The first
    step's rows are behind those of `before` tokens. Keys of a cache that keeps a window are the
    last ones; one of a fixed size has room behind them."""
    ends = _ends(steps, before)
    whole = np.zeros((len(steps[0]), ends[-1], ends[-1]), steps[0].dtype)
    for step, end in zip(steps, ends, strict=True):
        rows, keys = step.shape[1], min(step.shape[2], end)
        if step[:, :, keys:].any():
            raise CannotRecord(f"{name}: a step attends to more than the {end:,} tokens before it.")
        start = end - keys if step.shape[2] <= end else 0
        whole[:, end - rows : end, start : start + keys] = step[:, :, :keys]
    return whole


def _joined_cross(steps: Sequence[np.ndarray], name: str, before: int) -> np.ndarray:
    """Cross-attention, step by step, as one (heads, query, key), behind `before` empty rows."""
    rows = [np.zeros_like(steps[0], shape=(len(steps[0]), before, steps[0].shape[2])), steps[0]]
    seen = steps[0].shape[1]
    for step in steps[1:]:
        if step.shape[2] != steps[0].shape[2]:
            raise CannotRecord(f"{name}: its steps attend to texts of different lengths.")
        new = step.shape[1] if step.shape[1] == 1 else step.shape[1] - seen
        rows.append(step[:, step.shape[1] - new :])
        seen += new
    return np.concatenate(rows, axis=1)
