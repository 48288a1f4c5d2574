"""Where a predicted token comes from: the parts of the model, and the source words by six
methods."""

import numpy as np

from headlight.app import selection
from headlight.app.components.matrices import matrices
from headlight.app.components.matrix import Matrix
from headlight.app.results import word_results
from headlight.app.shell import frame, layout, sweeps
from headlight.app.state import session, widgets
from headlight.app.text import formats
from headlight.app.views import _terms
from headlight.model.analysis.attribution import METHODS, source_kind

METHOD_HELP = (
    "**attention**: mean weight over all heads. **head**: weight in the selected head. "
    "**rollout**: attention traced back through all layers (Abnar & Zuidema 2020). **norms**: "
    "weight times the length of the transformed value (Kobayashi et al. 2020). **gradient**: "
    "gradient times embedding. **removal**: how much the metric falls without the word. ρ is "
    "Spearman's rank correlation; 1 means the same order."
)

PICTURES = PARTS, METHODS_COMPARED = "Parts of the model", "Methods compared"


def page() -> None:
    page_shown = selection.shown()
    view = page_shown.view
    trace = page_shown.trace
    with frame.controls():
        picture = widgets.draw("picture", options=PICTURES, default=PARTS)
        if session.context().predicts_tokens:
            with layout.menu("Other token", "other_token"):
                sweeps.draw_tokens()
                sweeps.draw_row(trace)
    score, focus = sweeps.score(page_shown, whole=False), session.focus()
    if picture == PARTS:
        _terms.draw(view, trace, score, word_results.decomposition_of(page_shown, score))
        return
    head = (focus.layer, focus.head) if focus.kind == source_kind(view.model) else None
    words = word_results.attribution_of(page_shown, score, head)
    shown = [name for name in METHODS if name in words.values]
    name = formats.escaped(_terms.wanted(view, trace, score))
    frame.explain(METHOD_HELP)
    frame.finding(f"Source words behind {name}. {formats.escaped(words.in_words())}")
    if words.words:
        scaled = [words.values[name] / (np.abs(words.values[name]).max() or 1) for name in shown]
        labelled = [f"{i} {word}" for i, word in enumerate(words.words, start=1)]
        matrices(
            [
                Matrix(
                    METHODS_COMPARED,
                    np.array(scaled),
                    *("method", "word", shown, labelled),
                    largest=1,
                    scale="relative to the largest",
                    ends=("{}", "{}"),
                )
            ],
            key="words",
        )
