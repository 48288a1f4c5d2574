"""Words: alignment between source and target, attribution of a prediction."""

from headlight.app.results.memoize import CORES, SMALL_RESULT, memoize_pass, per_run
from headlight.app.results.passes import donor_of, whole_trace_of
from headlight.app.results.sweep_results import check_removals
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import HeadAlignment, WordWeights
from headlight.model.analysis.attribution import Attribution, attribution
from headlight.model.analysis.decomposition import Decomposition, decomposition
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.sweeps import Score

REMOVALS = "Removing one source token at a time"


@per_run(lambda result: result.weights.nbytes)
def word_weights_of(view: ModelView, run: Run) -> WordWeights:
    """Attention between the words of both texts (model/analysis/alignment.py)."""
    traced = whole_trace_of(view, run)
    return alignment.of_trace(traced)


@per_run(lambda result: SMALL_RESULT + result.weights.nbytes, CORES)
def influence_of(view: ModelView, run: Run) -> WordWeights:
    """How much log-probability each target word loses without each source word. Raises CannotRead
    and CannotChange."""
    check_removals(view, run)
    with reporting(REMOVALS):
        given = view.checkpoint.given(run, donor_of(view, run))
        return alignment.of_influence(view.model, run, given)


def alignment_of(view: ModelView, run: Run) -> HeadAlignment | None:
    """The heads that align words, from the model's card or measured on this run; None if the run
    has no words."""
    if view.checkpoint.lacks:
        kind = alignment.aligning_kind(view.model.sites(), view.model.sides())
        sites = [site for site in view.model.sites() if site.kind == kind]
        return HeadAlignment.unmeasured(len(sites), sites[0].n_heads)
    if (known := view.checkpoint.alignment) and view.step == FINAL:
        return known
    both = [word_weights_of(view, run)], [influence_of(view, run)]
    return memoize_pass(
        view, run, "alignment", lambda: alignment.measured(*both), lambda result: SMALL_RESULT
    )


@per_run()
def decomposition_of(view: ModelView, run: Run, score: Score) -> Decomposition:
    """A logit as a sum of terms (model/analysis/decomposition.py). Raises CannotRead and
    CannotChange."""
    assert score.position is not None and score.wanted is not None
    given = view.checkpoint.given(run, donor_of(view, run))
    return decomposition(view.model, run, score.position, score.wanted, score.against, given)


@per_run(cores=CORES)
def attribution_of(
    view: ModelView, run: Run, score: Score, head: tuple[int, int] | None
) -> Attribution:
    """Attribution of a predicted token to source words (model/analysis/attribution.py). Raises
    CannotRead and CannotChange."""
    check_removals(view, run)
    assert score.position is not None and score.wanted is not None
    given = view.checkpoint.given(run, donor_of(view, run))
    with reporting(REMOVALS):
        return attribution(
            view.model, run, score.position, score.wanted, head, score.against, given
        )
