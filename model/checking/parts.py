"""The parts of the paper that one can write oneself, and what students make of them."""

import math
from collections.abc import Callable
from inspect import Parameter, Signature

import numpy as np
import torch
from torch import Tensor

from headlight.model.checking.part import Case, Mistake, Subject
from headlight.model.misconceptions import OF_ATTENTION, OF_MASKS

INF = math.inf


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def m(name: str, sentence: str, note: bool = False, **swaps) -> Mistake:
    return Mistake(name, swaps, sentence, note)


def of_attention(name: str, **swaps) -> Mistake:
    return m(name, OF_ATTENTION[name], **swaps)


def of_masks(name: str, **swaps) -> Mistake:
    return m(name, OF_MASKS[name], **swaps)


# Steps


def products(q, k):
    return q @ k.transpose(-2, -1)


def scores(products, q):
    return products / math.sqrt(q.shape[-1])


def fill():
    """What hidden scores become. A large negative number does as well, but in an empty row."""
    return -INF


def masked(scores, mask, fill):
    return scores if mask is None else scores.masked_fill(~mask, fill)


def raw(masked):
    return masked.softmax(-1)


def weights(raw):
    """A softmax of −∞ alone is NaN: a row that may attend to nothing has no weights."""
    return raw.nan_to_num(0.0)


def unmasked(scores, mask):
    """Softmax, and what the mask hides taken away afterwards."""
    return scores.softmax(-1) * (1 if mask is None else mask)


def naive(masked):
    powers = masked.exp()
    return powers / powers.sum(-1, keepdim=True)


def over(*axes: int):
    """A softmax along other axes."""

    def compute(masked):
        if len(axes) == 1:
            return masked.softmax(axes[0])
        powers = (masked - masked.amax(axes, keepdim=True)).exp()
        return powers / powers.sum(axes, keepdim=True)

    return compute


def _causal_too(scores, mask):
    causal = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return causal if mask is None else causal & mask


# Scores

SCALES = (
    of_attention("√d left out",
      scores=lambda products: products),
    of_attention("divided by d",
      scores=lambda products, q: products / q.shape[-1]),
    of_attention("√d_model",
      scores=lambda products, q: products / math.sqrt(q.shape[-1] * q.shape[1])),
    of_attention("multiplied by √d",
      scores=lambda products, q: products * math.sqrt(q.shape[-1])),
    m("√ of the keys", "You took the root of the number of keys. Take that of d, the length of a "
      "query.", scores=lambda products, k: products / math.sqrt(k.shape[-2])),
    m("√ of the queries", "You took the root of the number of queries. Take that of d, the length "
      "of one query.", scores=lambda products, q: products / math.sqrt(q.shape[-2])),
    m("√ of the heads", "You took the root of the number of heads. Take that of d, the length of a "
      "query.", scores=lambda products, q: products / math.sqrt(q.shape[1])),
    m("divided by the heads", "You divided by the number of heads. Divide by √d.",
      scores=lambda products, q: products / q.shape[1]),
    m("divided by 8", "You divided by 8, which is √64. Here d is another: read it off the query.",
      scores=lambda products: products / 8),
    *(m("d ** 1/2", "d ** 1/2 is d ÷ 2, as a power comes before a division. Write d ** 0.5.",
        scores=lambda products, q, power=power: products / q.shape[-1] * power)
      for power in (2.0, 0.5)),  # with and without brackets
    m("√ of a shape", "You took the root of the first size. Take that of the last one, d.",
      scores=lambda products, q: products / math.sqrt(q.shape[0])),
)  # fmt: skip


def _qkv(seed: int, b: int, h: int, nq: int, nk: int, d: int, scale: float = 1.0):
    return {
        "q": drawn(b, h, nq, d, seed=seed, scale=scale),
        "k": drawn(b, h, nk, d, seed=seed + 1),
        "v": drawn(b, h, nk, d, seed=seed + 2),
        "mask": None,
    }


def _some(*shape: int, seed: int) -> Tensor:
    """A mask in which each row may attend to something."""
    mask = drawn(*shape, seed=seed) > 0
    mask[..., 1] = True
    return mask


def attention_cases():
    square, wide = _qkv(3, 2, 3, 6, 6, 4), _qkv(7, 2, 3, 5, 7, 10)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    padding = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])[:, None, None, :]
    empty, alone = padding.clone(), padding.clone()
    empty[1], alone[1, ..., 1:] = False, False  # a key alone may have a score far below 0
    return [
        Case("no mask", square),
        Case("other sizes", wide),
        Case("a causal mask", square | {"mask": causal}),
        Case("a padding mask", wide | {"mask": padding}),
        Case("a mask of its own for each head", wide | {"mask": _some(2, 3, 5, 7, seed=9)}),
        Case("one sentence, one head", _qkv(11, 1, 1, 6, 6, 5) | {"mask": causal}),
        Case("large scores", wide | {"q": wide["q"] * 120, "mask": alone}, only="overflow"),
        Case("a row that may attend to nothing", wide | {"mask": empty}, edge="empty row"),
    ]


def score_cases():
    return attention_cases()[:2]


SCORES = Subject(
    "scores", "scores(q, k)", ("q", "k"),
    {"products": products, "scores": scores}, score_cases,
    (
        *SCALES,
        of_attention("rows for columns",
          products=lambda q, k: k @ q.transpose(-2, -1)),
        of_attention("vectors, not tokens",
          products=lambda q, k: q.transpose(-2, -1) @ k),
        m("weights returned", "These are weights already. Return the scores, before the softmax.",
          scores=lambda products, q: scores(products, q).softmax(-1)),
        of_attention("entries added",
          products=lambda q, k: q.sum(-1, keepdim=True) + k.sum(-1)[..., None, :]),
        m("distance", "That is a distance. A score is a dot product.",
          products=lambda q, k: torch.cdist(q, k)),
        m("cosine", "You divided by the lengths of the vectors: a cosine. Divide by √d alone.",
          scores=lambda products, q, k: products
          / q.norm(dim=-1, keepdim=True) / k.norm(dim=-1)[..., None, :]),
    ),
    ("batch", "head", "query", "key"), {"products": "dot products", "scores": "scores"},
)  # fmt: skip

# Softmax under a mask


def too_large(value: float):
    return m("masked scores too large", "Masked scores are a number that is not small enough, such "
             "as −20: hidden keys keep some weight. Fill in −∞.", fill=lambda: value)  # fmt: skip


