"""The model's output, as a menu in which the target is edited; numbers that are not finite."""

from contextlib import suppress

import streamlit as st

from headlight.app import selection
from headlight.app.shell.effect import as_trained, translated_lines, translation
from headlight.app.shell.layout import concerns, menu
from headlight.app.state import catalog, messages, session, widgets
from headlight.app.text import formats, notices, output_texts
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead


def draw_not_finite() -> None:
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        if session.values()["line"]:
            run = selection.run()
            problems = selection.shown(run).not_finite
            if any(problems):
                messages.show_message(notices.not_finite(*problems))


def draw_output() -> None:
    """The model's output; for a translation, a menu in which the target is edited, and a button for
    what the changed model writes."""
    is_new = has_new_translation()
    title, text = model_output(is_new)
    label = f"**{formats.escaped(title)}:** {formats.escaped(text)}" if title else "Target"
    if not concerns("target"):
        if title:
            st.markdown(label, width="content")
        return
    with menu(
        label, "output", type="tertiary", help="Edit the target, or translate again"
    ) as output:
        if output.open:
            widgets.draw("target", widget_options={"placeholder": text})
            _draw_ways(text)
            if concerns("hold"):
                widgets.draw("hold")
    if is_new:
        st.button(
            "Use the new translation",
            icon=":material/translate:",
            on_click=selection.translate_again,
            help="The decoder then reads the new translation.",
            key="use_new_translation",
        )


def _draw_ways(text: str) -> None:
    """To another target than the one that the model wrote, `text`."""
    with st.container(horizontal=True):
        if not session.values()["target"] and text:
            st.button(
                "Edit",
                icon=":material/edit:",
                on_click=session.choose,
                kwargs={"target": text},
                help="Edit the text that the decoder reads",
                key="edit_target",
            )
        st.button(
            "Translate again with the current settings",
            icon=":material/translate:",
            on_click=selection.translate_again,
            help="The decoder then reads the result.",
            key="translate_again",
        )


def has_new_translation() -> bool:
    """Whether the model writes another text than the target with the current settings."""
    if not session.values()["line"]:
        return False
    with suppress(CannotChange, CannotRead, messages.NothingToShow):
        shown = selection.shown(selection.run(changed=True))
        if shown.run == as_trained(shown.run):
            return False
        if lines := translated_lines(shown, shown):
            target = shown.view.tokenizer.target.decode(shown.run.texts[-1].ids)
            return translation(shown, lines[0]) != target
    return False


def model_output(is_former: bool = False) -> tuple[str, str]:
    """The title of the model's output, and the output as plain text. `is_former`: with the current
    settings it would be another one."""
    if not session.values()["line"]:
        return "", ""
    try:
        shown = selection.shown()
        title, text = output_texts.output(shown.view.checkpoint, shown.run, lambda: shown.trace)
        is_written = len(shown.run.texts) > 1 and concerns("target")
        return _target_title(shown.view.name, is_former) if is_written else title, text
    except (messages.NothingToShow, CannotRead, CannotChange):
        return "", ""  # the page says why


def _target_title(name: str, is_former: bool) -> str:
    """Who wrote the target that a model reads: the user, the model or, for an untrained one, a
    trained one."""
    if session.has_typed_target():
        return output_texts.TYPED
    writer, chosen = catalog.trained(name), session.values()
    if concerns("hold") and chosen["hold"] and not chosen["target"]:
        return output_texts.wrote(f"{writer} (final weights)")
    if is_former:
        return output_texts.wrote(f"{writer} (as trained)")
    if writer == name and (which := session.target_settings()):
        return output_texts.wrote(f"{writer} (with {which} settings)")
    return output_texts.wrote(writer, name)
