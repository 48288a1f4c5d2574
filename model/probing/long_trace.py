"""One pass over a long text: every head as a small picture, and any layer in full when it is asked
for.

The weights of all heads grow with heads × length², and do not fit. So each layer's are reduced as
the pass comes by and thrown away; what enters each layer is kept, and one of them computed again
from it gives the same numbers, under the same masks and changes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headlight.model.pause import pause
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.run import Run
from headlight.model.probing.sites import attention_at, embeddings_of, kinds_of, sides_of
from headlight.model.probing.trace import (
    Pass,
    Trace,
    check_memory,
    end_of,
    following_of,
    ids_of,
    log_probabilities,
    modules_of,
    most_probable,
    numbers_of,
    per_side,
    read_of,
    read_only,
)
from headlight.model.sites import ProbedModel, Site

PICTURE_CELLS = 256  # cells along a side of one head's picture; more would not be visible
MOST = 10  # of the likeliest answers that are kept of each row
MOST_LOGITS = 2**24  # that are in memory at once


@dataclass(frozen=True, eq=False)
class LongTrace(Pass):
    """The trace of a long text. Memory grows with its length times the depth of the model.

    tiles    kind → (layers, heads, row, column): the weights, where both sides have at most LARGEST
             cells. Of a longer text a cell stands for so many tokens as that takes, and holds the
             largest of their weights
    visible  kind → (query, key), see `allowed`
    best     ids and probabilities, see `most_probable`
    log_probabilities  as Trace has them
    vectors  side → a tensor (1, position, d_model) for each depth, as `stream` has them
    inputs   name of a layer → what it was called with, of which most are `vectors`
    given    what the changes took from elsewhere
    """

    tiles: dict[str, np.ndarray]
    visible: dict[str, np.ndarray]
    best: tuple[np.ndarray, np.ndarray]
    log_probabilities: np.ndarray
    vectors: dict[str, tuple[Tensor, ...]]
    inputs: dict[str, tuple[Tensor | None, ...]]
    given: PatchInputs

    @property
    def stream(self) -> dict[str, np.ndarray]:
        """As Trace has it, put together anew each time."""
        return {side: read_only(torch.cat(vectors)) for side, vectors in self.vectors.items()}

    @property
    def embedded(self) -> dict[str, np.ndarray]:
        """As Trace.embedded."""
        return {side: read_only(vectors[0][0]) for side, vectors in self.vectors.items()}

    def allowed(self, kind: str) -> np.ndarray:
        """As Trace.allowed."""
        return self.visible[kind]

    def most_probable(self, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """As Trace.most_probable, of at most MOST where rows are tokens."""
        ids, probabilities = self.best
        return ids[:, :count], probabilities[:, :count]

    @property
    def nbytes(self) -> int:
        some = (self.tiles, self.visible, self.table, self.token, self.final)
        arrays = [array for by_name in some for array in by_name.values()]
        several = (*self.vectors.values(), *self.inputs.values(), self.given.other.values())
        tensors = [tensor for some in several for tensor in some if tensor is not None]
        once = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in tensors
        }
        return sum(array.nbytes for array in (*arrays, *self.best)) + sum(once.values())


@torch.no_grad()
def long_trace(model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()) -> LongTrace:
    """As `trace`, of a text whose weights do not all fit. `model` must be the caller's own view.
    Raises as `trace` does, TooLarge where not even those of one layer fit."""
    texts = read_of(model, run)
    sides, sites = sides_of(model), model.sites()
    for site in sites:
        check_memory([site], texts, "one layer")
    ids = ids_of(model, texts)
    layers = {name: model.get_submodule(name) for side in sides.values() for name in side.layers}
    with (
        applied(model, run.changes, given),
        outputs_of(modules_of(model, sides.values())) as outputs,
        inputs_of(layers) as inputs,
        _reduced(model, sites) as (tiles, visible),
    ):
        hidden = model.hidden(*ids, *run.masks.build(model, *ids))
    following = following_of(model, texts)
    return LongTrace(
        run=run,
        sides=sides,
        sites=sites,
        texts=texts,
        following=following,
        end=end_of(model.config),
        origin="",
        **per_side(outputs, sides),
        tiles={
            kind: read_only(torch.stack([tiles[site.name] for site in of_kind]))
            for kind, of_kind in kinds_of(sites).items()
        },
        visible={kind: _read_only(one.cpu().numpy()) for kind, one in visible.items()},
        vectors={
            name: tuple(outputs[name, depth] for depth in ("embedded", *side.layers))
            for name, side in sides.items()
        },
        inputs=inputs,
        given=given,
        **_answers(model, hidden, ids[-1], following),
    )


@contextmanager
def _reduced(model: ProbedModel, sites: Iterable[Site]) -> Iterator[tuple[dict, dict]]:
    """Name of a site → its weights as tiles, (heads, row, column); kind → where any has weight,
    (query, key)."""
    tiles: dict[str, Tensor] = {}
    visible: dict[str, Tensor] = {}

    def reduce(site: Site):
        def hook(module, inputs, weights):
            tiles[site.name] = tile(weights[0])
            somewhere = weights[0].amax(dim=0) > 0
            before = visible.get(site.kind)
            visible[site.kind] = somewhere if before is None else before | somewhere

        return hook

    with ExitStack() as hooks:
        for site in sites:
            softmax = attention_at(model, site).softmax
            hooks.enter_context(softmax.register_forward_hook(reduce(site)))
        yield tiles, visible


def tile(weights: Tensor) -> Tensor:
    """(.., query, key): as many neighbours become one cell, their largest weight, as leave at most
    LARGEST cells on a side."""
    return largest(weights, *(-(-length // PICTURE_CELLS) for length in weights.shape[-2:]))


def largest(weights: Tensor, rows: int, columns: int) -> Tensor:
    """(.., query, key): each `rows` × `columns` cells become one, their largest weight."""
    for axis, every in ((-2, rows), (-1, columns)):
        if every > 1:
            whole = weights.shape[axis] // every
            blocks = weights.narrow(axis, 0, whole * every).unflatten(axis, (whole, every))
            parts = [blocks.amax(dim=axis)]
            if rest := weights.shape[axis] - whole * every:
                last = weights.narrow(axis, whole * every, rest)
                parts.append(last.amax(dim=axis, keepdim=True))
            weights = torch.cat(parts, dim=axis)
    return weights


def _answers(model: ProbedModel, hidden: Tensor, ids: Tensor, following: Sequence[int]) -> dict:
    """The fields of a LongTrace that tell of the logits, which are made for some rows at a time."""
    if not following:  # one row, of the whole text
        logits = model.logits(hidden, ids)[0].float()
        return {
            "best": most_probable(logits, None),
            "log_probabilities": log_probabilities(logits, following),
        }
    at_once = max(1, MOST_LOGITS // model.config.vocab_size)
    best, wanted = [], []
    for start in range(0, hidden.shape[1], at_once):
        pause()
        rows = slice(start, start + at_once)
        logits = model.logits(hidden[:, rows], ids[:, rows])[0].float()
        best.append(most_probable(logits, MOST))
        wanted.append(log_probabilities(logits, following[rows]))
    return {
        "best": tuple(np.concatenate(part) for part in zip(*best, strict=True)),
        "log_probabilities": np.concatenate(wanted),
    }


@dataclass(frozen=True)
class LayerHeads:
    """The numbers of one attention, read-only float32.

    weights, scores  (heads, query, key)
    query            (heads, query, d_head); key, value: (heads, key, d_head), of fewer heads where
                     queries share them
    """

    weights: np.ndarray
    scores: np.ndarray
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray


@torch.no_grad()
def heads_at(model: ProbedModel, traced: LongTrace, site: Site) -> LayerHeads:
    """All heads of one layer in full, computed again from what entered it. `model` must be the
    caller's own view, of the model that was traced."""
    name, attention = site.name.rpartition(".")[0], attention_at(model, site)
    with (
        applied(model, traced.run.changes, traced.given),
        outputs_of(numbers_of(attention)) as outputs,
    ):
        for embedding, text in zip(embeddings_of(model), traced.texts.values(), strict=True):
            embedding.position(len(text.ids))  # by which changes know what has been read
        model.get_submodule(name)(*traced.inputs[name])
    heads = {part: attention.split(outputs[part])[0] for part in ("query", "key", "value")}
    return LayerHeads(
        read_only(outputs["softmax"][0]),
        read_only(outputs["scores"][0]),
        **{part: read_only(one) for part, one in heads.items()},
    )


class Layers:
    """The weights of one kind of attention in a long text, (layers, heads, query, key), of which
    each layer is computed when it is asked for."""

    def __init__(self, model: ProbedModel, traced: LongTrace, kind: str):
        self.model, self.traced, self.sites = model, traced, traced.kinds[kind]
        query, key = (len(text.ids) for text in traced.texts_of(kind))
        self.shape = len(self.sites), self.sites[0].n_heads, query, key

    def __len__(self) -> int:
        return len(self.sites)

    def __getitem__(self, layer: int) -> np.ndarray:
        return heads_at(self.model, self.traced, self.sites[layer]).weights

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[layer] for layer in range(len(self)))


Weights = np.ndarray | Layers  # (layers, heads, query, key)


def attention_of(model: ProbedModel, traced: Trace | LongTrace) -> Mapping[str, Weights]:
    """Kind → its weights, of a long text layer by layer. `model` as heads_at takes it."""
    if isinstance(traced, Trace):
        return traced.attention
    return {kind: Layers(model, traced, kind) for kind in traced.kinds}


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
