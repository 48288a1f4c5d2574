"""Briefly retrains a pruned model to reproduce the predictions of the whole model.

Its probabilities are brought near those of the whole model, by their Kullback–Leibler divergence in
every row (distillation: Hinton et al. 2015), without labels and without dropout. In a few hundred
steps, a full distribution teaches more than a single target token.
"""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.model.checkpoint import Checkpoint
from headlight.model.corpus.importance import Unit
from headlight.model.corpus.pruning import together
from headlight.model.masks import Masks
from headlight.model.probing.applying import applied
from headlight.model.probing.sites import device_of, predicted_side
from headlight.model.sites import ProbedModel
from headlight.model.training.data import Pair, batches, pad_ids

RATE = 1.5e-3  # Adam's at first; it falls to nothing
MAX_TOKENS = 2000  # of a batch, on the longer side


def retrained(
    checkpoint: Checkpoint, off: Sequence[Unit], pairs: Sequence[Pair], steps: int, seed: int = 0
) -> Checkpoint:
    """The checkpoint after some steps with these heads off, its other weights trained on the texts
    of `pairs`; the one that was given stays as it is."""
    whole, model = checkpoint.model, copy.deepcopy(checkpoint.model).requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0)
    order = torch.Generator().manual_seed(seed)
    epochs = (batches(list(pairs), MAX_TOKENS, order) for _ in itertools.count())
    endless = itertools.chain.from_iterable(epochs)
    with torch.enable_grad(), applied(model, together(off)):
        for step, batch in enumerate(itertools.islice(endless, steps)):
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1 - step / steps)
            with torch.no_grad():
                wanted = log_probabilities(whole, batch)
            predicted = log_probabilities(model, batch)
            loss = F.kl_div(predicted, wanted, reduction="batchmean", log_target=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    # Its stored means belong to other weights.
    return replace(checkpoint, model=model.requires_grad_(False).eval(), means={})


def log_probabilities(model: ProbedModel, batch: Sequence[Pair]) -> Tensor:
    """Of all that is to be predicted in a batch, (row, vocab_size)."""
    src = pad_ids([src for src, _ in batch], model.config, "src").to(device_of(model))
    tgt = pad_ids([tgt[:-1] for _, tgt in batch], model.config).to(device_of(model))
    ids = (src, tgt)[: len(model.sides())]
    hidden = model.hidden(*ids, *Masks().build(model, *ids))
    if predicted_side(model).predicts == "class":
        return model.logits(hidden, ids[-1])[:, 0].log_softmax(dim=-1)
    rows = hidden[ids[-1] != model.config.pad_id]  # padding would be much of the work
    return model.logits(rows[None])[0].log_softmax(dim=-1)
