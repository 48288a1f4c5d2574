from functools import cache

import pytest
import streamlit as st
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from app import catalog, compute, theme
from model import load
from tests.conftest import ROOT


@pytest.fixture
def page(models, monkeypatch):
    """The app without a browser, with our own models to choose from. What is cached of another
    folder of models is forgotten."""
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(models)])
    if catalog.folders() != catalog.folders.__wrapped__():
        st.cache_resource.clear()
        st.cache_data.clear()
    return AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)


@pytest.fixture(scope="session")
def en_de():
    return load("en-de")


@pytest.fixture(autouse=True, scope="session")
def one_core():
    """As the app takes for short texts: on more, sums are made in another order, and what a page
    shows would differ from a test's own pass in the last digit."""
    compute.CORES = 1
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def no_head_start():
    """There is no browser that must catch up."""
    theme.HEAD_START = 0


@pytest.fixture(autouse=True, scope="session")
def one_search_for_components():
    """Every new AppTest reads the metadata of all installed packages for components."""
    with pytest.MonkeyPatch.context() as patch:
        scan = manifest_scanner.scan_component_manifests
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(scan))
        yield
