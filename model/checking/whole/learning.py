"""Loss and decoding, tried cheaply. A loss and a way of decoding are called with models
that know the answer, so what is right is a number, and nothing is trained."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headlight.model.checking.calling import message_of
from headlight.model.checking.whole.result import Checkup, Finding, cannot_say, fails, right

SURE = 8.0  # logit of an answer
Answer = Callable[[Tensor], Tensor]
START, SHIFT, NEXT = "The start", "The shift", "The next token"
NOTHING_LEFT = 1e-5  # of a loss that does not change


class Knowing(nn.Module):
    """Called like any model; `answer` makes log-probabilities, (batch, length, vocabulary), of the
    ids that it reads. `read`: what it was called with."""

    def __init__(self, answer: Answer, pair: bool):
        super().__init__()
        self.answer, self.pair = answer, pair
        self.read: list[Tensor] = []
        self.weight = nn.Parameter(torch.zeros(()))  # so that a loss has a gradient

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        given = (*args, *kwargs.values())
        ids = [x for x in given if isinstance(x, Tensor) and x.ndim == 2 and _is_ids(x)]
        return self.decode(ids[1] if self.pair and len(ids) > 1 else ids[0])

    def encode(self, src: Tensor, *masks: Any, **more: Any) -> Tensor:
        """Where decoding calls the two halves one by one."""
        return torch.zeros(*src.shape, 4)

    def decode(self, *args: Any, **more: Any) -> Tensor:
        """The same, of the first ids that it is given."""
        ids = next(x for x in args if isinstance(x, Tensor) and _is_ids(x))
        self.read.append(ids)
        return self.answer(ids) + 0 * self.weight


def _is_ids(x: Tensor) -> bool:
    return x.dtype in (torch.long, torch.int)


def _sure(answers: Tensor, size: int, how: float = SURE) -> Tensor:
    """Log-probabilities of a model that is sure of these ids."""
    return (how * F.one_hot(answers.clamp(0, size - 1), size).float()).log_softmax(-1)


def check_loss(
    loss: Callable[..., Tensor], size: int, pad: int = 0, bos: int = 1, eos: int = 2,
    pair: bool = True,
) -> Checkup:  # fmt: skip
    """Tries `loss(model, src, tgt)`, or without `pair` `loss(model, ids)`, a number. `tgt` and
    `ids`: (batch, length); they begin with `bos`, end with `eos` and are padded. `size`: of the
    vocabulary, more than 12. What fails in it is a finding."""
    start = time.perf_counter()
    try:
        findings = _loss_findings(loss, size, pad, bos, eos, pair)
    except Exception as error:  # of the student's code
        findings = [cannot_say("The loss", f"It fails: {message_of(error)[:160]}.")]
    return Checkup("loss", "", findings, time.perf_counter() - start)


def _loss_findings(loss, size, pad, bos, eos, pair) -> list[Finding]:
    draw, lengths = torch.Generator().manual_seed(0), (9, 6, 4)
    tgt = torch.full((len(lengths), max(lengths) + 2), pad)
    words = [i for i in range(size) if i not in (pad, bos, eos)]
    for row, n in zip(tgt, lengths, strict=True):
        some = [words[i] for i in torch.randperm(len(words), generator=draw)[:n].tolist()]
        row[: n + 2] = torch.tensor([bos, *some, eos])
    src = tgt[:, 1:9].flip(0)
    edges = torch.full((len(tgt), 1), bos), torch.full((len(tgt), 4), pad)
    wide = torch.cat([edges[0], tgt, edges[1]], 1)

    def after(read: Tensor, by: int) -> Tensor:
        """The token `by` places after each one that is read."""
        n = read.shape[1]
        for first in (1, 0):  # with a start token of its own, or two
            if torch.equal(read, wide[:, first : first + n]):
                return wide[:, first + by : first + by + n]
        return torch.full_like(read, pad)

    def of(answer: Answer) -> float:
        texts = (src, tgt) if pair else (tgt,)
        return float(loss(Knowing(answer, pair), *texts).detach())

    values = [of(lambda read, by=by: _sure(after(read, by), size)) for by in (0, 1, 2)]
    best = values.index(min(values))
    told = ", ".join(f"{value:.2g}" for value in values)
    case = f"Loss of a model that says the token it reads, the next, and the one after: {told}."
    name = ("target not shifted", "", "shifted twice")[best]
    found = [fails(SHIFT, name, case) if name else right(SHIFT, case)]

    def wrong_at_padding(read: Tensor) -> Tensor:
        answers = after(read, best)
        other = torch.where(answers == pad, words[0], answers)
        return _sure(other, size)

    other = of(wrong_at_padding)
    if abs(values[best] - other) > NOTHING_LEFT:
        case = f"With other answers at padding, {values[best]:.3g} becomes {other:.3g}."
        found.append(fails("Padding in the loss", "loss counts padding", case))
    else:
        found.append(right("Padding in the loss", "Answers at padding change nothing."))
    even, flat = math.log(size), of(lambda read: torch.full((*read.shape, size), -math.log(size)))
    if abs(flat / even - 1) > 0.02:
        is_sum = abs(flat / sum(n + 1 for n in lengths) / even - 1) < 0.05
        case = f"It is {flat:.3g}, where ln {size} is {even:.3g}"
        case += ": a sum over tokens." if is_sum else "."
        found.append(fails(START, "loss does not start at ln V", case))
    else:
        found.append(right(START, f"{flat:.3g} for a model that knows nothing: ln {size}."))
    if best == 1:
        surer = of(lambda read: _sure(after(read, 1), size, 4 * SURE))
        if surer > 0.5 and abs(surer / values[1] - 1) < 0.2:
            case = f"However sure the model is of the right token, the loss stays at {surer:.2g}."
            found.append(fails("The softmax", "softmax twice", case))
        elif not any(each.fault for each in found):
            least = -float(_sure(torch.tensor([0]), size)[0, 0])
            smoothing = (values[1] - least) / (SURE * (size - 1) / size)
            said = f"ε = {smoothing:.2g}." if smoothing > 1e-3 else "None."
            found.append(right("Label smoothing", said))
    return found


SCRIPT = [7, 5, 9, 6]  # what is to be written, and what a model says after the end
AFTER_END = [11, 12, 13]


def check_decoding(
    write: Callable[..., Any], size: int = 20, bos: int = 1, eos: int = 2, pair: bool = True,
    beams: bool = False,
) -> Checkup:  # fmt: skip
    """Tries `write(model, src)`, which gives the ids of one text; `src`: (1, length), the source,
    or without `pair` the text to go on with. `beams`: whether it is a beam search. `size`: of the
    vocabulary, at least 20; `bos` and `eos` below 4. What fails in it is a finding."""
    start = time.perf_counter()
    src = torch.tensor([[8, 10, 14, eos]]) if pair else torch.tensor([[bos]])
    model = Knowing(_fork(size, eos) if beams else _script(size, eos), pair)
    try:
        with torch.no_grad():
            ids = write(model, src)
        if isinstance(ids, list | tuple) and ids and isinstance(ids[0], list | Tensor):
            ids = ids[0]
        ids = torch.as_tensor(ids).flatten().tolist()
        if not model.read:
            raise ValueError("the model was not called")
    except Exception as error:  # of the student's code
        findings = [cannot_say("Decoding", f"It fails: {message_of(error)[:160]}.")]
    else:
        findings = _text_findings(ids, model.read[0][0].tolist(), bos, eos, beams)
    return Checkup("decoding", "", findings, time.perf_counter() - start)


def _script(size: int, eos: int) -> Answer:
    """Writes SCRIPT, whatever it reads; another token is nearly as likely."""

    def answer(read: Tensor) -> Tensor:
        script = torch.tensor([*SCRIPT, eos, *AFTER_END])
        at = torch.arange(read.shape[1]).clamp(max=len(script) - 1)
        logits = SURE * F.one_hot(script[at], size).float()
        logits[:, 15] = SURE - 2
        return logits.log_softmax(-1).expand(len(read), -1, -1)

    return answer


def _fork(size: int, eos: int) -> Answer:
    """After the start a short way (3, then the end) or a longer one (four times 4, then the end),
    which is likelier for each token and less likely in all."""

    def row(ids: list[int]) -> Tensor:
        odds, last = torch.full((size,), 1e-13), ids[-1]
        if last == 4:
            odds[4 if ids.count(4) < 4 else eos], odds[5] = 0.8, 0.2
        elif last in (3, 5):
            odds[eos] = 1.0
        else:
            odds[3] = odds[4] = 0.5
        return odds.log()

    return lambda read: torch.stack([
        torch.stack([row(ids[: n + 1]) for n in range(len(ids))]) for ids in read.tolist()
    ])  # fmt: skip


def _text_findings(ids: list[int], first: list[int], bos: int, eos: int, beams: bool):
    found, is_started = [], first[0] == bos
    if not is_started:
        found.append(fails(START, "start token missing", f"The decoder first reads {first}."))
    body = [each for each in (ids if is_started else ids[1:]) if each != bos]
    cut = body[: body.index(eos)] if eos in body else body
    rest = [each for each in body[len(cut) :] if each not in (eos, 0)]
    case = f"It writes {body[:10]}."
    if beams:
        is_fair, title = cut == [4] * 4, "Beams"
        case = f"It writes {cut}; each token of [4, 4, 4, 4] is likelier."
        return [*found, right(title, "It compares texts of different lengths fairly.") if is_fair
                else fails(title, "beam prefers short texts", case)]  # fmt: skip
    if len(body) > 1 and {*body} == {SCRIPT[0]}:
        return [*found, fails(NEXT, "reads the wrong row", case)]
    if cut[: len(SCRIPT)] != SCRIPT:
        return [*found, fails(NEXT, "not greedy", f"It writes {cut[:10]}; right is {SCRIPT}.")]
    if rest or len(cut) > len(SCRIPT):
        return [*found, fails("The end", "never stops", case)]
    return [*found, right(NEXT, "The most likely one, from the last row, until the end.")]
