"""The function that models of transformers take from its table while they are recorded: it calls
the attention that the model has for itself, `eager_attention_forward`, and keeps what that returns.
So the numbers are the model's own, whatever its scores go through (a bias, a cap, a sink). Changes
act on the mask before that call, on its output, and in the one softmax within it. Afterwards the
model is as it was found, whatever happened, and what failed in it is one sentence.
"""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headlight.model.messages import reason
from headlight.model.probing.changes import (
    CannotChange,
    Change,
    HeadOff,
    MaskChange,
    Temperature,
    WeightChange,
)
from headlight.model.probing.trace import BYTES_OF_WEIGHT, most_bytes, too_large
from headlight.model.recording.weights import CannotRecord, kinds_by_name, unwrapped

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


class _Name(str):
    """A key of its own in the tables of transformers, which equals "eager": by this some models
    choose which way they go, or add to their masks."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or other == "eager"

    def __ne__(self, other: object) -> bool:
        return not self == other


NAME = _Name("headlight")
SOFTMAXES = {torch.softmax, nn.functional.softmax, Tensor.softmax}


@dataclass
class Call:
    """One call of an attention: name of its module, and which of its calls it is; what it returned,
    (batch, heads, query, key), and how many heads keys have."""

    name: str
    number: int
    weights: Tensor
    key_heads: int

    @property
    def place(self) -> "Place":
        return self.name, self.number


Place = tuple[str, int]


class Room:
    """The memory that the weights of a pass take: known before the first of them is made, as far
    as `lengths` of the text (or source) and of the target are, else kind by kind."""

    def __init__(self, modules: Sequence[str], lengths: Sequence[int | None]):
        self.kinds = kinds_by_name(modules)
        self.kind_of = {name: kind for kind, names in self.kinds.items() for name in names}
        self.lengths = lengths
        self.calls: dict[str, int] = {}
        self.cells: dict[str, int] = {}  # of one layer

    def check(self, name: str, heads: int, rows: int, keys: int) -> None:
        """Raises CannotRecord if all that is to come does not fit, once a module with these sizes
        is called."""
        kind = self.kind_of.get(name, name)
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.cells[kind] = heads * rows * keys
        cells = 0
        for one in dict.fromkeys(chain(self.cells, self.kinds)):
            layers = max(len(self.kinds.get(one, ())), self.calls.get(one, 0))
            cells += layers * self.cells.get(one, heads * self._guess(one))
        lengths = [length for length in self.lengths if length] or [rows]
        check_room(cells, lengths)

    def _guess(self, kind: str) -> int:
        src, tgt = (length or 0 for length in self.lengths)
        return {"cross": tgt * src, "decoder": (tgt or src) ** 2}.get(kind, src**2)


def check_room(cells: int, lengths: Sequence[int]) -> None:
    """Raises CannotRecord if so many weights of texts of these lengths do not fit into memory."""
    needed, most = BYTES_OF_WEIGHT * cells, most_bytes()
    if needed > most:
        raise CannotRecord(too_large("all heads", lengths, needed, most))


@dataclass
class Watch:
    """What is recorded in one pass, and what is changed: place → changes. `names`: see
    `names_of`."""

    names: dict[nn.Module, list[str]]
    room: Room
    changes: Mapping[Place, Sequence[Change]] = field(default_factory=dict)
    calls: MutableSequence[Call] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def place(self, module: nn.Module) -> Place:
        """Of the next call of a module. One that layers share has a name in each."""
        names = self.names.get(module, [type(module).__name__])
        number = self.counts[names[0]] = self.counts.get(names[0], -1) + 1
        return (names[number], 0) if 0 < number < len(names) else (names[0], number)


def names_of(*models: nn.Module) -> dict[nn.Module, list[str]]:
    """Module → its names in the last of the models that holds it, without what wraps it."""
    names: dict[nn.Module, list[str]] = {}
    for model in models:
        within: dict[nn.Module, list[str]] = {}
        for name, module in model.named_modules(remove_duplicate=False):
            within.setdefault(module, []).append(unwrapped(name))
        names |= within
    return names


watching: ContextVar[Watch | None] = ContextVar("watch", default=None)
_registering = threading.Lock()


def attend(module, query, key, value, attention_mask, *args, **kwargs):
    """The model's own attention, watched."""
    own, watch = _eager_of(type(module)), watching.get()
    if watch is None:
        return own(module, query, key, value, attention_mask, *args, **kwargs)
    place = watch.place(module)
    changes = watch.changes.get(place, ())
    watch.room.check(place[0], query.shape[1], query.shape[2], key.shape[2])
    inside: AbstractContextManager = nullcontext()
    if changes:
        allowed = before = _allowed(attention_mask, query, key)
        if masks := [change for change in changes if isinstance(change, MaskChange)]:
            allowed = allowed.clone()
            for change in masks:
                change.allow(allowed[:, change.scope.heads], 0)
            attention_mask = _as_mask(attention_mask, before, allowed, query.dtype)
        if softer := [c for c in changes if isinstance(c, Temperature | WeightChange)]:
            inside = _Softmax(softer, allowed)
    with inside:
        output, weights, *rest = own(module, query, key, value, attention_mask, *args, **kwargs)
    if weights is None:
        raise CannotRecord(f"{place[0]}: its own eager attention returns no weights.")
    for change in changes:
        if isinstance(change, HeadOff):
            output = output.clone()  # (batch, query, heads, d_head)
            output[:, :, change.scope.heads] = 0
    watch.calls.append(Call(*place, weights.detach(), key.shape[1]))
    return output, weights, *rest


