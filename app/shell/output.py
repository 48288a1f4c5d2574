"""What the model answers, and what the changes do to it."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import streamlit as st

from headlight.app import selection
from headlight.app.results import passes
from headlight.app.shell.layout import concerns, row
from headlight.app.shell.state_strip import draw_badges, draw_undo
from headlight.app.state import messages, session, widgets
from headlight.app.state.catalog import ModelView
from headlight.app.state.options import DIFFERENCE, TO_OTHER
from headlight.app.state.pages import HOME, Page
from headlight.app.wording import change_texts, formats, notices, output_texts
from headlight.model.probing.changes import CannotChange, written
from headlight.model.probing.run import Run
from headlight.model.probing.trace import CannotRead


def draw_not_finite() -> None:
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        if session.values()["line"]:
            run = selection.run()
            problems = passes.not_finite_of(selection.view(run), run)
            if any(problems):
                messages.show_message(notices.not_finite(*problems))


def draw_output(page: Page) -> None:
    """The model's output, and badges for what differs from the model as trained."""
    with row("answer"):
        title, text = _output()
        if title:
            st.markdown(f"**{formats.escaped(title)}**", width="content")
        if concerns("target"):
            widgets.draw(
                "target", widget_options={"placeholder": text, "label_visibility": "collapsed"}
            )
            if not session.values()["target"] and text:
                st.button(
                    "Edit",
                    icon=":material/edit:",
                    on_click=session.choose,
                    kwargs={"target": text},
                    help="Edit it as the target that the decoder reads.",
                    key="edit_target",
                )
            st.button(
                "Translate again",
                icon=":material/translate:",
                on_click=selection.translate_under_masks,
                help="Decodes with the masks as they are; the decoder reads the result.",
                key="translate_again",
            )
            if concerns("hold"):
                widgets.draw("hold", widget_options={"width": "content"})
        elif text:
            st.markdown(formats.escaped(text), width="content")
        draw_badges()
        if len(session.history().lines) > 1:
            draw_undo()
    if concerns("shows"):
        # The page says why.
        with row("effect"), suppress(CannotChange, CannotRead, messages.NothingToShow):
            shows = widgets.draw(
                "shows", widget_options={"label_visibility": "collapsed", "width": "content"}
            )
            if shows in (DIFFERENCE, TO_OTHER) and page.key != HOME:
                st.caption(change_texts.NO_DIFFERENCE, width="content")
            if text and session.values()["changes"]:
                _effect()
            elif text and session.context().has_other:
                _other()


def _other() -> None:
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
        shown = formats.with_differences(*texts)
    else:
        shown = formats.escaped(
            output_texts.output(view, run, partial(passes.trace_of, view, run))[1]
        )
    st.markdown(f"Other run: {shown}", width="content")


def _written(view: ModelView, line: str, run: Run) -> str:
    """The model's translation of a line under the masks, padding and changes of a run."""
    changes, other = written(run.changes), run.other
    ids = passes.target_of(view, line, run.masks, run.pad_to, changes, other).ids
    return view.tokenizer.target.decode(ids)


def _effect() -> None:
    """The effect of the changes on the model's output, and on the probability of the target."""
    run = selection.run(changed=True)
    view = selection.view(run)
    plain = replace(run, changes=(), other=None)
    if view.checkpoint.writes:
        texts = (_written(view, session.values()["line"], version) for version in (plain, run))
        st.markdown(formats.with_differences(*texts), width="content")
    else:
        now, before = (
            formats.escaped(
                output_texts.output(view, version, partial(passes.trace_of, view, version))[1]
            )
            for version in (run, plain)
        )
        st.markdown(f"{now}, before {before}", width="content")
    if not view.checkpoint.classes:
        now, before = (passes.log_probability(view, version) for version in (run, plain))
        side = passes.trace_of(view, run).predicted.title
        text = f"log-probability of the {side} **{now:.2f}** ({now - before:+.2f})"
        st.markdown(text.replace("-", "−").replace("log−", "log-"), width="content")


def _output() -> tuple[str, str]:
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
