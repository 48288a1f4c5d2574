"""The widget in JupyterLab: what is clicked, the kernel knows, and what the kernel says, one sees.
Skipped where jupyterlab is not installed."""

import json
import os
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.test_notebook import DRAWN
from tests.conftest import ROOT
from tests.servers import free_port, serving
from tests.waiting import wait_until

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
client = pytest.importorskip("jupyter_client")
pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(300)]

CELL = """
from headlight import load, show
widget = show(load("en-de").trace("A dog runs.", "Ein Hund rennt."), "cross", 1, 1).widget
widget
"""


@contextmanager
def lab(folder: Path, *cells: str):
    """The address of a JupyterLab that serves a notebook of these cells in a folder, and where its
    kernels are described."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells or (CELL,)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "one.ipynb")
    port = free_port()
    options = {"ServerApp.port": port, "IdentityProvider.token": "", "ServerApp.root_dir": folder,
               "ServerApp.allow_root": True, "ServerApp.open_browser": False,
               "LabApp.news_url": None, "LabApp.check_for_updates_class":
               "jupyterlab.NeverCheckForUpdate"}  # fmt: skip
    paths = [str(ROOT), os.environ.get("PYTHONPATH")]
    own = {"JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "JUPYTER_CONFIG_DIR": str(folder),
           "PYTHONPATH": os.pathsep.join(filter(None, paths))}  # fmt: skip
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with serving(command, port, "/api/status", cwd=folder, env=os.environ | own) as address:
        yield address, folder / "runtime"


def kernels(address: str) -> list[dict]:
    return json.load(urllib.request.urlopen(f"{address}/api/kernels"))


def kernel_of(address: str, runtime: Path):
    """Another client of the notebook's kernel: run(code) → what it prints."""
    (its,) = kernels(address)
    file = runtime / f"kernel-{its['id']}.json"
    kernel = client.BlockingKernelClient(connection_file=str(file))
    kernel.load_connection_file()
    kernel.start_channels()

    def run(code: str) -> str:
        said = []
        kernel.execute_interactive(
            code, timeout=60, output_hook=lambda out: said.append(out["content"].get("text", ""))
        )
        return "".join(said).strip()

    return run


def test_the_kernel_hears_a_click_and_the_grid_the_kernel(chromium, tmp_path):
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with lab(tmp_path) as (address, runtime):
        page.goto(f"{address}/lab/tree/one.ipynb?reset")
        # A cell that is run before there is a kernel is not run.
        page.get_by_text("| Idle").wait_for(timeout=120_000)
        page.locator(".jp-CodeCell .cm-content").click()
        page.keyboard.press("Shift+Enter")
        page.locator(".jp-OutputArea iframe").wait_for(timeout=120_000)
        frame = page.locator(".jp-OutputArea iframe").element_handle().content_frame()
        frame.wait_for_function(DRAWN)
        run = kernel_of(address, runtime)
        assert run("print(widget.head)") == "('cross', 1, 1)"
        frame.locator(".rail").get_by_text("Heads").click()
        frame.locator("canvas").press("ArrowDown")
        wait_until(lambda: run("print(widget.head)") == "('cross', 2, 1)")
        run("widget.head = ('decoder', 3, 4); widget.cell = (3, 2)")
        expect(frame.locator(".rail")).to_contain_text("decoder 3.4")
        frame.wait_for_function(
            "() => frameElement.stage.state.row() === 2 && frameElement.stage.state.key === 1"
        )
        assert run("print(widget.head, widget.cell)") == "('decoder', 3, 4) (3, 2)"
    context.close()
    assert errors == []
