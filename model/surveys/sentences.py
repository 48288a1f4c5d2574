"""Many sentences: read from a file, and the attention weights of each, many at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import outputs_of
from headlight.model.probing.changes import Change
from headlight.model.probing.sites import (
    attention_at,
    device_of,
    kinds_of,
    predicted_side,
    sides_of,
)
from headlight.model.probing.trace import (
    TooLong,
    check_length,
    end_of,
    next_tokens_of,
    with_special_tokens,
)
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.surveys.tables import together
from headlight.model.tokenizer import Encoding
from headlight.model.training.data import DataError, batches, pad_ids, read_lines, with_special_ids

BATCH = 1024  # tokens of a batch, on either side, with padding
WINDOW = 2**15  # weights of one head


@dataclass(frozen=True)
class Line:
    """A text to trace; `number` is its line number, from 1. Without a target the model writes
    one."""

    number: int
    source: str
    target: str | None = None


@dataclass(frozen=True)
class Sentence:
    """What the sides of a model read of a line: ids, special tokens included. None until the
    model has written it."""

    number: int
    texts: tuple[list[int] | None, ...]


@dataclass(frozen=True)
class SentenceAttention:
    """The attention weights of a model's heads in one sentence: the part of a Trace that
    tables.py is about."""

    number: int
    sides: dict[str, Side]
    sites: tuple[Site, ...]
    texts: dict[str, Encoding]
    next_tokens: tuple[str, ...]
    shifts: dict[str, np.ndarray]
    attention: dict[str, np.ndarray]


def read(path: Path) -> list[Line]:
    """Lines that hold a source, or source and target with a tab between; blank ones are left
    out. Raises DataError."""
    lines = []
    for number, text in enumerate(read_lines(path), start=1):
        source, *targets = text.split("\t")
        if not text.strip():
            continue
        if len(targets) > 1 or not all(column.strip() for column in (source, *targets)):
            raise DataError(
                f"{path}, line {number:,}: each line must be a source, or source and target "
                "separated by one tab."
            )
        lines.append(Line(number, source, *targets))
    return lines


def encode(checkpoint: Checkpoint, lines: list[Line]) -> list[Sentence]:
    """Lines as ids. Raises DataError for a line that this model cannot read."""
    config, sides = checkpoint.model.config, checkpoint.model.sides()
    for line in lines:
        try:
            f"{line.source}{line.target}".encode()
        except UnicodeEncodeError:  # a byte of the command line that Python could not read
            raise DataError(f"{_where(line, lines)}The text is not UTF-8.") from None
        try:
            for side, text in zip(sides, (line.source, line.target or ""), strict=False):
                tokenizer = checkpoint.tokenizer.target if side.writes else checkpoint.tokenizer
                check_length(tokenizer, side, text, config.max_length)
        except TooLong as error:
            raise DataError(f"{_where(line, lines)}{error}") from None
    sources = checkpoint.tokenizer.encode_batch([line.source for line in lines])
    targets = checkpoint.tokenizer.target.encode_batch([line.target or "" for line in lines])
    sentences = []
    for line, *ids in zip(lines, sources, targets, strict=True):
        where = _where(line, lines)
        if line.target is not None and len(sides) == 1:
            raise DataError(f"{where}This model reads one text and no target.")
        texts = []
        for side, of_side in zip(sides, ids, strict=False):
            text = with_special_ids(side, of_side, config)
            missing = side.writes and line.target is None
            if missing and not side.begins:
                raise DataError(
                    f"{where}This model needs a target. It has no token that starts one (its "
                    f"bos_id is {config.bos_id}), so it cannot write one itself."
                )
            if not text:
                raise DataError(f"{where}The {side.title} is empty.")
            if len(text) > config.max_length:
                raise DataError(f"{where}{TooLong(side.title, len(text), config.max_length)}")
            texts.append(None if missing else text)
        sentences.append(Sentence(line.number, tuple(texts)))
    return sentences


def _where(line: Line, lines: list[Line]) -> str:
    return f"Line {line.number:,}: " if len(lines) > 1 else ""


def windows(sentences: Sequence[Sentence], most: int = WINDOW) -> Iterator[list[Sentence]]:
    """Sentences in order, in windows whose weights fit into memory."""

    def size(sentence):  # weights of one head
        return max(len(text or ()) for text in sentence.texts) ** 2

    return together(sentences, size, most)


def write_targets(checkpoint: Checkpoint, sentences: list[Sentence]) -> list[Sentence]:
    """The same sentences, each with its own target or else the model's greedy output."""
    model, written = checkpoint.model, list(sentences)
    missing = [(s.texts[0], s.texts[0], i) for i, s in enumerate(sentences) if None in s.texts]
    for batch in _batches(checkpoint, missing) if missing else ():
        src = _padded(checkpoint, [src for src, _, _ in batch], "src")
        for (source, _, i), ids in zip(batch, greedy_decode(model, src), strict=True):
            target = with_special_ids(model.sides()[1], ids, model.config)
            written[i] = replace(sentences[i], texts=(source, target))
    return written


