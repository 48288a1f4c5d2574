"""Steps in which the student changes the live model until a condition holds.

An act is a mapping of settings by their key, as in a permalink: `changes`, `causal`, `pad_to`,
`line`, `beginning`, `how`, `temperature`, `seed`, …; for the three words `query`, their query."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headlight.app.lessons.formatting import change, fine_percent, text
from headlight.app.lessons.question import DO, Draw, Question, QuestionType
from headlight.app.lessons.question_types.attention import row_values
from headlight.app.lessons.question_types.decoding import best_clue
from headlight.app.lessons.question_types.statements import (
    SAME_LOGIT,
    ThreeVectors,
    moved_by_last_word,
    pad_length,
    softmax,
)
from headlight.app.lessons.sentence_run import (
    HeadRows,
    NamedHead,
    NoQuestion,
    SentenceRun,
)
from headlight.model.decoding.generate import Greedy, Sampling
from headlight.model.masks import Masks
from headlight.model.rounding import percent

MASKS = tuple(Masks.__dataclass_fields__)
LARGEST_PADDING = 200
TEMPERATURES = (2, 3, 4, 5, 6, 8, 10, 15, 20)
SEEDS = range(1, 9)  # that an example of sampling is looked for among; a step opens with 0


@dataclass(frozen=True)
class Condition:
    """When a `do` step is done, an act that meets it, and the step's placeholders."""

    met: Callable[[Mapping], bool]
    example: Mapping
    given: Mapping[str, str]
    shown: Mapping[str, str]


def masks_of(act: Mapping) -> Masks:
    return Masks(**{name: bool(act.get(name, True)) for name in MASKS})


def changes_of(act: Mapping) -> str:
    return str(act.get("changes", ""))


def padding_of(act: Mapping) -> int:
    return min(int(act.get("pad_to", 0)), LARGEST_PADDING)


def written_after(run: SentenceRun, act: Mapping) -> tuple[str, ...]:
    return run.written(changes_of(act), masks_of(act), padding_of(act))


def drawn_with(act: Mapping) -> Sampling:
    """As on the stage."""
    return Sampling(float(act.get("temperature", 1.0)), seed=int(act.get("seed", 0)))


def beginning_of(act: Mapping) -> tuple[int, ...]:
    ids = str(act.get("beginning", "")).strip()
    return tuple(int(part) for part in ids.split("-")) if ids else ()


def weights_after(run: SentenceRun, head: NamedHead, act: Mapping) -> np.ndarray:
    """(layers, heads, query, key) of the head's kind."""
    return run.trace(changes_of(act)).attention[head.kind]


def _row_of(draw: Draw) -> tuple[int, int, dict, dict]:
    i = draw.row()
    given, shown = row_values(draw.run, draw.of_head, i)
    return i, draw.rows().key(i), given, shown


def _hidden_in_head(draw: Draw) -> Condition:
    run, head = draw.run, draw.of_head
    i, j, given, shown = _row_of(draw)
    given["key"] = shown["key"]

    def met(act):
        weights = weights_after(run, head, act)
        here = weights[head.layer, head.head]
        elsewhere = np.delete(weights[head.layer], head.head, axis=0)
        # In this head alone: only there is the predicted share exact.
        return bool(here[:, j].max() == 0 and here[i].sum() > 0.99 and elsewhere[..., j].max() > 0)

    return Condition(met, {"changes": f"{head.scope}=hide:{j + 1}"}, given, shown)


def _answer_below_0(draw: Draw) -> Condition:
    def met(act):
        query = np.asarray(act.get("query", ThreeVectors.query), dtype=np.float64)
        if query.shape != (2,) or not np.isfinite(query).all():
            return False
        return bool(ThreeVectors.weights(query) @ ThreeVectors.values < 0)

    return Condition(met, {"query": ThreeVectors.keys[2].tolist()}, {}, {})


