"""Findings: sentences that say what a change did, in parts that the grid and Markdown both show."""

import math
import re
import sys

from headlight.app.text.formats import Parts, signed, whole_percent

NOTHING = 0.001  # a probability that moves by no more is said not to move
NO_CHANGE = "No next-token probability changes by more than 0.1 percentage points."
SAME_OUTPUT = "The output stays the same."
AFTER = "After"  # a row
FORMER = "In the original translation, after"  # a row, where the model now writes another text
FINISHED = "Given the whole text, the probability of"  # a token, after a row
STAYS = "The translation stays the same. "
# Where only the causal mask is off. While the model writes, its last row is the end of the text.
STAYS_UNSEEN = (
    "The translation stays the same: while the model writes, there is no next token to see. "
)


def writes(lead: str, differences: Parts, text: str) -> Parts:
    """What a model writes, as the differences from another text, in quotes: the text may be in
    another language than the sentences around it."""
    if not text.strip():
        return [(f"{lead.removesuffix(':')} nothing. ", "")]
    ends = "” " if text.rstrip().endswith((".", "?", "!", "…")) else "”. "
    return [(f"{lead} “", ""), *differences, (ends, "")]


def with_other(line: str, model: str, step: str) -> str:
    """The lead of a comparison with another sentence, model or training step, "" for the same
    ones; or else with all masks."""
    others = [f"“{line}”"] if line else []
    others += [f"model {model}"] if model else []
    others += [f"step {step}"] if step else []
    return f"With {' and '.join(others or ['all masks'])} instead, "


def after_lead(lead: str, parts: Parts) -> Parts:
    """A finding that begins with what it is compared with."""
    (first, style), *rest = parts
    return [(lead, ""), (first[0].lower() + first[1:], style), *rest]


def word(token: str) -> tuple[str, str]:
    """A token of a text, as part of a sentence: punctuation, which italics hardly change, in
    quotes."""
    text = token.strip() or token
    return (text, "em") if re.search(r"\w", text) else (f"“{text}”", "")


def moved(row: str, token: str, before: float, after: float, start: str = AFTER) -> Parts:
    """“After *roten*, the probability of *Kleid* falls from 93% to 7%.”"""
    verb = "falls" if after < before else "rises"
    ends = f" {verb} from {whole_percent(before)} to {whole_percent(after)}."
    if abs(round(100 * after) - round(100 * before)) < 1:
        most = math.ceil(1000 * abs(after - before)) / 10
        ends = f" changes most, by at most {most:.1f} percentage points."
    first, between, second = row, ", the probability of ", token
    if start == FINISHED:
        first, between, second = token, " after ", row
    return [(f"{start} ", ""), word(first), (between, ""), word(second), (ends, "")]


def class_moved(old: str, new: str, before: float, after: float) -> Parts:
    what = "The class stays " if old == new else "The class changes to "
    return [(what, ""), word(new), (f": {whole_percent(before)} → {whole_percent(after)}.", "")]


def peeking(layer: int, head: int, row: str, next_token: str, weight: float) -> Parts:
    """What a decoder row sees without the causal mask, and in which head, counted from 1."""
    where = f"Without the causal mask, the decoder peeks: in its self-attention {layer}.{head}, "
    parts = [(where, ""), word(row), (" attends to the next token, ", ""), word(next_token)]
    return [*parts, (f" ({whole_percent(weight)}).", "")]


def most_needed(part: str, kind: str, what: str, before: float, after: float) -> Parts:
    """Which part of a sweep the output needs most: “In this text, without *cross-attention, layer
    4, head 3*, …”. `kind`: of the parts, as in “head”; `what`: whose probability it is."""
    if after >= before:
        return [(f"No probability is lost without any single {kind}.", "")]
    if before <= NOTHING:  # no percentages can tell
        ends = f", the log-probability of {what} {_log_moves(before, after)}"
    elif before - after <= NOTHING:
        return [(f"Almost nothing is lost without any single {kind}.", "")]
    else:
        ends = f", the probability of {what} {_moves(before, after)}"
    return [
        ("In this text, without ", ""),
        (part, "em"),
        (f"{ends}, more than without any other {kind}.", ""),
    ]


def without_head(head: str, what: str, before: float, after: float) -> Parts:
    """What switching a head off does: “Cross-attention, layer 3, head 3: without it, …”."""
    if max(before, after) <= NOTHING:
        ends = f"stays below 0.1%; the log-probability {_log_moves(before, after)}."
    elif abs(before - after) <= NOTHING:
        ends = "stays the same."
    else:
        ends = f"{_moves(before, after)}."
    return [(f"{head}: without it, the probability of {what} {ends}", "")]


def _moves(before: float, after: float) -> str:
    if whole_percent(before) == whole_percent(after):
        return f"stays at {whole_percent(before)}"
    verb = "falls" if after < before else "rises"
    return f"{verb} from {whole_percent(before)} to {whole_percent(after)}"


def _log_moves(before: float, after: float) -> str:
    least = sys.float_info.min
    by = math.log(max(after, least)) - math.log(max(before, least))
    return f"{'falls' if by < 0 else 'rises'} by {abs(by):.2f}"


def probability(side: str, now: float, before: float) -> str:
    """How changes move the probability of a text, from its log-probabilities."""
    was, is_now = (whole_percent(math.exp(number)) for number in (before, now))
    logs = f"log-probability {signed(before)} → {signed(now)}"
    return f"Probability of the {side}: {was} → **{is_now}** ({logs})"