def attend(
    checkpoint: Checkpoint, sentences: list[Sentence], changes: Sequence[Change] = ()
) -> list[SentenceAttention]:
    """The attention weights of each sentence, in their order, under the standard masks and the
    changes. Those of similar length go through the model together. A target that is missing is
    written unchanged."""
    results: dict[int, SentenceAttention] = {}
    sides, sites = sides_of(checkpoint.model), checkpoint.model.sites()
    shifts, predicted = checkpoint.shifts(), predicted_side(checkpoint.model)
    end = end_of(checkpoint.model.config)
    # Batches consist of pairs; a single text is paired with itself.
    pairs = [
        (s.texts[0], s.texts[-1], i) for i, s in enumerate(write_targets(checkpoint, sentences))
    ]
    for batch in _batches(checkpoint, pairs):
        ids = [
            _padded(checkpoint, [pair[n] for pair in batch], side) for n, side in enumerate(sides)
        ]
        with applied(checkpoint.model, changes, PatchInputs(checkpoint.means)):
            masks = Masks().over(batch[0][1][1:], checkpoint.model.config.pad_id)
            attention = attention_of(checkpoint.model, sites, ids, masks)
        for row, (*pair, i) in enumerate(batch):
            texts = dict(zip(sides, pair, strict=False))
            encodings = {
                name: with_special_tokens(
                    sides[name], text_of(checkpoint, sides[name], text), checkpoint.model.config
                )
                for name, text in texts.items()
            }
            results[i] = SentenceAttention(
                sentences[i].number,
                sides,
                sites,
                encodings,
                next_tokens_of(predicted, encodings, end),
                shifts,
                {
                    kind: attention[kind][row, :, :, : len(texts[query]), : len(texts[key])]
                    for kind, (site, *_) in kinds_of(sites).items()
                    for query, key in [(site.query_side, site.key_side)]
                },
            )
    return [results[i] for i in range(len(sentences))]


@torch.inference_mode()
def attention_of(
    model: ProbedModel, sites: Sequence[Site], ids: Sequence[Tensor], masks: Masks = Masks()
) -> dict[str, np.ndarray]:
    """kind → (batch, layers, heads, query, key), with padding. The logits, which are not
    needed, are not computed: with a large vocabulary they are much of a pass."""
    softmax = {site.name: attention_at(model, site).softmax for site in sites}
    with outputs_of(softmax) as weights:
        model.hidden(*ids, *masks.build(model, *ids))
    return {
        kind: torch.stack([weights[site.name] for site in of_kind], dim=1).float().cpu().numpy()
        for kind, of_kind in kinds_of(sites).items()
    }


def text_of(checkpoint: Checkpoint, side: Side, ids: list[int]) -> Encoding:
    """The text between bos and eos, as the side has them, of the ids that a model reads."""
    tokenizer = checkpoint.tokenizer.target if side.writes else checkpoint.tokenizer
    return tokenizer.encoding_with_special(ids[side.begins : len(ids) - side.ends])


def _batches(checkpoint: Checkpoint, pairs: list[tuple]) -> Iterator[list[tuple]]:
    """Pairs of similar length, or each alone where no padding can stand beside it: the model has
    no token for that, or wrote it in the target."""
    pad, alone, together = checkpoint.model.config.pad_id, [], []
    for pair in pairs:
        (alone if pad < 0 or pad in pair[1][1:] else together).append(pair)
    yield from ([pair] for pair in alone)
    if together:
        yield from batches(together, BATCH)


def _padded(checkpoint: Checkpoint, ids: list[list[int]], side: str) -> Tensor:
    return pad_ids(ids, checkpoint.model.config, side).to(device_of(checkpoint.model))
