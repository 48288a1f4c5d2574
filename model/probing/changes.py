"""Changes to a run, as frozen values with a one-line text form.

They act in one order, whatever the order of the line: positions, what may be attended to, the
temperature of the softmax, single weights, a head or a sublayer as a whole, and last what is
patched from another run. See applying.py for how.

    cross.1.2=off; encoder=hide:3; decoder.2=mask:window-2; cross.4.1=weight:2>5:0.7
    encoder_feed_forward.2=skip; source=positions:none; cross.3=patch; decoder_residual.1=patch:4

A scope is a kind of attention, a layer of it, a head; `all` is everything that a change can be made
to. encoder_feed_forward and encoder_residual (what leaves a layer) are kinds too, and so are the
texts, source and target, for their positions. Lines count layers, heads and tokens from 1, as the
screen does; the classes count from 0.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.arguments import kind_of
from headlight.model.probing.position_tables import POSITION_KINDS, table_of
from headlight.model.probing.sites import Part, attention_at
from headlight.model.sites import ProbedModel, Site
from headlight.model.transformer import FeedForward, MultiHeadAttention
from headlight.model.variants import LearnedPositions

EVERY_KIND = "all"
MOST_CELLS = 2**18  # that a line is read with
MOST_CHANGES = 300  # of a line: a badge each, and a hook at every part that they concern
LEAST = 1e-30  # temperature
MOST_NAMED = 2  # tokens, in a few words
DRAWN = ".drawn"
READS = "query", "key", "value"


class CannotChange(ValueError):
    """A change that cannot be read or made, in a sentence."""


@dataclass(frozen=True)
class Scope:
    """Which parts. None: of every layer, or every head; kind ALL: of every kind."""

    kind: str
    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        return ".".join(str(part) for part in (self.kind, *self._numbers()))

    def _numbers(self) -> Iterator[int]:
        for number in (self.layer, self.head):
            if number is not None:
                yield number + 1

    def holds(self, part: Part | Site) -> bool:
        """Whether it is some of a part, or all of it. What has no heads has none in a scope."""
        there = self.head is None or self.head < part.n_heads
        return there and self.kind in (EVERY_KIND, part.kind) and self.layer in (None, part.layer)

    @property
    def heads(self) -> slice:
        """Of the heads of a layer."""
        return slice(None) if self.head is None else slice(self.head, self.head + 1)


@dataclass(frozen=True)
class PatchInputs:
    """Inputs of changes from outside the pass.

    means   name of an attention → the mean output of its heads over many texts, (heads, d_head);
            under name + DRAWN their outputs at some tokens of those texts, (token, heads, d_head)
    other   what parts gave in another run, by their names, (length, d_model); an attention's heads
            under (name, "heads"), (query, heads, d_head); and for paths what a part reads if one
            sender alone is as in the other run: (sender, name of the part, "query", "key", "value"
            or ""), (length, width)
    """

    means: Mapping[str, Tensor] = field(default_factory=dict)
    other: Mapping[Hashable, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One change; a class a verb.

    order       when it acts
    parts       what it can be made to
    example     a line with it, and `help`: what that does; "" where another verb's help says it
    words       it in a few words, with its argument in place of {}
    ready_made  what the menu of changes offers of it, as after the = of a line
    """

    scope: Scope
    verb: ClassVar[str]
    order: ClassVar[int]
    words: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ("attention",)
    example: ClassVar[str] = ""
    help: ClassVar[str] = ""
    ready_made: ClassVar[tuple[str, ...]] = ()

    def __str__(self) -> str:
        what = self.what()
        return f"{self.scope}={self.verb}" + (f":{what}" if what else "")

    def what(self) -> str:
        """The argument after the verb, as text."""
        return ""

    @classmethod
    def read(cls, scope: Scope, what: str) -> "Change":
        """The inverse of `what`. Raises ValueError."""
        if what:
            raise ValueError
        return cls(scope)

    def in_words(self, keys: Sequence[str] = ()) -> str:
        """The change in a few words; `keys`: the tokens that its part attends to, where known."""
        return self.words.format(self.what()).rstrip()

    def reweigh(
        self, model: ProbedModel, part: Part, heads: Iterable[int], mean: Tensor | None
    ) -> None:
        """Does the same to a part by other weights, in place, for torch.nn.Transformer, which has
        no hooks. `heads`: those that it concerns; `mean`: their mean outputs, (heads, d_head), if
        known. What does not define it cannot be done there."""
        raise NotImplementedError


