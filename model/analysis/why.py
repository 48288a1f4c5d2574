"""Why a query attends to a key: how far the key's score q · k / √d_head is above the mean of the
row's other keys, as a sum over pairs: what the query's vector goes back to × what the key's does.

A score by itself says little, since a softmax ignores what all keys of a row have in common. Of the
margin over the other keys that is gone, and the bias of the key projection with it. A part of the
margin, the pull, is there for the mean query of the text as well: that much the key pulls with any
query.

A sum is exact, but no cause. So beside a word that is named stands what the margin and the weight
are without it: its embedding is then the mean of its text's.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from headlight.model.analysis.decomposition import BIASES, POSITION, TOKEN, Term
from headlight.model.analysis.streams import Parts, RecordedPass, Streams, WordOrigin, Words
from headlight.model.arguments import kind_of
from headlight.model.by_value import ByValue
from headlight.model.messages import short
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import outputs_of
from headlight.model.probing.interventions import replace_output
from headlight.model.probing.run import Run
from headlight.model.probing.sites import attention_at, embedding_of
from headlight.model.probing.trace import ids_of
from headlight.model.rounding import percent
from headlight.model.sites import ProbedModel, Site
from headlight.model.tokenizer import CannotRead, Encoding

LARGEST_DIFFERENCE = 1e-3  # of the sum from the margin, as a share of the largest pair
PULL, LEADS, NAMED, CANCELS = 0.5, 0.25, 0.1, 6  # shares of the margin
MEETING, PULLS, PLACE = "meeting", "pull", "position"
MANY, CONFLICT, NONE = "many reasons", "conflict", "none"
ASKS, OFFERS = "a constant question", "a constant"  # what biases are called on each side
CELL = re.compile(r"(\w+)\.(\d{1,6})\.(\d{1,6})=(\d{1,6})>(\d{1,6})", re.ASCII)
BY = {"words": Words, "parts": Parts}


@dataclass(frozen=True)
class Without:
    """The margin and the weight of a cell where the embedding of a token is its text's mean."""

    margin: float
    weight: float


