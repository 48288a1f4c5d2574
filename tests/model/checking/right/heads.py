"""Multi-head attention in many styles, all right; and two that nobody can judge."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def _attend(q, k, v, mask):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    return s.softmax(-1) @ v


class multi_head_packed_by_axis(nn.Module):
    # as timm
    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class multi_head_parameters_d_first(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        e = d_model // n_heads
        self.query_kernel = nn.Parameter(torch.randn(d_model, n_heads, e))
        self.key_kernel = nn.Parameter(torch.randn(d_model, n_heads, e))
        self.value_kernel = nn.Parameter(torch.randn(d_model, n_heads, e))
        self.projection_kernel = nn.Parameter(torch.randn(n_heads, e, d_model))
        self.projection_bias = nn.Parameter(torch.zeros(d_model))

    # as Keras
    def forward(self, query, value, key, mask=None):
        q = torch.tensordot(query, self.query_kernel, 1)
        k = torch.tensordot(key, self.key_kernel, 1)
        v = torch.tensordot(value, self.value_kernel, 1)
        s = torch.einsum("aecd,abcd->acbe", k, q / q.shape[-1] ** 0.5)
        if mask is not None:
            s = s + (1.0 - mask.float()) * -1e9
        out = torch.einsum("acbe,aecd->abcd", s.softmax(-1), v)
        return torch.tensordot(out, self.projection_kernel, 2) + self.projection_bias


class multi_head_one_parameter_of_four(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.W = nn.Parameter(torch.randn(4, d_model, d_model))
        self.b = nn.Parameter(torch.zeros(4, d_model))

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            (x @ w + b).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for x, w, b in zip((q, k, v), self.W, self.b)
        )
        return _attend(q, k, v, mask).transpose(1, 2).flatten(2) @ self.W[3] + self.b[3]


class multi_head_wrapped(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.attn = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            b, q, k = query.shape[0], query.shape[1], key.shape[1]
            mask = ~mask.expand(b, self.n_heads, q, k).reshape(b * self.n_heads, q, k)
        return self.attn(query, key, value, attn_mask=mask, need_weights=False)[0]


class multi_head_values_first(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.embed_size, self.heads, self.head_dim = embed_size, heads, embed_size // heads
        self.values = nn.Linear(embed_size, embed_size)
        self.keys = nn.Linear(embed_size, embed_size)
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask):
        N = query.shape[0]
        v = self.values(values).reshape(N, values.shape[1], self.heads, self.head_dim)
        k = self.keys(keys).reshape(N, keys.shape[1], self.heads, self.head_dim)
        q = self.queries(query).reshape(N, query.shape[1], self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        attention = torch.softmax(energy / (self.head_dim ** (1 / 2)), dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", [attention, v])
        return self.fc_out(out.reshape(N, query.shape[1], self.embed_size))


class multi_head_heads_first(nn.Module):
    # the Annotated Transformer: (h, d_model), masks (batch, query, key)
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        assert d_model % h == 0
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.attn, self.dropout = None, nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = [
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        self.attn = self.dropout(scores.softmax(dim=-1))
        x = (self.attn @ value).transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k)
        return self.linears[-1](x)


class multi_head_made_with_sizes(nn.Module):
    # as attention-is-all-you-need-pytorch, without its norm
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)

    def forward(self, q, k, v, mask=None):
        b, lq, lk, lv = q.size(0), q.size(1), k.size(1), v.size(1)
        q = self.w_qs(q).view(b, lq, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(k).view(b, lk, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(v).view(b, lv, self.n_head, self.d_v).transpose(1, 2)
        attn = torch.matmul(q / self.d_k**0.5, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, -1e9)
        q = F.softmax(attn, dim=-1) @ v
        return self.fc(q.transpose(1, 2).contiguous().view(b, lq, -1)), attn


class multi_head_raschka(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        b, num_tokens, _ = x.shape
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        if mask is not None:
            attn_scores.masked_fill_(~mask, -torch.inf)
        attn_weights = self.dropout(torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1))
        context_vec = (attn_weights @ values).transpose(1, 2)
        return self.out_proj(context_vec.contiguous().view(b, num_tokens, self.d_out))


class multi_head_batches_of_heads(nn.Module):
    # as fairseq and d2l: heads are part of the batch
    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.Linear(num_hiddens, num_hiddens, bias=False) for _ in range(4)
        )

    def forward(self, queries, keys, values, mask=None):
        q, k, v = (
            x.reshape(x.shape[0], x.shape[1], self.num_heads, -1)
            .permute(0, 2, 1, 3)
            .reshape(-1, x.shape[1], x.shape[2] // self.num_heads)
            for x in (self.W_q(queries), self.W_k(keys), self.W_v(values))
        )
        s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        if mask is not None:
            m = mask.repeat_interleave(self.num_heads, 0).squeeze(1)
            s = torch.where(m, s, torch.full_like(s, -1e6))
        x = torch.bmm(s.softmax(-1), v)
        x = x.reshape(-1, self.num_heads, x.shape[1], x.shape[2]).permute(0, 2, 1, 3)
        return self.W_o(x.reshape(x.shape[0], x.shape[1], -1))


class multi_head_interleaved(nn.Module):
    # every so many-th number is a head's, in both directions
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            x.unflatten(-1, (-1, self.h)).permute(0, 3, 1, 2)
            for x in (self.q(query), self.k(key), self.v(value))
        )
        return self.o(_attend(q, k, v, mask).permute(0, 2, 3, 1).flatten(2))


class _Scaled(nn.Module):
    def forward(self, q, k, v, mask=None):
        return _attend(q, k, v, mask)


class multi_head_of_modules(nn.Module):
    def __init__(self, model_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.linear_q = nn.Linear(model_dim, model_dim)
        self.linear_k = nn.Linear(model_dim, model_dim)
        self.linear_v = nn.Linear(model_dim, model_dim)
        self.dot_product_attention = _Scaled()
        self.linear_final = nn.Linear(model_dim, model_dim)

    def forward(self, query, key, value, attn_mask=None):
        b = key.size(0)
        q, k, v = (
            f(x).view(b, -1, self.num_heads, x.shape[-1] // self.num_heads).transpose(1, 2)
            for f, x in ((self.linear_q, query), (self.linear_k, key), (self.linear_v, value))
        )
        context = self.dot_product_attention(q, k, v, attn_mask)
        return self.linear_final(context.transpose(1, 2).reshape(b, -1, query.shape[-1]))


class multi_head_scaled_query(nn.Module):
    # as BART: the projected query is scaled
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        self.num_heads, self.scaling = num_heads, (embed_dim // num_heads) ** -0.5
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, hidden_states, key_value_states=None, attention_mask=None):
        other = hidden_states if key_value_states is None else key_value_states
        q = self.q_proj(hidden_states) * self.scaling
        q, k, v = (
            x.view(x.shape[0], x.shape[1], self.num_heads, -1).transpose(1, 2)
            for x in (q, self.k_proj(other), self.v_proj(other))
        )
        w = q @ k.transpose(2, 3)
        if attention_mask is not None:
            w = w.masked_fill(attention_mask.logical_not(), torch.finfo(w.dtype).min)
        return self.out_proj((w.softmax(-1) @ v).transpose(1, 2).flatten(2))


class multi_head_double_inside(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.Q = nn.Linear(d_model, d_model)
        self.K = nn.Linear(d_model, d_model)
        self.V = nn.Linear(d_model, d_model)
        self.O = nn.Linear(d_model, d_model)  # noqa: E741

    def forward(self, *inputs):
        x, y, z, mask = inputs
        q, k, v = (t.double().unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for t in (self.Q(x), self.K(y), self.V(z)))  # fmt: skip
        return self.O(_attend(q, k, v, mask).transpose(1, 2).flatten(2).float())


class multi_head_normed(nn.Module):
    """cannot tell"""

    # with the norm of its sublayer inside
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.inner, self.norm = multi_head_scaled_query(d_model, n_heads), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        return self.norm(self.inner(x, None, mask))


class multi_head_grouped(nn.Module):
    """cannot tell"""

    # one key and one value for all heads
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, e = n_heads, d_model // n_heads
        self.q, self.kv, self.o = (nn.Linear(d_model, n) for n in (d_model, 2 * e, d_model))

    def forward(self, x, mask=None):
        k, v = self.kv(x)[:, None].chunk(2, -1)
        q = self.q(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        return self.o(_attend(q, k, v, mask).transpose(1, 2).flatten(2))


class multi_head_of_a_config(nn.Module):
    """cannot tell"""

    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
