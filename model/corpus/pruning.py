"""Heads switched off one after another, in one of five orders, and the quality that is left (Michel
et al. 2019, Voita et al. 2019)."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headlight.model.analysis.statistics import interval, p_value, resamples
from headlight.model.checkpoint import Checkpoint
from headlight.model.corpus.gates import by_trained_gates
from headlight.model.corpus.head_counts import frequencies, head_counts
from headlight.model.corpus.importance import (
    Example,
    Unit,
    gate_gradients,
    losses,
    quality,
    score,
    units,
)
from headlight.model.corpus.survey_work import LOSS
from headlight.model.probing.changes import Change

BY_LOSS, BY_GATES, BY_ENTROPY, AT_RANDOM = "loss", "first order", "entropy", "random"
BY_TRAINED_GATES = "trained gates"
ONE_LEFT = "one left"  # no order: a row is a layer with one head left, which it names
PRUNING_COLUMNS = (
    "order",
    "repeat",
    "retrained",
    "off",
    "kind",
    "layer",
    "head",
    "measure",
    "value",
    "low",
    "high",
    "p",
)


def heads_of(checkpoint: Checkpoint, kind: str = "") -> list[Unit]:
    """All heads, or those of a kind of attention."""
    heads = [unit for unit in units(checkpoint.model) if unit.part == "head"]
    return [unit for unit in heads if kind in ("", unit.kind)]


def by_loss(checkpoint: Checkpoint, examples: Sequence[Example], heads: list[Unit]) -> list[Unit]:
    """Greedy: always the head without which the loss is lowest, measured again each time."""

    def loss(off: Sequence[Unit]) -> float:
        return losses(checkpoint, examples, together(off))[:, 0].sum()

    gone: list[Unit] = []
    while rest := [unit for unit in heads if unit not in gone]:
        gone.append(min(rest, key=lambda unit: loss([*gone, unit])))
    return gone


def by_gates(checkpoint: Checkpoint, examples: Sequence[Example], heads: list[Unit]) -> list[Unit]:
    """Always the one whose gate the loss hangs on least, the mean over sentences of its gradient's
    size, as a share of its layer's (Michel et al. 2019, section 4.1), measured anew each time."""
    every, gone = heads_of(checkpoint), []
    while rest := [unit for unit in heads if unit not in gone]:
        gradients = gate_gradients(checkpoint, examples, together(gone))
        size = dict(zip(every, np.abs(gradients).mean(axis=0), strict=True))
        layers: dict[tuple, float] = {}
        for unit, gate in size.items():
            layers[unit.kind, unit.layer] = layers.get((unit.kind, unit.layer), 0) + gate**2
        gone.append(min(rest, key=lambda u: size[u] / max(layers[u.kind, u.layer] ** 0.5, 1e-30)))
    return gone


def by_entropy(
    checkpoint: Checkpoint, examples: Sequence[Example], heads: list[Unit]
) -> list[Unit]:
    """By entropy: the head with the most uniform attention goes first."""
    total: dict[tuple, np.ndarray] = {}
    for one in head_counts(checkpoint, list(examples), frequencies(examples), 0):
        for kind, measures in one.items():
            entropy = measures["entropy"]
            total[kind] = total.get(kind, 0) + np.stack([entropy.total, entropy.rows])
    layers: dict[str, list[int]] = {}
    for site in checkpoint.model.sites():
        layers.setdefault(site.kind, []).append(site.layer)

    def entropy_of(unit: Unit) -> float:
        bits, rows = total[unit.kind][:, layers[unit.kind].index(unit.layer), unit.head]
        return bits / max(rows, 1)

    return sorted(heads, key=entropy_of, reverse=True)


def at_random(seed: int) -> Callable:
    def order(checkpoint: Checkpoint, examples: Sequence[Example], heads: list[Unit]) -> list[Unit]:
        return random.Random(seed).sample(heads, len(heads))

    return order


