"""Tries a whole Transformer that somebody wrote. What is wrong is judged by what the model does: a
token is changed, and every row of the output compared. Names come from watching it inside."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from headlight.model.checking.calling import message_of
from headlight.model.checking.verdict import RIGHT
from headlight.model.checking.whole import padding, seeing, weights
from headlight.model.checking.whole.patient import Patient
from headlight.model.checking.whole.reader import (
    CAUSAL,
    MODEL_KINDS,
    PAIR,
    SAY_HOW,
    TEXT,
    CannotCall,
    Reader,
    exact,
    find,
    pad_of,
    vocabulary_of,
)
from headlight.model.checking.whole.result import Checkup, Finding, cannot_say, causes
from headlight.model.checking.whole.watching import Observed

LONGEST = 24  # tokens
FILLED = 0.05  # the spread of what stands for zeros
ONE_LENGTH = 6  # of source and target, where these must be equal
BOTH_WAYS = 'It reads in both directions. If it is to write text, say kind="causal".'


@contextmanager
def quiet() -> Iterator[None]:
    """One thread, and none of PyTorch's fast paths, which know no hooks and cut padding off. A
    hundred small passes on many threads would wait for each other."""
    fast, threads = torch.backends.mha.get_fastpath_enabled(), torch.get_num_threads()
    state = torch.random.get_rng_state()
    torch.backends.mha.set_fastpath_enabled(False)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.set_num_threads(threads)
        torch.random.set_rng_state(state)


def check_model(
    model: nn.Module, tokenizer: Any = None, adapter: Callable | None = None, kind: str = "",
    pad: int | None = None, longest: int = LONGEST, is_tied: bool = False,
) -> Checkup:  # fmt: skip
    """Tries a copy of a model; the model itself stays as it is.

    tokenizer   says the id of padding, if the model does not
    adapter     how to call it, as `lambda model, src, tgt: model(src, tgt, my_mask(src))`, with
                `src` and `tgt` of shape (batch, length), for logits (batch, length, vocabulary)
    kind        pair (source and target), causal (predicts its next token) or text
    pad         the id of padding
    longest     a number of tokens that it should read
    is_tied     whether embedding and output layer should share their weights

    What fails in the model is a finding. Raises ValueError for what is no model or no kind."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"A check-up takes an nn.Module, not a {type(model).__name__}.")
    if kind not in ("", *MODEL_KINDS):
        raise ValueError(f"There is no kind {kind!r}. Choose from {', '.join(MODEL_KINDS)}.")
    start = time.perf_counter()
    calling = {"tokenizer": tokenizer, "adapter": adapter, "kind": kind, "pad": pad}
    with quiet():
        try:
            p, is_unsure = _examined(model, calling)
        except Exception as error:  # of the model
            how, findings = _called_wrongly(model, calling, error)
        else:
            how, findings = p.reader.how, [*_findings(p, longest, is_tied)]
            if is_unsure:
                findings.append(cannot_say("The future", BOTH_WAYS))
    seconds = time.perf_counter() - start
    return Checkup(type(model).__name__, how, causes(findings), seconds)


def _examined(model: nn.Module, calling: dict[str, Any]) -> tuple[Patient, bool]:
    """A copy that runs, in float64 if it can, and whether its kind is unsure."""
    try:
        p, is_unsure = _filled(exact(model), calling)
        if p.base().isfinite().all():
            return p, is_unsure
    except Exception as error:
        if not re.search("dtype|double|float", str(error), re.IGNORECASE):
            raise
    p, is_unsure = _filled(exact(model).float(), calling)  # it makes float32 itself
    p.base()
    return p, is_unsure


def _filled(model: nn.Module, calling: dict[str, Any]) -> tuple[Patient, bool]:
    """Fill matrices of zeros with small numbers: nothing passes through a zero."""
    named = model.named_parameters()
    zeros = [name for name, each in named if each.ndim > 1 and not each.any()]
    for name in zeros:
        nn.init.normal_(model.get_parameter(name), std=FILLED)
    p, is_unsure = patient_of(model, calling)
    p.zeros = zeros
    return p, is_unsure


def patient_of(model: nn.Module, calling: dict[str, Any]) -> tuple[Patient, bool]:
    """A model in eval mode with the way in which it is called, and whether its kind is unsure.
    `calling`: what `find` takes. Raises CannotCall, and what the model does."""
    size = vocabulary_of(model)
    reader = find(model, score=lambda each: _score(Patient(model, each, size)), **calling)
    is_unsure = not reader.kind
    p = Patient(model, replace(reader, kind=reader.kind or TEXT), size)
    found, seen = p.influence(p.own_side), p.watch()
    is_square = len(found) == found.shape[1]
    if is_unsure and is_square:
        is_causal = float(found.triu(1).max()) < p.least or _is_meant_causal(model, seen)
        is_causal |= p.base().shape[-1] >= size and _says_causal(type(model))
        reader = replace(p.reader, kind=CAUSAL if is_causal else TEXT)
        is_unsure = not is_causal and p.base().shape[-1] >= size
    else:
        reader, is_unsure = p.reader, False
    told = {number for number in seen.compared if 0 <= number < size}
    told = told - reader.specials if told - reader.specials else told
    if pad_of(model, calling.get("tokenizer")) is None is calling.get("pad") and told:
        pad = min(told)
        reader = replace(reader, pad=pad, specials=reader.specials | {pad})
    if is_square and len(found) > 1 and reader.kind != TEXT:
        is_read = float(found.diagonal(-1).min()) > p.least * seeing.NEAR
        reader = replace(reader, shifts=is_read and float(found.tril().diagonal().max()) < p.least)
    return Patient(model, reader, size), is_unsure


