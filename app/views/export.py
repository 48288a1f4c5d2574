"""The view as files, and one file that restores it."""

from functools import partial

import streamlit as st

from headlight.app import selection
from headlight.app.export import bundle, pictures, tables
from headlight.app.export.view import View, settings_json, stem
from headlight.app.results import memoize
from headlight.app.shell import frame
from headlight.app.shell.grid_display import grid_options
from headlight.app.shell.layout import st_page
from headlight.app.state import catalog, messages, session, widgets
from headlight.app.state.dropped import drop
from headlight.app.state.options import ONE
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import SETTINGS
from headlight.app.text import formats
from headlight.model.recording.recording import ENDING

PICTURES = {  # label → extension, media type, writer, part of the file name
    f"{what} as {ending.upper()}": (ending, kind, partial(make, ending=ending), name)
    for what, make, name in (("Head", pictures.head, ""), ("All heads", pictures.grid, "all-heads"))
    for ending, kind in (("png", "image/png"), ("svg", "image/svg+xml"), ("pdf", "application/pdf"))
} | {"Both as a web page": ("html", "text/html", pictures.page, "page")}
TABLES = {
    "CSV": ("csv", "text/csv", tables.csv),
    "Parquet": ("parquet", "application/vnd.apache.parquet", tables.parquet),
    "NPZ": ("npz", "application/octet-stream", tables.npz),
}
PREVIEW = 420  # pixels


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


def file_button(label: str, make, name: str, kind: str, **more) -> None:
    """A file that is made on demand."""
    st.download_button(
        label, memoize.one_at_a_time(make), name, kind, key=f"take {name}", on_click="ignore",
        icon=":material/download:", **more,
    )  # fmt: skip


def page() -> None:
    verdict = st.container(key="verdict")
    files, aside = st.columns([2, 1], gap="large")
    preview, opening = aside.container(), aside.container()
    with opening:
        st.subheader("Open a file")
        st.file_uploader(
            "Evidence pack or recording",
            ["zip", ENDING[1:]],
            key="pack",
            on_change=take_file,
            max_upload_size=bundle.LARGEST_BUNDLE // 2**20,
            label_visibility="collapsed",
        )
        st.caption(
            "An evidence pack restores its view, runs the model again and reports how well the "
            f"numbers agree. A recording ({ENDING}) of attention weights joins your list of "
            "models. Nothing in either is stored or shown to others."
        )
    if refused := session.memo().refused:
        messages.show_message(f"The file could not be opened. {refused}", verdict.error)

    shown = selection.shown()
    model_view, trace = shown.view, shown.whole
    focus, reading = session.focus(), session.reading()
    view = View(
        trace,
        session.to_share(),
        reading,
        grid_options(shown),
        session.last_page(),
    )
    model = bundle.Model(view.settings["model"], *catalog.sha256(model_view))

    if pack := session.memo().pack:
        moved = [
            setting.name
            for key, setting in SETTINGS.items()
            if setting.run and view.settings[key] != pack.settings[key]
        ]
        with verdict:
            if moved:
                st.info(
                    f"The view no longer matches the pack. Changed since: {', '.join(moved)}. "
                    "Restore it to compare the numbers."
                )
                st.button(
                    "Restore the pack's view",
                    on_click=session.restore,
                    args=(pack.settings, pack.page),
                )
            else:
                agreement = bundle.compare(pack, trace, model)
                text = formats.escaped(" ".join(agreement.explanation))
                show = {"identical": st.success, "different": st.warning}.get(
                    agreement.verdict, st.info
                )
                show(f"The view is restored. Numbers: **{agreement.verdict}**. {text}")
            st.page_link(st_page(PAGES[pack.page]), label=f"Back to {PAGES[pack.page].title}")

    if name := session.memo().recording:
        with verdict:
            st.success(f"“{formats.escaped(name)}” is in your list of models until you leave.")
            st.page_link(st_page(PAGES[HOME]), label="See what its heads attend to")

    with preview:
        # it may wait long for other users' drawings, and must not hold its turn meanwhile
        preview = memoize.memoize_drawing(
            shown,
            ("preview", focus, reading, settings_json(view)),  # the file contains all of them
            lambda: pictures.head(view, "svg").decode("utf-8"),
            len,
        )
        st.image(preview, width=PREVIEW, alt=f"Preview: {view.name}")

    with files, st.container(key="files"):
        st.subheader("Pictures")
        with st.container(horizontal=True):
            for label, (ending, kind, make, what) in PICTURES.items():
                file_button(label, partial(make, view), f"{stem(view, what)}.{ending}", kind)
        st.caption(
            "On a white background. SVG can be scaled and edited; PDF suits a paper. Characters "
            "missing from this machine's fonts appear as codes in PNG and PDF, such as U+4E2D. The "
            "web page works offline: click a head, a row, a weight, as here."
        )
        st.subheader("Numbers")
        selected = widgets.draw("weights_of") == ONE
        with st.container(horizontal=True):
            name = stem(view, "" if selected else "all-heads")
            sizes = {ending: tables.size(view, ending, selected) for ending, *_ in TABLES.values()}
            for label, (ending, kind, make) in TABLES.items():
                large = sizes[ending] > tables.LARGEST_FILE
                file_button(
                    label, partial(make, view, selected), f"{name}.{ending}", kind, disabled=large
                )
            settings = partial(settings_json, view)
            file_button("Settings (JSON)", settings, f"{name}.settings.json", "application/json")
        text = ", ".join(f"{label} {formats.size(sizes[TABLES[label][0]])}" for label in TABLES)
        st.caption(
            f"About {text}. Each file has the tokens. Parquet and NPZ also hold the settings; for "
            "CSV, take the settings file. In CSV, an apostrophe precedes tokens that a spreadsheet "
            "would read as a formula. Read it in pandas with `keep_default_na=False`."
        )
        if max(sizes.values()) > tables.LARGEST_FILE:
            st.info(
                f"Files above {formats.size(tables.LARGEST_FILE)} are not made here. Take only the "
                f"{ONE}, or use `headlight trace`."
            )

        st.subheader("Evidence pack")
        name = f"{stem(view)}-evidence.zip"
        make = partial(bundle.make, view, model)
        file_button("Evidence pack (ZIP)", make, name, "application/zip", type="primary")
        _, left_out, _ = bundle.contents(view)
        st.caption(
            " ".join(
                [
                    "All of these files, the settings, a link, the model's SHA-256, the library "
                    "versions, and a README. Others can open the same view with it and verify your "
                    "result.",
                    *left_out,
                ]
            )
        )
    frame.explain(
        "The current view as files: the selected head and all heads, with your settings under "
        "“Display”. Each file is made on demand. To see the evidence pack at work, download it, "
        "change everything, then drop it here: the view comes back, and its numbers are checked."
    )
