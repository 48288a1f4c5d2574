"""What a check-up says: a finding for each trial."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from headlight.model.checking.verdict import CANNOT_TELL, RIGHT
from headlight.model.checking.whole.faults import FAULTS, following

WRONG, LOOK = "wrong", "look"


@dataclass(frozen=True)
class Finding:
    """One trial.

    state      right, wrong, look (it works, but is seldom meant) or cannot tell
    fault      its name in FAULTS, or ""
    case       a sentence: what was changed, and which row moved by how much
    where      the line of the model's code, or a module
    found      (row, token): how much a row's logits move when a token changes, as a share of the
               spread of all logits
    expected   (row, token): 1 where a row may depend on a token
    mended     as `found`, with the fault put right on the fly; None if nothing was
    """

    trial: str
    state: str
    fault: str = ""
    case: str = ""
    where: str = ""
    found: Tensor | None = field(default=None, compare=False)
    expected: Tensor | None = field(default=None, compare=False)
    mended: Tensor | None = field(default=None, compare=False)
    axes: tuple[str, str] = ("row", "token")

    def __str__(self) -> str:
        return "\n    ".join(self.lines())

    def lines(self) -> Iterator[str]:
        """What happened, then where, what usually mends it, and the lesson."""
        first, *more = self.sentences()
        if not self.fault:
            yield f"{self.trial}: {self.state}. {first}".strip()
            return
        case = f" {more.pop(0)}" if self.case else ""
        yield f"{self.trial}: {self.state}, {self.fault}. {first}{case}"
        yield from more
        if lesson := self.lesson:
            number, _, name = lesson.partition("-")
            yield f"Lesson {number}: {name.replace('-', ' ')}"

    @property
    def lesson(self) -> str:
        """A file of app/lessons/en, without its ending, or ""."""
        return FAULTS[self.fault].lesson if self.fault else ""

    def sentences(self) -> list[str]:
        """What is wrong, what happened, then where, and what usually mends it."""
        if not self.fault:
            return [self.case]
        fault = FAULTS[self.fault]
        where, cure = self.where and f"Where: {self.where}", fault.cure
        more = self.case, where, cure and f"Usual cure: {cure}"
        return [fault.sentence, *filter(None, more)]


def right(trial: str, case: str, **more) -> Finding:
    """A trial that the model passes."""
    return Finding(trial, RIGHT, case=case, **more)


def cannot_say(trial: str, because: str, **more) -> Finding:
    """A trial without a verdict. `because`: a sentence."""
    return Finding(trial, CANNOT_TELL, case=because, **more)


def fails(trial: str, fault: str, case: str = "", **more) -> Finding:
    """A trial with this fault."""
    return Finding(trial, LOOK if FAULTS[fault].look else WRONG, fault, case, **more)


@dataclass(frozen=True, repr=False)
class Checkup:
    """All findings. True unless one is wrong.

    how       how the model was called
    seconds   that it took
    """

    model: str
    how: str
    findings: Sequence[Finding]
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return not self.named(WRONG)

    def named(self, state: str) -> list[str]:
        """The faults of the findings in this state."""
        return [each.fault for each in self.findings if each.state == state]

    @property
    def wrong(self) -> list[str]:
        """Names of what is wrong."""
        return self.named(WRONG)

    @property
    def faults(self) -> list[str]:
        """Names of what is wrong, then of what deserves a look."""
        return self.wrong + self.named(LOOK)

    @property
    def by_state(self) -> list[Finding]:
        """The findings, the worst first."""
        order = [WRONG, LOOK, CANNOT_TELL, RIGHT]
        return sorted(self.findings, key=lambda each: order.index(each.state))

    def summary(self) -> str:
        """How many trials are in each state, in one line."""
        states = [each.state for each in self.by_state]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        how = f", called with {self.how}" if self.how else ""
        return f"{self.model}{how}: {counts}. {self.seconds:.1f} s."

    def __str__(self) -> str:
        """In full but for what is right, of which the trials are listed."""
        others = [str(each) for each in self.by_state if each.state != RIGHT]
        passed = [each.trial for each in self.findings if each.state == RIGHT]
        rest = [f"Right: {'; '.join(passed)}."] if passed else []
        return "\n".join([self.summary(), *others, *rest])

    __repr__ = __str__


def causes(findings: Sequence[Finding]) -> list[Finding]:
    """Without what follows from another fault, and each fault once."""
    dropped = following({each.fault for each in findings})
    kept: dict[str, Finding] = {}
    for each in findings:
        if each.fault not in dropped:
            kept.setdefault(each.fault or each.trial, each)
    return [*kept.values()]
