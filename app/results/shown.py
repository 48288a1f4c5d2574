"""What a page shows: a run of a model, and what can be read off its forward pass."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from headlight.app.results.memoize import (
    SMALL_RESULT,
    cached,
    memoize,
    memoize_pass,
    nbytes,
    threads,
)
from headlight.app.state import catalog
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import finite, leak, predictions
from headlight.model.analysis.domain import SPLIT, SURPRISE, Domain, split_share, surprise
from headlight.model.analysis.reading import LabelledWeights, Reading
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Generation, How
from headlight.model.masks import Masks
from headlight.model.probing import long_trace
from headlight.model.probing.long_trace import LongTrace, Weights
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import TooLarge, Trace, bytes_of_weights, read_of
from headlight.model.tokenizer import Encoding

NO_TEXT = Encoding((), (), ())
LARGEST_TRACE = 2**30  # bytes of weights; those of a longer text are reduced during the pass


def _size_of_answers(answers: predictions.Predictions) -> int:
    arrays = answers.wanted, answers.best, answers.probability
    return sum(array.nbytes for array in arrays) + 8 * len(answers.preceding)


@dataclass(frozen=True)
class Shown:
    """A run of a model that this session may run; `written`: over a generated target, see
    Checkpoint.given. What it computes is kept for all sessions, not by itself: whoever keeps one
    keeps no arrays. Each part raises CannotRead and CannotChange."""

    view: ModelView
    run: Run
    written: bool = False

    # Others like it

    @property
    def as_trained(self) -> "Shown":
        """With all masks on and without changes."""
        return replace(self, run=replace(self.run, masks=Masks(), changes=()))

    @property
    def donor(self) -> Checkpoint | None:
        """A view of the model that patches are taken from; None if it is the run's own model."""
        other = self.run.other
        if other is None or (other.checkpoint, other.step) == (self.view.name, self.view.step):
            return None
        return catalog.view_of(other.checkpoint, other.step, self.view.device).checkpoint

    @property
    def given(self):
        """See Checkpoint.given."""
        return self.view.checkpoint.given(self.run, self.donor)

    # The pass

    @property
    def is_whole(self) -> bool:
        """Whether all weights fit into LARGEST_TRACE."""
        texts = read_of(self.view.model, self.run)
        return bytes_of_weights(self.view.model.sites(), texts) <= LARGEST_TRACE

    @property
    @cached(nbytes)
    def trace(self) -> Trace | LongTrace:
        """The trace of one pass. If the weights would fill the memory, a LongTrace; `attention`
        then computes them."""
        if self.is_whole:
            with suppress(TooLarge):
                return self._trace()
        with reporting("Running the model on a long text"):
            return self.view.checkpoint.long_trace_run(self.run, self.donor, self.written)

    def _trace(self) -> Trace:
        with reporting("Running the model"):
            return self.view.checkpoint.trace_run(self.run, self.donor, self.written)

    @property
    def whole(self) -> Trace:
        """Like `trace`, always with the weights of all heads; raises TooLarge if they do not
        fit."""
        if self.is_whole and isinstance(traced := self.trace, Trace):
            return traced
        return memoize_pass(self, "whole trace", self._trace, nbytes)

    @property
    def attention(self) -> Mapping[str, Weights]:
        """Kind → the weights of all its heads, (layers, heads, query, key); for a long text each
        layer is computed on demand."""
        return long_trace.attention_of(self.view.model, self.trace)

    def head(self, place: Place) -> np.ndarray:
        """The weights of one head, (query, key)."""
        kind, layer, head = place
        if isinstance(traced := self.trace, Trace):
            return traced.attention[kind][layer, head]

        def make():
            # a copy, so that the other heads can be freed
            return self.attention[kind][layer][head].copy()

        return memoize_pass(self, ("head", *place), make, nbytes)

    def rows(self, kind: str, rows: slice) -> np.ndarray:
        """Some rows of the weights of a generated target, (row, layer, head, key)."""

        def make():
            # copies, so that the rest of each layer can be freed
            layers = [layer[:, rows].copy() for layer in self.attention[kind]]
            return np.stack(layers).transpose(2, 0, 1, 3)

        if isinstance(self.trace, Trace):
            return make()
        return memoize_pass(self, ("rows", kind, rows.start, rows.stop), make, nbytes)

    def picture(self, place: Place, reading: Reading) -> LabelledWeights:
        """One head, or a mean over heads, as `reading` asks."""
        kind, layer, head = place
        traced = self.trace

        def make():
            return reading.apply(self.attention[kind], layer, head, *traced.texts_of(kind))

        if isinstance(traced, Trace):
            return make()
        name = "picture", *place, reading
        return memoize_pass(self, name, make, lambda result: result.weights.nbytes)

    def generation(self, how: How, beginning: Sequence[int] = ()) -> Generation:
        """The model's output for the first text, step by step."""
        first, *others = self.run.texts
        source = replace(self, run=replace(self.run, texts=(first, *(NO_TEXT for _ in others))))

        def make():
            with reporting("Writing"):
                return self.view.checkpoint.generate(source.run, how, beginning, donor=self.donor)

        return memoize_pass(source, ("generated", how, tuple(beginning)), make, nbytes)

    # What it says

    @property
    @cached(_size_of_answers)
    def answers(self) -> predictions.Predictions:
        """The model's predictions."""
        return predictions.predictions(self.trace)

    @property
    def log_probability(self) -> float:
        """The total log-probability of the predicted tokens."""
        return float(np.nansum(np.log(self.answers.wanted)))

    @property
    @cached()
    def leaks(self) -> list[leak.Leak]:
        """Attention to positions that the training masks would hide."""
        return leak.leaks(self.trace, self.attention)

    def is_unlike(self, domain: Domain) -> bool:
        """Whether the first text is unlike the training text."""
        traced = self.trace

        def make():
            text = self.view.tokenizer.decode(self.run.texts[0].ids)
            measures = {SPLIT: split_share(self.view.tokenizer, text)}
            if SURPRISE in domain.ranges:
                measures[SURPRISE] = surprise(traced)
            return domain.excludes(measures)

        return memoize_pass(self, "unlike", make)

    @property
    def not_finite(self) -> tuple[str, list[str]]:
        """Where NaN or infinite numbers first appear, in words, or ""; and the names of the
        parameters that hold some."""
        traced, model = self.trace, self.view.model
        of_model = replace(self, run=Run((), checkpoint=self.run.checkpoint, step=self.run.step))
        return (
            memoize_pass(self, "not finite", lambda: finite.begins(traced)),
            memoize_pass(of_model, "not finite", lambda: finite.parameters_not_finite(model)),
        )


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
        donor = Shown(view, Run((), other=other)).donor
        tokens = len(view.tokenizer.encode(text).ids)
        with threads(view.model, tokens), reporting("Writing the target"):
            return view.checkpoint.translate(text, masks, pad_to, changes, other, donor)

    weights = view.name, view.step, view.device, view.stamp
    key = "target", *weights, text, masks, pad_to, changes, other
    return memoize(key, make, lambda result: SMALL_RESULT)
