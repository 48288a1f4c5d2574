"""The entry point: `streamlit run app/main.py`. It serves the script router.py."""

import importlib.util
import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "headlight" / "__init__.py"
if "headlight" not in sys.modules and PACKAGE.is_file():  # of a checkout, installed or not
    spec = importlib.util.spec_from_file_location("headlight", PACKAGE)
    assert spec is not None and spec.loader is not None
    sys.modules["headlight"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["headlight"])

from headlight.app.server import arguments, manifest, room_routes  # noqa: E402
from headlight.app.server.inject_style import InjectStyle  # noqa: E402
from headlight.app.server.security import SecurityMiddleware  # noqa: E402
from headlight.app.startup import lifespan  # noqa: E402

arguments.print_anywhere()
arguments.given(is_start=True)  # what is wrong with them ends the start in a sentence
between = [Middleware(SecurityMiddleware), Middleware(InjectStyle)]
routes = [*manifest.ROUTES, *room_routes.ROOM_ROUTES]
app = st.App(HERE / "router.py", routes=routes, middleware=between, lifespan=lifespan)
