import ctypes
import gc
from contextlib import suppress
from functools import cache

import psutil
import pytest
import torch
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from headlight.app import theme
from headlight.app.results import memoize
from headlight.app.shell import room_acts
from headlight.app.state import catalog
from headlight.model import load, presets
from tests.app.common import App, forget_all
from tests.model.common import depths

LARGE = 8 * 10**8  # bytes of a worker
MENUS = (
    "display", "what_if", "output", "head_picker", "about_heads", "more_pictures",
)  # fmt: skip
RESULTS = 128 * 2**20  # bytes: of a file of tests they are rarely asked for again


def _refuse():
    raise AssertionError("a room was asked for")


@pytest.fixture
def new_page(models, monkeypatch):
    """Makes the app without a browser, with our own models to choose from: one session each. What
    is cached of another folder of models is forgotten. No session is in a room, so none may open
    the store of rooms, which makes a file and starts a thread."""
    monkeypatch.setattr(room_acts, "hub", _refuse)
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(models)])
    if catalog.folders() != catalog.folders.__wrapped__():
        forget_all()

    def make() -> AppTest:
        page = App()
        page.menus = MENUS
        return page

    return make


@pytest.fixture
def page(new_page):
    return new_page()


@pytest.fixture
def opened(page, request):
    """Opens the page VIEW of a test's file, for its TEXT where no other is given."""

    def open_with(model="en-de", source=request.module.TEXT, **more):
        page.query_params.update(model=model, source=source, **more)
        return page.switch_page(request.module.VIEW).run()

    return open_with


@pytest.fixture
def small_presets(monkeypatch):
    """All but the paper's at sizes that are built at once. Whoever asks for this forgets them when
    the file is done, by forget_all()."""
    own_sizes = presets.own_sizes

    def sizes(name, vocab_size=0):
        large = own_sizes(name, vocab_size)
        small = dict(d_model=48, d_ff=64, n_heads=large.get("n_heads", 4)) | depths(name)
        return large if name == "paper" else large | small

    monkeypatch.setattr(presets, "own_sizes", sizes)
    yield
    presets.without_tensors.cache_clear()


@pytest.fixture(scope="session")
def en_de():
    return load("en-de")


@pytest.fixture(autouse=True, scope="session")
def one_core():
    """As the app takes for short texts: on more, sums are made in another order, and what a page
    shows would differ from a test's own pass in the last digit."""
    memoize.CORES = 1
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def nothing_large_is_left():
    """Files of tests share what is cached, unless it has grown large."""
    yield
    if psutil.Process().memory_info().rss > LARGE:
        forget_all()
        gc.collect()
        with suppress(AttributeError, OSError, TypeError):  # elsewhere than on glibc
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True, scope="session")
def few_results():
    """Two workers hold as much as one app."""
    memoize.CACHE_BYTES = RESULTS


@pytest.fixture(autouse=True, scope="session")
def no_head_start():
    """There is no browser that must catch up."""
    theme.HEAD_START = 0


@pytest.fixture(autouse=True, scope="session")
def no_usage_statistics():
    """As in the app, whose configuration AppTest does not read."""
    config.set_option("browser.gatherUsageStats", False)


@pytest.fixture(autouse=True, scope="session")
def quick_runs():
    """What takes AppTest longer than a page: every new one reads the metadata of all installed
    packages for components, and every run compiles our scripts and asks each millisecond whether it
    has ended."""
    scan, scripts = cache(manifest_scanner.scan_component_manifests), ScriptCache()

    def until_it_ends(runner, timeout):
        runner._script_thread.join(timeout)
        wait(runner, 1)

    wait = local_script_runner.require_widgets_deltas
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        patch.setattr(local_script_runner, "require_widgets_deltas", until_it_ends)
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: scripts)
        yield
