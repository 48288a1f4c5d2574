import random

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from headlight.model.checkpoint import Checkpoint, load
from headlight.model.probing.trace import TooLong
from headlight.model.surveys.sentences import Line, encode
from headlight.model.tokenizer import SPECIAL, Tokenizer
from headlight.model.training.data import DataError
from tests.model.common import random_model, tiny_tokenizer

TINY = tiny_tokenizer()
ORDINARY = [
    "The dog sees the dog.",
    "the dog the",
    "A  cat,   three spaces",
    " a leading space",
    "Größe und 42 Häuser",
    "hund's (katze)",
    "naïve café: 3.14!",
]


def random_texts(count):
    """Strings of any characters but lone surrogates, from all planes, some of them ordinary."""
    draw = random.Random(0)
    ranges = [(0x20, 0x7F), (0x00, 0x20), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10FFFF)]
    for _ in range(count):
        yield "".join(
            draw.choice([" ", "the dog", chr(draw.randint(*draw.choice(ranges)))])
            for _ in range(draw.randint(0, 30))
        )


def test_any_text_survives(tokenizer):
    """But for the apostrophe and the spaces that it reads as others."""
    for text in [*ORDINARY, *SPECIAL, *random_texts(500)]:
        as_read = text
        for other, usual in {"’": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " "}.items():
            as_read = as_read.replace(other, usual)
        assert tokenizer.decode(tokenizer.encode(text).ids) == as_read


def test_a_phone_s_apostrophe_is_read_as_the_usual_one(tokenizer):
    typed, usual = (tokenizer.encode(f"I{mark}m here.") for mark in "’'")
    assert typed.ids == usual.ids
    assert typed.offsets == usual.offsets
    assert "’" in "".join(typed.tokens)  # a token is called by what was typed
    assert tokenizer.encode("50\u202f%").ids == tokenizer.encode("50 %").ids


@pytest.mark.parametrize("text", ORDINARY)
def test_offsets_are_those_of_the_library(tokenizer, text):
    """On ordinary text; where one character is several tokens the library leaves some empty."""
    theirs = tokenizer._backend.encode(text)
    ours = tokenizer.encode(text)
    assert list(ours.ids) == theirs.ids
    solid = [i for i, (start, end) in enumerate(theirs.offsets) if text[start:end].strip()]
    assert [ours.offsets[i] for i in solid] == [theirs.offsets[i] for i in solid]


def test_special_tokens_typed_by_the_user_are_ordinary_text(tokenizer):
    words = tokenizer.word_ids("the dog 🙂")  # each token comes from one word
    assert words[:3] == [0, 1, 2] and {*words[2:]} == {2} and tokenizer.word_ids("") == []
    assert len(words) == len(tokenizer.encode("the dog 🙂").ids)
    for text in SPECIAL:
        encoding = tokenizer.encode(f"the {text} dog")
        assert min(encoding.ids) >= len(SPECIAL)
        assert len(encoding.ids) > 3


def test_any_ids_have_tokens_and_offsets_in_what_they_decode_to(tokenizer):
    """A model may write bytes that are no UTF-8, and begin without a space."""
    draw = random.Random(1)
    for _ in range(500):
        ids = [draw.randrange(len(tokenizer)) for _ in range(draw.randint(0, 12))]
        encoding = tokenizer.encoding(ids)
        assert encoding.ids == tuple(i for i in ids if i >= len(SPECIAL))
        assert all(token.encode("utf-8") for token in encoding.tokens)
        text = tokenizer.decode(ids)
        if "\ufffd" not in text:
            assert all(0 <= start <= end <= len(text) for start, end in encoding.offsets)


def test_dropout_splits_a_text_otherwise_and_loses_nothing(tokenizer):
    text, usual = "The dog sees the dog.", tokenizer.encode("The dog sees the dog.").ids
    assert tokenizer.with_dropout(0.0).encode(text).ids == usual
    ways = {tokenizer.with_dropout(0.5).encode(text).ids for _ in range(20)}
    assert len(ways) > 5
    assert {tokenizer.decode(ids) for ids in ways} == {text}
    letters = tokenizer.with_dropout(1.0).encode(text).ids
    assert len(letters) == len(f" {text}")
    assert tokenizer.encode(text).ids == usual  # the tokenizer itself is as before


def word_piece():
    """A tokenizer of another kind, which lowers letters."""
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    backend.train_from_iterator(ORDINARY, trainer)
    backend.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return Tokenizer(backend)


def test_of_another_tokenizer_offsets_are_the_library_s():
    tokenizer = word_piece()
    encoding = tokenizer.encode("The DOG sees")
    theirs = tokenizer._backend.encode("The DOG sees", add_special_tokens=False)
    assert list(encoding.ids) == theirs.ids and list(encoding.offsets) == theirs.offsets
    assert "".join(encoding.tokens).replace("·", "") == "TheDOGsees"
    assert tokenizer.encode_batch(["The DOG sees"]) == [theirs.ids]
    assert tokenizer.token(1) == "[CLS]"
    for text in random_texts(200):
        encoding = tokenizer.encode(text)
        assert len(encoding.ids) == len(encoding.tokens) == len(encoding.offsets)


