"""Text to ids and back, with character offsets: byte-level BPE by Hugging Face tokenizers.

Every Unicode string can be written in bytes, so nothing is ever unknown or lost. A folder of
someone else's may hold another tokenizer: its tokens and offsets are then the library's own.
"""

import copyreg
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from headlight.model.by_value import OneLine
from headlight.model.files import read_json
from headlight.model.messages import short

LARGEST_TOKENIZER = 2**26  # bytes of a file; one of 256,000 tokens has half as many
SPECIAL = ["<pad>", "<s>", "</s>"]  # ids 0, 1, 2: Config's pad_id, bos_id, eos_id
ROLES = ("pad", "bos", "eos")  # what these are for
SHOWN_SPACE = "␣"
CONTINUES = "·"  # stands before a token that continues a word
BYTE = "\ufffd"  # what decoders make of a byte that is no character by itself
SPACE = "▁"  # stands for a space in the symbols of SentencePiece, and of those who follow it
MOST_QUOTED = 120  # characters of what the library says
_ROLES = dict(zip(SPECIAL, ROLES, strict=True))
OTHER_SPECIAL = "special"  # the role of other special tokens, which only other vocabularies have


class CannotRead(ValueError):
    """A text that this model cannot read, in a sentence."""

    def __reduce__(self):
        """So that it can leave a child process: subclasses are not made from their sentence."""
        make = copyreg.__newobj__  # pyright: ignore[reportAttributeAccessIssue]  # not in its stub
        return make, (type(self), *self.args), vars(self)


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """A panic of the library, which is no Exception, becomes a ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(" ".join(str(error).split())[:MOST_QUOTED]) from None


def backend_of(values: Any) -> tokenizers.Tokenizer:
    """The library's tokenizer, of what a tokenizer.json holds. Raises whatever the library does."""
    model: Any = values.get("model") if isinstance(values, dict) else None
    prefix = isinstance(model, dict) and model.get("continuing_subword_prefix")
    if prefix:
        # Of a merge without it, the library cuts off what is not there, and the process may end.
        for pair in model.get("merges") or ():
            if not (pair.split(" ") if isinstance(pair, str) else pair)[-1].startswith(prefix):
                raise ValueError(f"its merge {short(pair)} lacks the prefix {short(prefix)}")
    return tokenizers.Tokenizer.from_str(json.dumps(values))


@contextmanager
def _failing() -> Iterator[None]:
    """What the library raises on a text becomes CannotRead, as where a regular expression takes
    more steps than it allows."""
    try:
        with panics_as_errors():
            yield
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:MOST_QUOTED].rstrip(".")
        raise CannotRead(f"The tokenizer of this model fails on this text: {why}.") from None


