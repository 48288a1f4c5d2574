"""Questions about rows, columns and heads of attention."""

from itertools import repeat
from typing import ClassVar

import numpy as np

from headlight.app.lessons.question import (
    CHOOSE,
    FIND,
    NUMBER,
    PAINT,
    Draw,
    Misconception,
    Question,
    QuestionType,
    Veil,
)
from headlight.app.lessons.question import distance_of_rows as distance
from headlight.app.lessons.sentence_run import (
    END,
    LIMITS,
    NamedHead,
    NoQuestion,
    SentenceRun,
    is_mark,
    names_of,
)
from headlight.model.analysis import head_metrics
from headlight.model.rounding import percent


def row_values(run: SentenceRun, head: NamedHead, i: int) -> tuple[dict, dict]:
    """Placeholders of a row: those that give nothing away, and those about its weights. Of a word
    that stands there twice they say which one, as choices do; `token` is the word
    alone."""
    row, keys, queries = run.weights(head)[i], run.keys(head), run.queries(head)
    order = np.argsort(-row, kind="stable")
    marks = [x for x, token in enumerate(keys) if is_mark(token)]
    rows, names = names_of([run.label(head, j) for j in range(len(queries))]), names_of(keys)
    given = {
        "row": rows[i],
        "token": run.label(head, i),
        "next": queries[i + 1] if i + 1 < len(queries) else END,
        "position": str(i + 1),
        "before": str(i),
        "length": str(len(queries)),
    }
    shown = {
        "key": names[order[0]],
        "weight": percent(row[order[0]]),
        "rest": percent(1 - row[order[0]]),
        "end share": percent(row[marks].sum()),
    }
    if len(keys) > 1:
        shown |= {"second key": names[order[1]], "second weight": percent(row[order[1]])}
    return given, shown


def _printed(weight: float, second: float) -> dict[str, str]:
    """Two weights and what the first leaves, with so many decimals that the share that they give
    is the one that is printed."""
    share, found = percent(second / (1 - weight)), {}
    for digits in range(4):
        numbers = {"weight": weight, "second weight": second, "rest": 1 - weight}
        found = {name: percent(number, digits) for name, number in numbers.items()}
        part, rest = (float(found[name].strip("<%")) for name in ("second weight", "rest"))
        if percent(part / rest) == share:
            break
    return found


def veil_of(what: str, head: NamedHead, i: int) -> tuple[Veil, ...]:
    return (Veil(what, head.kind, head.layer, head.head, i),)


