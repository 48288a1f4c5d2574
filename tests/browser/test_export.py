"""Files as a browser gets them: taken, opened without a server, and given back to another app."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from headlight.app.export import bundle
from headlight.model import load
from tests.app.test_serve import needs_nginx, nginx
from tests.browser.conftest import Visit, alone

pytestmark = pytest.mark.browser
TEXT = "A dog </script><img src=x onerror=document.title='run'> שלום 🙂 =1+1"
HERE = "take-away?kind=cross&layer=3&head=2"
NAME = "en-fr-cross-layer-3-head-2"
BUTTONS = {  # what it says, what is chosen before → the name of its file
    ("Save PDF", ""): f"{NAME}.pdf",
    ("Save SVG", "SVG"): f"{NAME}.svg",
    ("Save SVG", "all heads"): "en-fr-cross-all-heads.svg",
    ("CSV", ""): "en-fr-all-heads.csv",
    ("Web page", ""): "en-fr-page.html",
    ("Evidence pack", ""): f"{NAME}-evidence.zip",
}
CHOICES = {"SVG": "format", "all heads": "heads_of"}  # → setting


def take(visit: Visit, label: str, folder) -> Path:
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=label).click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


@pytest.fixture(scope="module")
def trace():
    return load("en-fr").trace(TEXT)


@pytest.fixture(scope="module")
def files(visiting, tmp_path_factory):
    """Files of one view, by their names."""
    folder, found = tmp_path_factory.mktemp("files"), {}
    with visiting() as visit:
        visit.open(HERE).type(TEXT)
        for (label, chosen), name in BUTTONS.items():
            if chosen:
                visit.choose(CHOICES[chosen], chosen)
            file = take(visit, label, folder)
            assert file.name == name
            found[name] = file
        return found


def test_files_are_taken_and_read(files, trace):
    """One of each kind of button; what is in them is asked in tests/app/export."""
    assert TEXT in json.loads(PdfReader(files[f"{NAME}.pdf"]).metadata.subject)["caption"]
    table = pd.read_csv(files["en-fr-all-heads.csv"], keep_default_na=False)
    assert np.abs(table.weight - trace.to_dataframe().weight).max() <= 1e-6
    pack = bundle.read(files[f"{NAME}-evidence.zip"].read_bytes())
    assert pack.settings["source"] == TEXT and pack.settings["layer"] == 3
    assert bundle.compare(pack, trace, pack.model).verdict == "identical"


def test_pictures_open_in_a_browser_and_run_nothing(files, chromium):
    for name in (f"{NAME}.svg", "en-fr-cross-all-heads.svg", "en-fr-page.html"):
        file = files[name]
        page, asked, errors = alone(chromium, file)
        assert asked == [file.as_uri()] and not errors
        if name.endswith(".html"):  # how it answers the pointer: test_notebook.py
            expect(page.locator(".rail [aria-current]")).to_have_text("cross 3.2")
            page.context.close()
            continue
        shown = page.locator("svg").text_content()
        assert all(letter in shown for letter in "שלום🙂")
        assert page.locator("script, img, foreignObject").count() == 0
        page.context.close()


@needs_nginx
@pytest.mark.long
def test_a_file_of_any_size_gets_a_sentence_behind_nginx_too(app, context, tmp_path):
    """The largest one that the page takes is read, with the form around it; a larger one is not
    sent at all."""
    with nginx({"replica1": int(app.rpartition(":")[2])}) as address:
        visit = Visit(context.new_page(), address).open("take-away").type("A dog.")
        for size, said in (
            (100_000_000, "is not a ZIP file."),
            (100_000_001, "File must be 100.0MB or smaller."),
        ):
            file = tmp_path / f"{size}.zip"
            with file.open("wb") as zeros:
                zeros.truncate(size)
            visit.page.locator("input[type=file]").set_input_files(file)
            visit.page.get_by_text(file.name).hover()
            expect(visit.page.get_by_text(said).filter(visible=True).first).to_be_visible()
        visit.expect_well()
        visit.page.close()


def settings_in(pack: Path) -> dict:
    with zipfile.ZipFile(pack) as archive:
        return json.loads(archive.read(bundle.RECORD))