class MaskChange(Change):
    """Changes what may be attended to."""

    order = 1

    def allow(self, allowed: Tensor, first: int) -> None:
        """Changes `allowed`, (batch, heads, query, key), in place; its first row is the query
        `first`, from 0."""
        raise NotImplementedError

    @property
    def looks_ahead(self) -> bool:
        """Whether a query may come to attend to a later key."""
        return False

    def reweigh(self, model, part, heads, mean):
        pass  # masks are given apart


class WeightChange(Change):
    """Changes weights on their way out of the softmax."""

    def weigh(self, weights: Tensor, allowed: Tensor, first: int) -> None:
        """Changes `weights`, (batch, heads, query, key), in place, under what was `allowed`; the
        first row is the query `first`, from 0."""
        raise NotImplementedError


class OutputChange(Change):
    """Changes what a part gives. `parts` of an attention are its heads, unless `whole`."""

    whole: ClassVar[bool] = False

    def replaced(self, output: Tensor, part: Part, first: int, given: PatchInputs) -> Tensor:
        """What comes in place of `output`, (batch, length, …), of the positions from `first`,
        counted from 0: zeros, unless a class says otherwise."""
        return torch.zeros_like(output)


PATTERNS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "none": lambda i, j, n: (i >= 0) & (j >= 0),
    "causal": lambda i, j, n: j <= i,
    "window": lambda i, j, n: (i - j).abs() <= n,
    "prefix": lambda i, j, n: (j <= i) | (j < n),
    "strided": lambda i, j, n: (i - j) % n == 0,
    "diagonal": lambda i, j, n: i == j,
    "no_diagonal": lambda i, j, n: i != j,
    "no_first": lambda i, j, n: (i >= 0) & (j > 0),
}
SIZED = ("window", "prefix", "strided")  # these take a number: window-2


@dataclass(frozen=True)
class Patterned(MaskChange):
    """A ready-made mask instead of the model's own. Hidden padding stays hidden."""

    pattern: str
    size: int = 0
    verb, words = "mask", "mask {}"
    example = "decoder=mask:window-2"
    help = "also `none`, `causal`, `prefix-2`, `strided-2`, `diagonal`, `no_first`"
    ready_made = (
        "mask:none", "mask:causal", "mask:window-1", "mask:diagonal", "mask:no_diagonal",
        "mask:no_first",
    )  # fmt: skip

    def allow(self, allowed, first):
        rows, columns = (torch.arange(n, device=allowed.device) for n in allowed.shape[-2:])
        pattern = PATTERNS[self.pattern](rows[:, None] + first, columns, self.size)
        allowed.copy_(pattern & allowed.any(dim=-2, keepdim=True))

    @property
    def looks_ahead(self):
        # All other keys are later than the first query; if it may attend to none of them, no query
        # may attend ahead.
        first, later = torch.zeros(1, 1, dtype=torch.long), torch.arange(1, self.size + 2)
        return bool(PATTERNS[self.pattern](first, later, self.size).any())

    def what(self):
        return f"{self.pattern}-{self.size}" if self.pattern in SIZED else self.pattern

    @classmethod
    def read(cls, scope, what):
        pattern, _, size = what.partition("-")
        if pattern not in PATTERNS or bool(size) != (pattern in SIZED):
            raise ValueError
        return cls(scope, pattern, _counted(size) if size else 0)


def _named(token: int, keys: Sequence[str]) -> str:
    """A token by its word, with its number where the text has the word more than once."""
    word = keys[token : token + 1]
    if word and keys.count(*word) == 1:
        return f"“{word[0]}”"
    return " ".join((f"token {token + 1}", *(f"“{each}”" for each in word)))


