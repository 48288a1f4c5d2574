"""One row of a head as bars, from its scores to its output, for the typed sentence."""

from collections.abc import Sequence

import numpy as np

from headlight.app import selection
from headlight.app.components.one_row import ScoredHead, one_row
from headlight.app.results import head_results
from headlight.app.results.shown import Shown
from headlight.app.state import session
from headlight.app.state.options import STEPS
from headlight.app.text import part_names
from headlight.app.views._head_walkthrough import Walkthrough
from headlight.model.analysis.head_metrics import is_word
from headlight.model.probing.head_steps import HeadSteps

SHARP = 0.99  # a row with more weight on one key shows little: another one opens
STEP_OF_STOP = "Scores", "Scaling", "Softmax", "Softmax", "Values"
APART = 1e-3  # of the model's weights from those of the softmax


def page() -> None:
    session.take_from_address("follow", "without", "stop")
    selection.tell_unchanged()
    shown = selection.unchanged()
    one_row(head_rows(shown), session.palette())


def head_rows(shown: Shown) -> ScoredHead:
    """The selected head; of a model that has weights alone, these."""
    trace, place = shown.trace, session.focus()
    kind, layer, head = place
    query, key = (text.tokens for text in trace.texts_of(kind))
    weights = shown.head(place)
    first = head_results.opening_row(shown, place)
    rows = trace.row_words(*place)
    opening = more_divided(weights, rows, first) if weights[first].max() > SHARP else first
    followed = session.chosen_token("follow")  # on a page before, whose address may not have it
    if 0 <= followed < len(weights):
        first = opening = followed
    texts = {
        "keys": key,
        "rows": rows,
        "moments": part_names.both_words(trace, kind),
        "opening": opening,
        "passed_over": first if opening != first else -1,
    }
    if shown.view.checkpoint.lacks:
        note = f"These are the weights alone. {shown.view.checkpoint.lacks}"
        return ScoredHead(scores=weights, mask=weights > 0, notes=[note], **texts)
    steps = head_results.head_steps_of(shown, trace.kinds[kind][layer], head)
    walk = Walkthrough(shown.view.model, steps, query, key, 0, 0)
    return ScoredHead(
        scores=steps.scores,
        mask=steps.mask,
        values=steps.v,
        differing=differing(steps),
        code=[walk.step(STEPS.index(name) + 1).code for name in STEP_OF_STOP],
        **texts,
    )


def more_divided(weights: np.ndarray, rows: Sequence[str], than: int) -> int:
    """The row (of query, key) with the most entropy, of the words if one has more than the row
    `than`; `than` itself where no row has."""
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights, dtype=float))
    entropy = -(weights * logs).sum(axis=-1)
    are_words = np.array([is_word(row) for row in rows])
    is_more = entropy > entropy[than]
    return int(np.lexsort((-entropy, ~are_words, ~is_more))[0]) if is_more.any() else than


def differing(steps: HeadSteps) -> list[int]:
    """Rows whose weights are not the softmax of q·kᵀ ÷ √d_head under the mask."""
    scores = np.where(steps.mask, steps.scores / np.sqrt(steps.q.shape[1], dtype=float), -np.inf)
    largest = scores.max(axis=1, keepdims=True, where=steps.mask, initial=-1e300)
    powers = np.exp(scores - largest)
    shares = powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)
    return np.flatnonzero(np.abs(shares - steps.weights).max(axis=1) > APART).tolist()
