"""Decoding, all right: the ids may stand in anything that holds numbers in a row."""

from collections import deque

import numpy as np
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


def greedy_one_element_tensors(logits, bos, eos, most):
    ids, out = torch.tensor([[bos]]), []
    while len(out) < most:
        token = torch.argmax(logits(ids)[:, -1, :], dim=-1)
        if token.item() == eos:
            break
        out.append(token)
        ids = torch.cat((ids, token.unsqueeze(1)), dim=1)
    return out


def greedy_tuple(logits, bos, eos, most):
    ids = (bos,)
    while len(ids) <= most:
        token = int(logits(torch.tensor([ids]))[0, -1].argmax())
        if token == eos:
            break
        ids += (token,)
    return ids[1:]


def greedy_row(logits, bos, eos, most):
    ids = torch.tensor([bos])
    for _ in range(most):
        token = logits(ids[None])[0, -1].argmax()[None]
        if token == eos:
            break
        ids = torch.cat([ids, token])
    return ids[1:]


def greedy_batch(logits, bos, eos, most):
    ids = torch.full((1, 1), bos, dtype=torch.long)
    for _ in range(most):
        token = logits(ids)[:, -1:].argmax(-1)
        if (token == eos).all():
            break
        ids = torch.hstack([ids, token])
    return ids[:, 1:]


def greedy_buffer(logits, bos, eos, most):
    ids = torch.zeros(1, most + 1, dtype=torch.int64)
    ids[0, 0] = bos
    n = 1
    while n <= most:
        ids[0, n] = logits(ids[:, :n])[0, -1].topk(1).indices
        if ids[0, n] == eos:
            break
        n += 1
    return ids[0, 1:n].tolist()


def greedy_array(logits, bos, eos, most):
    ids = np.array([bos])
    while len(ids) - 1 < most:
        token = logits(torch.from_numpy(ids)[None])[0, -1].argmax().numpy()
        if token == eos:
            break
        ids = np.append(ids, token)
    return ids[1:]


def greedy_deque(logits, bos, eos, most):
    ids = deque([bos])
    while len(ids) <= most:
        ids.append(int(logits(torch.tensor([[*ids]]))[0, -1].argmax()))
        if ids[-1] == eos:
            ids.pop()
            break
    ids.popleft()
    return ids


class _Decoder:
    def __call__(self, logits, bos, eos, most):
        return greedy_list(logits, bos, eos, most)


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


class _Cache:
    def __init__(self):
        self.k, self.v = None, None

    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], 2)
        self.v = v if self.v is None else torch.cat([self.v, v], 2)
        return self.k, self.v


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