def together(off: Sequence[Unit]) -> list[Change]:
    return [change for unit in off for change in unit.changes]


def orders(repeats: int) -> dict[tuple[str, int], Callable]:
    """(name, repeat) → what orders heads; chance as often as `repeats`."""
    named = {
        BY_LOSS: by_loss,
        BY_GATES: by_gates,
        BY_TRAINED_GATES: by_trained_gates,
        BY_ENTROPY: by_entropy,
    }
    return {(name, 1): order for name, order in named.items()} | {
        (AT_RANDOM, repeat + 1): at_random(repeat) for repeat in range(repeats)
    }


@dataclass(frozen=True)
class Statistics:
    """Statistics of some sentences by measure, (sentence, statistic), from which scores are
    computed."""

    numbers: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, examples: Sequence[Example], measure: str, off: Sequence[Unit]
    ) -> "Statistics":
        numbers = {LOSS: losses(checkpoint, examples, together(off))}
        if measure:
            numbers[measure] = quality(checkpoint, examples, measure, together(off))
        return cls(numbers)


@dataclass(frozen=True)
class Curve:
    """How quality is measured: test sentences, their score, the number of bootstrap samples, and
    the statistics of the unpruned model."""

    examples: Sequence[Example]
    measure: str
    samples: int
    plain: Statistics

    def points(
        self,
        checkpoint: Checkpoint,
        order: Sequence[Unit],
        counts: Sequence[int],
        again: Callable[[Sequence[Unit]], Checkpoint] | None = None,
    ) -> list[dict]:
        """Loss and quality with the first 0, 1, … heads of an order off, as many as `counts` say;
        each with its 95% interval, and the p of no change (paired bootstrap over sentences).
        `again` gives the checkpoint that was trained further with some heads off."""
        rows = []
        for count in counts:
            off = order[:count]
            last = off[-1] if off else None
            rows += self._point(again(off) if again and off else checkpoint, off, last)
        return rows

    def one_left(
        self, checkpoint: Checkpoint, heads: Sequence[Unit], validation: Sequence[Example]
    ) -> list[dict]:
        """The same with one head left in a layer, for each layer (Michel et al. 2019, section 3.3):
        the head with which the loss of `validation` is lowest."""
        layers: dict[tuple, list[Unit]] = {}
        for unit in heads:
            layers.setdefault((unit.kind, unit.layer), []).append(unit)

        def others(left: Unit) -> list[Unit]:
            return [unit for unit in layers[left.kind, left.layer] if unit != left]

        def loss(left: Unit) -> float:
            return losses(checkpoint, validation, together(others(left)))[:, 0].sum()

        rows = []
        for layer in layers.values():
            left = min(layer, key=loss)
            rows += self._point(checkpoint, others(left), left)
        return rows

    def _point(self, checkpoint: Checkpoint, off: Sequence[Unit], named: Unit | None) -> list[dict]:
        """A row for each measure with some heads off; it names one head."""
        now = Statistics.of(checkpoint, self.examples, self.measure, off) if off else self.plain
        resampled = resamples(len(self.examples), self.samples)
        of = {LOSS: lambda s: s[..., 0] / s[..., 1], self.measure: lambda s: score(self.measure, s)}
        rows = []
        for name, numbers in now.numbers.items():
            before = self.plain.numbers[name]
            value, plain = (of[name](n.sum(axis=0)) for n in (numbers, before))
            draws, draws_before = (of[name](resampled @ n) for n in (numbers, before))
            low, high = interval(draws)
            p = p_value(value - plain, draws - draws_before)
            place = (named.kind, named.layer + 1, named.head + 1) if named else (None,) * 3
            numbers_ = (float(value), float(low), float(high), float(p))
            rows.append(
                dict(zip(PRUNING_COLUMNS[3:], (len(off), *place, name, *numbers_), strict=True))
            )
        return rows
