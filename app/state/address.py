"""Settings in the address, which the server alone writes: after each run it says what the screen
shows."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

import streamlit as st

from headlight.app.state.settings import SETTINGS

# Where one is on the stage: the browser alone writes that, and other pages keep all but the cell,
# which is kind, layer, head, row and key, as they are counted on the screen.
PLACE = {
    "depth": r"model|heads|head|row|number",
    "whole": r"after|needs|paths|positions|input",
    "cell": r"(\w+)\.(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?",
    "heads": r"habit|effect",
    "view": r"lines|best|pytorch",
    "stop": r"scores|scaled|weights|output|word",
    "number": r"largest|why",
    "write": r"one|beams|sampled",
    "scaling": r"off",
}
STAY = "stay"  # in what the server is told of a link to a page: it decides no setting


def read() -> dict[str, list[str]]:
    """The texts of the settings in the address."""
    return {key: st.query_params.get_all(key) for key in SETTINGS if key in st.query_params}


def write(
    texts: Mapping[str, str | list[str]], again: bool = False, keeps_cell: bool = False
) -> None:
    """Write the settings that differ from their defaults, in place of those that the address has.
    One message, in which the browser adds a step to its history, except after Back (1.67).
    `again`: even where the address has them, since the answer to an address that the browser has
    left already may come after it. `keeps_cell`: of the stage."""
    held = {key: st.query_params.get_all(key) for key in st.query_params}
    lists = {key: [text] if isinstance(text, str) else text or [""] for key, text in texts.items()}
    gone = () if keeps_cell else ("cell",)
    wanted = {key: held[key] for key in held if key not in {*SETTINGS, STAY, *gone}} | lists
    if again or wanted != held:
        st.query_params.from_dict(wanted)


def cell() -> tuple[str, ...]:
    """The cell of the stage that the address has: kind, layer, head, row and key, each as text, ""
    where it is not there; empty where the address has none."""
    found = re.fullmatch(PLACE["cell"], st.query_params.get("cell", ""))
    return found.groups(default="") if found else ()


def stays() -> bool:
    """See STAY."""
    return STAY in st.query_params


def differences(before: str, now: str) -> set[str]:
    """Keys that two query strings give other texts."""
    old, new = (parse_qs(query, keep_blank_values=True) for query in (before, now))
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}
