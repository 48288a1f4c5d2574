"""Pages of HTML, taken apart."""

import json
import math
import re
import zlib
from base64 import b64decode
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np


class Markup(HTMLParser):
    """`tags`: the elements of a page, each by name and attributes; `texts`: what stands between
    them, each with "script" or "style" where it is one."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data):
        self.texts.append((self.cdata_elem or "", data))

    def values(self, *names: str) -> set[str]:
        """Of the attributes with these names."""
        return {at[name] for _, at in self.tags for name in names if at.get(name)}

    @property
    def links(self) -> set[str]:
        return self.values("href", "src", "srcset")

    @property
    def places(self) -> set[str]:
        """Where in a page a link can lead."""
        return self.values("id", "name")


def target_of(link: str, page: Path) -> Path | None:
    """The file that a link of a page names; None for an address elsewhere."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return None
    file = (page.parent / unquote(address.path)).resolve() if address.path else page
    return file / "index.html" if file.is_dir() else file


def broken_links(folder: Path, files: Iterable[Path]) -> list[tuple[str, str]]:
    """(page, link) for each link of these pages of a site that leads nowhere in its folder."""
    pages = {file.resolve(): Markup(file.read_text("utf-8")) for file in files}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            if (aim := target_of(link, file)) is None:
                continue
            place = unquote(urlsplit(link).fragment)
            is_there = aim.is_relative_to(folder.resolve()) and aim.is_file()
            if not is_there or (place and aim in pages and place not in pages[aim].places):
                broken.append((file.name, link))
    return broken


def inflated(page: str, name: str) -> bytes:
    """What a page of the stage holds as "run", "data" or "script"."""
    return zlib.decompress(b64decode(re.search(rf'id="{name}">([\w+/=]*)<', page)[1]))


def opened(page: str) -> dict:
    """The header of the data of such a page; each of its answers with its arrays, `found`."""
    data = inflated(page, "data")
    start = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:start])
    for answer in header["answers"]:
        answer["found"] = {}
        for name, shape in answer["shapes"].items():
            count = math.prod(shape)
            answer["found"][name] = np.frombuffer(data, "<f4", count, start).reshape(shape)
            start += 4 * count
    assert start == len(data)
    return header
