"""The browser's side of a room: it hears what happens there, leads a follower's page, and keeps the
view of whoever is led away. And the form that starts or joins a room."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount_line = component(
    "headlight_room_line",
    html="""
<button type="button" class="own" hidden>My own view</button>
<button type="button" class="code" hidden>Show the code</button>
<span role="status"></span>
<dialog aria-label="How to join">
  <div>
    <p>Open this address</p><p class="address"></p>
    <p>or open Headlight there, and type the code under Learn, In class</p><p class="letters"></p>
    <p class="note">No name, no account. The room keeps your answers until it ends, and nothing
    else.</p>
    <form method="dialog"><button>Close</button></form>
  </div>
  <img alt="QR code of this address">
</dialog>
""",
    css=read("shared/button.css") + read("room/line.css"),
    js=script("room/line.js"),
)
_mount_form = component(
    "headlight_room_form",
    html="""
<button type="button">Start a room</button>
<form method="get" action="/room">
  <input name="code" aria-label="Code of a room" placeholder="Code" maxlength="7" size="7"
    autocomplete="off" autocapitalize="characters" spellcheck="false" required>
  <button>Join</button>
</form>
<p role="alert"></p>
""",
    css=read("shared/button.css") + read("room/form.css"),
    js=script("room/form.js"),
)


@dataclass(frozen=True)
class Invitation:
    """How to join a room: the address, with the code in it, and its QR code as a data: URL."""

    address: str
    qr_code: str


def room_line(
    code: str,
    mark: str,
    following: bool,
    is_teacher: bool,
    shown: str,
    invitation: Invitation | None,
    on_place: Callable[[Mapping], None] | None,
) -> None:
    """`mark`: of the room's state that is drawn. `shown`: the address of what the page shows.
    `on_place` hears where on the stage this browser is, {place, selection}, each time it moves."""
    data: Mapping[str, object] = {
        "code": code,
        "mark": mark,
        "following": following,
        "isTeacher": is_teacher,
        "shown": shown,
        "invitation": asdict(invitation) if invitation else None,
        "hearsPlace": on_place is not None,
    }
    key = "room_events"
    _mount_line(
        data=data, key=key, width="content", on_changed_change=lambda: None,
        on_place_change=lambda: on_place and on_place(st.session_state[key].place),
    )  # fmt: skip


def room_form() -> None:
    _mount_form(key="room_form", width="content")
