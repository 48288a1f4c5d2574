"""A language model with rotary positions, ALiBi or sines, its loss and a cache, and a translator that
makes its own decoder's input. The faults are of kinds that strangers' models had and that had no
name; of these models each right one is a style of theirs."""
import math

import torch
import torch.nn.functional as F
from torch import nn

V, D, H = 50, 32, 4


class Norm(nn.Module):
    def __init__(self, fault=""):
        super().__init__()
        self.fault, self.gain = fault, nn.Parameter(torch.ones(D))

    def forward(self, x):
        square = x.pow(2).mean(1 if self.fault == "norm over time" else -1, keepdim=True) + 1e-6
        return x / (square if self.fault == "no root" else square.sqrt()) * self.gain


def rotated(x, start, fault):
    """(batch, head, length, width), as complex numbers."""
    half = x.shape[-1] // 2
    at = torch.arange(start, start + x.shape[2])[:, None] * 100.0 ** (-torch.arange(half) / half)
    if fault == "no minus":
        one, two = x.chunk(2, -1)
        return torch.cat([one * at.cos() + two * at.sin(), two * at.cos() + one * at.sin()], -1)
    turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(at), at)
    return torch.view_as_real(turned).flatten(-2).type_as(x)


class Attention(nn.Module):
    def __init__(self, places, fault):
        super().__init__()
        self.places, self.fault = places, fault
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x, cache):
        f, start = self.fault, 0 if cache is None or not cache else cache[-1][0].shape[2]
        q, k, v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
        if self.places == "rotary":
            first = 0 if f == "cache" else start
            q, k = rotated(q, first, f), k if f == "half rotated" else rotated(k, first, f)
        if cache is not None:
            k, v = (torch.cat([old, new], 2) for old, new in zip(cache[-1], (k, v))) if cache else (k, v)
            cache.append((k, v))
        n = k.shape[2]
        apart = torch.arange(start, n)[:, None] - torch.arange(n)
        bias = 0.5 * apart if f == "far" else -0.5 * apart
        scores = q @ k.mT / math.sqrt(D // H) + (bias if self.places == "alibi" else 0)
        weights = scores.masked_fill(torch.ones(n, n).triu(1)[start:] > 0, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, places, fault):
        super().__init__()
        self.fault, self.attention = fault, Attention(places, fault)
        self.one, self.two = Norm(fault), Norm(fault)
        self.up, self.down = nn.Linear(D, 2 * D, bias=False), nn.Linear(2 * D, D, bias=False)
        if fault in ("zeros", "a zero"):  # and a right one, of which only the last is zero
            nn.init.zeros_(self.down.weight)
            nn.init.zeros_(self.up.weight if fault == "zeros" else self.attention.out.weight)

    def forward(self, x, cache):
        x = x + self.attention(self.one(x), cache)
        wide = self.up(self.two(x))
        fed = self.down(wide if self.fault == "no activation" else wide.relu().square())
        return fed if self.fault == "no residual" else x + fed


class Modern(nn.Module):
    """forward(ids, labels=None, cache=None): logits, or (loss, logits) with labels, which are ids."""

    def __init__(self, places="rotary", fault=""):
        super().__init__()
        self.places, self.fault = places, fault
        self.embed, self.head, self.norm = nn.Embedding(V, D), nn.Linear(D, V), Norm(fault)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.layers = nn.ModuleList(Layer(places, fault) for _ in range(2))

    def new_cache(self):
        return []

    def forward(self, ids, labels=None, cache=None):
        x = self.embed(ids)
        if self.places == "sines":
            power = math.log(1e4) / D * (1 if self.fault == "grow" else -1)
            start = cache[0][-1][0].shape[2] if cache else 0
            angle = torch.arange(start, start + ids.shape[1])[:, None] * torch.exp(torch.arange(0, D, 2) * power)
            second = angle.sin() if self.fault == "sines alone" else angle.cos()
            x = x + torch.stack([angle.sin(), second], -1).flatten(1)
        for i, layer in enumerate(self.layers):
            own = None if cache is None else cache[i] if len(cache) > i else cache.append([]) or cache[i]
            x = layer(x, own)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        made, right = logits[:, :-1], labels[:, 1:]
        if self.fault == "backwards":
            made, right = logits[:, 1:], labels[:, :-1]
        if self.fault == "two on":
            made, right = logits[:, :-2], labels[:, 2:]
        made = made.softmax(-1) if self.fault == "softmax" else made
        return F.cross_entropy(made.flatten(0, 1), right.flatten()), logits


MODERN = {
    ("rotary", "half rotated"): "no rotation", ("rotary", "no minus"): "no rotation",
    ("rotary", "cache"): "cache differs", ("alibi", "far"): "bias favours the far",
    ("sines", "grow"): "frequencies grow", ("sines", "sines alone"): "sines without cosines",
    ("rotary", "no activation"): "no activation in the feed-forward",
    ("rotary", "norm over time"): "norm over the wrong axis", ("rotary", "no root"): "norm of the wrong size",
    ("rotary", "zeros"): "zeros that stay", ("rotary", "no residual"): "residual left out",
    ("rotary", "backwards"): "target shifted backwards", ("rotary", "two on"): "shifted twice",
    ("rotary", "softmax"): "softmax twice",
}
MODERN_RIGHT = (("rotary", ""), ("alibi", ""), ("sines", ""), ("rotary", "a zero"))


class Labelled(nn.Module):
    """forward(source, labels): the decoder reads the labels, shifted; {"loss": …, "logits": …}."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault, self.embed, self.place = fault, nn.Embedding(V, D), nn.Embedding(64, D)
        nn.init.normal_(self.place.weight, std=0.5)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.encoder = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(D, H, 64, batch_first=True) for _ in range(2))
        self.head = nn.Linear(D, V)

    def forward(self, source, labels):
        f, n, m = self.fault, labels.shape[1], source.shape[1]
        read = labels if f == "not shifted" else torch.cat([torch.ones_like(labels[:, :1]), labels[:, :-1]], 1)
        pad, later = source == (3 if f == "other id" else 0), torch.ones(n, n).triu(1) > 0
        x, memory = (self.embed(ids) + self.place(torch.arange(ids.shape[1])) for ids in (read, source))
        scores = memory @ memory.mT / math.sqrt(D)
        scores = scores.masked_fill(pad[:, :, None] if f == "queries" else pad[:, None], -1e9)
        memory = self.encoder(memory + scores.softmax(-1) @ memory)
        ahead = torch.ones(n, m).triu(1) > 0 if f == "cross causal" else None
        for layer in self.decoder:
            x = layer(x, memory, later, ahead, memory_key_padding_mask=pad)
        logits = self.head(x)
        ignored = -100 if f == "counts padding" else 0
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignored)
        return {"loss": loss, "logits": logits}


class Targeted(Labelled):
    """Its answers have the name that a target has."""

    def forward(self, source, target):
        return super().forward(source, target)


LABELLED = {
    "not shifted": "target not shifted", "counts padding": "loss counts padding", "other id": "another id for padding",
    "queries": "padding mask along the queries", "cross causal": "causal mask in cross-attention",
}
