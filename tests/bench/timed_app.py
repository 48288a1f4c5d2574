"""The app, and when it began and ended the parts of a script run, for where.py: `streamlit run`
serves it in the place of app/main.py."""

import os
import sys
import time
from functools import wraps
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "app"))

import main
import streamlit as st
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from headlight.app import selection
from headlight.app.components import packing
from headlight.app.results.shown import Shown
from headlight.app.shell import screen, stage
from headlight.app.state import session

PARTS = {
    "script": (ScriptRunner, "_run_script"),
    "the settings": (session, "settle"),
    "translation": (selection, "target_of"),
    "the pass": (Shown, "_trace"),
    "generation": (Shown, "generation"),
    "predictions": (packing, "answers_of"),
    "packing": (packing, "pack_trace"),
    "picture sent": (stage, "stage_run"),
    "what may be seen": (stage, "stage_look"),
    "how it is shown": (stage, "_shown"),
    "notices": (screen, "draw_notices"),
}


def timed(name: str, function):
    @wraps(function)
    def call(*args, **given):
        with open(os.environ["WHERE"], "a") as log:
            log.write(f"{time.time()}\t{name}\n")
        try:
            return function(*args, **given)
        finally:
            with open(os.environ["WHERE"], "a") as log:
                log.write(f"{time.time()}\t{name}: done\n")

    return call


for name, (owner, attribute) in PARTS.items():
    setattr(owner, attribute, timed(name, getattr(owner, attribute)))
app = st.App(Path(main.__file__).with_name("router.py"), middleware=main.between)
