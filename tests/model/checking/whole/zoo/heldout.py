"""Faults in another style, written after the check-up and not tuned on."""

import torch
from torch import nn

from tests.model.checking.whole.zoo.planted import D, H, V


class Modules(nn.Module):
    """forward(source, target): layers of nn.MultiheadAttention by hand, pre-norm. A second set, on
    which nothing was tuned."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault, self.pad_id = fault, 0
        self.embed, self.position = nn.Embedding(V, D), nn.Embedding(80, D)
        mha = lambda: nn.MultiheadAttention(D, H, dropout=0.1, batch_first=True)  # noqa: E731
        self.enc, self.dec, self.cross = (nn.ModuleList(mha() for _ in range(2)) for _ in range(3))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(D, 48), nn.GELU(), nn.Linear(48, D)) for _ in range(4))
        self.n = nn.ModuleList(nn.LayerNorm(D) for _ in range(12))
        self.out = nn.Linear(D, V)

    def read(self, ids, side):
        at = torch.arange(ids.shape[1])
        if self.fault == "positions from padding":
            at = ids.shape[1] - 1 - at
        if self.fault == "one clock for all" and side == "tgt":
            at = at * 0
        return self.embed(ids) + self.position(at)

    def forward(self, source, target):
        f, t = self.fault, target.shape[1]
        pads = source == 0
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        masks = {"tril bool": ~later, "zeros and ones": later.float(), "tenth": later * -3.0, "none": None}
        later = masks.get(f, later)
        x = first = self.read(source, "src")
        for i in range(2):
            h = self.n[i](first if f == "not chained" else x)
            if f == "view for transpose":
                h = h.reshape(h.shape[1], h.shape[0], D).reshape(h.shape[1], h.shape[0], D).transpose(0, 1)
            a = self.enc[i](h, h, h, key_padding_mask=None if f == "second layer" and i == 1 else pads)[0]
            x = (first if f == "not chained" else x) + a
            x = x + self.ff[i](self.n[2 + i](x))
        memory = self.n[4](x)
        if f == "dropout on memory":
            memory = nn.Dropout(0.1)(memory)
        y = self.read(target, "tgt")
        for i in range(2):
            h = self.n[5 + i](y)
            y = y + self.dec[i](h, h, h, attn_mask=later)[0]
            keys = {"values of target": memory, "embedded source": first}.get(f, memory)
            mask = {"cross open": None, "cross inverted": ~pads}.get(f, pads)
            c = self.cross[i](self.n[7 + i](y), keys, keys, key_padding_mask=mask)[0]
            y = c if f == "overwritten" else y + (c * 0 if f == "gate closed" else c)
            if f == "over rows":
                y = y / (y.norm(dim=1, keepdim=True) + 1)
            y = y + self.ff[2 + i](self.n[9 + i](y))
        return self.out(y if f == "bare sum" else self.n[11](y))


HELD_2 = {
    "tril bool": "True for False", "zeros and ones": "mask added as numbers", "tenth": "mask too weak", "none": "no causal mask",
    "one clock for all": "target without positions", "positions from padding": "sees padding", "not chained": "layers not chained",
    "view for transpose": "sees the batch", "second layer": "encoder sees padding", "dropout on memory": "dropout in eval", "embedded source": "memory of the wrong layer",
    "cross open": "cross-attention sees padding", "cross inverted": "padding mask inverted", "overwritten": "residual left out",
    "gate closed": "never reads the source", "over rows": "reads the future elsewhere", "bare sum": "final norm missing",
}  # fmt: skip
