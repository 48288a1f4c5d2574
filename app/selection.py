"""The runs that the settings select, and this session's view of their models.

A page asks here once for what it shows, and passes it on. What cannot be shown ends the page.
"""

from contextlib import suppress
from dataclasses import replace

import streamlit as st

from headlight.app.results import memoize
from headlight.app.results.shown import Shown, target_of
from headlight.app.state import catalog, lines, settings
from headlight.app.state.catalog import ModelView
from headlight.app.state.messages import NothingToShow, show_message
from headlight.app.state.options import OTHER
from headlight.app.state.session import (
    Origin,
    context,
    current_choices,
    decode_target,
    decoding_settings,
    is_running,
    memo,
    values,
)
from headlight.app.state.settings import MASKS
from headlight.model.masks import Masks
from headlight.model.probing.changes import PATCHES, CannotChange, Change, check, parse, written
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.trace import CannotRead, read_of
from headlight.model.tokenizer import Encoding

BYTES_PER_TOKEN = 500  # of an Encoding, roughly
MOST_LINES = 50  # typed lines that are traced where each takes a pass


def view(run: Run | None = None, device: str = "") -> ModelView:
    """This session's view of a run's model, or of the selected model. Ends the page if the model
    cannot be read."""
    if not catalog.models():
        show_message("There is no model in assets/checkpoints. Train one with: headlight train")
        raise NothingToShow
    chosen = values()
    name, step = (run.checkpoint, run.step) if run else (chosen["model"], chosen["step"])
    return _view(name, step, device or catalog.device_of(chosen["device"]))


def _view(name: str, step: str, device: str) -> ModelView:
    try:
        return catalog.view_for(memo().session, name, step, device)
    except catalog.UnreadableModel as error:
        show_message(f"{error} Choose another model above, or train this one again.")
        raise NothingToShow from error


def shown(of_run: Run | None = None) -> Shown:
    """What a page shows: the run that the settings select, or another one, in its model. Ends the
    page if that cannot be read. Raises CannotRead and CannotChange."""
    of_run = of_run or run()
    return Shown(view(of_run), of_run)


def unchanged() -> Shown:
    """The run without changes to the model."""
    return shown(replace(run(), changes=(), other=None))


def text() -> str:
    """The line that the model reads. Ends the page if there is none."""
    if not (line := values()["line"]):
        raise NothingToShow("Type a sentence above to see what the heads attend to.")
    return line


def typed_texts() -> tuple[str, str]:
    """Source and target of the displayed run as typed; "" for a target that the model writes."""
    chosen = values()
    other = chosen["other"].strip() if chosen["shows"] == OTHER else ""
    return other or chosen["line"], chosen["target"].strip()


def masks() -> Masks:
    return Masks(**{name: values()[name] for name in MASKS})


def changes() -> tuple[Change, ...]:
    """The changes to the model. Raises CannotChange."""
    parsed = parse(values()["changes"])
    if parsed and not context().known.parts:
        raise CannotChange(f"“{parsed[0]}”: {context().known.lacks}")
    check(parsed, context().known.parts)
    return parsed


def other_run() -> Run | None:
    """The run to compare with and to patch from: another sentence with the same target, another
    model or training step, other masks; None if none is chosen. Raises CannotRead, also if its
    model has other heads."""
    if not context().has_other:
        return None
    chosen, plain = values(), run(changed=False)
    texts = plain.texts
    name = chosen["other_model"] or chosen["model"]
    step = chosen["other_step"] or (
        chosen["step"] if chosen["step"] in catalog.steps(name) else FINAL
    )
    if line := chosen["other"].strip():
        texts = (view().checkpoint.encode(line), *texts[1:])
    other = replace(
        plain,
        texts=texts,
        masks=Masks() if chosen["other_masks"] else masks(),
        checkpoint=name,
        step=step,
    )
    here, there = (each_view.model.sites() for each_view in (view(), view(other)))
    if here != there:
        raise CannotRead(
            f"“{name}” has different layers or heads from “{chosen['model']}”. A comparison "
            "needs the same ones."
        )
    return other


def run(changed: bool | None = None) -> Run:
    """The run that the settings select: `changed` by the masks that are off and by the changes, or
    with all masks and no changes, or, by default, as the user chose to see it: with them, or the
    comparison. Raises CannotRead and CannotChange."""
    if not is_running():
        return _selected(changed)
    if changed not in memo().runs:  # a script run asks eight times, of the same settings
        memo().runs[changed] = _selected(changed)
    return memo().runs[changed]