def test_special_tokens_stay_in_their_places():
    tokenizer = load("en-de").tokenizer
    ids = (0, *tokenizer.encode("Ein Hund").ids, 1, *tokenizer.encode("läuft.").ids, 2)
    found = tokenizer.encoding_with_special(ids)
    assert found.ids == ids
    assert [found.tokens[i] for i in (0, 3, -1)] == ["<pad>", "<s>", "</s>"]
    assert all(start == end for start, end in (found.offsets[i] for i in (0, 3, -1)))
    ordinary = tokenizer.encoding(ids)
    rest = [(t, o) for i, t, o in zip(ids, found.tokens, found.offsets, strict=True) if i > 2]
    assert rest == list(zip(ordinary.tokens, ordinary.offsets, strict=True))


@given(text=st.text(max_size=30), times=st.integers(1, 20))
def test_a_text_has_at_least_as_many_tokens_as_are_foretold(text, times):
    tokenizer = TINY
    assert tokenizer.at_least(text * times) <= len(tokenizer.encode(text * times).ids)


def test_a_megabyte_is_refused_before_it_is_made_into_tokens(tokenizer, monkeypatch):
    """With both numbers, of which one is said to be a bound."""
    model = random_model(vocab_size=len(tokenizer))
    checkpoint = Checkpoint(model, tokenizer, {}, "paper")
    fits = "🙂" * 9
    assert len(checkpoint.encode(fits).ids) + 1 <= model.config.max_length
    monkeypatch.setattr(Tokenizer, "encode", None)
    expected = (
        r"^The (source|target) is at least [\d,]+ tokens long. This model reads at most 40\.$"
    )
    for text in ("A dog runs. " * 80_000, "🙂" * 250_000, " " * 10**6):
        with pytest.raises(TooLong, match=expected):
            checkpoint.trace(text)
        with pytest.raises(TooLong, match=expected):
            checkpoint.encode(text, 1)
        with pytest.raises(DataError, match="at least"):
            encode(checkpoint, [Line(1, text)])


def byte_level(normalizer=None):
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    if normalizer:
        backend.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, show_progress=False, special_tokens=SPECIAL
    )
    backend.train_from_iterator(["the dog naïve ½ 🙂🙃 שלום 中文"] * 3, trainer)
    return Tokenizer(backend)


def falling_back():
    """A BPE of characters, as Llama's: what it does not know it reads byte by byte."""
    pieces = [*SPECIAL, "<unk>", *(f"<0x{i:02X}>" for i in range(256)), "▁", *"adeghot"]
    backend = tokenizers.Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, [], unk_token="<unk>",
                   byte_fallback=True)
    )  # fmt: skip
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    replaced = decoders.Replace("▁", " ")
    backend.decoder = decoders.Sequence(
        [replaced, decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return Tokenizer(backend)


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "made",
    [byte_level(), byte_level(normalizers.NFKC()), byte_level(normalizers.NFD()), falling_back()],
)
def test_a_token_has_one_name_and_no_space_for_what_is_none(made, count):
    """As it was typed and, where that is the same text, as a model writes it."""
    scripts = "½…ﷺ🙂🙃éñßשלוم中文かなไทยहिन्दी👩‍👩‍👧🇩🇪\u0301\u200d\ufb01 \n"
    draw = random.Random(count)
    some = ["".join(draw.choices(scripts + "thedog ", k=12)) for _ in range(count)]
    for text in [*random_texts(count), *some]:
        typed = made.encode(text)
        for token, (start, end) in zip(typed.tokens, typed.offsets, strict=True):
            covered = text[start:end] or text[:start][-1:]
            assert token != "␣" or not covered.strip(), (text, token)
            assert token and "\\ud" not in token
        if made.decode(typed.ids) == text:
            assert made.encoding(typed.ids).tokens == typed.tokens, text
        shares = [token for token in typed.tokens if "/" in token and " " in token]
        assert all(part.strip() for token in shares for part in token.split(" ")), text


def test_bytes_that_end_within_the_next_character_are_shares_of_both():
    made = byte_level()
    assert made.encode("naïve").tokens == ("na ï 1/2", "ï 2/2 ve")
    assert made.encoding([made.id_of("Ã"), made.id_of("t")]).tokens == ("<0xC3>", "t")
    assert made.token(made.id_of("Ã")) == "<0xC3>"
    llama = falling_back()
    assert llama.encoding(llama.encode("a🙂").ids).tokens[-4:] == llama.encode("a🙂").tokens[-4:]
    assert llama.encode("a🙂").tokens[-1] == "🙂 4/4"
    assert llama.encoding([llama.id_of("<0xF0>"), llama.id_of("a")]).tokens == ("<0xF0>", "a")
