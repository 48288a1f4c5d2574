"""The components that are one script, index.js, and one style, style.css, in a folder of theirs."""

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script


def registered(folder: str, *looks: str):
    """The function that mounts the component of a folder. `looks`: styles that it shares with
    others, such as button, of shared/button.css."""
    css = "".join([read(f"shared/{look}.css") for look in looks] + [read(f"{folder}/style.css")])
    return component(f"headlight_{folder}", css=css, js=script(f"{folder}/index.js"))
