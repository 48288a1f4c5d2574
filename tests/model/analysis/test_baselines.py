"""What takes the place of a head: by hand, and what is made of it."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.baselines import Baselines
from headlight.model.probing.applying import PatchInputs
from headlight.model.probing.changes import DRAWN, HeadOff, Randomised, Resampled, Scope
from headlight.model.probing.sweeps import Score, Sweep, sweep
from tests.model.common import load


@pytest.fixture(scope="module")
def copy():
    return load("copy")


def test_what_is_drawn_is_the_same_for_a_position_in_any_text(copy):
    """One row at a time, as while a text is written, and a head by itself as among all."""
    (part, *_), given = copy.parts(), PatchInputs(copy.means)
    width = copy.means[part.name].shape[-1]
    output = torch.randn(1, 7, part.n_heads, width)
    for change in (Resampled, Randomised):
        whole = change(Scope(part.kind, 0), 3).replaced(output, part, 0, given)
        later = change(Scope(part.kind, 0), 3).replaced(output[:, 5:], part, 5, given)
        alone = change(Scope(part.kind, 0, 1), 3).replaced(output[:, :, 1:2], part, 0, given)
        assert torch.equal(whole[:, 5:], later) and torch.equal(whole[:, :, 1:2], alone)
        other = change(Scope(part.kind, 0), 4).replaced(output, part, 0, given)
        assert (whole - other).abs().amax(dim=(0, 2, 3)).min() > 0
    known = copy.means[part.name + DRAWN].flatten(1).float()
    drawn = Resampled(Scope(part.kind, 0), 3).replaced(output, part, 0, given)
    assert all((known == row).all(dim=1).any() for row in drawn[0].flatten(1))


def test_the_control_is_as_long_as_what_the_mean_takes_away(copy):
    part = copy.parts()[0]
    mean = copy.means[part.name]
    output = mean + torch.randn(2, 500, *mean.shape)
    added = Randomised(Scope(part.kind, 0)).replaced(output, part, 0, PatchInputs(copy.means))
    added -= output
    assert torch.allclose(added.norm(dim=-1), (output - mean).norm(dim=-1), atol=1e-4)
    directions = (added / added.norm(dim=-1, keepdim=True))[0].flatten(0, 1)
    assert directions.mean(dim=0).norm() < 0.1  # they lead nowhere


def test_each_head_by_itself(copy):
    run = copy.run("a b c d")
    found = copy.baselines(run)
    zero = sweep(copy.model, run, [HeadOff(head) for head in found.heads]).effects
    assert np.allclose(found.effects["zero"][:, 0], zero, atol=1e-4)
    for name, draws in (("mean", 1), ("resample", 4), ("random", 4)):
        assert found.effects[name].shape == (12, draws)
        line, target = f"cross.1.2={name}", copy.decode(run.texts[1])
        changed, plain = (copy.trace("a b c d", target, changes=c) for c in (line, ""))
        expected = np.nansum(changed.log_probabilities - plain.log_probabilities)
        head = found.heads.index(Scope("cross", 0, 1))
        assert found.effects[name][head, 0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("zero", "mean", "resample", "expected"),
    [(-3, -4, -9, True), (-3, -1.5, -9, False), (-1, 2, -1.9, False)],
)
def test_a_verdict_needs_them_to_agree(zero, mean, resample, expected):
    """Beyond the worst of the random vectors, and not of one of them."""
    head = Scope("encoder", 0, 0)
    baselines = Baselines(
        (head,),
        {
            "zero": np.array([[zero]]),
            "mean": np.array([[mean]]),
            "resample": np.array([[resample - 1, resample + 1]]),
            "random": np.array([[-2.0, 1.0]]),
        },
    )
    assert baselines.needed.tolist() == [expected]
    row = baselines.to_dataframe().iloc[0]
    assert tuple(row[["resample", "random", "needed"]]) == (resample, -0.5, expected)


def test_of_a_sweep_in_any_order(copy):
    run, score = copy.run("b a"), Score(0, 5)
    swept = copy.swept(run, "baselines", score)
    turned = Sweep(swept.score, swept.changes[::-1], swept.effects[::-1])
    one, other = Baselines.of(swept), Baselines.of(turned)
    assert (one.needed == other.needed[::-1]).all() and one.heads == other.heads[::-1]
