"""What the model answers, and what the changes, or another run, do to that."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from headlight.app import selection
from headlight.app.results import consequences, passes
from headlight.app.results.consequences import ModelRun, Peek
from headlight.app.shell.frame import Effect
from headlight.app.shell.layout import concerns
from headlight.app.state import catalog, messages, session
from headlight.app.state.catalog import ModelView
from headlight.app.state.options import AFTER, BEFORE, THIS
from headlight.app.text import findings, formats, output_texts
from headlight.app.text.formats import Parts
from headlight.model.probing.changes import CannotChange, written
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.trace import CannotRead


def effect() -> Effect:
    """What masks, padding and changes do to the output, compared with the model as trained over the
    same text; or what another run, or an earlier training step, does otherwise. Empty where nothing
    is compared, or where the model as trained is shown."""
    if session.values()["shows"] == BEFORE:
        return Effect()
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        run = selection.run(changed=True)
        if run != (plain := replace(passes.as_trained(run), pad_to=0, other=None)):
            said, row = _effect(plain, run)
        elif session.context().has_other and model_output()[1]:
            said, row = _other()
        elif run.step != FINAL:
            final = replace(run, step=FINAL)
            before, after = ((selection.view(each), each) for each in (final, run))
            said, row = _moved(before, after, _lines(before, after))
            said = findings.after_lead("Compared with the final weights, ", said)
        else:
            return Effect()
        return Effect(said, row if session.values()["shows"] in (THIS, AFTER) else None)
    return Effect()


def _other() -> tuple[Parts, int | None]:
    """The output of the other run's model for its own text, and what moved most, with its row.
    The target of either run may differ from its output: it may be typed, or written by another
    training step."""
    other, plain = selection.other_run(), selection.run(changed=False)
    assert other is not None
    both = (selection.view(), plain), (selection.view(other), other)
    chosen = session.values()
    line, other_line = chosen["line"], chosen["other"].strip()
    lines = [line, other_line or line] if both[1][0].checkpoint.writes else []
    lead = findings.with_other(other_line, chosen["other_model"], chosen["other_step"])
    said, row = _moved(*both, lines)
    return findings.after_lead(lead, said), row


def _written(view: ModelView, line: str, run: Run) -> str:
    """The model's translation of a line under the masks, padding and changes of a run."""
    changes, other = written(run.changes), run.other
    ids = passes.target_of(view, line, run.masks, run.pad_to, changes, other).ids
    return view.tokenizer.target.decode(ids)


def _effect(plain: Run, run: Run) -> tuple[Parts, int | None]:
    """What the model writes now, and the next-token probability that changed most; and its row."""
    view = selection.view(run)
    parts, stays, after = [], findings.STAYS, findings.AFTER
    if not run.masks.causal and (peek := consequences.peek(view, run)):
        where, what = (peek.layer, peek.head), (peek.row, peek.next_token)
        parts += findings.peeking(*where, *what, peek.weight)
        if replace(run, masks=replace(run.masks, causal=True), pad_to=0) == plain:
            stays = findings.STAYS_UNSEEN
        after = findings.FINISHED  # which it did not when it wrote the text
    both = (view, plain), (view, run)
    texts = {"stays": stays, "start": after, "former": findings.FORMER}
    moved, row = _moved(*both, _lines(*both), findings.SAID["now"], **texts)
    return [*parts, *moved], row


def _lines(before: ModelRun, after: ModelRun) -> list[str]:
    """The line that two runs translate; empty where they write nothing of their own."""
    writes = before[0].checkpoint.writes and catalog.trained(before[0].name) == before[0].name
    return [session.values()["line"]] * 2 if writes and not session.values()["target"] else []


def _moved(
    before: ModelRun,
    after: ModelRun,
    lines: Sequence[str],
    lead: str = "it writes",
    stays: str = findings.STAYS,
    start: str = findings.AFTER,
    former: str = findings.AFTER,
) -> tuple[Parts, int | None]:
    """What differs between two runs that translate these lines, if any: the texts, the class, or
    the next-token probability that changed most; and the token after which it did. `lead` comes
    before what `after` writes; `stays` says that this is the text of `before`. `start` comes before
    a row, or `former` where the texts differ, since the row belongs to the text of `before`."""
    if moved := consequences.class_moved(before, after):
        return findings.class_moved(moved.row, moved.token, moved.before, moved.after), None
    parts = []
    if lines:
        was, now = (
            _written(view, line, run)
            for (view, run), line in zip((before, after), lines, strict=True)
        )
        if was == now:
            parts.append((stays, ""))
        else:
            parts += findings.writes(lead, formats.differences(was, now), now)
            start = former
    moved = consequences.moved_most(before, after)
    if moved is None:
        was, now = (
            output_texts.output(*each, partial(passes.trace_of, *each))[1]
            for each in (before, after)
        )
        if now == was:
            return parts or [(findings.SAME_OUTPUT, "")], None
        return parts or [(f"The output changes: {was} → {now}", "")], None
    if moved.by <= findings.NOTHING:
        return [*parts, (findings.NO_CHANGE, "")], None
    told = findings.moved(moved.row, moved.token, moved.before, moved.after, start)
    return [*parts, *told], moved.at


def peek() -> Peek | None:
    """Where the decoder peeks most while the causal mask is off; else None."""
    if not session.values()["line"]:
        return None
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        run = selection.run(changed=True)
        return None if run.masks.causal else consequences.peek(selection.view(run), run)
    return None


def new_translation() -> str:
    """What the model writes with the current settings, where that is not the target; else ""."""
    if not session.values()["line"]:
        return ""
    with suppress(CannotChange, CannotRead, messages.NothingToShow):
        run = selection.run(changed=True)
        view = selection.view(run)
        if run == replace(passes.as_trained(run), pad_to=0, other=None):
            return ""
        if lines := _lines((view, run), (view, run)):
            text = _written(view, lines[0], run)
            return text if text != view.tokenizer.target.decode(run.texts[-1].ids) else ""
    return ""


def model_output() -> tuple[str, str]:
    """The title of the model's output, and the output as plain text."""
    if not session.values()["line"]:
        return "", ""
    try:
        run = selection.run()
        view = selection.view(run)
        title, text = output_texts.output(view, run, lambda: passes.trace_of(view, run))
        return _target_title(view.name) if len(run.texts) > 1 else title, text
    except (messages.NothingToShow, CannotRead, CannotChange):
        return "", ""  # the page says why


def _target_title(name: str) -> str:
    """Who wrote the target that a model reads: the user, the model or, for an untrained one, a
    trained one."""
    if session.has_typed_target():
        return output_texts.TYPED
    writer, chosen = catalog.trained(name), session.values()
    if concerns("hold") and chosen["hold"] and not chosen["target"]:
        return output_texts.wrote(f"{writer} (final weights)")
    if new_translation():
        return output_texts.wrote(f"{writer} (as trained)")
    if writer == name and (which := session.target_settings()):
        return output_texts.wrote(f"{writer} (with {which} settings)")
    return output_texts.wrote(writer, name)