TOO_LARGE = (*map(too_large, (-20.0, -50.0, -100.0)),)  # seen if scores are large
MASKINGS = (
    m("True for False", "You hid what may be seen. Here True means: may attend.",
      masked=lambda scores, mask, fill: masked(scores, None if mask is None else ~mask, fill)),
    m("mask ignored", "The mask changes nothing. Set the scores where it is False to −∞.",
      masked=lambda scores: scores),
    m("masked scores 0", "Masked scores are 0 or near it (1e-9?), and e⁰ is 1. They must be −∞.",
      masked=lambda scores, mask: scores if mask is None else scores.masked_fill(~mask, 0.0)),
    m("mask added as numbers", "You added True as 1. Where the mask is False the score must be −∞.",
      masked=lambda scores, mask: scores if mask is None else scores + mask),
    m("+∞ for −∞", "Masked scores must be −∞. With a large positive number they win.",
      masked=lambda scores, mask: scores if mask is None else scores.masked_fill(~mask, 1e9)),
    m("mask of the first sentence", "Every sentence has a mask of its own. You used the first one.",
      masked=lambda scores, mask, fill: masked(
          scores, mask if mask is None or mask.dim() < 4 else mask[:1], fill)),
    *map(too_large, (-1.0, -5.0, -10.0)),
    m("0 times −∞", "You multiplied the mask by −∞, and 0 × −∞ is NaN. Use masked_fill or "
      "torch.where.", masked=lambda scores, mask: scores if mask is None
      else scores + (~mask).float() * -INF),
    m("always causal", "Your code hides later tokens even where the mask does not. Hide what the "
      "mask hides and nothing else: an encoder attends both ways.",
      masked=lambda scores, mask, fill: masked(scores, _causal_too(scores, mask), fill)),
    m("always causal", "Your code hides later tokens, and ignores the mask. Hide what the mask "
      "hides and nothing else: an encoder attends both ways.",
      masked=lambda scores, fill: masked(scores, _causal_too(scores, None), fill)),
    m("−∞ on the diagonal too", "A token may attend to itself.",
      masked=lambda scores, mask, fill: masked(
          scores, mask if mask is None or mask.shape[-1] != mask.shape[-2]
          else mask & ~torch.eye(mask.shape[-1], dtype=torch.bool), fill)),
)  # fmt: skip

SOFTMAXES = (
    m("wrong axis", "You normalised a column. The softmax runs along a row, over the keys: dim=-1.",
      raw=over(-2)),
    m("over the heads", "You normalised over the heads (dim=1). The softmax runs over the keys: "
      "dim=-1.", raw=over(1)),
    m("over the batch", "You normalised over the batch (dim=0): sentences share their weights. The "
      "softmax runs over the keys: dim=-1.", raw=over(0)),
    m("one sum for all", "All weights together add up to 1. Each row must.",
      raw=over(0, 1, 2, 3)),
    m("one sum for all", "All weights of a head add up to 1. Each row must.",
      raw=over(-2, -1)),
    m("zero after the softmax", "The masked share is missing: your row adds up to less than 100%. "
      "Mask the scores, before the softmax.", raw=unmasked),
    of_attention("no exponential",
      raw=lambda masked: (lambda s: s / s.sum(-1, keepdim=True))(
          masked.masked_fill(masked == -INF, 0.0))),
    m("not divided", "These are the powers. Divide by the sum of their row.",
      raw=lambda masked: masked.exp()),
    m("log returned", "These are logarithms of the weights: log_softmax. Use softmax.",
      raw=lambda masked: masked.log_softmax(-1)),
    m("overflow", "e to a large score is too large for a float, or 0, and ∞ ÷ ∞ and 0 ÷ 0 are "
      "NaN. Subtract the row's largest score first.", raw=naive),
    m("divided by other rows' sums", "Your sums are broadcast along the wrong axis. Keep the axis: "
      "sum(-1, keepdim=True).",
      raw=lambda masked: (lambda e: e / e.sum(-1))(
          (masked - masked.amax(-1, keepdim=True)).exp())),
    of_attention("winner takes all",
      raw=lambda masked: torch.zeros_like(masked).scatter(
          -1, masked.argmax(-1, keepdim=True), 1.0)),
    m("sigmoid", "A sigmoid knows each score alone. Weights of a row share 1.",
      raw=lambda masked: masked.sigmoid()),
    m("NaN in an empty row", "A row that may attend to nothing is NaN: softmax of −∞ alone is "
      "0 ÷ 0, and NaN spreads through every later layer. Ours is 0 there.", note=True,
      weights=lambda raw: raw),
    m("empty row shared equally", "A row that may attend to nothing attends to all keys alike: "
      "that is what −1e9 does in place of −∞. Ours is 0 there.", note=True,
      fill=lambda: -1e9),
)  # fmt: skip


def softmax_cases():
    return [
        Case(case.title, {"scores": scores(products(**_two(case)), case.inputs["q"]),
                          "mask": case.inputs["mask"]}, case.edge, case.only)
        for case in attention_cases()
    ]  # fmt: skip


def _two(case: Case):
    return {name: case.inputs[name] for name in "qk"}


SOFTMAX = Subject(
    "softmax", "softmax(scores, mask)", ("scores", "mask"),
    {"fill": fill, "masked": masked, "raw": raw, "weights": weights}, softmax_cases,
    (*MASKINGS, *TOO_LARGE, *SOFTMAXES), ("batch", "head", "query", "key"),
    {"masked": "masked scores", "raw": "weights", "weights": "weights"},
)  # fmt: skip

# Attention

MIXES = (
    m("weights returned", "You returned the weights. Multiply them with the values.",
      output=lambda weights: weights),
    m("keys for values", "You mixed the keys. Mix the values.",
      output=lambda weights, k: weights @ k),
    of_attention("plain mean",
      output=lambda weights, v: v.mean(-2, keepdim=True).expand(
          *v.shape[:2], weights.shape[-2], -1)),
    m("weights transposed", "You transposed the weights before mixing: rows are queries.",
      output=lambda weights, v: weights.transpose(-2, -1) @ v),
    m("scores for weights", "You mixed the values with the scores. The softmax is missing.",
      output=lambda masked, v: masked.masked_fill(masked == -INF, 0.0) @ v),
    of_attention("sum of values",
      output=lambda weights, v: v.sum(-2, keepdim=True).expand(
          *v.shape[:2], weights.shape[-2], -1)),
)  # fmt: skip

LATE_SCALE = m(
    "√d after the softmax",
    "You divided the weights by √d. Divide the scores, before the softmax.",
    scores=lambda products: products,
    raw=lambda masked, q: masked.softmax(-1) / math.sqrt(q.shape[-1]),
)
ATTENTION_STEPS = {
    "products": products, "scores": scores, "fill": fill, "masked": masked, "raw": raw,
    "weights": weights,
    "output": lambda weights, v: weights @ v,
}  # fmt: skip
ATTENTION = Subject(
    "attention", "attention(q, k, v, mask)", ("q", "k", "v", "mask"), ATTENTION_STEPS,
    attention_cases, (*SCALES, *MASKINGS, *TOO_LARGE, *SOFTMAXES, *MIXES, LATE_SCALE),
    ("batch", "head", "query", "number"),
    {"products": "dot products", "scores": "scores", "masked": "masked scores", "raw": "weights",
     "weights": "weights", "output": "output"},
)  # fmt: skip

