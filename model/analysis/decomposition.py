"""Direct logit attribution: the logit of the next token as a sum over everything that wrote to the
residual stream.

A logit is a direction, its row of the generator's matrix, times the last vector of the residual
stream, and that vector is a sum: the embedding, and what each sublayer added. Norms stand between,
and a norm is all but linear: it takes the mean away (linear), divides by a scale that depends on
the vector, and then weights and shifts (linear). So each scale is frozen at its value in this run,
and then the terms add up exactly (direct logit attribution, Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"). In a pre-norm model that is the final norm alone; in the
paper's own, post-norm, every term passes all norms behind the sublayer that wrote it.

Frozen scales are the limit of such a sum: switching a head off would also change the scales, and
the input of later layers. For a head's total effect, use a sweep (probing/sweeps.py).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.analysis.residual import row_shares
from headlight.model.arguments import kind_of
from headlight.model.by_value import ByValue
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.changes import CannotChange, Patched, Skipped
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    final_norm_of,
    layers_of,
    parts_of,
    predicted_side,
    sublayers_of,
)
from headlight.model.probing.sweeps import check_token
from headlight.model.probing.trace import CannotRead, ids_of, read_of
from headlight.model.sites import ProbedModel

TOKEN, POSITION, HEAD, BIASES = "token", "position", "head", "biases"
SUBLAYERS = {"feed_forward": "feed-forward"}  # those other than attention
LARGEST_DIFFERENCE = 1e-3  # allowed difference from the logit, as a share of the largest term


@dataclass(frozen=True)
class Term:
    """One term: something that wrote to the residual stream.

    what         "token" and "position", the two parts of the embedding; "head", "feed-forward";
                 or "biases": those of output projections, norms and generator
                 together
    kind         of a head's attention, else empty
    layer, head  from 0; None where that does not apply
    """

    what: str
    kind: str = ""
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Decomposition(ByValue):
    """The logit of a token, or the difference of two, and what each term adds to it.

    logit       before the softmax, and before the log-softmax of a model that ends in one
    terms       in the order of the pass, the biases last
    values      (term,) float64, read-only
    difference  of the sum of the terms from the logit: rounding
    """

    logit: float
    terms: tuple[Term, ...]
    values: np.ndarray
    difference: float

    def largest(self, count: int | None = None) -> list[tuple[Term, float]]:
        """The largest terms, positive or negative, first."""
        order = np.argsort(-np.abs(self.values), kind="stable")[:count]
        return [(self.terms[i], float(self.values[i])) for i in order]


@dataclass(frozen=True, repr=False, eq=False)
class Carried(ByValue):
    """What a head adds to a logit, key by key: its output is a sum over the keys, weight times
    value, so its term is a sum over them, too.

    weights  (key,), of the row that the logit is read at; of a class the mean over its rows
    values   (key,) float64, read-only: they add up to the head's term
    """

    weights: np.ndarray
    values: np.ndarray


def decomposition(
    model: ProbedModel,
    run: Run,
    row: int,
    token: int,
    against: int | None = None,
    given: PatchInputs = PatchInputs(),
) -> Decomposition:
    """Decompose the logit of `token` (or a class) in a row of the logits, from 0; with `against`,
    that logit minus the other. `model` must be the caller's own view. Raises CannotRead, also if
    the model's logits are not such a sum, and CannotChange."""
    return _decomposed(model, run, row, token, against, given)[0]