@dataclass(frozen=True)
class Hidden(MaskChange):
    """No query may attend to these tokens."""

    tokens: tuple[int, ...]
    verb, words = "hide", "{} hidden"
    example, help = "cross=hide:3,4", "no token may attend to tokens 3 and 4"

    def allow(self, allowed, first):
        for token in self.tokens:
            allowed[..., token : token + 1] = False

    def in_words(self, keys=()):
        names = f"{len(self.tokens)} tokens"
        if len(self.tokens) <= MOST_NAMED:
            names = " and ".join(_named(token, keys) for token in self.tokens)
        return self.words.format(names)

    def what(self):
        return ",".join(str(token + 1) for token in self.tokens)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, tuple(_counted(text) - 1 for text in what.split(",")))


@dataclass(frozen=True)
class _Painted(MaskChange):
    """Cells, (query, key), in their order and each once. A line has them as rectangles."""

    cells: tuple[tuple[int, int], ...]
    value: ClassVar[bool]

    def __post_init__(self):
        object.__setattr__(self, "cells", tuple(sorted(set(self.cells))))

    def allow(self, allowed, first):
        places = self._places - torch.tensor([first, 0])
        inside = (places >= 0) & (places < torch.tensor(allowed.shape[-2:]))
        rows, columns = places[inside.all(dim=1)].T.to(allowed.device)
        allowed[..., rows, columns] = self.value

    @cached_property
    def _places(self) -> Tensor:
        """(cell, 2): query and key."""
        return torch.tensor(self.cells, dtype=torch.long).view(-1, 2)

    @property
    def looks_ahead(self):
        return self.value and bool((self._places[:, 1] > self._places[:, 0]).any())

    def what(self):
        return ",".join(
            f"{_span(rows)}>{_span(columns)}" for rows, columns in rectangles(self.cells)
        )

    @classmethod
    def read(cls, scope, what):
        spans = [tuple(map(_spanned, text.split(">"))) for text in what.split(",")]
        if sum(len(rows) * len(columns) for rows, columns in spans) > MOST_CELLS:
            raise ValueError
        return cls(scope, tuple((i, j) for rows, columns in spans for i in rows for j in columns))


@dataclass(frozen=True)
class Forbidden(_Painted):
    """A query may not attend to a key: cells, (query, key)."""

    verb, words, value = "forbid", "{} masked", False
    example, help = "decoder.1=forbid:3>1", "query 3 may not attend to key 1; `allow`: it may"


@dataclass(frozen=True)
class Allowed(_Painted):
    """A query may attend to a key that the model masks: cells, (query, key)."""

    verb, words, value = "allow", "{} allowed", True


@dataclass(frozen=True)
class Temperature(Change):
    """Scores are divided by this number: above 1 the weights are flatter, below 1 sharper."""

    value: float
    verb, order, words = "temperature", 2, "temperature {}"
    example, help = "cross.4=temperature:0.5", "divides the scores by 0.5 before the softmax"
    ready_made = "temperature:0.5", "temperature:2.0", "temperature:4.0"

    def divided(self, scores: Tensor) -> Tensor:
        """By LEAST at least: with it the softmax takes the largest score alone, as near zero, and
        of infinite ones it would be NaN."""
        limits = torch.finfo(scores.dtype)
        return (scores / max(self.value, LEAST)).clamp(limits.min, limits.max)

    def reweigh(self, model, part, heads, mean):
        _scale_heads(model, part, "query", heads, 1 / max(self.value, LEAST))

    def what(self):
        return repr(self.value)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, _number(what, above=0))


@dataclass(frozen=True)
class WeightSet(WeightChange):
    """One weight is set; the rest of its row is scaled so that the row still sums to 1."""

    row: int
    column: int
    weight: float
    verb, order, words = "weight", 3, "weight {}"
    example = "encoder.1.3=weight:2>4:0.7"
    help = "sets one weight and rescales the rest of its row"

    def weigh(self, weights, allowed, first):
        row, column = slice(self.row - first, self.row - first + 1), self.column
        if not first <= self.row < first + weights.shape[-2] or column >= weights.shape[-1]:
            return  # during generation this row may not exist yet, or no longer
        if not allowed[..., row, column].all():
            raise CannotChange(f"“{self}”: this key is masked, so its weight stays 0.")
        others = weights[..., row, :].clone()
        others[..., column] = 0
        rest = others.sum(dim=-1, keepdim=True)
        if self.weight < 1 and not (rest > 0).all():
            raise CannotChange(
                f"“{self}”: this row has all its weight on one key, so there is nothing to rescale."
            )
        others *= (1 - self.weight) / torch.where(rest > 0, rest, 1)
        others[..., column] = self.weight
        weights[..., row, :] = others

    def what(self):
        return f"{self.row + 1}>{self.column + 1}:{self.weight!r}"

    @classmethod
    def read(cls, scope, what):
        cell, _, weight = what.partition(":")
        return cls(scope, *_cell(cell), _number(weight, most=1))


