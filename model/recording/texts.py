"""The texts of a recording: tokens of any tokenizer, written as ours are."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tokenizers
import torch

from headlight.model.recording.weights import TITLES, CannotRecord
from headlight.model.tokenizer import (
    OTHER_SPECIAL,
    SPACE,
    Encoding,
    Tokenizer,
    bytes_of,
    name_after,
    named,
    text_of_bytes,
)

LONGEST_LINE = 1_000  # characters by which a text is known
TEXT, SOURCE, TARGET = "text", "source", "target"  # titles of sides
Words = Sequence[str] | Sequence[int] | Encoding | None


def texts_of(attention: Mapping[str, np.ndarray], tokens: Words, target: Words):
    """side → what was read, side → its title, and kind → the sides of queries and keys."""
    if not any(kind in attention for kind in TITLES) and len(attention) > 1:  # towers
        read_by = {kind: (kind, kind) for kind in attention}
        # Not as the kinds are called: files name weights and tokens side by side.
        titles = {kind: f"{kind.removesuffix('_model')} input" for kind in attention}
        given = dict(zip(attention, (tokens, target), strict=False))
        texts = {
            kind: as_text(given.get(kind), array.shape[-1], titles[kind])
            for kind, array in attention.items()
        }
        return texts, titles, read_by
    two = "cross" in attention or len({a.shape[-1] for a in attention.values()}) > 1
    if not two:
        read_by = dict.fromkeys(attention, ("src", "src"))
        titles, given = {"src": TEXT}, {"src": tokens if target is None else target}
        if tokens is not None and target is not None:
            raise CannotRecord(
                "These weights are of one text, so only its tokens are needed, not a target's."
            )
    else:
        read_by = {
            kind: {"cross": ("tgt", "src"), "decoder": ("tgt", "tgt")}.get(kind, ("src", "src"))
            for kind in attention
        }
        titles, given = {"src": SOURCE, "tgt": TARGET}, {"src": tokens, "tgt": target}
    lengths: dict[str, int] = {}
    for kind, array in attention.items():
        each = zip(read_by[kind], array.shape[-2:], ("rows", "columns"), strict=True)
        for side, length, what in each:
            if lengths.setdefault(side, length) != length:
                raise CannotRecord(
                    f"{kind}: its {what} are {length}, but the {titles[side]} has {lengths[side]} "
                    "tokens elsewhere."
                )
    texts = {
        side: as_text(given[side], lengths[side], title)
        for side, title in titles.items()
        if side in lengths
    }
    return texts, titles, read_by


def as_text(tokens: Words, length: int, title: str) -> Encoding:
    """Tokens of any tokenizer as ours are written; numbers where none are given."""
    text = tokens if isinstance(tokens, Encoding) else _written(_listed(tokens, length, title))
    if len(text.ids) != length:
        raise CannotRecord(
            f"The {title} has {len(text.ids):,} tokens, but its weights are for {length:,}."
        )
    return text


def _listed(tokens: object, length: int, title: str) -> list[str | int]:
    if tokens is None:
        return [str(i + 1) for i in range(length)]
    if isinstance(tokens, str | bytes):
        raise CannotRecord(f"Give the tokens of the {title} as a list, one for each row.")
    if isinstance(tokens, np.ndarray | torch.Tensor):
        tokens = tokens.tolist()
    if not isinstance(tokens, Iterable):
        raise CannotRecord(f"The tokens of the {title} are no list.")
    listed = list(tokens)
    if len(listed) == 1 and isinstance(listed[0], list | tuple):
        listed = list(listed[0])  # of a batch
    if not all(isinstance(token, str | int | np.integer) for token in listed):
        raise CannotRecord(f"A token of the {title} is neither text nor a number.")
    return [
        token.encode("utf-8", "replace").decode() if isinstance(token, str) else token
        for token in listed
    ]


SPECIAL = re.compile(r"<[^<>\s]*>|\[[A-Z0-9_]+\]|<\|.*\|>")
BYTE = re.compile("<0x([0-9A-F]{2})>")  # of a character that the vocabulary lacks
BYTES, LATIN, JOINS = "Ġ", "latin-1", "##"
MARKS = BYTES, SPACE, JOINS  # a space before, in bytes or not, and none


def mark_of(tokens: Iterable[str]) -> str:
    """What a tokenizer writes before its tokens, of MARKS; "" if none of these has one."""
    counts = Counter(mark for token in tokens for mark in MARKS if token.startswith(mark))
    return next((mark for mark, _ in counts.most_common(1)), "")


def _written(tokens: Sequence[str | int], mark: str | None = None) -> Encoding:
    """As other tokenizers write them, whose `mark` is found in these if it is not given."""
    # Where only names are known, equal ones are the same token.
    first = {token: i for i, token in reversed(list(enumerate(tokens)))}
    ids = tuple(first[t] if isinstance(t, str) or t < 0 else int(t) for t in tokens)
    names = [str(token) for token in tokens]
    special = [
        not name or (bool(SPECIAL.fullmatch(name)) and not BYTE.fullmatch(name)) for name in names
    ]
    ordinary = [name for name, is_special in zip(names, special, strict=True) if not is_special]
    mark = mark_of(ordinary) if mark is None else mark
    text, spans = text_of_bytes(_bytes(ordinary, mark), mark == BYTES)
    shown, end, each, offsets = iter(zip(named(text, spans), spans, strict=True)), 0, [], []
    for name, is_special in zip(names, special, strict=True):
        token, span = (name, (end, end)) if is_special else next(shown)
        end = span[1]
        each.append(token)
        offsets.append(span)
    roles = tuple(OTHER_SPECIAL if is_special else "" for is_special in special)
    return Encoding(ids, tuple(each), tuple(offsets), roles)


def _bytes(names: Iterable[str], mark: str) -> Iterator[bytes]:
    """What each token stands for, with the space before it."""
    is_first = True
    for name in names:
        if mark == BYTES:
            yield bytes_of(name)
        elif mark == LATIN and max(name) <= "\xff":
            yield name.encode("latin-1")
        elif byte := BYTE.fullmatch(name):
            yield bytes([int(byte[1], 16)])
        else:
            has_space = (
                name.startswith(SPACE) if mark == SPACE else not (mark and name.startswith(mark))
            )
            part = name.lstrip(SPACE) if mark == SPACE else name.removeprefix(mark)
            yield (" " * (has_space and not is_first) + part).encode("utf-8", "replace")
        is_first = False


class Names:
    """What the tokens of a tokenizer of transformers are called, or, without one, their ids."""

    def __init__(self, tokenizer: Any):
        """Raises CannotRecord for what is no tokenizer of transformers."""
        if tokenizer is not None and not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise CannotRecord(f"{type(tokenizer).__name__} is not a tokenizer of transformers.")
        self.theirs: Any = tokenizer
        self.ours = _ours(tokenizer)
        self.mark = "" if self.ours or tokenizer is None else mark_of(tokenizer.get_vocab())
        if not self.mark and _reads_bytes(tokenizer):
            self.mark = LATIN

    def text(self, ids: Sequence[int]) -> Encoding:
        """These ids, special ones in their places."""
        if self.ours is None:
            return replace(_written(self._symbols(ids), self.mark), ids=tuple(ids))
        read = self.ours.encoding_with_special(ids)
        special = set(getattr(self.theirs, "all_special_ids", ()))
        roles = tuple(
            role or (OTHER_SPECIAL if i in special else "")
            for i, role in zip(read.ids, read.roles, strict=True)
        )
        return replace(read, roles=roles)

    def after(self, token_id: int, before: int | None) -> str:
        """One token that follows another."""
        if self.ours:
            return name_after(self.ours, token_id, before)
        ids = [token_id] if before is None else [before, token_id]
        return _written(self._symbols(ids), self.mark).tokens[-1]

    def _symbols(self, ids: Sequence[int]) -> list[str]:
        if self.theirs is None:
            return [str(i) for i in ids]
        return [self._symbol(int(i)) or f"<{i}>" for i in ids]

    def _symbol(self, token_id: int) -> str | None:
        """None beyond the vocabulary: models often have more columns than that."""
        try:
            return self.theirs.convert_ids_to_tokens(token_id)
        except (IndexError, KeyError, OverflowError):
            return None


def _reads_bytes(tokenizer) -> bool:
    """Whether its tokens are bytes, each under the name of a character of Latin-1, as in ByT5."""
    try:
        return tokenizer.convert_tokens_to_string(["Ã", "©"]) == "é"
    except Exception:  # it may be anything
        return False


def _ours(tokenizer) -> Tokenizer | None:
    """A tokenizer of the library as one of ours; None if it is none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    size, ours = _copies.get(tokenizer, (0, None))
    if ours is None or size != len(tokenizer):  # tokens may have been added
        # A copy: ours change how special tokens are read.
        ours = Tokenizer(tokenizers.Tokenizer.from_str(backend.to_str()))
        _copies[tokenizer] = len(tokenizer), ours
    return ours


_copies: WeakKeyDictionary[Any, tuple[int, Tokenizer]] = WeakKeyDictionary()


def as_typed(text: Encoding) -> str:
    """The text that tokens were made from, as far as they tell, as a line."""
    out = ""
    for token, (start, end), role in zip(*text.parts[1:], strict=True):
        if not role and start >= len(out):  # several tokens may share a character
            typed = token.removeprefix("·").replace("\\n", " ")  # of a line break its code is shown
            out += " " * (start - len(out)) + typed[: max(0, end - start)]
    line = " ".join(out.split()) or " ".join(" ".join(text.tokens).split())
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
