"""The plan for a class in Present: the question of the slide that the address names, what it
covers, and the remote at the foot."""

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from headlight.app.components.class_steps import SlideLink, remote
from headlight.app.lessons.class_plan import ASK, Slide, plan
from headlight.app.lessons.question import Veil
from headlight.app.state import session
from headlight.app.state.pages import Page
from headlight.app.text import formats

IN_CLASS = "In class"  # the view of the page Learn


def back(at: int) -> str:
    """The address of the plan, unfolded at a slide."""
    view = {"picture": IN_CLASS, "model": plan().model, "plan": at}
    return f"learn?{urlencode(view | _room())}"


def _room() -> dict[str, str]:
    """Whoever is in a room stays there."""
    room = session.values()["room"]
    return {"room": room} if room else {}


def is_shown(page: Page) -> bool:
    """Whether the plan itself is shown, which is the teacher's own."""
    return page.key == "learn" and session.values().get("picture") == IN_CLASS


def slide() -> Slide | None:
    """The slide that is shown; None outside Present, and without the plan."""
    return _slide() if session.values()["projector"] else None


def _slide() -> Slide | None:
    at = session.values()["plan"]
    return plan().slides[at - 1] if 0 < at <= len(plan().slides) else None


def is_asking() -> bool:
    """Whether the question stands on the page. A room asks it by itself."""
    now = slide()
    return now is not None and now.kind == ASK and not _room()


def veils() -> tuple[Veil, ...]:
    """Covers the row that a question asks about, in a room on everybody's page."""
    now = _slide() if _room() else slide()
    if now is None or now.cover is None or session.context().structure is None:
        return ()
    return (Veil("row", **session.focus()._asdict(), place=now.cover),)


def open_link() -> None:
    """A link of the plan decides all settings: none of the slide before stays."""
    asked = st.query_params.get("plan", "")
    if session.memo().context is not None and asked.isdecimal():
        session.obey([*(each.address for each in links()), back(int(asked))])


def links() -> list[SlideLink]:
    """All questions and answers of the plan, each with its address."""
    found = []
    for number, each in enumerate(plan().slides, 1):
        view = {"model": plan().model, "projector": "true", "plan": number}
        if each.at.startswith("?") and "depth=" not in each.at:
            view["depth"] = "head"  # else it is that of the slide before
        more = urlencode(view | _room())
        address = f"{each.at}{'&' if '?' in each.at else '?'}{more}"
        words = formats.emphasised(each.text)
        found.append(SlideLink(each.step, each.kind, words, address))
    return found


def finding() -> dict[str, Any] | None:
    """What the slide says in the place of a finding, in Markdown: what it asks, which `stays`, or
    what one sees, which goes with the next selection. None where it says nothing."""
    now = slide()
    if now is None or (now.kind == ASK and not is_asking()):
        return None
    return {"text": now.text, "stays": now.kind == ASK}


def draw(page: Page) -> None:
    """The remote."""
    if slide() is not None:
        at = session.values()["plan"]
        titles = [step.title for step in plan().steps]
        remote(titles, links(), at, page.path or "", back(at))
