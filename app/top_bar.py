"""What stands on top of every page: the model, its texts, what is not as trained, the masks and the
selected head. Each widget writes its own part of the address, so that the address of a page is all
one needs to come back to it."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import streamlit as st

from app import acts, board, catalog, compute, effects, labels, session
from app.catalog import ModelView
from app.components.browser_events import browser_events
from app.components.copy_link import copy_link
from app.components.player import player
from app.pages import EXPORT, HOME, PAGES, Page
from app.settings import ABLATION, DIFFERENCE, MASKS, PATCHING, SETTINGS, TO_OTHER
from model.probing.changes import CannotChange, written
from model.probing.run import Run
from model.probing.trace import CannotRead

FEW = 3  # badges that are shown; the others stand behind them
# On a narrow screen it opens what of the bar is folded away there: see NARROW_STYLE in theme.py.
FOLD = '<details class="hl-fold"><summary>Controls</summary></details>'
READY_MADE = (
    "off", "mean", "uniform", "skip", "mask:none", "mask:causal", "mask:window-1", "mask:diagonal",
    "mask:no_diagonal", "mask:no_first", "temperature:0.5", "temperature:2.0", "patch",
)  # fmt: skip
OTHER_RUN = ("other", "other_model", "other_step", "other_masks")
READING = ("pattern", "show", "scale", "order", "average", "special", "words", "least")


def top_bar(page: Page) -> None:
    with _line("texts"):
        session.draw("model", look={"width": 190, "label_visibility": "collapsed"})
        session.draw("source", look={"height": "content", "label_visibility": "collapsed"})
        st.html(FOLD)
        _examples()
        _more()
    if session.context().structure is None:  # the page shows why
        st.title(page.title, anchor=False)
        return
    if count := session.left_out():
        st.info(labels.left_out(count))
    _answer(page)
    _not_finite()
    with _line("masks"):
        for key in filter(_concerns, MASKS):
            session.draw(key, look={"width": "content"})
        st.markdown(SETTINGS["pad_to"].label, width="content")
        session.draw("pad_to", look={"width": 110, "label_visibility": "collapsed"})
        if _concerns("step"):
            _steps()
    with _line("page"):
        st.title(page.title, anchor=False, width="content")
        if page.head:
            for key in ("kind", "layer", "head"):
                if key != "kind":
                    st.markdown(SETTINGS[key].label, width="content")
                session.draw(key, look={"label_visibility": "collapsed"})
            st.button(
                "",
                icon=":material/power_settings_new:",
                on_click=acts.act,
                kwargs={"what": "off"} | vars(session.focus()),
                help="Switch the selected head off, or on again (O on the tiles)",
                key="switch_head",
            )
        st.space("stretch")
        what_if = st.popover("What if", icon=":material/science:", key="what_if", on_change="rerun")
        with what_if:
            session.draw("changes")
            with st.container(horizontal=True):
                _draw_where_open(what_if, OTHER_RUN, page)
            if what_if.open:
                if page.head:
                    _ready_made()
                _pairs()
                st.markdown(labels.CHANGES)
        if page.reading:
            display = st.popover(
                "Display", icon=":material/tune:", key="display", on_change="rerun"
            )
            with display:
                _draw_where_open(display, READING, page)
                if session.values()["order"] in (ABLATION, PATCHING):
                    _score()
        if page.key != EXPORT:
            st.page_link(PAGES[EXPORT].file, label="Export", icon=":material/download:")
        copy_link()
        browser_events()


def _not_finite() -> None:
    with suppress(session.NothingToShow, CannotChange, CannotRead):  # the page says why
        if session.values()["line"]:
            run = session.run()
            found = compute.not_finite_of(session.view(run), run)
            if any(found):
                session.show_message(labels.not_finite(*found))


def _draw_where_open(box, keys: Sequence[str], page: Page) -> None:
    """Settings that a popover holds. Closed, it holds those alone that were chosen: all would be
    sent with every click. On Export a file may set any, and only a widget that is there already
    writes it into the address."""
    for key in filter(_concerns, keys):
        chosen = session.values()[key] != SETTINGS[key].default
        if box.open or chosen or page.key == EXPORT:
            session.draw(key)


def _score() -> None:
    with suppress(session.NothingToShow, CannotChange, CannotRead):  # the page says why
        run = session.run()
        effects.draw_score(compute.trace_of(session.view(run), run))


def _ready_made() -> None:
    """Changes of the selected head, its layer or its kind, without writing them."""
    with st.container(horizontal=True):
        st.segmented_control(
            "Of",
            list(acts.AROUND),
            default="head",
            key="change_of",
            required=True,
            label_visibility="collapsed",
        )
        st.selectbox(
            "Add a change",
            READY_MADE,
            index=None,
            placeholder="Add a change",
            key="ready_made",
            on_change=_take_ready_made,
            label_visibility="collapsed",
            width=200,
        )


def _take_ready_made() -> None:
    if verb := st.session_state["ready_made"]:
        acts.add_change(st.session_state["change_of"], verb)
        session.choose(ready_made=None)


def _take_pair() -> None:
    if chosen := st.session_state["minimal_pair"]:
        source, other = chosen.split(" / ")
        session.choose(source=source, other=other, target="", minimal_pair=None)


def _pairs() -> None:
    """Pairs of sentences that differ in a word and have as many tokens."""
    if known := catalog.pairs(session.values()["model"]):
        st.selectbox(
            "Minimal pairs",
            [" / ".join(pair) for pair in known],
            index=None,
            placeholder="Take a minimal pair",
            key="minimal_pair",
            on_change=_take_pair,
            label_visibility="collapsed",
        )


def _undo() -> None:
    for by, what, key in ((-1, "undo", "u"), (1, "redo", "y")):
        st.button(
            "",
            icon=f":material/{what}:",
            on_click=acts.travel,
            args=(by,),
            disabled=not session.history().can(by),
            help=f"{what.capitalize()} a change ({key.upper()})",
            shortcut=key,
            key=what,
        )
    st.button(
        "",
        icon=":material/restart_alt:",
        on_click=session.reset,
        args=("changes",),
        disabled=not session.values()["changes"],
        help="Take all changes away (X)",
        shortcut="x",
        key="no_changes",
    )


def _steps() -> None:
    chosen = session.values()
    steps = list(catalog.steps(chosen["model"]))
    player(steps, chosen["step"], on_step=lambda step: session.choose(step=step))
    session.draw("step", look={"width": 160, "label_visibility": "collapsed"})


def _line(key: str):
    return st.container(horizontal=True, vertical_alignment="center", key=key, gap="small")


def _concerns(key: str) -> bool:
    return SETTINGS[key].concerns(session.context())


def _more() -> None:
    """What one seldom changes."""
    more = st.popover(
        "",
        icon=":material/more_vert:",
        help="Projector, device, all models",
        key="more",
        on_change="rerun",
    )
    with more:
        session.draw("projector")
        session.draw("device")
        if more.open and (address := board.address()):
            st.markdown(f"For the class: **{address}**")
            st.image(board.qr_code(address), width=260)
        if more.open:
            for name, card in catalog.cards().items():
                st.markdown(f"**{labels.escaped(name)}**: {card}")


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        session.choose(source=chosen, target="", example=None)


def _surprise(known: list[str]) -> None:
    others = [text for text in known if text != session.values()["source"]]
    session.choose(source=random.choice(others), target="")


def _examples() -> None:
    known = catalog.examples(session.values()["model"])
    if _concerns("line"):
        session.draw("line", look={"width": 200, "label_visibility": "collapsed"})
    if len(known) < 2:
        return
    st.selectbox(
        "Examples",
        known,
        index=None,
        placeholder="Examples",
        key="example",
        on_change=_take_example,
        label_visibility="collapsed",
        width=150,
    )
    st.button(
        "",
        icon=":material/casino:",
        on_click=_surprise,
        args=(known,),
        help="Another example",
        key="surprise",
    )


def _answer(page: Page) -> None:
    """What the model says, and what about it is not as it was trained."""
    with _line("answer"):
        title, text = _output()
        if title:
            st.markdown(f"**{labels.escaped(title)}**", width="content")
        if _concerns("target"):
            session.draw("target", look={"placeholder": text, "label_visibility": "collapsed"})
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
                on_click=session.translate_under_masks,
                help="Decodes with the masks as they are; the decoder reads the result.",
                key="translate_again",
            )
            if _concerns("hold"):
                session.draw("hold", look={"width": "content"})
        elif text:
            st.markdown(labels.escaped(text), width="content")
        _badges()
        if len(session.history().lines) > 1:
            _undo()
    if _concerns("shows"):
        # The page says why.
        with _line("effect"), suppress(CannotChange, CannotRead, session.NothingToShow):
            shows = session.draw(
                "shows", look={"label_visibility": "collapsed", "width": "content"}
            )
            if shows in (DIFFERENCE, TO_OTHER) and page.key != HOME:
                st.caption(labels.NO_DIFFERENCE, width="content")
            if text and session.values()["changes"]:
                _effect()
            elif text and session.context().has_other:
                _other()


def _other() -> None:
    """What the model of the other run makes of its text, beside what this one makes of its own.
    Neither is the target that both are shown with: that may be typed, or of another step."""
    run = session.other_run()
    view = session.view(run)
    if view.checkpoint.writes:
        line = session.values()["line"]
        texts = (
            _written(session.view(), line, session.run(changed=False)),
            _written(view, session.values()["other"].strip() or line, run),
        )
        shown = labels.with_differences(*texts)
    else:
        shown = labels.escaped(labels.output(view, run, partial(compute.trace_of, view, run))[1])
    st.markdown(f"Other run: {shown}", width="content")


def _written(view: ModelView, line: str, run: Run) -> str:
    """What a model writes for a line, under the masks, padding and changes of a run."""
    changes, other = written(run.changes), run.other
    ids = compute.target_of(view, line, run.masks, run.pad_to, changes, other).ids
    return view.tokenizer.target.decode(ids)


def _effect() -> None:
    """What the changes do: to what the model writes, and to how probable it finds what is read."""
    run = session.run(changed=True)
    view = session.view(run)
    plain = replace(run, changes=(), other=None)
    if view.checkpoint.writes:
        texts = (_written(view, session.values()["line"], one) for one in (plain, run))
        st.markdown(labels.with_differences(*texts), width="content")
    else:
        now, before = (
            labels.escaped(labels.output(view, one, partial(compute.trace_of, view, one))[1])
            for one in (run, plain)
        )
        st.markdown(f"{now}, before {before}", width="content")
    if not view.checkpoint.classes:
        now, before = (compute.log_probability(view, one) for one in (run, plain))
        side = compute.trace_of(view, run).predicted.title
        text = f"log-probability of the {side} **{now:.2f}** ({now - before:+.2f})"
        st.markdown(text.replace("-", "−").replace("log−", "log-"), width="content")


def _output() -> tuple[str, str]:
    """What the model's output is called, and the output as plain text."""
    if not session.values()["line"]:
        return "", ""
    try:
        run = session.run()
        view = session.view(run)
        title, text = labels.output(view, run, lambda: compute.trace_of(view, run))
        held = _concerns("hold") and session.values()["hold"] and not session.values()["target"]
        return f"{title}, final step" if held else title, text
    except (session.NothingToShow, CannotRead, CannotChange):
        return "", ""  # the page says why


