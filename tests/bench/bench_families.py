"""Seeing every weight of a Llama should cost no more than in transformers."""

import torch
import transformers

from headlight.model import presets
from headlight.model.masks import Masks
from headlight.model.probing.capture import capture, view
from tests.bench.harness import Row
from tests.devices import here

LENGTH, VOCABULARY, LAYERS = 128, 1000, 12  # a small vocabulary: the output is not what is measured


def forward():
    torch.manual_seed(0)
    sizes = presets.own_sizes("llama", VOCABULARY) | dict(n_decoder_layers=LAYERS)
    model = here(presets.build("llama", **sizes).eval().requires_grad_(False))
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=sizes["d_model"],
        intermediate_size=sizes["d_ff"],
        num_hidden_layers=LAYERS,
        num_attention_heads=sizes["n_heads"],
        num_key_value_heads=sizes["n_key_heads"],
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    other = here(transformers.LlamaForCausalLM(config).eval().requires_grad_(False))
    one, ids = view(model), here(torch.randint(3, VOCABULARY, (1, LENGTH)))

    @torch.no_grad()
    def ours():
        with capture(one) as outputs:
            logits = one(ids, *Masks().build(one, ids))
        assert len(outputs) == LAYERS
        return logits, outputs

    @torch.no_grad()
    def theirs():
        found = other(ids, output_attentions=True, use_cache=False)
        assert len(found.attentions) == LAYERS
        return found

    return ours, theirs


ROWS = [
    Row(
        name=f"capture llama {LENGTH}",
        condition=f"forward pass with all weights captured ÷ transformers, eager, with "
        f"output_attentions: Llama, d_model 576, {LAYERS} layers, 9 heads in 3 groups, "
        f"{LENGTH} tokens",
        bar=1.0,
        sides=forward,
        pairs=60,
    )
]