def carried(
    model: ProbedModel,
    run: Run,
    row: int,
    token: int,
    term: Term,
    against: int | None = None,
    given: PatchInputs = PatchInputs(),
) -> Carried:
    """A head's term of that sum, key by key. Raises CannotRead, also for a head whose output
    a change replaces, so that it is none of its values, and CannotChange."""
    kind_of("term", term, Term, "one Term, a head of a decomposition")
    found, directions = _decomposed(model, run, row, token, against, given)
    if term.what != HEAD or term not in found.terms:
        raise CannotRead("This is not a head that adds to this logit.")
    assert term.head is not None  # else it is none
    site = next(s for s in model.sites() if (s.kind, s.layer) == (term.kind, term.layer))
    direction = directions[site.name][:, term.head].numpy()
    steps = head_steps(model, run, site, term.head, given=given)
    values = np.einsum("qk,kd,qd->k", steps.weights, steps.v.astype(float), direction)
    shares = row_shares(model, ids_of(model, read_of(model, run))[-1][0], row).numpy()
    whole = float(found.values[found.terms.index(term)])
    most = max(1.0, np.abs(values).sum())
    if not abs(values.sum() - whole) <= LARGEST_DIFFERENCE * most:
        raise CannotRead("A change replaces what this head gives, so its keys do not add up to it.")
    values.flags.writeable = False
    return Carried((shares @ steps.weights).astype("float32"), values)


@torch.no_grad()
def _decomposed(
    model: ProbedModel, run: Run, row: int, token: int, against: int | None, given: PatchInputs
) -> tuple[Decomposition, dict[str, Tensor]]:
    """The decomposition; and by attention, the name of its site, how much each number of a head's
    output adds, (query, heads, d_head)."""
    side, texts = predicted_side(model), read_of(model, run)
    _check_whole(model, run)
    ids, layers = ids_of(model, texts), layers_of(model, side)
    if not isinstance(model.generator, nn.Linear):
        raise CannotRead(
            "This model's logits are not a linear function of its final vectors, "
            "so they cannot be split into contributions."
        )
    embedding, final_norm = embedding_of(model, side), final_norm_of(model, side)
    # By (layer, its sublayer); the embedding's parts and the last norm by name.
    norms = {
        (i, name): norm for i, layer in enumerate(layers) for name, _, norm in sublayers_of(layer)
    }
    sublayers = {
        (i, name): sub for i, layer in enumerate(layers) for name, sub, _ in sublayers_of(layer)
    }
    sites = {site.name: site for site in model.sites()}
    site_of = {(i, name): sites.get(f"{side.layers[i]}.{name}") for i, name in sublayers}
    projections = {at: attention_at(model, site).output for at, site in site_of.items() if site}
    with (
        applied(model, run.changes, given),
        inputs_of({("norm", at): norm for at, norm in norms.items()}) as norm_inputs,
        outputs_of(norms | {"final": final_norm}) as normed,
        inputs_of(projections | {"final": final_norm, "generator": model.generator}) as inputs,
        outputs_of(sublayers | {TOKEN: embedding.token, POSITION: embedding.position}) as outputs,
    ):
        logits = model(*ids, *run.masks.build(model, *ids))[0]

    pooled = side.predicts == "class"
    check_token(logits.shape, 0 if pooled else row, token, against)
    direction, bias = _direction(model.generator, token, against)
    logit = float(inputs["generator"][0][0, 0 if pooled else row].double() @ direction + bias)
    u = row_shares(model, ids[-1][0], row)[:, None] * direction
    u, bias = _through(final_norm, inputs["final"][0][0], normed["final"][0], u, bias)
    values: dict[Term, float] = {}
    directions: dict[str, Tensor] = {}
    for i in reversed(range(len(layers))):
        for name, _, norm in reversed(sublayers_of(layers[i])):
            at, site = (i, name), site_of[i, name]
            carried = norm, norm_inputs["norm", at][0][0], normed[at][0]
            if not layers[i].norm_first:
                u, bias = _through(*carried, u, bias)
            if site is None:
                values[Term(SUBLAYERS[name], layer=i)] = _product(outputs[at][0], u)
            elif not _skipped(run, model, site.name):
                projection, heads = projections[at], inputs[at][0][0].double()
                direction = (u @ projection.weight.double()).unflatten(-1, (site.n_heads, -1))
                by_head = (heads.unflatten(-1, (site.n_heads, -1)) * direction).sum(dim=(0, 2))
                directions[site.name] = direction
                if projection.bias is not None:
                    bias = bias + (u @ projection.bias.double()).sum()
                values |= {
                    Term(HEAD, site.kind, site.layer, head): float(by_head[head])
                    for head in reversed(range(site.n_heads))
                }
    values[Term(POSITION)] = _product(outputs[POSITION].flatten(0, -2), u)
    values[Term(TOKEN)] = _product(outputs[TOKEN][0], u)
    values = dict(reversed(values.items())) | {Term(BIASES): float(bias)}
    array = np.array(list(values.values()))
    array.flags.writeable = False
    difference = abs(float(array.sum()) - logit)
    if not np.isfinite(difference):
        raise CannotRead("A contribution to this logit is NaN or infinite, so there is no sum.")
    if not difference <= LARGEST_DIFFERENCE * max(1.0, np.abs(array).max()):
        raise CannotRead(
            "Embedding, heads and feed-forwards do not add up to this model's logits: it has "
            "other parts too."
        )
    return Decomposition(logit, tuple(values), array, difference), directions