@dataclass(frozen=True)
class Uniform(WeightChange):
    """The head attends equally to every token that it may attend to."""

    verb, order, words = "uniform", 4, "uniform"
    example, help = "encoder.2=uniform", "makes all weights equal"
    ready_made = ("uniform",)

    def weigh(self, weights, allowed, first):
        keys = allowed.to(weights.dtype)  # a quotient of integers would be float32
        weights.copy_(keys / keys.sum(dim=-1, keepdim=True).clamp(min=1))

    def reweigh(self, model, part, heads, mean):
        _scale_heads(model, part, "key", heads, 0)


@dataclass(frozen=True)
class HeadOff(OutputChange):
    """The head's output is zero."""

    verb, order, words = "off", 4, "off"
    example = "cross.1.2=off"
    help = (
        "sets the output of layer 1, head 2 to zero; `mean`: to its mean over texts; `resample`: "
        "to its output in other texts; `random`: adds a random vector, as a control"
    )
    ready_made = ("off",)

    def reweigh(self, model, part, heads, mean):
        _take_heads_off(attention_at(model, part), heads)


@dataclass(frozen=True)
class HeadMean(OutputChange):
    """The head's output is its mean over many texts, so only what is specific to this text is
    lost: mean ablation. The checkpoint stores the mean."""

    verb, order, words = "mean", 4, "mean output"
    ready_made = ("mean",)

    def replaced(self, output, part, first, given):
        if part.name not in given.means:
            raise CannotChange(f"“{self}”: the mean output of this model's heads is not known.")
        return given.means[part.name][self.scope.heads].to(output).expand_as(output)

    def reweigh(self, model, part, heads, mean):
        attention = attention_at(model, part)
        if mean is not None:
            for head in heads:
                columns = attention.output.weight[:, _rows(attention, head)]
                attention.output.bias.add_(columns @ mean[head].to(columns))
        _take_heads_off(attention, heads)


@dataclass(frozen=True)
class _Drawn(OutputChange):
    """The same seed draws the same for a position, however long the text is by then."""

    seed: int = 1
    order = 4

    def what(self):
        return "" if self.seed == 1 else str(self.seed)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, _counted(what or "1"))

    def chance(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Resampled(_Drawn):
    """The head's output is what it gave at tokens of other texts, drawn at random. A number draws
    others: `resample:2`."""

    verb, words = "resample", "output of other texts {}"

    def replaced(self, output, part, first, given):
        outputs = given.means.get(part.name + DRAWN)
        if outputs is None:
            raise CannotChange(
                f"“{self}”: the outputs of this model's heads in other texts are not known."
            )
        rows = self.chance().integers(len(outputs), size=first + output.shape[1])[first:]
        return outputs[rows][:, self.scope.heads].to(output).expand_as(output)


@dataclass(frozen=True)
class Randomised(_Drawn):
    """A control: a random vector is added to the head's output, as long as what `mean` takes away.
    A number draws others: `random:2`."""

    verb, words = "random", "random vector added {}"

    def replaced(self, output, part, first, given):
        lost = output - HeadMean(self.scope).replaced(output, part, first, given)
        shape = first + output.shape[1], part.n_heads, output.shape[-1]
        noise = torch.from_numpy(self.chance().standard_normal(shape)[first:, self.scope.heads])
        noise = (noise / noise.norm(dim=-1, keepdim=True)).to(output)
        return output + noise * lost.norm(dim=-1, keepdim=True)


@dataclass(frozen=True)
class Skipped(OutputChange):
    """The sublayer adds nothing to the residual stream."""

    verb, order, words = "skip", 4, "skipped"
    example = "encoder_feed_forward.2=skip"
    help = "the sublayer adds nothing to the residual stream"
    ready_made = ("skip",)
    parts = ("attention", "feed-forward")
    whole = True

    def reweigh(self, model, part, heads, mean):
        module = model.get_submodule(part.name)
        assert isinstance(module, MultiHeadAttention | FeedForward)
        last = module.output if isinstance(module, MultiHeadAttention) else module.linear2
        _scale(last, slice(None), 0)


@dataclass(frozen=True)
class Patched(OutputChange):
    """A part's output, at some tokens or all, is taken from the comparison: activation patching."""

    positions: tuple[int, ...] = ()
    verb, order, words = "patch", 5, "patched"
    example = "cross.3.4=patch"
    help = "uses the comparison's output; `patch:2,3`: only at these tokens"
    ready_made = ("patch",)
    parts = ("attention", "feed-forward", "residual")

    def replaced(self, output, part, first, given):
        heads = part.what == "attention"
        key = (part.name, "heads") if heads else part.name
        if key not in given.other:
            raise CannotChange(f"“{self}”: there is no comparison to patch from.")
        other = given.other[key].to(output)
        if heads:
            other = other[:, self.scope.heads]
        rows = range(first, min(first + output.shape[1], len(other)))
        if self.positions:
            rows = [row for row in rows if row in self.positions]
        output = output.clone()
        output[:, [row - first for row in rows]] = other[list(rows)]
        return output

    def in_words(self, keys=()):
        return f"{self.words} at {self.what()}" if self.positions else self.words

    def what(self):
        return ",".join(str(position + 1) for position in self.positions)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, tuple(_counted(text) - 1 for text in what.split(",") if what))


