"""One update should be no slower than the same loop around torch.nn.Transformer."""

import torch
from torch import nn

from headlight.model import presets
from headlight.model.training.train import loss_of
from tests.bench.harness import Row
from tests.devices import current, here

SIZES = dict(vocab_size=6000, d_model=128, n_heads=4, d_ff=256, dropout=0.3)


class Twin(nn.Module):
    """torch.nn.Transformer between the same embeddings and generator, called as ours is."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        config = model.config
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=True,
        )
        model.encoder = model.decoder = None

    def forward(self, src, tgt, src_mask, tgt_mask, memory_mask):
        hidden = self.transformer(
            self.model.src_embedding(src),
            self.model.tgt_embedding(tgt),
            tgt_mask=~tgt_mask[0, 0],
            src_key_padding_mask=None if src_mask is None else ~src_mask[:, 0, 0],
            memory_key_padding_mask=None if memory_mask is None else ~memory_mask[:, 0, 0],
        )
        return self.model.generator(hidden)


def updates():
    """The shipped translation model's sizes, on a batch of 256 pairs of about 16 tokens."""
    torch.manual_seed(0)
    depth = dict(n_encoder_layers=4, n_decoder_layers=4)
    lengths = torch.randint(13, 18, (256,)).tolist()
    batch = [
        (torch.randint(3, 6000, (length,)).tolist(), torch.randint(3, 6000, (17,)).tolist())
        for length in lengths
    ]

    def update(model, bare):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

        def run():
            loss = loss_of(model, bare, batch, 0.1, current())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return run

    ours, theirs = (presets.build("pre_norm", **SIZES, **depth).train() for _ in range(2))
    ours, twin = here(ours), here(Twin(theirs).train())
    return update(ours, ours), update(twin, ours)


ROWS = [
    Row(
        name="training",
        condition="one update ÷ the same loop around torch.nn.Transformer, 4+4 layers, d_model "
        "128, pre-norm, dropout 0.3, 256 pairs of about 16 tokens",
        bar=1.0,
        sides=updates,
        pairs=10,
    )
]
