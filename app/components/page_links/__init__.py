"""Links to pages, all in one element."""

from collections.abc import Iterable

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount = component(
    "headlight_page_links",
    html="<nav></nav>",
    css=read("page_links/style.css"),
    js=script("page_links/index.js"),
)


def page_links(key: str, links: Iterable[tuple[str, str, bool]], here: str) -> None:
    """Each link: its label, the path of its page, with a place of the
    stage if one is meant, and whether it is shown as current. `here` is the
    path of the page that they stand on."""
    _mount(
        data={
            "links": [dict(zip(("label", "path", "current"), link, strict=True)) for link in links],
            "here": here,
            "title": "Pages",
        },
        key=key,
        width="content",
    )
