"""Your own parts of the Transformer, judged whenever you save the file (`headlight check FILE`)."""

import time
from collections.abc import Mapping
from typing import Any

import streamlit as st

from headlight.app.components.matrices import matrices
from headlight.app.export.file_judge import CAN_FORK, MODEL, FileAnswer, FileJudge
from headlight.app.server.checked_file import checked_file
from headlight.app.shell import frame
from headlight.app.state import messages, session
from headlight.app.text.formats import escaped
from headlight.model.checking.parts import PARTS
from headlight.model.checking.verdict import NOT_YET, RIGHT, UNJUDGED

INTERVAL = 0.2  # seconds between two looks at the answer
SOON = 0.7  # seconds after which it is said that one waits
BADGES: Mapping[str, tuple[str, Any]] = {
    RIGHT: (":material/check:", "green"),
    NOT_YET: (":material/close:", "red"),
    UNJUDGED: (":material/question_mark:", "gray"),
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
UNPROTECTED = (
    "On this system your code runs without limits on memory, and what it changes in PyTorch stays "
    "changed until you start again."
)


@st.cache_resource(max_entries=1, on_release=FileJudge.close, show_spinner=False)
def _judge(file) -> FileJudge:
    return FileJudge(file)


def page() -> None:
    names = ", ".join(f"`{name}`" for name in PARTS)
    frame.explain(
        "Your file is checked each time you save. The third picture is yours minus ours. A frame "
        "marks the first cell that differs. If several parts are wrong, you see the first.\n\n"
        f"Functions are found by their names: {names}."
    )
    if st.get_option("server.address") not in LOOPBACK:
        messages.show_message(
            "This page runs your file, so the app must listen to this machine alone."
        )
        raise messages.NothingToShow
    file = checked_file()
    assert file is not None  # else there is no such page
    if not CAN_FORK:
        st.warning(UNPROTECTED)
    judge = _judge(file)

    @st.fragment(run_every=INTERVAL)
    def draw() -> None:
        answer = judge.answer
        waits = judge.since and time.monotonic() - judge.since > SOON
        with st.container(key="yours", gap="small"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                for part in answer.parts:
                    icon, color = BADGES[part.state]
                    st.badge(escaped(part.name), icon=icon, color=color)
                name = escaped(file.name)
                st.caption(f"Checking {name} …" if waits else f"{name}, checked each time you save")
            _draw(answer, file.name)

    draw()


def _draw(answer: FileAnswer, name: str) -> None:
    if not answer.parts and not answer.error:
        st.info("PyTorch and the model are starting. This takes a few seconds.")
        return
    shown = next((part for part in answer.parts if not part.ok), None)
    shown = shown or (answer.parts[-1] if answer.parts else None)
    if shown:
        first, *more = map(escaped, shown.said)
        line = f" (line {shown.line})" if shown.line and f"ine {shown.line}" not in first else ""
        with st.container(key="verdict"):
            st.markdown(f"**{escaped(shown.name)}: {shown.state}.** {first}{line}")
        for each in more:
            st.caption(each)
    if answer.error:
        messages.show_message(answer.error)
    if shown and shown.matrices:
        matrices(shown.matrices, key="yours_matrices", palette=session.palette())
    if answer.in_model:
        st.markdown(f"**In {MODEL}.** {escaped(answer.in_model)}")
    if answer.printed.strip():
        with st.expander(f"{escaped(name)} prints"):
            st.code(answer.printed, language=None)
