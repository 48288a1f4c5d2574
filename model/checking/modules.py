"""A student's module has parameters of its own names and order. Which of them is the query's?"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

import torch
from torch import Tensor, nn

from headlight.model.checking.calling import Outcome, called, file_of, where
from headlight.model.checking.part import Case, same
from headlight.model.checking.parts import MULTI, PROJECTIONS
from headlight.model.checking.verdict import Verdict, judged

PATTERNS = {
    "query": r"(^|[._])(w?_?q|wq|query|queries|to_q|q_proj|fc_?q|linear_?q|proj_?q|q_linear)",
    "key": r"(^|[._])(w?_?k|wk|key|keys|to_k|k_proj|fc_?k|linear_?k|proj_?k|k_linear)",
    "value": r"(^|[._])(w?_?v|wv|value|values|to_v|v_proj|fc_?v|linear_?v|proj_?v|v_linear)",
    "output": r"(^|[._])(w?_?o|wo|out|output|to_out|o_proj|fc|fc_?o|fc_out|out_proj|proj|unify\w*|"
    r"c_proj|linear_?o(ut)?)",
}  # fmt: skip
Pair = tuple[Tensor, Tensor]


def fillings(module: nn.Module, w: dict[str, Pair]) -> Iterator[None]:
    """Puts our weights into a module, in every way that its shapes allow, likeliest first."""
    d = w["query"][0].shape[1]
    linears = [(n, p) for n, p in module.named_modules() if isinstance(p, nn.Linear)]
    packed = [(n, p) for n, p in linears if p.weight.shape == (3 * d, d)]
    square = [(n, p) for n, p in linears if p.weight.shape == (d, d)]
    if packed and square:
        named = (getattr(module, name, None) for name in ("n_heads", "num_heads", "h", "heads"))
        heads = next((n for n in named if isinstance(n, int)), 0)
        for order in permutations(PROJECTIONS[:3]):
            for by_head in (False, True):
                if by_head and not heads:
                    continue
                _fill(square[-1][1], *w["output"])
                matrix, bias = (torch.stack([w[r][i] for r in order]) for i in (0, 1))
                if by_head:  # a head's query, key and value side by side
                    matrix = matrix.unflatten(1, (heads, -1)).transpose(0, 1)
                    bias = bias.unflatten(1, (heads, -1)).transpose(0, 1)
                _fill(packed[0][1], matrix.reshape(3 * d, d), bias.reshape(3 * d))
                yield
        return
    if len(square) < len(PROJECTIONS):
        return
    byname = {}
    for role, pattern in PATTERNS.items():
        fitting = [p for n, p in square if re.search(pattern + r"$", n.lower())]
        if len(fitting) == 1:
            byname[role] = fitting[0]
    orders = []
    if len(byname) == len(PROJECTIONS):
        orders.append([byname[role] for role in PROJECTIONS])
    else:
        orders += list(permutations([p for _, p in square], len(PROJECTIONS)))
    for parts in orders:
        for role, part in zip(PROJECTIONS, parts, strict=True):
            _fill(part, *w[role])
        yield


def _fill(linear: nn.Linear, matrix: Tensor, bias: Tensor) -> None:
    with torch.no_grad():
        linear.weight.copy_(matrix)
        if linear.bias is not None:
            linear.bias.copy_(bias)


def judge_multi_head(make: Callable, batch_first: bool = True, **how) -> Verdict:
    """`make(d_model, n_heads)` is the module. The right filling, or else the likeliest."""

    def one(function, case: Case, seen: bool = False, which: int | None = None) -> Outcome:
        try:
            with torch.random.fork_rng():
                module = make(case.inputs["in_query"].shape[-1], case.inputs["n_heads"])
        except Exception as error:  # the student's own
            line, text, file = where(error, file_of(make))
            return Outcome(error=error, line=line, text=text, file=file)
        w = case.inputs["w"]
        biasless = not any(n.endswith("bias") for n, _ in module.named_parameters())
        if biasless:
            w = {role: (matrix, torch.zeros_like(bias)) for role, (matrix, bias) in w.items()}
        turn = (lambda x: x) if batch_first else (lambda x: x.transpose(0, 1))
        inputs = dict(case.inputs) | {
            name: turn(case.inputs[name]) for name in ("in_query", "in_key", "in_value")
        }
        takes = _takes(module)
        first = None
        for i, _ in enumerate(fillings(module, w)):
            if which is not None and i != which:
                continue
            outcome = called(module, takes, inputs, False, seen=seen)
            if isinstance(outcome.value, Tensor) and outcome.value.dim() == 3:
                outcome.value = turn(outcome.value)
            first = first or outcome
            right = MULTI.run(Case("", dict(case.inputs) | {"w": w}))["output"]
            if outcome.error is None and same(outcome.value, right):
                return outcome
            if outcome.error is not None and i == 0:
                return outcome
        return first or Outcome(error=TypeError("your module should have four nn.Linear of "
                                                "d_model × d_model, or one for query, key and "
                                                "value and one more"))  # fmt: skip

    biasless = _biasless(make)
    part = replace(MULTI, spoken=one)
    if biasless:
        base = MULTI.cases
        part = replace(part, cases=lambda: [
            Case(c.title, dict(c.inputs) | {"w": {r: (a, torch.zeros_like(b))
                                            for r, (a, b) in c.inputs["w"].items()}}, c.edge)
            for c in base()
        ])  # fmt: skip
    tried = _try(make)
    if isinstance(tried, nn.Module) and len(_takes(tried)) < 3:
        drawn = [c for c in part.cases() if not c.title.startswith("two texts")]
        part = replace(part, cases=lambda: drawn)
    return judged(part, make, numpy=False)


def _try(make):
    try:
        with torch.random.fork_rng():
            return make(12, 3)
    except Exception:
        return None


def _biasless(make) -> bool:
    module = _try(make)
    return module is not None and not any(n.endswith("bias") for n, _ in module.named_parameters())


def _takes(module: nn.Module) -> tuple[str, ...]:
    """Of self-attention alone: (x, mask)."""
    names = [
        p.name for p in inspect.signature(module.forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    if len(names) <= 2:
        return ("in_query", "mask")[: len(names)]
    return ("in_query", "in_key", "in_value", "mask")[: min(len(names), 4)]
