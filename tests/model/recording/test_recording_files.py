"""Recordings in files, and broken files."""

import numpy as np
import pytest

from headlight.model import record
from headlight.model.recording.checkpoint import load_recorded
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import inputs_of, model_of


@pytest.mark.parametrize("name", ["llama", "bart", "gpt_oss"])
def test_a_file_gives_back_what_was_written(name, tmp_path):
    recorded = record(model_of(name), inputs=inputs_of(name))
    file = tmp_path / "one.safetensors"
    recorded.save(file)
    (back,) = load_recorded(file).recordings
    assert {k: s.tokens for k, s in back.texts.items()} == {
        k: s.tokens for k, s in recorded.texts.items()
    }
    assert back.sites == recorded.sites and back.sides == recorded.sides
    for kind, weights in recorded.attention.items():
        assert np.array_equal(back.attention[kind], weights)
    first = file.read_bytes()
    back.save(file)
    assert file.read_bytes() == first


@pytest.mark.parametrize("trials", [25, pytest.param(200, marks=pytest.mark.long)])
def test_a_broken_file_gets_a_sentence(trials, tmp_path):
    file = tmp_path / "one.safetensors"
    record(model_of("gpt2"), text=[5, 6, 7]).save(file)  # with predictions
    whole = file.read_bytes()
    random = np.random.default_rng(0)
    for trial in range(trials):
        spoilt = bytearray(whole[: random.integers(0, len(whole))] if trial % 2 else whole)
        for at in random.integers(0, max(len(spoilt), 1), 5 * (trial % 3)):
            if at < len(spoilt):
                spoilt[at] = random.integers(256)
        file.write_bytes(bytes(spoilt))
        try:
            load_recorded(file)
        except CannotRecord as error:
            assert str(error).endswith((".", "?")) and len(str(error)) <= 300
