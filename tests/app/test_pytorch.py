"""A head beside that of torch.nn.Transformer."""

import numpy as np
import pytest

from headlight.app.components import packing
from headlight.app.results.shown import Shown
from headlight.app.results.system_results import beside_reference, reference_of
from headlight.app.state import catalog
from headlight.model.masks import Masks
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
    own = [*trace.kinds].index("cross") * 16 + 5  # as the browser counts tiles
    assert differences[own] == largest and differences.max() <= 1e-5
    apart, most = np.abs(trace.logits - twin.logits).max(), np.abs(trace.logits).max()
    assert found["logits"] == pytest.approx(apart / max(1, most)) and len(differences) == 48


def test_a_model_that_pytorch_has_no_parts_for_is_said():
    with pytest.raises(CannotRead, match="no counterpart for an encoder or decoder alone"):
        reference_of(shown("english"))
