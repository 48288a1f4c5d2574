"""python -m tests.site FOLDER: writes a web site into the folder: a page to begin with, the
documentation, and live pages. Any static host serves it, in a subfolder too; it also opens as a
file."""

import argparse
import html
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from string import Template

from PIL import Image

from headlight.app.live import build, lesson
from headlight.app.theme import INK, PAPER, PRIMARY
from headlight.model.checkpoint import SHIPPED, load
from tests import documentation
from tests.documentation import DOCS, ROOT

DESCRIPTION = "See what every attention head of a Transformer attends to"
MODELS = ("en-fr", "en-de", "english", "induction")
LESSONS = ("shares", "query-key-value")
MARK = "live/en-fr.html"  # in no folder but one that we wrote
# What Hugging Face reads of a Space that serves files.
SPACE = f"""---
title: Headlight
emoji: 🔦
colorFrom: indigo
colorTo: yellow
sdk: static
pinned: false
license: other
license_name: see-terms
short_description: {DESCRIPTION}
---

# Headlight

{DESCRIPTION}. The code is under the MIT licence. Terms of the data that each model was trained on:

"""


def write(folder: Path) -> None:
    """Writes the site. What the folder held of one is replaced; ValueError if it holds something
    else."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ValueError(f"{folder} is not empty and holds no site. Choose another folder.")
    with tempfile.TemporaryDirectory() as copy:
        docs = documentation.built(Path(copy))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(docs, folder / "docs")
    (folder / "live").mkdir()
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE.txt")
    entries, terms = [], []
    for name in MODELS:
        card = load(name).card
        size = _live(folder, name, build.page(name))
        entries.append(_entry(name, card["title"], f"Training data: {card['terms']}", size))
        terms.append(f"- `{name}`: {card['terms']}")
    for name in LESSONS:
        model = lesson.CARRIED[name]
        found = lesson.find(name)
        carried = lesson.carried(found, model, cache(load))
        size = _live(folder, name, build.page(model, carried=carried))
        title = f"Lesson: {found.title}"
        entries.append(_entry(name, title, f"With the model {model}.", size))
    (folder / "README.md").write_text(SPACE + "\n".join(terms) + "\n", encoding="utf-8")
    names = (DOCS / "llms.txt").read_text(encoding="utf-8").replace("](", "](docs/")
    (folder / "llms.txt").write_text(names, encoding="utf-8")
    (folder / ".nojekyll").touch()  # GitHub Pages would leave out names that begin with _
    (folder / "index.html").write_text(_landing(folder, entries), encoding="utf-8")


def _live(folder: Path, name: str, text: str) -> int:
    """Its size in bytes."""
    return (folder / "live" / f"{name}.html").write_bytes(text.encode("utf-8"))


def _entry(name: str, title: str, terms: str, size: int) -> str:
    link = f'<a class="live" href="live/{name}.html" data-bytes="{size}">{html.escape(title)}</a>'
    return f"<dt>{link} <small>{_megabytes(size)}</small></dt><dd>{html.escape(terms)}</dd>"


def _megabytes(size: int) -> str:
    return f"{size / build.MEGABYTE:.1f} MB"


def _landing(folder: Path, entries: list[str]) -> str:
    first = MODELS[0]
    size = (folder / "live" / f"{first}.html").stat().st_size
    with Image.open(DOCS / "pictures" / "film.webp") as film:
        width, height = film.size
    colours = {
        f"{name}_{theme}": values[theme]
        for name, values in (("ink", INK), ("paper", PAPER), ("primary", PRIMARY))
        for theme in ("light", "dark")
    }
    template = Template((ROOT / "assets" / "landing.html").read_text(encoding="utf-8"))
    return template.substitute(
        colours,
        description=DESCRIPTION,
        logo=(SHIPPED.parent / "logo.svg").read_text(encoding="utf-8"),
        first=first,
        first_bytes=size,
        first_size=_megabytes(size),
        film_width=width,
        film_height=height,
        pages="\n".join(entries),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is written")
    folder = parser.parse_args().folder
    try:
        write(folder)
    except ValueError as why:
        sys.exit(str(why))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder / 'index.html'}: {size / build.MEGABYTE:.0f} MB. Open it in a browser.")


if __name__ == "__main__":
    main()
