"""Your own parts of the Transformer, or your whole model, judged whenever you save the file
(`headlight check FILE` or `FILE:NAME`)."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import streamlit as st

from headlight.app.components.matrices import matrices
from headlight.app.export.file_judge import CAN_FORK, MODEL, FileAnswer, FileJudge, JudgedPart
from headlight.app.server.checked_file import checked_file
from headlight.app.shell import frame
from headlight.app.state import messages, session
from headlight.app.text.formats import escaped
from headlight.model.checking.parts import PARTS
from headlight.model.checking.verdict import CANNOT_TELL, NOT_YET, RIGHT, UNJUDGED
from headlight.model.checking.whole.result import LOOK, WRONG

INTERVAL = 0.2  # seconds between two looks at the answer
SOON = 0.7  # seconds after which it is said that one waits
BADGES: Mapping[str, tuple[str, Any]] = {
    RIGHT: (":material/check:", "green"),
    NOT_YET: (":material/close:", "red"),
    UNJUDGED: (":material/question_mark:", "gray"),
    WRONG: (":material/close:", "red"),
    LOOK: (":material/visibility:", "orange"),
    CANNOT_TELL: (":material/question_mark:", "gray"),
}
PARTS_VIEW, MODEL_VIEW = "Parts", "Whole model"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
UNPROTECTED = (
    "On this system your code runs without limits on memory, and what it changes in PyTorch stays "
    "changed until you start again."
)


@st.cache_resource(max_entries=1, on_release=FileJudge.close, show_spinner=False)
def _judge(file, name: str) -> FileJudge:
    return FileJudge(file, name=name)


def page() -> None:
    given = checked_file()
    assert given is not None  # else there is no such page
    file, model = given
    names = ", ".join(f"`{name}`" for name in PARTS)
    frame.explain(
        "Your model is checked each time you save. A token is changed, and each row compared: the "
        "picture says which rows move. Red cells break the law of the trial.\n\n"
        "↑ and ↓ choose a trial. Mend it repairs the one fault while your model runs."
        if model
        else "Your file is checked each time you save. The third picture is yours minus ours. A "
        "frame marks the first cell that differs. If several parts are wrong, you see the first."
        f"\n\nFunctions are found by their names: {names}."
    )
    if st.get_option("server.address") not in LOOPBACK:
        messages.show_message(
            "This page runs your file, so the app must listen to this machine alone."
        )
        raise messages.NothingToShow
    if not CAN_FORK:
        st.warning(UNPROTECTED)
    judge = _judge(file, model)

    @st.fragment(run_every=INTERVAL)
    def draw() -> None:
        answer = judge.answer
        waits = judge.since and time.monotonic() - judge.since > SOON
        with st.container(key="yours", gap="small"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                views = [MODEL_VIEW] * bool(answer.trials) + [PARTS_VIEW] * bool(answer.parts)
                view = views[0] if views else ""
                if len(views) > 1:
                    view = st.segmented_control(
                        "View", views, default=view, key="yours_view", required=True,
                        label_visibility="collapsed",
                    )  # fmt: skip
                is_whole = view == MODEL_VIEW
                for text, state in _counted(answer.trials) if is_whole else _named(answer.parts):
                    icon, color = BADGES[state]
                    st.badge(text, icon=icon, color=color)
                name = escaped(file.name)
                st.caption(f"Checking {name} …" if waits else f"{name}, checked each time you save")
            _draw_model(answer) if is_whole else _draw(answer, file.name)
            if answer.printed.strip():
                with st.expander(f"{escaped(file.name)} prints"):
                    st.code(answer.printed, language=None)

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


def _named(parts: Sequence[JudgedPart]) -> list[tuple[str, str]]:
    return [(escaped(part.name), part.state) for part in parts]


def _counted(trials: Sequence[JudgedPart]) -> list[tuple[str, str]]:
    """How many trials are in each state, the worst first."""
    counts = Counter(trial.state for trial in trials)
    return [(f"{count} {state}", state) for state, count in counts.items()]


def shown_trials(answer: FileAnswer) -> list[JudgedPart]:
    """The trials to choose from, the worst first; those that are right are one, with the first of
    their pictures."""
    held = [trial for trial in answer.trials if trial.ok]
    worse = [trial for trial in answer.trials if not trial.ok]
    if not held:
        return worse
    names = "; ".join(trial.name for trial in held)
    said = f"{names}." if worse else f"all {len(held)} trials hold, in {answer.seconds:.1f} s."
    drawn = next((trial.matrices for trial in held if trial.matrices), ())
    name = f"{len(held)} right" if worse else "Nothing wrong"
    return [*worse, JudgedPart(name, RIGHT, (said, *([] if worse else [names])), 0, drawn)]


def _draw_model(answer: FileAnswer) -> None:
    """The selected trial: one sentence, one picture, and what mends it."""
    trials = shown_trials(answer)
    verdict, (left, right) = st.container(key="verdict"), st.columns([1, 4], gap="medium")

    def label(index: int) -> str:
        icon, color = BADGES[trials[index].state]
        return f":{color}[{icon}] {escaped(trials[index].name)}"

    with left:  # other trials after a save: the worst is selected
        key = "trial " + "; ".join(trial.name for trial in trials)
        with st.container(key="trials"):
            index = st.radio(
                "Trials, the worst first", range(len(trials)), format_func=label, key=key,
                label_visibility="collapsed",
            )  # fmt: skip
    trial = trials[index]
    first, *more = map(escaped, trial.said)
    with right:
        picture, is_mended = st.container(), False
        with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
            if len(trial.matrices) > 2:
                is_mended = st.toggle("Mend it", key=f"mend {trial.name}")
            if trial.lesson:
                number, _, title = trial.lesson.partition("-")
                link = f"Lesson {number}: {title.replace('-', ' ')}"
                st.markdown(f"[{escaped(link)}](./?lesson={quote(trial.lesson)})")
        st.caption("  \n".join(more))
        if trial.matrices:
            found, law, mended = (trial.matrices[i : i + 1] for i in range(3))
            shown = (*(mended if is_mended else found), *law)
            with picture:
                matrices(shown, key="yours_matrices", palette=session.palette())
    name = escaped(trial.name)
    if is_mended:
        verdict.markdown(f"**{name}: right once mended.** Nothing else was changed.")
    else:
        verdict.markdown(f"**{name}{':' if trial.ok else f': {trial.state}.'}** {first}")
    if answer.error:
        messages.show_message(answer.error)