def _check_whole(model: ProbedModel, run: Run) -> None:
    """Raises CannotChange if the predicted side's residual stream was patched: it is then not a sum
    of what this run wrote to it."""
    side = predicted_side(model).name
    parts = parts_of(model.sites(), model.sides())
    residual = [part for part in parts if part.what == "residual" and part.side == side]
    for change in run.changes:
        if isinstance(change, Patched) and any(map(change.scope.holds, residual)):
            raise CannotChange(
                f"“{change}”: a patched residual stream cannot be split into contributions."
            )


def _direction(generator: nn.Linear, token: int, against: int | None) -> tuple[Tensor, Tensor]:
    """The row of the generator, (d_model,), and its bias for a logit."""
    weight = generator.weight.double()
    bias = weight.new_zeros(len(weight)) if generator.bias is None else generator.bias.double()
    if against is None:
        return weight[token], bias[token]
    return weight[token] - weight[against], bias[token] - bias[against]


def _through(
    norm: nn.Module, x: Tensor, y: Tensor, u: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Moves a direction from after a norm to before it, (position, d_model), and adds the norm's
    shift to `bias`. x is the norm's input and y its output; their scale is frozen."""
    if isinstance(norm, nn.Identity):
        return u, bias
    frozen = frozen_norm(norm, x, y)
    before = u * frozen.factor
    if frozen.centred:
        before = before - before.mean(dim=-1, keepdim=True)
    return before, bias + (u * frozen.shift).sum()


@dataclass(frozen=True)
class FrozenNorm:
    """A norm as it was in a pass, in float64: it takes the mean away if it is `centred`, multiplies
    by `factor`, (position, width), and adds `shift`, (width,)."""

    factor: Tensor
    shift: Tensor
    centred: bool


def frozen_norm(norm: nn.Module, x: Tensor, y: Tensor) -> FrozenNorm:
    """The norm between its input x and its output y, (position, width). Whatever it divides by, its
    output is proportional to x minus its mean, or to x itself for RMSNorm."""
    x, y = x.double(), y.double()
    parameters = dict(norm.named_parameters())
    weight = parameters["weight"].double()
    shift = parameters["bias"].double() if "bias" in parameters else torch.zeros_like(weight)

    def assumed(centred: bool) -> tuple[float, FrozenNorm]:
        scaled = weight * (x - x.mean(dim=-1, keepdim=True) if centred else x)
        scale = ((y - shift) * scaled).sum(-1, keepdim=True) / (scaled**2).sum(-1, keepdim=True)
        scale = scale.nan_to_num()
        error = float((y - shift - scale * scaled).abs().max())
        return error, FrozenNorm(scale * weight, shift, centred)

    return min(map(assumed, (True, False)), key=lambda one: one[0])[1]


def _product(x: Tensor, u: Tensor) -> float:
    return float((x.double() * u).sum())


def _skipped(run: Run, model: ProbedModel, name: str) -> bool:
    """Whether the attention of this name adds nothing."""
    part = next(p for p in parts_of(model.sites(), model.sides()) if p.name == name)
    return any(isinstance(c, Skipped) and c.scope.holds(part) for c in run.changes)
