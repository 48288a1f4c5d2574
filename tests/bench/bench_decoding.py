"""Decoding one sentence should be quick against Hugging Face's model of the same shape."""

from functools import partial

import torch

from headlight.model import presets
from headlight.model.decoding.search import beam_search, greedy_decode
from tests.bench.harness import Row
from tests.devices import here

TOKENS = 40
SIZES = dict(vocab_size=6000, d_model=128, n_heads=4, d_ff=256)


def decode(beam: int):
    """Random weights end no sentence: both write as many tokens as they may."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    depth = dict(n_encoder_layers=4, n_decoder_layers=4)
    model = here(presets.build("paper", **SIZES, **depth).eval().requires_grad_(False))
    config = MarianConfig(
        vocab_size=6000,
        d_model=128,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=256,
        decoder_ffn_dim=256,
        max_position_embeddings=1024,
        pad_token_id=0,
        decoder_start_token_id=1,
        eos_token_id=2,
        forced_eos_token_id=None,
    )
    marian = here(MarianMTModel(config).eval().requires_grad_(False))
    src = here(torch.randint(3, 6000, (1, 15)))

    def ours():
        if beam == 1:
            found = greedy_decode(model, src, max_length=TOKENS)
        else:
            found = beam_search(model, src, beam, max_length=TOKENS)
        assert len(found[0]) == TOKENS

    def theirs():
        found = marian.generate(
            src, num_beams=beam, do_sample=False, max_new_tokens=TOKENS, min_new_tokens=TOKENS
        )
        assert found.shape[1] == TOKENS + 1

    return ours, theirs


ROWS = [
    Row(
        name=f"decoding, {name}",
        condition=f"one sentence of 15 tokens into {TOKENS} ÷ MarianMTModel.generate, random "
        f"weights, 4+4 layers, d_model 128, {name}",
        bar=bar,
        sides=partial(decode, beam),
    )
    for name, beam, bar in (("greedy", 1, 1 / 3), ("beam 4", 4, 1 / 2))
]