class RowType(QuestionType):
    """The largest weight of a row or a column, and what a row predicts."""

    name = "row"
    asks: ClassVar = {
        "largest key": CHOOSE,
        "largest row": CHOOSE,
        "predicted token": CHOOSE,
        "most crossings": CHOOSE,
    }
    sentences: ClassVar = {
        "row for column": "You read down a column. A row shows what *{row}* attends to.",
        "column for row": "You read along a row. A column shows what attends to *{column}*.",
        "next row": "That is what the next row attends to. Stay in the row of *{row}*.",
        "next column": "That row attends most to the next column. Stay in column *{column}*.",
        "same place": "You followed the position. Think of the meaning instead.",
        "read for predicted": "*{row}* is what this row has read. It predicts the token after it.",
        "one back": "You went back. A row predicts the next token.",
    }

    def _largest_key(self, draw: Draw) -> Question:
        run, head, rows = draw.run, draw.of_head, draw.rows()
        weights, names = run.weights(head), names_of(run.keys(head))
        least = LIMITS["lead_own" if draw.own else "lead"]
        i = draw.row(lambda i: rows.first[i] - rows.second[i] >= least)
        given, shown = row_values(run, head, i)
        # Keys that a mask forbids are no choice.
        allowed = [int(j) for j in rows.order[i] if run.base.allowed(head.kind)[i, j]]
        answers = {
            "row for column": self._down_the_column(run, head, i),
            "next row": rows.key(i + 1) if i + 1 < len(weights) else None,
            "same place": i,
        }
        answers = {name: names[j] for name, j in answers.items() if j in allowed}
        answer = names[rows.key(i)]
        shown["steps back"] = str(i - rows.key(i))
        more, veil = [names[j] for j in allowed], veil_of("row", head, i)
        return self.choose(draw, answer, answers, more, given=given, shown=shown, veil=veil)

    def _down_the_column(self, run: SentenceRun, head: NamedHead, i: int) -> int | None:
        """The wrong answer of a student who reads down the column of row i's word instead of
        along its row; None if rows and columns are different texts, where it has no column."""
        weights, place = run.weights(head), i + head.shift
        if not run.is_of_one_text(head) or place >= weights.shape[1]:
            return None
        key = int(weights[:, place].argmax()) + head.shift
        return key if key < weights.shape[1] else None

    def _along_the_row(self, run: SentenceRun, head: NamedHead, j: int) -> int | None:
        """The wrong answer of a student who reads along the row of column j's word instead of
        down its column; None where it has no row."""
        weights, row = run.weights(head), j - head.shift
        if not run.is_of_one_text(head) or row < 0:
            return None
        found = int(weights[row].argmax()) - head.shift
        return found if found >= 0 else None

    def _largest_row(self, draw: Draw) -> Question:
        run, head, rows = draw.run, draw.of_head, draw.rows()
        weights, keys = run.weights(head), run.keys(head)
        columns = rows.sharp_columns()
        columns = [j for j in columns if j not in draw.used_columns] or columns
        if not columns:
            raise NoQuestion(LIMITS["no_column"])
        j = draw.rng.choice(columns) if draw.keys.get("column") == "any" else columns[-1]
        labels = names_of(tuple(run.label(head, i) for i in range(len(weights))))
        i = int(weights[:, j].argmax())
        after = int(weights[:, j + 1].argmax()) if j + 1 < len(keys) else None
        answers = {
            "next column": after,
            "same place": j,
            "column for row": self._along_the_row(run, head, j),
        }
        answers = {
            name: labels[row]
            for name, row in answers.items()
            if row is not None and 0 <= row < len(labels)
        }
        others = [labels[row] for row in np.argsort(-weights[:, j], kind="stable")]
        given = {"column": names_of(keys)[j]}
        shown = {"row": labels[i], "weight": percent(weights[i, j])}
        veil = veil_of("column", head, j)
        return self.choose(draw, labels[i], answers, others, given=given, shown=shown, veil=veil)

    def _predicted_token(self, draw: Draw) -> Question:
        run, head, base = draw.run, draw.of_head, draw.run.base
        queries = run.queries(head)
        if base.sides_of(head.kind)[0].predicts != "next token":
            raise NoQuestion("The rows of this head predict nothing.")

        def is_first_choice(i):
            return 0 < i < len(queries) - 1 and base.logits[i].argmax() == base.following[i]

        i = draw.row(is_first_choice)
        given, _ = row_values(run, head, i)
        answer, row = given.pop("next"), queries[i]
        after = queries[i + 2] if i + 2 < len(queries) else None
        answers = {"read for predicted": row, "one back": queries[i - 1]}
        best = np.argsort(-base.logits[i], kind="stable")[1:4]
        more = [after, *run.checkpoint.outputs(best, repeat(base.preceding[i]))]
        given["row"] = names_of(queries)[i]
        shown, veil = {"next": answer}, (Veil("next tokens", place=i),)
        return self.choose(draw, answer, answers, more, given=given, shown=shown, veil=veil)

    def _most_crossings(self, draw: Draw) -> Question:
        run = draw.writing
        crossed = crossings(run.links)
        words = names_of(run.checkpoint.align(run.sentence).target)
        if not crossed or max(crossed) == 0 or crossed.count(max(crossed)) > 1:
            raise NoQuestion("Several lines tie for most crossings. Try another sentence.")
        ranked = sorted(range(len(crossed)), key=lambda n: -crossed[n])
        best, *others = [words[run.links[n][1]] for n in ranked]
        shown = {"answer": best, "crossings": str(max(crossed))}
        return self.choose(draw, best, {}, others, shown=shown, veil=(Veil("lines"),))


def crossings(links: list[tuple[int, int]]) -> list[int]:
    """How many other lines each line (source word, target word) crosses."""
    return [sum((a - c) * (b - d) < 0 for c, d in links) for a, b in links]


