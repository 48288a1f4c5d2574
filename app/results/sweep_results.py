"""Sweeps: one change at a time, and what that costs."""

from itertools import chain

from headlight.app.results import memoize
from headlight.app.results.memoize import (
    CORES,
    SHORT,
    SMALL_RESULT,
    cached,
    threads,
    token_count,
)
from headlight.app.results.shown import Shown
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.probing.changes import PatchInputs
from headlight.model.probing.sweeps import Score, Sweep, changes_of, sweeping
from headlight.model.probing.trace import CannotRead, read_of

# Limits of a sweep: in tokens (about ten seconds for a small model on two cores), in tokens ×
# parameters (about a minute), and in tokens × parameters below which it is not noticeable.
MAX_SWEEP_TOKENS, MAX_SWEEP_WORK, UNNOTICED_WORK = 500_000, 2 * 10**12, 5 * 10**10


def is_quick(shown: Shown) -> bool:
    """Whether a sweep over all heads is too fast to be noticed. Raises CannotRead."""
    if shown.view.checkpoint.lacks:
        return False
    work = tokens_of_sweep(shown, "heads") * shown.view.parameters
    return token_count(shown.run) < SHORT and work <= UNNOTICED_WORK


def sweep_of(shown: Shown, name: str, score: Score = Score(), further: bool = False) -> Sweep:
    """The effects of a sweep's changes (see SWEEPS in model/probing/sweeps.py) on a score of the
    run, as far as measured: after the first pass, or with `further` after one more. Raises
    CannotChange."""
    key = ("sweep", name, score), shown.view.device, shown.view.stamp, shown.run
    known = memoize.results_cache().known(key)
    if known is None or (further and known.missing):
        changes = changes_of(shown.view.model, shown.run, name)
        given = _given(shown, name)
        # Its batches keep all cores at work.
        with (
            threads(shown.view.model, token_count(shown.run), CORES),
            reporting("One change at a time"),
        ):
            known = next(sweeping(shown.view.model, shown.run, changes, score, given, known))
        memoize.results_cache().put(key, known, SMALL_RESULT + known.nbytes)
    return known


@cached(lambda given: SMALL_RESULT + sum(value.nbytes for value in given.other.values()))
def _given(shown: Shown, name: str) -> PatchInputs:
    """What all passes of a sweep take from elsewhere."""
    changes = changes_of(shown.view.model, shown.run, name)
    return shown.view.checkpoint.given(shown.run, shown.donor, also=chain.from_iterable(changes))


def most_tokens(view: ModelView) -> int:
    """The largest number of tokens that one sweep may run through a model."""
    return min(MAX_SWEEP_TOKENS, MAX_SWEEP_WORK // view.parameters)


def tokens_of_sweep(shown: Shown, name: str) -> int:
    """The number of tokens that a sweep runs through the model. Raises CannotRead."""
    each = sum(len(text.ids) for text in read_of(shown.view.model, shown.run).values())
    return each * len(changes_of(shown.view.model, shown.run, name))


def check_removals(shown: Shown) -> None:
    """Raises CannotRead if the text is too long to hide its tokens one by one."""
    lengths = [len(text.ids) for text in read_of(shown.view.model, shown.run).values()]
    tokens, most = lengths[0] * sum(lengths), MAX_SWEEP_WORK // shown.view.parameters
    if tokens > most:
        raise CannotRead(too_many_removals(tokens, most))


def too_many_removals(tokens: int, most: int) -> str:
    return (
        f"Leaving out one token at a time would send {tokens:,} tokens through the model; the "
        f"limit is {most:,}. Use a shorter text."
    )
