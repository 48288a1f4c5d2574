from types import SimpleNamespace

import pytest

from model.checkpoint import load
from tests.model.pretrained.folders import FAMILIES, TARGET, TEXT, write


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    """A small random model of each family: checkpoint, model, and a run of it; its target is None
    where it reads one text."""
    folder = tmp_path_factory.mktemp(request.param)
    write(folder, request.param)
    checkpoint = load(folder)
    target = TARGET if len(checkpoint.model.sides()) > 1 else None
    run = checkpoint.run(TEXT, target)
    return SimpleNamespace(checkpoint=checkpoint, model=checkpoint.model, run=run, target=target)
