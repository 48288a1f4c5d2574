"""Six small models with the fault of a public thread; the code is our own."""

import torch
from torch import nn

from tests.model.checking.whole.zoo.planted import D, H, PAD, V, MiniGPT, Scratch, Sinusoids


class MoleculeEncoder(nn.Module):
    """DaoyuanLi2816/Molecule-Generator PR #22 (2026): batch_first left out, padding never masked."""

    def __init__(self):
        super().__init__()
        self.pad_idx = PAD
        self.embed, self.position = nn.Embedding(V, D), Sinusoids()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 32), 2)
        self.mean = nn.Linear(D, 8)

    def forward(self, x):
        return self.mean(self.encoder(self.position(self.embed(x))).mean(1))


class RowsOfATable(nn.Module):
    """IBM/TabFormer PR #14: nn.MultiheadAttention is given (batch, length, width)."""

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(V, D), Sinusoids()
        self.attention = nn.MultiheadAttention(D, H)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, ids):
        x = self.position(self.embed(ids))
        return self.head(self.norm(x + self.attention(x, x, x)[0]))


class WrongCrossMask(Scratch):
    """Kamichanw/SeekDeeper #3: the cross-attention gets another mask than the source's."""

    def forward(self, src, trg):
        src_mask, trg_mask, _ = self.masks(src, trg)
        memory = self.position(self.enc_embed(src))
        for layer in self.encoder:
            memory = layer(memory, mask=src_mask)
        x = self.position(self.dec_embed(trg))
        rows = (trg != PAD)[:, None, :, None]  # of the target: hides rows, not the source's padding
        for layer in self.decoder:
            x = layer(x, memory, trg_mask, rows)
        return self.out(x)


class DecoderForgotten(nn.Module):
    """huggingface/transformers #48745 (2026): a causal model whose layers are built as an encoder's."""

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(V, D), Sinusoids()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 32, batch_first=True), 2)
        self.head = nn.Linear(D, V)

    def forward(self, input_ids, attention_mask=None):
        hidden = None if attention_mask is None else attention_mask == 0
        return self.head(self.encoder(self.position(self.embed(input_ids)), src_key_padding_mask=hidden))


class TooWeak(MiniGPT):
    """karpathy/minGPT #75, huggingface/transformers #17121: −1e4 hides only what has small scores.
    Here weights are as large as a diverging training makes them."""

    def __init__(self):
        super().__init__("thousands")


class TutorialPositions(nn.Module):
    """KasperGroesLudvigsen/influenza_transformer #9, tanjimin/C.Origami #42: a table for (length, batch, width) is cut by the first axis of a batch that
    comes first."""

    def __init__(self):
        super().__init__()
        self.pad_id = PAD
        self.embed, self.position = nn.Embedding(V, D), Sinusoids("batch positions")
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 32, batch_first=True), 2)
        self.head = nn.Linear(D, V)

    def forward(self, src):
        n = src.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.head(self.body(self.position(self.embed(src)), mask=mask))


THREADS = {
    MoleculeEncoder: ("", "batch and length swapped"), RowsOfATable: ("text", "batch and length swapped"),
    WrongCrossMask: ("", "cross-attention sees padding"), DecoderForgotten: ("causal", "no causal mask"),
    TooWeak: ("causal", "mask too weak"), TutorialPositions: ("causal", "positions by batch"),
}  # fmt: skip
