"""One head in words: its measures, the patterns it is nearest to, whether it was pruned.

A head that is `numbered` has its layer as the model, and so a survey and a card, counts it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from headlight.app.text.formats import Parts, escaped, signed
from headlight.model.analysis.head_metrics import (
    ALIGNS,
    MATCHES,
    NEIGHBOURS,
    RULES,
    SINK,
    SPREAD,
    Match,
    Measured,
    measure,
    nearest_names,
    rows_that_show,
    tokens_of,
    with_one_key,
)
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace
from headlight.model.rounding import fixed, percent
from headlight.model.surveys.survey import IN_WORDS, SIGNIFICANT, Survey

MAX_QUOTED_ROWS = 8  # rows that a sentence lists
SHARES = {  # fields of Measured that are shares of weight → their names
    "itself": "itself",
    "previous": "previous",
    "next": "next",
    "first": "first",
    "end": "the end token",
    "punctuation": "punctuation",
    "same_token": "same token",
    "diagonal": "the diagonal",
}

HABIT_TITLES = {  # habit → its name, and what such heads do
    ALIGNS: ("Align words", "most weight on the word that is needed"),
    MATCHES: ("Match tokens", "other copies of the same token"),
    NEIGHBOURS: ("Read the neighbours", "words nearby"),
    SPREAD: ("Spread out", "little on any one token"),
    SINK: ("Sinks", "on the first token, the end token or punctuation: often a way to do nothing"),
    "": ("No named pattern", "or too few rows to measure"),
}
SHORT_PATTERNS = {  # where the name of a pattern is too long for a caption
    "one-to-one": "1-to-1",
    "same token": "same",
    "previous token": "previous",
    "next token": "next",
    "first-token sink": "first",
    "end-of-sentence sink": "end",
    "punctuation": "punct.",
}


def caption(measured: Measured, layer: int, head: int, nearest: Match, aligned: float) -> str:
    """A head in two words: the measure of its nearest pattern, or, of one that aligns words, the
    share that it aligns."""
    if aligned:
        return f"aligns {percent(aligned)}"
    number = measured.numbers[RULES[nearest.name].number][layer, head]
    if nearest.name == "local":
        return f"±{fixed(number, 1)} tokens"
    if nearest.name == "broad":
        return f"{percent(number)} even"
    return f"{SHORT_PATTERNS.get(nearest.name, nearest.name)} {percent(number)}"


def head_finding(name: str, nearest: Match | None, aligned: float, without: str) -> Parts:
    """A sentence on what a head does, and `without`: what the model loses without it."""
    if aligned:
        does = f" attends most to the source word that is needed.{without}"
        return [(f"For {percent(aligned)} of the words, ", ""), (name, "em"), (does, "")]
    reason = nearest.reason if nearest else "it resembles none of the named patterns"
    return [(f"{name[0].upper()}{name[1:]}", "em"), (f": {reason}.{without}", "")]


def without_head(survey: Survey, numbered: Place) -> str:
    """What the model loses without a head, by the measure that its importance goes by, and whether
    that may be chance."""
    row, measure = survey.head(*numbered)[survey.measure], IN_WORDS[survey.measure]
    measure = measure.removesuffix(" (in points)")
    tested = survey.of(survey.measure)
    digits = 3 if survey.measure == "loss" else 1
    by = signed(abs(row["value"]), digits)
    if row["p_holm"] > SIGNIFICANT:
        sign = "−" if row["value"] < 0 else "+"
        by = f"{sign}{by}" if float(by) else f"less than {fixed(10**-digits, digits)}"
        return f" Without it, {measure} changes by {by}, not significant."
    clear = [one for one in tested if one["p_holm"] <= SIGNIFICANT]
    falls = row["value"] < 0
    alike = sum((one["value"] < 0) == falls for one in clear)
    change = "drop" if falls else "rise"
    only = f"the only clear {change}" if alike == 1 else f"one of {alike} clear {change}s"
    verb = "falls" if falls else "rises"
    return f" Without it, {measure} {verb} by {by}, {only} among {len(tested)} heads."


def is_missed(survey: Survey, numbered: Place) -> bool:
    """Whether the model needs a head: more is lost without it than by chance, whatever takes its
    place."""
    return bool(survey.needed(*numbered))


def most_needed(survey: Survey) -> tuple[str, int, int] | None:
    """Of the heads that the model needs, the one without which its loss rises most: kind, layer and
    head as on the screen. None where it needs none."""
    rows = [
        (row["value"], row["kind"], int(row["layer"]), int(row["head"]))
        for row in survey.of("loss")
    ]
    needed = [row for row in rows if is_missed(survey, Place(row[1], row[2] - 1, row[3] - 1))]
    return max(needed)[1:] if needed else None


LOSSES = {True: "a clear loss", False: "no clear loss", None: ""}


def badge(survey: Survey, numbered: Place) -> str:
    """Whether a head is important, in a few words; "" for one that was not surveyed."""
    loss = LOSSES[survey.needed(*numbered)]
    return "important" if is_missed(survey, numbered) else loss and f"{loss} without it"


def over_all(survey: Survey, numbered: Place) -> str:
    """How a sentence about one text ends: what a survey found; "" for a head that was not
    surveyed."""
    found = LOSSES[survey.needed(*numbered)]
    return found and f"; over {survey.card['sentences']:,} sentences, {found}"


def card(
    trace: Trace | LongTrace,
    kind: str,
    weights: np.ndarray,
    words: Sequence[str],
    surveyed: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """One head with weights (query, key) in Markdown: its measures, the patterns it is nearest to,
    each with a reason and the rows that show it best, and the rows with one visible key. `words`:
    what rows are called; `surveyed`: pattern → the head's match over many sentences, in words."""
    query, key, self_attention = tokens_of(trace, kind)
    weights = weights[None, None]
    measured = measure(weights, query, key, self_attention)
    numbers = head_numbers(measured, 0, 0)
    if [*words] != [*trace.texts_of(kind)[0].tokens]:  # a share of the words read: not of these
        numbers.pop("same_token", None)
    alone = _only_one_key(words, with_one_key(trace.allowed(kind)))
    if "entropy" not in numbers:
        return "\n\n".join(
            filter(
                None, ["Too short to measure: no row has more than one key to choose from.", alone]
            )
        )
    labels = SHARES | {"diagonal": "the diagonal (corner to corner)"}
    shares = ", ".join(
        f"{label} {percent(numbers[name])}" for name, label in labels.items() if name in numbers
    )
    lines = [
        f"Entropy {numbers['entropy']:.1f} bits · mean distance {numbers['distance']:.1f} "
        f"tokens · weight on: {shares}\n"
    ]
    for match in nearest_names(measured, 0, 0):
        many = f" ({surveyed[match.name]})" if match.name in surveyed else ""
        line = f"- **{match.name}** {percent(match.score)}{many}: {match.reason}"
        rows = rows_that_show(weights, query, key, self_attention, 0, 0, match.name)
        if rows and match.score > 0:
            line += f"; best examples: {quoted(words, rows)}"
        lines.append(line + ".")
    return "\n".join([*lines, *(["", alone] if alone else [])])


