"""Questions answered by hand: scores, softmax, shapes, positions."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from headlight.app.lessons.formatting import (
    number,
    percent,
    shape,
    sum_of_products,
    vector,
)
from headlight.app.lessons.question import (
    CHOOSE,
    NUMBER,
    Draw,
    Question,
    QuestionType,
    Veil,
    choices_of,
)
from headlight.app.lessons.question_types.attention import row_values, veil_of
from headlight.app.lessons.sentence_run import NoQuestion
from headlight.model.misconceptions import OF_ATTENTION, chosen

MOST_DRAWS = 10_000
NONE_FOUND = "No numbers were found whose right and wrong answers are far enough apart."


def apart(answers: Iterable[float], tolerance: float) -> bool:
    """Whether no two answers are within twice the tolerance of each other."""
    ordered = sorted(answers)
    return all(y - x > 2 * tolerance + 1e-9 for x, y in pairwise(ordered))


class ScoreType(QuestionType):
    """Dot products and scores (section 3.2.1, equation 1)."""

    name = "score"
    asks: ClassVar = {
        "dot product": NUMBER,
        "scaled": NUMBER,
        "best key": CHOOSE,
        "typical size": NUMBER,
        "of the head": NUMBER,
    }
    sentences: ClassVar = {
        **chosen(
            OF_ATTENTION,
            "√d left out",
            "divided by d",
            "√d_model",
            "multiplied by √d",
            "entries added",
        ),
        "signs lost": "Check the signs: a positive times a negative is negative.",
        "sums multiplied": "Multiply entry by entry first, then add.",
        "longest key": "A long key can point away. Direction counts too.",
        "sign ignored": "A large negative product is a bad fit.",
        "nearest": "The nearest key need not win: dot products reward length too.",
        "grows with d": "Positive and negative products partly cancel.",
        "stays 1": "Each product has size 1. You add d of them.",
    }
    SIZES = (16, 25, 36, 64, 100)

    def _scaled(self, draw: Draw) -> Question:
        d, scaled = draw.keys.get("d", 4), draw.ask == "scaled"
        entries = [-3, -2, -1, 1, 2, 3]
        for _ in range(MOST_DRAWS):
            q, k = ([draw.rng.choice(entries) for _ in range(d)] for _ in "qk")
            dot = sum(x * y for x, y in zip(q, k, strict=True))
            answer = dot / math.sqrt(d) if scaled else dot
            if scaled:
                answers = {
                    "√d left out": dot,
                    "divided by d": dot / d,
                    "multiplied by √d": dot * math.sqrt(d),
                }
            else:
                answers = {
                    "signs lost": sum(abs(x * y) for x, y in zip(q, k, strict=True)),
                    "sums multiplied": sum(q) * sum(k),
                    "entries added": sum(q) + sum(k),
                }
            tolerance = 0.0 if float(answer).is_integer() else 0.05
            if dot % 2 == 0 and abs(dot) >= 4 and apart([answer, *answers.values()], tolerance):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        given = {"query": vector(q), "key": vector(k), "d": str(d)}
        shown = {"sum in full": sum_of_products(q, k, dot), "dot product": number(dot)}
        shown["answer"] = number(answer, 3)
        return self.number(answer, answers, tolerance=tolerance, given=given, shown=shown)

    _dot_product = _scaled

    def _best_key(self, draw: Draw) -> Question:
        for _ in range(MOST_DRAWS):
            q = [draw.rng.choice([1, 2, 3]), draw.rng.choice([-2, -1, 1, 2])]
            keys = np.array([[draw.rng.randint(-5, 5) for _ in range(2)] for _ in range(3)])
            dots = keys @ q
            best, longest = int(dots.argmax()), int((keys**2).sum(axis=1).argmax())
            if len(set(dots.tolist())) == 3 and longest != best:
                break
        else:
            raise NoQuestion(NONE_FOUND)
        names = [vector(key.tolist()) for key in keys]
        nearest = int(((keys - q) ** 2).sum(axis=1).argmin())
        answers = {
            "longest key": names[longest],
            "sign ignored": names[int(np.abs(dots).argmax())],
            "nearest": names[nearest],
        }
        products = "; ".join(f"{n}: {number(x)}" for n, x in zip(names, dots, strict=True))
        choices = choices_of(draw.rng, names[best], names)
        given = {"query": vector(q)}
        shown = {"all products": products, "answer": names[best]}
        return self.choose(draw, names[best], answers, choices=choices, given=given, shown=shown)

    def _typical_size(self, draw: Draw) -> Question:
        d = draw.rng.choice(self.SIZES)
        answer = math.sqrt(d)
        wrong, shown = {"grows with d": float(d), "stays 1": 1.0}, {"answer": number(answer)}
        return self.number(answer, wrong, given={"d": str(d)}, shown=shown)

    def _of_the_head(self, draw: Draw) -> Question:
        run, head = draw.run, draw.of_head
        query, key = run.base.query[head.kind], run.base.key[head.kind]
        if head.layer >= len(query) or key.shape[1] != query.shape[1]:
            raise NoQuestion("This head shares its keys with other heads.")
        rows = draw.rows()

        def dot_of(i):
            q, k = query[head.layer, head.head, i], key[head.layer, head.head, rows.key(i)]
            return float(q.astype(np.float64) @ k.astype(np.float64))

        d_head, d_model = query.shape[-1], run.checkpoint.model.config.d_model
        i = draw.row(lambda i: abs(dot_of(i)) >= 5)
        dot, (given, _) = round(dot_of(i), 1), row_values(run, head, i)
        answer = dot / math.sqrt(d_head)
        answers = {
            "√d left out": dot,
            "divided by d": dot / d_head,
            "√d_model": dot / math.sqrt(d_model),
        }
        given |= {"d_head": str(d_head), "key": rows.keys[rows.key(i)]}
        given["dot product"] = f"{dot:.1f}".replace("-", "−")
        shown, veil = {"answer": f"{answer:.2f}".replace("-", "−")}, veil_of("scores", head, i)
        tolerance = max(0.02 * abs(answer), 0.05)
        parts = {"given": given, "shown": shown, "veil": veil}
        return self.number(answer, answers, tolerance=tolerance, **parts)


POWERS = {0.0: 1, 0.7: 2, 1.1: 3, 1.4: 4, 1.6: 5}  # score → about e to it


class SoftmaxType(QuestionType):
    """From scores to weights, and the mixture of values (section 3.2.1)."""

    name = "softmax"
    asks: ClassVar = dict.fromkeys(
        ("weight", "masked", "temperature", "ratio", "mix", "table"), NUMBER
    )
    sentences: ClassVar = {
        **chosen(OF_ATTENTION, "no exponential", "winner takes all", "plain mean", "sum of values"),
        "not divided": "That is the power. Divide by the sum of all of them.",
        "over the largest": "Divide by the sum, not by the largest.",
        "wrong axis": "You normalised a column. The softmax runs along a row.",
        "zero after the softmax": "The masked share is missing: your row adds up to less than "
        "100%.",
        "shared equally": "The rest grows in proportion, not evenly.",
        "temperature upside down": "The other way round: above 1, the shares move closer together.",
        "not scaled": "Now scale: they must add up to 100%.",
        "no effect": "Temperature keeps the order, not the shares.",
        "ratio of scores": "Weights depend on the difference of scores, not on their ratio.",
        "difference": "Now raise e to that power.",
    }
    SHARE, MIXTURE = 0.02, 0.05  # tolerances
    TEMPERATURES = ((80, 20, 2), (90, 10, 2), (80, 20, 0.5), (60, 40, 0.5), (75, 25, 0.5))

    def _share(self, answer, answers, given, shown) -> Question:
        parts = {"given": given, "shown": shown | {"answer": percent(answer)}}
        return self.number(answer, answers, tolerance=self.SHARE, share=True, **parts)

    def _weight(self, draw: Draw) -> Question:
        for _ in range(MOST_DRAWS):
            scores = draw.rng.sample(sorted(POWERS), 4)
            chosen = draw.rng.choice([s for s in scores if s > 0])
            powers = [POWERS[s] for s in scores]
            answer = POWERS[chosen] / sum(powers)
            answers = {
                "no exponential": chosen / sum(scores),
                "not divided": float(POWERS[chosen]),
                "over the largest": POWERS[chosen] / max(powers),
            }
            if apart([answer, *answers.values()], self.SHARE):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        table = "; ".join(f"e^{number(s)} ≈ {POWERS[s]}" for s in sorted(scores))
        given = {
            "scores": ", ".join(map(number, scores)),
            "table of powers": table,
            "chosen score": number(chosen),
        }
        shown = {"power": str(POWERS[chosen]), "sum of powers": str(sum(powers))}
        return self._share(answer, answers, given, shown)

    def _table(self, draw: Draw) -> Question:
        """A table of 3 × 3 scores, of which one weight is asked."""
        for _ in range(MOST_DRAWS):
            table = np.array([draw.rng.sample(sorted(POWERS), 3) for _ in range(3)])
            i, j = draw.rng.randrange(3), draw.rng.randrange(3)
            powers = np.vectorize(POWERS.get)(table)
            answer = float(powers[i, j] / powers[i].sum())
            answers = {
                "wrong axis": float(powers[i, j] / powers[:, j].sum()),
                "no exponential": float(table[i, j] / table[i].sum()),
                "not divided": float(powers[i, j]),
            }
            if table[i, j] and apart([answer, *answers.values()], self.SHARE):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        rows = "; ".join(vector(row) for row in table.tolist())
        given = {
            "table": rows,
            "table of powers": "; ".join(f"e^{number(s)} ≈ {p}" for s, p in POWERS.items()),
            "row number": str(i + 1),
            "column number": str(j + 1),
        }
        shown = {"power": str(powers[i, j]), "sum of powers": str(powers[i].sum())}
        return self._share(answer, answers, given, shown)

    def _masked(self, draw: Draw) -> Question:
        for _ in range(MOST_DRAWS):
            weights = draw.rng.sample([10, 20, 30, 40], 4)
            masked, chosen = draw.rng.sample(weights, 2)
            answer = chosen / (100 - masked)
            answers = {
                "zero after the softmax": chosen / 100,
                "shared equally": (chosen + masked / 3) / 100,
            }
            # These answers lie close together, so the tolerance is half of that elsewhere.
            if apart([answer, *answers.values()], self.SHARE / 4):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        given = {
            "weights": ", ".join(f"{w}%" for w in weights),
            "masked weight": f"{masked}%",
            "chosen weight": f"{chosen}%",
        }
        question = self._share(answer, answers, given, {"rest": f"{100 - masked}%"})
        return replace(question, tolerance=self.SHARE / 2)

    def _temperature(self, draw: Draw) -> Question:
        a, b, t = draw.rng.choice(self.TEMPERATURES)
        x, y = (p / 100 for p in (a, b))
        powers = x ** (1 / t), y ** (1 / t)
        answer = powers[0] / sum(powers)
        answers = {
            "temperature upside down": x**t / (x**t + y**t),
            "not scaled": powers[0],
            "no effect": x,
        }
        given = {"probabilities": f"{a}% and {b}%", "temperature": number(t)}
        first, second = (number(p, 3) for p in powers)
        shown = {"powers in full": f"{first} ÷ ({first} + {second})"}
        return self._share(answer, answers, given, shown)

    def _ratio(self, draw: Draw) -> Question:
        run, head = draw.run, draw.of_head
        scores, allowed = run.scores(head), run.base.allowed(head.kind)

        def two_largest(i):
            ranked = sorted(scores[i, allowed[i]], reverse=True)
            return [round(float(s), 1) for s in ranked[:2]] if len(ranked) > 1 else None

        def is_clear(i):
            top = two_largest(i)
            return top is not None and 1.5 <= top[0] - top[1] < 30 and abs(top[1]) >= 0.1

        i = draw.row(is_clear)
        first, second = two_largest(i) or (0.0, 0.0)  # it is clear
        difference = round(first - second, 1)
        answer = math.exp(difference)
        given, _ = row_values(run, head, i)
        given |= {"score": f"{first:.1f}", "second score": f"{second:.1f}"}
        answers = {"ratio of scores": first / second, "difference": difference}
        given = {name: text.replace("-", "−") for name, text in given.items()}
        shown = {"difference": f"{difference:.1f}", "answer": f"{answer:,.0f}"}
        parts = {"given": given, "shown": shown, "veil": veil_of("row", head, i)}
        return self.number(answer, answers, tolerance=0.15 * answer, **parts)

    def _mix(self, draw: Draw) -> Question:
        parts = draw.rng.choice([(50, 30, 20), (60, 30, 10), (70, 20, 10), (50, 40, 10)])
        weights = draw.rng.sample(parts, 3)
        for _ in range(MOST_DRAWS):
            values = draw.rng.sample([-10, -5, 0, 5, 10, 20], 3)
            answer = sum(w * v for w, v in zip(weights, values, strict=True)) / 100
            answers = {
                "plain mean": sum(values) / 3,
                "winner takes all": float(values[int(np.argmax(weights))]),
                "sum of values": float(sum(values)),
            }
            if apart([answer, *answers.values()], 0.25):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        shares = [w / 100 for w in weights]
        given = {"weights": ", ".join(f"{w}%" for w in weights)}
        given["values"] = ", ".join(map(number, values))
        shown = {"sum in full": sum_of_products(shares, values, answer)}
        return self.number(answer, answers, tolerance=self.MIXTURE, given=given, shown=shown)


class ShapeType(QuestionType):
    """Shapes through a block (section 3.2.2)."""

    name = "shape"
    asks: ClassVar = {
        "d_head": NUMBER,
        "scores of one head": CHOOSE,
        "cross-attention scores": CHOOSE,
    }
    sentences: ClassVar = {
        **chosen(OF_ATTENTION, "rows for columns", "vectors, not tokens"),
        "d_head for keys": "That is the shape of the queries. Their products with keys leave "
        "(query, key).",
        "whole d_model": "That is all heads together.",
        "one text only": "Queries come from one text, keys from the other.",
        "heads for size": "That is how many heads there are. How long is a query?",
        "times for divided": "The heads split d_model evenly.",
    }

    def draw(self, draw: Draw) -> Question:
        run, config = draw.run, draw.run.checkpoint.model.config
        veil = (Veil("shapes"),)
        if draw.ask == "d_head":
            answer = float(next(iter(run.base.query.values())).shape[-1])
            if answer * config.n_heads != config.d_model:
                raise NoQuestion("The heads of this model do not split d_model.")
            answers = {
                "whole d_model": float(config.d_model),
                "heads for size": float(config.n_heads),
                "times for divided": float(config.d_model * config.n_heads),
            }
            return self.number(answer, answers, shown={"answer": number(answer)}, veil=veil)
        if draw.ask == "scores of one head":
            n, d = len(run.queries(draw.of_head)), run.base.query[draw.of_head.kind].shape[-1]
            if draw.of_head.kind == "cross":
                raise NoQuestion("The rows and columns of this head belong to two texts.")
            answer, given = shape(n, n), {"length": str(n)}
            answers = {
                "d_head for keys": shape(n, d),
                "vectors, not tokens": shape(d, d),
                "whole d_model": shape(n, config.d_model),
            }
        else:
            if "cross" not in run.base.attention:
                raise NoQuestion("This model has no cross-attention.")
            n, m = len(run.tgt), len(run.src)
            if n == m:
                raise NoQuestion("Both texts have the same length here. Try another sentence.")
            given = {"source length": str(m), "target length": str(n)}
            answer = shape(n, m)
            answers = {
                "rows for columns": shape(m, n),
                "one text only": shape(n, n),
                "d_head for keys": shape(n, run.base.query["cross"].shape[-1]),
            }
        return self.choose(draw, answer, answers, given=given, veil=veil)


def position_encoding(position: int, i: int, d: int, base: float = 10_000) -> float:
    """Entry i of the encoding of a position (section 3.5)."""
    angle = position / base ** (2 * (i // 2) / d)
    return math.cos(angle) if i % 2 else math.sin(angle)


class PositionType(QuestionType):
    """Sinusoidal positions (section 3.5)."""

    name = "position"
    asks: ClassVar = {"entry": NUMBER, "most alike": CHOOSE}
    sentences: ClassVar = {
        "sine and cosine swapped": "Even dimensions are sine, odd ones cosine.",
        "off by one": "Positions start at 0.",
        "own wavelength": "Both dimensions of a pair share one wavelength.",
        "degrees": "The angle is in radians.",
        "farthest": "Nearby positions are the most similar: each pair turns only a little.",
    }
    D, D_ALIKE, TOLERANCE, LEAST_LEAD = 4, 32, 0.02, 0.1

    def _entry(self, draw: Draw) -> Question:
        d = self.D
        for _ in range(MOST_DRAWS):
            position, i = draw.rng.randrange(1, 6), draw.rng.randrange(d)
            answer = position_encoding(position, i, d)
            odd = position / 10_000 ** (i / d)
            pair = position / 10_000 ** (2 * (i // 2) / d)
            wave = math.cos if i % 2 else math.sin
            answers = {
                "sine and cosine swapped": position_encoding(position, i ^ 1, d),
                "off by one": position_encoding(position + 1, i, d),
                "own wavelength": wave(odd) if i % 2 else None,
                "degrees": wave(math.radians(pair)),
            }
            if apart([answer, *(x for x in answers.values() if x is not None)], self.TOLERANCE):
                break
        else:
            raise NoQuestion(NONE_FOUND)
        given = {"position": str(position), "dimension": str(i), "d": str(d)}
        shown = {"answer": f"{answer:.2f}".replace("-", "−")}
        parts = {"given": given, "shown": shown, "veil": (Veil("positions"),)}
        return self.number(answer, answers, tolerance=self.TOLERANCE, **parts)

    def _most_alike(self, draw: Draw) -> Question:
        pairs = [(x, y) for x in range(5) for y in range(x)]
        for _ in range(MOST_DRAWS):
            positions = sorted(draw.rng.sample(range(40), 5))
            table = np.array(
                [[position_encoding(p, i, self.D_ALIKE) for i in range(self.D_ALIKE)]
                 for p in positions]
            )  # fmt: skip
            products = {(x, y): float(table[x] @ table[y]) for x, y in pairs}
            ranked = sorted(pairs, key=products.__getitem__, reverse=True)
            nearest = min(pairs, key=lambda pair: positions[pair[0]] - positions[pair[1]])
            # The fastest waves come round again, so that a pair further apart can be more alike.
            lead = products[ranked[0]] - products[ranked[1]]
            if ranked[0] == nearest and lead > self.LEAST_LEAD:
                break
        else:
            raise NoQuestion(NONE_FOUND)
        names = {(x, y): f"{positions[y]} and {positions[x]}" for x, y in pairs}
        best = names[ranked[0]]
        answers = {"farthest": names[4, 0]}
        others = [names[pair] for pair in ranked[1:]]
        given = {"positions": ", ".join(map(str, positions)), "d": str(self.D_ALIKE)}
        return self.choose(draw, best, answers, others, given=given, veil=(Veil("positions"),))
