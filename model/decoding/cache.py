"""A key-value cache, built by swapping parts of a model that has none itself.

When a target grows by one token, earlier keys and values stay the same, because no token attends to
later ones. `OneByOne(model, capacity).model` takes the newest token alone. Its attentions keep keys
and values, and its positional table goes on where it stopped. All else, hooks and weights included,
is the model's own, so that whoever captures or changes a view of it sees each step: one query row.
"""

import copy
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Generic, TypeVar

from torch import Tensor, nn

from headlight.model.probing.sites import attention_at, predicted_side
from headlight.model.sites import ProbedModel, Site
from headlight.model.transformer import MultiHeadAttention

KeysValues = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
Model = TypeVar("Model", bound=ProbedModel)
Part = TypeVar("Part", bound=nn.Module)


# Where modules are defined that treat a row alike whether earlier ones stand beside it or not.
KNOWN = (
    "headlight.model.",
    *(
        f"torch.nn.modules.{name}"
        for name in ("activation", "container", "dropout", "linear", "normalization", "sparse")
    ),
)
STUDENTS = "headlight.model.checking."  # parts around code that anybody wrote


def fits(model: ProbedModel) -> bool:
    """Whether a cache can stand in all the attentions of the target, which take keys and values
    from `keys_values`, and all its parts are known: in a cache a row stands alone, which another's
    softmax or scores, such as those of a window, may take for the first."""
    side = predicted_side(model)
    parts = (model.get_submodule(name).modules() for name in (side.stack, side.embedding))
    return all(map(_known, chain([model], *parts))) and all(
        isinstance(attention, MultiHeadAttention)
        and type(attention).forward is MultiHeadAttention.forward
        for attention in (attention_at(model, site) for site in _sites(model))
    )


def _known(part: nn.Module) -> bool:
    module = type(part).__module__
    return (
        module.startswith(KNOWN) and not module.startswith(STUDENTS) and "forward" not in vars(part)
    )


class OneByOne(Generic[Model]):
    """`model` reading a target one token at a time, at most `capacity` tokens."""

    def __init__(self, model: Model, capacity: int):
        self.growing: list[GrowingKeysValues] = []  # of the target itself
        self.fixed: list[FixedKeysValues] = []  # to the source
        parts: dict[str, nn.Module] = {}
        for site in _sites(model):
            original = attention_at(model, site)
            # Not the copy's own `keys_values`: that would create a reference cycle, which only the
            # garbage collector frees.
            project, attention = original.keys_values, copy.copy(original)
            if site.key_side == site.query_side:
                cache = GrowingKeysValues(project, capacity, original.n_key_heads)
                self.growing.append(cache)
            else:
                cache = FixedKeysValues(project)
                self.fixed.append(cache)
            attention.keys_values = cache
            parts[site.name] = attention
        self.model = with_parts(model, parts | _next_position(model))

    def reorder(self, rows: Tensor) -> None:
        """Targets take the places of others of the same sentence."""
        for cache in self.growing:
            cache.select(rows)

    def keep(self, rows: Tensor) -> None:
        """Only these targets go on."""
        for cache in (*self.growing, *self.fixed):
            cache.select(rows)


class GrowingKeysValues:
    """In place of `keys_values`: those of the new token behind all before it, in room for
    `capacity` of them. What groups of heads share is kept once, and shared out after."""

    def __init__(self, project: KeysValues, capacity: int, n_key_heads: int):
        self.project, self.capacity, self.length = project, capacity, 0
        self.n_key_heads = n_key_heads
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __call__(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.project(key, value)  # (batch, heads or key heads, new, d_head)
        if self.keys is None or self.values is None:
            self.keys, self.values = self._room(k), self._room(v)
        start, self.length = self.length, self.length + k.shape[2]
        return self._put(self.keys, k, start), self._put(self.values, v, start)

    def _room(self, new: Tensor) -> Tensor:
        return new.new_empty(len(new), self.n_key_heads, self.capacity, new.shape[3])

    def _put(self, held: Tensor, new: Tensor, start: int) -> Tensor:
        shared = new.shape[1] // self.n_key_heads
        held[:, :, start : self.length] = new[:, ::shared]
        whole = held[:, :, : self.length]
        return whole if shared == 1 else whole.repeat_interleave(shared, dim=1)

    def select(self, rows: Tensor) -> None:
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class FixedKeysValues:
    """In place of `keys_values`: those of memory, projected once."""

    def __init__(self, project: KeysValues):
        self.project = project
        self.projected: tuple[Tensor, Tensor] | None = None

    def __call__(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.projected is None:
            self.projected = self.project(key, value)
        return self.projected

    def select(self, rows: Tensor) -> None:
        if self.projected is not None:
            keys, values = self.projected
            self.projected = keys[rows], values[rows]


class NextPosition(nn.Module):
    """In place of a positional table: its rows from where the last call ended."""

    def __init__(self, position: nn.Module):
        super().__init__()
        self.position, self.read = position, 0

    def forward(self, length: int) -> Tensor:
        start, self.read = self.read, self.read + length
        return self.position(self.read)[start:]


def one_by_one_embedding(model: ProbedModel) -> nn.Module:
    """The target's embedding alone, as OneByOne has it."""
    name = predicted_side(model).embedding
    return with_parts(model, _next_position(model)).get_submodule(name)


def with_parts(module: Part, parts: Mapping[str, nn.Module]) -> Part:
    """`module` with other parts under the names in `parts`. Modules on the way to one are shallow
    copies, so that `module` stays as it is; hooks, weights and all other modules are shared."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    for first in {name.partition(".")[0] for name in parts}:
        inside = {n.partition(".")[2]: p for n, p in parts.items() if n.partition(".")[0] == first}
        twin._modules[first] = (
            inside[""] if "" in inside else with_parts(module.get_submodule(first), inside)
        )
    return twin


def _sites(model: ProbedModel) -> list[Site]:
    """Where the target's tokens attend."""
    target = predicted_side(model).name
    return [site for site in model.sites() if site.query_side == target]


def _next_position(model: ProbedModel) -> dict[str, nn.Module]:
    name = f"{predicted_side(model).embedding}.position"
    return {name: NextPosition(model.get_submodule(name))}
