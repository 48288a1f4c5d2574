"""Sweeps: many changes, one at a time, to see what each head, token or sublayer contributes.

Each change is a row of a batch and joins it at the first layer that it affects, so that all changes
together cost a few passes. Its effect is a score of the logits with the change minus the score
without.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headlight.model.arguments import whole
from headlight.model.by_value import ByValue
from headlight.model.card import parameter_count
from headlight.model.extras import of_extra
from headlight.model.pause import pause
from headlight.model.probing.applying import PatchInputs, applied_by_row
from headlight.model.probing.changes import (
    Change,
    HeadMean,
    HeadOff,
    Hidden,
    Patched,
    Pathed,
    Randomised,
    Resampled,
    Scope,
    Skipped,
    sender_of,
    written,
)
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    device_of,
    layers_of,
    parts_of,
    predicted_side,
    sublayers_of,
)
from headlight.model.probing.trace import NO_ID, following_of, ids_of, read_of
from headlight.model.sites import ProbedModel, Site

if TYPE_CHECKING:
    import pandas

FEWEST_TOKENS, MAX_BATCH_TOKENS = 256, 4096  # that go through the model at once
MOST_WORK = 6 * 10**10  # tokens × parameters of a pass: about a second on two cores
MOST_LOGITS = 512  # rows of logits at once
DRAWS = 4  # of what is drawn at random in place of a head


def check_token(
    shape: Sequence[int], row: int, token: int | None, against: int | None = None
) -> None:
    """Raises ValueError where logits of this shape, (row, vocab_size), have no such row or
    token."""
    rows, tokens = shape
    whole("the row", row, 0, rows - 1)
    whole("the token", token, 0, tokens - 1)
    if against is not None:
        whole("the token that it is compared with", against, 0, tokens - 1)


@dataclass(frozen=True)
class Score:
    """A number for a pass: the log-probability of the predicted text, all its tokens together (or
    `each` by itself, a number for each row of the logits), or of the class that is the likeliest
    without a change; of a model that makes a vector of the text, how similar that is (cosine) to
    the one without a change. With a `position`, a row of the logits from 0, the log-probability of
    the token `wanted` there, or, where `against` is given too, the difference of their logits."""

    position: int | None = None
    wanted: int | None = None
    against: int | None = None
    each: bool = False

    def of(self, logits: Tensor, following: Tensor | None) -> Tensor:
        """(batch, length, vocab_size) → (batch,), or (batch, length) of each; `following` is the id
        that each row is to predict, (length,), or NO_ID; not needed with a `position`."""
        if self.position is not None:
            check_token(logits.shape[1:], self.position, self.wanted, self.against)
        if self.position is None:
            assert following is not None
            wanted = following.clamp(min=0)[:, None]
            # One pass at a time: of all together this would take as much memory again.
            shares = torch.cat([one.log_softmax(dim=-1).gather(-1, wanted).T for one in logits])
            shares = shares.masked_fill(following == NO_ID, 0)
            return shares if self.each else shares.sum(dim=-1)
        row = logits[:, self.position]
        if self.against is None:
            return row.log_softmax(dim=-1)[:, self.wanted]
        return row[:, self.wanted] - row[:, self.against]


Changes = list[tuple[Change, ...]]  # several that are made at once are one


@dataclass(frozen=True, repr=False, eq=False)
class Sweep(ByValue):
    """The `score` of a run, and the effect of each of the changes, (change,); several that are made
    at once are one. Of a score of each row both have an axis more, (row,). `missing`: how many
    changes have not been measured yet."""

    score: float | np.ndarray
    changes: tuple[tuple[Change, ...], ...]
    effects: np.ndarray
    missing: int = 0

    @property
    def nbytes(self) -> int:
        """About, in memory: a change is some objects of Python."""
        return 500 * len(self.changes)

    def by_head(self, kinds: Mapping[str, Sequence[Site]]) -> dict[str, np.ndarray]:
        """Kind → (layers, heads), of changes that each concern one head; NaN where there is
        none."""
        shown = {k: np.full((len(sites), sites[0].n_heads), np.nan) for k, sites in kinds.items()}
        rows = {
            (k, site.layer): row for k, sites in kinds.items() for row, site in enumerate(sites)
        }
        for (change, *_), effect in zip(self.changes, self.effects, strict=True):
            scope = change.scope
            assert scope.layer is not None
            shown[scope.kind][rows[scope.kind, scope.layer], scope.head] = effect
        return shown

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row for each change: change (its line), attention (a kind, or another part), layer,
        head, position, effect. They count from 1; what does not apply is missing."""
        with of_extra("A table"):
            import pandas as pd

        def counted(number):
            return None if number is None else number + 1

        scopes = [change.scope for change, *_ in self.changes]
        places = [
            getattr(change, "positions", getattr(change, "tokens", ()))
            for change, *_ in self.changes
        ]
        numbers = {
            "layer": [counted(scope.layer) for scope in scopes],
            "head": [counted(scope.head) for scope in scopes],
            "position": [counted(place[0]) if len(place) == 1 else None for place in places],
        }
        return pd.DataFrame(
            {
                "change": list(map(written, self.changes)),
                "attention": [scope.kind for scope in scopes],
                **{name: pd.array(column, "Int64") for name, column in numbers.items()},
                "effect": self.effects,
            }
        )


