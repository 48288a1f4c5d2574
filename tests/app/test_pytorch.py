"""A head beside that of torch.nn.Transformer, and matrices that are compared."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.components import packing
from headlight.app.components.matrices import scales
from headlight.app.components.matrix import Matrix, compared, on_one_scale
from headlight.app.results.shown import Shown
from headlight.app.results.system_results import beside_reference, reference_of
from headlight.app.state import catalog
from headlight.model.masks import Masks
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.reference import Reference
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import CannotRead

TEXT = "the dog sees the cat"
CROSS = Place("cross", 1, 1)


def shown(name, **run):
    view = catalog.view_of(name, "final", "cpu")
    return Shown(view, view.checkpoint.run(TEXT, **run))


@pytest.mark.parametrize("cells", [256, 2])  # of a picture, in which a text that is long has fewer
def test_it_is_the_twins_weight_and_ours_beside_it(monkeypatch, cells):
    monkeypatch.setattr(packing, "PICTURE_CELLS", cells)
    own = shown("en-de", changes="cross.1.2=off", masks=Masks(causal=False), pad_to=16)
    trace, twin = own.whole, Reference(own.view.model).trace(own.view.model, own.run)
    found = beside_reference(own, CROSS)
    ours, theirs = (each.attention["cross"][1, 1] for each in (trace, twin))
    assert np.array_equal(found["weights"], packing.shrunk(theirs))
    largest = np.abs(ours - theirs).max()
    assert np.abs(found["apart"]).max() == largest <= 1e-5
    assert cells < len(ours) or np.array_equal(found["apart"], ours - theirs)
    (differences,) = found["differences"]
    tiles = [(kind, *at) for kind in trace.kinds for at in np.ndindex(4, 4)]
    assert differences[tiles.index(CROSS)] == largest and differences.max() <= 1e-5
    apart, most = np.abs(trace.logits - twin.logits).max(), np.abs(trace.logits).max()
    assert found["logits"] == pytest.approx(apart / max(1, most)) and len(differences) == 48


def test_why_nothing_can_stand_beside_it_is_said():
    with pytest.raises(CannotChange, match="cannot be applied to torch"):
        reference_of(shown("en-de", changes="cross.1.2=weight:1>2:0.5"))
    with pytest.raises(CannotRead, match="no counterpart for this model's DecoderOnly"):
        reference_of(shown("english"))


def rows_of_weights(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(4), 4)


def pictures(ours, theirs):
    return compared({"a": ours, "b": theirs}, "a − b", row_name="query", column_name="key")


def test_difference_is_symmetric_around_zero_and_bears_nan():
    ours, theirs = rows_of_weights(0), rows_of_weights(1)
    theirs[2] = np.nan
    first, second, difference = pictures(ours, theirs)
    assert (first.values is ours, second.values is theirs) == (True, True)
    assert np.array_equal(difference.values, ours - theirs, equal_nan=True)
    assert difference.largest == pytest.approx(np.nanmax(np.abs(ours - theirs)))
    weight, apart = scales(pictures(ours, theirs))
    assert (weight.name, weight.low, weight.high) == ("weight", "0", "1")
    assert apart.name == "difference" and apart.low == f"−{apart.high}"
    assert [one.labelled for one in pictures(ours, theirs)] == [True, False, False]


def test_weights_may_go_up_to_more_than_one():
    longest = Matrix("length", 3 * np.eye(2), "system", "after", weights=True, largest=3)
    (scale,) = scales([longest])
    assert (scale.low, scale.high, scale.palette) == ("0", "3", theme.INKED)
    weights = Matrix("weights", np.eye(2), "query", "key", weights=True)
    q = Matrix("q", np.eye(2), "query", "key")
    shown = on_one_scale([weights, q], [weights, replace(q, values=5 * np.eye(2))])
    assert [[one.largest for one in group] for group in shown] == [[0, 5], [0, 5]]


@pytest.mark.parametrize("missing", [False, True])
def test_a_scale_remains_where_nothing_differs(missing):
    same = np.full((4, 4), np.nan) if missing else rows_of_weights(0)
    assert pictures(same, same)[2].largest > 0
