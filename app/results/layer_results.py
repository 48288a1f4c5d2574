"""Layers: blocks with their shapes, the residual stream, the logit lens."""

from typing import Any

import numpy as np
import torch

from headlight.app.results.memoize import cached, nbytes
from headlight.app.results.shown import Shown
from headlight.app.state.progress import reporting
from headlight.app.text import block_texts
from headlight.model.analysis import architecture, residual
from headlight.model.analysis.architecture import OUTPUT
from headlight.model.families.llama import LlamaConfig
from headlight.model.families.rotary import RotaryScores, angles
from headlight.model.pretrained.contents import ROUNDED
from headlight.model.probing.sites import attention_at, predicted_side

MOST_PLACES = 256  # of a text, as in stage/state.js
PREDICTS = "next token", "masked token"  # a token in each row


def blocks_of(shown: Shown) -> list[architecture.Block]:
    """The model as blocks, with their shapes for these texts."""
    texts = shown.trace.texts
    return architecture.blocks(
        shown.view.model, {side: len(text.ids) for side, text in texts.items()}
    )


def about_of(shown: Shown) -> dict[str, Any]:
    """What each part in `block_texts.towers` does: side → its name there → a text, for the first
    layer that has it."""
    blocks, model = blocks_of(shown), shown.view.model
    texts = {side.title: {} for side in model.sides()}
    for side in model.sides():
        about, is_last = texts[side.title], side == predicted_side(model)
        for block in blocks:
            is_output = block.stack == OUTPUT and is_last
            if not (is_output or block.stack == side.stack) or block.part in block_texts.NORMS:
                continue
            name = block.kind or ("start" if block.part in block_texts.START else block.part)
            name = "end" if is_output else name
            text = block_texts.explained(model, shown.trace, block)
            if block.layer is None:
                about[name] = f"{about.get(name, '')} {text}".strip()
            else:
                about.setdefault(name, f"{text} {block.parameters:,} parameters in each layer.")
    rounded = f" {ROUNDED}" if shown.view.checkpoint.card.get("rounded") else ""
    texts[predicted_side(model).title]["end"] += (
        f" In all, {block_texts.model_in_numbers(blocks)}{rounded}"
    )
    return texts


def notes_of(shown: Shown) -> dict[str, str]:
    """Kind of attention → what sets it apart from the paper's, as far as a title has room."""
    found = {}
    for kind, (site, *_) in shown.trace.kinds.items():
        attention = attention_at(shown.view.model, site)
        shared = site.n_heads // site.n_key_heads
        found[kind] = ", ".join(
            ["rotary positions"] * isinstance(attention.scores, RotaryScores)
            + [f"{shared} heads share keys"] * (shared > 1)
            + [f"{site.window} tokens back"] * bool(site.window)
        )
    return found


def places_of(shown: Shown, title: str, start: int) -> dict[str, np.ndarray]:
    """What at most MOST_PLACES places of a text bring into layer 1, (place, number): `table`,
    `token` and `embedded`, see Pass. Of rotary positions the `angles` in radians, (place, pair). A
    `table` of no numbers where neither is there. Raises LookupError for another text."""
    trace, rows = shown.trace, slice(start, start + MOST_PLACES)
    side = {side.title: side for side in trace.sides.values()}[title]
    config = shown.view.model.config
    if side.table:
        parts = {"table": trace.table, "token": trace.token, "embedded": trace.embedded}
        return {name: part[side.name][rows] for name, part in parts.items()}
    if isinstance(config, LlamaConfig):
        length = len(trace.texts[side.name].ids)
        turns = angles(config.rotary, config.d_head, length, torch.float32)
        return {"angles": turns[rows].numpy()}
    return {"table": np.zeros((0, 0), np.float32)}


@cached(nbytes)
def lens_of(shown: Shown, rows: slice = residual.ALL_ROWS) -> residual.Lens:
    """The logit lens: predictions after each layer, for some rows of the logits."""

    traced = shown.trace
    with reporting("Reading the residual stream"):
        return residual.lens(shown.view.model, traced, rows)


def vectors_of(shown: Shown) -> list[dict[str, Any]]:
    """A row for each token after each layer: how long its vector is, the cosine with the one before
    the layer, and, where its row predicts something, the final answer's probability and rank."""
    trace, rows = shown.trace, []
    for name, side in trace.sides.items():
        stream = trace.stream[name]
        length, turned = residual.lengths(stream), residual.cosine(stream[:-1], stream[1:])
        predicts = name == trace.predicted.name and trace.predicted.predicts in PREDICTS
        lens = lens_of(shown) if predicts else None
        for (depth, at), size in np.ndenumerate(length):
            row = {"text": side.title, "place": at + 1, "token": trace.texts[name].tokens[at]}
            row |= {"layer": depth, "length": size}
            row["cosine"] = turned[depth - 1, at] if depth else None
            is_read = lens is not None and at < lens.final.shape[1]
            row["probability"] = lens.final[depth, at] if lens and is_read else None
            row["rank"] = int(lens.rank[depth, at]) if lens and is_read else None
            rows.append(row)
    return rows
