"""Whatever a student saves gets a sentence, and the right one: compared with what it computes."""

import signal
import warnings
from types import ModuleType

import pytest
import torch

from headlight.app.export.file_judge import judge
from headlight.model.checking.parts import PARTS
from tests.app.student_fuzz import files

SEEDS, EACH = 20, 100
OTHER_REASONS = "in place", "Two calls with the same numbers differ"  # of a right result
SECONDS = 20


def distance(text: str, name: str) -> float | None:
    """By how much a file's function is off in the cases of its part, computed here. ∞: it fails, or
    returns something else. None: of what is not compared by its numbers."""
    part = PARTS[name]
    if name in ("multi_head", "cached_step", "greedy"):
        return None
    module, most = ModuleType("compared"), 0.0
    try:
        exec(text, vars(module))
        function = vars(module)[name]
        function = function() if isinstance(function, type) else function
        if isinstance(function, torch.nn.Module):
            function.eval()
        arrays = "np" in vars(module) and "torch" not in vars(module) and "attend" not in part.takes
        of_tensor = torch.Tensor.numpy if arrays else torch.Tensor.clone
        code = getattr(function, "__code__", None)
        for case, right in zip(part.drawn, part.right(), strict=True):
            if case.edge:
                continue
            inputs = {k: case.inputs[k] for k in part.takes}
            tensors = {k: of_tensor(x) for k, x in inputs.items() if isinstance(x, torch.Tensor)}
            inputs |= tensors
            by_name = {k: inputs.pop(k) for k in ["mask"] if code and code.co_kwonlyargcount}
            with torch.no_grad():
                found = function(*inputs.values(), **by_name)
            found = torch.as_tensor(found[0] if isinstance(found, tuple) else found)
            ours = right[part.result]
            if part.loose:
                found = found.reshape(found.shape[-2:]) if found.dim() > 2 else found
            same = (found.dtype == torch.bool) == (ours.dtype == torch.bool)
            if found.shape != ours.shape or not same:
                return torch.inf
            found, ours = found.double(), ours.double()
            apart = (found - ours).abs().max() / max(1.0, float(ours.abs().max()))
            most = max(most, float(apart)) if bool(apart == apart) else torch.inf
    except BaseException:
        return torch.inf
    return most


def late(*_):
    raise TimeoutError("it takes too long")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_saved_gets_a_true_sentence(tmp_path, seed):
    file, kinds = tmp_path / "mine.py", set()
    signal.signal(signal.SIGALRM, late)
    warnings.simplefilter("ignore")
    for kind, part, text in files(EACH, seed):
        file.write_text(text, encoding="utf-8", newline="")
        said: list = []
        signal.alarm(SECONDS)
        try:
            judge(file, "", None, said.append)
            apart = distance(text, part) if kind == "changed" else None
        finally:
            signal.alarm(0)
        assert said, text
        lines = [line for found in said for line in found["said"]]
        whole = " ".join(lines)
        assert all(line and len(line) <= 600 and "\n" not in line for line in lines), text
        assert "Traceback" not in whole and "headlight" not in whole, text
        assert not any(line.endswith(" ()") for line in lines), text
        states = {found["state"] for found in said if found["part"] == part}
        kinds |= {(kind, *states)}
        if kind == "right":
            assert states == {"right"}, (whole, text)
        elif kind == "cannot tell":
            assert states == {"cannot be judged"}, (whole, text)
        elif kind == "broken":
            assert "right" not in states, (whole, text)
        elif apart is not None and apart < 1e-6:
            assert states == {"right"} or any(x in whole for x in OTHER_REASONS), (whole, text)
        elif apart is not None and apart > 1e-3:
            assert "right" not in states, (whole, text)
    assert len(kinds) > 4, kinds
