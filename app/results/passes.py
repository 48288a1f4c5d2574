"""One forward pass of a run, and what can be read off its trace."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from headlight.app.results.memoize import (
    SMALL_RESULT,
    memoize,
    memoize_pass,
    nbytes,
    per_run,
    threads,
)
from headlight.app.state import catalog
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import finite, leak, positions
from headlight.model.analysis.domain import SPLIT, SURPRISE, Domain, split_share, surprise
from headlight.model.analysis.reading import LabelledWeights, Reading
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Generation, How
from headlight.model.masks import Masks
from headlight.model.probing import long_trace
from headlight.model.probing.long_trace import LongTrace, Weights
from headlight.model.probing.run import Run
from headlight.model.probing.trace import TooLarge, Trace, bytes_of_weights, read_of
from headlight.model.tokenizer import Encoding

NO_TEXT = Encoding((), (), ())
LARGEST_TRACE = 2**30  # bytes of weights; those of a longer text are reduced during the pass


def donor_of(view: ModelView, run: Run) -> Checkpoint | None:
    """A view of the model that patches are taken from; None if it is the run's own model."""
    other = run.other
    if other is None or (other.checkpoint, other.step) == (view.name, view.step):
        return None
    return catalog.view_of(other.checkpoint, other.step, view.device).checkpoint


@per_run(nbytes)
def trace_of(view: ModelView, run: Run, written: bool = False) -> Trace | LongTrace:
    """The trace of one pass; `written`: over a generated target, see Checkpoint.given. If the
    weights would fill the memory, a LongTrace; `attention_of` then computes them. Raises CannotRead
    and CannotChange."""
    if is_whole(view, run):
        with suppress(TooLarge):
            return _trace(view, run, written)
    with reporting("Running the model on a long text"):
        return view.checkpoint.long_trace_run(run, donor_of(view, run), written)


def _trace(view: ModelView, run: Run, written: bool) -> Trace:
    with reporting("Running the model"):
        return view.checkpoint.trace_run(run, donor_of(view, run), written)


def is_whole(view: ModelView, run: Run) -> bool:
    """Whether all weights of a run fit into LARGEST_TRACE. Raises CannotRead."""
    weights = bytes_of_weights(view.model.sites(), read_of(view.model, run))
    return weights <= LARGEST_TRACE


def whole_trace_of(view: ModelView, run: Run, written: bool = False) -> Trace:
    """Like trace_of, always with the weights of all heads; raises TooLarge if they do not fit."""
    if is_whole(view, run):
        traced = trace_of(view, run, written)
        if isinstance(traced, Trace):
            return traced
    name, make = ("whole trace", written), partial(_trace, view, run, written)
    return memoize_pass(view, run, name, make, nbytes)


def attention_of(view: ModelView, run: Run, written: bool = False) -> Mapping[str, Weights]:
    """Kind → the weights of all its heads, (layers, heads, query, key); for a long text each layer
    is computed on demand."""
    return long_trace.attention_of(view.model, trace_of(view, run, written))


def head_of(view: ModelView, run: Run, kind: str, layer: int, head: int) -> np.ndarray:
    """The weights of one head, (query, key)."""
    traced = trace_of(view, run)
    if isinstance(traced, Trace):
        return traced.attention[kind][layer, head]

    def make():
        # a copy, so that the other heads can be freed
        return attention_of(view, run)[kind][layer][head].copy()

    return memoize_pass(view, run, ("head", kind, layer, head), make, nbytes)


def written_rows(view: ModelView, run: Run, kind: str, rows: slice) -> np.ndarray:
    """Some rows of the weights of a generated target, (row, layer, head, key)."""

    def make():
        # copies, so that the rest of each layer can be freed
        layers = [layer[:, rows].copy() for layer in attention_of(view, run, written=True)[kind]]
        return np.stack(layers).transpose(2, 0, 1, 3)

    if isinstance(trace_of(view, run, written=True), Trace):
        return make()
    name = "written rows", kind, rows.start, rows.stop
    return memoize_pass(view, run, name, make, nbytes)


