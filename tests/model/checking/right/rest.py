"""Heads split and joined, masks, positions, norms and layers, all right."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads_view(x, n_heads):
    b, n, d = x.size()
    return x.view(b, n, n_heads, d // n_heads).permute(0, 2, 1, 3).contiguous()


def split_heads_slices(x, n_heads):
    d = x.shape[2] // n_heads
    return torch.stack([x[:, :, i * d : (i + 1) * d] for i in range(n_heads)], dim=1)


def merge_heads_view(heads):
    b, h, n, d = heads.shape
    return heads.transpose(1, 2).contiguous().view(b, n, h * d)


def causal_mask_loops(length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for row in range(length):
        mask[row, : row + 1] = True
    return mask


def positional_encoding_loops(length, d_model):
    pe = torch.zeros(length, d_model)
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            pe[pos, 2 * i], pe[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return pe


def positional_encoding_paired(length, d_model):
    pos, i = torch.arange(length).float(), torch.arange(d_model // 2).float()
    angle = torch.outer(pos, 10000 ** (-2 * i / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=2).view(length, d_model)


def positional_encoding_where(length, d_model):
    column = torch.arange(d_model)
    angle = torch.arange(length)[:, None] / 10000 ** (2 * (column // 2) / d_model)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))


def positional_encoding_double(length, d_model):
    rates = torch.pow(10000.0, -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = torch.arange(length, dtype=torch.float64).unsqueeze(1) * rates
    pe = torch.empty(length, d_model, dtype=torch.float64)
    pe[:, ::2], pe[:, 1::2] = angle.sin(), angle.cos()
    return pe


def rotary_rotate(x, positions):
    def rotate(y):
        return torch.stack((-y[..., 1::2], y[..., ::2]), dim=-1).flatten(-2)

    inv = 1.0 / (10000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    angle = torch.einsum("i,j->ij", positions.float(), inv).repeat_interleave(2, dim=-1)
    return x * angle.cos() + rotate(x) * angle.sin()


def rotary_written(x, positions):
    d = x.size(-1)
    theta = positions.view(-1, 1) * 10000 ** (-torch.arange(0, d, 2, dtype=torch.float) / d)
    out = torch.zeros_like(x)
    out[..., 0::2] = x[..., 0::2] * torch.cos(theta) - x[..., 1::2] * torch.sin(theta)
    out[..., 1::2] = x[..., 0::2] * torch.sin(theta) + x[..., 1::2] * torch.cos(theta)
    return out


def layer_norm_variance(x, gain, bias):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + 1e-5) * gain + bias


def layer_norm_var_mean(x, gain, bias, eps=1e-5):
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (var + eps).rsqrt(), gain)


def layer_norm_unsqueezed(x, gain, bias):
    mu = x.mean(-1)[..., None]
    sigma2 = torch.mean((x - mu) ** 2, -1).unsqueeze(-1)
    return gain * ((x - mu) / (sigma2 + 0.00001) ** 0.5) + bias


def layer_norm_matrix(x, gain, bias):
    d = x.shape[-1]
    c = x @ (torch.eye(d) - 1 / d)
    return c / (c.pow(2).sum(-1, keepdim=True) / d + 1e-5).sqrt() * gain + bias


def feed_forward_masked(x, w1, b1, w2, b2):
    h = torch.matmul(x, w1.t()) + b1
    return torch.matmul(h * (h > 0), w2.t()) + b2


def feed_forward_convolutions(x, w1, b1, w2, b2):
    h = F.conv1d(x.transpose(1, 2), w1[..., None], b1)
    return F.conv1d(F.relu(h), w2[..., None], b2).transpose(1, 2)


def encoder_layer_by_name(x, mask, attend, norm1, feed, norm2):
    attended = attend(query=x, key=x, value=x, mask=mask)
    x = norm1(x + attended)
    fed = feed(x)
    return norm2(torch.add(x, fed))


def encoder_layer_helper(x, mask, attend, norm1, feed, norm2):
    def add_and_norm(y, sublayer, norm):
        return norm(y + F.dropout(sublayer(y), 0.1, training=False))

    x = add_and_norm(x, lambda y: attend(y, y, y, mask), norm1)
    return add_and_norm(x, feed, norm2)


def pre_norm_layer_plain(x, mask, attend, norm1, feed, norm2):
    y = norm1(x)
    x = x + attend(y, y, y, mask)
    return x + feed(norm2(x))


class pre_norm_layer_class(nn.Module):
    def forward(self, x, mask, attend, norm1, feed, norm2):
        n = norm1(x)
        middle = attend(n, n, n, mask) + x
        return feed(norm2(middle)) + middle
