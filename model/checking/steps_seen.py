"""Every tensor that a student's code makes, with the line that made it: so that the first step that
is not ours can be found in a function that shows its result alone."""

import sys
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headlight.model.checking.part import close, plain

MOST = 400  # tensors kept of one call


@dataclass
class Made:
    line: int
    value: Tensor


class Seen(TorchFunctionMode):
    """Records PyTorch's results while it is on. NumPy's are not seen."""

    def __init__(self, file: str):
        super().__init__()
        self.file, self.made, self.names = file, [], set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.add(getattr(func, "__name__", ""))
        if isinstance(result, Tensor) and result.is_floating_point() and len(self.made) < MOST:
            with suppress(Exception):  # of layouts that cannot be copied
                self.made.append(Made(self._line(), plain(result).clone()))
        return result

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    @property
    def is_coarse(self) -> bool:
        """Whether some of it was computed in half precision."""
        return any(made.value.dtype in (torch.float16, torch.bfloat16) for made in self.made)

    def find(self, ours: Tensor) -> Made | None:
        """The first tensor with the numbers of `ours`, in whatever order its axes are."""
        ours = ours.detach()
        for made in self.made:
            if made.value.numel() == ours.numel() and _same_numbers(made.value, ours):
                return made
        return None


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    one, other = (x.flatten().double().clamp(-1e6, 1e6).sort().values for x in (one, other))
    return bool(close(one.nan_to_num(), other.nan_to_num()).all())
