"""A button that copies the page's address, which holds every setting."""

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

LONGEST = 6000  # characters; some mail programs and servers cut longer ones

_mount = component(
    "headlight_copy_link",
    html="""
<button type="button">Copy link</button>
<span role="status"></span>
""",
    css=read("shared/button.css") + read("copy_link/style.css"),
    js=script("copy_link/index.js"),
)


def copy_link() -> None:
    _mount(data={"longest": LONGEST}, key="copy_link", width="content")