# Heads


def split(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge(heads):
    return heads.transpose(1, 2).flatten(2)


def by_view(x, n_heads):
    return x.reshape(len(x), n_heads, x.shape[1], -1)


def merged_by_view(heads):
    return heads.reshape(len(heads), heads.shape[2], -1)


def interleaved(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)


def merged_interleaved(heads):
    return heads.permute(0, 2, 3, 1).flatten(2)


VIEW = (
    "You cut the memory as it lies: a head gets parts of several tokens. First unfold the last "
    "axis, view(batch, length, heads, d_head), then transpose(1, 2)."
)
MERGED_VIEW = (
    "You put memory together as it lies: a token gets parts of other tokens. First transpose(1, 2)"
    ", then reshape(batch, length, d_model)."
)
SPLIT = Subject(
    "split_heads", "split_heads(x, n_heads)", ("x", "n_heads"), {"heads": split},
    lambda: [
        Case("a batch", {"x": drawn(2, 5, 12, seed=1), "n_heads": 3}),
        Case("other sizes", {"x": drawn(3, 4, 20, seed=2), "n_heads": 2}),
        Case("as many tokens as heads", {"x": drawn(2, 4, 8, seed=4), "n_heads": 4}),
    ],
    (
        m("view for transpose", VIEW, heads=by_view),
        m("heads interleaved", "Head 1 has every so many-th number. It takes the first d_head of "
          "them, side by side.", heads=interleaved),
        m("not transposed", "Your heads come after the tokens: (batch, length, heads, d_head). "
          "transpose(1, 2) brings them to the front.",
          heads=lambda x, n_heads: x.unflatten(-1, (n_heads, -1))),
        m("axes turned", "The last two axes are swapped: (…, length, d_head).",
          heads=lambda x, n_heads: split(x, n_heads).transpose(-2, -1)),
        m("heads in the batch", "You folded the heads into the batch. They get an axis of their "
          "own: (batch, heads, length, d_head).",
          heads=lambda x, n_heads: split(x, n_heads).flatten(0, 1)),
        m("view into the batch", VIEW,
          heads=lambda x, n_heads: x.reshape(len(x) * n_heads, x.shape[1], -1)),
        m("n_heads numbers a head", "You made heads of n_heads numbers. There are n_heads heads, "
          "each of d_model ÷ n_heads.",
          heads=lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).transpose(1, 2)),
        m("heads first of all", "The batch comes first: (batch, heads, length, d_head).",
          heads=lambda x, n_heads: split(x, n_heads).transpose(0, 1)),
    ),
    ("batch", "head", "token", "number"), {"heads": "heads"},
)  # fmt: skip
MERGES = (
    m("view for transpose, merging", MERGED_VIEW, merged=merged_by_view),
    m("merged interleaved", "The numbers of the heads alternate. Put the heads side by side, each "
      "as a block.", merged=merged_interleaved),
    m("heads summed", "You added the heads. They are put side by side.",
      merged=lambda heads: heads.sum(1)),
    m("heads averaged", "You averaged the heads. They are put side by side.",
      merged=lambda heads: heads.mean(1)),
    m("heads reversed", "The heads are in the opposite order.",
      merged=lambda heads: merge(heads.flip(1))),
)  # fmt: skip
MERGE = Subject(
    "merge_heads", "merge_heads(heads)", ("heads",), {"merged": merge},
    lambda: [
        Case("a batch", {"heads": drawn(2, 3, 5, 4, seed=1)}),
        Case("other sizes", {"heads": drawn(3, 2, 4, 10, seed=2)}),
        Case("as many tokens as heads", {"heads": drawn(2, 4, 4, 2, seed=4)}),
    ],
    (*MERGES, m("not joined", "The heads still have an axis of their own.",
                merged=lambda heads: heads.transpose(1, 2))),
    ("batch", "token", "number"), {"merged": "joined heads"},
)  # fmt: skip

PROJECTIONS = ("query", "key", "value", "output")


def _linear(x, weight, bias):
    return x @ weight.T + bias


def projected(role: str, by: str = "") -> Callable:
    """x → its projection, by the matrix of this role or of another."""

    def project(x, w):
        return _linear(x, *w[by or role])

    # The chain reads what its steps are called with.
    names = (Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (f"in_{role}", "w"))
    project.__signature__ = Signature(list(names))
    return project


PLURAL = {"query": "queries", "key": "keys", "value": "values"}


def multi_head_cases():
    def case(title, seed, b, h, nq, nk, d, mask, own=False, edge=""):
        q = drawn(b, nq, d, seed=seed)
        k = q if own else drawn(b, nk, d, seed=seed + 1)
        w = {
            role: (
                drawn(d, d, seed=seed + 10 + i) / math.sqrt(d) * 1.7,
                drawn(d, seed=seed + 20 + i),
            )
            for i, role in enumerate(PROJECTIONS)
        }
        v = k if own else drawn(b, nk, d, seed=seed + 2)  # unlike the keys, to tell them apart
        return Case(title, {"in_query": q, "in_key": k, "in_value": v, "mask": mask,
                            "n_heads": h, "w": w}, edge)  # fmt: skip

    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    padding = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])[:, None, None, :]
    return [
        case("no mask", 30, 2, 3, 6, 6, 12, None, own=True),
        case("a causal and a padding mask", 31, 2, 3, 6, 6, 12, causal & padding, own=True),
        case("two texts", 32, 2, 2, 5, 7, 20, None),
        case(
            "a row that may attend to nothing",
            34,
            2,
            3,
            6,
            6,
            12,
            padding & torch.tensor([True, False])[:, None, None, None],
            own=True,
            edge="empty row",
        ),
        case("two texts, equally long", 33, 2, 2, 4, 4, 12, None),
    ]


def _whole(products, in_query):
    return products / math.sqrt(in_query.shape[-1])


MULTI_STEPS = {
    "p_query": projected("query"), "p_key": projected("key"), "p_value": projected("value"),
    "q": lambda p_query, n_heads: split(p_query, n_heads),
    "k": lambda p_key, n_heads: split(p_key, n_heads),
    "v": lambda p_value, n_heads: split(p_value, n_heads),
    "products": products, "scores": scores, "fill": fill, "masked": masked, "raw": raw,
    "weights": weights,
    "heads": lambda weights, v: weights @ v,
    "merged": merge,
    "output": lambda merged, w: _linear(merged, *w["output"]),
}  # fmt: skip


def all_split(how):
    return {
        "q": lambda p_query, n_heads: how(p_query, n_heads),
        "k": lambda p_key, n_heads: how(p_key, n_heads),
        "v": lambda p_value, n_heads: how(p_value, n_heads),
    }