def surveyed_matches(survey: Survey, measured: Measured, layer: int, head: int) -> dict[str, str]:
    """Pattern → how well a head matches it over the sentences of a survey, of which `measured`
    is."""
    over = f"over {survey.card['sentences']:,} sentences: "
    scores = {name: float(of[layer, head]) for name, of in measured.scores.items()}
    return {name: over + percent(score) for name, score in scores.items() if score == score}


PRUNED = "This head was pruned. It attends to nothing and writes nothing."


def is_pruned(card: Mapping, numbered: Place) -> bool:
    """Whether a head was pruned, by the model's card."""
    return numbered._asdict() in card.get("pruned", ())


def _only_one_key(query: Sequence[str], rows: Sequence[int]) -> str:
    if not rows:
        return ""
    which = f"{quoted(query, rows[:MAX_QUOTED_ROWS])}{' …' if len(rows) > MAX_QUOTED_ROWS else ''}"
    row, has = ("Row", "has") if len(rows) == 1 else ("Rows", "have")
    return f"{row} {which} {has} only one visible key, which gets 100% of the weight."


def quoted(tokens: Sequence[str], rows: Sequence[int]) -> str:
    return ", ".join(f"“{escaped(tokens[row])}”" for row in rows)


INTERVAL, P = ", 95%", ", p"  # suffixes of column names: confidence interval, p-value


def in_all_sentences(survey: Survey, numbered: Place) -> str:
    """Whether a head behaves like this in all sentences of a survey."""
    return f"*Does this head always behave like this?* {survey.in_words(*numbered)}"


def importance(survey: Survey, numbered: Place) -> tuple[str, str]:
    """Whether the model needs a head, over all sentences of a survey, and what it loses without it;
    both empty for a head that was not surveyed."""
    verdict, change = survey.importance(*numbered)
    if not verdict:
        return "", ""
    return f"*Is this head important?* {verdict}", f"{change} {why_measures_differ(survey)}".strip()


def why_measures_differ(survey: Survey) -> str:
    """Why the loss, or the probability of one sentence, can change while the measure that
    `importance` goes by does not."""
    measure = IN_WORDS[survey.measure].removesuffix(" (in points)")
    if survey.measure == "loss":
        return ""
    counts = (
        "BLEU (0 to 100) scores only the finished translation"
        if survey.measure == "bleu"
        else f"{measure[0].upper()}{measure[1:]} counts only the answer that the model gives"
    )
    return f"{counts}, so it can stay the same while probabilities and the loss change."


def head_numbers(measured: Measured, layer: int, head: int) -> dict[str, float]:
    """The measures of a head that exist: a causal decoder, for example, has no next token to attend
    to."""
    return {
        name: float(values[layer, head])
        for name, values in measured.numbers.items()
        if measured.rows[name][layer, head]
    }
