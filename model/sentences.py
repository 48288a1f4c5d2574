"""Many sentences: read from a file, and what the heads look at in each, many at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model.capture import capture
from model.checkpoint import Checkpoint
from model.data import DataError, batches, pad, read_lines
from model.decoding import greedy_decode
from model.masks import Masks
from model.tables import SIDES, together
from model.tokenizer import Encoding, special
from model.trace import KINDS, TooLong
from model.transformer import Transformer

BATCH = 1024  # tokens of a batch, on either side, with padding
WINDOW = 2**15  # weights of one head


@dataclass(frozen=True)
class Line:
    """A text to trace; `number` is the line it stood on, from 1. Without a target the model
    writes one."""

    number: int
    source: str
    target: str | None = None


@dataclass(frozen=True)
class Sentence:
    """What encoder and decoder read of a line, special tokens included. tgt is None until the
    model has written it."""

    number: int
    src: list[int]
    tgt: list[int] | None


@dataclass(frozen=True)
class Seen:
    """What the heads of a model looked at in one sentence: the part of a Trace that
    tables.py is about."""

    number: int
    src: Encoding
    tgt: Encoding
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
                f"{path}, line {number:,}: a line holds a source, or source and target with one "
                "tab between."
            )
        lines.append(Line(number, source, *targets))
    return lines


def encode(held: Checkpoint, lines: list[Line]) -> list[Sentence]:
    """Lines as ids. Raises DataError for a line that this model cannot read."""
    config = held.model.config
    sources = held.tokenizer.encode_batch([line.source for line in lines])
    targets = held.tokenizer.encode_batch([line.target or "" for line in lines])
    sentences = []
    for line, source, target in zip(lines, sources, targets, strict=True):
        where = f"Line {line.number:,}: " if len(lines) > 1 else ""
        if held.classes and line.target is not None:
            raise DataError(f"{where}This model says what a text is; it reads no target.")
        written = held.classes or line.target is not None
        src, tgt = [*source, config.eos_id], [config.bos_id, *target] if written else None
        for side, ids in (("source", src), ("target", tgt or ())):
            if len(ids) > config.max_length:
                raise DataError(f"{where}{TooLong(side, len(ids), config.max_length)}")
        sentences.append(Sentence(line.number, src, tgt))
    return sentences


def windows(sentences: list[Sentence], most: int = WINDOW) -> Iterator[list[Sentence]]:
    """Sentences in their order, so few at a time that what is seen of them fits into memory."""

    def size(sentence):  # weights of one head
        return max(len(sentence.src), len(sentence.tgt or ())) ** 2

    return together(sentences, size, most)


def write_targets(held: Checkpoint, sentences: list[Sentence]) -> list[Sentence]:
    """The same sentences, each with a target: its own, else the model's, greedy."""
    model, config = held.model, held.model.config
    written = list(sentences)
    missing = [(s.src, s.src, i) for i, s in enumerate(sentences) if s.tgt is None]
    for batch in batches(missing, BATCH) if missing else ():
        src = _padded(held, [src for src, _, _ in batch])
        for (_, _, i), ids in zip(batch, greedy_decode(model, src), strict=True):
            written[i] = replace(sentences[i], tgt=[config.bos_id, *ids])
    return written


def see(held: Checkpoint, sentences: list[Sentence]) -> list[Seen]:
    """What the heads look at in each sentence, in their order, under the standard masks. Those
    of similar length go through the model together."""
    found: list[Seen | None] = [None] * len(sentences)
    pairs = [(s.src, s.tgt, i) for i, s in enumerate(write_targets(held, sentences))]
    for batch in batches(pairs, BATCH):
        attention = attention_of(
            held.model,
            _padded(held, [src for src, _, _ in batch]),
            _padded(held, [tgt for _, tgt, _ in batch]),
        )
        for row, (src, tgt, i) in enumerate(batch):
            length = {"src": len(src), "tgt": len(tgt)}
            found[i] = Seen(
                sentences[i].number,
                held.tokenizer.encoding(src) + special(src[-1]),
                special(tgt[0]) + held.tokenizer.encoding(tgt),
                {
                    kind: of_all[row, :, :, : length[asks], : length[looked_at]]
                    for kind, of_all in attention.items()
                    for asks, looked_at in [SIDES[kind]]
                },
            )
    return found


@torch.inference_mode()
def attention_of(model: Transformer, src: Tensor, tgt: Tensor) -> dict[str, np.ndarray]:
    """kind → (batch, layers, heads, query, key), with padding. The logits, which nobody asked
    for, are not made: with a large vocabulary they are much of a pass."""
    src_mask, tgt_mask, memory_mask = Masks().build(src, tgt, model.config.pad_id)
    with capture(model) as seen:
        if model.decoder.layers:
            model.decode(tgt, model.encode(src, src_mask), tgt_mask, memory_mask)
        else:
            model(src, src_mask=src_mask)
    found = {}
    for kind, (stack, sublayer) in KINDS.items():
        names = [
            f"{stack}.layers.{i}.{sublayer}.softmax"
            for i in range(len(getattr(model, stack).layers))
        ]
        if names:
            of_layers = torch.stack([seen[name] for name in names], dim=1)
            found[kind] = of_layers.float().cpu().numpy()
    return found


def _padded(held: Checkpoint, ids: list[list[int]]) -> Tensor:
    return pad(ids, held.model.config.pad_id).to(held.model.generator.weight.device)
