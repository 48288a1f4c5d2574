"""Weights in the forms in which people have them: as transformers returns them, in one array, or by
name. All become kind → (layers, heads, query, key)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headlight.model.recording.generated import generated
from headlight.model.recording.kinds import OF_TRANSFORMERS, TITLES, kinds_by_name, name_of
from headlight.model.recording.recording import Recording, recording_of
from headlight.model.recording.texts import Words
from headlight.model.recording.weights import CannotRecord, array_of, layer_of, layers_of

PATTERN = "hook_pattern"  # what TransformerLens calls weights


def read(
    weights, tokens: Words = None, target: Words = None, *, row: int = 0, kind: str = "",
    origin: str = "", partial: bool = False,
) -> Recording:  # fmt: skip
    """A recording of weights in any of the forms that this file's beginning names. `tokens`: of the
    text, or of the source; `target`: of what a decoder reads; numbers stand for tokens that are not
    given. `row`: of a batch, from 0. `kind`: what to call the weights of one array. `partial`: rows
    may add up to less than 1, as where a sink takes the rest. Raises CannotRecord."""
    found, notes = by_kind(weights, row, kind and name_of(kind))
    return recording_of(found, tokens, target, partial=partial, notes=notes, origin=origin)


def by_kind(weights, row: int, kind: str = "") -> tuple[dict[str, list[np.ndarray]], list[str]]:
    """Kind → for each layer (heads, query, key), and notes. A kind that is only known by the
    weights is called ""."""
    if isinstance(weights, Mapping) or hasattr(weights, "cache_dict"):
        weights = dict(getattr(weights, "cache_dict", weights))
        if "sequences" in weights:
            return generated(weights, row)
        if theirs := {k: v for k, v in weights.items() if k in OF_TRANSFORMERS and _is_there(v)}:
            found = {OF_TRANSFORMERS[k]: layers_of(k, v, row) for k, v in theirs.items()}
            return found, _batch_note(theirs.values(), row)
        if any(name in OF_TRANSFORMERS for name in weights):
            raise CannotRecord(
                "It has no attention weights. Ask for them with output_attentions=True, of a model "
                'loaded with attn_implementation="eager".'
            )
        return _named(weights, row), []
    if isinstance(weights, str | bytes) or weights is None:
        raise CannotRecord(f"{type(weights).__name__} is not attention weights.")
    if isinstance(weights, Sequence):
        return {kind: layers_of("attentions", weights, row)}, _batch_note([weights], row)
    array = array_of("the array", weights)
    if not 2 <= array.ndim <= 5:
        raise CannotRecord(
            f"The array has {array.ndim} axes; weights have layers, heads, queries and keys."
        )
    while array.ndim < 4:
        array = array[None]
    name = kind or "attentions"
    return {kind: layers_of(name, list(array), row)}, _batch_note([list(array)], row)


def _is_there(layers) -> bool:
    """Whether it holds anything: of a model without cross-attention transformers returns ()."""
    return layers is not None and not (isinstance(layers, Sequence) and not len(layers))


def _batch_note(groups: Iterable[Sequence], row: int) -> list[str]:
    of_batches = (x for layers in groups for x in layers if getattr(x, "ndim", 0) == 4)
    sizes = {layer.shape[0] for layer in of_batches}
    return [f"Row {row + 1} of a batch of {max(sizes)}."] if sizes and max(sizes) > 1 else []


def _named(weights: Mapping, row: int) -> dict[str, list[np.ndarray]]:
    """Weights by name: a kind is a name without its layer's number, as `kinds_by_name` says it.
    Kinds under their own names stand for all layers."""
    names = [name for name in weights if isinstance(name, str)]
    patterns = [name for name in names if name.endswith(PATTERN)]
    ours = [name for name in names if name in TITLES]
    if not patterns and ours:
        return {name: layers_of(name, list(array_of(name, weights[name])), row) for name in ours}
    names = patterns or names
    if not names:
        raise CannotRecord("It names no weights.")
    kinds = kinds_by_name(names)
    return {
        kind: [layer_of(name, weights[name], row) for name in of_kind]
        for kind, of_kind in kinds.items()
    }
