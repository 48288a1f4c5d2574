"""A model is left as it was found, whatever happens to it meanwhile, and what fails in it is one
sentence."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakKeyDictionary

from torch import nn

from headlight.model.messages import reason
from headlight.model.recording.weights import CannotRecord

HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_backward_hooks",
    "_backward_pre_hooks",
)  # fmt: skip
INSTALLED = "_output_capturing_hooks_installed"  # of transformers, which never removes its own
COMPILED = "_compiled_call_impl", "forward"  # of a module, and of what torch.compile wraps one in
ABSENT = object()
OURS = "headlight."  # modules whose exceptions are sentences


def configs_of(model: nn.Module) -> list:
    """All configurations that its modules and each other have, each once."""
    found, todo = {}, [vars(module).get("config") for module in model.modules()]
    while todo:
        config = todo.pop()
        if not hasattr(config, "_attn_implementation_internal") or id(config) in found:
            continue
        found[id(config)] = config
        todo += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]
    return list(found.values())


_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_finding = threading.Lock()


def _locks_of(model: nn.Module) -> list[threading.RLock]:
    """Of the model and of all within it that have a configuration: two models may share one. In
    the same order everywhere, so that nobody waits for somebody who waits for him."""
    owners = {model, *(module for module in model.modules() if "config" in vars(module))}
    with _finding:
        return [_locks.setdefault(each, threading.RLock()) for each in sorted(owners, key=id)]


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """After the block the model is as it was, whatever happened. Meanwhile it is this thread's.
    Raises CannotRecord for what the model's own code raises."""
    with ExitStack() as held:
        for lock in _locks_of(model):
            held.enter_context(lock)
        try:
            with _restored(model):
                yield
        except Exception as error:
            if type(error).__module__.startswith(OURS):
                raise
            why = f": {reason(error)}" if str(error) else ""
            if "index out of range" in why:
                why = ": a token's id, or its position, is beyond those that it has learned"
            raise CannotRecord(f"{type(model).__name__} fails on this input{why}.") from error


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    modules = list(model.modules())
    was = [(m, m.training, {name: vars(m)[name].copy() for name in HOOKS if name in vars(m)},
            vars(m).get(INSTALLED, ABSENT)) for m in modules]  # fmt: skip
    compiled = [(m, name, vars(m)[name]) for m in modules for name in COMPILED if name in vars(m)
                and (name != "forward" or "_orig_mod" in m._modules)]  # fmt: skip
    implementations = [(c, c._attn_implementation_internal) for c in configs_of(model)]
    try:
        for module, name, _ in compiled:  # compiled code would not ask us for its attention
            vars(module)[name] = module._modules["_orig_mod"] if name == "forward" else None
        yield
    finally:
        for module, name, code in compiled:
            vars(module)[name] = code
        for config, implementation in implementations:
            config._attn_implementation_internal = implementation
        for module, training, hooks, installed in was:
            module.training = training
            for name, before in hooks.items():
                now = vars(module)[name]
                if now != before:
                    now.clear()
                    now.update(before)
            if installed is ABSENT:
                vars(module).pop(INSTALLED, None)
            else:
                setattr(module, INSTALLED, installed)
