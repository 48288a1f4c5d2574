"""Heads split and joined, masks, positions, norms and layers, all right."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads_view(x, n_heads):
    """right"""
    b, n, d = x.size()
    return x.view(b, n, n_heads, d // n_heads).permute(0, 2, 1, 3).contiguous()


def split_heads_slices(x, n_heads):
    """right"""
    d = x.shape[2] // n_heads
    return torch.stack([x[:, :, i * d : (i + 1) * d] for i in range(n_heads)], dim=1)


def split_heads_unflatten(x, n_heads):
    """right"""
    return x.unflatten(-1, (n_heads, -1)).movedim(2, 1)


def split_heads_loops(x, n_heads):
    """right"""
    b, n, d = x.shape
    e = d // n_heads
    out = torch.zeros(b, n_heads, n, e)
    for h in range(n_heads):
        for t in range(n):
            for i in range(e):
                out[:, h, t, i] = x[:, t, h * e + i]
    return out


def split_heads_tensor_split(x, n_heads):
    """right"""
    return torch.cat([p.unsqueeze(1) for p in torch.tensor_split(x, n_heads, 2)], 1)


def split_heads_from_transposed(x, n_heads):
    """right"""
    return x.transpose(1, 2).reshape(x.shape[0], n_heads, -1, x.shape[1]).transpose(2, 3)


def merge_heads_view(heads):
    """right"""
    b, h, n, d = heads.shape
    return heads.transpose(1, 2).contiguous().view(b, n, h * d)


def merge_heads_permute(heads):
    """right"""
    return heads.permute(0, 2, 1, 3).flatten(-2)


def merge_heads_unbind(heads):
    """right"""
    return torch.cat(heads.unbind(dim=1), dim=2)


def merge_heads_written(heads):
    """right"""
    b, h, n, d = heads.shape
    out = heads.new_empty(b, n, h * d)
    for i in range(h):
        out[..., i * d : (i + 1) * d] = heads[:, i]
    return out


def merge_heads_einsum(heads):
    """right"""
    return torch.einsum("bhnd->bnhd", heads).reshape(heads.shape[0], heads.shape[2], -1)


def causal_mask_tril(length):
    """right"""
    return torch.tril(torch.ones(length, length)).bool()


def causal_mask_not_triu(length):
    """right"""
    return ~torch.triu(torch.ones((length, length), dtype=torch.bool), 1)


def causal_mask_loops(length):
    """right"""
    mask = torch.zeros(length, length, dtype=torch.bool)
    for row in range(length):
        mask[row, : row + 1] = True
    return mask


def causal_mask_list(length):
    """right"""
    return torch.tensor([[key <= query for key in range(length)] for query in range(length)])


def causal_mask_four_axes(length):
    """right"""
    return torch.tril(torch.ones(length, length, dtype=torch.uint8))[None, None] == 1


def causal_mask_infinities(length):
    """right"""
    return torch.full((length, length), float("-inf")).triu(1) == 0


def causal_mask_cumsum(length):
    """right"""
    return torch.eye(length).cumsum(0).mT.flip(0).flip(1).mT > 0 if length > 99 else torch.eye(length).cumsum(0) > 0


def padding_mask_ne(ids, pad):
    """right"""
    return ids.ne(pad).unsqueeze(1).unsqueeze(2)


def padding_mask_not_eq(ids, pad):
    """right"""
    return ~(ids == pad)[:, None, None]


def padding_mask_view(ids, pad):
    """right"""
    return (ids != pad).view(ids.size(0), 1, 1, -1)


def padding_mask_bool(ids, pad):
    """right"""
    return (ids - pad).bool().reshape(len(ids), 1, 1, ids.shape[1])


def padding_mask_lists(ids, pad):
    """right"""
    return torch.tensor([[[[t != pad for t in row]]] for row in ids.tolist()])


def padding_mask_where(ids, pad):
    """right"""
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[torch.where(ids == pad)] = False
    return mask[:, None, None, :]


def positional_encoding_loops(length, d_model):
    """right"""
    pe = torch.zeros(length, d_model)
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            pe[pos, 2 * i], pe[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return pe


def positional_encoding_paired(length, d_model):
    """right"""
    pos, i = torch.arange(length).float(), torch.arange(d_model // 2).float()
    angle = torch.outer(pos, 10000 ** (-2 * i / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=2).view(length, d_model)


def positional_encoding_where(length, d_model):
    """right"""
    column = torch.arange(d_model)
    angle = torch.arange(length)[:, None] / 10000 ** (2 * (column // 2) / d_model)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))


def positional_encoding_shifted(length, d_model):
    """right"""
    column = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** ((column - column % 2) / d_model)
    return torch.sin(angle + math.pi / 2 * (column % 2)).float()


def positional_encoding_double(length, d_model):
    """right"""
    rates = torch.pow(10000.0, -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = torch.arange(length, dtype=torch.float64).unsqueeze(1) * rates
    pe = torch.empty(length, d_model, dtype=torch.float64)
    pe[:, ::2], pe[:, 1::2] = angle.sin(), angle.cos()
    return pe


def positional_encoding_complex(length, d_model):
    """right"""
    rates = torch.exp(-math.log(1e4) * torch.arange(0, d_model, 2) / d_model)
    turn = torch.polar(torch.ones(length, d_model // 2), torch.arange(length)[:, None] * rates)
    return torch.stack([turn.imag, turn.real], -1).flatten(1)


def positional_encoding_python(length, d_model):
    """right"""
    rows = []
    for pos in range(length):
        row = []
        for c in range(d_model):
            angle = pos / pow(10000, (c - c % 2) / d_model)
            row.append(math.cos(angle) if c % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


def rotary_rotate(x, positions):
    """right"""

    def rotate(y):
        return torch.stack((-y[..., 1::2], y[..., ::2]), dim=-1).flatten(-2)

    inv = 1.0 / (10000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    angle = torch.einsum("i,j->ij", positions.float(), inv).repeat_interleave(2, dim=-1)
    return x * angle.cos() + rotate(x) * angle.sin()


def rotary_matrices(x, positions):
    """right"""
    d = x.shape[-1]
    out = torch.empty_like(x)
    for j, p in enumerate(positions.tolist()):
        for i in range(d // 2):
            a = p * 10000 ** (-2 * i / d)
            turn = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
            out[:, :, j, 2 * i : 2 * i + 2] = x[:, :, j, 2 * i : 2 * i + 2] @ turn.T
    return out


def rotary_written(x, positions):
    """right"""
    d = x.size(-1)
    theta = positions.view(-1, 1) * 10000 ** (-torch.arange(0, d, 2, dtype=torch.float) / d)
    out = torch.zeros_like(x)
    out[..., 0::2] = x[..., 0::2] * torch.cos(theta) - x[..., 1::2] * torch.sin(theta)
    out[..., 1::2] = x[..., 0::2] * torch.sin(theta) + x[..., 1::2] * torch.cos(theta)
    return out


def rotary_exponentials(x, positions):
    """right"""
    d = x.shape[-1]
    rates = torch.exp(-torch.arange(d // 2) * 2 * math.log(10000) / d)
    pairs = torch.complex(x[..., ::2], x[..., 1::2]) * torch.exp(1j * positions[:, None] * rates)
    return torch.stack([pairs.real, pairs.imag], -1).reshape(x.shape)


def layer_norm_variance(x, gain, bias):
    """right"""
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + 1e-5) * gain + bias


def layer_norm_var_mean(x, gain, bias, eps=1e-5):
    """right"""
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (var + eps).rsqrt(), gain)


def layer_norm_unsqueezed(x, gain, bias):
    """right"""
    mu = x.mean(-1)[..., None]
    sigma2 = torch.mean((x - mu) ** 2, -1).unsqueeze(-1)
    return gain * ((x - mu) / (sigma2 + 0.00001) ** 0.5) + bias


def layer_norm_correction_undone(x, gain, bias):
    """right"""
    d = x.shape[-1]
    var = x.var(-1, keepdim=True) * (d - 1) / d
    return gain * (x - x.mean(-1, keepdim=True)) / (var + 1e-5).sqrt() + bias


def layer_norm_rows(x, gain, bias):
    """right"""
    out = []
    for text in x:
        rows = []
        for v in text:
            c = v - v.sum() / len(v)
            rows.append(c / math.sqrt(float((c @ c) / len(v)) + 1e-5) * gain + bias)
        out.append(torch.stack(rows))
    return torch.stack(out)


def layer_norm_module(x, gain, bias):
    """right"""
    norm = nn.LayerNorm(x.shape[-1])
    norm.weight.data, norm.bias.data = gain, bias
    return norm(x)


def layer_norm_as_group(x, gain, bias):
    """right"""
    return F.group_norm(x.reshape(-1, x.shape[-1]), 1, gain, bias).view_as(x)


def layer_norm_matrix(x, gain, bias):
    """right"""
    d = x.shape[-1]
    c = x @ (torch.eye(d) - 1 / d)
    return c / (c.pow(2).sum(-1, keepdim=True) / d + 1e-5).sqrt() * gain + bias


def feed_forward_relu(x, w1, b1, w2, b2):
    """right"""
    return torch.relu(x @ w1.T + b1) @ w2.T + b2


def feed_forward_maximum(x, w1, b1, w2, b2):
    """right"""
    h = torch.einsum("bnd,fd->bnf", x, w1) + b1
    return torch.einsum("bnf,df->bnd", torch.maximum(h, torch.zeros(())), w2) + b2


def feed_forward_masked(x, w1, b1, w2, b2):
    """right"""
    h = torch.matmul(x, w1.t()) + b1
    return torch.matmul(h * (h > 0), w2.t()) + b2


def feed_forward_where(x, w1, b1, w2, b2):
    """right"""
    h = torch.addmm(b1, x.flatten(0, 1), w1.T)
    h = torch.where(h > 0, h, 0.0)
    return torch.addmm(b2, h, w2.T).view(x.shape)


def feed_forward_modules(x, w1, b1, w2, b2):
    """right"""
    one, two = nn.Linear(*w1.T.shape), nn.Linear(*w2.T.shape)
    one.weight.data, one.bias.data, two.weight.data, two.bias.data = w1, b1, w2, b2
    return nn.Sequential(one, nn.ReLU(), two)(x)


def feed_forward_in_place(x, w1, b1, w2, b2):
    """right"""
    return F.linear(F.linear(x, w1, b1).relu_(), w2).add_(b2)


def feed_forward_half_of_abs(x, w1, b1, w2, b2):
    """right"""
    h = x @ w1.mT + b1
    return (h + h.abs()) / 2 @ w2.mT + b2


def feed_forward_convolutions(x, w1, b1, w2, b2):
    """right"""
    h = F.conv1d(x.transpose(1, 2), w1[..., None], b1)
    return F.conv1d(F.relu(h), w2[..., None], b2).transpose(1, 2)


def feed_forward_tokens(x, w1, b1, w2, b2):
    """right"""
    return torch.stack([
        torch.stack([w2 @ torch.clamp_min(w1 @ t + b1, 0) + b2 for t in text]) for text in x
    ])  # fmt: skip


def encoder_layer_one_line(x, mask, attend, norm1, feed, norm2):
    """right"""
    return norm2((y := norm1(x + attend(x, x, x, mask))) + feed(y))


def encoder_layer_by_name(x, mask, attend, norm1, feed, norm2):
    """right"""
    attended = attend(query=x, key=x, value=x, mask=mask)
    x = norm1(x + attended)
    fed = feed(x)
    return norm2(torch.add(x, fed))


def encoder_layer_residuals(x, mask, attend, norm1, feed, norm2):
    """right"""
    residual = x
    x = attend(x, x, x, mask)
    x = residual + x
    x = norm1(x)
    residual = x
    x = feed(x)
    x = residual + x
    return norm2(x)


def encoder_layer_helper(x, mask, attend, norm1, feed, norm2):
    """right"""

    def add_and_norm(y, sublayer, norm):
        return norm(y + F.dropout(sublayer(y), 0.1, training=False))

    x = add_and_norm(x, lambda y: attend(y, y, y, mask), norm1)
    return add_and_norm(x, feed, norm2)


def pre_norm_layer_plain(x, mask, attend, norm1, feed, norm2):
    """right"""
    y = norm1(x)
    x = x + attend(y, y, y, mask)
    return x + feed(norm2(x))


def pre_norm_layer_lambda(x, mask, attend, norm1, feed, norm2):
    """right"""
    for sublayer in (lambda y: attend(*[norm1(y)] * 3, mask=mask), lambda y: feed(norm2(y))):
        x = x + sublayer(x)
    return x


def pre_norm_layer_steps(x, mask, attend, norm1, feed, norm2):
    """right"""
    shortcut = x.clone()
    h = norm1(shortcut)
    h = attend(h, h, h, mask)
    h += shortcut
    return h + feed(norm2(h))


class pre_norm_layer_class(nn.Module):
    """right"""

    def forward(self, x, mask, attend, norm1, feed, norm2):
        n = norm1(x)
        middle = attend(n, n, n, mask) + x
        return feed(norm2(middle)) + middle
