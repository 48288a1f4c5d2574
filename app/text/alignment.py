"""Texts of the page Alignment."""

from collections.abc import Sequence

from headlight.app.text.formats import listed
from headlight.model.analysis.alignment import HeadAlignment

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
