"""--device is checked before anything is made, and puts what tests make where it says."""

import pytest

from tests import devices
from tests.bench import __main__ as bench
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
