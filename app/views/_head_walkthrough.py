"""The eleven steps of one head: formula, pictures, shapes, code, and one query followed by hand.
Nothing here draws.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from headlight.app.components.matrix import Matrix
from headlight.app.state.options import STEPS
from headlight.app.text import formats
from headlight.app.views._by_hand import (
    by_hand,
    multiplied_out,
    operand,
    product,
    sum_of_products,
    terms_of,
)
from headlight.app.views._source_lines import code_lines
from headlight.model.probing.head_steps import HeadSteps
from headlight.model.probing.sites import embedding_of, parts_at, sides_of, stack_of, sublayers_of
from headlight.model.rounding import percent
from headlight.model.sites import ProbedModel

# larger scores are shown minus their row's maximum: their exponentials would be unreadable
SHIFTED = 10
LARGEST = 4  # scores of a row that are listed
MOST_TERMS = 8  # of a row's sum; the smallest ones are put together


@dataclass(frozen=True)
class WalkthroughStep:
    """One step: formula (LaTeX), explanation, shapes, pictures, lines of Python, and the numbers of
    the chosen query (Markdown)."""

    formula: str
    explanation: str
    shapes: str
    pictures: Sequence[Matrix]
    code: str
    by_hand: str
    name: str = ""


class Walkthrough:
    """The steps of one head. query, key: their tokens; row, column: the chosen query and key;
    read: the tokens that the queries' rows read, where `query` are others."""

    def __init__(
        self,
        model: ProbedModel,
        steps: HeadSteps,
        query: Sequence[str],
        key: Sequence[str],
        row: int,
        column: int,
        read: Sequence[str] = (),
    ):
        self.read = read or query
        self.model, self.steps, self.query, self.key = model, steps, query, key
        self.row, self.column = row, column
        self.site, self.block, sides = steps.site, parts_at(model, steps.site), sides_of(model)
        self.layer, self.attention = self.block.layer, self.block.attention
        self.query_side, self.key_side = sides[self.site.query_side], sides[self.site.key_side]
        self.query_title, self.key_title = self.query_side.title, self.key_side.title
        follows = ", about to be written" if [*self.read] != [*query] else ""
        self.query_name = f"query ({self.query_title}{follows})"
        self.width = steps.q.shape[1]
        self.heads = steps.concatenated.shape[1] // self.width

    def step(self, number: int) -> WalkthroughStep:
        """Step `number`, counted from 1."""
        make = (
            self._input, self._projections, self._scores, self._scaling, self._mask, self._softmax,
            self._values, self._concatenation, self._output, self._residual, self._feed_forward,
        )[number - 1]  # fmt: skip
        step = make()
        # Minus signs instead of hyphens, except in tokens (escaped or quoted) and exponents.
        by_hand = re.sub(r"(?<![\w\\“])-(?=\d)", "−", step.by_hand)
        return replace(step, name=STEPS[number - 1], by_hand=by_hand)

    # The eleven steps

    def _input(self) -> WalkthroughStep:
        steps, row = self.steps, self.row
        pictures = [self._of_query("x, for the queries", steps.residual)]
        token = f"“{formats.escaped(self.read[row])}”"
        hand = f"**{token}** enters as {steps.residual.shape[1]} numbers. The first is "
        explanation = (
            f"Layer {self.site.layer + 1} receives the output of layer {self.site.layer}."
            if self._is_first and self.site.layer
            else "The previous sublayer's output."
        )
        stack = stack_of(self.model, self.query_side)
        formula, code = r"x", self._code((type(stack).forward, "x = layer("))
        if steps.token is not None and steps.table is None:
            formula = r"x = \mathrm{word}"
            explanation = (
                "Layer 1 reads only the word embeddings. Positions enter later, with queries "
                "and keys."
            )
            hand += f"**{steps.residual[row, 0]:.2f}**."
            embedding = embedding_of(self.model, self.query_side)
            code = self._code((type(embedding).forward, "self.token("))
        elif steps.token is not None and steps.table is not None:
            pictures = [
                self._of_query("word", steps.token),
                self._of_query("position", steps.table),
                *pictures,
            ]
            formula = r"x = \mathrm{word} + \mathrm{position}"
            explanation = (
                "Layer 1 reads the words: each vector is added to the vector of its position."
            )
            embedding = embedding_of(self.model, self.query_side)
            code = self._code((type(embedding).forward, "self.position("))
            parts = [steps.token[row, 0], steps.table[row, 0]]
            texts, total = by_hand(sum, [parts])
            hand += f"{' + '.join(map(operand, texts))} = **{total}**."
            if not math.isclose(sum(parts), steps.residual[row, 0], abs_tol=1e-4):
                explanation += " Other embeddings are added too, and the sum is normalised."
                hand += f" With the rest added and normalised: **{steps.residual[row, 0]:.2f}**."
        else:
            hand += f"**{steps.residual[row, 0]:.2f}**."
        if self.query_side != self.key_side:
            read = f"the {self.key_side.stack}'s output"
            pictures.append(self._of_key(f"{read}, for the keys", steps.key_input))
            explanation += (
                f" Queries come from it; keys and values come from {read} in every layer."
            )
        if steps.pre_norm:
            pictures.append(self._of_query("norm(x), read by attention", steps.query_input))
            formula += r",\quad \mathrm{norm}(x)"
            explanation += " This layer normalises it before attention reads it (pre-norm)."
        return WalkthroughStep(
            formula, explanation, self._shape("x", "query", "d_model"), pictures, code, hand
        )

    def _projections(self) -> WalkthroughStep:
        steps = self.steps
        projected = steps.q if steps.q_projected is None else steps.q_projected
        hand = self._linear(
            "q", self.attention.query, steps.query_input[self.row], projected[self.row]
        )
        formula = (
            r"\begin{gathered} q = x W^Q + b^Q \\ k = y W^K + b^K \quad v = y W^V + b^V"
            r" \end{gathered}"
        )
        if getattr(self.attention.query, "bias", True) is None:
            formula = r"q = x W^Q \quad k = y W^K \quad v = y W^V"
        more = ""
        if self.site.n_key_heads < self.site.n_heads:
            more += (
                f" {self.site.n_heads} query heads share {self.site.n_key_heads} key and value "
                f"heads; this one reads the keys of head {steps.key_head + 1}."
            )
        if steps.q_projected is not None:
            more += " Queries and keys are normalised, each separately."
        pictures = [self._of_query("q", steps.q), self._of_key("k", steps.k)]
        if steps.q_rotated is not None and steps.k_rotated is not None:
            more += (
                " Then queries and keys are rotated, two numbers at a time, by an angle that "
                "grows with their position (rotary positions). Their dot product therefore "
                "depends on how far apart they are."
            )
            pictures += [
                self._of_query("q, rotated", steps.q_rotated),
                self._of_key("k, rotated", steps.k_rotated),
            ]
        return WalkthroughStep(
            formula,
            "Three matrices turn each vector into a query (q), a key (k) and a value (v). "
            f"Queries come from the {self.query_title}, keys and values from the "
            f"{self.key_title}.{more}",
            self._shape("q", "query", "d_head") + self._shape("; k and v", "key", "d_head"),
            [*pictures, self._of_key("v", steps.v)],
            self._code(
                (type(self.attention).forward, "self.query(", "self.keys_values("),
                (type(self.attention).keys_values, "self.key(", "return"),
            ),
            hand,
        )

    def _scores(self) -> WalkthroughStep:
        steps = self.steps
        query, key = steps.compared
        products = query[self.row].astype(float) * key[self.column]
        order = np.argsort(-np.abs(products))[:3]
        pairs = [[query[self.row, i], key[self.column, i]] for i in order]
        rest = float(products.sum() - products[order].sum())
        texts, total = by_hand(sum_of_products, [*pairs, [rest]])
        terms = " + ".join(map(product, texts[0:-1:2], texts[1:-1:2]))
        left = len(products) - len(order)
        return WalkthroughStep(
            r"s = q\,k^{\mathsf T}",
            "How well does a query match a key? Their dot product measures this.",
            self._shape("s", "query", "key"),
            [self._weights_like("q·kᵀ", steps.scores)],
            self._code(
                (type(self.attention).forward, "self.scores("),
                (type(self.attention.scores).forward, "@"),
            ),
            f"{self.pair}: {terms} + {operand(texts[-1])} (the other {left}) = **{total}**.",
        )

    def _scaling(self) -> WalkthroughStep:
        steps = self.steps
        before = steps.scores[self.row, self.column]
        root = math.sqrt(self.width)
        texts, result = by_hand(lambda s: s[0] / root, [[before]])
        hand = f"{self.pair}: {texts[0]} ÷ √{self.width} = **{result}**."
        hand += f" Largest in this row: {self._largest(steps.scaled[self.row])}."
        explanation = (
            "A sum of many products can be large, and softmax of large numbers puts nearly all "
            "weight on one key. Dividing by √d_head keeps scores in a usable range: d_head is "
            "how many products are added."
        )
        if own := getattr(self.attention.scores, "scaling", ""):
            explanation += f" {own}"
        spread = f"{np.std(steps.scores):.2f} before, {np.std(steps.scaled):.2f} after"
        return WalkthroughStep(
            r"s' = \frac{s}{\sqrt{d_{\mathrm{head}}}}",
            f"{explanation} Standard deviation of all scores: {spread}.",
            self._shape("s'", "query", "key"),
            [self._weights_like("s ÷ √d_head", steps.scaled)],
            self._code((type(self.attention.scores).forward, "**")),
            hand,
        )

    def _largest(self, row: np.ndarray) -> str:
        """The largest numbers of a row, with their keys."""
        return ", ".join(
            f"“{formats.escaped(self.key[int(i)])}” {formats.signed(float(row[i]))}"
            for i in np.argsort(-row)[:LARGEST]
        )

    def _mask(self) -> WalkthroughStep:
        steps = self.steps
        masked = np.where(steps.mask, steps.scaled, np.nan)
        may = "may" if steps.mask[self.row, self.column] else "may not"
        hidden = int((~steps.mask).sum())
        visible = np.flatnonzero(steps.mask[self.row])
        only = " The only key it may attend to gets all the weight." if len(visible) == 1 else ""
        return WalkthroughStep(
            r"s'_{ij} = -\infty \;\text{ where } i \text{ may not attend to } j",
            f"{hidden} of {steps.mask.size} query–key pairs are masked (hatched).",
            self._shape("mask", "query", "key"),
            [self._weights_like("masked scores", masked)],
            self._code((type(self.attention.softmax).forward, "mask")),
            f"{self.pair}: the query **{may}** attend to this key. It may attend to "
            f"{len(visible)} of {steps.mask.shape[1]} keys.{only}",
        )

    def _softmax(self) -> WalkthroughStep:
        weights = np.where(self.steps.mask, self.steps.weights, np.nan)
        return WalkthroughStep(
            r"w_{ij} = \frac{e^{s'_{ij}}}{\sum_j e^{s'_{ij}}}",
            "Raise e to the power of each score s′, then divide by the row's sum. Each row then "
            "adds up to 1.",
            self._shape("w", "query", "key"),
            [self._weights_like("weights", weights, weights=True)],
            self._code((type(self.attention.softmax).forward, ".softmax(")),
            self._share(),
        )

    def _values(self) -> WalkthroughStep:
        steps, row = self.steps, self.row
        weights, values = steps.weights[row].astype(float), steps.v[:, 0].astype(float)
        order = np.argsort(-weights)[:3]
        rest = float(weights @ values - weights[order] @ values[order])
        products = [[float(weights[i]), float(values[i])] for i in order]
        texts, total = by_hand(sum_of_products, [*products, [rest]])
        terms = " + ".join(
            f"{product(*texts[2 * n : 2 * n + 2])} (“{formats.escaped(self.key[int(i)])}”)"
            for n, i in enumerate(order)
        )
        return WalkthroughStep(
            r"h = w\,v",
            "Each query adds up the values of all keys, each multiplied by its weight.",
            self._shape("h", "query", "d_head"),
            [self._of_key("v", steps.v), self._of_query("h = w·v", steps.head_output)],
            self._code((type(self.attention).forward, "@ v")),
            f"First number of **{self.token}**: {terms} + "
            f"{operand(texts[-1])} (all others) = **{total}**.",
        )

    def _concatenation(self) -> WalkthroughStep:
        steps, head = self.steps, self.steps.head
        first = head * self.width
        together = self._of_query("all heads, side by side", steps.concatenated)
        pictures = [replace(together, bands=self.heads, band=head)]
        explanation = (
            f"The outputs of {self.heads} heads, {self.width} numbers each, are placed side by "
            "side."
        )
        if steps.matrix is None:
            explanation += (
                " Here each head has its own matrices, so there is no single one to slice."
            )
        else:
            far = float(np.abs(steps.concatenated - steps.one_by_one).max())
            verdict = (
                "the same"
                if far <= 1e-6 * max(1, np.abs(steps.concatenated).max())
                else "a different result"
            )
            explanation += (
                " One matrix holds the projections of all heads, one slice per head. Each head "
                f"computed alone, from its slice, gives {verdict} (largest difference "
                f"**{far:.0e}**)."
            )
            title = "Wq, the query projection: one slice per head"
            bands = {"bands": self.heads, "band": head, "across": False}
            pictures.append(Matrix(title, steps.matrix, "index in q", "index in x", **bands))
        return WalkthroughStep(
            self._all_heads(),
            explanation,
            self._shape("concat", "query", "heads · d_head"),
            pictures,
            self._code(
                (type(self.attention).split, "return"), (type(self.attention).forward, "flatten(")
            ),
            f"Head {head + 1} supplies numbers {first + 1} to {first + self.width} of "
            f"**{self.token}**; the first is **{steps.concatenated[self.row, first]:.2f}**.",
        )

    def _output(self) -> WalkthroughStep:
        steps, row = self.steps, self.row
        return WalkthroughStep(
            rf"o = {self._all_heads()}\, W^O + b^O",
            "A last matrix mixes the heads' outputs and makes the result as wide as x again.",
            self._shape("o", "query", "d_model"),
            [self._of_query("o", steps.output)],
            self._code((type(self.attention).forward, "self.output(")),
            self._linear("o", self.attention.output, steps.concatenated[row], steps.output[row]),
        )

    def _residual(self) -> WalkthroughStep:
        steps, row = self.steps, self.row
        sublayer, norm = self._names()
        pictures = [self._of_query("x + o", steps.added)]
        formula = r"x + o"
        explanation = "The heads' output is added to x, so nothing is lost."
        texts, total = by_hand(sum, [[steps.residual[row, 0], steps.output[row, 0]]])
        terms = " + ".join(map(operand, texts))
        hand = f"First number of **{self.token}**: {terms} = **{total}**."
        if steps.pre_norm:
            explanation += " Here the norm comes before the next sublayer (pre-norm)."
        else:
            formula = rf"\mathrm{{norm}}({formula})"
            pictures.append(self._of_query("norm", steps.after))
            explanation += (
                " Then each vector is normalised to mean 0 and standard deviation 1, "
                "scaled and shifted."
            )
            mean, spread = steps.added[row].mean(), steps.added[row].std()
            hand += (
                f" Its numbers have mean {mean:.2f} and standard deviation {spread:.2f}; "
                f"normalised: **{steps.after[row, 0]:.2f}**."
            )
        return WalkthroughStep(
            formula,
            explanation,
            self._shape("x", "query", "d_model"),
            pictures,
            self._code((type(self.layer).forward, f"self.{sublayer}(", f"self.{norm}(")),
            hand,
        )

    def _feed_forward(self) -> WalkthroughStep:
        steps, row = self.steps, self.row
        hidden = steps.hidden[row]
        feeds_next = self.block.next_norm is sublayers_of(self.layer)[-1][2]
        between = "" if feeds_next else " Another attention sublayer comes in between."
        activation = type(getattr(self.layer.feed_forward, "activation", nn.ReLU())).__name__
        formula, title = r"\max(0,\, x W_1 + b_1)\, W_2 + b_2", "hidden, after the ReLU"
        does, gate = "set negative numbers to 0", []
        passed = (
            f"**{int((hidden > 0).sum())}** of {len(hidden)} hidden numbers are above 0 and pass"
        )
        if steps.gate is not None:
            formula = rf"(\mathrm{{{activation}}}(x W_g) \odot x W_1)\, W_2"
            does, title = "multiply each number by its gate", "hidden, gated"
            gate = [self._of_query(f"gate, after the {activation}", steps.gate)]
        elif activation != nn.ReLU.__name__:
            formula = rf"\mathrm{{{activation}}}(x W_1 + b_1)\, W_2 + b_2"
            does, title = "shrink negative numbers", f"hidden, after the {activation}"
        if activation != nn.ReLU.__name__:
            passed = f"the largest of {len(hidden)} hidden numbers is **{hidden.max():.2f}**"
        return WalkthroughStep(
            formula,
            f"Each token separately: widen, {does}, and project back to the width of x. The "
            f"result is added to x.{between}",
            self._shape("hidden", "query", "d_ff"),
            [
                *gate,
                self._of_query(title, steps.hidden),
                self._of_query("feed-forward", steps.forward),
                self._of_query("layer output", steps.layer_output),
            ],
            self._code(
                (type(self.layer.feed_forward).forward, "return"),
                (type(self.layer).forward, "self.feed_forward("),
            ),
            f"**{self.token}**: {passed}; the first number of the layer's output is "
            f"**{steps.layer_output[row, 0]:.2f}**.",
        )

    # Helpers of the steps

    @property
    def token(self) -> str:
        return f"“{formats.escaped(self.query[self.row])}”"

    @property
    def pair(self) -> str:
        return f"**{self.token}** · **“{formats.escaped(self.key[self.column])}”**"

    @property
    def _is_first(self) -> bool:
        """Whether the attention is the first sublayer of its layer."""
        return sublayers_of(self.layer)[0][1] is self.attention

    def _names(self) -> tuple[str, str]:
        """The names of the attention and of its norm in the layer's code."""
        sublayers = {id(sublayer): name for name, sublayer, _ in sublayers_of(self.layer)}
        name = sublayers[id(self.attention)]
        return name, self.layer.sublayers[name]

    def _all_heads(self) -> str:
        return rf"\mathrm{{concat}}(h_1, \dots, h_{{{self.heads}}})"

    def _of_query(self, title: str, values: np.ndarray) -> Matrix:
        follow = {"follow": self.row, "chooses": "follow"}
        return Matrix(title, values, self.query_name, "number", self.query, **follow)

    def _of_key(self, title: str, values: np.ndarray) -> Matrix:
        row_title = f"key ({self.key_title})"
        return Matrix(
            title, values, row_title, "number", self.key, follow=self.column, chooses="to"
        )

    def _weights_like(self, title: str, values: np.ndarray, weights: bool = False) -> Matrix:
        return Matrix(
            title,
            values,
            self.query_name,
            f"key ({self.key_title})",
            self.query,
            self.key,
            weights,
            ends=("score {}, poor match", "{}, good match"),
            follow=self.row,
            chooses="follow",
            column=self.column,
            chooses_column="to",
        )

    def _shape(self, name: str, *sides: str) -> str:
        """As in `x: (query, d_model) = 17 × 128`."""
        sizes = {
            "query": len(self.query),
            "key": len(self.key),
            "d_model": self.steps.residual.shape[1],
            "d_head": self.width,
            "heads · d_head": self.heads * self.width,
            "d_ff": self.steps.hidden.shape[1],
        }
        return f"{name}: ({', '.join(sides)}) = {' × '.join(str(sizes[side]) for side in sides)}"

    def _code(self, *places: tuple) -> str:
        """The lines of code behind a step, from the source of the functions that ran; each place is
        a function and texts that select its lines."""
        return "\n".join(code_lines(function, *marks) for function, *marks in places)

    def _linear(self, name: str, linear: nn.Module, x: np.ndarray, y: np.ndarray) -> str:
        """The first number of a projection, multiplied out: its three largest products and the
        rest."""
        first = self.steps.head * self.width if name == "q" else 0
        if not isinstance(linear, nn.Linear):
            return f"First number of {name} for **{self.token}**: **{y[0]:.2f}**."
        weight = linear.weight[first].float().cpu().numpy().astype(float)
        products = x.astype(float) * weight
        order = np.argsort(-np.abs(products))[:3]
        bias = [] if linear.bias is None else [[float(linear.bias[first])]]
        rest = float(products.sum() - products[order].sum())
        texts, total = by_hand(
            sum_of_products, [*([float(x[i]), float(weight[i])] for i in order), [rest], *bias]
        )
        terms = " + ".join(product(*texts[2 * n : 2 * n + 2]) for n in range(len(order)))
        added = f" + {operand(texts[-1])} (bias)" if bias else ""
        return (
            f"First number of {name} for **{self.token}**, {len(x)} products: {terms} + "
            f"{operand(texts[2 * len(order)])} (the other {len(x) - len(order)}){added} "
            f"= **{total}**."
        )

    def _share(self) -> str:
        """The score, its exponential, the row's sum, and the weight."""
        steps = self.steps
        if not steps.mask[self.row, self.column]:
            weight = percent(steps.weights[self.row, self.column], 1)
            return f"{self.pair}: masked, **{weight}**."
        allowed = np.flatnonzero(steps.mask[self.row])
        scaled = steps.scaled[self.row].astype(float)
        shift = float(scaled[allowed].max()) if np.abs(scaled[allowed]).max() > SHIFTED else 0.0
        total = float(np.exp(scaled[allowed] - shift).sum())
        quotient, shown_total = multiplied_out(float(scaled[self.column]), shift, total)
        return (
            f"{self.pair}: {quotient}, the row's sum: "
            f"**{percent(steps.weights[self.row, self.column], 1)}**.  \n"
            f"The row's sum: {self._summed(np.exp(scaled - shift), allowed, shown_total)}."
        )

    def _summed(self, powers: np.ndarray, allowed: np.ndarray, total: str) -> str:
        """The exponentials of a row, each with its key, the largest first, and their sum."""
        order = allowed[np.argsort(-powers[allowed], kind="stable")]
        shown = order if len(order) <= MOST_TERMS else order[: MOST_TERMS - 1]
        names = [f"“{formats.escaped(self.key[int(i)])}”" for i in shown]
        terms = [float(power) for power in powers[shown]]
        if left := len(order) - len(shown):
            names.append(f"the other {left}")
            terms.append(float(powers[order[len(shown) :]].sum()))
        texts = terms_of(total, terms)
        return " + ".join(map("{} ({})".format, texts, names)) + f" = {total}"
