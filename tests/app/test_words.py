import numpy as np
import pytest

from app import words
from app.charts import Axis
from model import presets
from model.tokenizer import Tokenizer
from model.trace import trace
from tests.conftest import LINES


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, vocab_size=300)


def test_plain_text_needs_no_notice(tokenizer):
    assert words.notices("source", "the dog", tokenizer.encode("the dog")) == []


@pytest.mark.parametrize(
    ("text", "code"), [("a\tb", "U+0009"), ("a\u200db", "U+200D"), ("\x00", "U+0000")]
)
def test_invisible_characters_are_named(tokenizer, text, code):
    said = words.notices("source", text, tokenizer.encode(text))
    assert any("invisible" in sentence and code in sentence for sentence in said)


@pytest.mark.parametrize("text", ["🙂", "中文", "שלום"])
def test_characters_read_byte_by_byte_are_named(tokenizer, text):
    said = words.notices("source", text, tokenizer.encode(text))
    assert any(f"U+{ord(text[0]):04X}" in sentence for sentence in said)


def test_empty_rows_are_said():
    weights = np.eye(3)
    query = Axis("", ["the", "dog", "the"])
    assert words.empty_rows(weights, query) is None
    weights[1] = 0
    assert "1 of 3" in words.empty_rows(weights, query)
    assert "“dog”" in words.empty_rows(weights, query)


def test_nan_is_located(tokenizer):
    sizes = dict(vocab_size=len(tokenizer), d_model=8, n_heads=2, d_ff=8)
    model = presets.build("paper", **sizes, n_encoder_layers=1, n_decoder_layers=2).eval()
    made = trace(model, tokenizer.encode("the dog"), tokenizer.encode("ein"))
    attention = {kind: weights.copy() for kind, weights in made.attention.items()}
    assert words.first_undefined(attention, made) is None
    attention["decoder"][1, :, 0] = np.nan
    attention["cross"][1] = np.nan
    said = words.first_undefined(attention, made)
    assert "decoder self-attention, layer 2, row “<s>”" in said
