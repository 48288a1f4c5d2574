"""Every kind of change in other people's models, against computations that do not use it."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import view
from headlight.model.probing.changes import PATTERNS, VERBS, CannotChange, parse, written
from headlight.model.probing.patching import read_by_path, recorded
from headlight.model.probing.position_tables import POSITION_KINDS, table_of
from headlight.model.probing.sites import attention_at, embedding_of, parts_of
from headlight.model.probing.trace import ids_of, read_of, trace
from headlight.model.training.describe import mean_outputs
from tests.model.common import hooks
from tests.model.pretrained.folders import TARGET, TEXT
from tests.model.pretrained.test_family_tools import argmax_of_whole_passes
from tests.model.probing.test_changes import by_hand, softmax

WITHIN = 2e-5
MASKS = sorted(by_hand(1, 1))
LINES = {  # verb → lines; K: a kind of attention, S: the stack that writes or is read, T: its text
    "off": ["K=off", "K.1=off", "K.1.2=off", "all.2.1=off", "all=off"],
    "mean": ["K=mean", "K.1.1=mean"],
    "resample": ["K=resample", "K.1.1=resample:2"],
    "random": ["K=random", "K.1.1=random:2"],
    "uniform": ["K=uniform", "K.1.2=uniform"],
    "skip": ["K.1=skip", "S_feed_forward.1=skip", "S_feed_forward=skip"],
    "hide": ["K=hide:1", "K.1.2=hide:1,2", "all=hide:2"],
    "mask": [f"K.1=mask:{name}" for name in MASKS],
    "forbid": ["K.1.1=forbid:2>1", "K=forbid:2-3>1-2"],
    "allow": ["K=mask:diagonal; K=allow:2-3>1", "K.1.1=mask:diagonal; K.1.1=allow:3>1"],
    "temperature": ["K.1.2=temperature:3.0", "K=temperature:0.5"],
    "weight": ["K.2.1=weight:2>1:0.9", "K.1=weight:3>2:0.25"],
    "patch": ["K.1.2=patch", "K=patch:2", "S_feed_forward.1=patch", "S_residual.1=patch:2"],
    "path": ["S_feed_forward.2=path:S_feed_forward.1", "logits=path:S_feed_forward.1"],
    "positions": ["T=positions:none"],
}


@pytest.fixture(scope="module")
def given(family):
    """Means over a text, and another run: of the same tokens, backwards."""
    texts = [TEXT, TARGET] if family.target else [TEXT]
    means = mean_outputs(family.checkpoint, [family.checkpoint.run(texts[0])])
    turned = tuple(text.take(range(len(text.ids))[::-1]) for text in family.run.texts)
    other = dataclasses.replace(family.run, texts=turned)
    return SimpleNamespace(
        all=PatchInputs(means, recorded(family.model, other)), means=means, other=other
    )


def traced(family, line, given=None):
    run = dataclasses.replace(family.run, changes=parse(line))
    inputs = given.all if given else PatchInputs()
    if "path:" in line:
        senders = [change.sender for change in run.changes]
        paths = read_by_path(family.model, run, senders, inputs)
        inputs = PatchInputs(inputs.means, inputs.other | paths)
    return trace(family.model, run, inputs)


def firsts(family):
    """The first site of each kind: what enters its layer no change in it has changed."""
    return {site.kind: site for site in reversed(family.model.sites())}.values()


def of(line, family, kind):
    """A line of LINES for a kind of attention."""
    side = family.model.sides()[-1]
    return line.replace("K", kind).replace("S_", f"{side.stack}_").replace("T=", f"{side.title}=")


@pytest.mark.parametrize("verb", VERBS)
def test_every_change_can_be_made_and_leaves_nothing_behind(family, given, verb):
    plain = traced(family, "").logits
    parts = parts_of(family.model.sites(), family.model.sides())
    assert LINES[verb] and {name.partition("-")[0] for name in MASKS} == {*PATTERNS}
    for kind in {part.kind for part in parts if part.what == "attention"}:
        for line in (of(line, family, kind) for line in LINES[verb]):
            assert written(parse(line)) == line
            logits = traced(family, line, given).logits
            assert np.isfinite(logits).all(), line
            # Such a mask is the one that the model has.
            same = (line.endswith("causal") and kind == "decoder") or line.endswith("mask:none")
            assert same or np.abs(logits - plain).max() > 1e-6, line
    assert not hooks(family.model) and np.array_equal(traced(family, "").logits, plain)


def may_attend(family, site, shape):
    return np.tri(*shape, dtype=bool) if "causal" in site.masks else np.ones(shape, bool)


def test_masks_are_the_softmax_under_them(family):
    plain = traced(family, "")
    for site in firsts(family):
        scores = plain.scores[site.kind][site.layer]
        shape = scores.shape[-2:]
        usual = may_attend(family, site, shape)
        masks = {f"mask:{name}": mask for name, mask in by_hand(*shape).items()}
        hidden, cells = usual.copy(), usual.copy()
        hidden[:, 1] = cells[1, 0] = False
        masks |= {"hide:2": hidden, "forbid:2>1": cells}
        ahead = usual.copy()
        ahead[0, -1] = True
        masks[f"allow:1>{shape[-1]}"] = ahead
        for verb, allowed in masks.items():
            changed = traced(family, f"{site.kind}.{site.layer + 1}.2={verb}")
            weights, before = (one.attention[site.kind][site.layer] for one in (changed, plain))
            some = allowed.any(axis=-1, keepdims=True)
            expected = np.where(some, softmax(scores[1], allowed | ~some), 0)
            assert np.abs(weights[1] - expected).max() <= WITHIN, (site.kind, verb)
            others = [head for head in range(site.n_heads) if head != 1]
            assert np.array_equal(weights[others], before[others])


def test_weights_are_changed_as_is_said(family):
    plain = traced(family, "")
    for site in firsts(family):
        scores, before = (
            of_kind[site.kind][site.layer] for of_kind in (plain.scores, plain.attention)
        )
        allowed = may_attend(family, site, scores.shape[-2:])
        head = f"{site.kind}.{site.layer + 1}.3"
        expected = {
            "temperature:2.5": softmax(scores[2] / 2.5, allowed),
            "uniform": allowed / allowed.sum(axis=-1, keepdims=True),
        }
        edited = before[2].copy()
        edited[1] *= 0.4 / (1 - edited[1, 0])
        edited[1, 0] = 0.6
        expected["weight:2>1:0.6"] = edited
        for verb, weights in expected.items():
            changed = traced(family, f"{head}={verb}").attention[site.kind][site.layer]
            assert np.abs(changed[2] - weights).max() <= WITHIN, verb


def heads_of(found, site):
    """Outputs of the heads before the output projection, (heads, query, d_head)."""
    weights, values = (of_kind[site.kind][site.layer] for of_kind in (found.attention, found.value))
    return weights @ values.repeat(site.n_heads // site.n_key_heads, axis=0)


def through_the_output(model, site, heads):
    """What the attention gives to the residual stream, (query, d_model)."""
    output = attention_at(model, site).output
    return output(torch.tensor(heads).transpose(0, 1).flatten(1)).detach().numpy()


def test_outputs_of_heads_are_replaced(family, given):
    model, plain = family.model, traced(family, "")
    other = trace(model, given.other)
    for site in firsts(family):
        place = f"{site.kind}.{site.layer + 1}"
        mine, theirs = heads_of(plain, site), heads_of(other, site)
        for verb, value in (
            ("off", 0), ("mean", given.means[site.name][1].cpu().numpy()), ("patch", theirs[1]),
        ):  # fmt: skip
            heads = mine.copy()
            heads[1] = value
            changed = traced(family, f"{place}.2={verb}", given)
            expected = through_the_output(model, site, heads)
            assert np.abs(changed.output[site.kind][site.layer] - expected).max() <= WITHIN, verb
        heads = mine.copy()
        heads[:, 1] = theirs[:, 1]
        changed = traced(family, f"{place}=patch:2", given)
        expected = through_the_output(model, site, heads)
        assert np.abs(changed.output[site.kind][site.layer] - expected).max() <= WITHIN
        assert not traced(family, f"{place}=skip").output[site.kind][site.layer].any()


def test_feed_forwards_and_the_stream_are_replaced(family, given):
    plain, other = traced(family, ""), trace(family.model, given.other)
    for name, side in plain.sides.items():
        skipped = traced(family, f"{side.stack}_feed_forward.1=skip")
        assert not skipped.feed_forward[name][0].any() and plain.feed_forward[name][0].any()
        patched = traced(family, f"{side.stack}_feed_forward.1=patch:2", given)
        rows = patched.feed_forward[name][0]
        assert np.array_equal(rows[1], other.feed_forward[name][0][1])
        assert np.abs(rows[0] - plain.feed_forward[name][0][0]).max() <= WITHIN
        patched = traced(family, f"{side.stack}_residual.2=patch:2", given)
        assert np.array_equal(patched.stream[name][2][1], other.stream[name][2][1])
        assert np.array_equal(patched.stream[name][2][0], plain.stream[name][2][0])
    line = "; ".join(f"{side.stack}_residual=patch" for side in plain.sides.values())
    np.testing.assert_allclose(traced(family, line, given).logits, other.logits, atol=WITHIN)
    assert np.abs(other.logits - plain.logits).max() > 1e-3


def test_positions_are_replaced_or_switched_off(family):
    model, plain = family.model, traced(family, "")
    for name, side in plain.sides.items():
        position = embedding_of(model, side).position
        for kind in POSITION_KINDS:
            shift = 3 if kind == "shifted" else 0
            line = f"{side.title}=positions:{kind}" + ("-3" if shift else "")
            if side.table:
                table = table_of(kind, position, model.config.max_length, shift)
                found = traced(family, line)
                length = len(found.texts[name].ids)
                assert np.array_equal(found.table[name], table[:length].cpu().numpy())
                # But for what is there anyway.
                same = np.array_equal(found.table[name], plain.table[name])
                assert same == np.array_equal(found.logits, plain.logits)
            elif kind != "none":
                with pytest.raises(CannotChange, match="rotates queries and keys"):
                    traced(family, line)
            else:
                found = traced(family, line)
                for site in model.sites():
                    q, k = (one[site.kind][site.layer] for one in (found.query, found.key))
                    k = k.repeat(site.n_heads // site.n_key_heads, axis=0)
                    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
                    assert np.abs(found.scores[site.kind][site.layer] - scores).max() <= 1e-4


def test_changed_models_write_under_their_changes(family, given):
    """Token by token from a cache, or anew from the whole text each time."""
    model = family.model
    if model.sides()[-1].predicts != "next token":
        return
    kind, side = model.sites()[-1].kind, model.sides()[-1]
    src = ids_of(model, read_of(model, family.run))[0]
    different = 0
    for line in (
        f"{kind}=off", f"{kind}.1.2=temperature:3.0; {kind}=hide:1", "decoder.2=uniform",
        f"{side.stack}_feed_forward.1=skip", f"{side.title}=positions:none",
        "decoder.1=forbid:4-6>1-2", "decoder.1.2=weight:5>2:0.8", "decoder=mask:window-2",
        f"{side.stack}_residual.1=patch:2",
    ):  # fmt: skip
        run = dataclasses.replace(family.run, changes=parse(line))
        changed = view(model)
        with applied(changed, run.changes, given.all):
            expected = argmax_of_whole_passes(changed, src, 6)
        if "patch" in line:  # takes its other run from a checkpoint
            run = dataclasses.replace(run, other=given.other)
        assert list(family.checkpoint.generate(run, max_tokens=6).path) == expected, line
        different += expected != list(family.checkpoint.generate(family.run, max_tokens=6).path)
    assert different
