"""Paths: the fewest of them that carry the difference between two sentences.

A path leads from one part, the sender, to what another part reads (see Pathed). In a circuit, all
paths but a few give what they give in the comparison; what is left of the difference between two
tokens' logits is the circuit's share of it (Wang et al. 2022). Paths are taken in the order of
their effects, each by itself (Conmy et al. 2023), until enough is left.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.by_value import ByValue
from headlight.model.extras import of_extra
from headlight.model.pause import pause
from headlight.model.probing.changes import READS, Pathed, Scope
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    final_norm_of,
    kinds_of,
    layers_of,
    parts_of,
    predicted_side,
    sublayers_of,
)
from headlight.model.probing.sweeps import Score, Sweep, paths
from headlight.model.probing.trace import CannotRead, ids_of, read_of
from headlight.model.rounding import percent
from headlight.model.sites import ProbedModel
from headlight.model.transformer import MultiHeadAttention

if TYPE_CHECKING:
    import pandas

KEEP = 0.8  # of the difference
FEW, LEAST = 0.15, 24  # share of all paths, and paths: a graph that has more of them says little
EXACT = 1e-3  # of a difference of logits, between all paths and the pass itself
AT_ONCE = 16  # circuits in a pass
LOGITS = Scope("logits")


@dataclass(frozen=True, repr=False, eq=False)
class Paths(ByValue):
    """The paths that carry the difference between two sentences, the strongest first.

    tokens   the two that are compared: what the model expects in each
    paths    each with its effect, (path,): the share of the difference that goes with it alone
    share    of the difference that they carry together
    held     the same on each of other pairs, on which they were not chosen
    count    of all paths in the model
    keep     the share that they were to carry
    """

    tokens: tuple[str, str]
    paths: tuple[Pathed, ...]
    effects: np.ndarray
    share: float
    held: tuple[float, ...]
    count: int
    keep: float = KEEP

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """One sentence."""
        one, other = self.tokens
        few = f"{len(self.paths):,} of {self.count:,} paths carry {percent(self.share)}"
        rest = "; the rest is spread over many" if self.share < self.keep else ""
        beyond = ""
        if pairs := len(self.held):
            of = "1 other pair" if pairs == 1 else f"{pairs} other pairs"
            beyond = f"; on {of}, they carry {percent(np.median(self.held))}"
            beyond += " (median)" * (pairs > 1)
        return f"{few} of the difference between “{one}” and “{other}”{rest}{beyond}."

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row for each path: path (its line), sender, receiver, reads, effect."""
        with of_extra("A table"):
            import pandas as pd

        return pd.DataFrame([*self._rows()])

    def to_json(self) -> str:
        """All of it, in one object."""
        named = {name: getattr(self, name) for name in ("tokens", "share", "held", "count", "keep")}
        return json.dumps(named | {"paths": [*self._rows()]}, ensure_ascii=False, indent=2)

    def _rows(self) -> Iterator[dict[str, object]]:
        for path, effect in zip(self.paths, self.effects.tolist(), strict=True):
            yield {"path": str(path), "sender": str(path.sender), "receiver": str(path.scope),
                   "reads": path.reads, "effect": effect}  # fmt: skip


def contrast(model: ProbedModel, run: Run) -> tuple[Score, list[float]]:
    """The difference of logits that a run and its comparison are compared by: of the tokens that
    each expects, in the first row in which these differ; and its value in both. Raises CannotRead
    where there is none."""
    if run.other is None or predicted_side(model).predicts == "embedding":
        raise CannotRead("Paths compare the tokens that a model expects in two sentences.")
    if run.changes or run.other.changes:
        raise CannotRead("Paths are measured in the model without changes. Clear them first.")
    if run.other.checkpoint != run.checkpoint or run.other.step != run.step:
        raise CannotRead("Paths are measured in one model, on two sentences.")
    lengths = [[len(text.ids) for text in one.texts] for one in (run, run.other)]
    if lengths[0] != lengths[1]:
        raise CannotRead("Paths need two sentences with the same number of tokens.")
    logits = []
    for one in (run, run.other):
        ids = ids_of(model, read_of(model, one))
        with torch.no_grad():
            found = model(*ids, *one.masks.build(model, *ids))
        logits.append(found.reshape(1, -1, found.shape[-1]))  # a class has one row
    for row, (wanted, against) in enumerate(zip(*(one[0].argmax(-1).tolist() for one in logits),
                                                strict=True)):  # fmt: skip
        if wanted != against:
            score = Score(row, wanted, against)
            return score, [float(score.of(one, None)) for one in logits]
    raise CannotRead("The model expects the same in both sentences, so there is no difference.")