def _selected(changed: bool | None) -> Run:
    chosen, model_view = values(), view()
    if changed is None and chosen["shows"] == OTHER:
        other = other_run()
        assert other is not None  # else there is no such choice
        return other
    changed = changed is not False
    applied = changes() if changed else ()
    patched = any(isinstance(change, PATCHES) for change in applied)
    target = chosen["target"].strip()
    return _run(
        model_view,
        text(),
        target,
        masks=masks() if changed else Masks(),
        pad_to=chosen["pad_to"],
        changes=applied,
        other=other_run() if patched else None,
    )


def unpadded(pad_to: int) -> int:
    """The length in tokens of the shortest text, if padding to this length adds nothing; else 0."""
    with suppress(CannotRead, CannotChange, NothingToShow):
        model_view, displayed = view(), run()
        texts = read_of(model_view.model, replace(displayed, pad_to=0)).values()
        shortest = min(len(text.ids) for text in texts)
        return shortest if shortest >= pad_to else 0
    return 0


def tell_unchanged() -> None:
    """Draw a notice on pages that ignore the changes."""
    if run().changes:
        st.caption("This page leaves your changes out and shows the model without them.")


def default_run() -> Shown:
    """The same texts read by the default model, with all masks, on the CPU. Raises CannotRead."""
    model_view = _view(catalog.DEFAULT_MODEL, FINAL, "cpu")
    return Shown(model_view, _run(model_view, text(), values()["target"].strip()))


def plain_run() -> Shown:
    """The selected model with its final weights, all masks, no padding, and the target that it
    writes. Raises CannotRead."""
    model_view = _view(values()["model"], FINAL, catalog.device_of(values()["device"]))
    return Shown(model_view, _run(model_view, text()))


def example_runs() -> list[Run]:
    """Runs of the selected model on its example sentences."""
    model_view = view()
    return [_run(model_view, line) for line in catalog.examples(model_view.name)]


def sentence_runs() -> dict[str, Run]:
    """Line → its run: the example sentences and the first typed lines, without those that the model
    cannot read."""
    model_view, runs = view(), {}
    typed = lines.lines_of(values()["source"])[:MOST_LINES]
    for line in dict.fromkeys([*catalog.examples(model_view.name), *typed]):
        with suppress(CannotRead):
            run = _run(model_view, line)
            read_of(model_view.model, run)
            runs[line] = run
    return runs


def _run(model_view: ModelView, line: str, target: str = "", **given) -> Run:
    """The run of a model on a line. Without a typed target, the target is decoded with the masks as
    trained, so that it stays the same while masks are switched."""
    run = Run((_encode(model_view, line),), **given)
    run = replace(run, checkpoint=model_view.name, step=model_view.step)
    if len(model_view.model.sides()) == 1:
        return run
    if target:
        return replace(run, texts=(*run.texts, _encode(model_view, target, 1)))
    step = FINAL if values()["hold"] else model_view.step
    own = target_of(_writer(model_view, step), line)
    masks = run.masks.over(own.ids, model_view.model.config.pad_id)
    return replace(run, texts=(*run.texts, own), masks=masks)


def _encode(model_view: ModelView, text: str, side: int = 0) -> Encoding:
    """A text as `Checkpoint.encode` gives it. One script run asks for the same a dozen times."""

    def make():
        return model_view.checkpoint.encode(text, side)

    key = "encoding", model_view.stamp, text, side
    return memoize.memoize(key, make, lambda encoding: BYTES_PER_TOKEN * len(encoding.ids))


def _writer(model_view: ModelView, step: str) -> ModelView:
    """The model that writes the targets: the model itself at a training step, or a trained one for
    an untrained model."""
    name = catalog.trained(model_view.name)
    if (name, step) == (model_view.name, model_view.step):
        return model_view
    return _view(name, step if name == model_view.name else FINAL, model_view.device)


def translate_again() -> None:
    """Translate with the current masks, padding and changes, and put the result into the target
    box. A callback."""
    # Text typed just before the click arrives with it.
    memo().context = settings.valid(current_choices(), catalog)
    chosen = values()
    if not chosen["line"]:
        return
    try:
        model_view = view()
        writer = _writer(model_view, model_view.step)
        target = target_of(
            writer, chosen["line"], masks(), chosen["pad_to"], *_applied(writer is model_view)
        )
    except (NothingToShow, CannotRead, CannotChange):
        return  # the next page shows the reason
    text = model_view.tokenizer.target.decode(target.ids)
    decode_target(Origin(text, chosen["line"], decoding_settings()))


def _applied(own: bool) -> tuple[str, Run | None]:
    """The changes, and the run that is patched from; none if another model writes the target."""
    applied = changes() if own else ()
    patched = any(isinstance(change, PATCHES) for change in applied)
    return written(applied), other_run() if patched else None
