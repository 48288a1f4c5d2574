from pathlib import Path

import pytest
import torch

from tests import devices
from tests.model.common import load, tiny_tokenizer

HERE = Path(__file__).parent
SKIPPED = pytest.StashKey[int]()


def pytest_collection_modifyitems(config, items):
    """Without the device that was asked for there is nothing to test."""
    device = devices.named(config.getoption("--device"))
    if devices.available(device):
        return
    ours = [item for item in items if HERE in item.path.parents]
    config.stash[SKIPPED] = len(ours)
    for item in ours:
        item.add_marker(pytest.mark.skip(reason=f"PyTorch sees no {device} here"))


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(SKIPPED, 0):
        asked = config.getoption("--device")
        terminalreporter.section("no such device", sep="!")
        terminalreporter.write_line(
            f"--device {asked} was asked for, but PyTorch sees none here: {count} tests of the "
            "model were SKIPPED, and nothing is known about it there."
        )


@pytest.fixture(scope="session", autouse=True)
def one_thread_an_operation():
    """Small tensors gain nothing from more, and wait long for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def en_fr():
    return load("en-fr")


@pytest.fixture(scope="session")
def en_de():
    return load("en-de")


@pytest.fixture(scope="session")
def tokenizer():
    return tiny_tokenizer()
