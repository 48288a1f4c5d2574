"""`show`, two widgets and `check` in the programs that show notebooks; each is skipped where it is
not installed (the extra `long`). JupyterLab's widget and its kernel: test_jupyterlab.py."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from playwright.sync_api import expect

from headlight.app.components.scripts import read
from headlight.app.export.notebook import show
from headlight.model import load
from tests.browser.test_notebook import DRAWN, KERNEL, SHOWN, depth
from tests.conftest import ROOT
from tests.servers import free_port, serving

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(300)]
BEGIN = """from headlight import check, load, show
trace = load("en-de").trace("A dog runs.", "Ein Hund rennt.")"""
SHOW = 'show(trace, "decoder", 2, 1)'
WIDGETS = 'show(trace, "cross", 3, 1).widget', 'show(trace, "encoder", 1, 2).widget'
CHECK = 'check.verdict("scores", lambda q, k: q @ k.transpose(-2, -1))'
PYTHON = sys.executable, "-m"
CELLS = f"{BEGIN}\n{SHOW}", *WIDGETS, CHECK
SEEN = ["decoder 2.1", "cross 3.1", "encoder 1.2"]
OF_VSCODE = (  # of the page around its outputs, in backLayerWebView.ts; its own origin left out
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src https: http: data:; font-src https:; connect-src https:; child-src https: data:"
)


def notebook(executed: bool = True):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    return NotebookClient(book, timeout=120).execute() if executed else book


@contextmanager
def by_nbconvert(page, folder: Path, *options: str):
    """From a saved notebook, or `--execute` with a kernel. What draws widgets would come from the
    internet, so they are not there."""
    pytest.importorskip("nbconvert", reason="nbconvert comes with the extra long")
    nbformat.write(notebook(executed=not options), folder / "one.ipynb")
    command = [*PYTHON, "nbconvert", "--to", "html", "one.ipynb", *options]
    subprocess.run(command, cwd=folder, check=True)
    page.goto((folder / "one.html").as_uri())
    yield


@contextmanager
def in_marimo(page, folder: Path):
    pytest.importorskip("marimo", reason="marimo comes with the extra long")
    shown = [SHOW, *(f"mo.ui.anywidget({one})" for one in WIDGETS), CHECK]
    code = ["import marimo", "app = marimo.App()", "with app.setup:", "    import marimo as mo"]
    code += [f"    {line}" for line in BEGIN.splitlines()]
    code += [f"@app.cell\ndef _():\n    {one}\n    return" for one in shown]
    (folder / "one.py").write_text("\n".join(code), encoding="utf-8")
    port = free_port()
    command = [*PYTHON, "marimo", "run", "one.py", "--headless", "--no-token"]
    with serving([*command, "--port", str(port)], port, "/health", cwd=folder) as address:
        page.goto(address)
        yield


@contextmanager
def in_vscode(page, folder: Path):
    """Its text/html becomes the inside of an element, under its policy; a widget's script runs with
    an object in the place of the kernel's."""
    outputs = [cell.outputs[0].data.get("text/html", "") for cell in notebook().cells]
    trace = load("en-de").trace("A dog runs.", "Ein Hund rennt.")
    script = f"{KERNEL}{read('stage_page/widget.js').replace('export default', 'window.widget =')}"
    for chosen in (("cross", 3, 1), ("encoder", 1, 2)):
        traits = {"page": show(trace, *chosen).page, "height": 640, "head": chosen, "cell": [0, 0]}
        script += f"({SHOWN})({json.dumps(traits)});".replace("</", "<\\/")
    text = f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{OF_VSCODE}">'
    text += f"<meta charset=utf-8><body>{''.join(outputs)}<script>{script}</script>"
    (folder / "one.html").write_text(text, encoding="utf-8")
    page.goto((folder / "one.html").as_uri())
    yield


@contextmanager
def in_jupyterlab(page, folder: Path):
    from tests.browser.test_jupyterlab import lab  # skips

    with lab(folder, *CELLS) as (address, _):
        page.goto(f"{address}/lab/tree/one.ipynb?reset")
        page.get_by_text("| Idle").wait_for(timeout=120_000)
        page.locator(".jp-CodeCell .cm-content").first.click()
        for _ in CELLS:
            page.keyboard.press("Shift+Enter")
        yield


@pytest.mark.parametrize(
    ("host", "options", "heads"),
    [(by_nbconvert, (), SEEN[:1]), (by_nbconvert, ("--execute",), SEEN[:1]),
     (in_marimo, (), SEEN), (in_vscode, (), SEEN), (in_jupyterlab, (), SEEN)],
)  # fmt: skip
def test_it_is_shown_and_two_on_a_page_do_not_meet(
    host, options, heads, chromium, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    page, errors = chromium.new_page(viewport={"width": 1280, "height": 3200}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with host(page, tmp_path, *options):
        expect(page.locator("iframe")).to_have_count(len(heads) + 1, timeout=120_000)
        found = [place.content_frame() for place in page.locator("iframe").element_handles()]
        for frame in found:
            frame.wait_for_function(f"document.querySelector('.rail') ? ({DRAWN})() : true")
        stages = {depth(frame).inner_text(): frame for frame in found if depth(frame).count()}
        assert sorted(stages) == sorted(heads)
        (verdict,) = (frame for frame in found if frame not in stages.values())
        expect(verdict.locator("body")).to_contain_text("That is the dot product.")
        expect(verdict.locator("canvas").first).to_be_visible()
        moved = stages[heads[-1]]
        moved.locator(".rail").get_by_text("Heads").click()
        moved.locator("canvas").press("ArrowDown")
        expect(moved.locator(".rail")).not_to_contain_text(heads[-1])
        for head in heads[:-1]:
            expect(depth(stages[head])).to_have_text(head)
    page.close()
    assert errors == []


def test_papermill_gives_the_lesson_another_sentence(chromium, tmp_path, monkeypatch):
    pytest.importorskip("papermill", reason="papermill comes with the extra long")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    lesson = ROOT / "assets" / "headlight.ipynb"
    command = [*PYTHON, "papermill", lesson, "out.ipynb", "-p", "sentence", "A dog runs."]
    subprocess.run(command, cwd=tmp_path, check=True)
    lesson = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    outputs = [out for cell in lesson.cells for out in cell.get("outputs", ()) if "data" in out]
    page = chromium.new_page()
    page.set_content("".join(out.data.get("text/html", "") for out in outputs))
    frames = page.frames[1:]
    for frame in frames:
        frame.wait_for_function(DRAWN)
        assert "A dog runs." in frame.locator(".words").inner_text()
    assert len(frames) == 2
    page.close()


def test_ten_heads_in_a_notebook_take_less_than_a_megabyte():
    trace = load("en-de").trace("A little girl in a red dress is playing with her dog.")
    shown = [show(trace, "cross", 1 + i // 4, 1 + i % 4)._repr_html_() for i in range(10)]
    assert len(json.dumps(shown)) < 1_000_000
