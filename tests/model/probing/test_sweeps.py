"""What every change does by itself, in one table, against one pass for each."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from headlight.model import load
from headlight.model.presets import PRESETS
from headlight.model.probing import sweeps
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.changes import parse
from headlight.model.probing.patching import recorded
from headlight.model.probing.sites import kinds_of
from headlight.model.probing.sweeps import Score, sweep, sweeping
from headlight.model.probing.trace import ids_of, read_of, trace
from tests.model.common import in_short, random_model, two_runs

SENTENCE = "A young girl in a red dress runs."


def log_softmax(row):
    row = row.astype(np.float64)
    return row - row.max() - np.log(np.exp(row - row.max()).sum())


@torch.no_grad()
def logits_of(model, run, given):
    """Of a pass of its own; a trace keeps much besides."""
    ids = ids_of(model, read_of(model, run))
    with applied(model, run.changes, given):
        return model(*ids, *run.masks.build(model, *ids))[0].cpu().numpy()


def score_of(model, seen, logits, score):
    """By hand, of the logits of a pass over the texts that were seen."""
    if score.position is not None:
        row = log_softmax(logits[score.position])
        return row[score.wanted] - (0 if score.against is None else row[score.against])
    if seen.predicted.predicts == "class":
        return log_softmax(logits[0])[seen.logits[0].argmax()]
    ids = [id for id in seen.texts[seen.predicted.name].ids if id != model.config.pad_id]
    following = [*ids[1:], *([model.config.eos_id] if model.config.eos_id >= 0 else [])]
    return sum(log_softmax(logits[i])[id] for i, id in enumerate(following))


@pytest.mark.parametrize(
    "preset", in_short(PRESETS, "pre_norm", "van_dijck", "bloem", "decoder_only")
)
def test_effects_are_those_of_one_pass_each(preset, monkeypatch):
    monkeypatch.setattr(sweeps, "MAX_BATCH_TOKENS", 100)  # several batches
    monkeypatch.setattr(sweeps, "MOST_LOGITS", 20)  # of several parts
    model = random_model(preset)
    run, other = two_runs(model, pad_to=9)
    run = replace(run, changes=parse(f"{model.sites()[0].kind}.1.1=temperature:2.0"))
    given = PatchInputs(other=recorded(model, other))
    lengths = [side.name for side in model.sides()]
    changes = [
        *sweeps.heads_off(model),
        *sweeps.heads_patched(model),
        *sweeps.sublayers_skipped(model),
        *sweeps.tokens_hidden(model, dict.fromkeys(lengths, 4)),
        *sweeps.heads_patched_by_position(model, dict.fromkeys(lengths, 2)),
        *sweeps.residual_patched_by_position(model, dict.fromkeys(lengths, 3)),
    ]
    plain = trace(model, run, given)
    alone = [logits_of(model, replace(run, changes=(*run.changes, *c)), given) for c in changes]
    # How the score is made of logits does not hang on what was changed: of the others, some.
    for score, some in ((Score(), 1), (Score(0, 1), 7), (Score(0, 1, 0), 7)):
        found = sweep(model, run, changes[::some], score, given)
        assert found.score == pytest.approx(score_of(model, plain, plain.logits, score), abs=1e-4)
        for logits, effect in zip(alone[::some], found.effects, strict=True):
            expected = score_of(model, plain, logits, score) - found.score
            assert effect == pytest.approx(expected, abs=1e-4 * max(1, abs(found.score))), score
        assert np.abs(found.effects).max() > 1e-3, score


def test_effects_by_head_and_as_a_table():
    model = random_model("paper")
    run, _ = two_runs(model, pad_to=9)
    found = sweep(model, run, sweeps.heads_off(model))
    kinds = kinds_of(model.sites())
    shown, table = found.by_head(kinds), found.to_dataframe()
    assert len(table) == sum(array.size for array in shown.values())
    for row in table.itertuples():
        assert row.change == f"{row.attention}.{row.layer}.{row.head}=off"
        assert shown[row.attention][row.layer - 1, row.head - 1] == row.effect
    hidden = sweep(model, run, sweeps.tokens_hidden(model, {"src": 3})).to_dataframe()
    assert list(hidden["position"]) == [1, 2, 3] and hidden["head"].isna().all()
    assert list(hidden["change"])[1] == "encoder=hide:2; cross=hide:2"


def test_of_a_checkpoint_by_its_name():
    en_de = load("en-de")
    run = en_de.run(SENTENCE)
    found = en_de.sweep(run, "heads")
    assert len(found) == 48 and found["effect"].min() < -0.1
    line = found.sort_values("effect")["change"].iloc[0]
    plain, off = (sweep(en_de.model, replace(run, changes=parse(c)), []).score for c in ("", line))
    assert off - plain == pytest.approx(found["effect"].min(), abs=1e-4)
    n_source, n_target = (len(text.ids) + 1 for text in run.texts)
    assert len(en_de.sweep(run, "tokens")) == n_source + n_target
    assert len(en_de.sweep(run, "sublayers")) == 4 * 2 + 4 * 3
    other = en_de.run("A young boy in a red dress runs.", "x")
    with pytest.raises(ValueError, match="choose from heads, baselines, sublayers, tokens"):
        en_de.sweep(run, "words")
    target = en_de.tokenizer.decode(run.texts[1].ids)
    patched = replace(run, other=en_de.run("A young boy in a red dress runs.", target))
    assert len(en_de.sweep(patched, "patches")) == 48
    assert len(en_de.sweep(patched, "patches by position")) == 16 * (n_source + 2 * n_target)
    assert len(en_de.sweep(patched, "residual by position")) == 4 * (n_source + n_target)
    assert other != patched.other


def test_a_sweep_that_was_left_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(sweeps, "MAX_BATCH_TOKENS", 100)
    model = random_model("pre_norm")
    run, _ = two_runs(model, pad_to=9)
    changes = sweeps.heads_off(model)
    whole, steps = sweep(model, run, changes), [*sweeping(model, run, changes)]
    assert whole.missing == 0 and len(steps) > 3
    for step in steps:
        assert len(step.changes) == len(step.effects) == len(changes) - step.missing
        known = dict(zip(whole.changes, whole.effects, strict=True))
        assert [known[one] for one in step.changes] == step.effects.tolist()
        assert step.changes == tuple(one for one in whole.changes if one in step.changes)
    assert all(one.missing > two.missing for one, two in pairwise(steps))
    rest = [*sweeping(model, run, changes, known=steps[1])]
    assert len(rest) == len(steps) - 2 and rest[-1].changes == whole.changes
    assert np.array_equal(rest[-1].effects, whole.effects)
    assert [*sweeping(model, run, changes, known=whole)] == [whole]


def test_a_large_model_takes_fewer_changes_at_once(monkeypatch):
    model = random_model("pre_norm")
    run, _ = two_runs(model, pad_to=9)
    changes = sweeps.heads_off(model)
    for work, at_once in ((10**12, sweeps.MAX_BATCH_TOKENS), (1, sweeps.FEWEST_TOKENS)):
        monkeypatch.setattr(sweeps, "MOST_WORK", work)
        first = next(sweeping(model, run, changes * 100))
        assert len(changes * 100) - first.missing == at_once // (2 * 9)
