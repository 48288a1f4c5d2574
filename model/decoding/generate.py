"""Generation token by token: greedy, by beam search or by sampling, from any prefix, with the
probabilities of every next token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from headlight.model.arguments import kind_of, number, whole
from headlight.model.by_value import ByValue
from headlight.model.decoding.fused import without_padding
from headlight.model.decoding.search import (
    Candidate,
    beam_search,
    check_beam,
    first_token,
    longest,
    steps_for,
)
from headlight.model.masks import Masks
from headlight.model.pause import pause
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.changes import look_ahead
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.trace import CannotRead, ids_of, read_of, vocabulary_of
from headlight.model.sites import ProbedModel, Side
from headlight.model.tokenizer import Encoding, Tokenizer

CONTINUATION = 20  # tokens that a decoder alone adds to its prompt, where nobody says how many


@dataclass(frozen=True)
class Greedy:
    """Greedy decoding: always the most probable next token.

    >>> load("reverse").generate("a b c", Greedy()).text
    'c b a'
    """


@dataclass(frozen=True)
class Beam:
    """The best of `width` targets grown side by side (section 6.1); `alpha` of the length penalty
    (Wu et al. 2016, equation 14).

    >>> load("reverse").generate("a b c", Beam(width=5)).text
    'c b a'
    """

    width: int = 4
    alpha: float = 0.6

    def __post_init__(self):
        check_beam(self.width, self.alpha)


@dataclass(frozen=True)
class Sampling:
    """Tokens drawn from the softmax at a `temperature`; with `top_k`, of the k most probable ones;
    with `top_p`, of the fewest of these that together have the probability p (Holtzman et al.
    2020).

    >>> load("copy").generate("a b c", Sampling(temperature=0.5, top_k=1)).text
    'a b c'
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self):
        number("temperature", self.temperature, 0, 1e9, above=True)
        whole("top_k", self.top_k, 0)
        number("top_p", self.top_p, 0, 1, above=True)
        whole("seed", self.seed, -(2**63), 2**63 - 1)


How = Greedy | Beam | Sampling


@dataclass(frozen=True, repr=False, eq=False)
class Generation(ByValue):
    """The generated text, with the probabilities of each step. Arrays are read-only.

    run            the pass over what was written, which a trace of it shows
    first          the row of its logits that the first step is
    path           the token of each step, the beginning included, with eos where it came
    tokens         what was written, without eos
    probabilities  (step, vocab_size): of every next token, that of eos included
    drawn          (step, vocab_size): what each token was drawn from; the same unless sampled
    score          natural logarithm of the probability of it all, eos included
    beams          of a beam search the candidates of each step, best first
    text           what was written, as text
    """

    run: Run
    first: int
    path: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: np.ndarray
    drawn: np.ndarray
    score: float
    beams: tuple[tuple[Candidate, ...], ...] = field(default=(), repr=False)
    text: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        """What was written, without eos."""
        return self.path[: len(self.tokens)]

    @property
    def ended(self) -> bool:
        """Whether eos was generated; otherwise the length limit was reached."""
        return len(self.path) > len(self.tokens)

    @property
    def nbytes(self) -> int:
        """About, in memory: a candidate is some objects of Python."""
        candidates = sum(map(len, self.beams))
        arrays = {id(array): array.nbytes for array in (self.probabilities, self.drawn)}
        return sum(arrays.values()) + 300 * candidates


