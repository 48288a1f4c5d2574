"""The entry point: `streamlit run app/main.py`. It serves the script router.py."""

import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # the packages are there, see router.py
    sys.path.insert(0, str(HERE.parent))

from app.server.inject_style import InjectStyle  # noqa: E402
from app.server.security import SecurityMiddleware  # noqa: E402
from app.startup import lifespan  # noqa: E402

between = [Middleware(SecurityMiddleware), Middleware(InjectStyle)]
app = st.App(HERE / "router.py", middleware=between, lifespan=lifespan)
