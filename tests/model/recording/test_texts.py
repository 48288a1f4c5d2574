"""Tokens of other tokenizers, as ours are written."""

import pytest
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers

from headlight.model import record
from headlight.model.recording.texts import Names, as_text, as_typed

TEXTS = ["Où est le café 🙂 ?", "naïve\nlines", " a  b", "日本語", "plain"]


@pytest.mark.parametrize("text", TEXTS)
def test_bytes_are_read_as_letters(text):
    """Byte-level tokens stand for what the library itself splits a text into."""
    bytes_of_text = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    (whole, _), *_ = bytes_of_text.pre_tokenize_str(text)
    tokens = list(whole)  # a token for each byte, the worst that can happen
    read = as_text(tokens, len(tokens), "text")
    assert as_typed(read) == " ".join(text.split())
    assert not any("Ġ" in token or "Ã" in token for token in read.tokens)


def test_words_of_bytes():
    tokens = ["Ã‰", "tÃ©", "Ġ", "ĠcafÃ©", "s", "Ċ", "<|end|>", "ĠðŁ", "ĻĤ"]
    tokens[0] = "Ãī"  # É, as the table writes it
    read = as_text(tokens, len(tokens), "text")
    assert read.tokens == ("É", "·té", "␣", "café", "·s", "\\n", "<|end|>", "🙂 1/2", "🙂 2/2")


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (["▁un", "believ", "able", "▁", "▁x"], ("un", "·believ", "·able", "␣", "x")),
        (["un", "##believ", "[SEP]", "##able"], ("un", "·believ", "[SEP]", "·able")),
        (["two", "words"], ("two", "words")),
    ],
)
def test_marks_of_spaces_are_read(tokens, shown):
    assert as_text(tokens, len(tokens), "text").tokens == shown


def test_what_cannot_be_read_gets_a_sentence():
    backend = Tokenizer(models.WordLevel({"dog": 0, "[UNK]": 1}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=backend)
    sizes = dict(n_layer=1, n_head=2, n_embd=8, vocab_size=2, n_positions=9)
    model = tf.GPT2LMHeadModel(tf.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    for given, says in [
        ((tokenizer, "dog " * 12), "12 tokens long. This model reads at most 9"),
        ((tokenizer, ""), "is empty"),
        ((tokenizer, ["the dog", "a cat"]), "one text at a time"),
        ((tokenizer, tokenizer("dog")), "output as inputs="),
        ((backend, "dog"), "Wrap it: PreTrainedTokenizerFast"),
        (("the dog",), "The tokenizer is missing"),
        ((None, "the dog"), "needs the model's tokenizer"),
    ]:
        with pytest.raises(ValueError, match=says):
            record(model, *given)


def test_bytes_of_one_character_share_it_whatever_they_are_called():
    """ByT5 calls each by a character of Latin-1, SentencePiece by its number."""
    tokenizer = tf.ByT5Tokenizer()
    names = Names(tokenizer)
    text = names.text(tokenizer("été 🙂")["input_ids"])
    shares = tuple(f"🙂 {i}/4" for i in range(1, 5))
    assert text.tokens == ("é 1/2", "é 2/2", "·t", "é 1/2", "é 2/2", "␣", *shares, "</s>")
    assert as_typed(text) == "été 🙂"
    first, second = tokenizer("é")["input_ids"][:2]
    assert names.after(second, first) == "é 2/2"
    tokens = ["▁t", "<0xC3>", "<0xA9>", "▁", "<s>"]
    assert as_text(tokens, 5, "text").tokens == ("t", "é 1/2", "é 2/2", "␣", "<s>")