MULTI = Subject(
    "multi_head", "a module: (query, key, value, mask)",
    ("in_query", "in_key", "in_value", "mask"), MULTI_STEPS, multi_head_cases,
    (
        *SCALES, *MASKINGS, *(x for x in SOFTMAXES if x.name != "overflow"),
        *(x for x in MERGES if x.name not in ("heads summed", "heads averaged")),
        m("view for transpose", VIEW, **all_split(by_view)),
        m("heads interleaved", "Head 1 has every so many-th number. It takes the first d_head of "
          "them, side by side.", **all_split(interleaved)),
        m("view both ways", VIEW + " And back in the same way.", **all_split(by_view),
          merged=merged_by_view),
        m("output projection missing", "The heads are put side by side, and then projected once "
          "more: the output matrix is missing.", output=lambda merged: merged),
        m("keys for values", "You mixed the keys. Mix the values.",
          heads=lambda weights, k: weights @ k),
        m("scores for weights", "You mixed the values with the scores. The softmax is missing.",
          heads=lambda masked, v: masked.masked_fill(masked == -INF, 0.0) @ v),
        m("values of the query's text", "The values come from the third argument.",
          p_value=lambda in_query, w: _linear(in_query, *w["value"])),
        m("keys of the query's text", "Keys come from the second argument: in cross-attention that "
          "is another text.", p_key=lambda in_query, w: _linear(in_query, *w["key"])),
        m("values of the key's text", "The values come from the third argument, not from the "
          "second.", p_value=lambda in_key, w: _linear(in_key, *w["value"])),
        m("residual inside", "You added the input here. The layer does that.",
          output=lambda merged, w, in_query: _linear(merged, *w["output"]) + in_query),
        m("one head", "You attended once, over the whole d_model. Split it into heads first.",
          **all_split(lambda x, n_heads: x[:, None])),
        m("batch and length swapped", "You attended over the batch: this module takes (length, "
          "batch, d_model). Say batch_first=False, or transpose.",
          p_query=lambda in_query, w: _linear(in_query, *w["query"]).transpose(0, 1),
          p_key=lambda in_key, w: _linear(in_key, *w["key"]).transpose(0, 1),
          p_value=lambda in_value, w: _linear(in_value, *w["value"]).transpose(0, 1),
          output=lambda merged, w: _linear(merged, *w["output"]).transpose(0, 1)),
        *(m(f"{PLURAL[here]} projected by the {there}'s matrix",
            f"The {PLURAL[here]} have a matrix of their own. You used that of the {PLURAL[there]}.",
            False,
            **{f"p_{here}": projected(here, there)})
          for here in PROJECTIONS[:3] for there in PROJECTIONS[:3] if here != there),
        m("not projected", "Queries, keys and values are projections of the input.",
          p_query=lambda in_query: in_query, p_key=lambda in_key: in_key,
          p_value=lambda in_value: in_value),
    ),
    ("batch", "token", "number"),
    {"q": "queries", "k": "keys", "v": "values", "products": "dot products", "scores": "scores",
     "masked": "masked scores", "raw": "weights", "weights": "weights", "heads": "heads",
     "merged": "joined heads",
     "output": "output", "p_query": "projected queries", "p_key": "projected keys",
     "p_value": "projected values"},
)  # fmt: skip

# Masks


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


NUMBERS = "A mask holds booleans, True = may attend. These are numbers: ~ and & do other things."
CAUSAL = Subject(
    "causal_mask", "causal_mask(length)", ("length",), {"mask": causal},
    lambda: [Case("5 tokens", {"length": 5}), Case("3 tokens", {"length": 3}),
             Case("1 token", {"length": 1})],
    (
        of_masks("True for False",
          mask=lambda length: ~causal(length)),
        of_masks("without the diagonal",
          mask=lambda length: causal(length) & ~torch.eye(length, dtype=torch.bool)),
        of_masks("rows for columns",
          mask=lambda length: causal(length).T),
        m("one too many", "A row may attend to itself and what came before, not to the next token.",
          mask=lambda length: torch.ones(length, length, dtype=torch.bool).tril(1)),
        m("numbers", NUMBERS, mask=lambda length: causal(length).float()),
        m("numbers, True for False", NUMBERS + " And they are the masked ones.",
          mask=lambda length: (~causal(length)).float()),
        m("added mask", "0 and −∞ are made to be added to scores. Return booleans, True = may "
          "attend.", mask=lambda length: torch.zeros(length, length).masked_fill(
              ~causal(length), -INF)),
        m("all", "This mask hides nothing.",
          mask=lambda length: torch.ones(length, length, dtype=torch.bool)),
    ),
    ("query", "key"), {"mask": "mask"}, loose=True,
)  # fmt: skip


def visible(ids, pad):
    return (ids != pad)[:, None, None, :]


def real_first(ids, pad):
    return visible(ids, pad).sort(dim=-1, descending=True).values


PADDING = Subject(
    "padding_mask", "padding_mask(ids, pad)", ("ids", "pad"), {"mask": visible},
    lambda: [
        Case("pad 0", {"ids": torch.tensor([[5, 6, 7, 2, 0], [4, 2, 0, 0, 0]]), "pad": 0}),
        Case("pad 3", {"ids": torch.tensor([[5, 0, 7, 2, 3], [4, 2, 3, 3, 3], [9, 2, 8, 1, 6]]),
                       "pad": 3}),
        Case("padding on the left",
             {"ids": torch.tensor([[1, 1, 5, 6, 2], [4, 7, 8, 2, 1]]), "pad": 1}),
    ],
    (
        of_masks("True for False",
          mask=lambda ids, pad: ~visible(ids, pad)),
        m("padding taken to be last", "You counted the tokens, as if padding always came last. It "
          "may come first: compare each token with the padding id.", mask=real_first),
        m("queries masked", "You masked the rows, which attend. Padding must not be attended to: "
          "mask the columns, (batch, 1, 1, key).",
          mask=lambda ids, pad: visible(ids, pad).transpose(-2, -1)),
        m("padding rows closed too", "Masking the columns is enough. A padding row that attends to "
          "nothing is empty.",
          mask=lambda ids, pad: visible(ids, pad) & visible(ids, pad).transpose(-2, -1)),
        m("axes missing", "(batch, key) does not fit (batch, heads, query, key): it needs "
          "[:, None, None, :].", mask=lambda ids, pad: ids != pad),
        m("one axis missing", "(batch, 1, key) stands at heads, not at the batch. It needs "
          "[:, None, None, :].", mask=lambda ids, pad: (ids != pad)[:, None]),
        m("pad id ignored", "You compared with 0. The padding token has the id that is given.",
          mask=lambda ids: (ids != 0)[:, None, None, :]),
        m("numbers", NUMBERS, mask=lambda ids, pad: visible(ids, pad).float()),
        m("numbers, True for False", NUMBERS + " And they are the masked ones.",
          mask=lambda ids, pad: (~visible(ids, pad)).float()),
        m("added mask", "0 and −∞ are made to be added to scores. Return booleans, True = may "
          "attend.", mask=lambda ids, pad: torch.zeros(len(ids), 1, 1, ids.shape[1]).masked_fill(
              ~visible(ids, pad), -INF)),
    ),
    ("batch", "head", "query", "key"), {"mask": "mask"},
)  # fmt: skip

