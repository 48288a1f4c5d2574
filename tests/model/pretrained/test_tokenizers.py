"""Tokenizers of other people's models: transformers' ids, offsets that slice the text."""

import json
import re
import sys

import pytest
import transformers
from tokenizers import Regex, Tokenizer, pre_tokenizers

from headlight.model.checkpoint import load
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.trace import read_of
from headlight.model.tokenizer import CONTINUES, CannotRead, name_after
from tests.model.common import in_short
from tests.model.pretrained.folders import say, write

KINDS = ("bert", "gpt2", "llama", "qwen2", "marian")
TEXTS = [
    "The dog sees the dog.",
    "a naïve café – “quotes” 12",
    "Größe: 3,5 m  two  spaces",
    " a leading space",
    "東京 🙂 dogs",
    "Ein Hund sieht die Katze, oder?",
]


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    write(folder, request.param)
    return load(folder), folder


def theirs(folder):
    if (folder / "source.spm").is_file():
        return transformers.MarianTokenizer.from_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_transformers(checkpoint, text):
    ours, folder = checkpoint
    tokenizer = theirs(folder)
    nothing = (ours.tokenizer.encode("a"),) * (len(ours.model.sides()) - 1)
    run = ours.run(text, "a" if nothing else None)
    read = next(iter(read_of(ours.model, run).values()))
    expected = tokenizer(text, truncation=False, padding=False)["input_ids"]
    assert list(read.ids) == expected
    assert sum(bool(role) for role in read.roles) == len(expected) - len(run.texts[0].ids)


@pytest.mark.parametrize("text", TEXTS)
def test_offsets_slice_the_text(checkpoint, text):
    ours, _ = checkpoint
    encoding = ours.tokenizer.encode(text)
    covered = set()
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        assert 0 <= start <= end <= len(text)
        covered |= set(range(start, end))
        if text[start:end].isascii() and text[start:end].isalnum():
            assert token.removeprefix("·") == text[start:end]
    assert covered >= {i for i, character in enumerate(text) if character.isalnum()}
    starts = [start for start, _ in encoding.offsets]
    assert starts == sorted(starts)
    assert not any(encoding.roles)


def test_a_space_put_before_a_text_covers_none_of_it(tmp_path):
    write(tmp_path, "llama")
    tokenizer = load(tmp_path).tokenizer
    for text in ("The dog", "12 dogs"):
        encoding = tokenizer.encode(text)
        assert tokenizer.id_of("▁") == encoding.ids[0] and encoding.offsets[0] == (0, 0)
        assert encoding.tokens[0] == "␣"
        assert "".join(text[start:end] for start, end in encoding.offsets) == text


def test_pieces_of_one_character_share_it(tmp_path):
    """NFKC makes several of it; SentencePiece says of the last alone that it covers it."""
    write(tmp_path, "marian")
    tokenizer = load(tmp_path).tokenizer
    for text in ("½", "a №", "12㎏", "½½ ½"):
        pieces = tokenizer._split(text)
        for piece, token in zip(pieces, tokenizer.encode(text).tokens, strict=True):
            assert (token == "␣") == (piece == "▁"), (text, pieces, token)
    assert tokenizer.encode("№").tokens[-2:] == ("№ 1/2", "№ 2/2")


def test_a_text_has_at_least_as_many_tokens_as_are_foretold(checkpoint):
    tokenizer = checkpoint[0].tokenizer
    for text in (*TEXTS, " " * 50, "🙂 東京" * 9, "the dog " * 20):
        assert tokenizer.at_least(text) <= len(tokenizer.encode(text).ids)
    knows = tokenizer.kind == "BPE"
    assert (tokenizer.at_least("The dog sees the cat. " * 99) > 99) == knows


def test_text_comes_back(checkpoint):
    ours, _ = checkpoint
    for text in (TEXTS[0], TEXTS[5]):
        tokenizer = ours.tokenizer
        found = tokenizer.decode(tokenizer.encode(text).ids)
        if ours.preset == "bert":  # it leaves no space where punctuation was
            found, text = found.replace(" ", ""), text.lower().replace(" ", "")
        assert found == text


