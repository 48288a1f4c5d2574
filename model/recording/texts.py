"""The texts of a recording: tokens of any tokenizer, written as ours are."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from headlight.model.recording.kinds import TITLES
from headlight.model.recording.weights import CannotRecord
from headlight.model.tokenizer import OTHER_SPECIAL, Encoding, named

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
        raise CannotRecord(f"The {title} is a text; give its tokens, as a list.")
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
SPACES = ("Ġ", "▁")


def _written(tokens: Sequence[str | int]) -> Encoding:
    """As other tokenizers write them: Ġ or ▁ for a space before, ## for none."""
    # Where only names are known, equal ones are the same token.
    first = {token: i for i, token in reversed(list(enumerate(tokens)))}
    ids = tuple(first[t] if isinstance(t, str) or t < 0 else int(t) for t in tokens)
    names = [str(token) for token in tokens]
    marked = any(name.startswith(SPACES) for name in names)
    joined = any(name.startswith("##") for name in names)
    text, offsets = "", []
    for name in names:
        if SPECIAL.fullmatch(name):
            offsets.append((len(text), len(text)))
            continue
        has_space = name.startswith(SPACES) if marked else not (joined and name.startswith("##"))
        part = name.lstrip("Ġ▁") if marked else name.removeprefix("##") if joined else name
        part = part.replace("Ċ", "\n") if marked else part
        text += " " * (has_space and bool(text))
        offsets.append((len(text), len(text) + len(part)))
        text += part
    shown = named(text, offsets)
    special = [bool(SPECIAL.fullmatch(name)) for name in names]
    each = zip(names, shown, special, strict=True)
    shown = tuple(name if is_special else mine for name, mine, is_special in each)
    roles = tuple(OTHER_SPECIAL if is_special else "" for is_special in special)
    return Encoding(ids, shown, tuple(offsets), roles)


def as_typed(text: Encoding) -> str:
    """The text that tokens were made from, as far as they tell, as a line."""
    out = ""
    for token, (start, end), role in zip(*text.parts[1:], strict=True):
        if not role:
            out += " " * max(0, start - len(out)) + token.removeprefix("·")[: max(0, end - start)]
    line = " ".join(out.split()) or " ".join(" ".join(text.tokens).split())
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
