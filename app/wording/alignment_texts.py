"""Texts of the page Alignment."""

from collections.abc import Sequence

from headlight.model.analysis.alignment import GOLD, HeadAlignment

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
    names = [f"layer {sites[layer].layer + 1} head {head + 1}" for layer, head in heads]
    layers = {sites[layer].layer + 1 for layer, _ in heads}
    most = "Each target word is linked to the source word with the most weight"
    if len(heads) == 1:
        row = measured.shifts[tuple(heads[0])] if shift is None else shift
        return f"{most} in {names[0]}. A target word here is the {SHIFT_NAMES[row]}."
    if len(heads) > MOST_NAMED and len(layers) == 1:
        return f"{most} in layer {layers.pop()}, averaged over its {len(heads)} heads."
    shifts = [measured.shifts[tuple(one)] if shift is None else shift for one in heads]
    short = [
        f"{sites[layer].layer + 1}.{head + 1} ({MOMENTS[at]})"
        for (layer, head), at in zip(heads, shifts, strict=True)
    ]
    count = {2: "two", 3: "three", 4: "four"}.get(len(short), len(short))
    which = f"{', '.join(short[:-1])} and {short[-1]}"
    best = " that align best together" * (list(heads) == list(measured.heads))
    return f"{most}, averaged over the {count} heads{best}: {which}."


def alignment_explained(measured: HeadAlignment, sites, known: bool) -> str:
    """How the heads were measured and chosen: if `known`, on many sentences, or else on this
    one."""
    heads = " and ".join(
        f"layer {sites[layer].layer + 1} head {head + 1}" for layer, head in measured.heads
    )
    where = (
        "in other sentences"
        if known
        else "in this sentence, because none were chosen on other sentences"
    )
    right = (
        "one that a person linked"
        if measured.by == GOLD
        else "the word that the model needs most (hide it, and the log-probability of the "
        "target word falls most)"
    )
    return (
        "A row of the decoder has just read one token and predicts the next. Some heads attend "
        "for the token just read, others for the one predicted, as measured here. **Agreement**: "
        f"how often the source word with the largest weight is {right}. Best set: {heads}, which "
        f"agree on {measured.together:.0%} of {measured.words:,} target words {where}. Click a row "
        "to show that head."
    )
