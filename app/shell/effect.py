"""What the model answers, and what the changes, or another run, do to that."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from headlight.app import selection
from headlight.app.results import passes
from headlight.app.shell.layout import concerns
from headlight.app.state import messages, session
from headlight.app.state.catalog import ModelView
from headlight.app.wording import formats, output_texts
from headlight.app.wording.formats import Parts
from headlight.model.probing.changes import CannotChange, written
from headlight.model.probing.run import Run
from headlight.model.probing.trace import CannotRead


def effect() -> Parts:
    """What the changes, or the other run, do to the output; empty without any."""
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        if concerns("shows") and model_output()[1]:
            if session.values()["changes"]:
                return _effect()
            if session.context().has_other:
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
    return [("Other run: ", ""), *shown]


def _written(view: ModelView, line: str, run: Run) -> str:
    """The model's translation of a line under the masks, padding and changes of a run."""
    changes, other = written(run.changes), run.other
    ids = passes.target_of(view, line, run.masks, run.pad_to, changes, other).ids
    return view.tokenizer.target.decode(ids)


def _effect() -> Parts:
    """The effect of the changes on the model's output, and on the probability of the target."""
    run = selection.run(changed=True)
    view = selection.view(run)
    plain = replace(run, changes=(), other=None)
    if view.checkpoint.writes:
        texts = (_written(view, session.values()["line"], version) for version in (plain, run))
        shown = formats.differences(*texts)
    else:
        now, before = (
            output_texts.output(view, version, partial(passes.trace_of, view, version))[1]
            for version in (run, plain)
        )
        shown = [(f"{now}, before {before}", "")]
    if view.checkpoint.classes:
        return shown
    now, before = (passes.log_probability(view, version) for version in (run, plain))
    side = passes.trace_of(view, run).predicted.title
    numbers = f"{now:.2f}", f" ({now - before:+.2f})"
    number, moved = (text.replace("-", "−") for text in numbers)
    return [*shown, (f" · log-probability of the {side} ", ""), (number, "b"), (moved, "")]


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
        return f"{title}, final step" if holds_target else title, text
    except (messages.NothingToShow, CannotRead, CannotChange):
        return "", ""  # the page says why