def test_pre_tokens_cover_the_tokens(checkpoint):
    ours, _ = checkpoint
    for text in TEXTS:
        words, parts = ours.tokenizer.word_ids(text), ours.tokenizer.pre_tokens(text)
        spans = ours.tokenizer.encode(text).offsets
        for word, (start, end) in zip(words, spans, strict=True):
            first, last = parts[word][1]
            assert start == end or first <= start < end <= last


def test_what_is_generated_has_offsets_in_its_text(checkpoint):
    ours, _ = checkpoint
    tokenizer = ours.tokenizer.target
    ids = tokenizer.encode(TEXTS[0]).ids + tokenizer.encode(TEXTS[5]).ids
    encoding, text = tokenizer.encoding(ids), tokenizer.decode(ids)
    assert encoding.ids == ids and max(end for _, end in encoding.offsets) <= len(text)
    assert [tokenizer.token(i) for i in range(tokenizer.last_id + 3)]


def test_a_token_after_another_is_called_as_in_the_text(checkpoint):
    """But for parts of one character, and for whatever follows them."""
    ours, _ = checkpoint
    tokenizer, continued = ours.tokenizer.target, 0
    for text in TEXTS:
        encoding = tokenizer.encoding(tokenizer.encode(text).ids)
        pairs = zip(encoding.ids, encoding.ids[1:], encoding.tokens[1:], strict=False)
        for before, token_id, name in pairs:
            if any("<0x" in tokenizer.token(one) for one in (before, token_id)):
                break
            assert name_after(tokenizer, token_id, before) == name
            continued += name.startswith(CONTINUES)
    assert continued


TYPED = {  # a text with special tokens, which are not at its ends alone
    "bert": "the dog [SEP] sees [CLS] the [UNK] cat [SEP]",
    "gpt2": "the dog<|endoftext|> sees it",
    "llama": "<s>the dog</s> sees",
    "qwen3": "the dog sees <|endoftext|>",
}


@pytest.mark.parametrize("kind", TYPED)
def test_special_tokens_that_are_typed_are_those_tokens(kind, tmp_path):
    write(tmp_path, kind)
    checkpoint = load(tmp_path)
    read = next(iter(read_of(checkpoint.model, checkpoint.run(TYPED[kind])).values()))
    assert list(read.ids) == theirs(tmp_path)(TYPED[kind])["input_ids"]
    inside = [(token, role) for token, role, span in zip(read.tokens, read.roles, read.offsets,
              strict=True) if span[1] > span[0] and role]  # fmt: skip
    wanted = [word for word in re.findall(r"\[\w+\]|<[^>]+>", TYPED[kind])]
    assert inside == [(word, "special") for word in wanted]
    assert checkpoint.trace(TYPED[kind]).logits.shape[-1] == len(checkpoint.tokenizer)


@pytest.mark.parametrize("kind, token", [("bert", "[PAD]"), ("llama", "<pad>"), ("marian", "</s>")])
def test_padding_and_ends_that_cannot_be_typed_are_said(kind, token, tmp_path):
    write(tmp_path, kind)
    with pytest.raises(CannotRead, match=re.escape(token) + ".* cannot be typed"):
        load(tmp_path).encode(f"the dog {token} sees")


def test_a_language_is_named_before_a_text(tmp_path):
    write(tmp_path, "marian")
    tokenizer = load(tmp_path).tokenizer
    encoding = tokenizer.encode(">>deu<< The dog")
    assert encoding.ids[0] == tokenizer.id_of(">>deu<<") and encoding.offsets[0] == (0, 7)
    assert encoding.ids[1:] == tokenizer.encode(" The dog").ids
    assert ">>xyz<<" not in tokenizer.encode(">>xyz<< The dog").tokens


