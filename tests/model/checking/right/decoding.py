"""Decoding, all right: the ids may stand in anything that holds numbers in a row."""

import torch
import torch.nn.functional as F


def greedy_list(logits, bos, eos, most):
    ids = [bos]
    for _ in range(most):
        token = logits(torch.tensor(ids).unsqueeze(0))[0, -1].argmax().item()
        if token == eos:
            break
        ids.append(token)
    return ids[1:]


def greedy_of_tensors(logits, bos, eos, most):
    ids, out = torch.tensor([[bos]]), []
    for _ in range(most):
        token = logits(ids)[0, -1].argmax()
        if token == eos:
            return out
        out.append(token)
        ids = torch.cat([ids, token.view(1, 1)], 1)
    return out


def greedy_batch(logits, bos, eos, most):
    ids = torch.full((1, 1), bos, dtype=torch.long)
    for _ in range(most):
        token = logits(ids)[:, -1:].argmax(-1)
        if (token == eos).all():
            break
        ids = torch.hstack([ids, token])
    return ids[:, 1:]


def cached_step_cat(q, k, v, cache=None):
    if cache is not None:
        k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
    return F.scaled_dot_product_attention(q, k, v), (k, v)


def cached_step_lists(q, k, v, cache=None):
    keys, values = cache or ([], [])
    keys, values = [*keys, k], [*values, v]
    s = q @ torch.cat(keys, 2).transpose(2, 3) / q.shape[-1] ** 0.5
    return torch.softmax(s, -1) @ torch.cat(values, 2), (keys, values)


def cached_step_buffer(q, k, v, cache=None):
    if cache is None:
        b, h, _, d = k.shape
        cache = [torch.zeros(b, h, 32, d), torch.zeros(b, h, 32, d), 0]
    keys, values, n = cache
    keys[:, :, n : n + 1], values[:, :, n : n + 1] = k, v
    n += 1
    s = (q @ keys[:, :, :n].mT) / q.shape[-1] ** 0.5
    return s.softmax(-1) @ values[:, :, :n], [keys, values, n]


def cached_step_running(q, k, v, cache=None):
    # values first, in one tensor
    new = torch.stack([v, k])
    both = new if cache is None else torch.cat([cache, new], dim=3)
    values, keys = both.unbind(0)
    p = torch.exp((s := q @ keys.mT / q.size(-1) ** 0.5) - s.amax(-1, keepdim=True))
    return p @ values / p.sum(-1, keepdim=True), both


def cached_step_masked(q, k, v, cache=None):
    if cache is not None:
        k, v = (torch.cat(two, -2) for two in zip(cache, (k, v)))
    n = k.shape[-2]
    last = torch.ones(n, n, dtype=torch.bool).tril()[-1:]
    s = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~last, float("-inf"))
    return s.softmax(-1) @ v, (k, v)
