"""The plan for a class (docs/teach-with-it.md): what each of its steps shows, as links."""

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE = 5  # steps of the plan for 45 minutes; all of them fill 90


@dataclass(frozen=True)
class ClassStep:
    """`links`: label → address within the app."""

    title: str
    links: Mapping[str, str]


PLAN = (
    ClassStep("A row is a set of shares", {"the app as it opens": ""}),
    ClassStep("The score by hand", {"Inside a head, at Scaling": "inside?at=Scaling"}),
    ClassStep(
        "Two masks",
        {
            "the first sentence": "",
            "a padded one": "?source=My+brother+has+a+red+car.&pad_to=24",
        },
    ),
    ClassStep(
        "Word order",
        {
            "the dog chases": "?source=A+dog+chases+a+cat.",
            "the cat chases": "?source=A+cat+chases+a+dog.",
        },
    ),
    ClassStep(
        "Bright is not the same as important",
        {
            "layer 3, head 3": "?kind=cross&layer=3&head=3",
            "each head off in turn": "ablation",
        },
    ),
    ClassStep("Heads have habits", {"Find a head": "heads"}),
    ClassStep(
        "One token after another",
        {"Generate": "generate?source=People+are+not+looking+at+the+street+musician."},
    ),
    ClassStep("Watch it learn", {"training step 16": "?step=16"}),
    ClassStep(
        "Is attention an explanation?",
        {"Experiments, What adds up": "attribution?source=I+saw+an+old+house."},
    ),
    ClassStep("Your own sentence", {}),
)


def as_markdown() -> str:
    """The plan's steps with their links, each of which opens in a tab of its own."""
    lines = []
    for number, step in enumerate(PLAN, start=1):
        links = " · ".join(f"[{label}](./{address})" for label, address in step.links.items())
        colon = "" if step.title.endswith("?") else ":"
        lines.append(f"{number}. {step.title}" + f"{colon} {links}" * bool(links))
    return "\n".join(lines)