@dataclass(frozen=True, repr=False, eq=False)
class Why(ByValue):
    """The reasons of one weight.

    cell     as it was asked for
    query, key  the tokens
    weight   of the key
    margin   by how much the key's score is above the mean score of the row's other keys
    pull     (offer,), the part of the margin that the text's mean query has as well
    asks     what the query's vector goes back to: words, or parts of the model
    offers   the same of the key's
    pairs    (ask, offer), adding up to the margin; read-only
    without  token, (side, position from 0) → the margin and the weight without it
    texts    side → what was read of it
    beside   as `without`, of further words, where that was asked
    """

    cell: str
    query: str
    key: str
    weight: float
    margin: float
    pull: np.ndarray
    asks: tuple[WordOrigin, ...] | tuple[Term, ...]
    offers: tuple[WordOrigin, ...] | tuple[Term, ...]
    pairs: np.ndarray
    without: Mapping[tuple[str, int], Without]
    texts: Mapping[str, Encoding]
    beside: Mapping[tuple[str, int], Without] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.in_words()

    @property
    def kind(self) -> str:
        """What leads: "pull", where most of the margin is there for every query; "meeting" of two
        words, or "position", where one pair has a quarter of it. Else there is no single reason:
        "many reasons", also where the margin does not fall without any of the words that lead;
        "conflict", where reasons many times the margin cancel each other; or "none" for a key that
        is not above the others."""
        holds = any(found.margin < self.margin for found in self.without.values())
        return self._leads if holds or not self.without else MANY

    @property
    def _leads(self) -> str:
        """By the sum alone."""
        if self.margin <= 0:
            return NONE
        if self.pull.sum() >= PULL * self.margin:
            return PULLS
        if np.abs(self.pairs).sum() > CANCELS * self.margin:
            return CONFLICT
        (ask, offer, value), *_ = self.largest(1)
        if value < LEADS * self.margin:
            return MANY
        return PLACE if ask.what == offer.what == POSITION else MEETING

    def largest(self, count: int) -> list[tuple[WordOrigin | Term, WordOrigin | Term, float]]:
        """The pairs that speak most for the key."""
        order = np.argsort(-self.pairs, axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(order, self.pairs.shape)
        return [(self.asks[i], self.offers[j], float(self.pairs[i, j]))
                for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]  # fmt: skip

    def named(self) -> list[tuple[str, int]]:
        """The tokens that the sum names first, (side, position): both of the pair that leads, or
        what has most of the pull or of the key's side."""
        leading: Sequence[WordOrigin | Term] = ()
        if self._leads == MEETING:
            leading = self.largest(1)[0][:2]
        elif self._leads == PULLS:
            leading = [self.offers[int(self.pull.argmax())]]
        elif self._leads == MANY:
            leading = [self.side(1, 1)[0][0]]
        tokens = [(one.side, one.token) for one in leading
                  if isinstance(one, WordOrigin) and one.token is not None]  # fmt: skip
        return list(dict.fromkeys(tokens))

    def side(self, axis: int, count: int = 3) -> list[tuple[WordOrigin | Term, float]]:
        """What has most of the margin on the query's side (0) or on the key's (1)."""
        totals, names = self.pairs.sum(axis=1 - axis), (self.asks, self.offers)[axis]
        return [(names[i], float(totals[i])) for i in np.argsort(-totals, kind="stable")[:count]]

    def most(self, count: int) -> tuple[list[int], list[int]]:
        """So many asks and offers that move the margin most, and those of the largest pair; in the
        order that they have."""
        (first, second), chosen = np.unravel_index(self.pairs.argmax(), self.pairs.shape), []
        for axis, leading in ((0, first), (1, second)):
            totals = np.abs(self.pairs.sum(axis=1 - axis))
            order = np.argsort(-totals, kind="stable")[:count].tolist()
            chosen.append(sorted({*order, int(leading)}))
        return chosen[0], chosen[1]

    def in_words(self) -> str:
        """The reasons in a sentence; then the pull, and what is without the words that it names."""
        start = f"At “{self.query}”, “{self.key}” scores {abs(self.margin):.1f}"
        if self.kind == NONE:
            return f"{start} below the mean of the other keys: it is not preferred here."
        said = [f"{start} above the mean of the other keys: {self._reason()}."]
        if self.kind != PULLS:
            pull = f"{self.pull.sum():.1f}".replace("-", "−")
            said.append(f"Of that, {pull} is there for every query.")
        for (side, token), found in self.without.items():
            before, after = percent(self.weight), percent(found.weight)
            moves = "rises" if found.weight > self.weight else "falls"
            moves = f"stays {after}" if after == before else f"{moves} from {before} to {after}"
            word = self.named_as(WordOrigin(TOKEN, side, token))
            but = "But without" if found.weight >= self.weight else "Without"
            said.append(f"{but} {word}, the weight {moves}.")
        return " ".join(said)

    def _reason(self) -> str:
        if self.kind == PULLS:
            share = percent(min(1, self.pull.sum() / self.margin))
            pulls = self.named_as(self.offers[int(self.pull.argmax())])
            return f"{share} of that is there for every query, mostly from {pulls}"
        if self.kind == PLACE:
            share = percent(self.largest(1)[0][2] / self.margin)
            return f"{share} of that comes from where the two stand"
        if self.kind == MEETING:
            first, *rest = self.largest(3)
            rest = [one for one in rest if one[2] >= NAMED * self.margin]
            shares = [percent(value / self.margin) for *_, value in (first, *rest)]
            shares[0] += " of that"
            return ", ".join(
                f"{share} is {self.named_as(ask, ASKS)} meeting {self.named_as(offer)}"
                for share, (ask, offer, _) in zip(shares, (first, *rest), strict=True)
            )
        if self.kind == CONFLICT:
            return "there is no single reason, since large reasons for and against it cancel"
        asks, offers = (
            [f"{self.named_as(one, none)} {percent(value / self.margin)}"
             for one, value in self.side(axis) if value >= NAMED * self.margin]
            for axis, none in ((0, ASKS), (1, OFFERS))
        )  # fmt: skip
        return (
            "there is no single reason. The query’s side is mostly "
            f"{', '.join(asks) or 'spread out'}; the key’s is {', '.join(offers) or 'spread out'}"
        )

    def named_as(self, one: WordOrigin | Term, biases: str = OFFERS) -> str:
        """What a sentence calls an ask or an offer."""
        if one.what == POSITION:
            return "its position"
        if one.what == BIASES:
            return biases
        if isinstance(one, Term):
            if one.layer is None:
                return f"its {one.what}"
            head = "" if one.head is None else f".{one.head + 1}"
            return f"{one.kind}{'' if head else f' {one.what}'} {one.layer + 1}{head}"
        tokens = self.texts[one.side].tokens
        word = f"“{tokens[one.token or 0]}”"
        if tokens.count(tokens[one.token or 0]) > 1:
            word += f" ({(one.token or 0) + 1})"
        return word if one.side == list(self.texts)[-1] else f"{word} (source)"


@torch.no_grad()
def why(
    model: ProbedModel,
    run: Run,
    cell: str,
    given: PatchInputs = PatchInputs(),
    by: str = "words",
    beside: int = 0,
) -> Why:
    """Why the row of a query attends to a key, as “cross.3.3=9>6” names both: layer 3, head 3, the
    query 9 and the key 6, from 1, special tokens counted. `by`: "words", or "parts" of the model.
    `beside`: so many words of each side are left out one at a time, too.
    `model` must be the caller's own view. Raises CannotRead, also where the scores are no such sum,
    CannotChange, and ValueError for another `by`."""
    kind_of("cell", cell, str, "one str, such as cross.3.3=9>6")
    if by not in BY:
        raise ValueError(f"by={short(by)} is not known; choose from {', '.join(BY)}.")
    recorded = RecordedPass(model, run, given)
    site, head, query, key = placed(model, recorded.texts, cell)
    weights, scores = (
        recorded.outputs[site.name, part][0, head, query] for part in ("softmax", "scores")
    )
    others = weights.new_zeros(len(weights))
    others[recorded.outputs[site.name, "softmax"][0, :, query].any(dim=0)] = 1
    if not others[key]:
        raise CannotRead(f"“{cell}”: this key is masked, so there is nothing to explain.")
    others[key] = 0
    if not others.any():
        raise CannotRead(f"“{cell}”: this query has only one key to choose from.")
    others /= others.sum()
    asks, q, offers, k = pairs_of(recorded, site, head, BY[by])
    beyond = k[:, key] - torch.einsum("bkd,k->bd", k, others)
    pairs = q[:, query] @ beyond.T
    margin = float(scores[key] - others @ scores)
    largest = max(1.0, float(pairs.abs().max()))
    if not abs(float(pairs.double().sum()) - margin) <= LARGEST_DIFFERENCE * largest:
        raise CannotRead(
            f"“{cell}”: the scores here are no sum of what was written before, because the model "
            "has other parts or a change replaces vectors."
        )
    pull = (q[:, recorded.real(site.query_side)].mean(dim=1) @ beyond.T).sum(dim=0)
    asker, offered = (recorded.texts[side].tokens[at]
              for side, at in ((site.query_side, query), (site.key_side, key)))  # fmt: skip
    found = Why(
        cell, asker, offered, float(weights[key]), margin, _read_only(pull), asks, offers,
        _read_only(pairs), {}, recorded.texts,
    )  # fmt: skip
    named, most = found.named(), found.most(beside) if beside else ([], [])
    shown = [*(asks[i] for i in most[0]), *(offers[j] for j in most[1])]
    more = [(one.side, one.token) for one in shown
            if isinstance(one, WordOrigin) and one.token is not None]  # fmt: skip
    tested = _without(
        recorded, site, head, query, key, others, list(dict.fromkeys([*named, *more]))
    )
    return replace(found, without={one: tested[one] for one in named}, beside=tested)


def _read_only(tensor: Tensor) -> np.ndarray:
    array = tensor.double().cpu().numpy()
    array.flags.writeable = False
    return array


def pairs_of(
    recorded: RecordedPass, site: Site, head: int, by: type[Streams]
) -> tuple[tuple, Tensor, tuple, Tensor]:
    """The queries of a head as sums of terms, and its keys, as the scores compare them: projected,
    normed and turned. Names and (term, position, d_head), of queries divided by √d_head: the score
    of two is the sum of the products of all their terms."""
    streams = by(recorded)
    asks, queries, offers, keys = streams.read_by(site)
    with applied(recorded.model, recorded.run.changes, recorded.given):  # of positions left out
        q = streams.compared(site, "query", head, queries)
        k = streams.compared(site, "key", head * site.n_key_heads // site.n_heads, keys)
    return asks, q * q.shape[-1] ** -0.5, offers, k


def placed(
    model: ProbedModel, texts: Mapping[str, Encoding], cell: str
) -> tuple[Site, int, int, int]:
    """The site, head, query and key of a cell, from 0. Raises CannotRead."""
    match = CELL.fullmatch(cell)
    if not match:
        raise CannotRead(
            f"“{short(cell)}” is not a cell. Write one like “cross.3.3=9>6”: an attention type, a "
            "layer and a head, then the number of the query and of the key."
        )
    kind, *numbers = match.groups()
    layer, head, query, key = (int(number) - 1 for number in numbers)
    site = next((s for s in model.sites() if (s.kind, s.layer) == (kind, layer)), None)
    if not site or not 0 <= head < site.n_heads:
        kinds = ", ".join(dict.fromkeys(s.kind for s in model.sites()))
        raise CannotRead(f"“{cell}”: this model has no such head. Attention types: {kinds}.")
    for what, number, side in (("query", query, site.query_side), ("key", key, site.key_side)):
        tokens = texts[side].tokens
        if not 0 <= number < len(tokens):
            listed = " ".join(f"{i} {token}" for i, token in enumerate(tokens, start=1))
            raise CannotRead(f"“{cell}”: there is no {what} {number + 1}. The tokens are: {listed}")
    return site, head, query, key


def _without(
    recorded: RecordedPass,
    site: Site,
    head: int,
    query: int,
    key: int,
    others: Tensor,
    tokens: Sequence[tuple[str, int]],
) -> dict[tuple[str, int], Without]:
    """In one pass, a row for each token."""
    if not tokens:
        return {}
    model = recorded.model

    def averaged(side: str):
        def change(embedded: Tensor) -> Tensor:
            embedded = embedded.clone()
            for row, (of, token) in enumerate(tokens):
                if of == side:
                    embedded[row, token] = embedded[row, recorded.real(side)].mean(dim=0)
            return embedded

        return change

    with ExitStack() as stack:
        stack.enter_context(applied(model, recorded.run.changes, recorded.given))
        for name, side in recorded.sides.items():
            token = embedding_of(model, side).token
            stack.enter_context(replace_output(token, averaged(name)))
        attention = attention_at(model, site)
        outputs = stack.enter_context(outputs_of({"s": attention.scores, "w": attention.softmax}))
        ids = [one.expand(len(tokens), -1) for one in ids_of(model, recorded.texts)]
        model.hidden(*ids, *recorded.run.masks.build(model, *ids))
    scores, weights = (outputs[part][:, head, query].double() for part in ("s", "w"))
    margins = scores[:, key] - scores @ others.double()
    return {
        token: Without(float(margin), float(weight))
        for token, margin, weight in zip(tokens, margins, weights[:, key], strict=True)
    }
