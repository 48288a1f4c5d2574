"""The paths between the parts of the figure, measured pass by pass as the browser asks."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.app.results import path_results, sweep_results
from headlight.app.results.shown import Shown
from headlight.app.shell.stage import _place_of
from headlight.app.state import catalog
from headlight.model.analysis.paths import LOGITS, Paths
from headlight.model.probing import sweeps
from headlight.model.probing.trace import CannotRead


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setattr(sweeps, "MAX_BATCH_TOKENS", 256)  # so that it takes several passes
    monkeypatch.setattr(catalog, "pairs", lambda name: [("a b c", "d b c"), ("c a b", "b a b")])
    view = catalog.view_of("copy", "final", "cpu")
    return Shown(view, replace(view.checkpoint.compared("a b c", "d b c"), checkpoint="copy"))


def test_as_the_api_has_it_and_in_small_steps(shown):
    other = replace(shown.run.other, checkpoint="copy")
    shown = replace(shown, run=replace(shown.run, other=other))
    counts, found = [], path_results.paths_of(shown, False)
    while not isinstance(found, Paths):
        counts.append(len(found.changes))
        found = path_results.paths_of(shown, True)
    assert len(counts) > 2 and counts == sorted(set(counts)) and counts[-1] < found.count
    expected = shown.view.checkpoint.paths([("a b c", "d b c")], held_out=[("c a b", "b a b")])
    assert found.paths == expected.paths and found.text == expected.text
    assert np.allclose(found.effects, expected.effects, atol=1e-4)
    ends = [end for path in found.paths for end in (path.sender, path.scope)]
    for place in (_place_of(end, shown) for end in ends):
        if "head" in place:
            assert place["head"] < shown.trace.kinds[place["kind"]][place["layer"]].n_heads
        else:
            assert not place or place["side"] in ("source", "target")
    assert _place_of(LOGITS, shown) == {}


def test_too_many_paths_are_refused(shown, monkeypatch):
    monkeypatch.setattr(sweep_results, "MAX_SWEEP_TOKENS", 100)
    with pytest.raises(CannotRead, match=r"limit is 100\."):
        path_results.paths_of(shown, False)
