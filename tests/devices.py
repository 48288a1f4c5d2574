"""The device that the tests of the model and the bench work on: --device, without it the CPU."""

from typing import TypeVar

import torch
from torch import Tensor, nn

CPU = torch.device("cpu")
KINDS = ("cpu", "cuda")

_current = CPU
Placed = TypeVar("Placed", Tensor, nn.Module)


def named(name: str) -> torch.device:
    """`cpu`, `cuda`, `cuda:1`, …. Raises ValueError, with a sentence, for anything else."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(
            f"--device {name}: there is no such device; give cpu, cuda, or one GPU, as in cuda:1"
        ) from None
    if device.type == "meta":
        raise ValueError("--device meta: its tensors hold no numbers to compare; give cpu or cuda")
    if device.type not in KINDS:
        raise ValueError(f"--device {name}: the model is tested on cpu and on cuda alone")
    return device


def available(device: torch.device) -> bool:
    """Whether PyTorch sees it here."""
    return device.type != "cuda" or (device.index or 0) < torch.cuda.device_count()


def use(device: torch.device) -> None:
    """From now on `here` is there. Without TF32, whose products have three digits."""
    global _current
    _current = device
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def current() -> torch.device:
    return _current


def here(placed: Placed) -> Placed:
    """A tensor or a model on the device. Random numbers are drawn on the CPU, so that they are the
    same on all."""
    return placed.to(_current)


def within(tolerance: float) -> float:
    """How far two results may be apart: at least 1e-4 on a GPU, which sums in another order."""
    return tolerance if _current.type == "cpu" else max(tolerance, 1e-4)


def synchronize() -> None:
    """Wait for what the device still does."""
    if _current.type == "cuda":
        torch.cuda.synchronize(_current)