def heads_off(model: ProbedModel, lengths: Mapping[str, int] = {}) -> Changes:
    """Every head off."""
    return [
        (HeadOff(Scope(site.kind, site.layer, head)),)
        for site in model.sites()
        for head in range(site.n_heads)
    ]


def heads_replaced(model: ProbedModel, lengths: Mapping[str, int] = {}) -> Changes:
    """Every head off, at its mean, at DRAWS of its outputs in other texts, and, as a control, with
    as many random vectors added."""
    heads = [off.scope for (off,) in heads_off(model)]
    drawn = [make(head, seed) for head in heads for make in (Resampled, Randomised)
             for seed in range(1, DRAWS + 1)]  # fmt: skip
    return heads_off(model) + [(change,) for change in (*map(HeadMean, heads), *drawn)]


def sublayers_skipped(model: ProbedModel, lengths: Mapping[str, int] = {}) -> Changes:
    """Every sublayer skipped."""
    parts = parts_of(model.sites(), model.sides())
    return [(Skipped(Scope(p.kind, p.layer)),) for p in parts if p.what in Skipped.parts]


def tokens_hidden(model: ProbedModel, lengths: Mapping[str, int]) -> Changes:
    """Every token of every side hidden wherever it is a key."""
    each = []
    for side, length in lengths.items():
        kinds = dict.fromkeys(site.kind for site in model.sites() if site.key_side == side)
        each += [
            tuple(Hidden(Scope(kind), (token,)) for kind in kinds)
            for token in range(length)
            if kinds
        ]
    return each


def heads_patched(model: ProbedModel, lengths: Mapping[str, int] = {}) -> Changes:
    """Every head, taken from the comparison."""
    return [(Patched(off.scope),) for (off,) in heads_off(model)]


def heads_patched_by_position(model: ProbedModel, lengths: Mapping[str, int]) -> Changes:
    """Every head, taken from the comparison at one query at a time."""
    return [
        (Patched(Scope(site.kind, site.layer, head), (position,)),)
        for site in model.sites()
        for head in range(site.n_heads)
        for position in range(lengths[site.query_side])
    ]


def residual_patched_by_position(model: ProbedModel, lengths: Mapping[str, int]) -> Changes:
    """The output of every layer, taken from the comparison at one token at a time."""
    return [
        (Patched(Scope(part.kind, part.layer), (position,)),)
        for part in parts_of(model.sites(), model.sides())
        if part.what == "residual"
        for position in range(lengths[part.side])
    ]


