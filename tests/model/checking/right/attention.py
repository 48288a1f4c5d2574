"""Scores, softmax and attention, all right."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def scores_matmul_div(q, k):
    d_k = q.size(-1)
    return torch.matmul(q, k.transpose(-2, -1)).div(math.sqrt(d_k))


def scores_fourth_roots(q, k):
    r = q.shape[-1] ** 0.25
    return (q / r) @ (k / r).mT


def scores_distances(q, k):
    d2 = (q[..., :, None, :] - k[..., None, :, :]).square().sum(-1)
    dots = (q.square().sum(-1)[..., None] + k.square().sum(-1)[..., None, :] - d2) / 2
    return dots / math.sqrt(q.shape[-1])


def softmax_finfo(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return F.softmax(scores, dim=-1)


def softmax_added_mask(scores, mask=None):
    if mask is None:
        return scores.softmax(-1)
    return (scores + torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))).softmax(-1)


def softmax_log(scores, mask=None):
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


def softmax_of_log_softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -1e30)
    return torch.log_softmax(scores, -1).exp()


def softmax_in_place_of_a_copy(scores, mask=None):
    x = scores.clone()
    if mask is not None:
        x[~mask.expand_as(x)] = -1e12
    x -= x.amax(dim=-1, keepdim=True)
    x.exp_()
    x /= x.sum(dim=-1, keepdim=True)
    return x


class softmax_module(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, scores, mask=None):
        return self.softmax(scores if mask is None else scores.masked_fill(~mask, -1e9))


def attention_in_place(q, k, v, mask=None):
    s = q.matmul(k.mT)
    s.mul_(1 / math.sqrt(k.shape[3]))
    if mask is not None:
        s.masked_fill_(~mask, -torch.inf)
    s = s.softmax_(-1) if hasattr(s, "softmax_") else s.softmax(-1)
    return s @ v


def attention_where(q, k, v, mask=None):
    s = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    s = s if mask is None else torch.where(mask, s, torch.tensor(float("-inf")))
    return torch.einsum("...qk,...kd->...qd", torch.softmax(s, -1), v)


def attention_heads_one_by_one(q, k, v, mask=None):
    heads = []
    for h in range(q.shape[1]):
        s = q[:, h].bmm(k[:, h].transpose(1, 2)) / math.sqrt(q.shape[-1])
        if mask is not None:
            m = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])[:, h]
            s = s.masked_fill(m == 0, -1e9)
        heads.append(F.softmax(s, 2).bmm(v[:, h]))
    return torch.stack(heads, dim=1)


def attention_returns_weights(q, k, v, mask=None):
    s = q @ k.transpose(2, 3) / math.sqrt(q.size(3))
    s = s.masked_fill(~mask, -1e9) if mask is not None else s
    p = s.softmax(3)
    return p @ v, p


def attention_recomputed(q, k, v, mask=None):
    def softmax(x):
        x = x - x.amax(-1, keepdim=True)
        return x.exp() / x.exp().sum(-1, keepdim=True)

    def scores(a, b):
        return a @ b.transpose(-2, -1) / a.shape[-1] ** 0.5

    s = scores(q, k)
    return softmax(s if mask is None else s.masked_fill(~mask, -1e9)) @ v


def attention_transposed(q, k, v, mask=None):
    # keys × queries, and a softmax along the first of the two
    s = k @ q.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask.mT, -torch.inf)
    return (v.mT @ s.softmax(-2)).mT


def attention_is_none(q, k, v, mask=None):
    mask = torch.ones(1, 1, 1, k.shape[2], dtype=torch.bool) if mask is None else mask
    s = q @ k.mT / q.shape[-1] ** 0.5
    s = s.masked_fill(mask.logical_not(), torch.finfo(torch.float32).min)
    return s.softmax(-1).masked_fill(~mask, 0.0) @ v


def attention_sdpa_added(q, k, v, mask=None):
    if mask is not None:
        mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.0)


def scores_bfloat16(q, k):
    """cannot tell"""
    return (q.bfloat16() @ k.bfloat16().mT).float() / q.shape[-1] ** 0.5


class attention_of_a_size(nn.Module):
    """cannot tell"""

    def __init__(self, d_k):
        super().__init__()
        self.scale = d_k**-0.5

    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, mask, scale=self.scale)