def _says_causal(kind: type) -> bool:
    """Whether a class that gives logits of words writes text, by what it can do or its words."""
    words = f"{kind.__doc__} {getattr(sys.modules.get(kind.__module__), '__doc__', '')}"
    return hasattr(kind, "generate") or bool(re.search(
        "language model|next (token|word|character)|autoregressive|causal|decoder.only|GPT", words
    ) and not re.search("[Mm]asked|BERT", words))  # fmt: skip


def _is_meant_causal(model: nn.Module, seen: Observed) -> bool:
    """Whether a model that reads in both directions has something of a causal mask: a triangle, or
    attention that hides what is later more than what is earlier."""
    squares = (x for x in model.buffers() if x.ndim > 1 and x.shape[-1] == x.shape[-2] > 1)
    hidden = (each.weights == 0 for each in seen.attended)
    return (seen.is_triangular or any(bool((x.triu(1) == 0).all()) for x in squares if x.any())
            or any(x.triu(1).sum() > x.tril(-1).sum() for x in hidden))  # fmt: skip


def _score(p: Patient) -> tuple[int, int]:
    """How well texts of a batch stay apart, and how many other laws are kept: with the masks that a
    model was written for, the most. 2: wholly; 1: only their place matters, and all else is
    right."""
    base, (neighbour, order) = p.base(), p.company()
    p.alone = order > p.between
    kept = [bool(base.isfinite().all())] * 2
    if p.reader.pad is not None and p.reader.kind != CAUSAL:
        kept.append(padding.padding_gap(p) < p.between)
    if p.reader.kind in (PAIR, CAUSAL):
        found = p.influence(p.own_side)
        below = torch.ones_like(found).tril(-1) > 0
        kept.append(float(found.triu(1).max()) < p.least)
        kept.append(bool((found[below] > p.least * seeing.NEAR).all()))
    apart = 0 if neighbour > p.between else 1 if p.alone and all(kept) else 2 * (not p.alone)
    return apart, sum(kept)


def _findings(p: Patient, longest: int, is_tied: bool) -> Iterator[Finding]:
    """Of one trial after another."""
    yield seeing.numbers(p)
    yield (twice := seeing.same_twice(p))
    if twice.fault == "random in eval":
        return  # nothing can be compared
    writes, always = p.reader.kind in (PAIR, CAUSAL), True
    tried: dict[Callable[[Patient], Finding | list[Finding] | None], bool] = {
        seeing.own_text: always, seeing.future: writes, seeing.reach: always,
        seeing.source: p.pair, seeing.apart: always,
        padding.padding: always, weights.softmax_axis: always, weights.scale: always,
        weights.positions: always, seeing.diagonal: writes, seeing.prefix: writes,
        seeing.cached: writes, seeing.residuals: always, weights.distances: always,
        weights.norms: always, weights.feed_forward: always,
        partial(weights.length, longest=longest): always, weights.gradients: always,
        weights.with_loss: always, weights.shared_layers: always, weights.sizes_of_inputs: always,
        partial(weights.tied, said=is_tied): always, weights.outputs: always,
    }  # fmt: skip
    for trial in (trial for trial, is_tried in tried.items() if is_tried):
        try:
            found = trial(p)
        except Exception as error:  # of the model
            name = getattr(trial, "func", trial).__name__.replace("_", " ").capitalize()
            found = cannot_say(name, f"The model fails: {message_of(error)[:160]}.")
        yield from found if isinstance(found, list) else [found] if found else []


def _called_wrongly(
    model: nn.Module, calling: dict[str, Any], error: Exception
) -> tuple[str, list[Finding]]:
    """Why a model cannot be called. Where source and target have to be equally long, that is a
    symptom."""
    try:
        copied, lengths = exact(model), (ONE_LENGTH, ONE_LENGTH)
        size = vocabulary_of(copied)

        def runs(reader: Reader) -> tuple[int, int]:
            return 2, int(Patient(copied, reader, size, lengths).base().isfinite().all())

        reader = find(copied, score=runs, **calling)
        found = seeing.own_text(Patient(copied, reader, size, lengths))
        if reader.kind == PAIR and found.state != RIGHT:
            case = f"{found.case} It fails unless source and target are equally long."
            return reader.how, [replace(found, case=case)]
    except Exception:  # of the model
        pass
    because = str(error)
    if not isinstance(error, CannotCall):
        because = f"The model fails: {message_of(error)[:160]}. {SAY_HOW}"
    return "", [cannot_say("Calling it", because)]
