"""The rows of a survey's table, out of the numbers of its sentences (survey_work.py)."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headlight.model.analysis.alignment import SHIFTS
from headlight.model.analysis.baselines import BEYOND, CONTROL, MEAN, REPLACEMENTS, RESAMPLE, ZERO
from headlight.model.analysis.statistics import holm, interval, randomisation_test, resamples
from headlight.model.surveys.head_counts import FEWEST_ROWS, OFFSETS, aligned, positional
from headlight.model.surveys.importance import Unit, score
from headlight.model.surveys.survey import (
    ALIGNMENT,
    MEASURES,
    POSITIONAL,
    SIGNIFICANT,
    SURVEY_COLUMNS,
    SURVEY_RULES,
)
from headlight.model.surveys.survey_work import COUNTS, LOSS, PLAIN, TRUST, Arrays, Plan
from headlight.model.surveys.trust import PAIRS

N_BEST = 3  # sentences that are named
FINEST = SIGNIFICANT / 10  # to which the least p_holm goes down at least
NAMING = {rule.measure for rule in SURVEY_RULES.values()}  # what sentences are named for


def table(plan: Plan, numbers: Mapping[str, Arrays], samples: int, seed: int) -> list[Mapping]:
    """The rows, of what `survey_work.work` gives."""
    resampled = resamples(len(plan.examples), samples, seed)
    return [
        *importance_rows(plan, numbers, resampled, seed),
        *baseline_rows(plan, numbers, resampled, seed),
        *_trust(numbers[TRUST][TRUST], resampled),
        *_metrics(plan, numbers[COUNTS], resampled),
    ]


def exchanges(units: Sequence[Unit]) -> int:
    """How many exchanges the test needs: a p-value is at least 1 in as many and one more, and Holm
    multiplies it by all parts of the sort."""
    return math.ceil(max(Counter(unit.part for unit in units).values()) / FINEST)


def row(part: str, measure: str, **values) -> dict:
    given = {"part": part, "measure": measure} | values
    return {name: _plain(given.get(name)) for name in SURVEY_COLUMNS}


def _plain(value):
    """As JSON and Parquet have it; None for what is not a number."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def changes(
    plain: np.ndarray,
    without: np.ndarray,
    resampled: np.ndarray,
    of: Callable[[np.ndarray], np.ndarray],
) -> dict[str, np.ndarray]:
    """How a score changes, paired by sentence, for each part, with bootstrap intervals from the
    samples `memoize_drawing`. plain: (sentence, statistic); without: (part, sentence, statistic);
    `of` makes scores of sums, (.., statistic) → (..)."""
    sums = np.concatenate([plain[None], without])  # (1 + part, sentence, statistic)
    scores = of(sums.sum(axis=1))
    draws = of((resampled @ sums).swapaxes(0, 1))  # (sample, 1 + part)
    value, differences = scores[1:] - scores[0], draws[:, 1:] - draws[:, :1]
    low, high = interval(differences)
    own = interval(draws[:, 0])
    return dict(value=value, low=low, high=high, plain=scores[0], plain_interval=own)


def importance_rows(
    plan: Plan, numbers: Mapping[str, Arrays], resampled: np.ndarray, seed: int
) -> list[dict]:
    rows, count = [], len(plan.examples)
    scores = {LOSS: per_token}
    if plan.measure:
        scores[plan.measure] = lambda sums: score(plan.measure, sums)
    for measure, of in scores.items():
        plain = numbers[PLAIN][measure]
        without = np.stack([numbers[str(i)][measure] for i in range(len(plan.units))])
        effects = changes(plain, without, resampled, of)
        effects["p"] = randomisation_test(plain, without, of, exchanges(plan.units), seed)
        low, high = effects["plain_interval"]
        rows.append(
            row("model", measure, value=effects["plain"], low=low, high=high, sentences=count)
        )
        for part in dict.fromkeys(unit.part for unit in plan.units):
            family = [i for i, unit in enumerate(plan.units) if unit.part == part]
            adjusted = holm(effects["p"][family])
            for i, p_holm in zip(family, adjusted, strict=True):
                values = {name: effects[name][i] for name in ("value", "low", "high", "p")}
                rows.append(
                    row(part, measure, **_place(plan.units[i]), **values, p_holm=p_holm,
                        sentences=count)
                )  # fmt: skip
    return rows


def _place(unit: Unit) -> dict:
    head = None if unit.head is None else unit.head + 1
    return {"kind": unit.kind, "layer": unit.layer + 1, "head": head}


def baseline_rows(
    plan: Plan, numbers: Mapping[str, Arrays], resampled: np.ndarray, seed: int
) -> list[dict]:
    """What each baseline costs, and by how much each replacement costs more than the control."""
    heads = [(str(i), unit) for i, unit in enumerate(plan.units) if unit.part == "head"]
    losses = {
        name: np.stack([numbers[i][LOSS if name == ZERO else name] for i, _ in heads])
        for name in (*REPLACEMENTS, CONTROL)
    }
    plain, rows = numbers[PLAIN][LOSS], []
    for name in (MEAN, RESAMPLE, CONTROL):
        rows.append((name, changes(plain, losses[name], resampled, per_token)))
    nothing = plain * [0, 1]  # no loss, as many tokens
    for name in REPLACEMENTS:
        more = losses[name] - losses[CONTROL] * [1, 0]
        effects = changes(nothing, more, resampled, per_token)
        effects["p"] = randomisation_test(nothing, more, per_token, exchanges(plan.units), seed)
        rows.append((BEYOND.format(name), effects | {"p_holm": holm(effects["p"])}))
    columns = "value", "low", "high", "p", "p_holm"
    return [
        row("head", measure, **_place(unit), sentences=len(plan.examples),
            **{name: effects[name][i] for name in columns if name in effects})
        for measure, effects in rows
        for i, (_, unit) in enumerate(heads)
    ]  # fmt: skip


