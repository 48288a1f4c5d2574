"""An HTML page in a sandboxed frame: its scripts run but reach nothing outside.

st.iframe would give the scripts this page's rights, and its frame grows but never shrinks.
"""

from streamlit.components.v2 import component

from headlight.app.components.scripts import script

_mount = component(
    "headlight_html_frame",
    html='<iframe sandbox="allow-scripts"></iframe>',
    css="iframe { display: block; width: 100%; height: 30rem; border: none; }",
    js=script("html_frame/index.js"),
)


def html_frame(page: str, key: str, alt: str) -> None:
    """`page` reports its height by posting {height: pixels} to its parent."""
    _mount(data={"page": page, "alt": alt}, key=key)