def steps_back(run: SentenceRun, head: NamedHead) -> int | None:
    """How many tokens back the first repeated row attends, if it is to the token after its earlier
    copy."""
    rows = HeadRows(run, head)
    i = next((i for i in range(len(rows.queries)) if rows.repeated(i)), None)
    if i is None or rows.key(i) != rows.queries.index(rows.queries[i]) + 1:
        return None
    return i - rows.key(i)


def _another_length(draw: Draw) -> Condition:
    run, head = draw.run, draw.of_head
    before = steps_back(run, head)
    if before is None or not draw.second_sentence:
        raise NoQuestion("Type a group of different letters, twice.")

    def after(sentence):
        other = SentenceRun(run.checkpoint, run.name, sentence)
        return steps_back(other, head)

    def met(act):
        back = after(str(act.get("line", run.sentence)))
        return back is not None and back != before

    shown = {"steps back now": str(after(draw.second_sentence))}
    return Condition(met, {"line": draw.second_sentence}, {"steps back": str(before)}, shown)


def _below_half(draw: Draw) -> Condition:
    run, head = draw.run, draw.of_head
    i, _, given, shown = _row_of(draw)
    scores = np.where(run.base.allowed(head.kind)[i], run.scores(head)[i], -np.inf)
    enough = next((t for t in TEMPERATURES if softmax(scores / t).max() < 0.5), None)
    if enough is None:
        raise NoQuestion(
            "This row attends to the same token at every temperature. Try another sentence."
        )

    def met(act):
        row = weights_after(run, head, act)[head.layer, head.head, i]
        same_leaders = (np.argsort(-row, kind="stable")[:2] == draw.rows().order[i, :2]).all()
        return bool(row.max() < 0.5 and abs(row.sum() - 1) < 1e-4 and same_leaders)

    example = {"changes": f"{head.scope}=temperature:{float(enough)}"}
    return Condition(met, example, given | {"enough": str(enough)}, shown)


def _causal_off(draw: Draw) -> Condition:
    moved, first = moved_by_last_word(draw.writing, Masks(causal=False))
    leaking = int((moved[:first] > SAME_LOGIT).sum())
    shown = {"earlier rows": str(first), "leaking rows": str(leaking)}
    return Condition(lambda act: not masks_of(act).causal, {"causal": False}, {}, shown)


def _padded(draw: Draw) -> Condition:
    run = draw.writing
    length, rows = pad_length(run), len(run.tgt)
    padded = softmax(run.trace(pad_to=length).logits[:rows].astype(np.float64))
    moved = np.abs(padded - softmax(run.base.logits.astype(np.float64))).max()

    def met(act):
        return padding_of(act) >= length and masks_of(act) == Masks()

    shown = {"largest change": change(float(moved))}
    return Condition(met, {"pad_to": length}, {"pad length": str(length)}, shown)


def _written_lacks(draw: Draw) -> Condition:
    run, head = draw.writing, draw.of_head
    i, j, given, shown = _row_of(draw)
    survives = "written without its key" in str(draw.keys.get("row"))
    token = run.tgt[i] if survives else run.label(head, i)
    columns = [j]
    given |= {"row": token, "key": shown["key"]}
    if survives:
        clue = best_clue(run, i, j)
        if clue is None:
            raise NoQuestion(f"No single other word gives {token} away. Try another sentence.")
        columns.append(clue)
        given["clue"] = run.src[clue]
    example = {"changes": run.hide(*columns)}
    if token in written_after(run, example):
        raise NoQuestion(f"The model writes {token} anyway. Try another sentence.")
    shown["written"] = text(written_after(run, example))

    def met(act):
        return token in run.written() and token not in written_after(run, act)

    return Condition(met, example, given, shown)


