"""The components that are one script, index.js, and one style, style.css, in a folder of theirs."""

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script


def registered(folder: str, buttons: bool = False):
    """The function that mounts the component of a folder; with `buttons`, they look like those of
    other components."""
    shared = read("shared/button.css") if buttons else ""
    css = shared + read(f"{folder}/style.css")
    return component(f"headlight_{folder}", css=css, js=script(f"{folder}/index.js"))
