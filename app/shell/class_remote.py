"""The plan for a class in Present: the question of the beat that the address names, what it covers,
and the remote at the foot."""

from contextlib import suppress
from urllib.parse import parse_qs, urlencode, urlsplit

import streamlit as st

from headlight.app.components.class_steps import BeatLink, remote
from headlight.app.lessons.class_plan import ASK, Beat, plan
from headlight.app.lessons.question import Veil
from headlight.app.server.streamlit_internals import get_script_run_ctx
from headlight.app.state import session, widgets
from headlight.app.state.pages import Page
from headlight.app.state.settings import SETTINGS
from headlight.app.text import formats

IN_CLASS = "In class"  # the view of the page Learn


def back(at: int) -> str:
    """The address of the plan, at a beat."""
    return f"learn?{urlencode({'picture': IN_CLASS, 'plan': at})}"


def beat() -> Beat | None:
    """The beat that is shown; None outside Present, and without the plan."""
    at = session.values()["plan"]
    is_shown = session.values()["projector"] and 0 < at <= len(plan().beats)
    return plan().beats[at - 1] if is_shown else None


def is_asking() -> bool:
    now = beat()
    return now is not None and now.kind == ASK


def veils() -> tuple[Veil, ...]:
    """Covers the row that a question asks about."""
    now = beat()
    if now is None or now.cover is None or session.context().structure is None:
        return ()
    return (Veil("row", **vars(session.focus()), place=now.cover),)


def open_link(page: Page) -> None:
    """A link of the plan decides all settings: none of the beat before stays. Called before the
    settings of this run are made valid."""
    run, asked = get_script_run_ctx(), st.query_params.get("plan", "")
    if run is None or not run.is_history_navigation or session.memo().context is None or not asked:
        return
    query = parse_qs(run.query_string)
    addresses = [each.address for each in links()] + [back(int(asked))] if asked.isdecimal() else []
    if not any(parse_qs(urlsplit(address).query) == query for address in addresses):
        return
    wanted = {"model": plan().model, "step": SETTINGS["step"].default}
    wanted |= {key: SETTINGS[key].parse(texts) for key, texts in query.items() if key in SETTINGS}
    with suppress(ValueError):  # the page says what is not there
        session.restore(wanted, page.key)


def links() -> list[BeatLink]:
    """All questions and answers of the plan, each with its address."""
    found = []
    for number, each in enumerate(plan().beats, 1):
        more = urlencode({"model": plan().model, "projector": "true", "plan": number})
        address = f"{each.at}{'&' if '?' in each.at else '?'}{more}"
        words = formats.emphasised(each.text)
        found.append(BeatLink(each.step, each.kind, words, address))
    return found


def draw_question() -> None:
    """The question, where other pages have their finding."""
    now = beat()
    if now is not None and is_asking():
        with st.container(key="class_question"):
            st.markdown(now.text)


def draw(page: Page) -> None:
    """The remote, and the place in the plan, which the address keeps."""
    if session.values()["plan"]:
        with st.container(key="plan_address"):  # hidden
            widgets.draw("plan")
    if beat() is not None:
        at = session.values()["plan"]
        titles = [step.title for step in plan().steps]
        remote(titles, links(), at, page.path or "", back(at))
