"""The residual stream: each token's vector from layer to layer, and the predictions after each
layer (the logit lens, nostalgebraist 2020)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from headlight.model.pause import pause
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.sites import (
    device_of,
    final_norm_of,
    predicted_side,
)
from headlight.model.probing.trace import Trace
from headlight.model.sites import ProbedModel

ALL_ROWS = slice(None)  # rows


def lengths(x: np.ndarray) -> np.ndarray:
    """Lengths of vectors: (.., d_model) → (..)."""
    return np.linalg.norm(x.astype(np.float64), axis=-1)


def cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cosines of vectors, (.., d_model) twice → (..); 0 where one has no length."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    product, both = (x * y).sum(-1), lengths(x) * lengths(y)
    return np.divide(product, both, out=np.zeros_like(product), where=both > 0)


def row_shares(model: ProbedModel, ids: torch.Tensor, row: int) -> torch.Tensor:
    """The weight of each position of the predicted side in a row of the logits, (position,): one
    position, or for a class of the text the mean over all without padding."""
    if predicted_side(model).predicts != "class":
        return nn.functional.one_hot(ids.new_tensor(row), len(ids)).double()
    real = (ids != model.config.pad_id).double()
    return real / real.sum().clamp(min=1)


@dataclass(frozen=True)
class Lens:
    """The predictions after each depth. Depth 0 is the input of layer 1; a row is a target
    position, or a classifier's single prediction.

    best, probability   the likeliest answer and its probability, (depth, row)
    final, rank         probability and rank (1 is the likeliest) of what it answers in the end,
                        (depth, row)
    difference          largest difference between the probability of the likeliest answers at the
                        last depth and in the trace
    """

    best: np.ndarray
    probability: np.ndarray
    final: np.ndarray
    rank: np.ndarray
    difference: float

    @property
    def settled(self) -> np.ndarray:
        """The first depth from which on each row's likeliest answer is the final one, (row,)."""
        other = self.best != self.best[-1]
        return np.where(other.any(axis=0), len(other) - other[::-1].argmax(axis=0), 0)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.best, self.probability, self.final, self.rank))


@torch.no_grad()
def lens(model: ProbedModel, trace: Trace | LongTrace, rows: slice = ALL_ROWS) -> Lens:
    """Each depth through the final norm and the generator, for some rows of the logits."""
    best_ids, shares = (some[rows] for some in trace.most_probable(1))
    answer = torch.from_numpy(best_ids.copy())
    best, probability, final, rank = [], [], [], []
    for logits in stopped(model, trace, rows):  # one depth at a time to save memory
        likely, winner = (likelihood := logits.softmax(dim=-1)).max(dim=-1)
        best.append(winner)
        probability.append(likely)
        final.append(likelihood.gather(1, answer)[:, 0])
        rank.append((logits > logits.gather(1, answer)).sum(dim=-1) + 1)
    of_final = torch.stack(final).numpy()
    return Lens(
        torch.stack(best).numpy(),
        torch.stack(probability).numpy(),
        of_final,
        torch.stack(rank).numpy(),
        float(np.abs(of_final[-1] - shares[:, 0]).max(initial=0)),
    )


def stopped(
    model: ProbedModel, trace: Trace | LongTrace, rows: slice = ALL_ROWS
) -> Iterator[torch.Tensor]:
    """Some rows of the logits, (row, vocab_size), at each depth of the side that is predicted."""
    side = predicted_side(model)
    norm, device = final_norm_of(model, side), device_of(model)
    ids = torch.tensor([trace.texts[side.name].ids], device=device)
    some = (
        rows if trace.following else ALL_ROWS
    )  # for a class of the text, all vectors give one row
    for x in trace.stream[side.name]:
        pause()
        hidden = norm(torch.tensor(x[None], device=device))
        yield model.logits(hidden[:, some], ids[:, some])[0].float().cpu()
