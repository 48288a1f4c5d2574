"""The whole screen: bar, page and panel, each drawn in its place."""

import base64
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from headlight.app import theme
from headlight.app.components.browser import browser_events, open_unframed
from headlight.app.shell import (
    class_remote,
    drawer,
    errors,
    frame,
    lesson,
    page_row,
    panel,
    room,
    room_acts,
    running_lesson,
    stage,
)
from headlight.app.shell.bar import draw_menu, draw_texts
from headlight.app.shell.layout import is_embedded, is_picture_alone, row
from headlight.app.shell.output import draw_not_finite
from headlight.app.shell.state_strip import draw_state
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import Page
from headlight.app.state.settings import MASKS, SETTINGS
from headlight.app.text import formats, notices
from headlight.app.text.keys import BY_PAGE, EVERYWHERE

MASK_TOOLTIPS = theme.tooltips(
    {key: rf"{SETTINGS[key].label}\A {SETTINGS[key].help}" for key in MASKS}
)
LOGO = Path(__file__).resolve().parents[2] / "assets" / "logo.svg"


@cache
def logo() -> str:
    """The logo as a data: URL."""
    return f"data:image/svg+xml;base64,{base64.b64encode(LOGO.read_bytes()).decode('ascii')}"


def draw(page: Page, run: Callable[[], None]) -> None:
    """Draw a page, which `run` runs. Its picture is drawn before most of the bar, whose lines keep
    their height meanwhile."""
    running_lesson.open_link()
    class_remote.open_link()
    room_acts.open_view()
    if page.stage or session.memo().is_staged:
        stage.mount()
    if page.stage:
        draw_stage(page, run)
        return
    session.memo().drawer = False  # it would lie over what one comes back for
    top_bar = st.container(key="top_bar", gap=None)
    with top_bar:
        # In no line that Present hides: there it could not see a colour change.
        browser_events((*BY_PAGE.get(page.key, ()), *EVERYWHERE))
        bar = row("bar")
        with bar:
            draw_menu(logo(), page)
        state = row("state")
        line = page_row.draw_title(page)
    body = st.container(key="body", horizontal=True, wrap=False, gap="small")
    with room_acts.share(), room_acts.turn() as picture_is_drawn, session.running(page.key):
        has_effect = "switches" not in page.idle
        page = room_acts.as_led(page)
        places = frame.make(
            line.controls,
            body,
            lesson=bool(session.values()["lesson"] or running_lesson.memo().finished),
            room=bool(room_acts.code()),
            presented=is_picture_alone(),
            above=line.row if page.alone else None,
        )
        try:
            style = theme.style(session.values()["projector"], page.idle)
            language = theme.language_style(catalog.language(session.values()["model"]))
            st.html(f"<style>{style}{language}{MASK_TOOLTIPS}</style>")
            if session.is_new_to_browser("styled", True) and style:
                time.sleep(theme.HEAD_START)
            with frame.of_page(places), errors.errors_as_messages():
                running_lesson.memo().in_room = room_acts.lesson_question()
                running_lesson.settle()
                if places.lesson:
                    with places.lesson:
                        lesson.draw(page)
                        lesson.draw_finished(page)
                lacks = session.context().lacks
                if running_lesson.covers(page.key):
                    lesson.draw_cover(page)
                elif lacks and not page.weights:
                    st.info(notices.needs_more(lacks))
                else:
                    run()
            room_acts.lead(page)
            room_acts.run_plan()
            picture_is_drawn()
        finally:
            if places.room:
                with top_bar:
                    room.draw(page, places.room)
            with bar, errors.memory_errors_as_messages():
                draw_texts(page)
                lesson.keep_answers()
            class_remote.draw(page)
            if session.context().structure is not None:  # else the page shows why
                with errors.memory_errors_as_messages():
                    with places.notices:
                        draw_notices()
                    says = has_effect and not running_lesson.veils()
                    if says and (said := places.effect().said):
                        places.finding.markdown(formats.as_markdown(said))
                    with places.change:
                        panel.draw_change(page)
                    with state:
                        draw_state(page)
                    with line.row:
                        page_row.draw_what_if(page)
                        page_row.draw_display(page)
                    if page.head:
                        with line.picker:
                            page_row.draw_picker(page)
                        with places.change:
                            panel.draw_head(page)
            widgets.draw_opened()


def draw_stage(page: Page, run: Callable[[], None]) -> None:
    """Draw the stage, which has bar, finding and picture of its own. What it has no words for
    stands in its place: errors, what a lesson covers; and beside it what a lesson or a room asks,
    and notices. The drawer holds the controls, while it is open."""
    notes = session.memo()
    notes.is_staged = True
    body = st.container(key="stage_body", gap=None)
    with body:
        browser_events((*BY_PAGE[page.key], *EVERYWHERE))
        if is_embedded():
            open_unframed()
    with room_acts.share(), room_acts.turn() as picture_is_drawn, session.running(page.key):
        page = room_acts.as_led(page)
        stage.begin()
        places = frame.make(body.container(key="unseen"), body)
        foot, in_room = None, bool(room_acts.code())
        if session.values()["lesson"] or running_lesson.memo().finished or in_room:
            foot = body.container(key="lesson_region", horizontal=True, gap="small")
        try:
            language = theme.language_style(catalog.language(session.values()["model"]))
            with places.explain:
                st.html(f"<style>{language}</style>")
            with frame.of_page(places), errors.errors_as_messages():
                running_lesson.memo().in_room = room_acts.lesson_question()
                running_lesson.settle()
                if foot:
                    with foot:
                        lesson.draw(page)
                        lesson.draw_finished(page)
                if running_lesson.covers(page.key):
                    lesson.draw_cover(page)
                else:
                    run()
            room_acts.lead(page)
            room_acts.run_plan()
            picture_is_drawn()
        finally:
            stage.cover()
            if foot and in_room:
                with body:
                    room.draw(page, foot)
            with errors.memory_errors_as_messages():
                lesson.keep_answers()
            class_remote.draw(page)
            if session.context().structure is not None:
                with errors.memory_errors_as_messages(), places.notices:
                    draw_notices()
            if notes.drawer:
                with errors.memory_errors_as_messages():
                    drawer.draw(page, logo())
            widgets.draw_opened()
            session.finish()


def draw_notices() -> None:
    """What holds for every page."""
    if count := session.left_out():
        st.info(notices.left_out(count))
    draw_not_finite()