def per_token(sums: np.ndarray) -> np.ndarray:
    """Losses of sums, (.., loss and tokens) → (..)."""
    return sums[..., 0] / sums[..., 1]


def _trust(rho: np.ndarray, resampled: np.ndarray) -> list[dict]:
    """Means of rank correlations, (sentence, pair); NaN where there is none."""
    rows, there = [], np.isfinite(rho)
    for pair, (first, two) in enumerate(PAIRS):
        values, some = rho[there[:, pair], pair], resampled[:, there[:, pair]]
        if len(values) >= 2:
            counts = some.sum(axis=1)
            draws = (some @ values)[counts > 0] / counts[counts > 0]
            low, high = interval(draws)
            rows.append(
                row("model", f"ρ {first}, {two}", value=values.mean(), low=low, high=high,
                    sentences=len(values))
            )  # fmt: skip
    return rows


def _metrics(plan: Plan, counts: Arrays, resampled: np.ndarray) -> list[dict]:
    """Head metrics and patterns: of the positional ones the best offset, of both shifts the better
    one."""
    by_kind: dict[str, dict[str, np.ndarray]] = {}
    for name, array in counts.items():
        kind, measure = name.split("/")
        by_kind.setdefault(kind, {})[measure] = array
    layers = {}
    for site in plan.checkpoint.model.sites():
        layers.setdefault(site.kind, []).append(site.layer)
    rows = []
    choices = {positional(offset): (POSITIONAL, offset) for offset in OFFSETS}
    choices |= {aligned(shift): (ALIGNMENT, shift) for shift in SHIFTS}
    for kind, measures in by_kind.items():
        shares = {name: _shares(array, resampled) for name, array in measures.items()}
        for i, layer in enumerate(layers[kind]):
            for head in range(next(iter(measures.values())).shape[-1]):
                place = {"kind": kind, "layer": layer + 1, "head": head + 1}
                chosen = {}
                for name in shares:
                    values = {key: of[i, head] for key, of in shares[name].items()}
                    if not values["rows"]:
                        continue
                    measure, at = choices.get(name, (name, None))
                    # Of several choices the highest, of equal ones the first.
                    if measure not in chosen or values["value"] > chosen[measure][0]["value"]:
                        chosen[measure] = values, at, name
                for measure, (values, at, name) in chosen.items():
                    shown = measure in NAMING and _best(plan, measures[name][:, :, i, head])
                    rows.append(row("head", measure, **place, at=at, **values, best=shown or None))
    return rows


def _shares(array: np.ndarray, resampled: np.ndarray) -> dict[str, np.ndarray]:
    """Of (sentence, 3, layers, heads): means over all rows, their intervals, (layers, heads)."""
    total, uniform, rows = array.sum(axis=0)
    some = np.maximum(rows, 1)
    flat = array.reshape(len(array), -1)
    sums = (resampled @ flat).reshape(len(resampled), *array.shape[1:])
    draws = sums[:, 0] / np.where(sums[:, 2] > 0, sums[:, 2], np.nan)
    with np.errstate(all="ignore"):
        low, high = np.nanquantile(np.where(rows > 0, draws, 0), [0.025, 0.975], axis=0)
    sentences = (array[:, 2] > 0).sum(axis=0)
    return dict(value=total / some, uniform=uniform / some, low=low, high=high,
                rows=rows.astype(int), sentences=sentences)  # fmt: skip


def _best(plan: Plan, array: np.ndarray) -> list[int]:
    """Numbers of the sentences in which one head is furthest beyond a uniform one."""
    total, uniform, rows = array.T
    beyond = np.where(rows >= FEWEST_ROWS, (total - uniform) / np.maximum(rows, 1), -np.inf)
    order = np.argsort(-beyond, kind="stable")[:N_BEST]
    return [plan.examples[i].number for i in order if beyond[i] > 0]


def card_of(plan: Plan, rows: Sequence[Mapping], about: Mapping) -> dict:
    """What was surveyed, with the sentences that the rows name."""
    shown = {number for one in rows for number in one["best"] or ()}
    sentences = {
        str(e.number): [e.source, plan.checkpoint.tokenizer.target.decode(e.texts[-1])]
        if len(e.texts) > 1
        else [e.source]
        for e in plan.examples
        if e.number in shown
    }
    return dict(about) | {
        "score": plan.measure,
        "sentences": len(plan.examples),
        "aligned": min(plan.n_aligned, len(plan.examples)),
        "test": f"paired randomisation, {exchanges(plan.units):,} exchanges",
        "measures": MEASURES,
        "rules": {
            name: f"{rule.measure} ≥ {rule.least:g} ({rule.source})"
            for name, rule in SURVEY_RULES.items()
        },
        "texts": sentences,
    }
