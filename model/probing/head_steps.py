"""One head step by step: everything between the input of an attention and its layer's output.

The steps are those of the paper: input, projections to q, k and v, scores, scaling, mask, softmax,
values, concatenation, output projection, residual and norm, feed-forward. Other models have more of
them: norms of queries and keys, rotation, key heads that queries share, a gate. `head_steps` runs
the model once and records them all.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    kinds_of,
    parts_at,
    sides_of,
    steps_within,
    sublayers_of,
)
from headlight.model.probing.trace import ids_of, read_of, read_only
from headlight.model.sites import ProbedModel, Site
from headlight.model.transformer import MultiHeadAttention


@dataclass(frozen=True)
class HeadSteps:
    """The intermediate results of one head and its layer. Arrays are read-only float32.

    key_head      the head of keys and values that this head reads, which others may share
    token, table  (query, d_model): words and positions, where the layer reads the embeddings; no
                  table where none is added
    residual      (query, d_model): the residual stream at the queries
    query_input   (query, d_model): the same after the norm of a pre-norm layer
    key_input     (key, d_model): what keys and values are projected from
    q             (query, d_head); k, v: (key, d_head)
    q_projected, k_projected   the same before their norm, or None where they have none
    q_rotated, k_rotated       the same turned by rotary positions, or None where they are not
    scores        (query, key): q·kᵀ, of turned ones where they are; scaled: ÷ √d_head; mask: True =
                  may attend; weights
    head_output   (query, d_head): weights · v
    concatenated  (query, heads · d_head); one_by_one: the same, each head computed by itself,
                  or None where no single matrix holds all heads
    matrix        (heads · d_head, d_model): the query projection of all heads; None likewise
    gate          (query, d_ff): what gates the feed-forward's hidden numbers, after its activation;
                  None where nothing does
    output        (query, d_model): the output projection
    added         (query, d_model): residual + output; after: what follows, normed in post-norm
                  layers
    forward_input (query, d_model); hidden: (query, d_ff) after the ReLU, or what stands in its
                  place; forward: the feed-forward's output; layer_output: the layer's output
    """

    site: Site
    head: int
    key_head: int
    pre_norm: bool
    token: np.ndarray | None
    table: np.ndarray | None
    residual: np.ndarray
    query_input: np.ndarray
    key_input: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scores: np.ndarray
    scaled: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    head_output: np.ndarray
    concatenated: np.ndarray
    one_by_one: np.ndarray | None
    matrix: np.ndarray | None
    output: np.ndarray
    added: np.ndarray
    after: np.ndarray
    forward_input: np.ndarray
    hidden: np.ndarray
    forward: np.ndarray
    layer_output: np.ndarray
    q_projected: np.ndarray | None = None
    k_projected: np.ndarray | None = None
    q_rotated: np.ndarray | None = None
    k_rotated: np.ndarray | None = None
    gate: np.ndarray | None = None

    @property
    def compared(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and keys as the scores compare them: turned, where rotary positions turn them."""
        if self.q_rotated is None or self.k_rotated is None:
            return self.q, self.k
        return self.q_rotated, self.k_rotated

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))


@torch.no_grad()
def head_steps(
    model: ProbedModel,
    run: Run,
    site: Site,
    head: int,
    given: PatchInputs = PatchInputs(),
) -> HeadSteps:
    """One pass, whose changes take from `given`. `model` must be the caller's own view. Raises
    CannotRead before any tensor is made, and CannotChange."""
    ids = ids_of(model, read_of(model, run))
    block, side = parts_at(model, site), sides_of(model)[site.query_side]
    attention, embedding = block.attention, embedding_of(model, side)
    read = {
        "attention": attention,
        "softmax": attention.softmax,
        "output": attention.output,
        "norm": block.norm,
        "next_norm": block.next_norm,
        "feed_forward": block.feed_forward,
        "linear2": block.feed_forward.linear2,
    }
    recorded = {
        "query": attention.query,
        "key": attention.key,
        "value": attention.value,
        "weights": attention.softmax,
        "output": attention.output,
        "norm": block.norm,
        "forward": block.feed_forward,
        "layer": block.layer,
        "token": embedding.token,
        "table": embedding.position,
    }
    recorded |= steps_within(attention.scores) | steps_within(block.feed_forward)
    for name, projection in (("q", attention.query), ("k", attention.key)):
        recorded |= {f"{name}_{step}": at for step, at in steps_within(projection).items()}
    with (
        applied(model, run.changes, given),
        inputs_of(read) as inputs,
        outputs_of(recorded) as outputs,
    ):
        model(*ids, *run.masks.build(model, *ids))

    query_input, key_input = inputs["attention"][:2]
    scaled, mask = inputs["softmax"][0], (*inputs["softmax"], None)[1]
    # A pre-norm layer's norm reads the stream before attention does, a post-norm one's after.
    pre_norm = list(inputs).index("norm") < list(inputs).index("attention")
    residual = inputs["norm"][0] if pre_norm else query_input
    added = inputs["next_norm" if pre_norm else "norm"][0]
    key_head = head * attention.n_key_heads // attention.n_heads
    q = attention.split(outputs["query"])[0, head]
    k, v = (attention.split(outputs[name])[0, key_head] for name in ("key", "value"))
    inner: dict[str, Tensor] = {}  # steps that only some parts have
    for name, which in (("q", head), ("k", key_head)):
        projected, rotated = f"{name}_projected", f"{name}_rotated"
        if projected in outputs:
            inner[projected] = attention.split(outputs[projected])[0, which]
        if rotated in outputs:
            inner[rotated] = outputs[rotated][0, which]
    if "gate" in outputs:
        inner["gate"] = outputs["gate"][0]
    # The first sublayer of layer 1 reads the embeddings.
    reads_embeddings = site.layer == 0 and block.norm is sublayers_of(block.layer)[0][2]
    one_by_one = _head_by_head(attention, query_input, key_input, mask)
    matrix = linear_of(attention.query)
    has_table = reads_embeddings and side.table
    optional = (
        outputs["token"][0] if reads_embeddings else None,
        outputs["table"][: residual.shape[1]] if has_table else None,
        None if one_by_one is None else one_by_one[0],
        matrix.weight if matrix else None,
    )
    arrays = {
        "residual": residual[0],
        "query_input": query_input[0],
        "key_input": key_input[0],
        "q": q,
        "k": k,
        "v": v,
        **inner,
        "scores": inner.get("q_rotated", q) @ inner.get("k_rotated", k).T,
        "scaled": scaled[0, head],
        "weights": outputs["weights"][0, head],
        "head_output": attention.split(inputs["output"][0])[0, head],
        "concatenated": inputs["output"][0][0],
        "output": outputs["output"][0],
        "added": added[0],
        "after": added[0] if pre_norm else outputs["norm"][0],
        "forward_input": inputs["feed_forward"][0][0],
        "hidden": inputs["linear2"][0][0],
        "forward": outputs["forward"][0],
        "layer_output": outputs["layer"][0],
    }
    shape = arrays["scores"].shape
    allowed = np.ones(shape, bool) if mask is None else _of_head(mask, head, shape)
    captured = {name: read_only(value.clone()) for name, value in arrays.items()}
    token, table, alone, weights = (
        None if value is None else read_only(value.clone()) for value in optional
    )
    return HeadSteps(
        site, head, key_head, pre_norm, token, table,
        one_by_one=alone, matrix=weights, mask=allowed, **captured,
    )  # fmt: skip


