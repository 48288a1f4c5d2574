"""The fewest paths that carry a difference: against the pass itself and the change `path`."""

import json
from dataclasses import replace

import numpy as np
import pytest

from headlight.model.analysis.paths import Circuits, Paths, reaching
from headlight.model.probing.changes import Pathed, parse
from headlight.model.probing.sweeps import paths
from headlight.model.tokenizer import CannotRead
from tests.model.analysis.test_streams import made
from tests.model.common import in_short, load
from tests.model.probing.test_paths import logits, other_of

NAMES = ["paper", "pre_norm", "decoder_only", "gpt2", "llama", "llama grouped", "bert"]
PAIRS = (("My father is old.", "My mother is old."), ("The boy is happy.", "The girl is happy."))


def circuits_of(name):
    model, run = made(name)
    found = Circuits(model, replace(run, other=other_of(run)))  # pyright: ignore[reportArgumentType]

    def score(logits):
        return float(found.score.of(logits[None], None))

    return found, score


@pytest.mark.parametrize("name", in_short(NAMES, "paper", "llama grouped"))
def test_all_paths_are_the_run_and_none_the_other(name):
    found, score = circuits_of(name)
    model, run = found.model, found.run
    assert found.plain == pytest.approx(score(logits(model, run)), abs=1e-9)
    assert found.none == pytest.approx(score(logits(model, run.other)), abs=1e-9)
    assert found.plain > 0 > found.none  # each expects its own
    assert set(found.places) == {path for (path,) in paths(model)}


@pytest.mark.parametrize("name", in_short(["paper", "gpt2", "llama grouped", "en-fr"], "paper"))
def test_all_but_one_is_the_change(name):
    """One path taken from the comparison: as the hooks of the change do it, in an ordinary pass."""
    found, score = circuits_of(name)
    for i in np.random.default_rng(0).choice(len(found.places), 4, replace=False):
        path = list(found.places)[i]
        share = found.shares([[each for each in found.places if each != path]])[0]
        changed = score(logits(found.model, found.run, str(path), found.run.other))
        kept = found.none + share * found.difference
        assert kept == pytest.approx(changed, abs=1e-9)


def test_what_leads_nowhere_carries_nothing():
    found, _ = circuits_of("llama grouped")
    order = np.random.default_rng(0).permutation(len(found.places))
    some = [list(found.places)[i] for i in order[: len(order) // 3]]
    alive = reaching(found.model, some)
    assert 0 < len(alive) < len(some)
    both = found.shares([some, alive])
    assert both[0] == pytest.approx(both[1], abs=1e-9)


def test_the_fewest_of_one_pair():
    copy = load("copy")
    found = copy.paths([("a b c", "d b c")], held_out=[("c a b", "b a b")])
    assert found.share >= 0.8 and len(found.paths) < 0.15 * found.count and len(found.held) == 1
    assert str(found).startswith(f"{len(found.paths)} of 185 paths carry ")
    assert f"“a” and “d”; on 1 other pair, they carry {100 * found.held[0]:.0f}%." in str(found)
    frame, told = found.to_dataframe(), json.loads(found.to_json())
    assert [each["path"] for each in told["paths"]] == list(frame.path)
    assert parse("; ".join(frame.path)) == found.paths
    assert all(isinstance(path, Pathed) for path in found.paths) and "\n" not in repr(found)
    fewer = replace(found, held=(), share=0.5)
    assert str(fewer).endswith("the rest is spread over many.") and isinstance(fewer, Paths)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("a b c", "a b"), "the same number of tokens"),
        (("a b c", "a b c"), "the same in both sentences"),
    ],
)
def test_what_is_no_pair(pair, said):
    with pytest.raises(CannotRead, match=said):
        load("copy").paths([pair])
    with pytest.raises(ValueError, match="at least one pair"):
        load("copy").paths([])


def test_a_comparison_of_one_model_without_changes():
    found, _ = circuits_of("gpt2")
    for run in (replace(found.run, other=None), replace(found.run, changes=parse("decoder=off")),
                replace(found.run, other=replace(other_of(found.run), step="1"))):  # fmt: skip
        with pytest.raises(CannotRead, match="Paths"):
            Circuits(found.model, run)


@pytest.mark.long
def test_on_pairs_on_which_they_were_not_chosen():
    """Chosen on some pairs, at most 15% of the paths: 80% of what others differ by."""
    shipped = [("I see a small table.", "I see a small book."),
               ("I bought a white hat.", "I bought a white car."),
               ("The black cat is sleeping.", "The black cats are sleeping.")]  # fmt: skip
    held = [*PAIRS, ("A man is riding a bike.", "A woman is riding a bike.")]
    found = load("en-fr").paths(shipped, held_out=held)
    assert len(found.paths) <= 0.15 * found.count and np.median(found.held) >= 0.8