@dataclass(frozen=True)
class Pathed(Change):
    """What a part reads of another one is taken from the comparison, and all else that it reads
    stays: path patching. An attention reads with its `query`, `key` or `value`. The other one may
    be a head, a feed-forward or a text, by its embedding."""

    sender: Scope = Scope(EVERY_KIND)
    reads: str = ""
    verb, order, words = "path", 5, "path {}"
    example = "cross.3.4=path:key<encoder.2.1"
    help = "the keys of cross 3.4 read encoder 2.1 as in the comparison"
    parts = ("attention", "feed-forward", "logits")

    def read_by(self, output: Tensor, part: Part, reads: str, given: PatchInputs) -> Tensor:
        """In place of what a projection, a feed-forward or the last norm gives, (batch, length,
        width)."""
        if (self.sender, part.name, reads) not in given.other:
            raise CannotChange(f"“{self}”: there is no comparison to patch from.")
        other, output = given.other[self.sender, part.name, reads].to(output), output.clone()
        columns = slice(None)
        if part.what == "attention" and self.scope.head is not None:
            # Heads of a group share a key and a value: their width says how many there are.
            width = given.other[part.name, "heads"].shape[-1]
            head = self.scope.head * output.shape[-1] // width // part.n_heads
            columns = slice(head * width, (head + 1) * width)
        output[..., columns] = other[:, columns]
        return output

    def what(self):
        return f"{self.reads}<{self.sender}" if self.reads else str(self.sender)

    @classmethod
    def read(cls, scope, what):
        reads, _, sender = what.rpartition("<")
        match = re.fullmatch(r"(\w+)(?:\.(\w+))?(?:\.(\w+))?", sender, re.ASCII)
        if not match or reads not in ("", *READS):
            raise ValueError
        kind, *numbers = match.groups()
        return cls(scope, Scope(kind, *(_counted(n) - 1 if n else None for n in numbers)), reads)


PATCHES = Patched, Pathed  # need another run


@dataclass(frozen=True)
class Positioned(Change):
    """The text gets positions of another kind. See position_tables.py; `shift` leaves out the
    first rows of the table."""

    kind: str
    shift: int = 0
    verb, order, words = "positions", 0, "with {} positions"
    example, help = "source=positions:none", "also `sinusoidal`, `learned`, `shifted-3`"
    parts = ("positions",)

    def in_words(self, keys=()):
        return "without positions" if self.kind == "none" else super().in_words(keys)

    def reweigh(self, model, part, heads, mean):
        module = model.get_submodule(part.name)
        table = table_of(self.kind, module, model.config.max_length, self.shift)
        other = LearnedPositions(len(table), table.shape[1], _weight=table.clone())
        model.get_submodule(part.name.rpartition(".")[0]).position = other

    def what(self):
        return f"{self.kind}-{self.shift}" if self.kind == "shifted" else self.kind

    @classmethod
    def read(cls, scope, what):
        kind, _, shift = what.partition("-")
        if kind not in POSITION_KINDS or bool(shift) != (kind == "shifted"):
            raise ValueError
        return cls(scope, kind, _counted(shift) if shift else 0)


