"""python -m tests.model.checking.whole.report [strangers]: how well check-ups name faults, and how
long they take, in all models of the tests or in those of strangers alone."""

import statistics
import sys
import warnings
from collections import Counter

import torch

from headlight.model.checking.whole.checkup import check_model
from headlight.model.checking.whole.result import Checkup
from tests.model.checking.whole.cases import RIGHT, STRANGERS, WRONG, Case

# Names that say what happens, and not why.
PLACES = {
    "sees the future", "reads the future elsewhere", "sees the batch", "sees padding", "NaN",
    "reads a part of what came before", "reads a part of the source", "length changes rows",
    "random in eval", "weights without gradient", "reads nothing before",
}  # fmt: skip
OUTCOMES = NAMED, BESIDE, LOCATED, OTHER, CANNOT, MISSED = (
    "named", "named beside a wrong name", "located", "wrong name", "cannot tell", "missed",
)  # fmt: skip


def tried(case: Case) -> Checkup:
    torch.manual_seed(1)
    return check_model(case.make(), **case.how)


def outcome(case: Case, found: Checkup) -> str:
    """One of OUTCOMES, of a model with a fault."""
    others = {*found.wrong} - case.faults - case.also
    if case.faults & {*found.faults}:
        return BESIDE if others - PLACES else NAMED
    if found.wrong:
        return OTHER if others - PLACES else LOCATED
    return CANNOT if found.named("cannot tell") else MISSED


def main(only: str = "") -> None:
    warnings.simplefilter("ignore")
    counts, seconds, cannot, all_findings = Counter(), [], 0, 0
    for name, case in {**WRONG, **RIGHT}.items():
        if only and name not in STRANGERS:
            continue
        found = tried(case)
        seconds.append((found.seconds, name))
        if case.fault:
            told = outcome(case, found)
        else:
            told = "right model called wrong" if found.wrong else "right model"
            states = [each.state for each in found.findings]
            cannot, all_findings = cannot + states.count("cannot tell"), all_findings + len(states)
        counts[told] += 1
        if told not in (NAMED, "right model"):
            print(f"{name} ({case.fault or 'right'}): {told}: {', '.join(found.faults)}")
    print(*(f"{count:4} {told}" for told, count in counts.most_common()), sep="\n")
    print(f"{cannot} of {all_findings} findings in right models: cannot tell")
    times = [each for each, _ in seconds]
    print(f"{statistics.median(times):.2f} s at the median, {max(seconds)} at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
