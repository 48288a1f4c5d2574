"""Records a model's outputs while it runs, through forward hooks that a context manager removes.

Hooks belong to modules, and every forward pass of anyone who shares a module fires them. So
each reader works on a `view`: modules of its own over shared weights.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from torch import Tensor, nn

from headlight.model.arguments import kind_of
from headlight.model.transformer import MaskedSoftmax

Wanted = Callable[[str, nn.Module], bool]
Key = TypeVar("Key", bound=Hashable)
Model = TypeVar("Model", bound=nn.Module)


def view(model: Model) -> Model:
    """A copy of the modules that shares every parameter and buffer with `model`. What a module
    holds besides is shared, too, but for its own dicts, sets and lists, as of hooks. (`deepcopy`
    copies what is inside these as well, in ten times the time.)

    >>> model = load("copy").model
    >>> view(model) is model, view(model).generator.weight is model.generator.weight
    (False, True)
    """
    copies: dict[nn.Module, Any] = {}  # each of the type of its original

    def again(module):
        if module not in copies:
            copy = copies[module] = object.__new__(type(module))
            for name, value in vars(module).items():
                vars(copy)[name] = value.copy() if isinstance(value, dict | set | list) else value
            for name, child in module._modules.items():
                copy._modules[name] = child if child is None else again(child)
        return copies[module]

    return again(model)


def is_attention(name: str, module: nn.Module) -> bool:
    """Whether the module's output is attention weights."""
    return isinstance(module, MaskedSoftmax)


@contextmanager
def capture(model: nn.Module, wanted: Wanted = is_attention) -> Iterator[dict[str, Tensor]]:
    """Record the output of every submodule that `wanted(name, module)` names, by its name.

    >>> copy = load("copy")
    >>> model = view(copy.model)
    >>> with capture(model) as outputs:
    ...     traced = trace(model, copy.run("a b"))
    >>> outputs["encoder.layers.0.self_attn.softmax"].shape  # (batch, heads, query, key)
    torch.Size([1, 2, 3, 3])

    By default the attention weights of every layer, after the mask and before dropout. A
    module that runs twice in the block leaves its last output.
    """
    kind_of("model", model, nn.Module, "a model")
    chosen = {name: module for name, module in model.named_modules() if wanted(name, module)}
    with outputs_of(chosen) as outputs:
        yield outputs


@contextmanager
def outputs_of(modules: Mapping[Key, nn.Module]) -> Iterator[dict[Key, Tensor]]:
    """Record the output of each module under its key."""
    outputs: dict[Key, Tensor] = {}

    def record(key):
        return lambda module, inputs, output: outputs.__setitem__(key, output)

    with ExitStack() as hooks:
        for key, module in modules.items():
            hooks.enter_context(module.register_forward_hook(record(key)))
        yield outputs


@contextmanager
def inputs_of(modules: Mapping[Key, nn.Module]) -> Iterator[dict[Key, tuple]]:
    """Record the positional arguments of each module's last call, in the order of first calls."""
    inputs: dict[Key, tuple] = {}

    def record(key):
        return lambda module, arguments: inputs.__setitem__(key, arguments)

    with ExitStack() as hooks:
        for key, module in modules.items():
            hooks.enter_context(module.register_forward_pre_hook(record(key)))
        yield inputs
