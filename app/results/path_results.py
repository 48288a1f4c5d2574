"""Paths that carry the difference between two sentences."""

from contextlib import suppress
from functools import partial

from headlight.app.results.memoize import cached, memoize_pass
from headlight.app.results.shown import Shown
from headlight.app.results.sweep_results import most_tokens, sweep_of, tokens_of_sweep
from headlight.app.state import catalog
from headlight.model.analysis.paths import Circuits, Paths, carrying, contrast
from headlight.model.probing.sweeps import Score, Sweep
from headlight.model.probing.trace import CannotRead


def paths_of(shown: Shown, further: bool) -> Paths | Sweep:
    """The paths that carry the difference between a run and its comparison; or the sweep that finds
    them, after its first pass or with `further` after one more. Raises CannotRead and
    CannotChange."""
    tokens, most = tokens_of_sweep(shown, "paths"), most_tokens(shown.view)
    if tokens > most:
        raise CannotRead(
            f"Changing all paths one at a time would send {tokens:,} tokens through the model; the "
            f"limit is {most:,}. Use shorter sentences."
        )
    swept = sweep_of(shown, "paths", _score(shown), further)
    return swept if swept.missing else memoize_pass(shown, "paths", partial(_paths, shown, swept))


@cached()
def _score(shown: Shown) -> Score:
    return contrast(shown.view.model, shown.run)[0]


def _paths(shown: Shown, swept: Sweep) -> Paths:
    """Of a whole sweep; tried on the model's other minimal pairs."""
    checkpoint, own = shown.view.checkpoint, Circuits(shown.view.model, shown.run)
    held, texts = [], [run.texts[0] for run in (own.run, own.run.other) if run]
    for pair in catalog.pairs(shown.view.name):
        if [checkpoint.encode(text) for text in pair] != texts:
            with suppress(CannotRead):
                held.append(Circuits(own.model, checkpoint.compared(*pair)))
    return carrying([own], [swept], held, checkpoint.outputs(own.tokens))
