"""Reading a model while it runs, through forward hooks that a context manager takes away again.

Hooks belong to modules, and every forward pass of anyone who shares a module fires them. So
each reader works on a `view`: modules of its own over shared weights.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from model.transformer import MaskedSoftmax

Wanted = Callable[[str, nn.Module], bool]


def view(model: nn.Module) -> nn.Module:
    """A copy of the modules that shares every parameter and buffer with `model`."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def is_attention(name: str, module: nn.Module) -> bool:
    """Whether the module's output is attention weights."""
    return isinstance(module, MaskedSoftmax)


@contextmanager
def capture(model: nn.Module, wanted: Wanted = is_attention) -> Iterator[dict[str, Tensor]]:
    """Record the output of every submodule that `wanted(name, module)` names, by its name.

        with capture(view(model)) as seen:
            model(src, tgt)
        seen["encoder.layers.0.self_attn.softmax"]  # (batch, heads, query, key)

    By default the attention weights of every layer, after the mask and before dropout. A
    module that runs twice in the block leaves its last output.
    """
    seen: dict[str, Tensor] = {}

    def keep(name):
        return lambda module, inputs, output: seen.__setitem__(name, output)

    handles = [
        module.register_forward_hook(keep(name))
        for name, module in model.named_modules()
        if wanted(name, module)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
