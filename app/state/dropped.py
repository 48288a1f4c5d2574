"""Recordings that a session was given, by files dropped on Export. They are in its memory alone: on
no disk, for no other session, and gone with it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import streamlit as st

from headlight.app.server.streamlit_internals import get_script_run_ctx
from headlight.model.recording.checkpoint import Recorded, load_recorded
from headlight.model.recording.weights import CannotRecord

KEY = "_dropped"  # in the session's state
MOST, LARGEST = 8, 256 * 2**20  # of a session: recordings, bytes of their weights
LONGEST_NAME = 60  # characters
YOURS = " (yours)"  # ends the name of each


@dataclass(frozen=True)
class Dropped:
    """A file of recordings, its name and its SHA-256."""

    recorded: Recorded
    file: str
    sha256: str


def dropped() -> Mapping[str, Dropped]:
    """Name → the recordings of this session."""
    return st.session_state.get(KEY, {}) if get_script_run_ctx(suppress_warning=True) else {}


def drop(file: str, content: bytes) -> str:
    """Keep a file of recordings, in place of an earlier one with its name; its name in the list of
    models. Raises CannotRecord."""
    stem = re.sub(r"[^\w.-]+", " ", PurePath(file).stem).strip()[:LONGEST_NAME] or "recording"
    name = f"{stem}{YOURS}"
    others = {key: value for key, value in dropped().items() if key != name}
    if len(others) >= MOST:
        raise CannotRecord(
            f"{MOST} recordings are open here, the most that are. Reload the page to begin anew."
        )
    left = LARGEST - sum(other.recorded.nbytes for other in others.values())
    recorded = load_recorded(content, file, left)
    st.session_state[KEY] = others | {
        name: Dropped(recorded, file, hashlib.sha256(content).hexdigest())
    }
    return name
