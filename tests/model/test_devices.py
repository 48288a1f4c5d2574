"""--device is checked before anything is made, and puts what tests make where it says."""

from types import SimpleNamespace

import pytest
import torch

from tests import conftest, devices
from tests.bench import __main__ as bench
from tests.conftest import ROOT
from tests.model.common import random_ids, random_model

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("meta", "hold no numbers"), ("bird", "no such device"), ("xla", "on cpu and on cuda alone")],
)
def test_a_device_that_cannot_be_is_told_so(name, said, monkeypatch, capsys):
    with pytest.raises(ValueError, match=f"--device {name}: .*{said}"):
        devices.named(name)
    monkeypatch.setattr("sys.argv", ["bench", "--only", "decoding", "--device", name])
    with pytest.raises(SystemExit):
        bench.main()
    assert said in capsys.readouterr().err


def test_models_and_ids_are_on_the_device():
    assert random_ids(3).device.type == devices.current().type
    assert {p.device.type for p in random_model().parameters()} == {devices.current().type}


@pytest.mark.long
def test_without_the_device_tests_are_skipped_aloud(pytester, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    monkeypatch.chdir(ROOT)
    file = str(ROOT / "tests" / "model" / "test_masks.py")
    result = pytester.runpytest_subprocess(file, "--rootdir", ROOT, "--device", "cuda")
    result.stdout.fnmatch_lines(
        ["*--device cuda was asked for, but PyTorch sees none here*SKIPPED*"]
    )
    assert result.parseoutcomes().keys() == {"skipped"}


def test_a_device_that_cannot_be_ends_a_run_before_tests_are_collected(monkeypatch):
    monkeypatch.setattr(devices, "_current", devices.current())
    config = SimpleNamespace(getoption={"--device": "meta"}.get)
    with pytest.raises(pytest.UsageError, match="hold no numbers"):
        conftest.pytest_configure(config)
