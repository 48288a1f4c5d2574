"""Snapshots are small, and their heads look where the full weights' heads look."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headlight.model import checkpoint, presets
from headlight.model.checkpoint import SHIPPED
from headlight.model.training import snapshots, tasks
from tests.model.common import in_short, load, random_model

WITHIN = 0.025  # of every attention weight
EXAMPLES = SHIPPED.parent / "examples"
TRANSLATORS = [name for name in ("en-fr", "reverse") if (SHIPPED / name).exists()]


@pytest.mark.parametrize("shape", [(40, 30), (32, 32), (1, 5)])
def test_a_number_is_off_by_half_a_step_at_most(shape):
    weight = torch.randn(shape) * torch.logspace(-2, 2, shape[0])[:, None]
    weight[:, 0] = 0
    held, scale = snapshots.quantize(weight)
    assert held.dtype == torch.int8 and held.shape[0] == scale.shape[0]
    back = snapshots.dequantize(held, scale, weight.shape)
    step = scale.float().expand(held.shape).flatten()[: weight.numel()].view(shape)
    # A float16 scale may be rounded down by 2^-11, and then the largest number does not fit.
    assert ((back - weight).abs() <= step * (0.5 + 127 / 2048)).all()


@pytest.mark.parametrize("large", [0, snapshots.LARGE])
def test_written_weights_come_back(tmp_path, monkeypatch, large):
    monkeypatch.setattr(snapshots, "LARGE", large)
    model, other = (random_model("pre_norm", seed) for seed in (0, 1))
    snapshots.write(tmp_path, 300, dict(model.named_parameters()), {"bleu_lc": 1.5})
    snapshots.write(tmp_path, 20, dict(other.named_parameters()), {})
    assert list(snapshots.steps(tmp_path).items()) == [(20, {}), (300, {"bleu_lc": 1.5})]
    snapshots.put_into(other, tmp_path, 300)
    for name, parameter in other.named_parameters():
        wanted = model.get_parameter(name)
        step = wanted.abs().max() / 127
        assert torch.allclose(parameter, wanted, atol=max(step.item() / 2, 1e-3)), name
    assert other.generator.weight is other.src_embedding.token.weight


@pytest.mark.parametrize("last", [1000, 4536, 100_000])
def test_chosen_steps_are_even_in_their_logarithm(last):
    kept = sorted(step for step in snapshots.MARKS if step <= last)
    chosen = snapshots.choose(kept)
    assert len(chosen) == snapshots.COUNT and chosen[-1] == kept[-1]
    gaps = np.diff(np.log(chosen))
    assert np.allclose(gaps, gaps.mean(), atol=0.5 * math.log(2))


def test_of_a_model_trained_further_earlier_snapshots_stay(tmp_path):
    """Those that still fall on an even spacing; the others go."""
    task = tasks.toy("reverse")
    few = task.tests()["unseen"][:3]
    task = dataclasses.replace(task, tests=lambda: {"few": few})
    tokenizer = task.tokenizer([("a b c", "c b a")])
    model = presets.build("pre_norm", vocab_size=len(tokenizer), d_model=8, n_heads=2, d_ff=8)
    checkpoint.save(tmp_path, model, "pre_norm", tokenizer, {})
    for step in (4, 8, 32, 128, 512, 2048):
        snapshots.write(tmp_path, step, dict(model.named_parameters()), {"exact": step})
    (tmp_path / "run").mkdir()
    save_file(dict(model.named_parameters()), tmp_path / "run" / "step-008192.safetensors")
    snapshots.make(tmp_path, task)
    found = snapshots.steps(tmp_path)
    assert list(found) == [8, 32, 128, 512, 2048, 8192]
    assert found[32] == {"exact": 32}
    assert found[8192]["set"] == "few" and found[8192]["exact"] == 0


def test_what_has_no_earlier_steps_is_said(tmp_path):
    with pytest.raises(SystemExit, match="has no weights of earlier steps"):
        snapshots.main([str(SHIPPED / "sort"), "--change-shipped"])
    with pytest.raises(SystemExit, match="no checkpoint"):
        snapshots.main([str(tmp_path)])


@pytest.mark.parametrize("name", in_short(TRANSLATORS, "reverse"))
def test_every_head_looks_where_it_did(name, tmp_path):
    full, small = load(name), load(name)
    snapshots.write(tmp_path, 1, dict(full.model.named_parameters()), {})
    snapshots.put_into(small.model, tmp_path, 1)
    for text in (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        target = full.translate(text).text
        ours, theirs = full.trace(text, target), small.trace(text, target)
        for kind in ours.attention:
            assert np.abs(ours.attention[kind] - theirs.attention[kind]).max() <= WITHIN


@pytest.mark.parametrize("name", TRANSLATORS)
def test_shipped_snapshots_are_six_and_scored(name):
    found = snapshots.steps(SHIPPED / name)
    assert len(found) == snapshots.COUNT
    assert all(score.get("bleu_lc", score.get("exact")) is not None for score in found.values())