def _another_token(draw: Draw) -> Condition:
    run = draw.writing
    greedy = run.generation()
    ranked = np.argsort(-greedy.probabilities, axis=1, kind="stable")
    steps = sorted(range(len(ranked) - 1), key=lambda i: -greedy.probabilities[i, ranked[i, 1]])
    beginnings = ((*greedy.path[:i], int(ranked[i, 1])) for i in steps)

    def differs(beginning):
        return run.generation(Greedy(), beginning).tokens != greedy.tokens

    # Another token can lead to the same text, cut into other pieces.
    beginning = next(filter(differs, beginnings), None)
    if beginning is None:
        raise NoQuestion("The model is too sure of this sentence. Try another one.")

    def met(act):
        begins = beginning_of(act)
        if not begins or begins == greedy.path[: len(begins)]:
            return False
        # Raises for ids that the vocabulary has not.
        return run.generation(Greedy(), begins).path[: len(begins)] == begins

    shown = {"written": text(run.generation(Greedy(), beginning).tokens)}
    return Condition(met, {"beginning": "-".join(map(str, beginning))}, {}, shown)


def _differs_from_greedy(draw: Draw) -> Condition:
    run = draw.writing
    greedy = run.generation()

    def met(act):
        is_drawn = not {"temperature", "seed"}.isdisjoint(act)
        return is_drawn and run.generation(drawn_with(act)).tokens != greedy.tokens

    acts = ({"temperature": t, "seed": s} for t in (1.0, 1.5) for s in SEEDS)
    example = next((act for act in acts if met(act)), None)
    if example is None:
        raise NoQuestion("The model is too sure of this sentence. Try another one.")
    other = run.generation(drawn_with(example))
    shown = {
        "written": text(other.tokens),
        "probability": fine_percent(math.exp(other.score)),
        "greedy total": fine_percent(math.exp(greedy.score)),
    }
    return Condition(met, example, {}, shown)


UNTIL: dict[str, Callable[[Draw], Condition]] = {
    "hidden {key} in this head": _hidden_in_head,
    "answer below 0": _answer_below_0,
    "repeats with another length": _another_length,
    "largest weight below 50%": _below_half,
    "mask off causal": _causal_off,
    "padded, masks on": _padded,
    "written lacks {row}": _written_lacks,
    "another token chosen": _another_token,
    "written differs from greedy": _differs_from_greedy,
}


class ActType(QuestionType):
    """A task to carry out on the live model."""

    name = "act"
    asks: ClassVar = {"": DO}

    def draw(self, draw: Draw) -> Question:
        condition = UNTIL[draw.keys["until"]](draw)

        def done(act):
            try:
                return condition.met(act)
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
                return False  # an act that the model cannot do has done nothing

        return Question(
            DO,
            condition.example,
            given=condition.given,
            shown=condition.shown,
            done=done,
            row=draw.chosen[0] if draw.chosen else None,
        )


class ReadType(QuestionType):
    """Nothing to answer; only placeholders to fill."""

    name = "read"
    asks: ClassVar = {"": "read"}

    def draw(self, draw: Draw) -> Question:
        run, view = draw.run, draw.keys.get("view", {})
        weights = ThreeVectors.weights(ThreeVectors.query)
        best, values = int(weights.argmax()), ThreeVectors.values
        terms = (f"{w:.2f} · {v:g}" if v >= 0 else f"{w:.2f} · (−{-v:g})"
                 for w, v in zip(weights, values, strict=True))  # fmt: skip
        given = {
            "query": "rollercoaster",
            "keys": "fun, exciting and boring",
            "best key": ThreeVectors.names[best],
            "weight": percent(weights[best]),
            "sum in full": " + ".join(terms) + f" = {weights @ values:.2f}",
        }
        if "row" in draw.keys:
            _, _, of_row, shown = _row_of(draw)
            given |= of_row | shown
        if changes := view.get("changes"):
            given["written"] = text(run.written(changes))
        if draw.head and draw.head.kind == "decoder" and not run.writes:
            before, total = run.right_repeats()
            after, _ = run.right_repeats(f"{draw.head.scope}=off")
            given |= {"repeated": str(total), "right before": str(before)}
            given["right after"] = str(after)
        row = draw.chosen[0] if draw.chosen else None
        return Question("read", None, given=given, row=row)
