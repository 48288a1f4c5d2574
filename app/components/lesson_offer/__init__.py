"""The offer of a first lesson, which goes away for good once it is answered."""

from collections.abc import Callable

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount = component(
    "headlight_lesson_offer",
    html="""
<p hidden>
  New to attention? <button type="button" class="no">Not now</button>
  <button type="button" class="start"></button>
</p>
""",
    css=read("lesson_offer/style.css"),
    js=script("lesson_offer/index.js"),
)


def lesson_offer(title: str, minutes: int, on_start: Callable[[], None]) -> None:
    _mount(data={"title": title, "minutes": minutes}, key="lesson_offer", on_start_change=on_start)
