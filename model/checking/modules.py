"""A student's module has parameters of its own names, shapes and order. Which is the query's?

Each of the four matrices has the axes h, e and d: head, number within the head, and d_model. What
holds several has an axis r, of roles, too. A layout says what a parameter holds and in which order
its axes lie: "dhe" is (in, out) with the heads side by side, "hed" that of nn.Linear. Our weights
are put into the module under each layout that its shapes allow. It is right if it computes what
ours does under one.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.checking.calling import Outcome, called, file_of, where
from headlight.model.checking.part import Case, Subject, same
from headlight.model.checking.parts import MULTI, PROJECTIONS
from headlight.model.checking.verdict import NOT_RUNNING, Verdict, cannot_tell, judged

ROLES = {
    "query": r"(^|[._])(w?_?q|wq|query|queries|to_q|q_proj|fc_?q|linear_?q|proj_?q|q_linear)",
    "key": r"(^|[._])(w?_?k|wk|key|keys|to_k|k_proj|fc_?k|linear_?k|proj_?k|k_linear)",
    "value": r"(^|[._])(w?_?v|wv|value|values|to_v|v_proj|fc_?v|linear_?v|proj_?v|v_linear)",
    "output": r"(^|[._])(w?_?o|wo|out|output|to_out|o_proj|fc|fc_?o|fc_out|out_proj|proj|unify\w*|"
    r"c_proj|linear_?o(ut)?)",
}  # fmt: skip
BIASES = {role: rf"(^|[._])(b(ias)?_?{role[0]}\w*|{role[0]}\w*_b(ias)?)$" for role in ROLES}
NO_BIAS = re.compile(r"(^|[._])(weight|gain|gamma|scale)$")
HEADS = r"(n_?|num_?)?(attention_)?(h|heads?)"
# What a module is made with, by its parameters' names: from d_model and the number of heads.
MADE_WITH: Sequence[tuple[str, Callable[[int, int], Any]]] = (
    (HEADS, lambda d, h: h),
    (r"(d|dim|n|size)_?(k|v|q|head|keys?|values?)|head_?(dim|size)|d_?(per|each)?_?head",
     lambda d, h: d // h),
    (r"(d|n|dim|size)|d_?(model|in|out)\w*|(n_)?emb\w*|(num_)?hidden\w*|(in|out)_?(dim|features)|"
     r"dim_?\w*|features|(model|key|query|value)_?(dim|size)", lambda d, h: d),
    (r"p|p_?drop|drop\w*|dropout\w*", lambda d, h: 0.0),
    (r"(max|context|block|seq)\w*", lambda d, h: 64),
)  # fmt: skip
TEXTS = {
    "in_query": r"q|x_?q|q_?(in|x)|quer(y|ies)\w*",
    "in_key": r"k|x_?k|k_?(in|x)|keys?(_?(in|input|states))?",
    "in_value": r"v|x_?v|v_?(in|x)|values?\w*",
}
OTHER_TEXT = re.compile(r"context|mem\w*|enc\w*|kv|y|source|src|other\w*|cross\w*")
MASK = re.compile(r"m|msk|\w*bias|attn\w*|pad\w*")
# Shapes of masks, as the exercise names none: name → of ours (batch, 1, query, key).
MASKS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "": lambda mask: mask,
    "(batch, query, key)": lambda mask: mask[:, 0],
    "(query, key)": lambda mask: mask[0, 0],
    "(batch, key)": lambda mask: mask[:, 0, 0],
}
PROBE = 40, 5  # d_model and heads, by which h, e, d and the number of roles all differ
Pair = tuple[Tensor, Tensor]


class CannotJudge(ValueError):
    """Why a module cannot be judged, in a sentence."""


# What it is made with, and called with


def _made(make: Callable, d: int, h: int) -> nn.Module:
    """Raises CannotJudge, and whatever the student's code does."""
    if isinstance(make, nn.Module):
        raise CannotJudge("It is one module. Give its class, so that others can be made.")
    given, named = (d, h), {}
    with_names = _parameters(make)
    needed = [p for p in with_names if p.default is p.empty]
    first = [p.name.lower() for p in with_names[:2]]
    by_position = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in with_names)
    if with_names and (len(needed) > 2 or by_position < 2 or re.fullmatch(HEADS, first[0])):
        asked = needed if len(needed) > 1 else with_names[:2]
        named = {p.name: _of_name(p.name, d, h) for p in asked}
        if None in named.values():
            names = ", ".join(p.name for p in asked)
            raise CannotJudge(
                f"It is made with ({names}). Give a function of (d_model, n_heads) that makes it."
            )
        given = ()
    with torch.random.fork_rng():
        module = make(*given, **named)
    if not isinstance(module, nn.Module):
        raise CannotJudge(f"It makes no nn.Module but a value of type {type(module).__name__}.")
    return module