class Circuits:
    """A model's paths between a run and its comparison, of which some are kept. `model` must be the
    caller's own view. Raises CannotRead as `contrast` does."""

    def __init__(self, model: ProbedModel, run: Run):
        self.model, self.run = model, run
        self.score, ends = contrast(model, run)
        assert run.other is not None  # else there is no contrast
        self.senders: dict[str, dict[Scope, int]] = {side.name: {} for side in model.sides()}
        self.receivers: dict[str, dict[tuple[Scope, str], int]] = {n: {} for n in self.senders}
        self.places: dict[Pathed, tuple[str, int, int]] = {}
        starts, sides = {Scope(side.title): side.name for side in model.sides()}, {}
        for (path,) in paths(model):
            assert isinstance(path, Pathed)
            # The first path to what a receiver reads comes from its text.
            receiver = path.scope, path.reads
            side = sides.setdefault(receiver, starts.get(path.sender, ""))
            rows, columns = self.receivers[side], self.senders[side]
            self.places[path] = (
                side,
                rows.setdefault(receiver, len(rows)),
                columns.setdefault(path.sender, len(columns)),
            )
        with torch.no_grad():
            self.other = {
                side: one[0] for side, one in self._pass(run.other, [()], None)[1].items()
            }
        self.plain, self.none = self._scores([tuple(self.places), ()])
        if not np.allclose([self.plain, self.none], ends, atol=EXACT):
            raise CannotRead("This model has parts between which no paths are known.")

    @property
    def tokens(self) -> list[int]:
        """The ids that are compared: what the model expects in each run."""
        return [one for one in (self.score.wanted, self.score.against) if one is not None]

    @property
    def difference(self) -> float:
        """Of the score, between the runs."""
        return self.plain - self.none

    def shares(self, kept: Sequence[Iterable[Pathed]]) -> np.ndarray:
        """What is left of the difference where only some paths stay, for each of several choices of
        them: 1 all of it, 0 none."""
        return (self._scores(kept) - self.none) / self.difference

    @torch.no_grad()
    def _scores(self, kept: Sequence[Iterable[Pathed]]) -> np.ndarray:
        scores = []
        for start in range(0, len(kept), AT_ONCE):
            pause(start, len(kept))
            logits, _ = self._pass(self.run, kept[start : start + AT_ONCE], self.other)
            scores.append(self.score.of(logits, None).double().cpu().numpy())
        return np.concatenate(scores)

    def _pass(
        self, run: Run, kept: Sequence[Iterable[Pathed]], other: Mapping[str, Tensor] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and what each sender of a side gave, (circuit, sender, position, d_model). Every
        receiver has a stream of its own."""
        model, sites = self.model, {site.name: site for site in self.model.sites()}
        ids = ids_of(model, read_of(model, run))
        by_kind = dict(zip(kinds_of(model.sites()), run.masks.build(model, *ids), strict=True))
        streams, scopes = self._streams(kept, other, ids[0].device), self._scopes()
        finals = {side.name: final_norm_of(model, side) for side in model.sides()}
        for side, tokens in zip(model.sides(), ids, strict=True):
            here = streams[side.name]
            here.add(embedding_of(model, side)(tokens).expand(len(kept), -1, -1)[:, None])
            for name, layer in zip(side.layers, layers_of(model, side), strict=True):
                for sub, module, norm in sublayers_of(layer):
                    site, scope = sites.get(f"{name}.{sub}"), scopes[f"{name}.{sub}"]
                    before = norm if layer.norm_first else nn.Identity()
                    if site is None:
                        here.add(module(before(here.read(scope, "")))[:, None])
                    else:
                        keys, of_keys = here, before
                        if site.key_side != side.name:
                            keys, of_keys = streams[site.key_side], finals[site.key_side]
                        attention, mask = attention_at(model, site), by_kind[site.kind]
                        step = site.n_heads // site.n_key_heads
                        query, key = (here, before, 1), (keys, of_keys, step)
                        here.add(*_attended(attention, scope, query, key, mask))
                    if not layer.norm_first:
                        here.stream = norm(here.stream)
        side = predicted_side(model)
        last = finals[side.name](streams[side.name].read(LOGITS, ""))
        given = {name: torch.cat(one.given, dim=1) for name, one in streams.items()}
        return model.logits(last, ids[-1].expand(len(kept), -1)), given

    def _scopes(self) -> dict[str, Scope]:
        """Name of a sublayer → its place."""
        parts = parts_of(self.model.sites(), self.model.sides())
        return {part.name: Scope(part.kind, part.layer) for part in parts
                if part.what in ("attention", "feed-forward")}  # fmt: skip

    def _streams(self, kept, other, device) -> dict[str, "_Streams"]:
        stays = {side: torch.zeros(len(kept), len(rows), len(self.senders[side]), device=device)
                 for side, rows in self.receivers.items()}  # fmt: skip
        for number, circuit in enumerate(kept):
            for path in circuit:
                side, row, column = self.places[path]
                stays[side][number, row, column] = 1
        return {side: _Streams(rows, stays[side], other and other[side])
                for side, rows in self.receivers.items()}  # fmt: skip


class _Streams:
    """The streams of a side, one for each of its receivers, (circuit, receiver, position, d_model).
    `stays`: what each reads as this run gives it, (circuit, receiver, sender); else what `other`
    has, (sender, position, d_model). `given`: the senders' outputs so far."""

    def __init__(self, rows: Mapping[tuple[Scope, str], int], stays: Tensor, other: Tensor | None):
        self.rows, self.stays, self.other = rows, stays, other
        self.given: list[Tensor] = []
        self.stream: Tensor = torch.zeros((), device=stays.device)

    def add(self, now: Tensor, bias: Tensor | None = None) -> None:
        """What the next senders give, (circuit, sender, position, d_model)."""
        first = sum(one.shape[1] for one in self.given)
        some = slice(first, first + now.shape[1])
        self.given.append(now)
        if self.other is None:
            added = now.sum(dim=1, keepdim=True).expand(-1, len(self.rows), -1, -1)
        else:
            stays, then = self.stays[:, :, some].to(now), self.other[some]
            added = torch.einsum("brs,bspd->brpd", stays, now - then) + then.sum(dim=0)
        self.stream = self.stream + (added if bias is None else added + bias)

    def read(self, scope: Scope, reads: str) -> Tensor:
        return self.stream[:, self.rows[scope, reads]]


Reads = tuple[_Streams, nn.Module, int]  # a stream, its norm, and by how many heads it is read


def _attended(
    attention: MultiHeadAttention, scope: Scope, query: Reads, key: Reads, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """What each head gives, (circuit, head, query, d_model), and the output projection's bias."""
    made = []
    for what, (streams, norm, step) in zip(READS, (query, key, key), strict=True):
        heads = [
            attention.split(
                attention.get_submodule(what)(norm(streams.read(replace(scope, head=head), what)))
            )[:, head // step]
            for head in range(0, attention.n_heads, step)
        ]
        made.append(torch.stack(heads, dim=1))
    q, k, v = made
    out = attention.softmax(attention.scores(q, k), mask) @ v.repeat_interleave(key[-1], dim=1)
    weight = attention.output.weight.unflatten(1, (attention.n_heads, out.shape[-1]))
    return torch.einsum("bhqd,mhd->bhqm", out, weight), attention.output.bias


def carrying(
    circuits: Sequence[Circuits],
    swept: Sequence[Sweep],
    held: Sequence[Circuits],
    tokens: Sequence[str],
    keep: float = KEEP,
) -> Paths:
    """The fewest paths that keep a share of the difference in each of some pairs, by the sweep
    "paths" of each; and what they keep on others. `tokens`: the names of those that the first pair
    compares."""
    shares = [one.effects / -circuit.difference
              for one, circuit in zip(swept, circuits, strict=True)]  # fmt: skip
    mean = np.mean(shares, axis=0)
    changes = [change for (change,) in swept[0].changes if isinstance(change, Pathed)]
    order = [changes[i] for i in np.argsort(-np.abs(mean), kind="stable")]
    alone = dict(zip(changes, mean.tolist(), strict=True))
    found, share = fewest(circuits, order, keep, max(LEAST, round(FEW * len(order))))
    kept = tuple(float(one.shares([found])[0]) for one in held)
    effects = np.array([alone[path] for path in found])
    one, other = tokens
    return Paths((one, other), tuple(found), effects, share, kept, len(order), keep)


def fewest(
    circuits: Sequence[Circuits], order: Sequence[Pathed], keep: float, most: int
) -> tuple[list[Pathed], float]:
    """The first paths of an order that keep a share in each pair, or as near to it as `most` of
    them come; without those that lead nowhere."""

    def tried(counts: Sequence[int]) -> list[float]:
        each = [one.shares([order[:count] for count in counts]) for one in circuits]
        return np.min(each, axis=0).tolist()

    counts = sorted({min(most, round(1.5**i)) for i in range(64)})
    shares = tried(counts)
    end = next((i for i, share in enumerate(shares) if share >= keep), int(np.argmax(shares)))
    low, high = counts[end - 1] if end else 0, counts[end]
    count, share = high, shares[end]
    between = sorted({low + round((high - low) * i / AT_ONCE) for i in range(1, AT_ONCE)} - {low})
    for fewer, kept in zip(between, tried(between) if between else [], strict=True):
        if kept >= min(keep, share) and fewer < count:
            count, share = fewer, kept
    return reaching(circuits[0].model, order[:count]), share


def reaching(model: ProbedModel, some: Sequence[Pathed]) -> list[Pathed]:
    """Those of some paths that lead on to the logits: what others carry, nothing reads."""
    shared = {(s.kind, s.layer): s.n_heads // s.n_key_heads for s in model.sites()}
    alive, found = [LOGITS], {LOGITS}

    def ends(path: Pathed) -> set[Scope]:
        kind, layer, head = path.scope.kind, path.scope.layer, path.scope.head
        if layer is None or head is None or path.reads not in READS[1:]:
            return {path.scope}
        return {Scope(kind, layer, head + i) for i in range(shared[kind, layer])}

    while alive:
        end = alive.pop()
        more = {path.sender for path in some if end in ends(path)} - found
        found |= more
        alive += more
    return [path for path in some if ends(path) & found]
