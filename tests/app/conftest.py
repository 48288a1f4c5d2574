import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT


@pytest.fixture
def page(models, monkeypatch):
    """The app without a browser, with nothing cached and our own models to choose from."""
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(models)])

    def forget():
        st.cache_resource.clear()
        st.cache_data.clear()

    forget()
    yield AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    forget()
