"""Seeing every weight should cost no more than PyTorch's own model, which shows none."""

from functools import partial

import torch

from headlight.model.masks import Masks
from headlight.model.probing.capture import capture, view
from headlight.model.probing.reference import Reference
from headlight.model.transformer import Config, Transformer
from tests.bench.harness import Row
from tests.devices import here

CAUSAL = Masks(src_padding=False, tgt_padding=False, memory_padding=False)


def forward(length: int):
    """The paper's base model with a small vocabulary, so that the generator does not dominate."""
    torch.manual_seed(0)
    config = Config(vocab_size=1000)
    model = here(Transformer(config).eval().requires_grad_(False))
    own, twin = view(model), Reference(model)
    src, tgt = here(torch.randint(3, config.vocab_size, (2, 1, length)))

    @torch.no_grad()
    def ours():
        with capture(own) as seen:
            logits = own(src, tgt, *CAUSAL.build(own, src, tgt))
        return logits, seen

    @torch.no_grad()
    def theirs():
        return twin(src, tgt, CAUSAL)

    return ours, theirs


ROWS = [
    Row(
        name=f"capture {length}",
        condition=f"forward pass with all weights captured ÷ torch.nn.Transformer, d_model 512, "
        f"6+6 layers, 8 heads, batch 1, {length} tokens",
        bar=1.05,
        sides=partial(forward, length),
        pairs=pairs,
    )
    for length, pairs in ((20, 200), (128, 60), (512, 30))
]