def paths(model: ProbedModel, lengths: Mapping[str, int] = {}) -> Changes:
    """Every path from a head, a feed-forward or a text to what a part behind it reads, taken from
    the comparison."""
    parts, sites = parts_of(model.sites(), model.sides()), {s.name: s for s in model.sites()}
    sublayers = {part.name: part for part in parts if part.what in ("attention", "feed-forward")}
    senders: dict[str, list[Scope]] = {}  # side → all so far
    found: list[Change] = []
    for side in model.sides():
        here = senders[side.name] = [Scope(side.title)]
        layers = zip(side.layers, layers_of(model, side), strict=True)
        for name in (f"{name}.{sub}" for name, layer in layers for sub, *_ in sublayers_of(layer)):
            part, site = sublayers[name], sites.get(name)
            if site is None:
                found += [Pathed(Scope(part.kind, part.layer), sender) for sender in here]
            else:
                shared = site.n_heads // site.n_key_heads  # by the heads of a group
                for reads, of, step in (("query", here, 1),
                                        ("key", senders[site.key_side], shared),
                                        ("value", senders[site.key_side], shared)):  # fmt: skip
                    heads = [Scope(part.kind, part.layer, h) for h in range(0, site.n_heads, step)]
                    found += [Pathed(head, sender, reads) for head in heads for sender in of]
            here += [one for h in range(max(1, part.n_heads)) if (one := sender_of(part, h))]
        if side.predicts:
            found += [Pathed(Scope("logits"), sender) for sender in here]
    return [(change,) for change in found]


SWEEPS = {  # name → the changes that are made one by one
    "heads": heads_off,
    "baselines": heads_replaced,
    "sublayers": sublayers_skipped,
    "tokens": tokens_hidden,
    "patches": heads_patched,
    "patches by position": heads_patched_by_position,
    "residual by position": residual_patched_by_position,
    "paths": paths,
}
NEED_ANOTHER = (
    "patches",
    "patches by position",
    "residual by position",
    "paths",
)  # these need another run


def changes_of(model: ProbedModel, run: Run, name: str) -> Changes:
    """The changes of one of SWEEPS, for the texts of a run. Raises CannotRead, and ValueError for
    another name."""
    if name not in SWEEPS:
        raise ValueError(f"There is no sweep {name!r}; choose from {', '.join(SWEEPS)}.")
    texts = read_of(model, run)
    return SWEEPS[name](model, {side: len(text.ids) for side, text in texts.items()})


def sweep(
    model: ProbedModel,
    run: Run,
    changes: Sequence[Change | Sequence[Change]],
    score: Score = Score(),
    given: PatchInputs = PatchInputs(),
) -> Sweep:
    """The effect of each of the changes on top of the run's own. `model` must be the caller's own
    view. Raises CannotRead and CannotChange."""
    *_, swept = sweeping(model, run, changes, score, given)
    return swept


def sweeping(
    model: ProbedModel,
    run: Run,
    changes: Sequence[Change | Sequence[Change]],
    score: Score = Score(),
    given: PatchInputs = PatchInputs(),
    known: Sweep | None = None,
) -> Iterator[Sweep]:
    """As `sweep`, which may take long: after each pass what is known by then, the changes that were
    measured in the order in which they were given. It goes on from what is `known`."""
    each = [(change,) if isinstance(change, Change) else tuple(change) for change in changes]
    effects = dict(zip(known.changes, known.effects, strict=True)) if known else {}
    rest = [change for change in each if change not in effects]
    if known and not known.missing:
        yield known
        return
    first = dict(zip(rest, _first_layers(model, rest), strict=True))
    rest.sort(key=first.__getitem__)
    at_once = _at_once(model, run)
    for start in range(0, max(1, len(rest)), at_once):
        some = rest[start : start + at_once]
        pause(len(effects), len(each))
        plain, *scores = _scores(model, run, some, [first[change] for change in some], score, given)
        effects |= {change: now - plain for change, now in zip(some, scores, strict=True)}
        measured = tuple(change for change in each if change in effects)
        measured_effects = np.array([effects[change] for change in measured])
        missing = len(rest) - start - len(some)
        yield Sweep(plain if score.each else float(plain), measured, measured_effects, missing)


