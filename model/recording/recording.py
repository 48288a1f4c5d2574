"""A recording: attention weights without the model that they come from, as a trace.

Its weights are checked. What cannot be shown says so with layer, head and row, which count from 1
as on the screen.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors.numpy import save as to_bytes

from headlight.model.files import replace_file
from headlight.model.masks import Masks
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace
from headlight.model.recording.kinds import TITLES, kind_by_weights
from headlight.model.recording.texts import Words, texts_of
from headlight.model.recording.weights import CannotRecord, check, stacked
from headlight.model.sites import Side, Site
from headlight.model.tokenizer import Encoding

KEY, FORMAT = "headlight", "recording 1"  # in a file's metadata


@dataclass(frozen=True, repr=False)
class Recording(Trace):
    """A trace of which only the weights are known: all other numbers are empty. `notes`: what is
    unusual about them, a sentence each."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        write(path, [self])


def recording(
    attention: Mapping[str, np.ndarray],
    texts: Mapping[str, Encoding],
    read: Mapping[str, tuple[str, str]],
    *,
    titles: Mapping[str, str] = {},
    names: Mapping[str, Sequence[str]] = {},
    key_heads: Mapping[str, Sequence[int]] = {},
    **known,
) -> Recording:
    """A recording of checked weights, kind → (layers, heads, query, key), and of texts by side.
    `read`: kind → the sides of its queries and keys; `titles`: of sides; `names`: kind → names of
    the modules; `known`: further fields."""
    across = {query for query, key in read.values() if query != key}
    stacks = {query: kind for kind, (query, key) in read.items() if query == key}
    sides = {
        name: Side(
            name, titles.get(name, name), stacks.get(name, name), "", (), "", writes=name in across
        )
        for name in texts
    }
    sites = tuple(
        Site(
            kind, layer, names[kind][layer] if kind in names else f"{kind}.{layer}", *read[kind],
            TITLES.get(kind, f"{kind} attention"), (), weights.shape[1],
            key_heads[kind][layer] if kind in key_heads else weights.shape[1],
        )
        for kind, weights in attention.items()
        for layer in range(len(weights))
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


def recording_of(
    found: Mapping[str, Sequence[np.ndarray]], tokens: Words = None, target: Words = None, *,
    partial: bool = False, notes: Sequence[str] = (), names: Mapping[str, Sequence[str]] = {},
    key_heads: Mapping[str, Sequence[int]] = {}, **known,
) -> Recording:  # fmt: skip
    """A recording of kind → for each layer (heads, query, key), once they are checked; a kind ""
    is named by its weights. The rest as `read` and `recording` take it. Raises CannotRecord."""
    if not found:
        raise CannotRecord("There are no weights in it.")
    notes, attention = list(notes), {}
    for kind, layers in found.items():
        array = stacked(kind, layers)
        notes += check(kind, array, partial)
        attention[kind or kind_by_weights(array)] = array.astype(np.float32)
    texts, titles, read = texts_of(attention, tokens, target)
    return recording(
        attention, texts, read, titles=titles, names=names, key_heads=key_heads,
        notes=tuple(notes), **known,
    )  # fmt: skip


def write(path: str | Path, recordings: Sequence[Recording]) -> None:
    """Recordings in one file: safetensors, with the texts in its metadata."""
    tensors, described = {}, []
    for i, one in enumerate(recordings):
        tensors |= {f"{i}.{kind}": np.ascontiguousarray(w) for kind, w in one.attention.items()}
        described.append(
            {
                "texts": {side: [*map(list, text.parts)] for side, text in one.texts.items()},
                "titles": {name: side.title for name, side in one.sides.items()},
                "read": {kind: [s[0].query_side, s[0].key_side] for kind, s in one.kinds.items()},
                "names": {kind: [s.name for s in sites] for kind, sites in one.kinds.items()},
                "key_heads": {k: [s.n_key_heads for s in sites] for k, sites in one.kinds.items()},
                "origin": one.origin,
                "notes": list(one.notes),
            }
        )
    # Under one key: safetensors writes several in any order.
    content = {"format": FORMAT, "recordings": described}
    metadata = {KEY: json.dumps(content, ensure_ascii=False)}
    replace_file(Path(path), to_bytes(tensors, metadata))
