"""Trained gates that show which heads a model needs least (Voita et al. 2019, section 6.1).

Each head's output is multiplied by a gate of its own, drawn from the hard concrete distribution
(Louizos et al. 2018, section 2.2): a relaxed Bernoulli variable, stretched beyond 0 and 1 and cut
there, so that a gate can be exactly 0 and still have a gradient. Each gate's log α is trained on
the loss plus a price for every open gate (the expected L0 norm); the model's weights stay fixed.
Voita et al. train once for each price. Here the price rises until all gates are closed, and heads
are removed in the order in which their gates close.
"""

import math
import random
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.distributions import RelaxedBernoulli

from headlight.model.checkpoint import Checkpoint
from headlight.model.corpus.importance import Example, Unit, example_batches, gated, loss_of
from headlight.model.probing.capture import view
from headlight.model.sites import ProbedModel

TEMPERATURE, LOW, HIGH = 0.33, -0.1, 1.1  # β, γ and ζ of the hard concrete distribution
OPEN = 2.0  # log α at first
RATE = 0.1  # Adam's, of log α
STEPS = 600
CHEAPEST, DEAREST = 1e-3, 1.0  # nats a token that an open gate costs


def drawn(log_alpha: Tensor) -> Tensor:
    """A gate of each, from 0 to 1."""
    relaxed = RelaxedBernoulli(torch.tensor(TEMPERATURE), logits=log_alpha).rsample()
    return (relaxed * (HIGH - LOW) + LOW).clamp(0, 1)


def open_probability(log_alpha: Tensor) -> Tensor:
    """The probability that a gate is not 0."""
    return torch.sigmoid(log_alpha - TEMPERATURE * math.log(-LOW / HIGH))


def by_trained_gates(
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    heads: list[Unit],
    steps: int = STEPS,
    seed: int = 0,
) -> list[Unit]:
    """Heads in the order in which their gates close: from where on each is never again more
    probably open than closed. The others are open all the time."""
    model = view(checkpoint.model)
    log_alpha = torch.full((len(heads),), OPEN, requires_grad=True)
    optimizer = torch.optim.Adam([log_alpha], lr=RATE)
    last_open, batches = [0] * len(heads), _forever(checkpoint, examples, seed)
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(seed)
        for step in range(steps):
            price = CHEAPEST * (DEAREST / CHEAPEST) ** (step / max(1, steps - 1))
            batch = next(batches)
            # One sample per sentence, for a less noisy gradient.
            gates = drawn(log_alpha.expand(len(batch), -1))
            with gated(model, _by_site(model, heads, gates)):
                lost, counts = loss_of(model, batch)
            openness = open_probability(log_alpha)
            loss = lost.sum() / counts.sum() + price * openness.sum()
            (log_alpha.grad,) = torch.autograd.grad(loss, [log_alpha])
            optimizer.step()
            for i in torch.nonzero(openness > 0.5).flatten().tolist():
                last_open[i] = step
    # Of gates that close in the same step, the one that is closed further goes first.
    final = log_alpha.tolist()
    return [heads[i] for i in sorted(range(len(heads)), key=lambda i: (last_open[i], final[i]))]


def _by_site(model: ProbedModel, heads: Sequence[Unit], values: Tensor) -> list[Tensor]:
    """Gates of some heads, (batch, head), as `gated` takes those of all; the others are 1."""
    place = {(unit.kind, unit.layer, unit.head): i for i, unit in enumerate(heads)}
    with_one = torch.cat([values, values.new_ones(len(values), 1)], dim=1)
    return [
        with_one[:, [place.get((s.kind, s.layer, head), -1) for head in range(s.n_heads)]]
        for s in model.sites()
    ]


def _forever(
    checkpoint: Checkpoint, examples: Sequence[Example], seed: int
) -> Iterator[list[Example]]:
    """Batches of examples, shuffled in every epoch."""
    chance = random.Random(seed)
    batches = list(example_batches(checkpoint, examples))
    while True:
        for rows in chance.sample(batches, len(batches)):
            yield [examples[i] for i in rows]