def _of_name(name: str, d: int, h: int) -> Any:
    name = name.lower()
    return next((value(d, h) for pattern, value in MADE_WITH if re.fullmatch(pattern, name)), None)


def _parameters(function: Callable) -> list[inspect.Parameter]:
    """Those that can be named; none where a *args takes more."""
    try:
        found = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return []
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def _call(module: nn.Module) -> tuple[tuple[str, ...], dict[str, str]]:
    """Inputs by position, and by name: parameter → input."""
    parameters = _parameters(module.forward)
    if not parameters:
        return ("in_query", "in_key", "in_value", "given_mask"), {}
    masks = [p.name for p in parameters if "mask" in p.name.lower()]
    masks.sort(key=lambda name: "pad" in name.lower())
    others = [p for p in parameters if p.name not in masks]
    names = [p.name for p in others]
    needed = [p.name for p in others if p.default is p.empty]
    by_role = {
        role: [n for n in names if re.fullmatch(pattern, n.lower())]
        for role, pattern in TEXTS.items()
    }
    if all(len(found) == 1 for found in by_role.values()):
        keywords = {found[0]: role for role, found in by_role.items()}
    elif len(needed) >= 3:
        keywords = dict(zip(needed, TEXTS, strict=False))
    elif len(names) > 1 and (masks or OTHER_TEXT.fullmatch(names[1].lower())):
        is_two = names[1] in needed or OTHER_TEXT.fullmatch(names[1].lower())
        keywords = dict(zip(names[: 1 + bool(is_two)], TEXTS, strict=False))
    else:
        keywords = {names[0]: "in_query"} if names else {}
    rest = [n for n in names if n not in keywords and MASK.fullmatch(n.lower())]
    if mask := next(iter([*masks, *rest[:1]]), ""):
        keywords[mask] = "given_mask"
    return (), keywords


# What its parameters are


@dataclass(frozen=True)
class Held:
    """One parameter, number `at` of those of a name, or its row `slot`; or all of them, one for
    each head. Numbers in names are *, as in heads.*.key.weight. `count`: of matrices or biases."""

    name: str
    at: int | None
    slot: int | None
    count: int
    shape: tuple[int, ...]
    is_linear: bool

    def put(self, module: nn.Module, value: Tensor) -> None:
        found = _named(module)[self.name]
        chosen = found if self.at is None else [found[self.at]]
        with torch.no_grad():
            if self.slot is not None:
                chosen = [chosen[0][self.slot]]
            for tensor, part in zip(chosen, value.reshape(len(chosen), -1), strict=True):
                tensor.copy_(part.reshape(tensor.shape))


@dataclass(frozen=True)
class Layout:
    """What each parameter holds: (it, its roles, the order of its axes); `has_bias`: roles."""

    matrices: tuple[tuple[Held, tuple[str, ...], str], ...]
    biases: tuple[tuple[Held, tuple[str, ...], str], ...]
    named: int  # roles that their names confirm

    @property
    def has_bias(self) -> frozenset[str]:
        return frozenset(role for _, roles, _ in self.biases for role in roles)

    @property
    def is_interleaved(self) -> bool:
        return any(order.index("e") < order.index("h") for _, _, order in self.matrices)

    @property
    def is_sure(self) -> bool:
        """Whether there is no other order of axes."""
        return all(held.is_linear for held, _, _ in self.matrices)

    def fill(self, module: nn.Module, w: Mapping[str, Pair], h: int) -> None:
        for held, roles, order in self.matrices:
            held.put(module, _ordered([_by_head(w[r][0], r, h) for r in roles], order))
        for held, roles, order in self.biases:
            biases = [w[r][1] if r == "output" else w[r][1].unflatten(0, (h, -1)) for r in roles]
            held.put(module, _ordered(biases, order))


def _by_head(matrix: Tensor, role: str, h: int) -> Tensor:
    return (matrix.T if role == "output" else matrix).unflatten(0, (h, -1))


def _ordered(parts: list[Tensor], order: str) -> Tensor:
    labels = [x for x in "rhed" if x in order]
    value = torch.stack(parts) if "r" in order else parts[0]
    return value.permute([labels.index(x) for x in order])