def _rows(attention: MultiHeadAttention, head: int) -> slice:
    """What a head has of the rows of a projection, or of the columns of the output's."""
    width = attention.output.in_features // attention.n_heads
    return slice(head * width, (head + 1) * width)


def _take_heads_off(attention: MultiHeadAttention, heads: Iterable[int]) -> None:
    for head in heads:
        attention.output.weight[:, _rows(attention, head)] = 0


def _scale_heads(
    model: ProbedModel, part: Part, projection: str, heads: Iterable[int], factor: float
) -> None:
    attention = attention_at(model, part)
    for head in heads:
        _scale(attention.get_submodule(projection), _rows(attention, head), factor)


def _scale(linear: nn.Module, rows: slice, factor: float) -> None:
    for parameter in linear.parameters():
        parameter[rows] *= factor


VERBS = {
    change.verb: change
    for change in (
        HeadOff, HeadMean, Resampled, Randomised, Uniform, Skipped, Hidden, Patterned, Forbidden,
        Allowed, Temperature, WeightSet, Positioned, Patched, Pathed,
    )
}  # fmt: skip
ENTRY = re.compile(r"(\w+?)(?:\.(\d+))?(?:\.(\d+))?=(\w+)(?::(.+))?", re.ASCII)


@lru_cache(8)  # a page asks several times, and a painted mask may be large
def parse(line: str) -> tuple[Change, ...]:
    """The changes of a line, in its order. Raises CannotChange, with the part that it quotes."""
    parts, changes, cells = [part.strip() for part in line.split(";") if part.strip()], [], 0
    if len(parts) > MOST_CHANGES:
        raise CannotChange(
            f"“{parts[MOST_CHANGES]}” is change {MOST_CHANGES + 1:,} of {len(parts):,}; the "
            f"limit is {MOST_CHANGES:,}."
        )
    for part in parts:
        changes.append(_parse(part))
        cells += _cells(changes[-1])
        if cells > MOST_CELLS:
            raise CannotChange(
                f"“{part}”: all changes together may name at most {MOST_CELLS:,} cells."
            )
    return tuple(changes)


def parsed(changes: str | Iterable[str | Change]) -> tuple[Change, ...]:
    """Changes as a line, or as lines and values one after the other. Raises CannotChange."""
    if isinstance(changes, str):
        return parse(changes)
    made: list[Change] = []
    for each in changes:
        kind_of("changes", each, (str, Change), "a line such as cross.1.2=off, or several")
        made += parse(each) if isinstance(each, str) else [each]
    return tuple(made)


def written(changes: Iterable[Change]) -> str:
    """The line that `parse` reads."""
    return "; ".join(map(str, changes))


def readable(line: str, parts: Sequence[Part]) -> tuple[Change, ...]:
    """The changes of a line that can be read, and made in a model with these parts."""
    valid: list[Change] = []
    for part in filter(None, map(str.strip, line.split(";"))):
        with suppress(CannotChange):
            change = _parse(part)
            check([change], parts)
            if len(valid) < MOST_CHANGES and sum(map(_cells, [*valid, change])) <= MOST_CELLS:
                valid.append(change)
    return tuple(valid)


def _cells(change: Change) -> int:
    """The number of cells in the mask."""
    return len(change.cells) if isinstance(change, _Painted) else 0


def _parse(part: str) -> Change:
    match = ENTRY.fullmatch(part)
    if not match:
        raise CannotChange(
            f"“{part}” is not a change. Write one like “cross.1.2=off”: an attention type, a "
            "layer, a head, and what to do."
        )
    kind, layer, head, verb, what = match.groups()
    if verb not in VERBS:
        raise CannotChange(f"“{part}”: there is no “{verb}”; choose from {', '.join(VERBS)}.")
    try:
        numbers = (None if text is None else _counted(text) - 1 for text in (layer, head))
        return VERBS[verb].read(Scope(kind, *numbers), what or "")
    except ValueError as error:
        raise CannotChange(f"“{part}”: invalid argument to “{verb}”.") from error


