"""What the README shows runs as it stands there, and tests that SECURITY.md names exist."""

import re

import torch

import headlight
from headlight.model.presets import PRESETS
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_examples_run():
    state_dict = {"generator.proj.bias": torch.zeros(1)}  # refused: what it lacks is named
    assert len(BLOCKS) == 2
    for block in BLOCKS:
        try:
            exec(block, names := {"state_dict": state_dict})
        except ValueError as error:
            assert "load_foreign" in block and "src_embed" in str(error)
        else:
            assert "load_foreign" not in block
    assert names["build"] is headlight.build


def test_what_is_offered_is_there_and_is_what_the_readme_takes():
    assert all(callable(getattr(headlight, name)) for name in headlight.__all__)
    taken = re.findall(r"^from headlight import (.*)$", README, flags=re.MULTILINE)
    assert {name.strip() for line in taken for name in line.split(",")} <= {*headlight.__all__}


def test_every_preset_and_model_that_is_named_exists():
    presets = re.findall(r"^\| `(\w+)` \| ", README, flags=re.MULTILINE)
    assert len(presets) == 5 and {*presets} <= {*PRESETS}
    for name in re.findall(r"assets/checkpoints/([\w-]+)/README", README):
        assert (ROOT / "assets/checkpoints" / name / "config.json").is_file()


def test_what_shows_a_promise_exists():
    promises = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[2] for line in promises if line.startswith("| ")][1:]
    assert len(rows) == 16
    for row in rows:
        named = re.findall(r"`([\w/.]+)`", row)
        assert named and all((ROOT / name).exists() for name in named), row
