"""What one takes along: a link, the picture, its numbers, files that work by themselves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import streamlit as st

from headlight.app import selection
from headlight.app.components.browser import copy_link
from headlight.app.export import assignment, bundle, paper, pictures, tables
from headlight.app.export.figures import TooNarrow
from headlight.app.export.view import View, permalink, stem
from headlight.app.live import build
from headlight.app.results import memoize
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, grid_display
from headlight.app.shell.layout import row, st_page
from headlight.app.state import address, catalog, messages, session, widgets
from headlight.app.state.dropped import drop
from headlight.app.state.options import ALL, ONE
from headlight.app.state.pages import EXPORT, HOME, PAGES
from headlight.app.state.settings import SETTINGS
from headlight.app.text import formats
from headlight.model.recording.recording import ENDING

KINDS = {"PDF": "application/pdf", "SVG": "image/svg+xml", "PNG": "image/png"}
TABLES = {
    "CSV": ("csv", "text/csv", tables.csv),
    "Parquet": ("parquet", "application/vnd.apache.parquet", tables.parquet),
    "NPZ": ("npz", "application/octet-stream", tables.npz),
}
NOTEBOOK = Path(__file__).resolve().parents[2] / "assets" / "headlight.ipynb"


def take_file() -> None:
    """Read an uploaded bundle and restore its settings, or open a recording; errors are shown
    below. A callback."""
    notes = session.memo()
    notes.pack, notes.recording, notes.refused = None, "", ""
    if (file := st.session_state["pack"]) is None:
        return
    try:
        if file.name.lower().endswith(ENDING):
            notes.recording = drop(file.name, file.getvalue())
            source = catalog.examples(notes.recording)[0]
            session.choose(model=notes.recording, source=source, target="", changes="")
        else:
            pack = bundle.read(file.getvalue())
            session.restore(pack.settings, pack.page)
            notes.pack = pack
    except ValueError as error:
        notes.refused = str(error)


def file_button(
    label: str,
    make: Callable[[], bytes],
    name: str,
    kind: str,
    look: Literal["primary", "tertiary"] = "tertiary",
    disabled: bool = False,
) -> None:
    """A file that is made on demand."""
    st.download_button(
        label, memoize.one_at_a_time(make), name, kind, key=f"take {name}", on_click="ignore",
        type=look, disabled=disabled,
    )  # fmt: skip


@contextmanager
def way(key: str, title: str, said: str = "") -> Iterator[None]:
    """One thing to take: its name, at its right the ways to take it, and below what it is."""
    with st.container(gap=None):
        with row(f"way_{key}"):
            st.markdown(title and f"**{title}**", width="stretch")
            yield
        if said:
            st.caption(said)


def page() -> None:
    verdict = st.container(key="verdict")
    if refused := session.memo().refused:
        messages.show_message(f"The file could not be opened. {refused}", verdict.error)
    preview, ways = st.columns([3, 2], gap="large")
    with ways:
        upper = st.container()
        draw_opening()  # also where there is nothing to show
    shown = selection.shown()
    off, hidden = grid_display.off_tiles(shown.run), grid_display.hidden(shown.run)
    view = View(shown.whole, session.to_share(), session.focus(), off, hidden, session.last_page())
    model = bundle.Model(view.settings["model"], *catalog.sha256(shown.view))
    with verdict:
        draw_pack(view, model)
        draw_recording()

    with upper:
        with way("link", "Copy link", "Opens this head, row and change wherever Headlight runs."):
            copy_link(permalink(view.settings, view.page), PAGES[EXPORT].path, address.PLACE)
        printed, inches = draw_picture(view)
        draw_numbers(view, model)
        draw_files(view)
    with preview.container(key="printed"):
        draw_printed(shown, printed, inches)
    frame.finding("Take this picture, or the whole thing.")


def draw_picture(view: View) -> tuple[paper.Figure, float]:
    """The choices of the picture and the button that saves it; the picture, and its width."""
    with way("format", "Picture"):
        ending = widgets.draw("format")
    with row("way_size"):
        of, size = widgets.draw("heads_of", st.container()), widgets.draw("size")
    printed = pictures.printed(view, whole=of == ALL)
    inches = 0.0 if size == "as it is" else paper.inches_of(size.replace(" ", ""))
    name = f"{stem(view, f'{view.head.kind}-all-heads' if of == ALL else '')}.{ending.lower()}"
    with row("save"):
        drawn = partial(printed.drawn, ending.lower(), inches)
        file_button(f"Save {ending}", drawn, name, KINDS[ending], look="primary")
        st.caption(formats.escaped(name), width="content")
    return printed, inches


def draw_printed(shown: Shown, printed: paper.Figure, inches: float) -> None:
    """The picture as it will be printed."""
    try:
        # it may wait long for other users' drawings, and must not hold its turn meanwhile
        image = memoize.memoize_drawing(
            shown,
            ("printed", printed.place, printed.whole, inches, printed.colours),
            lambda: printed.drawn("svg", inches).decode("utf-8"),
            len,
        )
        st.image(image, width="stretch", alt=printed.caption())
        st.caption(formats.escaped(printed.caption()))
    except TooNarrow as error:
        messages.show_message(error)


def draw_opening() -> None:
    most = formats.size(bundle.LARGEST_BUNDLE)
    said = f"An evidence pack, or a recording ({ENDING}) of a model's weights, of up to {most}."
    with way("open", "Open a file", said):
        st.file_uploader(
            "Evidence pack or recording",
            ["zip", ENDING[1:]],
            key="pack",
            on_change=take_file,
            max_upload_size=bundle.LARGEST_BUNDLE // 2**20,
            label_visibility="collapsed",
        )


def draw_pack(view: View, model: bundle.Model) -> None:
    """How well the numbers of an evidence pack agree with the run that it restored."""
    if not (pack := session.memo().pack):
        return
    moved = [
        setting.name
        for key, setting in SETTINGS.items()
        if setting.run and view.settings[key] != pack.settings[key]
    ]
    if moved:
        st.info(
            f"The view no longer matches the pack. Changed since: {', '.join(moved)}. "
            "Restore it to compare the numbers."
        )
        st.button(
            "Restore the pack's view", on_click=session.restore, args=(pack.settings, pack.page)
        )
        return
    agreement = bundle.compare(pack, view.trace, model)
    text = formats.escaped(" ".join(agreement.explanation))
    show = {"identical": st.success, "different": st.warning}.get(agreement.verdict, st.info)
    show(f"The view is restored. Numbers: **{agreement.verdict}**. {text}")
    st.page_link(st_page(PAGES[pack.page]), label=f"Back to {PAGES[pack.page].title}")


def draw_recording() -> None:
    if name := session.memo().recording:
        st.success(f"“{formats.escaped(name)}” is in your list of models until you leave.")
        st.page_link(st_page(PAGES[HOME]), label="See what its heads attend to")


def draw_numbers(view: View, model: bundle.Model) -> None:
    _, left_out, _ = bundle.contents(view)
    said = [
        "Weights as the model used them. The evidence pack adds the settings and the model's "
        "SHA-256, with which others verify your numbers.",
        *left_out,
    ]
    with way("weights", "Numbers"):
        selected = widgets.draw("weights_of") == ONE
    with way("numbers", "", " ".join(said)):
        name = stem(view, "" if selected else "all-heads")
        sizes = {
            label: tables.size(view, ending, selected) for label, (ending, *_) in TABLES.items()
        }
        for label, (ending, kind, make) in TABLES.items():
            file_button(
                label, partial(make, view, selected),
                f"{name}.{ending}", kind, disabled=sizes[label] > tables.LARGEST_FILE,
            )  # fmt: skip
        file_button(
            "Evidence pack", partial(bundle.make, view, model), f"{stem(view)}-evidence.zip",
            "application/zip",
        )  # fmt: skip
    if max(sizes.values()) > tables.LARGEST_FILE:
        st.info(
            f"Files above {formats.size(tables.LARGEST_FILE)} are not made here. Take only the "
            f"{ONE}, or use `headlight trace`."
        )


def draw_files(view: View) -> None:
    said = (
        "The live page runs this model in any browser, without internet. The web page shows this "
        "run. The notebook is a start in Python, the exercise one for a class."
    )
    with way("files", "One file", said):
        draw_live_page(view.settings["model"])
        file_button(
            "Web page", partial(pictures.page, view), f"{stem(view, 'page')}.html", "text/html"
        )
        file_button("Notebook", NOTEBOOK.read_bytes, NOTEBOOK.name, "application/x-ipynb+json")
        file_button(
            "Exercise", partial(assignment.students_zip, "attention"), "attention.zip",
            "application/zip",
        )  # fmt: skip


def draw_live_page(name: str) -> None:
    """The model as one HTML file, or why it cannot be one."""
    if lacks := session.context().lacks:
        st.caption(f"Live page: it takes a whole model. {lacks}")
        return
    if (folder := catalog.folders().get(name)) is None:
        st.caption(f"Live page: {formats.escaped(name)} has random weights. Choose another model.")
        return
    try:
        build.check(folder)
    except (OSError, ValueError, LookupError) as error:
        st.caption(f"Live page: {formats.escaped(str(error))}")
        return
    file_button("Live page", partial(_live_page, folder), f"{name}.html", "text/html")


def _live_page(folder: Path) -> bytes:
    return build.page(folder).encode("utf-8")
