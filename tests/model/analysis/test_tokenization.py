"""Merges end in exactly the tokens that the library gives: the shipped tokenizers, and kinds of BPE
that other models bring along."""

import itertools
import random

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from headlight.model.analysis.tokenization import merges
from headlight.model.checkpoint import SHIPPED
from headlight.model.tokenizer import Tokenizer
from tests.conftest import LINES
from tests.model.test_tokenizer import ORDINARY, random_texts

SENTENCES = [*LINES, "low lower lowest newer widest", "die Häuser, größer als früher!"] * 2


ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
SPACES, BYTES = pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=True)
KINDS = {  # options of the model, of its training, pre-tokenizer, decoder
    "suffix, unknown letters": (
        dict(unk_token="<unk>", end_of_word_suffix="</w>"), dict(end_of_word_suffix="</w>"),
        SPACES, decoders.BPEDecoder(),
    ),
    "prefix, unknown letters in one": (
        dict(unk_token="<unk>", fuse_unk=True, continuing_subword_prefix="##"),
        dict(continuing_subword_prefix="##"), SPACES, decoders.BPEDecoder(),
    ),
    "bytes where letters are unknown": (
        dict(unk_token="<unk>", byte_fallback=True, fuse_unk=True), {},
        None, decoders.Replace("▁", " "),
    ),
    "whole words first": (
        dict(ignore_merges=True), dict(initial_alphabet=ALPHABET), BYTES, decoders.ByteLevel(),
    ),
}  # fmt: skip


def other(name: str) -> Tokenizer:
    """A BPE such as another family of models has, trained on a few lines."""
    options, training, pre_tokenizer, decoder = KINDS[name]
    backend = tokenizers.Tokenizer(models.BPE(**options))
    if pre_tokenizer:
        backend.pre_tokenizer = pre_tokenizer
    else:
        backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoder
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, show_progress=False, **training
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return Tokenizer(backend)


def tokens_by_merging(tokenizer: Tokenizer, text: str) -> list[str]:
    tokens = []
    for word, _ in tokenizer.pre_tokens(text):
        symbols = tokenizer.first_symbols(word)
        for merge in merges(tokenizer, word):
            assert len(merge.symbols) == len(symbols) - 1
            assert symbols[merge.at : merge.at + 2] == merge.pair
            symbols = merge.symbols
        tokens += symbols
    return tokens


def hostile_texts() -> list[str]:
    draw = random.Random(2)
    letters = "".join(draw.choice("aenrst ") for _ in range(3000))
    return ["", " ", "🙂🙃 🙂", "שלום עולם", "<b>bold</b> <s> </s>", "a" * 3000, letters]


@pytest.mark.parametrize(
    "name", [*(file.parent.name for file in sorted(SHIPPED.glob("*/tokenizer.json"))), *KINDS]
)
def test_merges_end_as_the_library(name):
    tokenizer = other(name) if name in KINDS else Tokenizer.load(SHIPPED / name / "tokenizer.json")
    for text in [*ORDINARY, *SENTENCES, *hostile_texts(), *random_texts(300)]:
        theirs = tokenizer._backend.encode(text, add_special_tokens=False).tokens
        assert tokens_by_merging(tokenizer, text) == theirs, text


def test_each_merge_is_of_the_lowest_rank_there_is(tokenizer):
    for text in ("the dogged katze", "a" * 40):
        for word, _ in tokenizer.pre_tokens(text):
            symbols = tokenizer.first_symbols(word)
            for merge in merges(tokenizer, word):
                pairs = itertools.pairwise(symbols)
                known = [tokenizer.merges[pair][0] for pair in pairs if pair in tokenizer.merges]
                assert merge.rank == min(known)
                symbols = merge.symbols
            assert not any(pair in tokenizer.merges for pair in itertools.pairwise(symbols))


def test_symbols_are_readable(tokenizer):
    assert tokenizer.readable("Ġdog") == "␣dog"
    first = tokenizer.first_symbols(tokenizer.pre_tokens("🙂")[0][0])
    assert [tokenizer.readable(s) for s in first] == ["␣", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>"]
    assert tokenizer.readable(tokenizer.pre_tokens("a\tb")[1][0]).startswith("\\t")


def test_no_bpe_has_no_merges():
    backend = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "the": 1}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = Tokenizer(backend)
    assert tokenizer.kind == "WordLevel" and tokenizer.merges == {}
    assert [word for word, _ in tokenizer.pre_tokens("the dog")] == ["the", "dog"]
    assert tokenizer.encode("the dog").ids == (1, 0)
