"""From the paper to Llama, and torch.nn.Transformer."""

import statistics
import time
from dataclasses import dataclass

import streamlit as st
import torch

from headlight.app.results.memoize import SMALL_RESULT, cached
from headlight.app.results.shown import Shown
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import lineage
from headlight.model.analysis.architecture import Block, blocks
from headlight.model.families.parts import NoPositions
from headlight.model.presets import GENERATOR
from headlight.model.probing.reference import Reference, ReferenceTrace
from headlight.model.probing.run import Run
from headlight.model.probing.sites import embedding_of
from headlight.model.probing.trace import Pass, ids_of, read_of
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


@dataclass(frozen=True)
class Timing:
    """Median seconds of a forward pass without hooks."""

    ours: float
    theirs: float


@cached(lambda result: result[0].nbytes if result else SMALL_RESULT)
def reference_of(shown: Shown) -> tuple[ReferenceTrace, Timing] | None:
    """The same pass in torch.nn.Transformer; None if it cannot express the model."""
    if shown.view.twin is None:
        return None
    reference = shown.view.reference
    assert reference is not None
    reference_trace = reference.trace(shown.view.model, shown.run, shown.view.checkpoint.means)
    return reference_trace, _time(shown.view, reference, shown.run)


@torch.no_grad()
def _time(view: ModelView, reference: Reference, run: Run, rounds: int = 5) -> Timing:
    ids = ids_of(view.model, read_of(view.model, run))
    masks = run.masks.build(view.model, *ids)
    passes = (lambda: view.model(*ids, *masks), lambda: reference(*ids, run.masks))
    seconds = [[], []]
    for _ in range(rounds):
        for forward, measured in zip(passes, seconds, strict=True):
            start = time.perf_counter()
            forward().sum().item()  # item() waits for a GPU to finish
            measured.append(time.perf_counter() - start)
    return Timing(*map(statistics.median, seconds))
