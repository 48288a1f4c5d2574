"""The plan for a class: its steps, each with links that ask and show it in Present; and the remote,
the line in Present that leads from one to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamlit.components.v2 import component

from headlight.app import theme
from headlight.app.components.registered import registered
from headlight.app.components.scripts import read, script
from headlight.app.text.formats import Parts

_mount_steps = registered("class_steps", "covered")
_mount_remote = component(
    "headlight_remote",
    css=read("class_steps/remote.css"),
    js=script("class_steps/remote.js"),
)


@dataclass(frozen=True)
class SlideLink:
    """A picture of the plan: `step` from 1; `kind`: ask or show; `address`: from the app's root."""

    step: int
    kind: str
    words: Parts
    address: str


@dataclass(frozen=True)
class StepRow:
    """A step. `write`: what stands on the board; `notes`: for the teacher, each with its name, such
    as “Why it matters”; `picture`: of lessons/pictures.json, None for none."""

    title: str
    minutes: str
    write: Parts
    notes: Sequence[tuple[str, Parts]]
    picture: Mapping[str, Any] | None


def class_steps(
    steps: Sequence[StepRow], slides: Sequence[SlideLink], at: int, given: Mapping[str, Any]
) -> None:
    """Draw the plan, unfolded at the step of slide `at`, from 1, or at the first. `given`: `short`
    and `exit`, as of ClassPlan, `here`: the path of the page, `palette`: of weights, and whether
    answers and notes are folded, since the class sees the screen."""
    data = {
        "steps": [asdict(step) for step in steps],
        "slides": [asdict(slide) for slide in slides],
        "at": at,
    }
    _mount_steps(data={**data, "focus": theme.FOCUS, **given}, key="class_steps")


def remote(
    titles: Sequence[str], slides: Sequence[SlideLink], at: int, here: str, back: str
) -> None:
    """Draw the line at slide `at`, from 1, on the page whose path is `here`. `titles`: of the
    steps; `back`: the address of the plan, to which Esc leads."""
    links = [
        {key: value for key, value in asdict(slide).items() if key != "words"} for slide in slides
    ]
    data = {"titles": titles, "slides": links, "at": at, "here": here, "back": back}
    _mount_remote(data=data, key="remote", height=1)
