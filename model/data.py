"""Sentence pairs from files, and batches of them."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

Pair = tuple[list[int], list[int]]


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 text file, plain or gzip, without their ends."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def read_multi30k(folder: Path, split: str, src: str = "en", tgt: str = "de"):
    """One split of Multi30K as (sources, targets): image captions (Elliott et al. 2016)."""
    texts = [read_lines(Path(folder) / f"{split}.{language}.gz") for language in (src, tgt)]
    if len(texts[0]) != len(texts[1]):
        raise ValueError(f"{split}: {len(texts[0])} lines of {src}, {len(texts[1])} of {tgt}")
    return texts


def pad(sequences: list[list[int]], pad_id: int) -> Tensor:
    """(batch, length), padded at the end."""
    length = max(map(len, sequences))
    return torch.tensor([ids + [pad_id] * (length - len(ids)) for ids in sequences])


def batches(
    pairs: list[Pair], max_tokens: int, generator: torch.Generator | None = None
) -> Iterator[list[Pair]]:
    """Batches of pairs of similar length, at most `max_tokens` target tokens with padding.

    With a generator, batches come in random order and pairs of one length meet at random.
    """
    order = range(len(pairs))
    if generator is not None:
        order = torch.randperm(len(pairs), generator=generator).tolist()
    order = sorted(order, key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    groups, group = [], []
    for i in order:
        if group and len(pairs[i][1]) * (len(group) + 1) > max_tokens:
            groups.append(group)
            group = []
        group.append(i)
    groups.append(group)
    if generator is not None:
        groups = [groups[i] for i in torch.randperm(len(groups), generator=generator)]
    for group in groups:
        yield [pairs[i] for i in group]