def _at_once(model: ProbedModel, run: Run) -> int:
    """How many changes go through the model together: few enough that a pass takes about a second,
    and as many as fit into memory."""
    length = sum(text.shape[1] for text in ids_of(model, read_of(model, run)))
    parameters = max(1, parameter_count(model))
    tokens = min(MAX_BATCH_TOKENS, max(FEWEST_TOKENS, MOST_WORK // parameters))
    return max(1, tokens // length)


@torch.no_grad()
def _scores(
    model: ProbedModel,
    run: Run,
    changes: Sequence[Sequence[Change]],
    first: Sequence[int],
    score: Score,
    given: PatchInputs,
) -> np.ndarray:
    """The score of the run, and with each of the changes, (1 + change,), in one pass; `first`: the
    first layer that each concerns, sorted."""
    texts = read_of(model, run)
    ids, rows = ids_of(model, texts), following_of(model, texts)
    following = torch.tensor(rows, device=device_of(model)) if rows else None  # one for the text
    with (
        applied_by_row(model, run.changes, [(), *changes], given),
        _joining(model, first),
    ):
        hidden = model.hidden(*ids, *run.masks.build(model, *ids))
    if following is None:
        following = model.logits(hidden[:1], ids[-1])[0, :1].argmax(dim=-1)
    if predicted_side(model).predicts == "embedding":
        vectors = model.logits(hidden, ids[-1])[:, 0]
        scores = torch.cosine_similarity(vectors, vectors[:1], dim=-1)
    else:
        # Some at a time: logits of a large vocabulary are more numbers than all else.
        scores = []
        for some in hidden.split(max(1, MOST_LOGITS // hidden.shape[1])):
            pause()
            scores.append(score.of(model.logits(some, ids[-1]), following))
        scores = torch.cat(scores)
    return scores.double().cpu().numpy()


def _layers(model: ProbedModel) -> list[str]:
    """Names of all layers, in the order in which a pass comes to them."""
    return [name for side in model.sides() for name in side.layers]


def _first_layers(model: ProbedModel, each: Sequence[Sequence[Change]]) -> list[int]:
    """For each entry, the first layer that its changes affect."""
    layers = {name: i for i, name in enumerate(_layers(model))}
    places = [  # every part, and the layer that it stands in; positions before the first
        (part, next((i for name, i in layers.items() if f"{part.name}.".startswith(f"{name}.")), 0))
        for part in parts_of(model.sites(), model.sides())
    ]

    def concerned(change):
        return (i for part, i in places if part.what in change.parts and change.scope.holds(part))

    return [min((i for one in some for i in concerned(one)), default=0) for some in each]


@contextmanager
def _joining(model: ProbedModel, first: Sequence[int]) -> Iterator[None]:
    """A pass over one text whose batch grows: row 0 is the plain pass, and each other row begins as
    a copy of it, before the layer in `first`, sorted, where it becomes another one."""

    def grown(rows: Tensor, count: int) -> Tensor:
        return torch.cat([rows, rows[:1].expand(count - len(rows), *rows.shape[1:])])

    def join(count: int):
        # What has a row for each text of the batch: vectors, not masks.
        return lambda module, inputs: tuple(
            grown(one, count) if isinstance(one, Tensor) and one.dim() == 3 else one
            for one in inputs
        )

    with ExitStack() as hooks:
        for i, name in enumerate(_layers(model)):
            count = 1 + bisect_right(first, i)
            hook = model.get_submodule(name).register_forward_pre_hook(join(count))
            hooks.enter_context(hook)
        yield
