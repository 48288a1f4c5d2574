"""What is said of a student's part: right, or the first step, row and cell that differ, and the
misconception, if what they compute is what one gets under it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headlight.model.checking.calling import Odd, Outcome, called, said, wants_numpy
from headlight.model.checking.part import SLACK, Case, Mistake, Subject, close, same, squeezed

DROPOUT = (
    "Is dropout on? In eval mode nothing may be random: use nn.Dropout, or F.dropout(…, "
    "training=self.training)."
)
SAMPLED = "You draw the next token at random. Greedy decoding takes the largest logit: argmax."
NOT_RUNNING = ("exception", "not written yet", "nothing returned", "type")
CANNOT_TELL = "cannot tell"
STATES = RIGHT, NOT_YET, UNJUDGED = "right", "not yet", "cannot be judged"
NUMBER_IN_LINE = re.compile(r"(?<![\w.])\d+(?![\w.])")
COARSE = 2000  # times our tolerance: the rounding of bfloat16
ALONG = 0.95  # cosine of how an answer differs and how that under a misconception does


@dataclass(frozen=True, repr=False)
class Verdict:
    """`name`: of the misconception, or of what happened; "" where it has none. `step`, `index`,
    `line`: the first that differs. `yours`, `ours`: the numbers of `case`."""

    part: str
    ok: bool
    sentence: str
    name: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    step: str = ""
    index: tuple[int, ...] = ()
    line: int = 0
    case: Case | None = None
    yours: Any = None
    ours: Any = None
    difference: float = 0.0
    axes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.name == CANNOT_TELL:
            return UNJUDGED
        return RIGHT if self.ok else NOT_YET

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.part}: {self.state}. {self.sentence}"]
        if not self.ok and self.index and self.case:
            lines.append(f"First difference, with {self.case.title}: {self.cell()}")
        lines += [f"Note: {sentence}" for _, sentence in self.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def cell(self) -> str:
        place = ", ".join(
            f"{axis} {i + 1}{self._token(axis, i)}"
            for axis, i in zip(self.axes[-len(self.index) :], self.index, strict=False)
        )
        yours, ours = (float(x[self.index]) for x in (self.yours, self.ours))
        # As many digits as tell them apart.
        digits = next((n for n in range(4, 10) if f"{yours:.{n}g}" != f"{ours:.{n}g}"), 4)
        return f"{place}: yours {yours:.{digits}g}, right {ours:.{digits}g}."

    def _token(self, axis: str, i: int) -> str:
        case = self.case
        tokens = {"query": case.rows, "key": case.columns}.get(axis, ()) if case else ()
        return f" “{tokens[i]}”" if i < len(tokens) else ""


def cannot_tell(part: Subject, reason: str) -> Verdict:
    """`reason`: a sentence."""
    return Verdict(part.name, False, reason, CANNOT_TELL)


class NotYet(AssertionError):
    """A part that is not right."""

    def __init__(self, verdict: Verdict):
        super().__init__(str(verdict))
        self.verdict = verdict


def judged(
    part: Subject, function: Callable, cases: Sequence[Case] = (), numpy: bool | None = None,
    without: Sequence[str] = (),
) -> Verdict:  # fmt: skip
    """`function` on every case of the part. `cases`: more of them, as of a real sentence.
    `without`: functions of PyTorch that the exercise is to be done without."""
    own = part.drawn if not cases else [*part.drawn, *cases]
    takes = part.takes
    if numpy is None:
        numpy = wants_numpy(function, takes)
    call = part.spoken or (
        lambda f, case, **o: called(f, takes, case.inputs, numpy, listed=part.listed, **o)
    )
    outcomes = [call(function, case) for case in own]
    rights = [part.run(case)[part.result] for case in own]

    verdict = _broken(part, own, outcomes, rights)
    if verdict is not None:  # it is False itself
        return verdict
    again = call(function, own[0])
    if again.error is None and not same(again.value, outcomes[0].value):
        why = SAMPLED if isinstance(rights[0], list) else DROPOUT
        return _wrong(part, own, outcomes, rights, "random", "Two calls with the same numbers "
                      f"differ. {why}")  # fmt: skip
    if changed := next((o.changed for o in outcomes if o.changed), ()):
        return _wrong(part, own, outcomes, rights, "input changed", f"Your code changes its input "
                      f"{' and '.join(changed)} in place: an operation that ends in _, or +=. "
                      "Whoever called it still needs the old numbers.")  # fmt: skip

    if without:
        seen = call(function, own[0], seen=True).seen
        if seen and (used := sorted(seen.names & {*without})):
            return _wrong(part, own, outcomes, rights, "not by hand",
                          f"Write it without {' and '.join(used)}.")  # fmt: skip
    fits = [same(o.value, r, part.loose) for o, r in zip(outcomes, rights, strict=True)]
    edges = [i for i, case in enumerate(own) if case.edge and not fits[i]]
    if all(fit or case.edge for fit, case in zip(fits, own, strict=True)):
        notes = [_edge(part, own, outcomes, i) for i in edges]
        notes += _dtype(outcomes, rights)
        most = max((_apart(o.value, r) for o, r, fit in zip(outcomes, rights, fits, strict=True)
                    if fit), default=0.0)  # fmt: skip
        return Verdict(
            part.name, True, f"It agrees with ours in {sum(fits)} of {len(own)} cases"
            + (f", to {most:.0e}." if most else ", exactly."), notes=tuple(notes), difference=most,
            axes=_axes(part, own[-1], rights[-1]), case=own[-1],
            yours=outcomes[-1].value, ours=rights[-1],
        )  # fmt: skip
    named = _misconception(part, outcomes, [*part.drawn])
    if named:
        return _wrong(part, own, outcomes, rights, " and ".join(m.name for m in named),
                      " ".join(dict.fromkeys(m.sentence for m in named)), named)  # fmt: skip
    return _unnamed(part, function, own, outcomes, rights, fits, call)


def _broken(part, cases, outcomes, rights) -> Verdict | None:
    """No numbers at all."""
    errors = [o for o in outcomes if o.error is not None]
    if len(errors) == len(outcomes):
        first = errors[0]
        # What one gets under a misconception may be an exception, but then any is.
        name = "not written yet" if isinstance(first.error, NotImplementedError) else "exception"
        return Verdict(part.name, False, said(first), name, line=first.line, case=cases[0],
                       ours=rights[0], axes=part.axes)  # fmt: skip
    if any(o.error is None and o.value is None for o in outcomes):
        return Verdict(part.name, False, "It returns nothing. Is there a return?",
                       "nothing returned", case=cases[0], ours=rights[0],
                       axes=part.axes)  # fmt: skip
    for outcome, right in zip(outcomes, rights, strict=True):
        asked = Tensor if isinstance(right, Tensor) else type(right)
        if outcome.error is None and not isinstance(outcome.value, asked):
            what = "a list of ids" if asked is list else "a plain tensor"
            return Verdict(part.name, False, f"It returns {_kind(outcome.value)}. Right is {what}.",
                           "type", case=cases[0], ours=rights[0], axes=part.axes)  # fmt: skip
    return None


def _kind(value: Any) -> str:
    return value.said if isinstance(value, Odd) else f"a value of type {type(value).__name__}"


def _edge(part: Subject, cases, outcomes, i: int) -> tuple[str, str]:
    for m in part.mistakes:
        if m.note and same(outcomes[i].value, part.under((m,))[i], part.loose):
            return m.name, m.sentence
    value = outcomes[i].value
    if isinstance(value, Tensor) and value.isnan().any():
        nan = next((m for m in part.mistakes if m.name == "NaN in an empty row"), None)
        if nan:
            return nan.name, nan.sentence
    return cases[i].edge, f"It differs from ours for {cases[i].title}."


def _dtype(outcomes, rights) -> list[tuple[str, str]]:
    dtypes = {o.dtype for o in outcomes if o.dtype}
    if isinstance(rights[0], list) and (other := dtypes - {"list"}):
        return [("not a list", f"It returns a {min(other)} of ids in place of a list, so == with a "
                 "list fails.")]  # fmt: skip
    if "float64" in dtypes and any(isinstance(r, Tensor) for r in rights):
        return [("float64 returned", "It returns float64 for float32. In a model the next matrix "
                 "refuses that: end with .to(x.dtype).")]  # fmt: skip
    return []


def _misconception(part: Subject, outcomes: Sequence[Outcome], cases) -> tuple[Mistake, ...]:
    values = [o.error if o.error is not None else o.value for o in outcomes[: len(cases)]]
    counts = [i for i, case in enumerate(cases) if not case.edge]

    def fit(answers, slack=1) -> bool:
        return not all(isinstance(values[i], Exception) for i in counts) and all(
            same(values[i], answers[i], part.loose, slack) for i in counts
        )

    unmasked = [i for i in counts if cases[i].inputs.get("mask") is None]
    single = [((m,), answers) for m, answers in part.alone() if not m.note]
    found = []
    for candidates in (single, ((two, part.under(two)) for two in part.pairs())):
        near = []
        for some, answers in [] if found else candidates:
            # A note counts where something is masked, and nowhere else.
            if all(same(values[i], answers[i], part.loose) for i in unmasked):
                (found if fit(answers) else near).append(some)
        found = found or [some for some in near if any(map(fit, part.noted(some)))]
    found = found or [
        some for some, answers in single
        if fit(answers, SLACK)
        and _is_along([(values[i], answers[i], part.right()[i][part.result]) for i in counts])
    ]  # fmt: skip
    wrong = [i for i in counts if not same(values[i], part.right()[i][part.result], part.loose)]
    if not found and len(wrong) == 1 and cases[wrong[0]].only and _is_beyond(values[wrong[0]]):
        found = [(m,) for m in part.mistakes if m.name == cases[wrong[0]].only]
    names = {" and ".join(m.name for m in some) for some in found}
    return found[0] if len(names) == 1 else ()


def _is_beyond(value: Any) -> bool:
    """Whether some of it is NaN or ∞."""
    return isinstance(value, Tensor) and not bool(value.isfinite().all())


def _is_along(cases: Sequence[tuple[Any, Any, Any]]) -> bool:
    """Whether yours differ from ours in the direction in which theirs do: not by rounding. Of each
    case: yours, theirs, ours."""
    if not all(isinstance(x, Tensor) for case in cases for x in case):
        return False
    one, other = (
        torch.cat([(case[i].double() - case[2].double()).nan_to_num().flatten() for case in cases])
        for i in (0, 1)
    )
    return float(torch.cosine_similarity(one, other, dim=0)) > ALONG


def _apart(one: Any, other: Any) -> float:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.dtype == torch.bool:
        return 0.0
    gap = (squeezed(one).double() - squeezed(other).double()).abs()
    return float(gap[gap.isfinite()].max()) if gap.isfinite().any() else 0.0


def _axes(part: Subject, case: Case, result: Any) -> tuple[str, ...]:
    """Those of a result; of a real sentence, whose values are an identity, the last are keys."""
    if not isinstance(result, Tensor):
        return part.axes
    axes = part.axes[max(len(part.axes) - result.dim(), 0) :]
    return (*axes[:-1], "key") if case.columns and result.shape[-1] == len(case.columns) else axes


def _wrong(part, cases, outcomes, rights, name, sentence, named=(), step="", line=0) -> Verdict:
    """With the first cell that differs, in the first case that does."""
    step = step or next((s for s in part.steps if any(s in m.swaps for m in named)), "")
    # A real sentence, which stands last, is the best picture.
    order = sorted(zip(cases, outcomes, rights, strict=True), key=lambda one: not one[0].rows)
    for case, outcome, right in order:
        yours = outcome.value
        if case.edge or not isinstance(yours, Tensor) or not isinstance(right, Tensor):
            continue
        shown, ours = (squeezed(yours), squeezed(right)) if part.loose else (yours, right)
        if shown.shape == ours.shape and not close(shown.float(), ours.float()).all():
            index = tuple(int(i) for i in (~close(shown.float(), ours.float())).nonzero()[0])
            axes = _axes(part, case, shown)
            return Verdict(part.name, False, sentence, name, (), step, index, line, case, shown,
                           ours, _apart(shown, ours), axes)  # fmt: skip
    case, outcome, right = next((c, o, r) for c, o, r in zip(cases, outcomes, rights, strict=True))
    return Verdict(part.name, False, sentence, name, (), step, (), line, case, outcome.value, right,
                   0.0, part.axes)  # fmt: skip


def _unnamed(part, function, cases, outcomes, rights, fits, call) -> Verdict:
    """The first step that is nowhere in what the code made, and the line behind the last that is;
    else what only some cases have in common."""
    wrong = [i for i, fit in enumerate(fits) if not fit and not cases[i].edge]
    failed = [i for i in wrong if outcomes[i].error is not None]
    if failed and any(fits):
        first = failed[0]
        has_number = NUMBER_IN_LINE.search(outcomes[first].text)
        is_size = has_number and "sizes" in cases[first].title
        other = "size written into the code" if is_size else "exception"
        good = [c.title for c, fit in zip(cases, fits, strict=True) if fit]
        return _wrong(part, cases, outcomes, rights, other,
                      f"It works for {good[0]}, but not for {cases[first].title}. "
                      + said(outcomes[first]))  # fmt: skip
    i = wrong[0]
    if failed:
        return _wrong(part, cases, outcomes, rights, "exception", said(outcomes[failed[0]]),
                      line=outcomes[failed[0]].line)  # fmt: skip
    value, right = outcomes[i].value, rights[i]
    if isinstance(value, Tensor) and isinstance(right, Tensor):
        a, b = (squeezed(value), squeezed(right)) if part.loose else (value, right)
        if a.shape != b.shape:
            shape = tuple(value.shape) or "a single number"
            return _wrong(part, cases, outcomes, rights, "shape",
                          f"It returns {shape}; {tuple(right.shape)} is right "
                          f"({', '.join(part.axes)}).")  # fmt: skip
    traced = call(function, cases[i], seen=True)
    if (
        traced.seen
        and traced.seen.is_coarse
        and all(same(outcomes[i].value, rights[i], part.loose, COARSE) for i in wrong)
    ):
        return cannot_tell(part, "It agrees with ours but for the rounding of half precision. "
                           "Compute in float32 to have it judged.")  # fmt: skip
    steps = part.run(cases[i])
    last, missing = None, ""
    if traced.seen and traced.seen.made:
        for name in part.steps:
            if not isinstance(steps[name], Tensor) or steps[name].dtype == torch.bool:
                continue
            if (line := traced.seen.line_of(steps[name])) is not None:
                last, missing = (name, line), ""
            else:
                missing = missing or name
    title = part.titles.get
    good = [c.title for c, fit in zip(cases, fits, strict=True) if fit]
    only = f" It is right for {good[0]}." if good else ""
    if last and missing:
        line = f" (line {last[1]})" if last[1] else ""
        return _wrong(part, cases, outcomes, rights, "",
                      f"Your {title(last[0], last[0])} are right{line}. Then something else"
                      f" than our {title(missing, missing)} follows.{only}",
                      step=missing, line=last[1])  # fmt: skip
    if missing:
        return _wrong(part, cases, outcomes, rights, "",
                      f"It differs from the first step on, the {title(missing, missing)}.{only}",
                      step=missing)  # fmt: skip
    return _wrong(part, cases, outcomes, rights, "", f"The numbers differ from ours.{only}")
