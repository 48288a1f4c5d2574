"""python -m tests.model.checking.whole.report [FOLDER]: how well check-ups name faults, and how
long they take, in all models of the tests, or in the files of a folder by people who have not seen
the list of faults. Such a file defines

NAME      in its own words the fault that it has; None if it is right
model()   makes it
CHECKUP   how it is tried, as arguments of `checkup`; may be left out

What NAME means is read off WORDS, or stands in FOLDER/faults.txt: a line for each file, as
`my_file: no causal mask | sees the future`."""

import importlib.util
import re
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
# Of people's own words, the first that are found; what any of the names would say.
WORDS = {
    r"ali ?bi|position bias|favou?rs? (the )?far": "bias favours the far",
    r"by one|next token|one too far": "mask one too far",
    r"cache": "cache differs",
    r"batch[_ ]first|attention runs (along|over) the batch": "batch and length swapped",
    r"position.*batch": "positions by batch",
    r"position.*(token id|no position|without)|no position": "target without positions|"
    "text without positions|source without positions",
    r"padding.*(queries|rows)": "padding mask along the queries",
    r"wrong padding|other padding": "another id for padding",
    r"(mean|pool|summary|average).*padd": "pooling counts padding",
    r"padding.*invert|invert.*padding": "padding mask inverted",
    r"cross.*padding|memory.*padding": "cross-attention sees padding",
    r"no activation|without (an )?activation": "no activation in the feed-forward",
    r"cross.attention is causal": "causal mask in cross-attention",
    r"after the softmax": "zero after the softmax",
    r"softmax over": "softmax over the wrong axis",
    r"softmax before|softmax twice": "returns probabilities|softmax twice",
    r"dropout": "dropout in eval",
    r"heads?\b.*(view|transpos|reshape)": "heads split without transpose",
    r"residual.*norm": "residual after the norm",
    r"residual": "residual left out",
    r"without a shift|not shifted": "target not shifted",
    r"shifted the wrong way": "target shifted backwards",
    r"frequenc": "frequencies grow",
    r"one and the same|same (layer|object)": "one layer, many times",
    r"instead of -1e9|too weak|small number": "mask too weak",
    r"encoder's output|embedded source|source embedding": "memory of the wrong layer",
    r"width, not|d_model": "√d_model",
    r"multiplied by sqrt": "multiplied by √d",
    r"never used|has no effect": "weights without effect",
    r"rotat|rotary (tables|angles|halves)": "no rotation",
    r"(mask of|zeros and) ones|added instead": "mask added as numbers",
    r"norm.*(root|mean square|divides)": "norm of the wrong size",
    r"norm.*(time|length|position|axis)": "norm over the wrong axis",
    r"too large at the start|N\(0, 1\)": "loss does not start at ln V",
    r"window.*\bOR\b": "causal mask with holes",
    r"plain (dict|list)|register": "layers not registered",
    r"no_grad|no gradient|detach": "weights without gradient",
    r"start(s)? at zero|zero init": "zeros that stay",
    r"only the last layer": "layers not chained",
}


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
        found[path.stem] = Case(file.model, told.get(path.stem) or fault_of(file.NAME or ""),
                                how=getattr(file, "CHECKUP", {}))  # fmt: skip
    return found


def fault_of(words: str) -> str:
    """The fault, or several with | between them, that words mean; they themselves if none."""
    if not words or {*words.split("|")} <= FAULTS.keys():
        return words
    found = (fault for some, fault in WORDS.items() if re.search(some, words, re.IGNORECASE))
    return next(found, words)


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
            unknown = "" if case.faults <= FAULTS.keys() else " (no fault of ours: see WORDS)"
            print(f"{name} ({case.fault or 'right'}{unknown}): {told}: {', '.join(found.faults)}")
    print(*(f"{count:4} {told}" for told, count in counts.most_common()), sep="\n")
    print(f"{cannot} of {all_findings} findings in right models: cannot tell; looks: {dict(looks)}")
    times = [each for each, _ in seconds]
    print(f"{statistics.median(times):.2f} s at the median, {max(seconds)} at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
