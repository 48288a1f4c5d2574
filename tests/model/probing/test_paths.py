"""What one part gives another, and only that, from another run: against hooks of the test's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.changes import CannotChange, Pathed, Scope, parse, written
from headlight.model.probing.patching import read_by_path, recorded
from headlight.model.probing.run import Run
from headlight.model.probing.sweeps import NEED_ANOTHER, Score, paths, sweep
from headlight.model.probing.trace import ids_of, read_of
from tests.model.analysis.test_streams import made, recorded_by_hand
from tests.model.common import hooks, in_short

TARGET = "Mon père est professeur."


@pytest.fixture(scope="module")
def run(en_fr):
    other = en_fr.run("My mother is a teacher.", TARGET)
    return replace(en_fr.run("My father is a teacher.", TARGET), other=other)


def other_of(run):
    """Of the same lengths, the tokens backwards."""
    return Run(tuple(text.take(range(len(text.ids))[::-1]) for text in run.texts), run.masks)


def logits(model, run, line="", other=None):
    ids, changes = ids_of(model, read_of(model, run)), parse(line)
    given = PatchInputs()
    if other is not None:
        given = PatchInputs(other=recorded(model, other))
        senders = list({c.sender: 0 for c in changes if isinstance(c, Pathed)})
        if senders:
            given = PatchInputs(other=given.other | read_by_path(model, run, senders, given))
    with applied(model, changes, given), torch.no_grad():
        return model(*ids, *run.masks.build(model, *ids))[0]


@pytest.mark.parametrize(
    "name", in_short(["paper", "pre_norm", "gpt2", "llama grouped", "en-fr"], "paper", "gpt2")
)
def test_what_only_one_part_reads_is_patched_as_a_whole(name):
    """The last feed-forward is read by the logits alone."""
    model, run = made(name)
    other, last = other_of(run), len(model.sides()[-1].layers)
    path = logits(model, run, f"logits=path:decoder_feed_forward.{last}", other)
    whole = logits(model, run, f"decoder_feed_forward.{last}=patch", other)
    assert (path - whole).abs().max() < 1e-9 < 1e-4 < (whole - logits(model, run)).abs().max()
    kinds = dict.fromkeys(site.kind for site in model.sites())
    line = "; ".join(f"{kind}=path:decoder_feed_forward.1" for kind in kinds)
    assert (logits(model, run, line, run) - logits(model, run)).abs().max() < 1e-9  # of itself
    assert hooks(model) == 0


@pytest.mark.parametrize("reads", in_short(["query", "key"], "key"))
def test_an_edge_by_hand(reads):
    """en-fr, decoder 1.2 → the query of decoder 3.1, encoder 1.2 → the key of cross 3.1: the
    pre-norm stream with the difference added, read by that head alone."""
    model, run = made("en-fr")
    other = other_of(run)
    stack, sub = ("decoder", "self_attn") if reads == "query" else ("encoder", "cross_attn")
    seen, there = recorded_by_hand(model, run), recorded_by_hand(model, other)
    at = f"{stack}.layers.0.self_attn.output"
    moved = (there[at][0] - seen[at][0])[..., 32:64] @ model.get_submodule(at).weight[:, 32:64].T
    norm = "decoder.layers.2.norm1" if reads == "query" else "encoder.norm"
    module = model.get_submodule(f"decoder.layers.2.{sub}.{reads}")
    read = module(model.get_submodule(norm)(seen[norm][0] + moved))
    with module.register_forward_hook(lambda m, i, o: torch.cat([read[..., :32], o[..., 32:]], -1)):
        expected = logits(model, run)
    kind = "decoder" if reads == "query" else "cross"
    found = logits(model, run, f"{kind}.3.1=path:{reads}<{stack}.1.2", other)
    assert (found - expected).abs().max() < 1e-9
    assert (expected - logits(model, run)).abs().max() > 1e-4


def test_behind_a_norm_by_hand():
    """Post-norm, encoder 1.2 → the first feed-forward, whose own stream goes through the norm; what
    is added to goes on as it is."""
    model, run = made("paper")
    other, layer = other_of(run), model.encoder.layers[0]
    seen, there = recorded_by_hand(model, run), recorded_by_hand(model, other)
    at, width = "encoder.layers.0.self_attn.output", 6
    columns = slice(width, 2 * width)
    moved = (there[at][0] - seen[at][0])[..., columns] @ layer.self_attn.output.weight[:, columns].T
    made_of = layer.feed_forward(layer.norm1(seen["encoder.layers.0.norm1"][0] + moved))
    with layer.feed_forward.register_forward_hook(lambda m, i, o: made_of):
        expected = logits(model, run)
    found = logits(model, run, "encoder_feed_forward.1=path:encoder.1.2", other)
    assert (found - expected).abs().max() < 1e-9
    assert (expected - logits(model, run)).abs().max() > 1e-4


def test_a_sweep_is_each_by_itself():
    model, run = made("pre_norm")
    score, chance = Score(1, 5, 6), np.random.default_rng(0)
    other = PatchInputs(other=recorded(model, other_of(run)))
    senders = list(dict.fromkeys(change.sender for (change,) in paths(model)))
    given = PatchInputs(other=other.other | read_by_path(model, run, senders, other))
    changes = paths(model)
    found = sweep(model, run, changes, score, given).effects
    plain = logits(model, run)[1]
    for i in chance.choice(len(changes), 8, replace=False):
        row = logits(model, run, str(changes[i][0]), other_of(run))[1]
        assert float(row[5] - row[6] - plain[5] + plain[6]) == pytest.approx(found[i], abs=1e-9)
    assert np.abs(found).max() > 0.01


@pytest.mark.long
def test_each_by_itself(en_fr, run):
    """The sweep of all 2,249 edges, and what carries the gender of “Mon”."""
    assert "paths" in NEED_ANOTHER and len(set(paths(en_fr.model))) == 2249
    one, two = (en_fr.encode(text, 1).ids[0] for text in ("Mon", "Ma"))
    swept = en_fr.swept(run, "paths", Score(0, one, two))
    effects = {
        str(change): effect for (change,), effect in zip(swept.changes, swept.effects, strict=True)
    }
    strongest = min(effects, key=effects.get)
    assert strongest == "logits=path:cross.4.3" and effects[strongest] < -0.4 * swept.score
    chance = np.random.default_rng(0)
    for line in [strongest, *chance.choice([*effects], 8)]:
        row = en_fr.trace_run(replace(run, changes=parse(line))).logits[0]
        assert row[one] - row[two] - swept.score == pytest.approx(effects[line], abs=1e-4)
    frame = swept.to_dataframe()
    assert frame.change[0] == "encoder.1.1=path:query<source" and len(frame) == 2249


def test_of_a_group_of_heads():
    model, _ = made("llama grouped")
    named = {str(change.scope) for (change,) in paths(model) if change.reads == "key"}
    assert named == {f"decoder.{layer}.{head}" for layer in (1, 2, 3) for head in (1, 3)}


def test_a_path_is_a_change_with_a_line(en_fr, run):
    line = (
        "cross.3.4=path:key<encoder.2.1; decoder_feed_forward.2=path:cross.1.2; "
        "logits=path:cross.4.3; cross.1.2=path:query<target; encoder=path:source; "
        "cross=path:value<encoder_feed_forward.4"
    )
    assert all(isinstance(each, Pathed) for each in parse(line)) and written(parse(line)) == line
    found = [en_fr.trace_run(replace(run, changes=(change,))) for change in parse(line)]
    assert all(np.isfinite(one.log_probabilities[:3]).all() for one in found)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cross.3.4=path", "invalid argument to “path”"),
        ("cross.3.4=path:keys<encoder.2.1", "invalid argument to “path”"),
        ("cross.3.4=path:key<encoder.0.1", "invalid argument to “path”"),
        ("cross.3.4=path:key<encoder.2", "“encoder.2” is no head, feed-forward or text"),
        ("cross.3.4=path:key<encoder.9.1", "“encoder.9.1” is no head, feed-forward or text"),
        ("cross.3.9=path:key<encoder.2.1", "no head 9"),
        ("logits=path:key<encoder.2.1", "only an attention has a key"),
        ("encoder_residual.1=path:source", "does not apply to “encoder_residual”"),
    ],
)
def test_what_is_no_path(en_fr, run, line, said):
    with pytest.raises(CannotChange, match="“") as raised:
        en_fr.trace_run(replace(run, changes=parse(line)))
    assert said in str(raised.value)


def test_what_a_path_needs(en_fr, run):
    line = "logits=path:cross.4.3"
    with pytest.raises(CannotChange, match="there is no comparison to patch from"):
        en_fr.trace("My father is a teacher.", TARGET, changes=line)
    with pytest.raises(CannotChange, match="needs a target that is already written"):
        en_fr.translate("My father is a teacher.", changes=line, other=run.other)
    longer = en_fr.run("My mother is not a teacher.", TARGET)
    with pytest.raises(CannotChange, match="patching needs the same number"):
        en_fr.trace_run(replace(run, changes=parse(line), other=longer))
    with pytest.raises(CannotChange, match="itself patched"):
        other = replace(run, changes=parse(line))
        en_fr.trace_run(replace(run, changes=parse("cross=patch"), other=other))
    assert Pathed(Scope("logits"), Scope("cross", 3, 2)) == parse(line)[0]
