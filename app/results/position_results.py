"""Positional encodings: tables, rotations, and runs under other positions."""

import numpy as np
import torch

from headlight.app.results.memoize import (
    SMALL_RESULT,
    cached,
    memoize,
    memoize_pass,
    threads,
    total_bytes,
)
from headlight.app.results.shown import Shown
from headlight.app.state.cache import once
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import positions
from headlight.model.families.llama import LlamaConfig
from headlight.model.families.rotary import angles
from headlight.model.probing.position_tables import full_table
from headlight.model.probing.run import Run
from headlight.model.probing.sites import embedding_of, sides_of
from headlight.model.variants import PositionsFromOne


def positional_table(view: ModelView, side: str) -> np.ndarray:
    """All rows of the model's positional table for a side, (position, d_model)."""
    embedding = embedding_of(view.model, sides_of(view.model)[side])
    table = full_table(embedding.position, view.model.config.max_length)
    return table.float().cpu().numpy()


def rotation_of(shown: Shown) -> np.ndarray:
    """Rotation angles of rotary positions in radians, (position, pair)."""
    config, traced = shown.view.model.config, shown.trace
    length = len(traced.texts[traced.predicted.name].ids)
    assert isinstance(config, LlamaConfig)
    return angles(config.rotary, config.d_head, length, torch.float32).numpy()


@once
def positions_by_scale(length: int = 64, d_model: int = 128) -> dict[int, np.ndarray]:
    """Scale N → the positional table of mr-raccoon-97/vanilla-transformer, (length, d_model)."""
    scales = (1, 10, 100, 1000, 10000)
    return {scale: PositionsFromOne(length, d_model, scale).table.numpy() for scale in scales}


def effect_of(shown: Shown, kind: str, shift: int) -> positions.PositionEffect:
    """The effect of another kind of positions (model/analysis/positions.py)."""
    shift, before = shift if kind == "shifted" else 0, shown.whole

    def make():
        with reporting("Running the model with other positions"):
            return positions.effect(shown.view.model, before, kind, shift)

    return memoize_pass(
        shown,
        ("positions", kind, shift),
        make,
        lambda result: SMALL_RESULT + total_bytes(result.moved),
    )


def written_under(view: ModelView, text: str, kind: str, shift: int) -> str:
    """The model's translation of a text under another kind of positions."""
    shift = shift if kind == "shifted" else 0

    def make():
        changes = positions.with_positions(Run(()), kind, shift).changes
        tokens = len(view.tokenizer.encode(text).ids)
        with threads(view.model, tokens), reporting("Writing the target"):
            target = view.checkpoint.translate(text, changes=changes)
            return view.tokenizer.target.decode(target.ids)

    key = ("written", view.name, view.step, view.device, view.stamp, text, kind, shift)
    return memoize(key, make, len)


@cached(lambda result: SMALL_RESULT + 2 * result.before.nbytes)
def reordered_of(shown: Shown, first: int, second: int, kind: str = "") -> positions.Reordered:
    """Two tokens of the first text swapped, with the model's own positions or those of a `kind`."""
    order = positions.swap(len(shown.run.texts[0].ids), first, second)
    with reporting("Running the model on both word orders"):
        return positions.reordered(shown.view.model, shown.run, order, kind)
