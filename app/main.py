"""The server: `streamlit run app/main.py`. Its script is router.py."""

import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # our packages live there, see router.py
    sys.path.insert(0, str(HERE.parent))

from app.document import Document  # noqa: E402
from app.guard import Guard  # noqa: E402
from app.start import starting  # noqa: E402

between = [Middleware(Guard), Middleware(Document)]
app = st.App(HERE / "router.py", middleware=between, lifespan=starting)
