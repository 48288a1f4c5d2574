"""From source ids to target ids: greedy and beam search, with a key-value cache."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from headlight.model.arguments import number, whole
from headlight.model.decoding import cache, fused
from headlight.model.families.rotary import turns_of
from headlight.model.masks import Masks
from headlight.model.pause import pause
from headlight.model.probing.sites import kinds_of
from headlight.model.probing.trace import CannotRead, vocabulary_of
from headlight.model.sites import ProbedModel
from headlight.model.transformer import Config, Transformer


class NextTokens(Protocol):
    """The logits of the next token for a batch of growing texts, one call a step."""

    def __call__(self, tgt: Tensor, /) -> Tensor:
        """Texts so far, (row, length) → logits, (row, vocab_size)."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Replace texts by others of the same sentence."""

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences go on."""


class Continuations:
    """As `Steps`, of a decoder alone: the logits behind growing texts. With a cache the prompt is
    read in one pass, and then token by token; else each text in a whole pass. Where a text is so
    long that all of it turns by other angles, it is read anew."""

    def __init__(self, model: ProbedModel, masks: Masks, capacity: int, cached: bool):
        # All of one length, as in `Steps`: a pad in them is a token that was written, or typed.
        self.model, self.masks = model, replace(masks, tgt_padding=False)
        self.capacity, self.cached = capacity, cached
        self.turns: list[int] = []
        self.one_by_one: cache.OneByOne[ProbedModel] | None = None

    def __call__(self, tgt: Tensor) -> Tensor:
        (mask,) = self.masks.build(self.model, tgt)
        if not self.cached:
            return self.model(tgt, mask)[:, -1]
        turns = turns_of(self.model, tgt.shape[1])
        if self.one_by_one is None or self.turns != turns:
            self.one_by_one = cache.OneByOne(self.model, self.capacity)
            self.turns, self.read = turns, 0
        start, self.read = self.read, tgt.shape[1]
        mask = mask if mask is None else mask[..., start:, :]
        hidden = self.one_by_one.model.hidden(tgt[:, start:], mask)
        return self.model.logits(hidden[:, -1], tgt[:, -1])

    def reorder(self, rows: Tensor) -> None:
        if self.one_by_one:
            self.one_by_one.reorder(rows)

    def keep(self, sentences: Tensor) -> None:
        """There is one prompt, and it goes on."""


class Steps:
    """The logits of the next token for a batch of growing targets, one call a step.

    Rows are `beam` targets for each sentence. The cache is causal by construction; without the
    causal mask, it must be off.
    """

    def __init__(
        self, model: Transformer, src: Tensor, masks: Masks, capacity: int, beam: int, cached: bool
    ):
        # Growing targets have equal length: a pad token in them was generated.
        self.model, self.masks, self.beam = model, replace(masks, tgt_padding=False), beam
        of_kind = self._masks(src, src, masks)
        self.memory_mask, src_mask = of_kind.get("cross"), of_kind.get("encoder")
        self.src, self.memory = src, model.encode(src, src_mask)
        self._take(torch.arange(len(src), device=src.device).repeat_interleave(beam))
        self.one_by_one = cache.OneByOne(model, capacity) if cached else None
        # Else the newest token may attend to all that a cache holds.
        self.is_local = model.window > 0

    def __call__(self, tgt: Tensor) -> Tensor:
        """Targets so far, (row, length) → logits, (row, vocab_size)."""
        decode, tgt_mask = self.model.decode, None
        if self.is_local or not self.one_by_one:
            tgt_mask = self._masks(self.src, tgt, self.masks).get("decoder")
        if self.one_by_one:
            decode, tgt = self.one_by_one.model.decode, tgt[:, -1:]
            tgt_mask = tgt_mask if tgt_mask is None else tgt_mask[..., -1:, :]
        hidden = decode(tgt, self.memory, tgt_mask, self.memory_mask)
        return fused.without_padding(self.model.generator(hidden[:, -1]), self.model.config)

    def reorder(self, rows: Tensor) -> None:
        """Targets take the places of others of the same sentence."""
        if self.one_by_one:
            self.one_by_one.reorder(rows)

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences go on."""
        beams = torch.arange(self.beam, device=sentences.device)
        rows = (sentences[:, None] * self.beam + beams).flatten()
        self._take(rows)
        if self.one_by_one:
            self.one_by_one.keep(rows)

    def _masks(self, src: Tensor, tgt: Tensor, masks: Masks) -> dict[str, Tensor | None]:
        """Kind of attention → its mask; a decoder may have none to itself."""
        kinds = kinds_of(self.model.sites())
        return dict(zip(kinds, masks.build(self.model, src, tgt), strict=True))

    def _take(self, rows: Tensor) -> None:
        self.src, self.memory = self.src[rows], self.memory[rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[rows]


def steps_for(
    model: ProbedModel, src: Tensor, masks: Masks, capacity: int, beam: int, cached: bool
) -> NextTokens:
    """The quickest way through `model` that gives the same logits; the `src` of a decoder alone is
    its prompt."""
    if cached and not masks.causal:
        raise ValueError("a key-value cache needs the causal mask")
    # With a cache nobody asks for a causal mask, so it would be ours.
    cached = cached and "causal_mask" not in model.mask_makers
    if len(model.sides()) == 1:
        capacity += src.shape[1]
        return Continuations(model, masks, capacity, cached and cache.fits(model))
    assert isinstance(model, Transformer)
    if cached and fused.fits(model):
        return fused.FusedSteps(model, src, masks, capacity, beam)
    return Steps(model, src, masks, capacity, beam, cached and cache.fits(model))


def first_token(config: Config) -> int:
    """What a target begins with. Raises CannotRead for a system that has no such token."""
    if config.bos_id < 0:
        raise CannotRead(
            f"This model has no token that starts a target (its bos_id is {config.bos_id}), so "
            "it cannot write one."
        )
    return config.bos_id


def longest(config: Config, src_length: int) -> int:
    """How many tokens a translation may have: generous, and within what the model reads."""
    return min(2 * src_length + 20, config.max_length - 1)


def check_beam(width: int, alpha: float) -> None:
    """Raises ValueError."""
    whole("the beam's width", width, 1)
    number("alpha", alpha, -10, 10)


def check_source(model: ProbedModel, src: Tensor, max_length: int, begun: int) -> None:
    """Raises ValueError for ids that the model does not have, and where a target that has `begun`
    may not have so many tokens more."""
    if src.ndim != 2 or not src.numel():
        raise ValueError(f"src must be (batch, length), at least one id, not {tuple(src.shape)}.")
    side = model.sides()[0]
    for token in (int(src.min()), int(src.max())):
        whole(f"an id of the {side.title}", token, 0, vocabulary_of(model, side) - 1)
    whole("max_length", max_length, 0, max(model.config.max_length - begun, 0))


def most_probable(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1)


@torch.inference_mode()
def greedy_decode(
    model: ProbedModel,
    src: Tensor,
    max_length: int | None = None,
    masks: Masks = Masks(),
    use_cache: bool = True,
    choose: Callable[[Tensor], Tensor] = most_probable,
) -> list[list[int]]:
    """The most probable next token, again and again, until eos, or `max_length` tokens where none
    comes: (batch, src) → ids, without bos and eos, one list a sentence. Another way to `choose`
    takes logits, (row, vocab_size), and gives the token of each row."""
    config, bos = model.config, first_token(model.config)
    max_length = longest(config, src.shape[1]) if max_length is None else max_length
    check_source(model, src, max_length, 1)
    steps = steps_for(model, src, masks, max_length, 1, use_cache)
    tgt = src.new_full((len(src), 1), bos)
    going = list(range(len(src)))  # row → sentence
    targets: list[list[int]] = [[] for _ in going]
    for length in range(max_length):
        pause(length, max_length)
        best = choose(steps(tgt))
        tokens = best.tolist()
        rows = [row for row, token in enumerate(tokens) if token != config.eos_id]
        if not rows:
            break
        for row in rows:
            targets[going[row]].append(tokens[row])
        if len(rows) < len(going):
            going = [going[row] for row in rows]
            remaining = torch.tensor(rows, device=src.device)
            steps.keep(remaining)
            tgt, best = tgt[remaining], best[remaining]
        tgt = torch.cat([tgt, best[:, None]], dim=1)
    return targets


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by, so that long targets are not at a disadvantage
    (Wu et al. 2016, equation 14)."""
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True)
class Candidate:
    """A target that one step of a beam search considers: `token` behind the target in the place
    `parent` of the step before; its log-probability, and its score, where the length penalty is
    taken off. It goes on in the place `row` of this step, or has ended, or is left out."""

    parent: int
    token: int
    log_probability: float
    score: float
    row: int | None
    ended: bool


@torch.inference_mode()
def beam_search(
    model: ProbedModel,
    src: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    max_length: int | None = None,
    masks: Masks = Masks(),
    use_cache: bool = True,
    start: Tensor | None = None,
    hear: Callable[[Sequence[Candidate]], None] | None = None,
) -> list[list[int]]:
    """The best of `beam` targets grown side by side (section 6.1): (batch, src) → ids, without
    bos and eos, one list a sentence.

    A sentence is done when `beam` targets have ended and none that still grows is better. Targets
    begin with `start`, (batch, length), else with bos; ids are what follows. `hear` is told the
    candidates of each step, best first; with it, of one sentence.
    """
    config = model.config
    max_length = longest(config, src.shape[1]) if max_length is None else max_length
    if start is None:
        start = src.new_full((len(src), 1), first_token(config))
    begun = start.shape[1]
    check_beam(beam, alpha)
    check_source(model, src, max_length, begun)
    if not max_length:
        return [[] for _ in src]
    steps = steps_for(model, src, masks, begun - 1 + max_length, beam, use_cache)
    tgt = start.repeat_interleave(beam, dim=0)
    for known in range(1, begun):
        pause()
        steps(tgt[:, :known])
    # All beams of a sentence start identical, so only the first may be expanded.
    grown = torch.full((len(src), beam), -torch.inf, device=src.device)
    grown[:, 0] = 0.0  # log-probabilities, (sentence, beam)
    going = list(range(len(src)))
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in going]
    penalty = 1.0
    for length in range(1, max_length + 1):
        pause(length - 1, max_length)
        penalty = length_penalty(length, alpha)
        logits = steps(tgt).float().log_softmax(dim=-1)
        total = (logits + grown.view(-1, 1)).view(len(going), -1)
        # At most one candidate of each beam is eos, so twice the beam width leaves enough to
        # continue.
        best, where = total.topk(min(2 * beam, total.shape[1]))
        parent, token = where // logits.shape[1], where % logits.shape[1]
        eos = token == config.eos_id
        for row, rank in eos[:, :beam].nonzero().tolist():
            ids = tgt[row * beam + parent[row, rank], begun:].tolist()
            ended[going[row]].append((best[row, rank].item() / penalty, ids))
        grown, chosen = best.masked_fill(eos, -torch.inf).topk(beam)
        if hear:
            ranks = zip(*(some[0].tolist() for some in (parent, token, best, eos)), strict=True)
            places = {rank: row for row, rank in enumerate(chosen[0].tolist())}
            hear(
                [
                    Candidate(above, ident, p, p / penalty, places.get(rank), end and rank < beam)
                    for rank, (above, ident, p, end) in enumerate(ranks)
                    if p > -torch.inf
                ]
            )
        first = torch.arange(len(going), device=src.device)[:, None] * beam
        parents = (parent.gather(1, chosen) + first).flatten()
        tgt = torch.cat([tgt[parents], token.gather(1, chosen).view(-1, 1)], dim=1)
        steps.reorder(parents)

        hope = (grown[:, 0] / penalty).tolist()
        rows = []
        for row, sentence in enumerate(going):
            ended[sentence] = sorted(ended[sentence], reverse=True)[:beam]
            if len(ended[sentence]) < beam or ended[sentence][-1][0] < hope[row]:
                rows.append(row)
        if not rows:
            break
        if len(rows) < len(going):
            going = [going[row] for row in rows]
            remaining = torch.tensor(rows, device=src.device)
            grown = grown[remaining]
            steps.keep(remaining)
            tgt = tgt.view(-1, beam, tgt.shape[1])[remaining].flatten(0, 1)
    for row, sentence in enumerate(going):  # length limit reached: unfinished targets count, too
        ended[sentence].append((grown[row, 0].item() / penalty, tgt[row * beam, begun:].tolist()))
    return [max(targets)[1] for targets in ended]