def truncated(logits: Tensor, how: How) -> Tensor:
    """The distribution to sample from, (.., vocab_size): temperature first, then top_k, then
    top_p."""
    if not isinstance(how, Sampling):
        return logits.softmax(dim=-1)
    logits = logits / how.temperature
    if 0 < how.top_k < logits.shape[-1]:
        least = logits.topk(how.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    shares = logits.softmax(dim=-1)
    if how.top_p < 1:
        best, order = shares.sort(dim=-1, descending=True, stable=True)
        # a token is kept as long as the ones before it do not reach p
        before = best.cumsum(dim=-1) - best
        shares = shares.masked_fill(
            torch.zeros_like(shares, dtype=torch.bool).scatter(-1, order, before >= how.top_p), 0
        )
        shares = shares / shares.sum(dim=-1, keepdim=True)
    return shares


def no_text(side: Side) -> str:
    """Why a model that predicts this side writes no text; "" where it writes one."""
    does = {
        "next token": "",
        "class": "predicts a class",
        "masked token": "fills in masked tokens",
        "embedding": "turns a text into a vector",
    }[side.predicts]
    return does and f"This model {does}; it writes no text."


@torch.inference_mode()
def generated(
    model: ProbedModel,
    tokenizer: Tokenizer,
    run: Run,
    how: How = Greedy(),
    beginning: Sequence[int] = (),
    max_tokens: int | None = None,
    given: PatchInputs = PatchInputs(),
) -> Generation:
    """What a model writes for the first text of a run, beginning with the ids `beginning`; a
    decoder alone goes on from the text itself. At most `max_tokens`, without it as `translate`.
    `model` must be the caller's own view; `given` is what the run's changes take from elsewhere.

    Raises CannotRead for a model that writes no text, and CannotChange."""
    config, side = model.config, predicted_side(model)
    if why := no_text(side):
        raise CannotRead(why)
    kind_of("how", how, (Greedy, Beam, Sampling), "Greedy(), Beam(…) or Sampling(…)")
    if max_tokens is not None:
        whole("max_tokens", max_tokens, 0)
    for token in beginning:
        whole("an id of the beginning", token, 0, vocabulary_of(model, side) - 1)
    nothing = Encoding((), (), ())
    texts = (run.texts[0], *(nothing for _ in model.sides()[1:]))
    read = read_of(model, Run(texts, pad_to=run.pad_to if side.writes else 0))
    src = ids_of(model, read)[0]
    room = longest(config, src.shape[1]) if side.writes else config.max_length - src.shape[1]
    wanted = max_tokens if max_tokens is not None else room if side.writes else CONTINUATION
    room = min(wanted, room)
    if room < len(beginning):
        raise CannotRead(
            f"The start has {len(beginning)} tokens, but there is room for only {room}."
        )
    start = src.new_tensor([[first_token(config)]]) if side.writes else src
    cached = run.masks.causal and not look_ahead(run.changes, model.sites())
    forced, beams = tuple(beginning), []
    with applied(model, run.changes, given):
        if isinstance(how, Beam) and room > len(forced):
            begun = torch.cat([start, src.new_tensor([forced], dtype=src.dtype)], dim=1)
            (found,) = beam_search(
                model, src, how.width, how.alpha, room - len(forced), run.masks, cached, begun,
                lambda candidates: beams.append(tuple(candidates)),
            )  # fmt: skip
            ended = len(forced) + len(found) < room
            forced = (*forced, *found, *((config.eos_id,) if ended else ()))
            room = len(forced)
        is_known = len(forced) == room and forced and config.eos_id not in forced[:-1]
        if is_known and cached and side.writes:
            path, logits = forced, _read(model, src, start, forced, run.masks)
        else:
            steps = steps_for(model, src, run.masks, room, 1, cached)
            path, logits = _walk(steps, start, forced, room, how, config.eos_id)
    shares = logits.softmax(dim=-1)
    score = float(sum(shares[i, token].log() for i, token in enumerate(path)))
    probabilities = _read_only(shares)
    sampling_probabilities = (
        _read_only(truncated(logits, how)) if isinstance(how, Sampling) else probabilities
    )
    ids = path[:-1] if path[-1:] == (config.eos_id,) else path
    text = tokenizer.target.encoding_with_special(ids)
    texts = (run.texts[0], text) if side.writes else (run.texts[0] + text,)
    written = replace(run, texts=texts, masks=run.masks.over(ids, config.pad_id))
    first = start.shape[1] - 1
    return Generation(
        written,
        first,
        path,
        text.tokens,
        probabilities,
        sampling_probabilities,
        score,
        tuple(beams),
        tokenizer.target.decode(ids),
    )


def _read(
    model: ProbedModel, src: Tensor, tgt: Tensor, path: Sequence[int], masks: Masks
) -> Tensor:
    """The logits of each token of a `path` behind `tgt` that is known, in one pass: as `_walk`
    gives them."""
    tgt = torch.cat([tgt, tgt.new_tensor([path[:-1]], dtype=tgt.dtype)], dim=1)
    ids = (tgt,) if len(model.sides()) == 1 else (src, tgt)
    logits = model(*ids, *replace(masks, tgt_padding=False).build(model, *ids))[0, -len(path) :]
    return without_padding(logits, model.config).double().cpu()


def _walk(
    steps: Callable[[Tensor], Tensor],
    tgt: Tensor,
    forced: Sequence[int],
    room: int,
    how: How,
    eos_id: int,
) -> tuple[tuple[int, ...], Tensor]:
    """The ids behind `tgt`, (1, length), that begin with `forced`, with eos where it comes; and the
    logits of each, in float64, (step, vocab_size)."""
    draw = torch.Generator().manual_seed(how.seed) if isinstance(how, Sampling) else None
    ids, rows = [], []
    while len(ids) < room and ids[-1:] != [eos_id]:
        pause(len(ids), room)
        rows.append(steps(tgt)[0].double().cpu())
        if len(ids) < len(forced):
            token = forced[len(ids)]
        elif draw:
            token = int(torch.multinomial(truncated(rows[-1], how), 1, generator=draw))
        else:
            token = int(rows[-1].argmax())
        ids.append(token)
        tgt = torch.cat([tgt, tgt.new_tensor([[token]])], dim=1)
    return tuple(ids), torch.stack(rows) if rows else torch.zeros(0, 1, dtype=torch.float64)


def _read_only(values: Tensor) -> np.ndarray:
    array = values.numpy()
    array.flags.writeable = False
    return array
