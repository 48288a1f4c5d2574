"""Links to pages, all in one element: the menu, and the views of a page."""

from collections.abc import Iterable

from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount = component(
    "headlight_page_links",
    html="<nav></nav>",
    css=read("page_links/style.css"),
    js=script("page_links/index.js"),
)


def page_links(
    key: str,
    links: Iterable[tuple[str, str, bool]],
    here: str,
    logo: str = "",
    title: str = "Pages",
) -> None:
    """Each link: its label, the path of its page, and whether it is shown as current. `here` is the
    path of the page that they stand on; `logo`: an image before them, as a data address. `title`
    names the links for screen readers."""
    _mount(
        data={
            "links": [dict(zip(("label", "path", "current"), link, strict=True)) for link in links],
            "here": here,
            "logo": logo,
            "title": title,
        },
        key=key,
        width="content",
    )
