"""The whole screen: the header, a page, and what stands at its foot, each drawn in its place."""

from collections.abc import Callable

import streamlit as st

from headlight.app import theme
from headlight.app.components.browser import browser_events
from headlight.app.shell import (
    class_remote,
    drawer,
    errors,
    frame,
    lesson,
    room,
    room_acts,
    running_lesson,
    stage,
)
from headlight.app.shell.layout import draw_head_picker
from headlight.app.shell.output import draw_not_finite
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import Page
from headlight.app.text import notices
from headlight.app.text.keys import BY_PAGE, EVERYWHERE


def draw(page: Page, run: Callable[[], None]) -> None:
    """Draw a page, which `run` runs, below the header that all have. The stage's own page has no
    other elements than what it has no words for: errors, what a lesson covers, notices; and at the
    foot, as on every page, what answers a question of a lesson or a room. The drawer holds the
    controls, while it is open."""
    running_lesson.open_link()
    class_remote.open_link()
    room_acts.open_view()
    stage.mount()
    notes = session.memo()
    body = st.container(key="stage_body" if page.stage else "page_body", gap=None)
    with body:
        browser_events((*BY_PAGE.get(page.key, ()), *EVERYWHERE))
    with room_acts.share(), room_acts.turn() as picture_is_drawn, session.running(page.key):
        notes.is_led = room_acts.is_led()
        stage.begin()
        if notes.drawer != page.key:
            notes.drawer = ""  # it does not wait on another page
        places = frame.make(body)
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
                lacks = session.context().lacks
                if running_lesson.covers(page.key):
                    lesson.draw_cover(page)
                elif lacks and not page.weights:
                    st.info(notices.needs_more(lacks))
                else:
                    if not page.stage:
                        with places.numbers:
                            stage.draw_header(page)
                        if page.head and session.context().structure is not None:
                            with places.controls:
                                draw_head_picker()
                    run()
            room_acts.lead(page)
            room_acts.run_plan()
            picture_is_drawn()
        finally:
            with places.numbers:
                stage.cover(page)
                if not page.stage:
                    stage.say(page, places)
            if foot and in_room:
                with body:
                    room.draw(page, foot)
            with errors.memory_errors_as_messages():
                lesson.keep_answers()
            class_remote.draw(page)
            if session.context().structure is not None:
                with errors.memory_errors_as_messages(), places.notices:
                    draw_notices()
            if notes.drawer == page.key:
                with errors.memory_errors_as_messages():
                    drawer.draw(page)
            widgets.draw_opened()
            session.finish()


def draw_notices() -> None:
    """What holds for every page."""
    if count := session.left_out():
        st.info(notices.left_out(count))
    draw_not_finite()