# Positions


def rates(d_model, base: float = 10000.0):
    return base ** -(torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def angles(length, rates):
    return torch.arange(length, dtype=torch.float64)[:, None] * rates


def table(angles):
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).float()


def _columns(length, exponents):
    """An angle for each column, sine at even and cosine at odd ones."""
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0**-exponents
    even = torch.arange(len(exponents)) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos()).float()


def _i(d_model):
    return torch.arange(d_model, dtype=torch.float64)


POSITIONS = Subject(
    "positional_encoding", "positional_encoding(length, d_model)", ("length", "d_model"),
    {"rates": rates, "angles": angles, "table": table},
    lambda: [Case("10 positions", {"length": 10, "d_model": 8}),
             Case("other sizes", {"length": 7, "d_model": 12})],
    (
        m("halves", "All sines stand on the left and all cosines on the right. They alternate: "
          "sine in even columns, cosine in odd ones.",
          table=lambda angles: torch.cat([angles.sin(), angles.cos()], -1).float()),
        m("sine and cosine swapped", "Even columns are sines, odd ones cosines.",
          table=lambda angles: torch.stack([angles.cos(), angles.sin()], -1).flatten(-2).float()),
        m("exponent doubled", "The exponent is 2i ÷ d_model with i = 0, 1, 2, … An index that "
          "already goes 0, 2, 4, … is 2i: do not double it.",
          rates=lambda d_model: 10000.0 ** -(2 * _i(d_model)[::2] / d_model)),
        m("exponent halved", "The exponent is 2i ÷ d_model. You left out the 2.",
          rates=lambda d_model: 10000.0 ** -(torch.arange(d_model // 2).double() / d_model)),
        m("a rate for each column", "Sine and cosine of a pair share one wavelength: i counts "
          "pairs, not columns.",
          table=lambda length, d_model: _columns(length, _i(d_model) / d_model)),
        m("a doubled rate for each column", "Sine and cosine of a pair share one wavelength, with "
          "the exponent 2i ÷ d_model, where i counts pairs.",
          table=lambda length, d_model: _columns(length, 2 * _i(d_model) / d_model)),
        m("positions from 1", "The first position is 0.",
          angles=lambda length, rates: (1 + torch.arange(length).double())[:, None] * rates),
        m("multiplied", "The position is divided by 10000^(2i/d_model), not multiplied.",
          rates=lambda d_model: 1 / rates(d_model)),
        m("base 1000", "The base is 10000.", rates=lambda d_model: rates(d_model, 1000.0)),
        m("exponent upside down", "It is 10000 to the power of 2i/d_model, not the reverse.",
          rates=lambda d_model: 1 / (_i(d_model)[::2] / d_model).clamp(min=1e-9) ** 1e-4),
        m("sines only", "Odd columns are cosines.",
          table=lambda angles: torch.stack([angles.sin(), angles.sin()], -1).flatten(-2).float()),
        m("table transposed", "(length, d_model): a row is a position.",
          table=lambda angles: table(angles).T),
        m("rates from k = 1", "The first pair has i = 0: it turns by one radian a position.",
          rates=lambda d_model: 10000.0 ** -((2 + _i(d_model)[::2]) / d_model)),
        m("divided by d − 2", "The exponent is 2i ÷ d_model, so the last pair does not quite reach "
          "10000.", rates=lambda d_model: 10000.0 ** -(_i(d_model)[::2] / (d_model - 2))),
    ),
    ("position", "number"), {"rates": "rates", "angles": "angles", "table": "table"}, loose=True,
)  # fmt: skip


def pairs_turned(x, angles):
    even, odd = x[..., ::2], x[..., 1::2]
    sin, cos = angles.sin().float(), angles.cos().float()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def halves_turned(x, angles):
    one, other = x.chunk(2, -1)
    sin, cos = angles.sin().float(), angles.cos().float()
    return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)


ROTARY = Subject(
    "rotary", "rotary(x, positions)", ("x", "positions"),
    {
        "rates": lambda x: rates(x.shape[-1]),
        "angles": lambda positions, rates: positions.double()[:, None] * rates,
        "turned": pairs_turned,
    },
    lambda: [
        Case("from 0", {"x": drawn(2, 3, 5, 8, seed=1), "positions": torch.arange(5)}),
        Case("a later token", {"x": drawn(1, 2, 1, 4, seed=2), "positions": torch.tensor([9])}),
        Case("as many heads as tokens",
             {"x": drawn(2, 5, 5, 8, seed=3), "positions": torch.arange(5) + 2}),
    ],
    (
        m("halves", "You paired number i with number i + d/2, as Llama's released code does. Here "
          "neighbours are pairs, as in the paper: x[..., ::2] and x[..., 1::2].",
          turned=halves_turned),
        m("other way round", "You turned by −angle. Positive positions turn from the first number "
          "of a pair to the second.", turned=lambda x, angles: pairs_turned(x, -angles)),
        m("positions ignored", "You counted positions from 0. A cached token is at the position "
          "that is given.",
          angles=lambda positions, rates: torch.arange(len(positions)).double()[:, None] * rates),
        m("turned by head", "You turned along the heads. The position is on the axis before the "
          "last.", turned=lambda x, angles: pairs_turned(
              x.transpose(1, 2), angles).transpose(1, 2)),
        m("exponent doubled", "The exponent is 2i ÷ d with i = 0, 1, 2, … An index 0, 2, 4, … is "
          "2i already.", rates=lambda x: 10000.0 ** -(2 * _i(x.shape[-1])[::2] / x.shape[-1])),
        m("sine and cosine swapped", "Sine and cosine are swapped: at position 0 nothing turns.",
          turned=lambda x, angles: pairs_turned(x, math.pi / 2 - angles)),
        m("positions added", "Rotary positions turn a vector. Nothing is added.",
          turned=lambda x, angles: x + table(angles)),
        m("halves joined", "You turned pairs of neighbours but put the two parts side by side. "
          "They alternate again.", turned=lambda x, angles: torch.cat(
              pairs_turned(x, angles).unflatten(-1, (-1, 2)).unbind(-1), -1)),
        m("one sign", "The first number of a pair loses what the second gains: even · cos − odd · "
          "sin. Your minus is a plus.",
          turned=lambda x, angles: torch.stack(
              [x[..., ::2] * angles.cos().float() + x[..., 1::2] * angles.sin().float(),
               x[..., ::2] * angles.sin().float() + x[..., 1::2] * angles.cos().float()], -1
          ).flatten(-2)),
    ),
    ("batch", "head", "token", "number"), {"turned": "turned vectors"},
)  # fmt: skip

# Norm and feed-forward


def centred(x):
    return x - x.mean(-1, keepdim=True)


def spread(x):
    return (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()


def normed(axes, eps=1e-5):
    return (
        lambda x: x - x.mean(axes, keepdim=True),
        lambda x: (x.var(axes, correction=0, keepdim=True) + eps).sqrt(),
    )


def _eps(eps):
    return lambda x: (x.var(-1, correction=0, keepdim=True) + eps).sqrt()


LAYER_NORM = Subject(
    "layer_norm", "layer_norm(x, gain, bias)", ("x", "gain", "bias"),
    {
        "centred": centred, "spread": spread, "normed": lambda centred, spread: centred / spread,
        "output": lambda normed, gain, bias: normed * gain + bias,
    },
    lambda: [
        Case("a batch", {"x": drawn(2, 5, 8, seed=1, scale=3) + 2, "gain": drawn(8, seed=2),
                         "bias": drawn(8, seed=3)}),
        Case("small numbers, where eps counts",
             {"x": drawn(3, 4, 6, seed=4, scale=3e-3), "gain": drawn(6, seed=5),
              "bias": drawn(6, seed=6)}),
        Case("as many tokens as numbers", {"x": drawn(2, 6, 6, seed=7), "gain": drawn(6, seed=8),
                                           "bias": drawn(6, seed=9)}),
    ],
    (
        m("unbiased variance", "You divided by d − 1, as var and std do by default. Here it is d: "
          "correction=0 (unbiased=False).",
          spread=lambda x: (x.var(-1, keepdim=True) + 1e-5).sqrt()),
        m("eps outside the root", "eps goes under the root: √(variance + eps).",
          spread=lambda x: x.std(-1, correction=0, keepdim=True) + 1e-5),
        m("std + eps, unbiased", "Two things: std divides by d − 1 (correction=0 is meant), and "
          "eps goes under the root.", spread=lambda x: x.std(-1, keepdim=True) + 1e-5),
        m("std + 1e-6, unbiased", "Two things: std divides by d − 1 (correction=0 is meant), and "
          "eps, which is 1e-5, goes under the root.",
          spread=lambda x: x.std(-1, keepdim=True) + 1e-6),
        m("eps outside the root, 1e-6", "eps is 1e-5 and goes under the root: √(variance + eps).",
          spread=lambda x: x.std(-1, correction=0, keepdim=True) + 1e-6),
        m("eps 1e-6", "eps is 1e-5, as in torch.nn.LayerNorm.", spread=_eps(1e-6)),
        m("eps 1e-3", "eps is 1e-5, as in torch.nn.LayerNorm.", spread=_eps(1e-3)),
        m("eps missing", "eps is missing (or far smaller than 1e-5): vectors of nearly equal "
          "numbers blow up.", spread=_eps(0.0)),
        m("root missing", "Divide by the standard deviation: the root of the variance.",
          spread=lambda x: x.var(-1, correction=0, keepdim=True) + 1e-5),
        m("mean not subtracted", "Subtract the mean first.", centred=lambda x: x),
        m("RMS", "That is RMSNorm. LayerNorm subtracts the mean, too.",
          centred=lambda x: x, spread=lambda x: (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()),
        *(
            m(name, f"You normalised over {what}. Each token is normalised by itself: dim=-1.",
              centred=normed(axes)[0], spread=normed(axes)[1])
            for name, what, axes in (
                ("over the tokens", "the tokens of a sentence", (1,)),
                ("over the batch", "the batch", (0,)),
                ("over sentence and numbers", "a whole sentence", (1, 2)),
                ("over everything", "everything", (0, 1, 2)),
                ("over batch and tokens", "batch and tokens, as a batch norm", (0, 1)),
            )
        ),
        m("gain left out", "The result is multiplied by the gain.",
          output=lambda normed, bias: normed + bias),
        m("bias left out", "The bias is added at the end.",
          output=lambda normed, gain: normed * gain),
        m("bias before gain", "First times the gain, then plus the bias.",
          output=lambda normed, gain, bias: (normed + bias) * gain),
        m("gain and bias left out", "Times gain, plus bias.", output=lambda normed: normed),
        m("gain and bias swapped", "You swapped gain and bias.",
          output=lambda normed, gain, bias: normed * bias + gain),
        m("1 + gain", "The gain is a factor itself; do not add 1.",
          output=lambda normed, gain, bias: normed * (1 + gain) + bias),
    ),
    ("batch", "token", "number"),
    {"centred": "vectors without their mean", "spread": "standard deviations",
     "normed": "normed vectors", "output": "output"},
)  # fmt: skip


def _ff(seed, b, n, d, f):
    return {"x": drawn(b, n, d, seed=seed), "w1": drawn(f, d, seed=seed + 1),
            "b1": drawn(f, seed=seed + 2), "w2": drawn(d, f, seed=seed + 3),
            "b2": drawn(d, seed=seed + 4)}  # fmt: skip


FEED_FORWARD = Subject(
    "feed_forward", "feed_forward(x, w1, b1, w2, b2)", ("x", "w1", "b1", "w2", "b2"),
    {
        "first": lambda x, w1, b1: _linear(x, w1, b1), "hidden": lambda first: first.relu(),
        "output": lambda hidden, w2, b2: _linear(hidden, w2, b2),
    },
    lambda: [Case("a batch", _ff(1, 2, 5, 6, 11)), Case("other sizes", _ff(9, 3, 4, 8, 8))],
    (
        m("ReLU left out", "The ReLU between the two matrices is missing: two matrices alone are "
          "one.", hidden=lambda first: first),
        m("GELU", "That is GELU. The paper has max(0, x).",
          hidden=lambda first: torch.nn.functional.gelu(first)),
        m("ReLU at the end too", "Nothing follows the second matrix.",
          output=lambda hidden, w2, b2: _linear(hidden, w2, b2).relu()),
        m("ReLU at the end", "The ReLU stands between the matrices, not behind them.",
          hidden=lambda first: first,
          output=lambda hidden, w2, b2: _linear(hidden, w2, b2).relu()),
        m("ReLU first", "The ReLU stands behind the first matrix.",
          first=lambda x, w1, b1: _linear(x.relu(), w1, b1), hidden=lambda first: first),
        m("residual inside", "You added the input here. The layer does that.",
          output=lambda hidden, w2, b2, x: _linear(hidden, w2, b2) + x),
        m("first bias left out", "The first bias is missing.", first=lambda x, w1: x @ w1.T),
        m("second bias left out", "The second bias is missing.",
          output=lambda hidden, w2: hidden @ w2.T),
        m("sigmoid", "The paper has max(0, x).", hidden=lambda first: first.sigmoid()),
        m("tanh", "The paper has max(0, x).", hidden=lambda first: first.tanh()),
        m("softmax", "The paper has max(0, x).", hidden=lambda first: first.softmax(-1)),
    ),
    ("batch", "token", "number"), {"first": "first product", "hidden": "hidden numbers"},
)  # fmt: skip

# A layer


def layer_cases():
    def case(seed, b, n, d, mask):
        one, two, three, four = (drawn(d, d, seed=seed + i) / math.sqrt(d) for i in range(4))

        def attend(query, key, value, mask=None):
            s = masked(products(query @ one, key @ two) / math.sqrt(d), mask, -INF)
            return s.softmax(-1) @ value @ three

        attend.__qualname__ = "attend"  # what an exception calls it

        def feed(x):
            return (x @ four).relu() @ one

        def norm(seed):
            gain, bias = 1 + 0.3 * drawn(d, seed=seed), 0.3 * drawn(d, seed=seed + 1)
            return lambda x: torch.nn.functional.layer_norm(x, (d,), gain, bias)

        return {"x": drawn(b, n, d, seed=seed + 7), "mask": mask, "attend": attend,
                "norm1": norm(seed + 8), "feed": feed, "norm2": norm(seed + 10)}  # fmt: skip

    padding = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, :]
    return [Case("no mask", case(50, 2, 5, 8, None)),
            Case("a padding mask", case(70, 2, 5, 6, padding))]  # fmt: skip


ENCODER_LAYER = Subject(
    "encoder_layer", "encoder_layer(x, mask, attend, norm1, feed, norm2)",
    ("x", "mask", "attend", "norm1", "feed", "norm2"),
    {
        "attended": lambda x, mask, attend: attend(x, x, x, mask),
        "first": lambda x, attended, norm1: norm1(x + attended),
        "fed": lambda first, feed: feed(first),
        "output": lambda first, fed, norm2: norm2(first + fed),
    },
    layer_cases,
    (
        m("norm before", "You normed before each sublayer: pre-norm. The paper norms the sum: "
          "norm(x + sublayer(x)).",
          attended=lambda x, mask, attend, norm1: attend(norm1(x), norm1(x), norm1(x), mask),
          first=lambda x, attended: x + attended,
          fed=lambda first, feed, norm2: feed(norm2(first)),
          output=lambda first, fed: first + fed),
        m("norm of the sublayer alone", "You normed the sublayer's output and then added. Norm the "
          "sum.", first=lambda x, attended, norm1: x + norm1(attended),
          output=lambda first, fed, norm2: first + norm2(fed)),
        m("residual left out, both", "x is added to what each sublayer gives. Without it the token "
          "itself is lost.", first=lambda attended, norm1: norm1(attended),
          output=lambda fed, norm2: norm2(fed)),
        m("first residual left out", "x is added to what attention gives.",
          first=lambda attended, norm1: norm1(attended)),
        m("second residual left out", "What entered the feed-forward is added to its output.",
          output=lambda fed, norm2: norm2(fed)),
        m("second residual from x", "The second sum adds what entered the feed-forward, not the "
          "layer's input.", output=lambda x, fed, norm2: norm2(x + fed)),
        m("feed-forward reads x", "The feed-forward reads what left the first norm.",
          fed=lambda x, feed: feed(x)),
        m("feed-forward reads attention", "The feed-forward reads what left the first norm.",
          fed=lambda attended, feed: feed(attended)),
        m("mask not passed", "The mask does not reach the attention.",
          attended=lambda x, attend: attend(x, x, x, None)),
        m("norms swapped", "norm1 follows the attention, norm2 the feed-forward.",
          first=lambda x, attended, norm2: norm2(x + attended),
          output=lambda first, fed, norm1: norm1(first + fed)),
        m("one norm twice", "Each sublayer has a norm of its own: the second is norm2.",
          output=lambda first, fed, norm1: norm1(first + fed)),
        m("last norm missing", "The second sum is normed, too.",
          output=lambda first, fed: first + fed),
        m("first norm missing", "The first sum is normed, too.",
          first=lambda x, attended: x + attended),
        m("feed-forward missing", "The feed-forward is missing.",
          output=lambda first: first),
    ),
    ("batch", "token", "number"),
    {"attended": "attention outputs", "first": "outputs of the first norm",
     "fed": "feed-forward outputs", "output": "output"},
)  # fmt: skip

PRE_NORM_LAYER = Subject(
    "pre_norm_layer", "encoder_layer(x, mask, attend, norm1, feed, norm2), norms before",
    ENCODER_LAYER.takes,
    {
        "normed": lambda x, norm1: norm1(x),
        "attended": lambda normed, mask, attend: attend(normed, normed, normed, mask),
        "first": lambda x, attended: x + attended,
        "second": lambda first, norm2: norm2(first),
        "fed": lambda second, feed: feed(second),
        "output": lambda first, fed: first + fed,
    },
    layer_cases,
    (
        m("norm after", "You normed the sum, as the paper does. This model norms what enters each "
          "sublayer: x + sublayer(norm(x)).",
          normed=lambda x: x, first=lambda x, attended, norm1: norm1(x + attended),
          second=lambda first: first, output=lambda first, fed, norm2: norm2(first + fed)),
        m("residual from the normed", "The sum adds x itself, not its norm.",
          first=lambda normed, attended: normed + attended,
          output=lambda second, fed: second + fed),
        m("first residual from the normed", "The first sum adds x itself, not its norm.",
          first=lambda normed, attended: normed + attended),
        m("second residual from the normed", "The second sum adds what entered norm2.",
          output=lambda second, fed: second + fed),
        m("query alone normed", "Keys and values are normed, too.",
          attended=lambda x, normed, mask, attend: attend(normed, x, x, mask)),
        m("residual left out, both", "x is added to what each sublayer gives.",
          first=lambda attended: attended, output=lambda fed: fed),
        m("first residual left out", "x is added to what attention gives.",
          first=lambda attended: attended),
        m("second residual left out", "What entered norm2 is added to what the feed-forward gives.",
          output=lambda fed: fed),
        m("mask not passed", "The mask does not reach the attention.",
          attended=lambda normed, attend: attend(normed, normed, normed, None)),
        m("norms swapped", "norm1 precedes the attention, norm2 the feed-forward.",
          normed=lambda x, norm2: norm2(x), second=lambda first, norm1: norm1(first)),
        m("second norm missing", "norm2 precedes the feed-forward.", second=lambda first: first),
        m("first norm missing", "norm1 precedes the attention.", normed=lambda x: x),
        m("second residual from x", "The second sum adds what entered norm2, not the layer's "
          "input.", output=lambda x, fed: x + fed),
    ),
    ENCODER_LAYER.axes, ENCODER_LAYER.titles,
)  # fmt: skip

# Decoding


def greedily(row=lambda logits: logits[-1], pick=lambda x: int(x.argmax()), feed=True,
             stop=True, keep_eos=False, keep_bos=False, more=0, read=0):  # fmt: skip
    """`read`: the first of the tokens so far that the model is given."""

    def decode(logits, bos, eos, most):
        ids = [bos]
        written = []
        for _ in range(most + more):
            token = pick(row(logits(torch.tensor([ids[read:]]))[0]))
            if token == eos and stop:
                if keep_eos:
                    written.append(token)
                break
            written.append(token)
            if feed:
                ids.append(token)
        return [bos, *written] if keep_bos else written

    return decode


LONGEST_TEXT = 30  # that a model reads: who does not stop is not stopped by us


def greedy_cases():
    def model(seed, vocab, length):
        tables = drawn(LONGEST_TEXT, vocab, vocab, seed=seed)
        tables[:, :, 2] -= 9.0  # eos only where it is due
        tables[:, :, 3] -= 20.0  # the least probable, which ends no text

        def logits(ids):
            if isinstance(ids, np.ndarray):
                return logits(torch.as_tensor(ids)).numpy()
            if not isinstance(ids, Tensor) or ids.dim() != 2:
                raise TypeError("logits takes a tensor of ids, (batch, length)")
            n = ids.shape[1]
            # Rows before the last are others in a longer text: who reads the first is known by it.
            rows = [tables[i if i == n - 1 else (i + 7 * n) % LONGEST_TEXT, t].clone()
                    for i, t in enumerate(ids[0].tolist())]  # fmt: skip
            if len(rows) > length:
                rows[-1][2] = 50.0
            return torch.stack(rows)[None]

        return logits

    return [
        Case("a short text", {"logits": model(1, 11, 5), "bos": 1, "eos": 2, "most": 20}),
        Case("another", {"logits": model(2, 9, 3), "bos": 1, "eos": 2, "most": 20}),
        Case("a text that is too long", {"logits": model(3, 9, 12), "bos": 1, "eos": 2, "most": 6}),
    ]


GREEDY = Subject(
    "greedy", "greedy(logits, bos, eos, most)", ("logits", "bos", "eos", "most"),
    {"tokens": greedily()}, greedy_cases,
    (
        m("eos kept", "</s> ends the text and is no token of it.", tokens=greedily(keep_eos=True)),
        m("bos kept", "<s> starts the text and is no token of it: return what follows it.",
          tokens=greedily(keep_bos=True)),
        m("bos and eos kept", "<s> and </s> are no tokens of the text.",
          tokens=greedily(keep_bos=True, keep_eos=True)),
        m("eos ignored", "Stop at </s>.", tokens=greedily(stop=False)),
        m("first row", "The next token is in the last row of the logits. You read the first.",
          tokens=greedily(row=lambda x: x[0])),
        m("row before the last", "The next token is in the last row of the logits.",
          tokens=greedily(row=lambda x: x[max(len(x) - 2, 0)])),
        m("not fed back", "Each token is put behind the text before the next step.",
          tokens=greedily(feed=False)),
        m("nothing written", "You returned no tokens. Is the loop ever entered?",
          tokens=lambda: []),
        m("last token alone", "The model reads the whole text so far, not its last token alone.",
          tokens=greedily(read=-1)),
        m("least probable", "The largest logit wins: argmax.",
          tokens=greedily(pick=lambda x: int(x.argmin()))),
        m("one too many", "At most `most` tokens.", tokens=greedily(more=1)),
        m("one too few", "`most` tokens may be written.", tokens=greedily(more=-1)),
        m("last token lost", "The last token before </s> is lost.",
          tokens=lambda logits, bos, eos, most: greedily()(logits, bos, eos, most)[:-1]),
    ),
    ("token",), {"tokens": "tokens"}, listed=True,
)  # fmt: skip


def cached(update, attend=None):
    """Run a step over all tokens, one at a time: (output, cache) of each."""

    def run(q, k, v):
        cache, rows = None, []
        for t in range(q.shape[-2]):
            new = (x[:, :, t : t + 1] for x in (q, k, v))
            out, cache = step(next(new), next(new), next(new), cache)
            rows.append(out)
        return torch.cat(rows, -2)

    def step(q, k, v, cache=None):
        keys, values = update(k, v, cache)
        out = (attend or _attend)(q, keys, values)
        return out, (keys, values)

    return run


def _attend(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v


def _append(k, v, cache):
    return (k, v) if cache is None else (torch.cat([cache[0], k], -2), torch.cat([cache[1], v], -2))


def _one_row(q, k, v):
    """The causal mask of one query and all keys, wrongly: its first row."""
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -INF).softmax(-1) @ v


CACHED_STEP = Subject(
    "cached_step", "cached_step(q, k, v, cache) → output, cache", ("q", "k", "v"),
    {"output": cached(_append)},
    lambda: [Case("six tokens", {x: drawn(2, 3, 6, 4, seed=i) for i, x in enumerate("qkv")}),
             Case("other sizes", {x: drawn(1, 2, 4, 6, seed=9 + i) for i, x in enumerate("qkv")})],
    (
        m("nothing kept", "Only the newest key is seen. Put it behind those in the cache.",
          output=cached(lambda k, v, cache: (k, v))),
        m("mask of one row", "The causal mask of 1 query and n keys is the last row of the mask of "
          "n tokens. Yours is its first row: it sees the first key alone. With a cache no mask is "
          "needed.", output=cached(_append, _one_row)),
        of_attention("√d left out",
          output=cached(_append, lambda q, k, v: (q @ k.transpose(-2, -1)).softmax(-1) @ v)),
        m("the newest left out", "The newest token may attend to itself: put its key into the "
          "cache before you attend.",
          output=cached(_append, lambda q, k, v: _attend(q, k[..., :-1, :], v[..., :-1, :])
                        if k.shape[-2] > 1 else _attend(q, k, v))),
        m("first kept", "The cache must grow. Yours keeps the first two tokens.",
          output=cached(lambda k, v, cache: (k, v) if cache is None
                        else _append(k, v, tuple(x[..., :1, :] for x in cache)))),
        m("two last ones", "The cache must grow. Yours keeps the token before alone.",
          output=cached(lambda k, v, cache: (k, v) if cache is None
                        else _append(k, v, tuple(x[..., -1:, :] for x in cache)))),
        m("values in the other order", "Keys and values must be kept in the same order.",
          output=cached(lambda k, v, cache: (k, v) if cache is None else (
              torch.cat([cache[0], k], -2), torch.cat([v, cache[1]], -2)))),
    ),
    ("batch", "head", "token", "number"), {"output": "output"},
)  # fmt: skip

PARTS = {
    part.name: part
    for part in (SCORES, SOFTMAX, ATTENTION, SPLIT, MERGE, MULTI, CAUSAL, PADDING, POSITIONS,
                 ROTARY, LAYER_NORM, FEED_FORWARD, ENCODER_LAYER, PRE_NORM_LAYER,
                 GREEDY, CACHED_STEP)
}  # fmt: skip
