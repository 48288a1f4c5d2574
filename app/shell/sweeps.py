"""Sweeps: one change at a time, and its effect on a score."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import count

import numpy as np
import streamlit as st

from headlight.app.results import sweep_results
from headlight.app.results.shown import Shown
from headlight.app.state import progress, session, widgets
from headlight.app.state.catalog import ModelView
from headlight.app.state.settings import SETTINGS
from headlight.app.text import findings, part_names
from headlight.app.text.formats import Parts, signed
from headlight.app.text.output_texts import EMBEDDING
from headlight.model.probing.changes import Change, Hidden, Patched, Scope
from headlight.model.probing.sites import Part, parts_of
from headlight.model.probing.sweeps import Score, Sweep
from headlight.model.probing.trace import CannotRead, Pass

REMOVED = {"heads": "head", "sublayers": "sublayer", "tokens": "token"}  # sweep → what it removes
WHOLE, FIRST = "All tokens", "First row"
Outputs = Callable[[Iterable[int], Iterable[int | None]], list[str]]  # see Checkpoint.outputs
HIDDEN = "hidden"  # label of the single row of hidden tokens
PAUSE = 0.05  # seconds between two passes of a sweep, so that clicks are handled


def draw_score(trace: Pass, labels: str = "collapsed", tokens: widgets.Box = st) -> None:
    """Draw the choice of a score: the whole text, or one token at a row. `labels`: the visibility
    of its label; `tokens`: the container of the tokens that it compares."""
    if not SETTINGS["score_at"].concerns(session.context()):
        return
    _draw_row(trace, WHOLE, width=128, label_visibility=labels)
    if session.values()["score_at"]:
        draw_tokens(tokens)


def _draw_row(trace: Pass, first: str, **options: object) -> None:
    """`first`: the name of the choice of none."""
    rows = part_names.row_names(trace)
    names = {"format_func": lambda row: f"{row} {rows[row - 1]}" if row else first}
    widgets.draw("score_at", options=range(len(rows) + 1), widget_options=names | options)


def draw_tokens(box: widgets.Box = st) -> None:
    """The token of a row that a score is about, and another that it is compared with, where rows
    predict tokens."""
    if not SETTINGS["score_token"].concerns(session.context()):
        return
    for key in ("score_token", "score_against"):
        widgets.draw(key, box)


def _follows(trace: Pass) -> bool:
    """Whether the rows of the selected head are those of the logits."""
    side, _ = trace.sides_of(session.focus().kind)
    return side == trace.predicted and side.predicts == "next token"


def row_of(trace: Pass) -> int:
    """The row of the logits, from 0, that a page about one token shows: that of the metric, else
    the one that is selected in Attention, else the first."""
    row = session.values()["score_at"] - 1
    if row < 0 and _follows(trace):
        row = session.chosen_token("follow")
    return min(max(row, 0), len(part_names.row_names(trace)) - 1)


def score(shown: Shown, whole: bool = True) -> Score:
    """The score that the settings choose. Unless `whole`, it is that of one token, see `row_of`.
    Raises CannotRead for a word that is not a single token."""
    chosen, trace = session.values(), shown.trace
    if whole and not chosen["score_at"]:
        return Score()
    row = row_of(trace)
    wanted, against = (
        _token(shown.view, chosen[key].strip()) for key in ("score_token", "score_against")
    )
    best = int(trace.most_probable(1)[0][row, 0]) if wanted is None else wanted
    return Score(row, best, against)


def _token(view: ModelView, text: str) -> int | None:
    """The id of a text that is a single token, with or without a space before it."""
    if not text:
        return None
    encodings = [view.tokenizer.target.encode(form) for form in (f" {text}", text)]
    for encoding in encodings:
        if len(encoding.ids) == 1:
            return encoding.ids[0]
    tokens = " ".join(f"“{token}”" for token in encodings[-1].tokens)
    raise CannotRead(
        f"“{text}” is {len(encodings[-1].ids)} tokens for this model ({tokens}). Type a single "
        "token."
    )


def sweep_of(shown: Shown, name: str, score: Score = Score()) -> Sweep:
    """A sweep's effects as far as measured. Further passes run one by one after the page is drawn,
    with a progress bar and a Stop button; then the page is drawn again. Raises CannotChange."""
    this, notes = (shown.view.device, shown.run, name, score), session.memo()
    swept, rounds = sweep_results.sweep_of(shown, name, score), count()

    def stop(stopped: bool) -> None:
        notes.stopped_sweep = this if stopped else None

    def is_stopped() -> bool:
        return notes.stopped_sweep == this

    @st.fragment(run_every=PAUSE)
    def going_on() -> None:
        bar = progress.progress_line(f"stop_{name}", stop, (True,))
        # The first call is part of drawing the page, which must not wait.
        further = next(rounds) > 0 and not is_stopped()
        now = sweep_results.sweep_of(shown, name, score, further)
        measured = len(now.changes)
        bar.progress(measured / (measured + now.missing), so_far(measured, now.missing))
        if is_stopped() or not now.missing:
            st.rerun()

    if swept.missing and is_stopped():
        done = so_far(len(swept.changes), swept.missing)
        progress.stopped_line(done, f"go_on_{name}", stop, (False,))
    elif swept.missing:
        going_on()
    return swept


def by_head(shown: Shown, name: str, score: Score = Score()) -> dict[str, np.ndarray]:
    """Effects of a sweep over heads: kind → (layers, heads), NaN where not measured. Raises
    CannotChange."""
    return sweep_of(shown, name, score).by_head(shown.trace.kinds)


def _place(change: Change, trace: Pass, parts: Sequence[Part]) -> tuple[str, str, str]:
    """The kind of part that is changed, and which of its rows and columns."""
    scope = change.scope
    part = next(p for p in parts if p.what in change.parts and scope.holds(p))
    if isinstance(change, Hidden):
        (site,) = trace.kinds[scope.kind][:1]
        side = trace.sides[site.key_side]
        return side.title.capitalize(), HIDDEN, token_at(trace, side.name, change.tokens)
    assert scope.layer is not None
    name, layer = part_names.part_name(trace, part), f"layer {scope.layer + 1}"
    if isinstance(change, Patched) and change.positions:
        row = layer if scope.head is None else f"{scope.layer + 1}.{scope.head + 1}"
        return name, row, token_at(trace, part.side, change.positions)
    if scope.head is None:
        return "Sublayers", layer, name
    return name, layer, f"head {scope.head + 1}"


def token_at(trace: Pass, side: str, positions: Sequence[int]) -> str:
    (position,) = positions
    return f"{position + 1} {trace.texts[side].tokens[position]}"


def is_probability(trace: Pass, score: Score) -> bool:
    """Whether a score is a log-probability: not a difference of logits, nor of an embedding."""
    return score.against is None and trace.predicted.predicts != EMBEDDING


def most_needed(
    swept: Sweep,
    trace: Pass,
    name: str,
    score: Score,
    outputs: Outputs,
) -> Parts:
    """The finding of a complete sweep whose score is a log-probability: which part the output needs
    most. Empty for others."""
    effects = swept.effects[np.isfinite(swept.effects)]
    if name not in REMOVED or swept.missing or not len(effects) or not is_probability(trace, score):
        return []
    number = int(np.nanargmin(swept.effects))
    parts = parts_of(trace.sites, trace.sides.values())
    title, row, column = _place(swept.changes[number][0], trace, parts)
    part = {
        "heads": f"{_in_sentence(title)}, {row}, {column}",
        "sublayers": f"{_in_sentence(column)}, {row}",
        "tokens": column.partition(" ")[2],
    }[name]
    what, *ends = _probabilities(swept, number, trace, score, outputs)
    return findings.most_needed(part, REMOVED[name], what, *ends)


def _probabilities(
    swept: Sweep, number: int, trace: Pass, score: Score, outputs: Outputs
) -> tuple[str, float, float]:
    """Whose probability a score is, and that before and after a change."""
    what = "the output"
    if score.wanted is not None and score.position is not None:
        what = f"“{outputs([score.wanted], [trace.preceding[score.position]])[0]}”"
    before, after = (math.exp(swept.score + effect) for effect in (0, swept.effects[number]))
    return what, before, after


def of_head(
    swept: Sweep,
    number: int,
    head: str,
    trace: Pass,
    score: Score,
    outputs: Outputs,
    over: str = "",
) -> Parts:
    """What one change of a sweep over heads does to the score; `head`: the name of its head;
    `over`: as findings.without_head takes it."""
    effect = float(swept.effects[number])
    if not np.isfinite(effect):
        return [(f"{head}.", "")]
    if is_probability(trace, score):
        moves = _probabilities(swept, number, trace, score, outputs)
        return findings.without_head(head, *moves, over)
    return [(f"{head}: without it the score changes by {signed(effect)}.", "")]


def _in_sentence(name: str) -> str:
    return name[:1].lower() + name[1:]


def settings(swept: Sweep) -> list[dict]:
    """For each change the settings that select its head; none if it is not about one head."""
    return [_settings(changes[0]) or {} for changes in swept.changes]


def table(swept: Sweep, trace: Pass) -> list[dict]:
    """One row per change, the most harmful first: the changed part, its effect, and the settings
    that select its head, if it concerns one."""
    rows, parts = [], parts_of(trace.sites, trace.sides.values())
    for changes, effect in zip(swept.changes, swept.effects, strict=True):
        name, row, column = _place(changes[0], trace, parts)
        rows.append(
            {
                "part": _short(changes[0].scope, name, row, column),
                "effect": float(effect),
                "head": _settings(changes[0]),
            }
        )
    return sorted(rows, key=lambda row: row["effect"])


def _short(scope: Scope, name: str, row: str, column: str) -> str:
    """A changed part in a narrow column, from its `_place`: “Cross 4.3”."""
    if scope.head is not None and column.startswith("head "):
        return part_names.short_name(scope)
    layer = row.removeprefix("layer ")
    if row == HIDDEN:
        return f"{name}: {column}"
    if name == "Sublayers":
        return f"{column} {layer}"
    return f"{name} {layer}: {column}"


def _settings(change: Change) -> dict | None:
    scope = change.scope
    if scope.layer is None or scope.head is None:
        return None
    return {"kind": scope.kind, "layer": scope.layer + 1, "head": scope.head + 1}


def so_far(measured: int, missing: int) -> str:
    """The progress of a sweep."""
    return f"{measured:,} of {measured + missing:,} measured"
