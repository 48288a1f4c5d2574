"""Browser events that Streamlit does not report: Back restores the scroll position, a change of
theme reruns the script (figures are drawn in the theme's ink), and a slow run marks the page as
slow."""

from streamlit.components.v2 import component

from headlight.app.components.scripts import script

_mount = component(
    "headlight_browser_events",
    html="<i></i>",
    css="i { color: var(--st-text-color); }",
    js=script("browser_events/index.js"),
)


def browser_events() -> None:
    _mount(key="browser_events", height=1, on_recoloured_change=lambda: None)
