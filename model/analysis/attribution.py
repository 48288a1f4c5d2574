"""Which source words a predicted token depends on: by attention, by gradient, and by removal.

Attention is easily mistaken for an explanation. Compare its ranking of the words with those of the
other methods (Jain & Wallace 2019; Wiegreffe & Pinter 2019):

    attention  the mean weight over the heads of all layers
    head       the weight in one head
    rollout    attention followed down through all layers, half of each layer's input from the
               residual stream (Abnar & Zuidema 2020); through cross-attention into the encoder
    norms      length of the vector that a word's tokens send: weights times values through the
               output projection, heads together, the mean over layers (Kobayashi et al. 2020)
    gradient   gradient of the score × token embedding, summed over its numbers
    removal    what the score loses when the token is hidden from every query

The score is the log-probability of the predicted token, or the difference of two logits. Numbers of
a word's tokens are summed. The source is the encoder's text; for a model of one text it is that
text, for a decoder as far as it has been read.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headlight.model.analysis.alignment import ordinary_words
from headlight.model.analysis.residual import row_shares
from headlight.model.analysis.statistics import spearman
from headlight.model.arguments import kind_of, whole
from headlight.model.by_value import ByValue
from headlight.model.pause import pause
from headlight.model.probing import sweeps
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.interventions import replace_output
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    device_of,
    embedding_of,
    kinds_of,
    layers_of,
    predicted_side,
    sides_of,
)
from headlight.model.probing.sweeps import Score, check_token
from headlight.model.probing.trace import Trace, ids_of, read_of, trace
from headlight.model.sites import ProbedModel, Site
from headlight.model.tokenizer import Encoding

BY_ATTENTION, HEAD, ROLLOUT, NORMS = "attention", "head", "rollout", "norms"
GRADIENT, REMOVAL = "gradient", "removal"
METHODS = (BY_ATTENTION, HEAD, ROLLOUT, NORMS, GRADIENT, REMOVAL)
FEWEST_WORDS = 6
TOO_FEW = "Fewer than six words: too few to rank."
ALIKE = 0.8  # rank correlations from here on count as similar rankings
SURE = 1.96  # standard errors; by chance, one of a rank correlation is 1 / √(n - 1)


@dataclass(frozen=True, repr=False, eq=False)
class Attribution(ByValue):
    """A number for each source word by each method, (word,), read-only, without special tokens.
    "gradient" and "removal" have a sign: below zero a word speaks against the token."""

    words: tuple[str, ...]
    values: dict[str, np.ndarray]

    @property
    def too_few(self) -> bool:
        return len(self.words) < FEWEST_WORDS

    def order(self, method: str) -> list[int]:
        """Words by importance, positive or negative."""
        return np.argsort(-np.abs(self.values[method]), kind="stable").tolist()

    def correlations(self) -> dict[tuple[str, str], float]:
        """Spearman's ρ between every two methods; empty for too few words, NaN if a method ranks
        all alike."""
        if self.too_few:
            return {}
        sizes = {name: np.abs(values) for name, values in self.values.items()}
        return {(one, two): spearman(sizes[one], sizes[two]) for one in sizes for two in sizes}

    def in_words(self, method: str = BY_ATTENTION, truth: str = REMOVAL) -> str:
        """A sentence on how far a method agrees with removal here."""
        if self.too_few:
            return TOO_FEW
        rho, n = self.correlations()[method, truth], len(self.words)
        chance = SURE / (n - 1) ** 0.5
        if not rho > chance:  # NaN too
            agree = "do not agree"
        elif rho < ALIKE:
            agree = "partly agree"
        else:
            agree = "agree"
        first, true_first = (self.words[self.order(name)[0]] for name in (method, truth))
        both = (
            f"Both put “{first}” first."
            if first == true_first
            else f"“{first}” comes first by {method}, “{true_first}” by {truth}."
        )
        return (
            f"For this token, {method} and {truth} {agree} on the order of the {n} words (ρ = "
            f"{rho:.2f}; up to {chance:.2f} can be chance). {both}"
        )


def source_kind(model: ProbedModel) -> str:
    """The kind of attention from the predicted side to the source."""
    side = predicted_side(model).name
    from_it = [site for site in model.sites() if site.query_side == side]
    return next((s.kind for s in from_it if s.key_side != side), from_it[0].kind)


def attribution(
    model: ProbedModel,
    run: Run,
    row: int,
    token: int,
    head: tuple[int, int] | None = None,
    against: int | None = None,
    given: PatchInputs = PatchInputs(),
) -> Attribution:
    """Attribution of `token` (or a class) in a row of the logits, from 0; `head`: (layer, head) in
    the arrays of `source_kind`. `model` must be the caller's own view. Raises CannotRead and
    CannotChange."""
    score = Score(row, token, against)
    traced = trace(model, run, given)
    check_token(traced.logits.shape, row, token, against)
    kind = source_kind(model)
    query, key = traced.sides_of(kind)
    ids = torch.tensor(traced.texts[query.name].ids, device=device_of(model))
    shares = row_shares(model, ids, row).cpu().numpy()
    by_head = np.einsum("q,lhqk->lhk", shares, traced.attention[kind].astype(np.float64))
    values = {BY_ATTENTION: by_head.mean(axis=(0, 1))}
    if head is not None:
        kind_of("head", head, tuple, "a pair (layer, head)")
        for name, at, count in zip(("the layer", "the head"), head, by_head.shape, strict=False):
            whole(name, at, 0, count - 1)
        values[HEAD] = by_head[head]
    values |= {
        ROLLOUT: shares @ rollout(traced)[query.name][key.name],
        NORMS: shares @ value_norms(model, traced, kind),
        GRADIENT: gradient_times_input(model, run, score, given)[key.name],
        REMOVAL: removal(model, run, score, key.name, given),
    }
    text = traced.texts[key.name]
    if query == key and query.predicts == "next token":
        text = _beginning(text, row + 1)
    spans = ordinary_words(text)
    merged = {
        name: np.array([of_tokens[start:stop].sum() for (start, stop), _ in spans])
        for name, of_tokens in values.items()
    }
    for array in merged.values():
        array.flags.writeable = False
    return Attribution(tuple(word for _, word in spans), merged)


def rollout(traced: Trace) -> dict[str, dict[str, np.ndarray]]:
    """Side → side → (position, position): how much of the last layer's output at each position
    comes from each input token (Abnar & Zuidema 2020). Over all sides, rows sum to 1."""
    lengths = {name: len(text.ids) for name, text in traced.texts.items()}
    ends = dict(zip(lengths, np.cumsum(list(lengths.values())), strict=True))
    columns = {name: slice(end - lengths[name], end) for name, end in ends.items()}
    tokens = np.eye(sum(lengths.values()))
    mixed = {name: tokens[columns[name]] for name in lengths}
    for site, weights in _in_order_of_the_pass(traced):
        mean = weights.astype(np.float64).mean(axis=0)
        # Each row sums to 1, or 0 if it may attend to nothing; the residual stream adds 1.
        mixed[site.query_side] = (mixed[site.query_side] + mean @ mixed[site.key_side]) / (
            1 + mean.sum(axis=-1, keepdims=True)
        )
    return {
        side: {name: rows[:, columns[name]] for name in lengths} for side, rows in mixed.items()
    }


def _in_order_of_the_pass(traced: Trace) -> list[tuple[Site, np.ndarray]]:
    """Sites and their weights, (heads, query, key)."""
    places = {
        name: place
        for place, name in enumerate(name for side in traced.sides.values() for name in side.layers)
    }
    sites = [
        (places[site.name.rpartition(".")[0]], site, traced.attention[kind][i])
        for kind, of_kind in kinds_of(traced.sites).items()
        for i, site in enumerate(of_kind)
    ]
    # In a layer, self-attention comes before cross-attention, as in `sites`.
    return [(site, weights) for _, site, weights in sorted(sites, key=lambda one: one[0])]


def value_norms(model: ProbedModel, traced: Trace, kind: str) -> np.ndarray:
    """‖Σ over heads of weight × value through the output projection‖, the mean over layers: (query,
    key) (Kobayashi et al. 2020, section 3)."""
    layers = []
    for site, weights, value in zip(
        traced.kinds[kind], traced.attention[kind], traced.value[kind], strict=True
    ):
        projection = attention_at(model, site).output.weight.detach().double().cpu().numpy()
        by_head = projection.reshape(len(projection), site.n_heads, -1)  # (d_model, heads, d_head)
        value = value.repeat(site.n_heads // len(value), axis=0).astype(np.float64)
        sent = np.einsum("hkd,mhd->hkm", value, by_head)  # (heads, key, d_model)
        layers.append(
            [np.linalg.norm(np.einsum("hk,hkm->km", row, sent), axis=-1) for row in
             weights.astype(np.float64).swapaxes(0, 1)]
        )  # fmt: skip
    return np.mean(layers, axis=0)


@torch.enable_grad()
def gradient_times_input(
    model: ProbedModel, run: Run, score: Score, given: PatchInputs = PatchInputs()
) -> dict[str, np.ndarray]:
    """Side → (position,): the gradient of the score with respect to each token's embedding, without
    its position, times that embedding."""
    ids = ids_of(model, read_of(model, run))
    tokens: dict[str, Tensor] = {}

    def leaf(name: str) -> Callable[[Tensor], Tensor]:
        def of(output: Tensor) -> Tensor:
            tokens[name] = output.detach().requires_grad_()
            return tokens[name]

        return of

    def on_the_way_back(layer, inputs, output: Tensor) -> None:
        output.register_hook(lambda gradient: pause())

    with applied(model, run.changes, given), ExitStack() as hooks:
        for name, side in sides_of(model).items():
            hooks.enter_context(replace_output(embedding_of(model, side).token, leaf(name)))
            for layer in layers_of(model, side):
                hooks.enter_context(layer.register_forward_hook(on_the_way_back))
        logits = model(*ids, *run.masks.build(model, *ids))
    gradients = torch.autograd.grad(score.of(logits, None)[0], list(tokens.values()))
    return {
        name: (gradient * tokens[name])[0].double().sum(dim=-1).detach().cpu().numpy()
        for name, gradient in zip(tokens, gradients, strict=True)
    }


def removal(
    model: ProbedModel, run: Run, score: Score, side: str, given: PatchInputs = PatchInputs()
) -> np.ndarray:
    """(position,): the drop in score when each token of a side is hidden."""
    length = len(read_of(model, run)[side].ids)
    hidden = sweeps.tokens_hidden(model, {side: length})
    return -sweeps.sweep(model, run, hidden, score, given).effects


def _beginning(text: Encoding, length: int) -> Encoding:
    return text.take(range(min(length, len(text.ids))))