def picture_of(
    view: ModelView, run: Run, kind: str, layer: int, head: int, reading: Reading
) -> LabelledWeights:
    """One head, or a mean over heads, as `reading` asks."""
    traced = trace_of(view, run)

    def make():
        weights = attention_of(view, run)[kind]
        return reading.apply(weights, layer, head, *traced.texts_of(kind))

    if isinstance(traced, Trace):
        return make()
    name = "picture", kind, layer, head, reading
    return memoize_pass(view, run, name, make, lambda result: result.weights.nbytes)


def target_of(
    view: ModelView,
    text: str,
    masks: Masks = Masks(),
    pad_to: int = 0,
    changes: str = "",
    other: Run | None = None,
) -> Encoding:
    """The model's translation of a text, with patches from another run. Raises CannotRead and
    CannotChange."""

    def make():
        donor = donor_of(view, Run((), other=other))
        tokens = len(view.tokenizer.encode(text).ids)
        with threads(view.model, tokens), reporting("Writing the target"):
            return view.checkpoint.translate(text, masks, pad_to, changes, other, donor)

    weights = view.name, view.step, view.device, view.stamp
    key = "target", *weights, text, masks, pad_to, changes, other
    return memoize(key, make, lambda result: SMALL_RESULT)


def generation_of(view: ModelView, run: Run, how: How, beginning: Sequence[int] = ()) -> Generation:
    """The model's output for the first text of a run, step by step. Raises CannotRead and
    CannotChange."""
    run = replace(run, texts=(run.texts[0], *(NO_TEXT for _ in run.texts[1:])))

    def make():
        with reporting("Writing"):
            return view.checkpoint.generate(run, how, beginning, donor=donor_of(view, run))

    key = "generated", how, tuple(beginning)
    return memoize_pass(view, run, key, make, nbytes)


def as_trained(run: Run) -> Run:
    """The same run with all masks on and without changes."""
    return replace(run, masks=Masks(), changes=())


def log_probability(view: ModelView, run: Run) -> float:
    """The total log-probability of the predicted tokens of a run."""
    return float(np.nansum(np.log(answers_of(view, run).wanted)))


def is_unlike(domain: Domain, view: ModelView, run: Run) -> bool:
    """Whether the first text of a run is unlike the training text."""
    traced = trace_of(view, run)

    def make():
        text = view.tokenizer.decode(run.texts[0].ids)
        measures = {SPLIT: split_share(view.tokenizer, text)}
        if SURPRISE in domain.ranges:
            measures[SURPRISE] = surprise(traced)
        return domain.excludes(measures)

    return memoize_pass(view, run, "unlike", make, lambda result: SMALL_RESULT)


def not_finite_of(view: ModelView, run: Run) -> tuple[str, list[str]]:
    """Where NaN or infinite numbers first appear in a run, in words, or ""; and the names of the
    parameters that hold some. Raises CannotRead and CannotChange."""
    traced = trace_of(view, run)
    of_model = Run((), checkpoint=run.checkpoint, step=run.step)
    name, spoilt = "not finite", partial(finite.parameters_not_finite, view.model)
    return (
        memoize_pass(view, run, name, lambda: finite.begins(traced), lambda result: SMALL_RESULT),
        memoize_pass(view, of_model, name, spoilt, lambda result: SMALL_RESULT),
    )


@per_run()
def leaks_of(view: ModelView, run: Run) -> list[leak.Leak]:
    """Attention to positions that the training masks would hide."""
    return leak.leaks(trace_of(view, run), attention_of(view, run))


def moved_of(view: ModelView, run: Run) -> np.ndarray:
    """The change in log-probability of each predicted token, (row,), due to the run's changes."""
    now, before = (answers_of(view, version).wanted for version in (run, replace(run, changes=())))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(now) - np.log(before)


def _size_of_answers(answers: positions.Predictions) -> int:
    arrays = answers.wanted, answers.best, answers.probability
    return sum(array.nbytes for array in arrays) + 8 * len(answers.preceding)


@per_run(_size_of_answers)
def answers_of(view: ModelView, run: Run) -> positions.Predictions:
    """The model's predictions in this run."""
    return positions.predictions(trace_of(view, run))
