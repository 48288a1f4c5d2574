"""The eleven steps of one head as a lesson: for each its formula, pictures, shapes, the lines of
code that do it, and one query followed through by hand. Nothing here draws."""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from app import labels
from app.components.matrices import Matrix
from app.settings import STEPS
from model.probing.head_steps import Inside
from model.probing.sites import embedding_of, parts_at, sides_of, stack_of, sublayers_of
from model.variants import FourthRootScores

SHIFTED = 10  # scores above it are shown minus their row's largest: e to them is no number to read
MOST_DIGITS = 8


@dataclass(frozen=True)
class Step:
    """One step: its formula (LaTeX), what happens in words, shapes, pictures, Python lines, and
    the followed query's numbers (Markdown)."""

    name: str
    formula: str
    said: str
    shapes: str
    pictures: Sequence[Matrix]
    code: str
    by_hand: str


class Lesson:
    """The steps of one head. query, key: the pieces of those who ask and of those looked at; row,
    column: the query that is followed, and the key that it is followed to."""

    def __init__(
        self,
        model: nn.Module,
        seen: Inside,
        query: Sequence[str],
        key: Sequence[str],
        row: int,
        column: int,
        left_out: Sequence[str] = (),
    ):
        self.model, self.seen, self.query, self.key = model, seen, query, key
        self.row, self.column, self.left_out = row, column, left_out
        self.site, self.block, sides = seen.site, parts_at(model, seen.site), sides_of(model)
        self.layer, self.attention = self.block.layer, self.block.attention
        self.query_side, self.key_side = sides[self.site.query_side], sides[self.site.key_side]
        self.asks, self.looked_at = self.query_side.title, self.key_side.title
        self.width = seen.q.shape[1]
        self.heads = seen.concatenated.shape[1] // self.width

    def step(self, number: int) -> Step:
        """Step `number`, counted from 1."""
        make = (
            self._input, self._projections, self._scores, self._scaling, self._mask, self._softmax,
            self._values, self._concatenation, self._output, self._residual, self._feed_forward,
        )[number - 1]  # fmt: skip
        return make(STEPS[number - 1])

    # The eleven steps

    def _input(self, name: str) -> Step:
        seen, row = self.seen, self.row
        pictures = [self._of_query("x, what asks", seen.asks)]
        hand = f"**{self.who}** enters as {seen.asks.shape[1]} numbers, the first of them "
        said = (
            f"What layer {self.site.layer} gives on enters layer {self.site.layer + 1}."
            if self._is_first and self.site.layer
            else "What comes out of the attention before it in this layer."
        )
        stack = stack_of(self.model, self.query_side)
        formula, code = r"x", self._code((type(stack).forward, "x = layer("))
        if seen.token is not None:
            pictures = [
                self._of_query("word", seen.token),
                self._of_query("position", seen.table),
                *pictures,
            ]
            formula = r"x = \mathrm{word} + \mathrm{position}"
            said = "Layer 1 reads the words: to each vector its position's is added."
            embedding = embedding_of(self.model, self.query_side)
            code = self._code((type(embedding).forward, "self.position("))
            texts, total = by_hand(sum, [[seen.token[row, 0], seen.table[row, 0]]])
            hand += f"{texts[0]} + {texts[1]} = **{total}**."
        else:
            hand += f"**{seen.asks[row, 0]:.2f}**."
        if self.query_side != self.key_side:
            read = f"the {self.key_side.stack}'s output"
            pictures.append(self._of_key(f"what is looked at: {read}", seen.key_input))
            said += f" It asks; what it looks at is {read}, the same in every layer."
        if seen.pre_norm:
            pictures.append(self._of_query("norm(x), which attention reads", seen.query_input))
            formula += r",\quad \mathrm{norm}(x)"
            said += " This layer norms it before attention reads it (pre-norm)."
        return Step(name, formula, said, self._shape("x", "query", "d_model"), pictures, code, hand)

    def _projections(self, name: str) -> Step:
        seen = self.seen
        hand = self._linear("q", self.attention.query, seen.query_input[self.row], seen.q[self.row])
        return Step(
            name,
            r"q = x W^Q + b^Q,\quad k = y W^K + b^K,\quad v = y W^V + b^V",
            "Three matrices make of each vector what it asks (q), what it is found by (k), and "
            f"what it gives (v). Queries come from the {self.asks}, keys and values from the "
            f"{self.looked_at}.",
            self._shape("q", "query", "d_head") + self._shape("; k and v", "key", "d_head"),
            [
                self._of_query("q", seen.q),
                self._of_key("k", seen.k),
                self._of_key("v", seen.v),
            ],
            self._code(
                (type(self.attention).forward, "self.query(", "self.keys_values("),
                (type(self.attention).keys_values, "self.key(", "return"),
            ),
            hand,
        )

    def _scores(self, name: str) -> Step:
        seen = self.seen
        products = seen.q[self.row].astype(float) * seen.k[self.column]
        order = np.argsort(-np.abs(products))[:3]
        pairs = [[seen.q[self.row, i], seen.k[self.column, i]] for i in order]
        rest = float(products.sum() - products[order].sum())
        texts, total = by_hand(_sum_of_products, [*pairs, [rest]])
        terms = " + ".join(f"{a} · {b}" for a, b in zip(texts[0:-1:2], texts[1:-1:2], strict=True))
        left = len(products) - len(order)
        return Step(
            name,
            r"s = q\,k^{\mathsf T}",
            "How alike are what one asks and what the other is found by? A dot product.",
            self._shape("s", "query", "key"),
            [self._weights_like("q·kᵀ", seen.scores)],
            self._code(
                (type(self.attention).forward, "self.scores("),
                (type(self.attention.scores).forward, "@"),
            ),
            f"{self.pair}: {terms} + {texts[-1]} (the other {left}) = **{total}**.",
        )

    def _scaling(self, name: str) -> Step:
        seen = self.seen
        before = seen.scores[self.row, self.column]
        if "scaling" in self.left_out:
            hand = f"{self.pair}: {before:.2f}, and stays so: scaling is left out."
        else:
            root = math.sqrt(self.width)
            texts, result = by_hand(lambda s: s[0] / root, [[before]])
            hand = f"{self.pair}: {texts[0]} ÷ √{self.width} = **{result}**."
        said = (
            "Sums of many products are large, and softmax of large numbers looks at one key alone. "
            "Dividing by the root of their number keeps them in size."
        )
        if isinstance(self.attention.scores, FourthRootScores):
            said += " This model divides q and k each by the fourth root, which comes to the same."
        spread = f"{np.std(seen.scores):.2f} before, {np.std(seen.scaled):.2f} after"
        return Step(
            name,
            r"s' = \frac{s}{\sqrt{d_{\mathrm{head}}}}",
            f"{said} Standard deviation of all scores: {spread}.",
            self._shape("s'", "query", "key"),
            [self._weights_like("s ÷ √d_head", seen.scaled)],
            self._code((type(self.attention.scores).forward, "**")),
            hand,
        )

    def _mask(self, name: str) -> Step:
        seen = self.seen
        masked = np.where(seen.mask, seen.scaled, np.nan)
        may = "may" if seen.mask[self.row, self.column] else "may not"
        hidden = int((~seen.mask).sum())
        return Step(
            name,
            r"s'_{ij} = -\infty \;\text{ where } i \text{ may not look at } j",
            f"Pairs that may not look at each other: {hidden} of {seen.mask.size}, left blank.",
            self._shape("mask", "query", "key"),
            [
                self._weights_like("who may look at whom", seen.mask.astype(np.float32), True),
                self._weights_like("masked scores", masked),
            ],
            self._code((type(self.attention.softmax).forward, "mask")),
            f"{self.pair}: “{labels.escaped(self.query[self.row])}” **{may}** look there; of "
            f"{seen.mask.shape[1]} keys it may look at {int(seen.mask[self.row].sum())}.",
        )

    def _softmax(self, name: str) -> Step:
        seen = self.seen
        return Step(
            name,
            r"w_{ij} = \frac{e^{s'_{ij}}}{\sum_j e^{s'_{ij}}}",
            "Each row becomes shares of 1: e to the score, of the sum of all in the row.",
            self._shape("w", "query", "key"),
            [self._weights_like("weights", seen.weights, True)],
            self._code((type(self.attention.softmax).forward, ".softmax(")),
            self._share(),
        )

    def _values(self, name: str) -> Step:
        seen, row = self.seen, self.row
        weights, values = seen.weights[row].astype(float), seen.v[:, 0].astype(float)
        order = np.argsort(-weights)[:3]
        rest = float(weights @ values - weights[order] @ values[order])
        texts, total = by_hand(
            _sum_of_products, [*([weights[i], values[i]] for i in order), [rest]]
        )
        terms = " + ".join(
            f"{texts[2 * n]} · {texts[2 * n + 1]} (“{labels.escaped(self.key[i])}”)"
            for n, i in enumerate(order)
        )
        return Step(
            name,
            r"h = w\,v",
            "Each query takes from every key its value, as much as its weight says.",
            self._shape("h", "query", "d_head"),
            [self._of_key("v", seen.v), self._of_query("h = w·v", seen.head_output)],
            self._code((type(self.attention).forward, "@ v")),
            f"First number of **{self.who}**: {terms} + {texts[-1]} (all others) = **{total}**.",
        )

    def _concatenation(self, name: str) -> Step:
        seen, head = self.seen, self.seen.head
        first = head * self.width
        pictures = [
            replace(
                self._of_query("all heads, side by side", seen.concatenated),
                bands=self.heads,
                band=head,
            )
        ]
        said = f"{self.heads} heads of {self.width} numbers stand side by side."
        if seen.matrix is None:
            said += " Each head has matrices of its own here, so there is no single one to cut."
        else:
            far = float(np.abs(seen.concatenated - seen.one_by_one).max())
            verdict = "the same" if far <= 1e-6 * max(1, np.abs(seen.concatenated).max()) else "NOT"
            said += (
                " One matrix holds the projections of all heads, a slice for each. Each head "
                f"computed by itself, with its slice alone, gives {verdict}: largest difference "
                f"**{far:.0e}**."
            )
            pictures.append(
                Matrix(
                    "Wq, the query projection: a slice a head",
                    seen.matrix,
                    "number of q",
                    "number of x",
                    bands=self.heads,
                    band=head,
                    across=False,
                )
            )
        return Step(
            name,
            self._all_heads(),
            said,
            self._shape("concat", "query", "heads · d_head"),
            pictures,
            self._code(
                (type(self.attention).split, "return"), (type(self.attention).forward, "flatten(")
            ),
            f"Head {head + 1}'s numbers are numbers {first + 1} to {first + self.width} of "
            f"**{self.who}**; the first is **{seen.concatenated[self.row, first]:.2f}**.",
        )

    def _output(self, name: str) -> Step:
        seen, row = self.seen, self.row
        return Step(
            name,
            rf"o = {self._all_heads()}\, W^O + b^O",
            "A last matrix mixes what the heads found, and makes it as wide as x again.",
            self._shape("o", "query", "d_model"),
            [self._of_query("o", seen.output)],
            self._code((type(self.attention).forward, "self.output(")),
            self._linear("o", self.attention.output, seen.concatenated[row], seen.output[row]),
        )

    def _residual(self, name: str) -> Step:
        seen, row = self.seen, self.row
        sublayer, norm = self._names()
        pictures = [self._of_query("x + o", seen.added)]
        if "residual" in self.left_out:
            formula, said = r"o", "What was there before is left out: only what the heads found."
            hand = f"First number of **{self.who}**: **{seen.added[row, 0]:.2f}**, from o alone."
        else:
            formula = r"x + o"
            said = "What the heads found is added to what was there, so nothing is lost."
            texts, total = by_hand(sum, [[seen.asks[row, 0], seen.output[row, 0]]])
            hand = f"First number of **{self.who}**: {texts[0]} + {texts[1]} = **{total}**."
        if seen.pre_norm:
            said += " The norm stands before the next sublayer here (pre-norm)."
        else:
            formula = rf"\mathrm{{norm}}({formula})"
            pictures.append(self._of_query("norm", seen.after))
            said += " Then each vector is brought to mean 0 and spread 1, scaled and shifted."
            mean, spread = seen.added[row].mean(), seen.added[row].std()
            hand += (
                f" Mean {mean:.2f} and spread {spread:.2f} of its numbers; normed: "
                f"**{seen.after[row, 0]:.2f}**."
            )
        return Step(
            name,
            formula,
            said,
            self._shape("x", "query", "d_model"),
            pictures,
            self._code((type(self.layer).forward, f"self.{sublayer}(", f"self.{norm}(")),
            hand,
        )

    def _feed_forward(self, name: str) -> Step:
        seen, row = self.seen, self.row
        hidden = seen.hidden[row]
        feeds_next = self.block.next_norm is sublayers_of(self.layer)[-1][2]
        between = "" if feeds_next else " Between lies another attention."
        return Step(
            name,
            r"\max(0,\, x W_1 + b_1)\, W_2 + b_2",
            "Each piece by itself: widened, cut at 0, and brought back to the width of x; added, "
            f"and the layer is done.{between}",
            self._shape("hidden", "query", "d_ff"),
            [
                self._of_query("hidden, after the ReLU", seen.hidden),
                self._of_query("feed-forward", seen.forward),
                self._of_query("what the layer gives on", seen.layer_output),
            ],
            self._code(
                (type(self.layer.feed_forward).forward, "return"),
                (type(self.layer).forward, "self.feed_forward("),
            ),
            f"**{self.who}**: of {len(hidden)} hidden numbers **{int((hidden > 0).sum())}** are "
            f"above 0 and pass; its first number leaves the layer as "
            f"**{seen.layer_output[row, 0]:.2f}**.",
        )

    # What the steps share

    @property
    def who(self) -> str:
        return f"“{labels.escaped(self.query[self.row])}”"

    @property
    def pair(self) -> str:
        return f"**{self.who}** · **“{labels.escaped(self.key[self.column])}”**"

    @property
    def _is_first(self) -> bool:
        """Whether the attention is the first sublayer of its layer."""
        return sublayers_of(self.layer)[0][1] is self.attention

    def _names(self) -> tuple[str, str]:
        """What the layer's code calls the attention and the norm that goes with it."""
        sublayers = {id(sublayer): name for name, sublayer, _ in sublayers_of(self.layer)}
        name = sublayers[id(self.attention)]
        return name, self.layer.sublayers[name]

    def _all_heads(self) -> str:
        return rf"\mathrm{{concat}}(h_1, \dots, h_{{{self.heads}}})"

    def _of_query(self, title: str, values: np.ndarray) -> Matrix:
        return Matrix(
            title, values, f"who asks ({self.asks})", "number", self.query, follow=self.row
        )

    def _of_key(self, title: str, values: np.ndarray) -> Matrix:
        asks = f"who is looked at ({self.looked_at})"
        return Matrix(title, values, asks, "number", self.key, follow=self.column)

    def _weights_like(self, title: str, values: np.ndarray, weights: bool = False) -> Matrix:
        return Matrix(
            title,
            values,
            f"who asks ({self.asks})",
            f"who is looked at ({self.looked_at})",
            self.query,
            self.key,
            weights,
            follow=self.row,
        )

    def _shape(self, name: str, *sides: str) -> str:
        """As in `x: (query, d_model) = 17 × 128`."""
        sizes = {
            "query": len(self.query),
            "key": len(self.key),
            "d_model": self.seen.asks.shape[1],
            "d_head": self.width,
            "heads · d_head": self.heads * self.width,
            "d_ff": self.seen.hidden.shape[1],
        }
        return f"{name}: ({', '.join(sides)}) = {' × '.join(str(sizes[side]) for side in sides)}"

    def _code(self, *places: tuple) -> str:
        """The lines that do it, from the source of the functions that ran; each place is a
        function and what its lines hold."""
        return "\n".join(code_lines(function, *marks) for function, *marks in places)

    def _linear(self, name: str, linear: nn.Module, x: np.ndarray, y: np.ndarray) -> str:
        """The head's first number of a projection, multiplied out: its three largest products."""
        first = self.seen.head * self.width if name == "q" else 0
        if not isinstance(linear, nn.Linear):
            return f"First number of {name} for **{self.who}**: **{y[0]:.2f}**."
        weight = linear.weight[first].float().cpu().numpy().astype(float)
        products = x.astype(float) * weight
        order = np.argsort(-np.abs(products))[:3]
        bias = [] if linear.bias is None else [[float(linear.bias[first])]]
        rest = float(products.sum() - products[order].sum())
        texts, total = by_hand(
            _sum_of_products, [*([x[i], weight[i]] for i in order), [rest], *bias]
        )
        terms = " + ".join(f"{texts[2 * n]} · {texts[2 * n + 1]}" for n in range(len(order)))
        added = f" + {texts[-1]} (bias)" if bias else ""
        return (
            f"First number of {name} for **{self.who}**, {len(x)} products: {terms} + "
            f"{texts[2 * len(order)]} (the other {len(x) - len(order)}){added} = **{total}**."
        )

    def _share(self) -> str:
        """Score, e to it, the row's sum, the weight."""
        seen = self.seen
        if not seen.mask[self.row, self.column]:
            return f"{self.pair}: masked, **{seen.weights[self.row, self.column]:.1%}**."
        allowed = np.flatnonzero(seen.mask[self.row])
        scaled = seen.scaled[self.row].astype(float)
        shift = float(scaled[allowed].max()) if np.abs(scaled[allowed]).max() > SHIFTED else 0.0
        total = float(np.exp(scaled[allowed] - shift).sum())
        said = _multiplied_out(float(scaled[self.column]), shift, total)
        return f"{self.pair}: {said} in the row: **{seen.weights[self.row, self.column]:.1%}**."


