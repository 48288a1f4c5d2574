"""Statements of which exactly one holds: the run decides."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from headlight.app.lessons.formatting import change, fine_percent, number, text
from headlight.app.lessons.question import (
    CHOOSE,
    Draw,
    Misconception,
    Question,
    QuestionType,
    Veil,
)
from headlight.app.lessons.question_types.attention import row_values
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun, is_word
from headlight.model.analysis.streams import WordOrigin
from headlight.model.analysis.why import MEETING, PLACE
from headlight.model.decoding.generate import Beam
from headlight.model.masks import Masks
from headlight.model.rounding import percent
from headlight.model.tokenizer import CannotRead

SAME_LOGIT, SAME_WEIGHT, SAME_TEXT = 1e-5, 1e-6, 0.1  # largest changes; of a text in nats
SCORES = (0.0, 0.7, 1.1, 1.6)
Facts = tuple[dict[str, bool], dict[str, str], dict[str, str]]  # conditions, given, shown


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class ThreeVectors:
    """Attention as a dictionary of three words, as on the page Query–key–value: `rollercoaster`
    asks `fun`, `exciting` and `boring`."""

    names = ("fun", "exciting", "boring")
    keys = np.array([[5.0, -3.0], [6.0, -1.0], [-4.0, 8.0]])
    values = np.array([10.0, 9.0, -3.0])
    query = np.array([8.0, -5.0])

    @classmethod
    def weights(cls, query: np.ndarray) -> np.ndarray:
        return softmax(cls.keys @ query / math.sqrt(2))


def pad_length(run: SentenceRun) -> int:
    """The length that lessons pad the source to."""
    return len(run.src) + 8


def moved_by_last_word(run: SentenceRun, masks: Masks) -> tuple[np.ndarray, int]:
    """How far each row's logits move when the last word of the target is replaced, (row,), and the
    first row that reads that word."""
    base = run.checkpoint.run(run.sentence)
    source, target = base.texts
    words = [i for i in range(len(target.ids)) if is_word(target.tokens, i)]
    if not words:
        raise NoQuestion("This translation has no word to replace. Try another sentence.")
    last, ids = words[-1], list(target.ids)
    ids[last] = next((i for i in ids if i != ids[last]), run.checkpoint.model.config.eos_id)
    replaced = replace(target, ids=tuple(ids))
    before = run.checkpoint.trace_run(replace(base, masks=masks))
    after = run.checkpoint.trace_run(replace(base, masks=masks, texts=(source, replaced)))
    return np.abs(before.logits - after.logits).max(axis=-1), last + 1


def _sums(draw: Draw) -> Facts:
    weights, keys = draw.run.weights(draw.of_head), draw.run.keys(draw.of_head)
    columns = weights.sum(axis=0)
    largest, smallest = int(columns.argmax()), int(columns.argmin())
    rows_sum = bool(np.abs(weights.sum(axis=1) - 1).max() < 1e-4)
    columns_sum = bool(np.abs(columns - 1).max() < 0.02)
    shown = {
        "column": keys[largest],
        "column sum": percent(columns[largest]),
        "low column": keys[smallest],
        "low column sum": percent(columns[smallest]),
    }
    conditions = {
        "rows sum to 1": rows_sum,
        "rows do not sum to 1": not rows_sum,
        "columns sum to 1": columns_sum,
        "columns do not sum to 1": not columns_sum,
    }
    return conditions, {}, shown


def _value_doubled(draw: Draw) -> Facts:
    weights = ThreeVectors.weights(ThreeVectors.query)
    best, doubled = int(weights.argmax()), ThreeVectors.values.copy()
    doubled[best] *= 2
    before, after = float(weights @ ThreeVectors.values), float(weights @ doubled)
    moves = abs(after - before) > 0.01
    conditions = {
        "weights change": False,  # values do not enter the scores
        "weights stay": True,
        "answer changes": moves,
        "answer stays": not moves,
    }
    shown = {"answer before": f"{before:.2f}", "answer after": f"{after:.2f}"}
    return conditions, {"best key": ThreeVectors.names[best]}, shown


def _plus_five(draw: Draw) -> Facts:
    before, after = (softmax(np.array(SCORES) + x) for x in (0, 5))
    conditions = {
        "weights stay": bool(np.abs(after - before).max() < SAME_WEIGHT),
        "weights grow": bool((after > before + SAME_WEIGHT).all()),
        "largest weight grows": bool(after.max() > before.max() + SAME_WEIGHT),
    }
    return conditions, {}, {}


def _without_root(draw: Draw) -> Facts:
    run, head = draw.run, draw.of_head
    root = math.sqrt(run.base.query[head.kind].shape[-1])
    allowed = run.base.allowed(head.kind)
    scores = np.where(allowed, run.scores(head), -np.inf)
    before, after = softmax(scores), softmax(scores * root)

    def entropies(weights):
        logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        return -(weights * logs).sum(axis=-1)

    free = allowed.sum(axis=-1) > 1
    fall = (entropies(before) - entropies(after))[free]
    i = draw.row()
    given, shown = row_values(run, head, i)
    given |= {
        "d_head": number(root**2),
        "root": number(root, 3),
    }
    shown["weight without"] = percent(float(after[i].max()))
    conditions = {
        "rows get flatter": bool(fall.mean() < -0.01),
        "rows get sharper": bool(fall.mean() > 0.01),
        "rows stay": bool(abs(fall.mean()) <= 0.01),
    }
    return conditions, given, shown


def _last_word(draw: Draw) -> Facts:
    moved, first = moved_by_last_word(draw.run, Masks())
    earlier, later = moved[:first], moved[first:]
    conditions = {
        "later rows change": bool(later.max() > SAME_LOGIT),
        "later rows stay": bool(later.max() <= SAME_LOGIT),
        "earlier rows change": bool(earlier.max() > SAME_LOGIT),
        "earlier rows stay": bool(earlier.max() <= SAME_LOGIT),
    }
    shown = {
        "earlier rows": str(first),
        "largest earlier change": change(float(earlier.max())),
    }
    return conditions, {}, shown


def _probability(run: SentenceRun, **masks) -> tuple[dict[str, bool], dict[str, str]]:
    """Conditions and placeholders for how the probability of the translation moves."""
    before = float(run.log_probabilities.sum())
    after = float(run.trace(**masks).log_probabilities[: len(run.tgt)].sum())
    conditions = {
        "probability rises": after > before + SAME_TEXT,
        "probability falls": after < before - SAME_TEXT,
        "probability stays": abs(after - before) <= SAME_TEXT,
    }
    shown = {
        "probability before": fine_percent(math.exp(before)),
        "probability after": fine_percent(math.exp(after)),
        "written": text(run.written(**masks)),
    }
    return conditions, shown


def _causal_off(draw: Draw) -> Facts:
    conditions, shown = _probability(draw.run, masks=Masks(causal=False))
    return conditions, {}, shown


def _padding_leaks(draw: Draw) -> Facts:
    run, off = draw.run, Masks(src_padding=False, memory_padding=False)
    n, length = len(run.src), pad_length(run)
    conditions, shown = _probability(run, masks=off, pad_to=length)
    encoder = run.trace(masks=off, pad_to=length).attention["encoder"]
    share = float(encoder[:, :, :n, n:].sum(axis=-1).mean())
    conditions |= {"weight on padding": share > 0.02, "no weight on padding": share <= 0.02}
    return conditions, {"pad length": str(length)}, shown | {"share on padding": percent(share)}


def _another_translation(draw: Draw) -> Facts:
    run = draw.run
    other = run.checkpoint.trace(run.sentence, target=text(run.tgt[:0:-1]))
    first = np.abs(other.attention["encoder"][0] - run.base.attention["encoder"][0]).max()
    output = np.abs(other.stream["src"][-1] - run.base.stream["src"][-1]).max()
    conditions = {
        "first layer changes": bool(first >= SAME_WEIGHT),
        "first layer stays": bool(first < SAME_WEIGHT),
        "output changes": bool(output >= SAME_WEIGHT),
        "output stays": bool(output < SAME_WEIGHT),
    }
    return conditions, {}, {"largest change": change(float(max(first, output)))}


def _row_emptied(draw: Draw) -> Facts:
    run, head = draw.run, draw.of_head
    i = draw.row(lambda i: i > 0)
    given, _ = row_values(run, head, i)
    emptied = run.trace(f"cross=forbid:{i + 1}>1-{len(run.src)}").log_probabilities
    moved = float(abs(emptied[i - 1] - run.log_probabilities[i - 1]))
    conditions = {
        "row's token changes": moved > SAME_LOGIT,
        "row's token stays": moved <= SAME_LOGIT,
    }
    return conditions, given | {"row": run.tgt[i]}, {"change": change(moved)}


def _why_this_key(draw: Draw) -> Facts:
    run, head = draw.run, draw.of_head
    i = draw.row()
    given, shown = row_values(run, head, i)
    key = int(run.weights(head)[i].argmax())
    cell = f"{head.scope}={i + 1}>{key + 1}"
    try:
        found = run.once(
            ("why", cell), lambda: run.checkpoint.why(run.checkpoint.run(run.sentence), cell)
        )
    except CannotRead as error:
        raise NoQuestion("The reasons of this head's weights are not known.") from error
    (_, offer, value), *_ = found.largest(1)
    token = offer.token if found.kind == MEETING and isinstance(offer, WordOrigin) else None
    shown["share"] = percent(value / found.margin)
    *_, without = [0.0, *(tested.weight for tested in found.without.values())]
    shown["without"] = percent(without)
    conditions = {
        "the letter there leads": token == key,
        "the letter before leads": token == key - 1,
        "the places lead": found.kind == PLACE,
    }
    return conditions, given | {"key": shown.pop("key")}, shown


def _greedy_against_beams(draw: Draw) -> Facts:
    run, parting = draw.run, draw.run.parting()
    greedy, beam = run.generation(), run.generation(Beam(4))
    same = greedy.tokens == beam.tokens
    shown = {
        "greedy text": text(greedy.tokens),
        "beam text": text(beam.tokens),
        "common beginning": text(greedy.tokens[:parting]) or "the start",
    }
    return {"same text": same, "different text": not same}, {}, shown


ABOUT: dict[str, tuple[Callable[[Draw], Facts], bool, tuple[str, ...]]] = {
    # question → its facts, whether the model must write a translation, conditions
    "": (_sums, False, ("rows sum to 1", "rows do not sum to 1",
                        "columns sum to 1", "columns do not sum to 1")),
    "three words with one value doubled": (
        _value_doubled, False,
        ("weights change", "weights stay", "answer changes", "answer stays")),
    "four scores, each plus 5": (
        _plus_five, False, ("weights stay", "weights grow", "largest weight grows")),
    "this head without √d": (
        _without_root, False, ("rows get flatter", "rows get sharper", "rows stay")),
    "last word replaced, causal mask on": (
        _last_word, True, ("later rows change", "later rows stay",
                           "earlier rows change", "earlier rows stay")),
    "causal mask off": (
        _causal_off, True, ("probability rises", "probability falls", "probability stays")),
    "padded, padding masks off": (
        _padding_leaks, True, ("weight on padding", "no weight on padding", "probability rises",
                               "probability falls", "probability stays")),
    "another translation typed": (
        _another_translation, True, ("first layer changes", "first layer stays",
                                     "output changes", "output stays")),
    "the row of a token emptied": (
        _row_emptied, True, ("row's token changes", "row's token stays")),
    "why this key": (
        _why_this_key, False, ("the letter there leads", "the letter before leads",
                               "the places lead")),
    "greedy against beam width 4": (
        _greedy_against_beams, True, ("same text", "different text")),
}  # fmt: skip


def conditions_of(option: dict) -> list[str]:
    return [name.strip() for name in option["if"].split(",")]


class StatementType(QuestionType):
    """Written statements, each with the conditions that make it true."""

    name = "statement"
    asks: ClassVar = {"": CHOOSE}

    def draw(self, draw: Draw) -> Question:
        facts, of_translation, _ = ABOUT[draw.keys.get("about", "")]
        if of_translation:
            _ = draw.writing
        conditions, given, shown = facts(draw)
        options = draw.keys["options"]
        true = [o["say"] for o in options if all(conditions[c] for c in conditions_of(o))]
        if len(true) != 1:
            raise NoQuestion("For this sentence, none of the statements is true, or several are.")
        wrong = (o for o in options if o["say"] != true[0])
        return Question(
            CHOOSE,
            true[0],
            tuple(o["say"] for o in options),
            given=given,
            shown=shown,
            misconceptions=tuple(
                Misconception(o["say"], o["say"], o.get("because", "No.")) for o in wrong
            ),
            veil=(Veil("change"),),
            row=draw.chosen[-1] if draw.chosen else None,
        )
