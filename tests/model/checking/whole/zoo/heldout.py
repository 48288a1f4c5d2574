"""Faults in another style (einsum, layout (batch, length, heads, d), softmax by hand), written after
the check-up and not tuned on."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.model.checking.whole.zoo.planted import D, H, V


class Einsum(nn.Module):
    def __init__(self, fault=""):
        super().__init__()
        self.fault = fault
        self.tok, self.pos = nn.Embedding(V, D), nn.Parameter(torch.randn(1, 64, D) * 0.3)
        nn.init.normal_(self.tok.weight, std=0.3)
        self.wq, self.wk, self.wv, self.wo = (nn.ParameterList(nn.Parameter(torch.randn(D, D) / math.sqrt(D)) for _ in range(3)) for _ in range(4))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(D, 48), nn.SiLU(), nn.Linear(48, D)) for _ in range(3))
        self.norm = nn.ModuleList(nn.LayerNorm(D) for _ in range(7))
        self.out = nn.Linear(D, V)

    def weights(self, q, k, layer):
        f, n = self.fault, q.shape[1]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (1.0 if f == "no scale" else math.sqrt(D // H))
        allowed = torch.ones(n, n, dtype=torch.bool).tril()
        if f == "late layer open" and layer == 2:
            allowed = torch.ones_like(allowed)
        if f == "transposed":
            allowed = allowed.T
        if f == "off by one":
            allowed = torch.ones(n, n, dtype=torch.bool).tril(1)
        if f == "window":
            allowed = allowed & ~torch.ones(n, n, dtype=torch.bool).tril(-3)
        if f in ("by hand", "by hand open"):
            e = torch.exp(scores - scores.amax(-1, keepdim=True))
            e = e if f == "by hand open" else e * allowed
            return e / e.sum(-1, keepdim=True)
        if f == "by hand late":
            e = torch.exp(scores - scores.amax(-1, keepdim=True))
            return e / e.sum(-1, keepdim=True) * allowed
        scores = torch.where(allowed, scores, torch.tensor(-1e30 if f != "soft" else -6.0).to(scores))
        return torch.softmax(scores, 2 if f == "axis" else 3)

    def forward(self, tokens):
        f, (b, n) = self.fault, tokens.shape
        x = self.tok(tokens)
        x = x + (self.pos[:, :1] if f == "one position" else self.pos[:, :n])
        for i in range(3):
            h = self.norm[2 * i](x)
            if f == "instance norm":
                h = F.instance_norm(x.transpose(1, 2)).transpose(1, 2)
            q, k, v = ((h @ w[i]).view(b, n, H, D // H) for w in (self.wq, self.wk, self.wv))
            y = torch.einsum("bhqk,bkhd->bqhd", self.weights(q, k, i), v)
            if f == "cumulative":
                y = y + v.mean(1, keepdim=True)
            x = x + y.reshape(b, n, D) @ self.wo[i]
            x = x + self.mlp[i](self.norm[2 * i + 1](x))
            if f == "stochastic depth" and torch.rand(()) < 0.5:
                x = x * 0.9
        if f == "batch mean":
            x = x - x.mean(0, keepdim=True)
        return self.out(x if f == "no last norm" else self.norm[6](x))


HELD = {
    "no scale": "√d left out", "late layer open": "causal mask missing in a layer", "transposed": "rows for columns", "off by one": "mask one too far",
    "by hand open": "sees the future", "by hand late": "sees the future", "soft": "mask too weak", "axis": "softmax over the wrong axis",
    "one position": "target without positions", "instance norm": "reads the future elsewhere", "cumulative": "reads the future elsewhere",
    "stochastic depth": "random in eval", "batch mean": "sees the batch", "no last norm": "final norm missing",
}  # fmt: skip


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
