"""Findings: sentences that say what a change did, in parts that the grid and Markdown both show.
Those that a live page says, too, are templates in strings.json."""

import math
import re
import sys
from itertools import dropwhile, takewhile

from headlight.app.text import STRINGS
from headlight.app.text.formats import Parts, signed
from headlight.model.rounding import percent

SAID = STRINGS["findings"]
NOTHING = SAID["nothing"]  # a probability that moves by no more is said not to move
NO_CHANGE, SAME_OUTPUT = SAID["no_change"], SAID["same_output"]
LEAST_BRIEF = 0.05  # a probability that moves by less is not worth a card's few words
# Templates of `moved`, of a row; FORMER where the model now writes another text, FINISHED where
# rows see the whole text.
AFTER, FORMER, FINISHED = "after", "former", "finished"
# The last where only the causal mask is off: while the model writes, its last row is the end of
# the text.
STAYS, STAYS_UNSEEN = (SAID[name].format(what="translation") for name in ("stays", "stays_unseen"))


def said(name: str, **values: object) -> Parts:
    """A template of strings.json, filled; what stands in it as *{token}* is a token."""
    pieces = re.split(r"\*\{(\w+)\}\*", SAID[name])
    parts = [
        word(str(values[piece])) if i % 2 else (piece.format(**values), "")
        for i, piece in enumerate(pieces)
    ]
    return [part for part in parts if part[0]]


def writes(lead: str, differences: Parts, text: str) -> Parts:
    """What a model writes, as the differences from another text, in quotes: the text may be in
    another language than the sentences around it."""
    if not text.strip():
        return [(lead.removesuffix(":") + SAID["writes_nothing"], "")]
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
    old, new = percent(before), percent(after)
    how = "hardly" if old == new else "falls" if after < before else "rises"
    # Without the last digits of a difference of floats, for which 1.0 would be 1.1 at most.
    most = f"{math.ceil(round(1000 * abs(after - before), 4)) / 10:.1f}"
    moves = SAID[how].format(before=old, after=new, most=most)
    return said(start, row=row, token=token, moves=moves)


def class_moved(old: str, new: str, before: float, after: float) -> Parts:
    name = "class_stays" if old == new else "class_changes"
    return said(name, now=new, before=percent(before), after=percent(after))


def first_difference(differences: Parts) -> Parts:
    """In a few words the first place where two texts differ, of the parts that
    `formats.differences` gives."""
    rest = dropwhile(lambda part: not part[1], differences)
    place = list(takewhile(lambda part: part[1] or not part[0].strip(), rest))
    is_lost = all(mark != "b" for _, mark in place)
    return [*place, ("is lost", "")] if is_lost else place


def would(parts: Parts) -> Parts:
    """A finding on what was changed, as one on what would be."""
    return [(text.replace(SAID["now"], SAID["would"]), mark) for text, mark in parts]


def brief_move(token: str, before: float, after: float) -> Parts:
    """“*rouge* 86% → 12%”, or that nothing moves much."""
    if abs(after - before) < LEAST_BRIEF:
        return [("little change", "")]
    return [word(token), (_arrow(before, after), "")]


def brief_swap(words: Parts, brief: Parts) -> Parts:
    """In a few words what another sentence does: its one new word, of the differences of both
    sentences, and what is new in the output."""
    new = [text for text, mark in words if mark == "b"]
    kept = [part for part in brief if part[1] == "b"] or brief
    return [(f"{new[0]}: ", ""), *kept] if len(new) == 1 else brief


def _arrow(before: float, after: float) -> str:
    return f" {percent(before).removesuffix('%')} → {percent(after)}"


def brief_class(old: str, new: str, before: float, after: float) -> Parts:
    how = "" if old == new else "→ "
    return [(how, ""), word(new), (_arrow(before, after), "")]


def peeking(layer: int, head: int, row: str, next_token: str, weight: float) -> Parts:
    """What a decoder row sees without the causal mask, and in which head, counted from 1."""
    return said("peeks", layer=layer, head=head, row=row, next=next_token, weight=percent(weight))


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


def without_head(head: str, what: str, before: float, after: float, over: str = "") -> Parts:
    """What switching a head off does: “Cross-attention, layer 3, head 3: without it, …”. `over`:
    what it does to other texts, as head_card.over_all ends the sentence."""
    if max(before, after) <= NOTHING:
        ends = f"stays below 0.1%; the log-probability {_log_moves(before, after)}"
    elif abs(before - after) <= NOTHING:
        ends = "stays the same"
    else:
        ends = _moves(before, after)
    return [(f"{head}: without it, the probability of {what} {ends}{over}.", "")]


def _moves(before: float, after: float) -> str:
    if percent(before) == percent(after):
        return f"stays at {percent(before)}"
    how = SAID["falls" if after < before else "rises"]
    return how.format(before=percent(before), after=percent(after))


def _log_moves(before: float, after: float) -> str:
    least = sys.float_info.min
    by = math.log(max(after, least)) - math.log(max(before, least))
    return f"{'falls' if by < 0 else 'rises'} by {abs(by):.2f}"


def probability(side: str, now: float, before: float) -> str:
    """How changes move the probability of a text, from its log-probabilities."""
    was, is_now = (percent(math.exp(number)) for number in (before, now))
    logs = f"log-probability {signed(before)} → {signed(now)}"
    return f"Probability of the {side}: {was} → **{is_now}** ({logs})"