def _counted(text: str) -> int:
    """A number that counts from 1."""
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise ValueError(text)
    return int(text)


def _cell(text: str) -> tuple[int, int]:
    row, column = text.split(">")
    return _counted(row) - 1, _counted(column) - 1


def _span(numbers: range) -> str:
    first, last = numbers[0] + 1, numbers[-1] + 1
    return str(first) if first == last else f"{first}-{last}"


def _spanned(text: str) -> range:
    first, dash, last = text.partition("-")
    first, last = _counted(first), _counted(last if dash else first)
    if last < first:
        raise ValueError(text)
    return range(first - 1, last)


def rectangles(cells: Iterable[tuple[int, int]]) -> list[tuple[range, range]]:
    """Cells, sorted by row and column, as rectangles (rows, columns): runs of a row, with those of
    the rows below that are the same."""
    runs: list[tuple[int, int, int]] = []  # row, first and last column
    for row, column in cells:
        if runs and runs[-1][0] == row and runs[-1][2] == column - 1:
            runs[-1] = (row, runs[-1][1], column)
        else:
            runs.append((row, column, column))
    open_, done = {}, []  # (first, last column) → (first, last row)
    for row, *columns in runs:
        first, last = open_.get(tuple(columns), (row, row))
        if row - last > 1:
            done.append((first, last, *columns))
            first = row
        open_[tuple(columns)] = first, row
    done += [(*rows, *columns) for columns, rows in open_.items()]
    return [(range(a, b + 1), range(c, d + 1)) for a, b, c, d in sorted(done)]


def _number(text: str, above: float = -1, most: float = math.inf) -> float:
    """A finite number ≥ 0."""
    number = float(text)
    if not (math.isfinite(number) and 0 <= number <= most and number > above):
        raise ValueError(text)
    return number


def check(changes: Iterable[Change], parts: Sequence[Part]) -> None:
    """Raises CannotChange for what a model with these parts does not have."""
    for change in changes:
        scope = change.scope
        there = [part for part in parts if part.what in change.parts]
        if scope.kind != EVERY_KIND and scope.kind not in {part.kind for part in there}:
            kinds = ", ".join(dict.fromkeys(part.kind for part in there))
            raise CannotChange(
                f"“{change}”: “{change.verb}” does not apply to “{scope.kind}” in this model; "
                f"choose from {kinds}."
            )
        there = [part for part in there if replace(scope, head=None).holds(part)]
        if not there:
            assert scope.layer is not None  # all layers hold some
            raise CannotChange(f"“{change}”: this attention has no layer {scope.layer + 1}.")
        if scope.head is not None:
            if isinstance(change, OutputChange) and change.whole:
                raise CannotChange(f"“{change}”: this applies to a whole layer, not to a head.")
            if not any(map(scope.holds, there)):
                raise CannotChange(f"“{change}”: this attention has no head {scope.head + 1}.")
        if isinstance(change, Pathed):
            if not any(change.sender == sender_of(part, head) for part in parts
                       for head in range(max(1, part.n_heads))):  # fmt: skip
                raise CannotChange(
                    f"“{change}”: “{change.sender}” is no head, feed-forward or text of this model."
                )
            if change.reads and there[0].what != "attention":
                raise CannotChange(f"“{change}”: only an attention has a {change.reads}.")


def sender_of(part: Part, head: int = 0) -> Scope | None:
    """What a path from a part, or one of its heads, begins with; of positions the text."""
    if part.what in ("positions", "feed-forward"):
        return Scope(part.kind, None if part.what == "positions" else part.layer)
    return Scope(part.kind, part.layer, head) if part.what == "attention" else None


def look_ahead(changes: Iterable[Change], sites: Iterable[Site]) -> bool:
    """Whether a token of some text may come to attend to a later one of the same text by them, so
    that no earlier token is done before the last is there."""
    self_sites = [site for site in sites if site.query_side == site.key_side]
    return any(
        isinstance(change, MaskChange)
        and any(map(change.scope.holds, self_sites))
        and change.looks_ahead
        for change in changes
    )