@dataclass(frozen=True, repr=False)
class Encoding(OneLine):
    """One text as token ids. offsets: the characters [start, end) that each token covers;
    a special token covers none. roles: of a special token what it is for, of ROLES or
    OTHER_SPECIAL, else ""; where none are given, those of our own vocabulary. text: of what was
    typed, or written by a model, what it spells, without special tokens; str() gives it. `+` puts
    one behind the other, offsets as they were.

    >>> load("reverse").translate("a b c").text
    'c b a'
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...] = field(repr=False)
    roles: tuple[str, ...] = field(default=(), repr=False)
    text: str = field(default="", compare=False, kw_only=True)  # follows from the ids

    def __post_init__(self):
        if len(self.roles) != len(self.ids):
            roles = (ROLES[i] if 0 <= i < len(ROLES) else "" for i in self.ids)
            object.__setattr__(self, "roles", tuple(roles))

    def __str__(self) -> str:
        return self.text or " ".join(self.tokens)

    def __add__(self, other: "Encoding") -> "Encoding":
        return Encoding(*(mine + its for mine, its in zip(self.parts, other.parts, strict=True)))

    def __mul__(self, times: int) -> "Encoding":
        return Encoding(*(part * times for part in self.parts))

    def take(self, positions: Iterable[int]) -> "Encoding":
        """These tokens alone, in this order."""
        positions = list(positions)
        return Encoding(*(tuple(part[i] for i in positions) for part in self.parts))

    @property
    def parts(self) -> tuple[tuple, ...]:
        """The fields that have an entry for each token."""
        return self.ids, self.tokens, self.offsets, self.roles


def special(token_id: int, token: str = "", role: str = "") -> Encoding:
    """A special token by itself; `token` and `role` say which, in a vocabulary that is not ours."""
    roles = (role,) if role else ()
    return Encoding((token_id,), (token or SPECIAL[token_id],), ((0, 0),), roles)


class Tokenizer:
    """Sub-word tokens, cased. The text of special tokens in the input is ordinary text, or, where
    they may be `typed`, these tokens, as in a chat prompt."""

    def __init__(self, backend: tokenizers.Tokenizer, typed: bool = False):
        backend.encode_special_tokens = not typed
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self.kind = type(backend.model).__name__  # "BPE", "WordPiece", "Unigram", …
        self._of_bytes = isinstance(backend.decoder, decoders.ByteLevel)
        added = backend.get_added_tokens_decoder()
        self._special = {i: token.content for i, token in added.items() if token.special}
        self._names = dict(self._special)  # what `token` called them; most are asked for often
        # Whether it puts a space before a text that its decoder does not take away again.
        with _failing():
            probe = backend.encode("a", add_special_tokens=False).ids
            self._adds_space = backend.decode(probe) == " a"

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        backend = tokenizers.Tokenizer(models.BPE())
        # What phones and word processors type for an apostrophe and for a space that no line breaks
        # at, as what the training text has; and one leading space, so that a word is the same token
        # at the start and in the middle.
        backend.normalizer = normalizers.Sequence(
            [
                normalizers.Replace("’", "'"),
                normalizers.Replace(tokenizers.Regex("[\u00a0\u2009\u202f]"), " "),
                normalizers.Prepend(" "),
            ]
        )
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        backend.post_processor = processors.ByteLevel(trim_offsets=True)
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=SPECIAL,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return cls(backend)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        with panics_as_errors():
            return cls(backend_of(read_json(path, LARGEST_TOKENIZER)))

    def to_json(self) -> str:
        """What `load` reads."""
        return self._backend.to_str()

    def __len__(self) -> int:
        return self._backend.get_vocab_size()

    @property
    def target(self) -> "Tokenizer":
        """The tokenizer of what a model writes, where it reads another text."""
        return self

    @property
    def last_id(self) -> int:
        return max(self._backend.get_vocab().values(), default=-1)

    def id_of(self, token: str) -> int | None:
        """Of a token as it stands in the vocabulary; None if it is not there."""
        return self._backend.token_to_id(token)

    def is_added(self, token_id: int) -> bool:
        """Whether an id is that of a token added to those that text is made of, as special ones
        are."""
        return token_id in self._backend.get_added_tokens_decoder()

    def around(self) -> tuple[list[int], list[int]]:
        """Ids that it would put before a text and behind it. Raises CannotRead where it would not
        leave the text as it is."""
        with _failing():
            alone = self._backend.encode("a", add_special_tokens=False).ids
            ids = self._backend.encode("a", add_special_tokens=True).ids
        starts = range(len(ids) - len(alone) + 1)
        first = next((i for i in starts if ids[i : i + len(alone)] == alone), None)
        if first is None:
            raise CannotRead("Its tokenizer changes a text when it adds its special tokens.")
        return ids[:first], ids[first + len(alone) :]

    def with_dropout(self, share: float) -> "Tokenizer":
        """The same tokenizer with BPE-dropout: each merge is skipped with this probability, so that
        a text is split differently each time (BPE-dropout, Provilkov et al. 2020, section 4)."""
        backend = tokenizers.Tokenizer.from_str(self.to_json())
        backend.model.dropout = share
        return Tokenizer(backend)

    def encode(self, text: str) -> Encoding:
        """Ids of `text` alone, without special tokens. Raises CannotRead."""
        with _failing():
            theirs = self._backend.encode(text, add_special_tokens=False)
        if self._of_bytes and self.decode(theirs.ids) == text:
            return self.encoding(theirs.ids)
        # Where the normaliser changed the text, the library alone knows what became of it.
        offsets = theirs.offsets
        for i, (start, _) in enumerate(offsets):
            is_between = not text[:start][-1:].strip() and text[start : start + 1] not in (
                " ",
                SPACE,
            )
            if theirs.tokens[i] == SPACE and is_between:
                offsets[i] = start, start  # put before a word: it covers none of it
        return self._encoded(theirs.ids, text, offsets)

    def at_least(self, text: str) -> int:
        """A number of tokens that `encode` makes at least of a text, known without making them: no
        token stands for more than the longest one. 0 where a tokenizer may leave something out."""
        if not self._longest:
            return 0
        text = self.normalized(text)
        return -(-len(text.encode("utf-8") if self._of_bytes else text) // self._longest)

    @cached_property
    def _longest(self) -> int:
        """Bytes of the longest token, of a BPE that falls back to bytes its characters, where each
        of a normalised text is in one; else 0."""
        vocabulary = self._backend.get_vocab()
        added = self._backend.get_added_tokens_decoder().values()
        splits = json.dumps(json.loads(self.to_json())["pre_tokenizer"])
        if any(token.lstrip or token.rstrip for token in added) or "Removed" in splits:
            return 0
        if self._of_bytes and set(_BYTE) <= vocabulary.keys():
            return max(len(bytes_of(symbol)) for symbol in vocabulary)
        falls_back = self.kind == "BPE" and self._backend.model.byte_fallback
        keeps_all = splits == "null" or '"type": "Metaspace"' in splits
        if falls_back and keeps_all and {f"<0x{i:02X}>" for i in range(256)} <= vocabulary.keys():
            return max(map(len, vocabulary))
        return 0

    def normalized(self, text: str) -> str:
        """What the tokenizer makes of a text before it splits it."""
        normalizer = self._backend.normalizer
        with _failing():
            return normalizer.normalize_str(text) if normalizer else text

    def pre_tokens(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """The parts that are made into tokens one by one, in the tokenizer's own alphabet, and
        the characters [start, end) of the text that each covers."""
        with _failing():
            parts = tokenizers.PreTokenizedString(text)
            if normalizer := self._backend.normalizer:
                parts.normalize(normalizer.normalize)
            if pre_tokenizer := self._backend.pre_tokenizer:
                pre_tokenizer.pre_tokenize(parts)
        return [(part, span) for part, span, _ in parts.get_splits("original", "char")]

    def word_ids(self, text: str) -> list[int]:
        """For each token of a text, which of its pre-tokens it comes from."""
        with _failing():
            words = self._backend.encode(text, add_special_tokens=False).word_ids
        return [word for word in words if word is not None]  # all: only special ones have none

    @cached_property
    def merges(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Of a BPE: each pair of symbols that it merges → its rank, 0 for the first that was
        learned, and the symbol it becomes. Empty for any other tokenizer."""
        model = json.loads(self.to_json())["model"]
        prefix = model.get("continuing_subword_prefix") or ""
        pairs = model.get("merges", ())
        return {
            (left, right): (rank, left + right.removeprefix(prefix))
            for rank, (left, right) in enumerate(pairs)
        }

    def first_symbols(self, word: str) -> tuple[str, ...]:
        """Of a BPE: the symbols that a pre-token begins as, before any merge: its letters, of
        which each stands for a byte in byte-level BPE."""
        bpe = self._backend.model
        if bpe.ignore_merges and bpe.token_to_id(word) is not None:
            return (word,)
        symbols = []
        for i, letter in enumerate(word):
            symbol = (bpe.continuing_subword_prefix or "") * (i > 0) + letter
            symbol += (bpe.end_of_word_suffix or "") * (i == len(word) - 1)
            known = [symbol]
            if bpe.byte_fallback and bpe.token_to_id(symbol) is None:
                known = [f"<0x{byte:02X}>" for byte in symbol.encode("utf-8")]
            if all(bpe.token_to_id(symbol) is not None for symbol in known):
                symbols += known
            elif bpe.unk_token and not (bpe.fuse_unk and symbols[-1:] == [bpe.unk_token]):
                symbols.append(bpe.unk_token)
        return tuple(symbols)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """The ids alone, for training."""
        with _failing():
            encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def encoding(self, ids: Iterable[int]) -> Encoding:
        """Tokens of these ids without special ones, and offsets in the text that `decode` gives.

        Bytes that are no UTF-8 stand as one lone surrogate each, so that none is lost.
        """
        ids = tuple(i for i in ids if i not in self._special)
        if not self._of_bytes:
            return self._by_growth(ids)
        text, offsets = text_of_bytes(map(bytes_of, map(self._symbol, ids)), self._adds_space)
        return self._encoded(ids, text, offsets)

    def encoding_with_special(self, ids: Iterable[int]) -> Encoding:
        """As `encoding`, with the special tokens in their places, of no characters."""
        ids = tuple(ids)
        ordinary = self.encoding(ids)
        rest = zip(ordinary.tokens, ordinary.offsets, strict=True)
        end, offsets_found = 0, []
        for i in ids:
            name, span = (self._special[i], (end, end)) if i in self._special else next(rest)
            end = span[1]
            offsets_found.append((name, span))
        roles = tuple(
            _ROLES.get(self._special[i], OTHER_SPECIAL) if i in self._special else "" for i in ids
        )
        names, spans = (tuple(part[i] for part in offsets_found) for i in range(2))
        return Encoding(ids, names, spans, roles)

    def _encoded(self, ids: Iterable[int], text: str, offsets: Iterable[tuple]) -> Encoding:
        """Tokens of a text, special ones that were typed included."""
        ids, offsets = tuple(ids), tuple(spans_of(text, offsets))
        known = self._backend.id_to_token
        names = [
            self._symbol(i) if text[start:end] == name == BYTE or known(i) is None else name
            for i, (start, end), name in zip(ids, offsets, named(text, offsets), strict=True)
        ]
        # Not what is unknown, and so becomes a special token.
        typed = (self._special.get(i) == text[a:b] for i, (a, b) in zip(ids, offsets, strict=True))
        roles = tuple(OTHER_SPECIAL if one else "" for one in typed)
        return Encoding(ids, tuple(names), offsets, roles)

    def _symbol(self, token_id: int) -> str:
        """As it stands in the vocabulary; models may have ids that it does not."""
        return self._backend.id_to_token(token_id) or f"<{token_id}>"

    def _by_growth(self, ids: tuple[int, ...]) -> Encoding:
        """Where tokens are no bytes: each covers what the text grows by. Those that are bytes of
        one character cover it together: until the last of them the decoder has a \ufffd for it."""
        text, offsets, end, together = self.decode(ids), [], 0, 0
        for i in range(len(ids)):
            grown, together = self.decode(ids[: i + 1]), together + 1
            if grown.endswith(BYTE) and not text.startswith(grown) and i + 1 < len(ids):
                continue
            start, end = end, min(max(end, len(grown)), len(text))
            start += len(text[start:end]) - len(text[start:end].lstrip(" "))
            offsets += [(start, end)] * together
            together = 0
        return self._encoded(ids, text, offsets)

    def token(self, token_id: int) -> str:
        """What to call one token by itself, special tokens too; a byte that is no character by
        itself <0xF0>."""
        if token_id not in self._names:
            self._names[token_id] = self.encoding([token_id]).tokens[0]
        return self._names[token_id]

    def has_space(self, token_id: int) -> bool:
        """Whether a token includes the space before a word."""
        return self._symbol(token_id).startswith(_SPACE_BYTE if self._of_bytes else SPACE)

    def readable(self, symbol: str) -> str:
        """A symbol of the tokenizer's alphabet for the eye: ␣ for a space, <0xF0> for a byte that
        is no character by itself."""
        if not self._of_bytes:
            return visible(symbol)
        return visible(bytes_of(symbol).decode("utf-8", "surrogateescape"))

    def decode(self, ids: Iterable[int]) -> str:
        """Text without special tokens."""
        with _failing():
            text = self._backend.decode(list(ids), skip_special_tokens=True)
        return text.removeprefix(" ") if self._adds_space else text


