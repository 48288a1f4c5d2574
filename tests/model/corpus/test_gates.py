"""Gates that are trained, and a model that is trained further with heads off."""

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from headlight.model.checkpoint import load
from headlight.model.corpus import gates
from headlight.model.corpus.gates import by_trained_gates, drawn, open_probability
from headlight.model.corpus.importance import examples_of, gated, losses
from headlight.model.corpus.pruning import heads_of, together
from headlight.model.corpus.retraining import RATE, retrained
from headlight.model.corpus.sentences import Line
from headlight.model.probing.capture import view
from headlight.model.training import tasks
from tests.model.common import hooks


@pytest.fixture(scope="module")
def reverse():
    checkpoint, task = load("reverse"), tasks.task("reverse", None, False)
    pairs = task.examples()["val"][:120]
    lines = [Line(i, *pair) for i, pair in enumerate(pairs, start=1)]
    return checkpoint, task, examples_of(checkpoint, lines)


def test_a_gate_is_a_hard_concrete_variable():
    """As Louizos et al. 2018 write it: how often it is 0 and 1, and its mean, by quadrature."""
    torch.manual_seed(0)
    for log_alpha in (-2.0, 0.0, 1.5):
        many = drawn(torch.full((200_000,), log_alpha))
        assert many.min() >= 0 and many.max() <= 1
        u = (np.arange(1_000_000) + 0.5) / 1_000_000
        s = 1 / (1 + np.exp(-(np.log(u / (1 - u)) + log_alpha) / gates.TEMPERATURE))
        expected = np.clip(s * (gates.HIGH - gates.LOW) + gates.LOW, 0, 1)
        assert many.mean().item() == pytest.approx(expected.mean(), abs=5e-3)
        assert (many == 0).float().mean().item() == pytest.approx((expected == 0).mean(), abs=5e-3)
        assert (many == 1).float().mean().item() == pytest.approx((expected == 1).mean(), abs=5e-3)
        found = open_probability(torch.tensor(log_alpha)).item()
        assert found == pytest.approx((expected > 0).mean(), abs=1e-3)


def test_the_gradient_passes_a_gate_that_is_drawn():
    torch.manual_seed(1)
    log_alpha = torch.zeros(1000, requires_grad=True)
    drawn(log_alpha).sum().backward()
    assert (log_alpha.grad >= 0).all() and log_alpha.grad.sum() > 0


def test_gates_of_0_are_heads_off_and_gates_of_1_change_nothing(reverse):
    checkpoint, _, examples = reverse
    model = view(checkpoint.model)
    off = heads_of(checkpoint)[3:8]
    by_site = [
        torch.tensor([float(not any((u.kind, u.layer, u.head) == (s.kind, s.layer, head)
                                    for u in off)) for head in range(s.n_heads)])
        for s in model.sites()
    ]  # fmt: skip
    mine = type(checkpoint)(model, checkpoint.tokenizer, {}, checkpoint.preset)
    with gated(model, by_site):
        found = losses(mine, examples)
    assert np.allclose(found, losses(checkpoint, examples, together(off)), atol=1e-5)
    with gated(model, [torch.ones_like(gate) for gate in by_site]):
        assert np.allclose(losses(mine, examples), losses(checkpoint, examples), atol=1e-5)
    assert hooks(model) == 0


@pytest.mark.long
def test_heads_go_in_the_order_in_which_their_gates_close(reverse):
    checkpoint, _, examples = reverse
    heads = heads_of(checkpoint, "cross")
    order = by_trained_gates(checkpoint, examples, heads, steps=80)
    assert sorted(map(str, order)) == sorted(map(str, heads))

    def lost(off):
        return losses(checkpoint, examples, together(off))[:, 0].sum()

    needed = max(heads, key=lambda head: lost([head]))
    assert order[-1] == needed and lost(order[:1]) < np.median([lost([head]) for head in heads])
    again = [by_trained_gates(checkpoint, examples, heads, steps=10, seed=3) for _ in range(2)]
    assert again[0] == again[1]
    assert hooks(checkpoint.model) == 0
    assert not any(weight.requires_grad for weight in checkpoint.model.parameters())


def test_a_short_training_repairs_what_pruning_broke(reverse):
    checkpoint, task, examples = reverse
    off = heads_of(checkpoint, "cross")[:1]
    pairs = task.encode(
        checkpoint.tokenizer, task.examples()["train"][:1000], checkpoint.model.config
    )
    before = {name: weight.clone() for name, weight in checkpoint.model.named_parameters()}
    rates = []
    handle = register_optimizer_step_pre_hook(
        lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"])
    )
    again = retrained(checkpoint, off, pairs, steps=20)
    handle.remove()
    assert rates == pytest.approx(RATE * np.arange(20, 0, -1) / 20)
    broken, repaired = (losses(one, examples, together(off))[:, 0].sum()
                        for one in (checkpoint, again))  # fmt: skip
    assert repaired < broken / 2
    for name, weight in checkpoint.model.named_parameters():
        assert torch.equal(weight, before[name]), name
    assert hooks(again.model) == 0 and not again.model.training and not again.means
    assert not any(weight.requires_grad for weight in again.model.parameters())