def _badges() -> None:
    if message := catalog.random_weights(session.values()["model"]):
        st.badge("Random weights", icon=":material/casino:", color="orange", help=message)
    badges = [partial(_badge, key, label) for key, label in session.badges()]
    badges += _badges_of_changes()
    for badge in badges[:FEW]:
        badge()
    if more := badges[FEW:]:
        with st.popover(f"+{len(more)} more"):
            for badge in more:
                badge()


def _badges_of_changes() -> list[Callable]:
    """One for each change, which takes it away; one for a line that cannot be read."""
    try:
        changes = session.changes()
    except CannotChange:
        return [partial(_badge, "changes", "Changes that cannot be read")]
    return [
        partial(
            st.button,
            f"{change} ×",
            on_click=acts.change,
            args=([other for other in changes if other != change],),
            help="Take this change away",
            key=f"change_{number}",
            type="primary",
            wrap=False,
        )
        for number, change in enumerate(changes)
    ]


def _badge(key: str, label: str) -> None:
    chosen = session.values()
    score = catalog.steps(chosen["model"]).get(chosen["step"], "") if key == "step" else ""
    undone = "The model writes the target" if key == "target" else "As the model was trained"
    st.button(
        f"{label} ×",
        on_click=session.reset,
        args=(key,),
        help=f"{score}  \n{undone}" if score else undone,
        key=f"badge_{key}",
        type="primary",
        wrap=False,
    )
