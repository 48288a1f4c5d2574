"""The residual stream: each token's vector through the layers, and the prediction after each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.components.lens_grid import lens_grid
from headlight.app.results import layer_results, word_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, layout, sweeps
from headlight.app.shell.layout import st_page
from headlight.app.state import session, widgets
from headlight.app.state.catalog import ModelView
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import exercises, formats, output_texts, part_names
from headlight.app.text.exercises import Exercise
from headlight.app.text.formats import escaped
from headlight.app.views import _terms
from headlight.model.analysis import residual
from headlight.model.analysis.residual import Lens
from headlight.model.probing.sites import has_final_norm, predicted_side
from headlight.model.probing.trace import Pass

MAX_LENS_ROWS = 200  # rows of the lens
MOST_NAMED = 4  # tokens in a finding

LENGTH, TURN, ALIKE, LENS, FINAL, WRITES = PICTURES = (
    "Length",
    "Direction",
    "Similarity",
    "Logit lens",
    "Final answer",
    "Who writes it",
)


@dataclass(frozen=True)
class ShownLens:
    """The logit lens of the predicted stack as the page shows it. `after` names its rows, at most
    MAX_LENS_ROWS, `depths` what is before and after each layer; `preceding`: see Pass."""

    lens: residual.Lens
    stack: str
    after: Sequence[str]
    depths: Sequence[str]
    preceding: Sequence[int | None]


def shown_lens(shown: Shown) -> ShownLens:
    """Of a run; tells where rows are left out."""
    trace = shown.trace
    lens = layer_results.lens_of(shown, slice(MAX_LENS_ROWS))
    side = trace.predicted
    is_class = side.predicts == "class"
    after = ["the whole text"] if is_class else trace.texts[side.name].tokens
    if len(after) > MAX_LENS_ROWS:
        frame.notices().info(
            f"Only the first {MAX_LENS_ROWS} of {len(after):,} {side.title} positions are shown."
        )
    depths = ["in", *(f"layer {i}" for i in range(1, len(lens.best)))]
    return ShownLens(lens, side.stack, after[:MAX_LENS_ROWS], depths, trace.preceding)


def draw_lens(view: ModelView, trace: Pass, shown: ShownLens) -> None:
    """The grid, its finding and what explains it. A click on a cell selects its row."""
    side, lens = predicted_side(view.model), shown.lens
    through = (
        "the final norm and the generator"
        if has_final_norm(view.model, side)
        else "the generator (post-norm: there is no final norm)"
    )
    averaged = "averaged over the real tokens, " if side.predicts == "class" else ""
    answers = [view.checkpoint.outputs(best, shown.preceding) for best in lens.best.tolist()]
    frame.finding(finding_of_lens(lens, answers[-1]))
    lens_grid(lens, answers, shown.after, sweeps.row_of(trace), sweeps.on_row(trace))
    frame.explain(
        f"The logit lens sends the {shown.stack}'s vectors at each depth, {averaged}straight "
        f"through {through}, as if no layer followed. After the last layer this is the model's own "
        f"prediction (largest difference of probabilities **{lens.difference:.0g}**).",
        exercise_of_lens(lens, shown.after, shown.depths),
    )


def finding_of_lens(lens: Lens, final: Sequence[str]) -> str:
    """What the model would already predict without its last layer; `final`: what it predicts."""
    last, count = len(lens.best) - 1, len(final)
    names = [f"**{escaped(name.strip() or '(space)')}**" for name in final]
    if not last:
        return "A model without layers has one prediction."
    if count == 1:
        depth = int(lens.settled[0])
        where = f"after layer {depth}" if depth else "before layer 1"
        return f"The prediction is {names[0]} already {where}."
    stop = f"after layer {last - 1}" if last > 1 else "before layer 1"
    late = [names[row] for row in np.flatnonzero(lens.settled == last)]
    already = f"If it stopped {stop}, it would already predict"
    if not late:
        return f"{already} all {count:,} tokens."
    which = formats.listed(late) if len(late) <= MOST_NAMED else f"the other {len(late):,}"
    settles = "settles" if len(late) == 1 else "settle"
    return (
        f"{already} {count - len(late):,} of {count:,} tokens; {which} {settles} only in "
        f"layer {last}."
    )


def draw_final(shown: ShownLens) -> None:
    lens, count = shown.lens, len(shown.after)
    early = int((lens.settled < len(shown.depths) - 1).sum())
    frame.finding(f"{early} of {count:,} predictions are final before the last layer.")
    frame.explain(
        "Probability of the final prediction at each depth, and its rank there (1 is the most "
        "probable)."
    )
    figure(
        charts.matrix(
            lens.final.T,
            charts.Axis("after", shown.after),
            charts.Axis("after", shown.depths),
            "probability",
            (0, 1),
            ".0%",
        ),
        key="final_figure",
        alt="Probability of the final prediction after each layer",
        projector=session.values()["projector"],
        compact=True,
    )
    ranks = {"row": range(1, count + 1), "after": shown.after}
    ranks |= {name: np.asarray(rank) for name, rank in zip(shown.depths, lens.rank, strict=True)}
    with frame.numbers():
        table = widgets.draw("ranks")
    if table.open:
        table.dataframe(
            pd.DataFrame(ranks),
            hide_index=True,
            alt="Rank of the final prediction after each layer",
        )


def draw_writers(shown: Shown) -> None:
    trace = shown.trace
    score = sweeps.score(shown, whole=False)
    _terms.draw(shown.view, trace, score, word_results.decomposition_of(shown, score))
    focus = session.focus()
    head = part_names.head_name(trace, focus)
    frame.explanation().page_link(
        st_page(PAGES[HOME]),
        label=f"Open {PAGES[HOME].title} at {head}",
        icon=":material/arrow_forward:",
        icon_position="right",
    )


def draw_vectors(shown: Shown, picture: str) -> None:
    """What concerns the vectors of one stack alone."""
    trace = shown.trace
    stacks = {side.stack: side for side in trace.sides.values()}
    with frame.controls():
        stack = widgets.draw(
            "stack",
            widget_options={"label_visibility": "collapsed"},
            options=list(stacks),
            default=trace.predicted.stack,
        )
    side = stacks[stack]
    encoding, stream = trace.texts[side.name], trace.stream[side.name]
    depths = ["in", *(f"layer {i}" for i in range(1, len(stream)))]
    position, after = charts.Axis("token", encoding.tokens), charts.Axis("after", depths)
    frame.explain(
        "Each token is one **vector** that every layer reads and adds to. “in” is what enters "
        f"layer 1: the embedding{' and its position' if side.table else ''}."
    )
    if picture == LENGTH or len(stream) == 1:
        lengths = residual.lengths(stream).T
        top = residual.usual_most(lengths)
        frame.finding(f"Length of each vector of the {stack}")
        normed = has_final_norm(shown.view.model, side)
        frame.explain(place_of_norm(normed, stack))
        longest = lengths.max(axis=1)
        frame.explanation().markdown(massive_activations(encoding.tokens, longest, top))
        heatmap = charts.matrix(lengths, position, after, "length", (0, top), ".1f")
        key, alt = "lengths_figure", f"Length of each token's vector through the {stack}"
    elif picture == TURN:
        turned = residual.cosine(stream[:-1], stream[1:]).T
        frame.finding(f"Direction change by each layer of the {stack}")
        frame.explain(
            "Cosine between the input and the output of each layer, per token. 1: same "
            "direction; 0: a right angle."
        )
        step, scale = charts.Axis("through", depths[1:]), (min(0.0, float(turned.min())), 1.0)
        heatmap = charts.matrix(turned, position, step, "cosine", scale)
        key = "turned_figure"
        alt = f"Cosine of each token's vector before and after each layer of the {stack}"
    else:
        real = residual.real(trace, side.name)
        alike = residual.mean_cosine_between_depths(stream, real)
        frame.finding(f"Similarity of the layers of the {stack}")
        frame.explain(
            "Cosine between any two depths, as a mean over tokens without padding. Near 1 far "
            "from the diagonal: the layers in between changed little."
        )
        scale = (min(0.0, float(alike.min())), 1.0)
        heatmap = charts.matrix(alike, after, after, "cosine", scale)
        key, alt = "alike_figure", f"Mean cosine between the layers of the {stack}"
    figure(heatmap, key=key, alt=alt, projector=session.values()["projector"], compact=True)


def page() -> None:
    shown = selection.shown()
    view = shown.view
    trace = shown.trace
    predicts = trace.predicted.predicts != output_texts.EMBEDDING
    options = PICTURES if predicts else PICTURES[:3]
    with frame.controls():
        default = LENS if predicts else LENGTH
        now = session.values().get("picture")
        with layout.menu(
            f"More: {now}" if now in options and now != default else "More", "more_pictures"
        ):
            picture = widgets.draw("picture", options=options, default=default)
            if picture == WRITES:
                sweeps.draw_tokens()
            sweeps.draw_row(trace)
    if picture == LENS:
        draw_lens(view, trace, shown_lens(shown))
    elif picture == FINAL:
        draw_final(shown_lens(shown))
    elif picture == WRITES:
        draw_writers(shown)
    else:
        draw_vectors(shown, picture)


def place_of_norm(final: bool, stack: str) -> str:
    """Where a stack has its norms, and what that does to the length of vectors; a `final` norm
    means pre-norm."""
    if final:
        return (
            f"The norms of this {stack} come before its sublayers (pre-norm), so vectors are "
            "free to grow. A final norm follows the last layer."
        )
    return (
        f"Each layer of this {stack} ends with a norm (post-norm), which gives all vectors "
        "about the same length. There is no final norm."
    )


def massive_activations(tokens: Sequence[str], lengths: Sequence[float], top: float) -> str:
    """A note on vectors longer than `top`, where the colour scale ends; `lengths`: the greatest
    length of each token's vectors."""
    far = [f"“{token}”" for token, length in zip(tokens, lengths, strict=True) if length > top]
    if not far:
        return ""
    names = escaped(", ".join(far[:3]) + (" …" if len(far) > 3 else ""))
    return (
        f"The vector of {names} is up to {max(lengths):,.0f} long; the colour scale ends at "
        f"{top:,.0f}. Such massive activations (Sun et al. 2024) often belong to the first "
        "token, and many heads attend to them."
    )


def exercise_of_lens(lens: Lens, after: Sequence[str], depths: Sequence[str]) -> Exercise:
    """`after` and `depths` name its rows and depths."""
    depth = int(lens.settled.max())
    last = [after[row] for row in np.flatnonzero(lens.settled == depth).tolist()]
    return exercises.changes_last(last, depths[depth], depth > 0)
