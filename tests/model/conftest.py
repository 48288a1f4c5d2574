import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread_an_operation():
    """Small tensors gain nothing from more, and wait long for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
