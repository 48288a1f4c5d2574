"""A short training of what is left of a model when heads are off."""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace

import torch

from model.checkpoint import Checkpoint
from model.corpus.importance import Unit
from model.corpus.pruning import together
from model.probing.applying import applied
from model.training.data import Pair, batches
from model.training.train import labels_in, loss_of

RATE = 5e-4  # Adam's at first; it falls to nothing
MAX_TOKENS = 2000  # of a batch, on the longer side


def retrained(
    checkpoint: Checkpoint, off: Sequence[Unit], pairs: Sequence[Pair], steps: int, seed: int = 0
) -> Checkpoint:
    """The checkpoint after some steps with these heads off, all its other weights trained, with
    dropout and without label smoothing; the one that was given stays as it is."""
    model = copy.deepcopy(checkpoint.model).requires_grad_(True).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0)
    device = next(model.parameters()).device
    order = torch.Generator().manual_seed(seed)
    epochs = (batches(list(pairs), MAX_TOKENS, order) for _ in itertools.count())
    endless = itertools.chain.from_iterable(epochs)
    with torch.random.fork_rng(), torch.enable_grad(), applied(model, together(off)):
        torch.manual_seed(seed)
        for step, batch in enumerate(itertools.islice(endless, steps)):
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1 - step / steps)
            loss = loss_of(model, model, batch, 0.0, device) / labels_in(batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    # Its means are those of other weights.
    return replace(checkpoint, model=model.requires_grad_(False).eval(), means={})