def _multiplied_out(score: float, shift: float, total: float) -> str:
    """From a score to its share of `total`, in as few digits as it takes for whoever computes with
    the digits shown to get the digits shown."""
    for decimals in range(2, MOST_DIGITS):
        for digits in range(3, decimals + 2):
            own = f"{score - shift:.{decimals}f}"
            before = f"{score:.{decimals}f}", f"{shift:.{decimals}f}"
            power, of = (f"{x:.{digits}g}" for x in (math.exp(score - shift), total))
            agrees = (
                f"{float(before[0]) - float(before[1]):.{decimals}f}" == own
                and f"{math.exp(float(own)):.{digits}g}" == power
                and f"{float(power) / float(of):.1%}" == f"{math.exp(score - shift) / total:.1%}"
            )
            if agrees:
                break
        if agrees:
            break
    less = f", minus the row's largest, {before[1]}: {own}" if shift else ""
    return f"{before[0]}{less}; e^{own} = {power}, of {of}"


def _sum_of_products(terms: Sequence[Sequence[float]]) -> float:
    return sum(math.prod(term) for term in terms)


def by_hand(
    compute: Callable, terms: Sequence[Sequence[float]], result: str = ".2f"
) -> tuple[list[str], str]:
    """Texts of all numbers of `terms`, and of the result, with as few digits as it takes for the
    texts, computed with, to give the result that is shown. With one term, `compute` gets its
    numbers; with more, the terms."""
    exact = format(_call(compute, [[float(x) for x in term] for term in terms]), result)
    for digits in range(2, MOST_DIGITS + 1):
        texts = [[f"{float(x):.{digits}f}" for x in term] for term in terms]
        shown = _call(compute, [[float(x) for x in term] for term in texts])
        if format(shown, result) == exact:
            break
    return [text for term in texts for text in term], exact


def _call(compute: Callable, terms: Sequence[Sequence[float]]) -> float:
    return compute(terms[0]) if len(terms) == 1 else compute(terms)


def code_lines(function: Callable, *marks: str) -> str:
    """The lines of a function's source that hold one of `marks`, to the end of their statement,
    under its name; the whole function if none does."""
    source = inspect.getsource(function).rstrip().splitlines()
    found, open_brackets = [], 0
    for line in source[1:]:
        if open_brackets or (any(mark in line for mark in marks) and '"""' not in line):
            found.append(line)
            open_brackets += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
    head = f"# {function.__qualname__}"
    return "\n".join([head, *(inspect.cleandoc("\n" + "\n".join(found or source)).split("\n"))])
