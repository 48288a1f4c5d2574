"""Files as a browser gets them: taken, opened without a server, and given back to another app."""

import json
import shutil
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
BUTTONS = {
    "Head as SVG": "en-fr-cross-layer-3-head-2.svg",
    "Head as PDF": "en-fr-cross-layer-3-head-2.pdf",
    "All heads as SVG": "en-fr-all-heads.svg",
    "Both as a web page": "en-fr-page.html",
    "CSV": "en-fr-all-heads.csv",
    "Settings (JSON)": "en-fr-all-heads.settings.json",
    "Evidence pack (ZIP)": "en-fr-cross-layer-3-head-2-evidence.zip",
}


def take(visit: Visit, label: str, folder):
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=label, exact=True).click()
    assert download.value.suggested_filename == BUTTONS[label]
    download.value.save_as(folder / BUTTONS[label])
    return folder / BUTTONS[label]


@pytest.fixture(scope="module")
def trace():
    return load("en-fr").trace(TEXT)


@pytest.fixture(scope="module")
def files(visiting, tmp_path_factory):
    """Every file of one view, by the label of its button."""
    folder = tmp_path_factory.mktemp("files")
    with visiting() as visit:
        visit.open(HERE).type(TEXT)
        return {label: take(visit, label, folder) for label in BUTTONS}


def test_files_are_taken_and_read(files, trace):
    """One of each kind of button; what is in them is asked in tests/app/export."""
    assert json.loads(PdfReader(files["Head as PDF"]).metadata.subject)["source"] == TEXT
    table = pd.read_csv(files["CSV"], keep_default_na=False)
    assert np.abs(table.weight - trace.to_dataframe().weight).max() <= 1e-6
    settings = json.loads(files["Settings (JSON)"].read_text(encoding="utf-8"))
    assert settings["source"] == TEXT and settings["layer"] == 3
    pack = bundle.read(files["Evidence pack (ZIP)"].read_bytes())
    assert pack.settings == settings
    assert bundle.compare(pack, trace, pack.model).verdict == "identical"


def test_pictures_open_in_a_browser_and_run_nothing(files, chromium):
    for label in ("Head as SVG", "All heads as SVG"):
        file = files[label]
        page, asked, errors = alone(chromium, file)
        assert asked == [file.as_uri()] and not errors
        shown = page.locator("svg").text_content()
        assert all(letter in shown for letter in "שלום🙂")
        assert page.locator("script, img, foreignObject").count() == 0
        page.context.close()


def within_reach(file, *made):
    """Names what the page makes, for these tests."""
    page = file.read_text(encoding="utf-8")
    for name, how in made:
        assert page.count(how) == 1
        page = page.replace(how, f"(window.{name} = {how})")
    file.write_text(page, encoding="utf-8")


def test_the_page_needs_nobody_and_follows_the_pointer(files, trace, chromium, tmp_path):
    file = Path(shutil.copy(files["Both as a web page"], tmp_path))
    within_reach(file, ("grid", "new Grid(large)"))
    page, asked, errors = alone(chromium, file)
    page.evaluate("window.focused = window.grid.selected")
    expect(page.get_by_role("heading", name="Cross-attention, layer 3, head 2")).to_be_visible()

    def focused():
        weights = "Array.from(grid.rows(focused.part), (row) => [...row]).flat()"
        return np.array(page.evaluate(weights))

    assert np.abs(focused() - trace.attention["cross"][2, 1].ravel()).max() <= 0.0025 + 1e-6
    place = page.evaluate("""() => {
      const { canvas, place: { left, top, across, down } } = window.focused;
      const box = canvas.getBoundingClientRect();
      return [box.left + left + 0.5 * across, box.top + top + 1.5 * down];
    }""")
    page.mouse.move(*place)
    said = page.locator(".message")
    expect(said).to_contain_text(f"about to write {trace.row_words('cross', 2, 1)[1]}, it puts")
    expect(said).to_contain_text(f"on {trace.src.tokens[0]}")
    page.evaluate("""() => {
      const { paint } = window.focused;
      window.sheets = 0;
      window.focused.paint = function (part) { window.sheets++; return paint.call(this, part); };
    }""")
    page.mouse.move(place[0], place[1] + 30)
    assert page.evaluate("window.sheets") == 0  # the pointer changes no cell
    place = page.evaluate("""() => {
      const { drawn } = window.grid;
      const section = drawn[0], box = section.over.canvas.getBoundingClientRect();
      return [box.left + section.left + 3, box.top + section.top + 3];
    }""")
    page.mouse.click(*place)
    expect(
        page.get_by_role("heading", name="Encoder self-attention, layer 1, head 1")
    ).to_be_visible()
    assert np.abs(focused() - trace.attention["encoder"][0, 0].ravel()).max() <= 0.0025 + 1e-6
    assert page.evaluate("window.sheets") == 1
    assert page.title() == "en-fr: what every head attends to"
    expect(page.get_by_role("heading", name=page.title())).to_be_in_viewport(ratio=1)
    assert asked == [file.as_uri()] and not errors
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
        expect(visit.page.get_by_label("Source sentence", exact=True)).to_have_value("A dog.")
        visit.expect_well()
        visit.page.close()


def settings_in(pack: Path) -> dict:
    with zipfile.ZipFile(pack) as archive:
        return json.loads(archive.read(bundle.RECORD))
