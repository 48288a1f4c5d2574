"""What the model answers, and what the changes, or another run, do to that."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from headlight.app import selection
from headlight.app.results import consequences, passes
from headlight.app.shell.layout import concerns
from headlight.app.state import catalog, messages, session
from headlight.app.state.catalog import ModelView
from headlight.app.wording import findings, formats, output_texts
from headlight.app.wording.formats import Parts
from headlight.model.probing.changes import CannotChange, written
from headlight.model.probing.run import Run
from headlight.model.probing.trace import CannotRead


def effect() -> Parts:
    """What masks, padding and changes do to the output, compared with the model as trained over the
    same text; or what another run writes. Empty where nothing differs."""
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        run = selection.run(changed=True)
        if run != (plain := replace(passes.as_trained(run), pad_to=0, other=None)):
            return _effect(plain, run)
        if session.context().has_other and model_output()[1]:
            return _other()
    return []


def _other() -> Parts:
    """The output of the other run's model for its own text. Neither run need be drawn with its own
    output as target: that may be typed, or come from another training step."""
    run = selection.other_run()
    view = selection.view(run)
    if view.checkpoint.writes:
        line = session.values()["line"]
        texts = (
            _written(selection.view(), line, selection.run(changed=False)),
            _written(view, session.values()["other"].strip() or line, run),
        )
        shown = formats.differences(*texts)
    else:
        shown = [(output_texts.output(view, run, partial(passes.trace_of, view, run))[1], "")]
    return [("Comparison: ", ""), *shown]


def _written(view: ModelView, line: str, run: Run) -> str:
    """The model's translation of a line under the masks, padding and changes of a run."""
    changes, other = written(run.changes), run.other
    ids = passes.target_of(view, line, run.masks, run.pad_to, changes, other).ids
    return view.tokenizer.target.decode(ids)


def _effect(plain: Run, run: Run) -> Parts:
    """What the model writes now, and the next-token probability that changed most."""
    view = selection.view(run)
    parts = []
    if not run.masks.causal and (seen := consequences.peek(view, run)):
        parts += [*findings.peeking(**vars(seen)), (" ", "")]
    if seen := consequences.class_moved(view, plain, run):
        return [*parts, *findings.class_moved(seen.row, seen.token, seen.before, seen.after)]
    writes = view.checkpoint.writes and catalog.trained(view.name) == view.name
    if writes and not session.values()["target"]:
        line = session.values()["line"]
        before, after = (_written(view, line, version) for version in (plain, run))
        if before == after:
            parts.append(("The translation stays. ", ""))
        else:
            parts += [*formats.differences(before, after), (findings.after_text(after), "")]
    seen = consequences.moved_most(view, plain, run)
    if seen is None:
        now, before = (
            output_texts.output(view, version, partial(passes.trace_of, view, version))[1]
            for version in (run, plain)
        )
        return parts or [(f"{before} → {now}" if now != before else findings.NO_CHANGE, "")]
    if seen.by <= findings.NOTHING:
        return [*parts, (findings.NO_CHANGE, "")]
    return [*parts, *findings.moved(**vars(seen))]


def model_output() -> tuple[str, str]:
    """The title of the model's output, and the output as plain text."""
    if not session.values()["line"]:
        return "", ""
    try:
        run = selection.run()
        view = selection.view(run)
        title, text = output_texts.output(view, run, lambda: passes.trace_of(view, run))
        holds_target = (
            concerns("hold") and session.values()["hold"] and not session.values()["target"]
        )
        return f"{title} (final model)" if holds_target else title, text
    except (messages.NothingToShow, CannotRead, CannotChange):
        return "", ""  # the page says why