def _named(module: nn.Module) -> dict[str, list[Tensor]]:
    found: dict[str, list[Tensor]] = {}
    for name, tensor in module.named_parameters():
        found.setdefault(re.sub(r"\d+", "*", name), []).append(tensor)
    return found


def _held(module: nn.Module, d: int, h: int) -> tuple[list[Held], list[Held]]:
    """Matrices and biases. Raises CannotJudge."""
    found = _named(module)
    if not found:
        raise CannotJudge("It has no parameters. Are its matrices nn.Linear or nn.Parameter, and "
                         "its lists nn.ModuleList or nn.ParameterList?")  # fmt: skip
    linear = {re.sub(r"\d+", "*", name) for name, m in module.named_modules()
              if isinstance(m, nn.Linear | nn.Conv1d)}  # fmt: skip
    matrices, biases = [], []
    for name, tensors in found.items():
        shapes = [tuple(x for x in tensor.shape if x > 1) for tensor in tensors]
        is_linear = name.removesuffix(".weight") in linear
        into, one = (matrices, d * d) if prod(shapes[0]) >= d * d // h else (biases, d)
        if into is biases and NO_BIAS.search(name):
            raise _other(name, tensors[0])
        counts = [prod(shape) / one for shape in shapes]
        if {*counts} <= {1, 2, 3, 4}:
            for i, (shape, count) in enumerate(zip(shapes, counts, strict=True)):
                # All four, one after the other; else itself.
                slots = range(4) if count == shape[0] == 4 else [None]
                into += [Held(name, i, slot, int(count) // len(slots),
                              shape[len(slots) // 4 :], is_linear) for slot in slots]  # fmt: skip
        elif sum(counts) in (1, 2, 3) and len({*shapes}) == 1:
            shape = (len(shapes), *shapes[0])
            into.append(Held(name, None, None, int(sum(counts)), shape, is_linear))
        else:
            raise _other(name, tensors[0])
    return matrices, biases


def _other(name: str, tensor: Tensor) -> CannotJudge:
    d, h = PROBE
    return CannotJudge(
        f"With d_model {d} and {h} heads its parameter {name[:60]} is {tuple(tensor.shape)}. That "
        "is none of four matrices of d_model × d_model, and no bias of one."
    )


def _orders(held: Held, is_output: bool, d: int, h: int) -> list[str]:
    """Of its axes, as its shape allows."""
    sizes = {"r": held.count, "h": h, "e": d // h, "d": d}
    found = []
    for order in map("".join, permutations("rhed" if held.count > 1 else "hed")):
        if held.is_linear and held.at is not None and order[0 if is_output else -1] != "d":
            continue
        rest = [*order]
        for size in held.shape:
            taken = 1
            while taken < size and rest:
                taken *= sizes[rest.pop(0)]
            if taken != size:
                break
        else:
            found += [order] if not rest else []
    return sorted(found, key=lambda order: order.index("e") < order.index("h"))


def _layouts(module: nn.Module, d: int, h: int) -> list[Layout]:
    """Likeliest first. Raises CannotJudge."""
    matrices, biases = _held(module, d, h)
    count = sum(held.count for held in matrices)
    if count not in (3, 4):
        raise CannotJudge(f"Of matrices of d_model × d_model there should be four. It has {count}.")
    scored = []
    for roles in permutations(PROJECTIONS[:count]):
        some, rest = [], list(roles)
        for held in matrices:
            some.append(tuple(rest[: held.count]))
            del rest[: held.count]
        if any(len(each) > 1 and "output" in each for each in some):
            continue
        named = sum(_is_named(held.name, each[0]) for held, each in zip(matrices, some, strict=True)
                    if len(each) == 1)  # fmt: skip
        scored.append((named, some))
    scored.sort(key=lambda one: -one[0])
    found = []
    for named, some in scored:
        # Matrices of one shape have one order.
        kinds = {}
        for held, roles in zip(matrices, some, strict=True):
            key = held.shape, held.is_linear, held.count, roles == ("output",)
            kinds.setdefault(key, _orders(held, roles == ("output",), d, h))
        for chosen in product(*kinds.values()):
            orders = dict(zip(kinds, chosen, strict=True))
            read = tuple(
                (held, roles, orders[held.shape, held.is_linear, held.count, roles == ("output",)])
                for held, roles in zip(matrices, some, strict=True)
            )
            found.append(Layout(read, _of_biases(biases, read, module), named))
    if not found:
        raise _other(matrices[0].name, _named(module)[matrices[0].name][0])
    return sorted(found, key=lambda layout: (-layout.named, layout.is_interleaved))


def _is_named(name: str, role: str) -> bool:
    plain = re.sub(r"(\.\*)+$", "", re.sub(r"[._]weight$", "", name.lower()))
    return bool(re.search(ROLES[role] + "$", plain))


def _of_biases(biases: list[Held], read, module: nn.Module):
    """Of each: what it belongs to by its name, its place among the rest, or its name alone."""
    found: list[tuple[Held, Any]] = []
    left = []
    matrices = {(one[0].name, one[0].at, one[0].slot): one for one in read}
    for bias in biases:
        of = re.sub(r"bias$", "weight", bias.name), bias.at, bias.slot
        if of in matrices and of[0] != bias.name:
            found.append((bias, matrices.pop(of)))
        else:
            left.append(bias)
    rest = [one for one in matrices.values() if not one[0].is_linear]
    if [bias.count for bias in left] == [held.count for held, _, _ in rest]:
        found += zip(left, rest, strict=True)
        left = []
    for bias in left:
        fitting = [one for one in rest if one[1][0] in BIASES and len(one[1]) == bias.count == 1
                   and re.search(BIASES[one[1][0]], bias.name.lower())]  # fmt: skip
        if not fitting and len(left) == 1:
            fitting = [one for one in rest if one[1] == ("output",)]
        if len(fitting) != 1:
            raise _other(bias.name, _named(module)[bias.name][0])
        found.append((bias, fitting[0]))
    return tuple(
        (bias, roles, "d" if roles == ("output",) else order.replace("d", ""))
        for bias, (_, roles, order) in found
    )


# The verdict


def judge_multi_head(make: Callable, batch_first: bool = True, **how: Any) -> Verdict:
    """`make(d_model, n_heads)` is the module. The right layout, or else the likeliest."""
    try:
        modules = _Modules(make, batch_first)
        try:
            layouts = modules.layouts()
        except CannotJudge as error:
            # What does not run has another fault.
            verdict = judged(modules.part(None), make, numpy=False, **how)
            if verdict.name in (*NOT_RUNNING, "random", "shape", "type"):
                return verdict
            raise error from None
        layout, mask = modules.best(layouts)
        verdict = judged(modules.part(layout, mask), make, numpy=False, **how)
    except CannotJudge as error:
        return cannot_tell(MULTI, str(error))
    if not verdict.ok and not verdict.name and not layout.is_sure:
        return cannot_tell(MULTI, "Its parameters may be meant in more ways than were tried, and "
                           "under none of these it computes what ours does.")  # fmt: skip
    notes = []
    if verdict.ok and layout.is_interleaved:
        mistake = next(m for m in MULTI.mistakes if m.name == "heads interleaved")
        notes.append((mistake.name, mistake.sentence))
    if verdict.ok and layout.named < layouts[0].named:
        notes.append(("names swapped", "Your matrices have each other's names: what is called the "
                      "query's is another's."))  # fmt: skip
    if verdict.ok and mask:
        notes.append(("shape of masks", f"It takes masks of shape {mask}, as ours does not."))
    return replace(verdict, notes=(*verdict.notes, *notes))


class _Modules:
    """A student's modules of all sizes, made once each."""

    def __init__(self, make: Callable, batch_first: bool):
        self.make, self.batch_first = make, batch_first
        self.of = cache(self._of)
        self.parts: dict[Any, Subject] = {}

    def _of(self, d: int, h: int) -> nn.Module:
        module = _made(self.make, d, h)
        if any(nn.parameter.is_lazy(p) for p in module.parameters()):
            names, keywords = _call(module)
            text = torch.ones(2, 6, d)
            called(module, names, dict.fromkeys(TEXTS, text) | {"given_mask": None}, False,
                   keywords=keywords)  # fmt: skip
        return module.eval()

    def layouts(self) -> list[Layout]:
        """None where it cannot be made. Raises CannotJudge."""
        try:
            module = self.of(*PROBE)
            for case in MULTI.drawn:
                self.of(*_size(case))
        except CannotJudge:
            raise
        except Exception as error:
            raise CannotJudge("It cannot be made.") from error
        return _layouts(module, *PROBE)

    def outcome(self, case: Case, layout: Layout | None, seen: bool = False) -> Outcome:
        try:
            module = self.of(*_size(case))
        except CannotJudge:
            raise
        except Exception as error:  # the student's own
            line, text, file = where(error, file_of(self.make))
            return Outcome(error=error, line=line, text=text, file=file)
        if layout:
            layout.fill(module, case.inputs["w"], case.inputs["n_heads"])
        inputs = dict(case.inputs)
        turned = {}
        if not self.batch_first:
            for name in TEXTS:
                text = inputs[name]
                inputs[name] = turned.setdefault(id(text), text.transpose(0, 1))
        names, keywords = _call(module)
        outcome = called(module, names, inputs, False, seen=seen, keywords=keywords)
        if not self.batch_first and isinstance(outcome.value, Tensor) and outcome.value.dim() == 3:
            outcome.value = outcome.value.transpose(0, 1)
        return outcome

    def part(self, layout: Layout | None, mask: str = "") -> Subject:
        """As the student's module computes it."""
        return replace(
            self.ours(layout, mask),
            spoken=lambda _, case, seen=False: self.outcome(case, layout, seen),
        )

    def ours(self, layout: Layout | None, mask: str = "") -> Subject:
        """With our biases where it has some, and the texts that it takes."""
        has_bias = layout.has_bias if layout else frozenset(PROJECTIONS)
        key = has_bias, mask, bool(layout)
        if key not in self.parts:
            _, keywords = _call(self.of(*_size(MULTI.drawn[0]))) if layout else ((), {})
            texts = {*keywords.values()} & {*TEXTS} or {*TEXTS}
            cases = [*filter(None, (_case(c, has_bias, mask, texts) for c in MULTI.drawn))]
            mistakes = MULTI.mistakes if layout else ()
            self.parts[key] = replace(MULTI, cases=lambda: cases, mistakes=mistakes)
        return self.parts[key]

    def fits(self, layout: Layout, mask: str, is_masked: bool) -> bool:
        part = self.ours(layout, mask)
        return all(
            (outcome := self.outcome(case, layout)).error is None
            and same(outcome.value, right["output"])
            for case, right in zip(part.drawn, part.right(), strict=True)
            if not case.edge and (case.inputs["mask"] is not None) == is_masked
        )

    def best(self, layouts: Sequence[Layout]) -> tuple[Layout, str]:
        """A layout and a shape of masks under which it is right; else the likeliest."""
        fitting = [layout for layout in layouts if self.fits(layout, "", is_masked=False)]
        for layout, mask in product(fitting, MASKS):
            if self.fits(layout, mask, is_masked=True):
                return layout, mask
        if fitting:
            runs = (mask for mask in MASKS if self._runs(fitting[0], mask))
            return fitting[0], next(runs, "")
        first = layouts[0]
        likely = [r for r in layouts if r.named == first.named and not r.is_interleaved]
        return next((r for r in likely if self._is_known(r)), first), ""

    def _runs(self, layout: Layout, mask: str) -> bool:
        values = [(self.outcome(case, layout).value, case.inputs["in_query"])
                  for case in self.ours(layout, mask).drawn]  # fmt: skip
        return all(isinstance(x, Tensor) and x.shape == query.shape for x, query in values)

    def _is_known(self, layout: Layout) -> bool:
        """Whether a misconception alone gives its numbers."""
        part = self.ours(layout)
        counted = [i for i, case in enumerate(part.drawn) if not case.edge]
        values = [o.value for o in (self.outcome(part.drawn[i], layout) for i in counted)]
        return any(
            all(same(value, answers[i]) for value, i in zip(values, counted, strict=True))
            for mistake, answers in part.alone() if not mistake.note
        )  # fmt: skip


def _size(case: Case) -> tuple[int, int]:
    return case.inputs["in_query"].shape[-1], case.inputs["n_heads"]


def _inputs(inputs: Mapping[str, Any], mask: str) -> dict[str, Any]:
    given = inputs["mask"]
    return dict(inputs) | {"given_mask": given if given is None else MASKS[mask](given)}


def _case(case: Case, has_bias: frozenset[str], mask: str, texts: set[str]) -> Case | None:
    """None where it asks for what the module does not take."""
    inputs = dict(case.inputs)
    is_own = inputs["in_query"] is inputs["in_key"]
    if not is_own and len(texts) == 1:
        return None
    if "in_value" not in texts:
        inputs["in_value"] = inputs["in_key"]
    if inputs["mask"] is not None and mask in ("(query, key)", "(batch, key)"):
        if case.edge:
            return None
        n = inputs["mask"].shape[-1]
        inputs["mask"] = (
            torch.ones(1, 1, n, n, dtype=torch.bool).tril() if mask == "(query, key)"
            else inputs["mask"][:, :, -1:]
        )  # fmt: skip
    inputs["w"] = {
        role: (matrix, bias if role in has_bias else torch.zeros_like(bias))
        for role, (matrix, bias) in inputs["w"].items()
    }
    return replace(case, inputs=_inputs(inputs, mask))
