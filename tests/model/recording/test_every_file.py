"""Every file of the installed transformers that takes its attention from the table.

`python -m tests.model.recording.test_every_file [name …]` prints what becomes of each."""

import copy
import importlib
import inspect
import multiprocessing
import resource
import signal
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import transformers

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import eager
from tests.model.recording.small import WAYS, inputs, small

TABLE = "ALL_ATTENTION_FUNCTIONS"
MOST_PARAMETERS, MOST_SECONDS, MOST_BYTES, MOST_CLASSES = 100_000_000, 60, 8 * 2**30, 3
EQUAL, REFUSED, NOT_MADE, OTHER = "recorded equal", "refused", "cannot be made", "OTHER"
FIRST = ("ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "ForMaskedLM", "Model", "")


def files() -> list[str]:
    folder = Path(transformers.__file__).parent / "models"
    paths = sorted(folder.glob("*/modeling_*.py"))
    return [f"{p.parent.name}.{p.stem}" for p in paths if TABLE in p.read_text(encoding="utf-8")]


def classes(file: str) -> list[type]:
    module = importlib.import_module(f"transformers.models.{file}")
    found = [each for each in vars(module).values() if inspect.isclass(each)
             and each.__module__ == module.__name__ and getattr(each, "config_class", None)
             and "forward" in vars(each)]  # fmt: skip
    return sorted(
        found,
        key=lambda each: next(i for i, end in enumerate(FIRST) if each.__name__.endswith(end)),
    )


def made(kind: Any, kept: str, wider: int) -> torch.nn.Module:
    torch.manual_seed(0)
    config = small(kind.config_class, kept, wider)
    with torch.device("meta"):
        count = sum(p.numel() for p in kind(copy.deepcopy(config)).parameters())
    if count > MOST_PARAMETERS:
        raise ValueError(f"{count / 1e6:,.0f} million parameters")
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def own_weights(model: torch.nn.Module, given: dict) -> list[np.ndarray]:
    """All weights that its own eager attention returns in one pass, in the order of the calls:
    without our function in the table."""
    kept: list[np.ndarray] = []

    def keeping(own):
        def attend(*args, **kwargs):
            output = own(*args, **kwargs)
            if output[1] is not None:
                kept.append(output[1][0].float().numpy())
            return output

        return attend

    with ExitStack() as patches, torch.no_grad():
        for name, module in [*sys.modules.items()]:
            if name.startswith("transformers.models."):
                for each in [n for n in vars(module) if n.endswith("eager_attention_forward")]:
                    patches.enter_context(patch.object(module, each, keeping(vars(module)[each])))
        torch.manual_seed(0)
        eager(model)(**copy.deepcopy(given))
    return kept


def outcome(file: str) -> tuple[str, str]:
    failed = []  # of each that did not run; the first is the likeliest
    for way in WAYS:
        for kind in classes(file)[:MOST_CLASSES]:
            try:
                model = made(kind, *way)
            except Exception as error:
                failed.append(f"{kind.__name__}: {short(error)}")
                continue
            for given in inputs(model):
                what = f"{kind.__name__} of {', '.join(given)}"
                try:
                    theirs = own_weights(model, given)
                except Exception as error:
                    failed.append(f"{what}: {short(error)}")
                    continue
                if theirs:
                    result, why = compared(model, given, theirs)
                    return result, f"{what}: {why}"
                failed.append(f"{what}: its own attention was not called")
    return NOT_MADE, failed[0] if failed else "no class of models"


def short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def compared(model: torch.nn.Module, given: dict, theirs: list[np.ndarray]) -> tuple[str, str]:
    try:
        torch.manual_seed(0)
        recorded = record(model, inputs=copy.deepcopy(given))
    except CannotRecord as error:
        return REFUSED, str(error)
    except Exception as error:
        return OTHER, short(error)
    mine = [layer for weights in recorded.attention.values() for layer in weights]
    if len(mine) != len(theirs):
        return OTHER, f"{len(mine)} layers recorded of {len(theirs)}"
    for layer in theirs:
        same = (
            i for i, each in enumerate(mine)
            if each.shape == layer.shape and np.abs(each - layer).max() <= 1e-6
        )  # fmt: skip
        if (at := next(same, None)) is None:
            return OTHER, f"a layer of {layer.shape} is not as it is by itself"
        del mine[at]
    return EQUAL, f"{len(theirs)} layers"


def child(file: str, answer) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest's own would raise
    signal.alarm(MOST_SECONDS)
    torch.set_num_threads(1)
    try:
        answer.send(outcome(file))
    except BaseException as error:
        answer.send((OTHER, f"{type(error).__name__}: {error}"))


def outcomes(names: list[str]):
    """Each in a process of its own, which may take so much memory and time."""
    fork = multiprocessing.get_context("fork")
    for file in names:
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=child, args=(file, sender))
        process.start()
        sender.close()
        try:
            yield file, *receiver.recv()
        except EOFError:
            yield file, NOT_MADE, f"it takes more than {MOST_SECONDS} s, or ends its process"
        process.join()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_file_is_recorded_otherwise_than_it_attends():
    table = [*outcomes(files())]
    counts = Counter(result for _, result, _ in table)
    print("\n".join(map(" | ".join, table)), counts)
    assert not [row for row in table if row[1] == OTHER]
    assert counts[EQUAL] > 0.7 * len(table)  # others cannot be made small by rules


if __name__ == "__main__":
    names = [file for file in files() if not sys.argv[1:] or any(n in file for n in sys.argv[1:])]
    every: Counter = Counter()
    for row in outcomes(names):
        every[row[1]] += 1
        print(" | ".join(row), flush=True)
    print(dict(every))