@torch.no_grad()
def compared(
    model: ProbedModel, run: Run, kind: str, given: PatchInputs = PatchInputs()
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of all heads of a kind as the scores compare them, (layers, heads, query,
    d_head) and (layers, heads, key, d_head): turned, where rotary positions turn them, and a key
    that heads share once for each. `model` must be the caller's own view. Raises as head_steps."""
    ids = ids_of(model, read_of(model, run))
    attentions = [attention_at(model, site) for site in kinds_of(model.sites())[kind]]
    turning = {
        (i, step): rotation
        for i, attention in enumerate(attentions)
        for step, rotation in steps_within(attention.scores).items()
    }
    scores = {i: attention.scores for i, attention in enumerate(attentions)}
    with (
        applied(model, run.changes, given),
        inputs_of(scores) as inputs,
        outputs_of(turning) as turned,
    ):
        model(*ids, *run.masks.build(model, *ids))
    queries, keys = [], []
    for i, attention in enumerate(attentions):
        q, k = (
            (turned[i, step] if (i, step) in turned else inputs[i][j])[0]
            for j, step in enumerate(("q_rotated", "k_rotated"))
        )
        queries.append(q)
        keys.append(k.repeat_interleave(attention.n_heads // attention.n_key_heads, dim=0))
    return read_only(torch.stack(queries)), read_only(torch.stack(keys))


def _of_head(mask: Tensor, head: int, shape) -> np.ndarray:
    mask_of_head = mask[0, head if mask.shape[1] > 1 else 0]
    return mask_of_head.expand(shape).cpu().numpy().copy()


def _head_by_head(
    attention: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
) -> Tensor | None:
    """Every head by itself, with its rows of the projections, then put side by side:
    (batch, query, heads · d_head)."""
    projections = [linear_of(p) for p in (attention.query, attention.key, attention.value)]
    linears = [linear for linear in projections if linear is not None]
    if len(linears) < len(projections):
        return None
    scores, values = [], []
    width = linears[0].out_features // attention.n_heads
    for head in range(attention.n_heads):
        key_head = head * attention.n_key_heads // attention.n_heads
        q, k, v = (
            _rows(projection, linear, slice(which * width, (which + 1) * width), x)
            for x, which, projection, linear in zip(
                (query, key, key),
                (head, key_head, key_head),
                (attention.query, attention.key, attention.value),
                linears,
                strict=True,
            )
        )
        scores.append(attention.scores(q[:, None], k[:, None]))
        values.append(v)
    weights = attention.softmax(torch.cat(scores, dim=1), mask)
    return torch.cat([weights[:, head] @ v for head, v in enumerate(values)], dim=-1)


def linear_of(projection: nn.Module) -> nn.Linear | None:
    """The matrix of all heads of a projection; None where each head has its own."""
    projection = steps_within(projection).get("projected", projection)
    return projection if isinstance(projection, nn.Linear) else None


def _rows(projection: nn.Module, linear: nn.Linear, rows: slice, x: Tensor) -> Tensor:
    """What some rows of a projection's matrix make of x, (batch, length, d_head)."""
    bias = None if linear.bias is None else linear.bias[rows]
    x = nn.functional.linear(x, linear.weight[rows], bias)
    norm = getattr(projection, "norm", None)
    return norm(x) if norm else x
