"""SentencePiece (Kudo and Richardson 2018) as Marian's translators have it: a model for each
language, and a vocabulary of their own that numbers what these split a text into."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from headlight.model.extras import missing
from headlight.model.files import read_json, read_within
from headlight.model.tokenizer import (
    LARGEST_TOKENIZER,
    OTHER_SPECIAL,
    SHOWN_SPACE,
    SPACE,
    CannotRead,
    Encoding,
    Tokenizer,
    named,
    spans_of,
    visible,
)

UNKNOWN, SPECIAL = "<unk>", ("</s>", "<pad>")


class SentencePieceTokenizer(Tokenizer):
    """As `Tokenizer`, of one language; `target` is the other one's. What begins with a code for a
    language, as in `>>fra<< Hello`, is told by one token which language to write."""

    kind = "Unigram"

    def __init__(self, processor, ids: dict[str, int], target: "SentencePieceTokenizer | None"):
        self._processor, self._ids = processor, ids
        self._symbols = {token_id: symbol for symbol, token_id in ids.items()}
        self._special = {ids[name]: name for name in SPECIAL if name in ids}
        self._target = target or self

    @classmethod
    def of_two(cls, folder: Path, separate: bool) -> "SentencePieceTokenizer":
        """From source.spm, target.spm and vocab.json, with target_vocab.json where vocabularies are
        `separate`. Raises OSError, and ValueError with a sentence."""
        target: SentencePieceTokenizer | None = None
        for side in ("target", "source"):
            of_target = separate and side == "target"
            vocabulary = folder / ("target_vocab.json" if of_target else "vocab.json")
            try:
                processor = _processor(folder / f"{side}.spm")
                ids = read_json(vocabulary, LARGEST_TOKENIZER)
            except FileNotFoundError as error:
                raise ValueError(f"There is no file {error.filename}.") from None
            if not isinstance(ids, dict) or not all(type(i) is int for i in ids.values()):
                raise ValueError(f"{vocabulary} is not a vocabulary: it has no token ids.")
            if UNKNOWN not in ids:
                raise ValueError(f"{vocabulary} has no token {UNKNOWN} for unknown text.")
            target = cls(processor, ids, target)
        return target

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def target(self) -> "SentencePieceTokenizer":
        return self._target

    @cached_property
    def merges(self) -> dict[tuple[str, str], tuple[int, str]]:
        """It merges nothing."""
        return {}

    @property
    def last_id(self) -> int:
        return max(self._ids.values(), default=-1)

    def id_of(self, token: str) -> int | None:
        return self._ids.get(token)

    def is_added(self, token_id: int) -> bool:
        return token_id in self._special

    def encode(self, text: str) -> Encoding:
        """Ids of `text` alone, without special tokens. Raises CannotRead for one with such."""
        code, rest = self._code(text)
        for token in filter(rest.__contains__, SPECIAL):
            raise CannotRead(f"The text contains {token}, a special token, which cannot be typed.")
        spans = self._processor.encode(rest, return_type="offset_mapping")["offsets"]
        symbols = self._processor.encode(rest, return_type=str)
        ids = [self._ids.get(symbol, self._ids[UNKNOWN]) for symbol in symbols]
        spans = [_without_spaces(rest, *span) for span in spans]
        # Where it makes several pieces of one character, such as 1, ⁄ and 2 of ½, it says of the
        # last alone that it covers it.
        for i in range(len(spans) - 2, -1, -1):
            (start, end), (begin, after) = spans[i : i + 2]
            if start == end == begin < after and symbols[i].strip(SPACE):
                spans[i] = start, start + 1
        spans = [(start + len(code), end + len(code)) for start, end in spans_of(rest, spans)]
        if code:
            ids, spans = [self._ids[code], *ids], [(0, len(code)), *spans]
        return Encoding(tuple(ids), named(text, spans), tuple(spans), ("",) * len(ids))

    def at_least(self, text: str) -> int:
        """Unknown without splitting the text: what is not in the vocabulary becomes one token."""
        return 0

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Ids only."""
        return [list(self.encode(text).ids) for text in texts]

    def encoding(self, ids: Iterable[int]) -> Encoding:
        """Tokens of these ids without special ones, and offsets in the text that `decode` gives."""
        ids = tuple(i for i in ids if i not in self._special)
        text, spans, end = self.decode(ids), [], 0
        for i in range(len(ids)):
            start, end = end, min(max(end, len(self.decode(ids[: i + 1]))), len(text))
            spans.append(_without_spaces(text, start, end))
        return Encoding(ids, named(text, spans), tuple(spans), ("",) * len(ids))

    def encoding_with_special(self, ids: Iterable[int]) -> Encoding:
        """As `encoding`, with the special tokens in their places, of no characters."""
        ids = tuple(ids)
        ordinary = self.encoding(ids)
        rest, end, text = iter(range(len(ordinary.ids))), 0, Encoding((), (), ())
        for i in ids:
            if i in self._special:
                text += Encoding((i,), (self._special[i],), ((end, end),), (OTHER_SPECIAL,))
            else:
                text += ordinary.take([next(rest)])
                end = text.offsets[-1][1]
        return text

    def token(self, token_id: int) -> str:
        """What to call one token by itself, special tokens too."""
        if token_id in self._special:
            return self._special[token_id]
        symbol = self._symbols.get(token_id, f"<{token_id}>")
        return visible(symbol.removeprefix(SPACE)) or SHOWN_SPACE

    def has_space(self, token_id: int) -> bool:
        """Whether a token includes the space before a word."""
        return self._symbols.get(token_id, "").startswith(SPACE)

    def decode(self, ids: Iterable[int]) -> str:
        """Text without special tokens."""
        symbols = [self._symbols.get(i, UNKNOWN) for i in ids if i not in self._special]
        return "".join(symbols).replace(SPACE, " ").removeprefix(" ")

    def normalized(self, text: str) -> str:
        """What the tokenizer makes of a text before it splits it."""
        code, rest = self._code(text)
        return code + self._processor.normalize(rest).replace(SPACE, " ")

    def pre_tokens(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """Words, each with the space before it, and the characters [start, end) that each covers;
        SentencePiece itself splits the whole text at once."""
        parts: list[tuple[str, tuple[int, int]]] = []
        encoding, symbols = self.encode(text), self._split(text)
        for symbol, (start, end) in zip(symbols, encoding.offsets, strict=True):
            if symbol.startswith(SPACE) or not parts:
                parts.append((symbol, (start, end)))
            else:
                word, (first, _) = parts[-1]
                first = start if word == SPACE else first
                parts[-1] = word + symbol, (first, end)
        return parts

    def word_ids(self, text: str) -> list[int]:
        """For each token of a text, which of its pre-tokens it comes from."""
        words, number = [], -1
        for symbol in self._split(text):
            number += symbol.startswith(SPACE) or number < 0
            words.append(number)
        return words

    def first_symbols(self, word: str) -> tuple[str, ...]:
        return (word,)

    def readable(self, symbol: str) -> str:
        """A symbol for the eye: ␣ for a space."""
        return visible(symbol.replace(SPACE, " "))

    def _split(self, text: str) -> list[str]:
        code, rest = self._code(text)
        return [code] * bool(code) + self._processor.encode(rest, return_type=str)

    def _code(self, text: str) -> tuple[str, str]:
        """The code of a language that a text may begin with, if it is in the vocabulary, and the
        rest."""
        end = text.find("<<") + 2
        if text.startswith(">>") and end > 1 and text[:end] in self._ids:
            return text[:end], text[end:]
        return "", text


def _processor(file: Path):
    """A SentencePiece model. Raises OSError, and ValueError with a sentence."""
    try:
        import sentencepiece  # an extra: only who has such a model needs it
    except ImportError:
        raise ValueError(missing("sentencepiece", f"The tokenizer {file}")) from None
    try:
        return sentencepiece.SentencePieceProcessor(
            model_proto=read_within(file, LARGEST_TOKENIZER)
        )
    except RuntimeError:
        raise ValueError(f"{file} is not a SentencePiece model.") from None


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the spaces it begins with, as Tokenizer has them."""
    return start + len(text[start:end]) - len(text[start:end].lstrip(" ")), end