def test_default_ids_beyond_the_vocabulary_are_those_of_no_token(tmp_path):
    """GPT-2's config says 50256, whatever the size of the vocabulary."""
    write(tmp_path, "gpt2")
    say(tmp_path / "config.json", bos_token_id=50256, eos_token_id=50256)
    model = load(tmp_path)
    assert (model.model.config.pad_id, model.model.config.eos_id) == (-1, -1)
    trace = model.trace("The dog sees the dog.")
    assert not any(trace.tgt.roles)
    written = model.generate("The dog", max_tokens=9)
    assert len(written.path) == 9


def test_without_sentencepiece(tmp_path, monkeypatch):
    write(tmp_path, "marian")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(CannotLoad, match="needs sentencepiece"):
        load(tmp_path)


FAST, PLAIN = "PreTrainedTokenizerFast", {}
SAID = [  # kind of folder, what its tokenizer_config.json says; None: there is none
    ("bert", None),
    ("bert", dict(do_lower_case=False)),
    ("bert", dict(strip_accents=False, tokenizer_class="BertTokenizerFast")),
    ("bert", dict(tokenize_chinese_chars=False)),
    ("bert", dict(tokenizer_class=FAST, do_lower_case=False)),
    ("bert", dict(tokenizer_class="GPT2Tokenizer")),
    ("gpt2", PLAIN),
    ("gpt2", dict(add_prefix_space=True)),
    ("gpt2", dict(add_prefix_space=True, tokenizer_class=FAST)),
    ("gpt2", dict(tokenizer_class="Qwen2Tokenizer")),
    ("llama", None),
    ("llama", dict(tokenizer_class="LlamaTokenizerFast", legacy=False)),
    ("llama", dict(tokenizer_class="LlamaTokenizer", add_prefix_space=False)),
    ("llama", dict(tokenizer_class="LlamaTokenizer", add_eos_token=True)),
    ("mistral", dict(tokenizer_class="GPT2Tokenizer", add_prefix_space=True)),
    ("qwen2", dict(tokenizer_class=FAST, add_prefix_space=True)),
    ("qwen3", dict(tokenizer_class="GPT2TokenizerFast")),
    ("qwen3", PLAIN),
]


@pytest.mark.parametrize("number", in_short(range(len(SAID)), *range(1, len(SAID), 3)))
def test_what_another_file_says_decides_as_in_transformers(number, tmp_path):
    """Case, accents, spaces and the tokenizer's class: the same ids, or a refusal that names both
    files."""
    kind, said = SAID[number]
    write(tmp_path, kind)
    if said is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    try:
        checkpoint = load(tmp_path)
    except CannotLoad as error:
        assert "tokenizer_config.json" in str(error) and "tokenizer.json" in str(error)
        assert said["tokenizer_class"] in str(error)
        return
    tokenizer = theirs(tmp_path)
    for text in (*TEXTS, "A Dog CAFÉ 日本 1234", "it's"):
        read = next(iter(read_of(checkpoint.model, checkpoint.run(text)).values()))
        assert list(read.ids) == tokenizer(text, truncation=False, padding=False)["input_ids"], text
        encoding = checkpoint.tokenizer.encode(text)
        assert all(0 <= start <= end <= len(text) for start, end in encoding.offsets)


def test_a_text_that_the_library_gives_up_on(tmp_path):
    """The tokenizer reads others, before and after."""
    write(tmp_path, "gpt2")
    as_it_is = '{"tokenizer_class": "PreTrainedTokenizerFast"}'  # tokenizer.json says it all
    (tmp_path / "tokenizer_config.json").write_text(as_it_is)
    file = str(tmp_path / "tokenizer.json")
    backend = Tokenizer.from_file(file)
    endless = pre_tokenizers.Split(Regex("(☃+☃+)+y"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([endless, backend.pre_tokenizer])
    backend.save(file)
    tokenizer = load(tmp_path).tokenizer
    first = tokenizer.encode("the dog").ids
    for read in (
        tokenizer.encode,
        tokenizer.pre_tokens,
        tokenizer.word_ids,
        lambda text: tokenizer.encode_batch([text]),
    ):
        with pytest.raises(CannotRead, match=r"fails on this text: Onig: Regex search error.*\.$"):
            read("☃" * 30)
    assert tokenizer.encode("the dog").ids == first