class SharesType(QuestionType):
    """A row to paint, and that a row adds up to 1."""

    name = "shares"
    asks: ClassVar = {
        "paint": PAINT,
        "covered weight": NUMBER,
        "weight after hiding": NUMBER,
        "only key": NUMBER,
    }
    sentences: ClassVar = {
        "one share of all": "You gave every token the same share. Attention rarely does.",
        "half for the first": "There is no second column to share with.",
        "the rest": "That is the sum of the others. The covered weight is the rest.",
        "column for row": "You added up the column. Only a row adds up to 100%.",
        "not renormalised": "The hidden share is not lost. The others grow until they add up "
        "to 100% again.",
        "gets all of it": "No single key gets all of it. All the others grow by the same factor.",
        "shared equally": "The hidden share is not handed out evenly, but in proportion.",
        "row above": "You painted the row above. Stay in the row of *{row}*.",
        "row below": "You painted the row below. Stay in the row of *{row}*.",
        "attention is meaning": "The matching word gets less: the row spreads its weight.",
    }

    def draw(self, draw: Draw) -> Question:
        run, head = draw.run, draw.of_head
        weights = run.weights(head)
        allowed = run.base.allowed(head.kind)
        if draw.ask == "only key":
            i = draw.row(lambda i: allowed[i].sum() == 1)
        else:
            # Half a percent and less would be within the tolerance of everything.
            second = draw.rows().second
            i = draw.row(lambda i: allowed[i].sum() > 1 and second[i] >= LIMITS["least"])
        row, n = weights[i], int(allowed[i].sum())
        order = np.argsort(-row, kind="stable")
        j, k = int(order[0]), int(order[min(1, len(order) - 1)])
        given, shown = row_values(run, head, i)
        veil = veil_of("row", head, i)
        if draw.ask == "paint":
            mistakes = self._painted(run, head, i)
            return Question(
                PAINT, row, given=given, shown=shown, misconceptions=mistakes, veil=veil
            )
        if draw.ask == "covered weight":
            answer = row[j]
            answers = {
                "one share of all": 1 / n,
                "the rest": 1 - row[j],
                "column for row": 1 - (weights[:, j].sum() - row[j]),
            }
            # With a decimal, so that rounding does not change what is left.
            names = names_of(run.keys(head))
            others = (f"{names[x]} {100 * row[x]:.1f}%" for x in range(len(row))
                      if x != j and allowed[i, x])  # fmt: skip
            given["others"] = ", ".join(others)
        elif draw.ask == "weight after hiding":
            answer = row[k] / (1 - row[j])
            answers = {
                "not renormalised": row[k],
                "gets all of it": row[j] + row[k],
                "shared equally": row[k] + row[j] / (n - 1),
            }
            given |= {name: shown.pop(name) for name in ("key", "second key")}
            given |= _printed(row[j], row[k])
            shown = {"rest": given.pop("rest")}
            veil = veil_of("change", head, i)
        else:
            answer = 1.0
            answers = {
                "one share of all": 1 / row.size if row.size > 1 else None,
                "half for the first": 0.5,
            }
        shown["answer"] = percent(answer)
        tolerance = 0 if draw.ask == "only key" else LIMITS["tolerance"]
        parts = {"given": given, "shown": shown, "veil": veil}
        return self.number(answer, answers, tolerance=tolerance, share=True, **parts)

    def _painted(self, run: SentenceRun, head: NamedHead, i: int) -> tuple[Misconception, ...]:
        """Here a misconception is a test of the painted row."""
        weights, found = run.weights(head), []
        truth = weights[i]
        for name, other in (("row above", i - 1), ("row below", i + 1)):
            if 0 <= other < len(weights) and distance(weights[other], truth) > 0.3:
                near = weights[other]
                found.append((name, lambda p, near=near: distance(p, near) <= 0.1))
        if head.kind == "cross" and run.writes:
            partner = run.partner.get(i + head.shift)
            if partner is not None and truth[partner] < 0.5:
                found.append(("attention is meaning", lambda p: p[partner] >= 0.8))
        return tuple(Misconception(name, test, self.sentences[name]) for name, test in found)


class NamedHeadType(QuestionType):
    """A head with a named pattern, to select, or to choose among four."""

    name = "named head"
    asks: ClassVar = {"find": FIND, "which": CHOOSE}
    sentences: ClassVar = {
        "next token": "The line lies above the diagonal: this head attends to the token *after*.",
        "previous token": "The line lies below the diagonal: this head attends to the token "
        "*before*.",
        "itself": "On the diagonal a token attends to itself.",
        "first-token sink": "A strongly coloured column means that all tokens attend to one token.",
    }
    CLEARLY_NOT = 0.2

    def draw(self, draw: Draw) -> Question:
        pattern, view = draw.keys["pattern"], draw.keys.get("view", {})
        measured = draw.run.once("measured", lambda: head_metrics.measured(draw.run.base))
        kinds = [view["kind"]] if "kind" in view else list(measured)
        scores = {}
        for kind in kinds:
            of_kind = measured[kind].scores if kind in measured else {}
            for layer, head in np.ndindex(*next(iter(of_kind.values())).shape) if of_kind else ():
                if view.get("layer", layer + 1) == layer + 1:
                    scores[kind, layer, head] = {
                        name: float(np.nan_to_num(s[layer, head])) for name, s in of_kind.items()
                    }
        fits = {h for h, s in scores.items() if s.get(pattern, 0) >= head_metrics.THRESHOLD}
        if not fits or len(fits) == len(scores):
            raise NoQuestion(LIMITS["no_head"].format(pattern=pattern))
        number = head_metrics.RULES[pattern].number
        share = max(float(measured[k].numbers[number][x, y]) for k, x, y in fits)
        shown = {"share": percent(share), "fitting": str(len(fits))}
        answers = {
            name: {h for h, s in scores.items()
                   if s.get(name, 0) >= head_metrics.THRESHOLD and h not in fits}
            for name in self.sentences
            if name != pattern
        }  # fmt: skip
        veil = (Veil("names"),)
        if draw.ask != "which":
            mistakes = self.mistakes({name: some for name, some in answers.items() if some}, None)
            return Question(FIND, frozenset(fits), shown=shown, misconceptions=mistakes, veil=veil)
        label = {h: f"{h[0]} layer {h[1] + 1} head {h[2] + 1}" for h in scores}
        unlike = [h for h in sorted(scores) if scores[h].get(pattern, 1) <= self.CLEARLY_NOT]
        if len(unlike) < 1:
            raise NoQuestion(f"On this sentence every head matches “{pattern}” a little.")
        right = label[draw.rng.choice(sorted(fits))]
        draw.rng.shuffle(unlike)
        mistaken = {
            name: next((label[h] for h in unlike if h in some), None)
            for name, some in answers.items()
        }
        more, shown["answer"] = [label[h] for h in unlike], right
        parts = {"given": {"pattern": pattern}, "shown": shown, "veil": veil}
        return self.choose(draw, right, mistaken, more, **parts)
