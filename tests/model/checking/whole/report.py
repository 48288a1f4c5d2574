"""python -m tests.model.checking.whole.report [FOLDER]: how well check-ups name faults, and how
long they take, in all models of the tests, or in the files of a folder by people who have not seen
the list of faults. Such a file defines

NAME      in its own words the fault that it has; None if it is right
model()   makes it
CHECKUP   how it is tried, as arguments of `checkup`; may be left out

What NAME means stands in FOLDER/faults.txt: a line for each file, as
`my_file: no causal mask | sees the future`."""

import importlib.util
import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from headlight.model.checking.whole.checkup import check_model
from headlight.model.checking.whole.faults import FAULTS
from headlight.model.checking.whole.result import Checkup
from tests.model.checking.whole.cases import RIGHT, WRONG, Case

# Names that say what happens, and not why.
PLACES = {
    "sees the future", "reads the future elsewhere", "sees the batch", "sees padding", "NaN",
    "reads a part of what came before", "reads a part of the source", "length changes rows",
    "random in eval", "weights without gradient", "reads nothing before",
}  # fmt: skip
OUTCOMES = NAMED, BESIDE, LOCATED, OTHER, CANNOT, MISSED = (
    "named", "named beside a wrong name", "located", "wrong name", "cannot tell", "missed",
)  # fmt: skip


def of_folder(folder: Path) -> dict[str, Case]:
    """Its models."""
    given = folder / "faults.txt"
    lines = given.read_text("utf-8").splitlines() if given.exists() else []
    told = {
        name.strip(): fault.strip() for name, _, fault in (line.partition(":") for line in lines)
    }
    found = {}
    for path in sorted(folder.glob("[a-z]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        sys.modules[path.stem] = file = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(file)
        found[path.stem] = Case(file.model, told.get(path.stem) or file.NAME or "",
                                how=getattr(file, "CHECKUP", {}))  # fmt: skip
    return found


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


def main(folder: str = "") -> None:
    warnings.simplefilter("ignore")
    cases: Mapping[str, Case] = of_folder(Path(folder)) if folder else {**WRONG, **RIGHT}
    counts, seconds, cannot, all_findings = Counter(), [], 0, 0
    looks = Counter()
    for name, case in cases.items():
        found = tried(case)
        seconds.append((found.seconds, name))
        if case.fault:
            told = outcome(case, found)
        else:
            told = "right model called wrong" if found.wrong else "right model"
            states = [each.state for each in found.findings]
            cannot, all_findings = cannot + states.count("cannot tell"), all_findings + len(states)
            looks.update(found.named("look"))
        counts[told] += 1
        if told not in (NAMED, "right model"):
            unknown = "" if case.faults <= FAULTS.keys() else " (no fault of ours)"
            print(f"{name} ({case.fault or 'right'}{unknown}): {told}: {', '.join(found.faults)}")
    print(*(f"{count:4} {told}" for told, count in counts.most_common()), sep="\n")
    print(f"{cannot} of {all_findings} findings in right models: cannot tell; looks: {dict(looks)}")
    times = [each for each, _ in seconds]
    print(f"{statistics.median(times):.2f} s at the median, {max(seconds)} at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