def _allowed(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor:
    """Where a mask lets attend, (batch, heads, query, key)."""
    size = (*query.shape[:3], key.shape[2])
    if mask is None:
        return torch.ones(size, dtype=torch.bool, device=query.device)
    mask = mask[..., : key.shape[2]]
    return (mask if mask.dtype == torch.bool else mask > _least(mask) / 2).expand(size)


def _least(mask: Tensor) -> float:
    return torch.finfo(mask.dtype).min


def _as_mask(mask: Tensor | None, before: Tensor, allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """An additive mask; what a mask adds where it lets attend stays."""
    added = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    if mask is not None and mask.dtype != torch.bool:
        added = torch.where(before, mask[..., : allowed.shape[-1]].to(dtype), 0)
    return added.masked_fill(~allowed, torch.finfo(dtype).min)


class _Softmax(TorchFunctionMode):
    """Changes what enters the one softmax of an attention, and what leaves it. A sink is a column
    behind those of the keys; the temperature concerns it, too."""

    def __init__(self, changes: Sequence[Change], allowed: Tensor):
        super().__init__()
        self.changes, self.allowed, self.used = changes, allowed, False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function not in SOFTMAXES or self.used:
            return function(*args, **(kwargs or {}))
        self.used = True
        scores, keys = args[0].clone(), self.allowed.shape[-1]
        for change in self.changes:
            if isinstance(change, Temperature):
                heads = change.scope.heads
                scores[:, heads] = change.divided(scores[:, heads])
        weights = function(scores, *args[1:], **(kwargs or {}))
        if any(isinstance(change, WeightChange) for change in self.changes):
            weights = weights.clone()
        for change in self.changes:
            if not isinstance(change, WeightChange):
                continue
            if weights.shape[-1] != keys:
                raise CannotChange(f"“{change}”: a sink takes a share of these weights.")
            heads = change.scope.heads
            change.weigh(weights[:, heads], self.allowed[:, heads], 0)
        return weights


@cache
def _eager_of(kind: type) -> Callable:
    """The eager attention that a class of transformers calls where no other is chosen."""
    for base in kind.__mro__:
        if "forward" not in vars(base):
            continue
        forward = inspect.unwrap(vars(base)["forward"])
        names = [n for n in forward.__code__.co_names if n.endswith("eager_attention_forward")]
        if len(names) == 1:
            return forward.__globals__[names[0]]
    raise CannotRecord(f"{kind.__name__} has no eager attention of its own.")


def has_eager(kind: type) -> bool:
    """Whether a module class has an eager attention function of its own."""
    try:
        return bool(_eager_of(kind))
    except CannotRecord:
        return False


def register() -> None:
    """In both tables: without its masks a causal model would attend ahead."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    with _registering:
        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, eager_mask)
