"""The lines of another run, which are drawn dashed under those of the displayed one."""

from collections.abc import Callable

from headlight.app import selection
from headlight.model.analysis.alignment import Links, WordWeights
from headlight.model.probing.run import Run


def links_before(
    run: Run,
    words: WordWeights,
    words_of: Callable[[Run], WordWeights],
    links_of: Callable[[WordWeights], Links],
) -> Links:
    """The links of the run that a displayed one, with these `words`, is compared with; none if it
    is the same run, or its words differ."""
    before = selection.other_run() or selection.run(changed=False)
    if before == run:
        return frozenset()
    other = words_of(before)
    same = (other.source, other.target) == (words.source, words.target)
    return links_of(other) if same else frozenset()


def dashed(gone: Links) -> str:
    """What the dashed lines are, as a sentence behind others; "" if there are none."""
    if not gone:
        return ""
    which = "only the comparison has" if selection.other_run() else "were there before the changes"
    return f" Dashed: lines that {which}."
