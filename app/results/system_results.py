"""From the paper to Llama, and torch.nn.Transformer."""

import numpy as np
import streamlit as st
import torch

from headlight.app.components.packing import shrunk
from headlight.app.results.memoize import cached
from headlight.app.results.shown import Shown
from headlight.app.state.progress import reporting
from headlight.app.text.formats import listed
from headlight.model.analysis import lineage
from headlight.model.analysis.architecture import Block, blocks
from headlight.model.families.parts import NoPositions
from headlight.model.presets import GENERATOR
from headlight.model.probing.reference import ReferenceTrace, without_counterpart
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Place, embedding_of
from headlight.model.probing.trace import CannotRead, Pass, read_of
from headlight.model.sites import ProbedModel


@st.cache_resource(max_entries=2, show_spinner="Building the models between the paper and Llama …")
def _lineage(vocab_size: int, max_length: int) -> dict[str, ProbedModel]:
    with GENERATOR:
        return lineage.members(vocab_size, max_length)


@cached(lambda effects: sum(effect.nbytes for effect in effects.values()))
def lineage_of(shown: Shown) -> dict[str, lineage.SwapEffect]:
    """What each later part changes on the first text of a run (model/analysis/lineage.py). Raises
    CannotRead."""
    text, *_ = read_of(shown.view.model, shown.run).values()
    models = _lineage(len(shown.view.tokenizer), shown.view.model.config.max_length)
    with reporting("Measuring the differences"):
        return lineage.effects(models, torch.tensor([text.ids]), text.tokens)


@cached()
def lineage_figure(shown: Shown, name: str) -> tuple[Pass, list[Block]]:
    """The model of one stop of the line as blocks, and what it reads, without numbers: every side
    reads the first text of the run."""
    view = shown.view
    text, *_ = read_of(view.model, shown.run).values()
    model = _lineage(len(view.tokenizer), view.model.config.max_length)[name]
    sides = {side.name: side for side in model.sides()}
    texts = dict.fromkeys(sides, text)
    read = Pass(Run((*texts.values(),)), sides, (*model.sites(),), texts, (), "", {}, {}, {})
    parts = blocks(model, dict.fromkeys(sides, len(text.ids)))
    tables = {
        side.stack
        for side in sides.values()
        if not isinstance(embedding_of(model, side).position, NoPositions)
    }
    return read, [block for block in parts if block.part != "position" or block.stack in tables]


@cached(lambda trace: trace.nbytes)
def reference_of(shown: Shown) -> ReferenceTrace:
    """The same pass in torch.nn.Transformer. Raises CannotRead, and CannotChange for a change that
    it cannot be given."""
    if (reference := shown.view.reference) is None:
        odd = listed(without_counterpart(shown.view.model)) or "this shape"
        raise CannotRead(f"torch.nn.Transformer has no counterpart for {odd}.")
    return reference.trace(shown.view.model, shown.run, shown.view.checkpoint.means)


def beside_reference(shown: Shown, place: Place) -> dict[str, np.ndarray]:
    """A head in torch.nn.Transformer: its `weights`, (query, key), and by how much ours are larger,
    `apart`, both reduced to the cells that are drawn; the largest `differences` of all heads, kind
    by kind, (1, head); and that of the `logits`, as a part of the largest, (1, 1), or of 1. Raises
    CannotRead and CannotChange."""
    theirs, ours, (kind, *head) = reference_of(shown), shown.whole, place
    if shown.not_finite[0]:
        raise CannotRead("There is nothing to compare: not all numbers of this run are finite.")
    weights = theirs.attention[kind][*head]
    apart = ours.attention[kind][*head] - weights
    more, less = shrunk(apart), shrunk(-apart)
    logits = np.abs(ours.logits - theirs.logits).max() / max(1, np.abs(ours.logits).max())
    largest = [
        np.abs(own - theirs.attention[name]).max((2, 3), initial=0).ravel()
        for name, own in ours.attention.items()
    ]
    return {
        "weights": shrunk(weights),
        "apart": np.where(more > less, more, -less),
        "differences": np.concatenate(largest)[None],
        "logits": np.array([[logits]]),
    }
