"""A model that grows writes what it wrote; only its new tokens are new."""

import pytest
import torch

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.data import DataError
from headlight.model.training.grow import grown

TEXTS = ["A dog runs.", "Two men are talking.", "What time is it?", "Ein Hund läuft."] * 3


@pytest.fixture(scope="module")
def en_de():
    return load("en-de")


def logits(checkpoint, src, tgt):
    with torch.no_grad():
        return checkpoint.model(src, tgt, *Masks().build(checkpoint.model, src, tgt))


def test_wider_feed_forwards_change_no_logit(en_de):
    d_ff = en_de.model.config.d_ff
    wide = grown(en_de, en_de.tokenizer, d_ff + 128)
    src, tgt = (torch.randint(3, 6000, (2, n), generator=torch.Generator().manual_seed(n))
                for n in (9, 7))  # fmt: skip
    torch.testing.assert_close(logits(wide, src, tgt), logits(en_de, src, tgt))
    assert wide.model.encoder.layers[0].feed_forward.linear1.out_features == d_ff + 128
    assert wide.model.config.d_ff == d_ff + 128
    unused = wide.model.encoder.layers[0].feed_forward.linear1.weight[d_ff:]
    assert unused.std() > 0.01  # they can learn


def test_tokens_keep_their_vectors_and_new_ones_begin_with_those_of_their_parts(en_de):
    tokenizer = Tokenizer.train(TEXTS, 320)
    new = grown(en_de, tokenizer, en_de.model.config.d_ff).model.src_embedding.token.weight
    old = en_de.model.src_embedding.token.weight
    assert len(new) == len(tokenizer)
    shared = 0
    for i, symbol in enumerate(tokenizer.symbols()):
        parts = en_de.tokenizer.ids_of_symbol(symbol)
        shared += len(parts) == 1
        torch.testing.assert_close(new[i], old[parts].mean(dim=0))
    assert 200 < shared < len(tokenizer)


def test_one_matrix_stays_one(en_de):
    model = grown(en_de, Tokenizer.train(TEXTS, 300), en_de.model.config.d_ff).model
    assert model.generator.weight is model.src_embedding.token.weight


def test_it_cannot_shrink(en_de):
    d_ff = en_de.model.config.d_ff
    with pytest.raises(DataError, match=f"only grow: 128 is less than the model's {d_ff}"):
        grown(en_de, en_de.tokenizer, 128)
