"""What only the browser can do: its events, what it stores, its clipboard, and links."""

from collections.abc import Callable, Collection

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script
from headlight.app.text.keys import Keys

LONGEST = 6000  # characters of an address; some mail programs and servers cut longer ones

_mount_events = component(
    "headlight_browser_events",
    html="""
<i></i>
<dialog aria-labelledby="title">
  <header>
    <h2 id="title">Keys</h2>
    <form method="dialog"><button>Close</button></form>
  </header>
  <table><tbody></tbody></table>
</dialog>
""",
    css="i { color: var(--st-text-color); }"
    + read("shared/button.css")
    + read("browser/keys_sheet.css"),
    js=script("browser/events.js"),
)
_mount_storage = component(
    "headlight_local_storage", html="<i></i>", js=script("browser/local_storage.js")
)
_mount_copy = component(
    "headlight_copy_link",
    html='<button type="button">Copy</button><span role="status"></span>',
    css="button { font: inherit; font-size: 0.94em; color: var(--st-primary-color); padding: 0; "
    "border: 0; background: none; cursor: pointer; } "
    "span:not(:empty) { overflow-wrap: anywhere; margin-left: 0.6rem; }",
    js=script("browser/copy_link.js"),
)
_mount_follow = component(
    "headlight_follow_link", html="<i></i>", js=script("browser/follow_link.js")
)


def browser_events(keys: Keys) -> None:
    """Events that Streamlit does not report: Back restores the scroll position, a change of theme
    reruns the script (figures are drawn in the theme's ink), a slow run marks the page as slow, and
    ? opens a sheet of the page's `keys`, as does a button in a container `keys`."""
    _mount_events(
        data={"keys": keys}, key="browser_events", height=1, on_recoloured_change=lambda: None
    )


def local_storage(session: str, text: str | None, on_stored: Callable[[str], None]) -> None:
    """Keep `text` in the browser. While it is None, `on_stored` hears once per `session` what is
    kept, if anything is."""

    def stored() -> None:
        on_stored(st.session_state["local_storage"].stored)

    _mount_storage(
        data={"session": session, "text": text},
        key="local_storage",
        height=1,
        on_stored_change=stored,
    )


def copy_link(view: str, here: str, place: Collection[str]) -> None:
    """A button that copies the address of a view, from the app's root, with the words of `place`
    that the address has of the page at the path `here`."""
    data = {"longest": LONGEST, "view": view, "here": here, "place": [*place]}
    _mount_copy(data=data, key="copy_link", width="content")


def follow_link(address: str, here: str, count: int) -> None:
    """Open an address, from the app's root, on the page whose path is `here`: once for each
    `count`."""
    data = {"address": address, "here": here, "count": count}
    _mount_follow(data=data, key="follow_link", height=1)