def visible(text: str) -> str:
    """A text for the eye: ␣ for a space, and a code for what cannot be seen."""
    return "".join(map(_visible, text))


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's letter for each byte: printable ones as they are, others from U+0100."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(other)}


_BYTE = _byte_alphabet()
_SPACE_BYTE = next(letter for letter, byte in _BYTE.items() if byte == ord(" "))


def bytes_of(symbol: str) -> bytes:
    """What a symbol of byte-level BPE stands for; someone may have added one in plain letters."""
    if all(letter in _BYTE for letter in symbol):
        return bytes(_BYTE[letter] for letter in symbol)
    return symbol.encode("utf-8")


def text_of_bytes(chunks: Iterable[bytes], adds_space: bool) -> tuple[str, list[tuple[int, int]]]:
    """The text of tokens that stand for these bytes, and the characters [start, end) that each
    covers. `adds_space`: a space before the text is not part of it."""
    chunks = list(chunks)
    text = b"".join(chunks).decode("utf-8", "surrogateescape")
    owner = [  # byte → the character it belongs to
        i for i, c in enumerate(text) for _ in c.encode("utf-8", "surrogateescape")
    ]
    added = adds_space and text.startswith(" ")
    offsets, at = [], 0
    for chunk in chunks:
        start = owner[at] if at < len(owner) else len(text)
        end = owner[at + len(chunk) - 1] + 1 if chunk else start
        at += len(chunk)
        # As the backend does: a token's spaces do not count, nor does the added leading one.
        start += len(text[start:end]) - len(text[start:end].lstrip(" "))
        offsets.append((max(start - added, 0), max(end - added, 0)))
    return text[added:], offsets


