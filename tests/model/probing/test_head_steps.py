"""One head step by step, of parts that the paper's model does not have."""

from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from headlight.model.probing.capture import view
from headlight.model.probing.head_steps import compared, head_steps
from headlight.model.probing.interventions import without_rotation
from headlight.model.probing.sites import attention_at
from headlight.model.transformer import Scores
from tests.model.common import encoding, here, random_ids, random_model, run_of


class Doubled(nn.Module):
    """A projection whose heads are doubled behind it."""

    steps: ClassVar = {"projected": "linear"}

    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def norm(self, x):
        return 2 * x

    def forward(self, x):
        return 2 * self.linear(x)


class Negated(Scores):
    """Queries and keys are negated before they are compared."""

    steps: ClassVar = {"q_rotated": "query", "k_rotated": "key"}

    def __init__(self):
        super().__init__()
        self.query, self.key = Negative(), Negative()

    def forward(self, q, k):
        return super().forward(self.query(q), self.key(k))


class Negative(nn.Module):
    def forward(self, x):
        return -x


class Opened(nn.Module):
    """A feed-forward with a gate."""

    steps: ClassVar = {"gate": "sigmoid"}

    def __init__(self, before):
        super().__init__()
        self.linear1, self.linear2 = before.linear1, before.linear2
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        x = self.linear1(x)
        return self.linear2(self.sigmoid(x) * x)


def test_the_steps_within_a_part_are_those_that_it_names():
    """Whatever class it is of: head_steps.py knows none of a family."""
    model, head = random_model(), 1
    site = model.sites()[0]
    attention = attention_at(model, site)
    attention.query, attention.key = Doubled(attention.query), Doubled(attention.key)
    attention.scores = Negated()
    layer = model.encoder.layers[0]
    layer.feed_forward = Opened(layer.feed_forward)
    model, run = view(model), run_of(model, *(encoding(random_ids(length)) for length in (5, 4)))
    steps = head_steps(model, run, site, head)
    close = partial(np.testing.assert_allclose, atol=1e-5)
    close(steps.q, 2 * steps.q_projected)
    close(steps.k, 2 * steps.k_projected)
    close(steps.q_rotated, -steps.q)
    close(steps.k_rotated, -steps.k)
    close(steps.scores, steps.scaled * np.sqrt(model.config.d_head))
    close(steps.concatenated, steps.one_by_one)
    up = layer.feed_forward.linear1(here(torch.tensor(steps.forward_input)))
    close(steps.gate, up.sigmoid().cpu())
    close(steps.hidden, steps.gate * up.cpu().numpy())
    queries, keys = compared(model, run, site.kind)
    close(queries[0, head], steps.q_rotated)
    close(keys[0, head], steps.k_rotated)
    with without_rotation(attention_at(model, site)):
        plain = head_steps(model, run, site, head)
    close(plain.q_rotated, plain.q)
