"""Texts of the page Alignment."""

from collections.abc import Sequence

from headlight.app.wording.formats import listed, percent
from headlight.model.analysis.alignment import GOLD, HeadAlignment
from headlight.model.surveys.survey import IN_WORDS, SIGNIFICANT, Survey

# by shift: a head aligns a word at the row that reads it, or that predicts it
SHIFT_NAMES = ("word just read", "word about to be written")
MOMENTS = ("once the word is read", "as it is about to be written")
MOST_NAMED = 3  # heads


def alignment_note(
    measured: HeadAlignment,
    heads: Sequence[tuple[int, int]],
    sites,
    shift: int | None,
) -> str:
    """What the lines show: the given heads, each at its own shift or all at one; without heads, the
    influence."""
    if not heads:
        return (
            "Each target word is linked to the source word without which its log-probability "
            "falls most. Thicker: a larger share of the falls for all source words."
        )
    attention = sites[0].title
    layers = {sites[layer].layer + 1 for layer, _ in heads}
    most = "Each target word is linked to the source word with the most weight"
    if len(heads) == 1:
        row = measured.shifts[tuple(heads[0])] if shift is None else shift
        ((layer, head),) = heads
        where = f"{attention}, layer {sites[layer].layer + 1} head {head + 1}"
        return f"{most} in {where}. Here, each target word is the {SHIFT_NAMES[row]}."
    if len(heads) > MOST_NAMED and len(layers) == 1:
        where = f"{attention}, layer {layers.pop()}"
        return f"{most} in {where}, averaged over its {len(heads)} heads."
    at_moment: dict[int, list[str]] = {}
    for layer, head in heads:
        at = measured.shifts[layer, head] if shift is None else shift
        at_moment.setdefault(at, []).append(f"{sites[layer].layer + 1}.{head + 1}")
    groups = [f"{listed(some)} ({MOMENTS[at]})" for at, some in at_moment.items()]
    count = {2: "two", 3: "three", 4: "four"}.get(len(heads), len(heads))
    which = listed(groups) if len(groups) == len(heads) else ", ".join(groups)
    best = " that align best together" * (list(heads) == list(measured.heads))
    return f"{most}, averaged over the {count} {attention} heads{best}: {which}."


def without_them(survey: Survey, heads: Sequence[tuple[int, int]], sites) -> str:
    """What a survey measured without each of some heads of these sites. Empty unless it has all."""
    measure, losses, sure, moves = survey.measure, [], [], set()
    for index, head in heads:
        site = sites[index]
        row = survey.head(site.kind, site.layer, head).get(measure)
        if row is None:
            return ""
        digits = 3 if measure == "loss" else 2
        by, low, high = (f"{row[name]:+.{digits}f}" for name in ("value", "low", "high"))
        name = f"{site.layer + 1}.{head + 1}"
        losses.append(f"{by} without {name} ({low} to {high})")
        if row["p_holm"] <= SIGNIFICANT:
            sure.append(name)
            moves.add("rises" if row["value"] > 0 else "falls")
    verdict = "does not change significantly when one of them is off"
    if sure:
        verdict = (
            f"{'changes' if len(moves) > 1 else min(moves)} significantly without {listed(sure)}"
        )
        others = len(heads) - len(sure)
        verdict += f", but not without the other{'s' * (others > 1)}" if others else ""
    name = IN_WORDS[measure]
    return (
        f"*Are these heads important?* Over {survey.card['sentences']:,} sentences, "
        f"{name.removesuffix(' (in points)')} {verdict}. Change in {name} (95% interval): "
        f"{listed(losses)}. Significance is corrected for testing {len(survey.of(measure))} heads."
    ).replace("-", "−")


def alignment_explained(measured: HeadAlignment, sites, known: bool) -> str:
    """How the heads were measured and chosen: if `known`, on many sentences, or else on this
    one."""
    heads = listed(
        [f"layer {sites[layer].layer + 1} head {head + 1}" for layer, head in measured.heads]
    )
    where = (
        "in other sentences"
        if known
        else "in this sentence, because none were chosen on other sentences"
    )
    right = (
        "one that a person linked"
        if measured.by == GOLD
        else "the one that the model needs most to predict the target word"
    )
    return (
        "A row of the decoder has just read one token and predicts the next. Some heads align "
        "the token just read, others the one predicted; the table shows which. **Agreement**: "
        f"how often the source word with the largest weight is {right}. Best set: {heads}, which "
        f"agree on {percent(measured.together)} of {measured.words:,} target words {where}. Click "
        "a row to show that head alone, and choose “Best heads” to return."
    )