def _visible(character: str) -> str:
    if character == " ":
        return SHOWN_SPACE
    if "\udc80" <= character <= "\udcff":  # what surrogateescape makes of a byte
        return f"<0x{ord(character) - 0xDC00:02X}>"
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def spans_of(text: str, offsets: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The characters that each token covers. Where a normaliser makes several tokens of one
    character, such as 1, ⁄ and 2 of ½, a library may say of the later ones that they cover none:
    they cover it, too. Spaces before a token's letters do not count."""
    spans = []
    for start, end in offsets:
        start += len(text[start:end]) - len(text[start:end].lstrip(" ") or text[start:end])
        before = text[start - 1 : start] if start == end else ""
        spans.append((start - 1, end) if before and not before.isspace() else (start, end))
    return spans


def named(text: str, offsets: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """What to call each token: its characters, with a dot before what continues a word; of a
    character that it shares with other tokens the character and the share, as in 🙂 1/4; spaces,
    control characters and bytes that form no character by a visible stand-in."""
    owners = Counter(i for start, end in offsets for i in range(start, end))
    counts, tokens, previous_end = Counter(), [], 0
    for start, end in offsets:
        if not text[start:end].strip(" "):
            tokens.append(SHOWN_SPACE)
            previous_end = end
            continue
        parts: list[list[str]] = [[]]  # whole characters in one, each share by itself
        for i in range(start, end):
            shown = text[i] if text[i] == " " else _visible(text[i])
            if owners[i] == 1:
                parts[-1].append(shown)
            else:
                counts[i] += 1
                parts += [[f"{shown} {counts[i]}/{owners[i]}"], []]
        token = " ".join("".join(part) for part in parts if part)
        is_whole = len(parts) == 1
        follows = start == previous_end and text[start - 1 : start].isalnum()
        tokens.append(CONTINUES + token if is_whole and follows and token[0].isalnum() else token)
        previous_end = end
    return tuple(tokens)


def name_after(tokenizer, token_id: int, before: int | None) -> str:
    """What to call a token that follows another, whose word it may continue."""
    if before is not None and not tokenizer.has_space(token_id):
        pair = tokenizer.encoding([before, token_id]).tokens  # without special tokens
        if len(pair) == 2 and pair[1].startswith(CONTINUES):
            return pair[1]
    return tokenizer.token(token_id)
