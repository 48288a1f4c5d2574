"""Sees the functions of PyTorch that a model calls while it runs, and can mend one of them for a
pass. So a fault gets its name only if the model keeps the law once that one thing is right."""

import linecache
import math
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

OURS, TORCH = (str(Path(file).parent) for file in (__file__, torch.__file__))
MULTIPLY = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"}
DIVIDE = {"div", "__truediv__", "div_", "__itruediv__", "true_divide", "divide"}
ADD = {"add", "__add__", "__radd__", "add_", "__iadd__"}
SAME = {  # the result holds the numbers that were read
    "view", "reshape", "transpose", "permute", "contiguous", "__getitem__", "unflatten", "flatten",
    "float", "to", "double", "type_as", "dropout", "squeeze", "unsqueeze", "swapaxes", "expand",
    "clone", "__get__", "mT", "T", "index_select", "masked_fill", "masked_fill_", "where",
}  # fmt: skip
PRODUCT = {"matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm"}
LINEAR = PRODUCT | {"linear", "addmm"}  # where one of the two is a weight
RESIDUAL = PRODUCT | {"linear", "attention", "sum"}  # what a sublayer adds
COMPARE = {"eq", "__eq__", "ne", "__ne__", "gt", "__gt__"}
TRIANGLE = {"tril", "triu", "tril_", "triu_"}
FILL = {"masked_fill", "masked_fill_"}
NORM = {"var", "std", "var_mean", "rsqrt"}
RANDOM = {"rand", "randn", "rand_like", "randn_like", "bernoulli", "multinomial", "normal"}
ASKED = "has_torch_function"  # where True, multi_head_attention_forward is seen as one step
HIDDEN = -50.0  # lower numbers are taken for masks
MOST_BEFORE = 8  # learned vectors before a text
BELOW = 60  # exp(-60) of a weight is none
# What can be mended for a pass.
DROPOUT, NO_CAUSAL, OFF, NO_CROSS, NO_FEED, ITSELF, PAD_CROSS, PAD_ENCODER, SPLIT, UNMASK = (
    "dropout", "causal", "off", "no cross", "no feed", "itself", "pad cross", "pad encoder",
    "split", "unmask",
)  # fmt: skip
ENCODER, DECODER, CROSS, SELF = "encoder", "decoder", "cross", "self"


@dataclass
class Attended:
    """One softmax over scores.

    kind      encoder, decoder or cross, by its shape; self where there is one text
    weights   (query, key): the largest of all heads and texts
    scores    (texts and heads, query, key), of which it is the softmax
    axis      counted from the end; -1 is right
    factor    of the scores against q·k; None if unknown
    d         width of a query; 0 if unknown
    uses      what was done with the weights
    added     a mask of zeros and ones was added to the scores
    times     they were multiplied by such a mask
    weak      the score of what is hidden can be reached by others
    mask_at   the line that hid something
    """

    kind: str
    weights: Tensor
    scores: Tensor
    axis: int
    where: str
    module: str
    factor: float | None
    d: int
    added: bool
    times: bool
    weak: bool
    mask_at: str
    uses: set[str] = field(default_factory=set)


@dataclass
class Observed:
    """What one pass did.

    dropped, random    lines with dropout that was on, and with other chance
    foreign            weights that are no parameters, with their lines
    over_heads         lines in which heads attend to each other
    bare_sum           the line of an output layer that reads a bare sum
    straight           that of a linear layer that reads a wider one, with nothing between
    compared           numbers that ids are compared with
    is_triangular      a triangle was made
    twice              a cross-entropy was given probabilities
    matrices           where in memory the weights of linear layers lie
    tokens_to_positions, positions    ratios of their sizes, and what was added to tokens
    """

    attended: list[Attended] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)
    foreign: list[tuple[Tensor, str]] = field(default_factory=list)
    over_heads: list[str] = field(default_factory=list)
    bare_sum: str = ""
    straight: str = ""
    compared: list[int] = field(default_factory=list)
    is_normed: bool = False
    is_triangular: bool = False
    twice: bool = False
    matrices: set[int] = field(default_factory=set)
    tokens_to_positions: list[float] = field(default_factory=list)
    positions: list[Tensor] = field(default_factory=list)

    def of_kind(self, *kinds: str) -> list[Attended]:
        """The softmaxes of these kinds."""
        return [each for each in self.attended if each.kind in kinds]


@dataclass
class Known:
    """What is known of a tensor: how it was made; its factor and, of scores, the width of q; what
    its mask was; its softmax, of weights; what a linear layer read that nothing came after."""

    made: str = ""
    factor: float | None = None
    width: int = 0
    added: bool = False
    times: bool = False
    weak: bool = False
    mask_at: str = ""
    weights: Attended | None = None
    narrow: int = 0
    inner: int = 0


NOTHING = Known()


def line() -> str:
    """The line that runs, outside of PyTorch and of this folder."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((TORCH, OURS)):
            text = linecache.getline(file, frame.f_lineno).strip()
            return f"{Path(file).name}, line {frame.f_lineno}: {text}"
        frame = frame.f_back
    return ""


class Watching(TorchFunctionMode):
    """`lengths`: of source and target, twice that of a single text; `mends`: what is mended;
    `pads`: how many tokens at the source's end are padding; `output`: width of the logits."""

    def __init__(
        self, model: nn.Module, lengths: tuple[int, int], mends: Set[str] = frozenset(),
        pads: int = 0, output: int = 0,
    ):  # fmt: skip
        super().__init__()
        self.seen, self.mends, self.pads, self.output = Observed(), mends, pads, output
        (src, tgt), self.lengths = lengths, lengths
        self.kinds = {(src, src): ENCODER, (tgt, tgt): DECODER, (tgt, src): CROSS}
        if src == tgt:  # and learned vectors may stand before the text
            self.kinds = {(n, n): SELF for n in range(src, src + MOST_BEFORE)}
        own = *model.parameters(), *model.buffers()
        self.own, self.places = {id(each) for each in own}, {place(each) for each in own}
        self.known: dict[int, Known] = {}
        self.alive: list[Tensor] = []  # so that no id is used twice
        self.stack: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self._attention(*args, **kwargs)
        if name in ("softmax", "_safe_softmax") and isinstance(args[0], Tensor):
            return self._softmax(func, args, kwargs)
        if name == "dropout" and isinstance(args[0], Tensor) and _drops(*args[1:], **kwargs):
            self.seen.dropped.append(line())
            if DROPOUT in self.mends:
                return self._note(name, args[0].clone(), args)
        self._watch(name, args)
        if UNMASK in self.mends and (kept := self._unmasked(name, args, kwargs)) is not None:
            return kept
        if SPLIT in self.mends and name in ("view", "reshape"):
            kept = self._split(*args)
            return self._note(name, func(*args, **kwargs), args) if kept is None else kept
        return self._note(name, func(*args, **kwargs), args, _number(kwargs.get("alpha")))

    def _watch(self, name: str, args: Any) -> None:
        """Keeps what needs no result."""
        if name in RANDOM:
            self.seen.random.append(line())
        self.seen.is_triangular |= name in TRIANGLE
        for each in args:
            is_weight = isinstance(each, Tensor) and each.requires_grad and each.is_leaf
            if is_weight and id(each) not in self.own:
                self.seen.foreign.append((each, line()))
        if name in COMPARE and isinstance(ids := args[0], Tensor) and ids.dtype == torch.long:
            other = args[1]
            if ids.ndim == 2 and (not isinstance(other, Tensor) or other.numel() == 1):
                self.seen.compared.append(int(other))
        if name in ("cross_entropy", "nll_loss") and float(args[0].detach().min()) >= 0:
            sums = args[0].detach().sum(1)
            self.seen.twice |= bool((sums - 1).abs().max() < 1e-4)

    def of(self, x: Any) -> Known:
        """What is known of a tensor."""
        return self.known.get(id(x), NOTHING)

    def _keep(self, x: Tensor, known: Known) -> Tensor:
        self.alive.append(x)
        self.known[id(x)] = known
        return x

    def _note(self, name: str, out: Any, args: Any, alpha: float | None = None) -> Any:
        """Keeps what is known of a result."""
        if not isinstance(out, Tensor) or not out.is_floating_point():
            return out
        lists = (each if isinstance(each, list | tuple) else (each,) for each in args)
        tensors = [each for some in lists for each in some if isinstance(each, Tensor)]
        width_at = -1
        if name == "conv1d" and tensors[1].shape[-1] == 1:  # linear, of (batch, width, row)
            name, width_at = "linear", 1
        two = tensors[:2] if name == "linear" else tensors[-2:]
        if name in LINEAR and len(two) == 2 and place(two[1]) in self.places:
            name = "linear" if len(tensors) < 3 or name != "einsum" else name
        by_size = lambda x: (self.of(x).width > 0, self.of(x).factor is not None)  # noqa: E731
        main = max(tensors, key=by_size, default=None)
        before, new = self.of(main), Known(self._origin(name, tensors, out))
        if main is not None and main.shape == out.shape:
            new.inner = before.inner
        if name in MULTIPLY | DIVIDE and main is not None:
            number = _number(next((each for each in args if each is not main), None))
            if number and (name in MULTIPLY or args[0] is main):
                by = number if name in MULTIPLY else 1 / number
                factor = (before.factor or 1.0) * by
                new = replace(before, made=new.made, factor=factor, weights=None)
            elif before.weights:
                before.weights.uses.add("multiplied")
            elif before.width and len(tensors) == 2:
                (mask,) = (each for each in tensors if each is not main)
                new = replace(before, made=new.made, times=_is_mask(mask), mask_at=line())
        elif name in SAME:
            new = replace(before, made=new.made)
            fill = _filled(name, args)
            if before.weights and name in FILL:
                before.weights.uses.add("multiplied")
            elif new.width and name in FILL | {"where"}:
                new.mask_at = line()
                new.times |= fill == 0
                new.weak |= fill is not None and fill > -1e6 and _reach(main, fill)
        elif name == "linear":
            read, made = (each.shape[width_at] for each in (two[0], out))
            known = self.of(two[0])
            self._linear(known, two[1], read, made)
            new.narrow, new.inner = read, read if read < made else 0
            if NO_FEED in self.mends and known.inner == made:
                out = torch.zeros_like(out)
        elif name in PRODUCT and len(tensors) >= 2:
            one, other = tensors[-2:]
            for weights in filter(None, (self.of(each).weights for each in tensors)):
                weights.uses.add("mixes values")
            factor = (self.of(one).factor or 1.0) * (self.of(other).factor or 1.0)
            factor *= alpha or 1.0
            new = Known(new.made, factor, one.shape[-1])
            if name == "baddbmm":
                _note_mask(tensors[0], new)
        elif name in ADD and before.narrow and min(each.ndim for each in tensors) == 1:
            new = replace(before, made=new.made)
        elif name in ADD and before.width:
            new = replace(before, made=new.made, mask_at=line(), weights=None)
            for mask in (each for each in tensors if each is not main):
                _note_mask(mask, new)
        return self._keep(out, new)

    def _origin(self, name: str, tensors: Sequence[Tensor], out: Tensor) -> str:
        """In a word, how a tensor came about."""
        made = [self.of(each).made for each in tensors]
        if "norm" in name or name in NORM:
            self.seen.is_normed = True
        if name in SAME or (name in MULTIPLY | DIVIDE and made == ["tokens"]):
            return made[0] if made else ""
        if name == "embedding":
            return "tokens"
        if name in ADD and len(tensors) == 2:
            if "tokens" not in made or out.ndim != 3:
                whole = all(each.ndim >= 3 and each.shape == out.shape for each in tensors)
                return "sum" if whole else name
            token, other = tensors[made.index("tokens")], tensors[1 - made.index("tokens")]
            sizes = [
                float(each.detach().double().square().mean().sqrt()) for each in (token, other)
            ]
            made = self.of(other).made
            if other.ndim >= 2 and sizes[1] > 0 and made not in RESIDUAL and "norm" not in made:
                self.seen.tokens_to_positions.append(sizes[0] / sizes[1])
                self.seen.positions.append(other.detach())
            return "read"
        return name

    def _linear(self, known: Known, weight: Tensor, read: int, made: int) -> None:
        """One that reads another, wider than both ends, is one with it. `read`, `made`: widths."""
        self.seen.matrices.add(place(weight))
        if self.output == made and known.made == "sum":
            self.seen.bare_sum = line()
        if read > max(known.narrow or read, made):
            self.seen.straight = self.seen.straight or line()

    def _attention(
        self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        """PyTorch's function, step by step."""
        if enable_gqa:
            k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
        by = q.shape[-1] ** -0.5 if scale is None else scale
        scores = q @ k.transpose(-2, -1) * by
        factor = by * (self.of(q).factor or 1.0) * (self.of(k).factor or 1.0)
        known = Known("", factor, q.shape[-1])
        if is_causal and UNMASK not in self.mends:
            scores = scores.masked_fill(_later(scores), -math.inf)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            if UNMASK not in self.mends:
                scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            _note_mask(attn_mask, known)
            lacks = UNMASK in self.mends  # and what else it adds may say positions
            scores = scores + (attn_mask.masked_fill(attn_mask < HIDDEN, 0) if lacks else attn_mask)
        self._keep(scores, known)
        weights = self._softmax(torch.softmax, (scores, -1), {}).nan_to_num()
        if dropout_p > 0:
            self.seen.dropped.append(line())
            if DROPOUT not in self.mends:
                weights = F.dropout(weights, dropout_p, True)
        return self._note("attention", weights @ v, (q, k, v))

    def _softmax(self, func: Callable, args, kwargs) -> Tensor:
        scores, known = args[0], self.of(args[0])
        kind = self.kinds.get((*scores.shape[-2:],)) if scores.ndim >= 3 else None
        n, *square = scores.shape[-3:] if scores.ndim == 4 else (0, 0, 1)
        if not kind or (n in self.lengths and square[1] not in self.lengths):
            if n in self.lengths and square[0] == square[1]:
                self.seen.over_heads.append(line())
            return self._note("softmax", func(*args, **kwargs), args)
        axis = _axis(scores, args, kwargs)
        out = func(self._masked(scores, kind), *args[1:], **kwargs)
        if OFF in self.mends or (NO_CROSS in self.mends and kind == CROSS):
            out = torch.zeros_like(out)
        if ITSELF in self.mends and kind != CROSS:
            out = torch.eye(out.shape[-1], dtype=out.dtype).expand_as(out)
        flat = out.detach().reshape(-1, *out.shape[-2:])
        factor = known.factor if known.width else None
        module = self.stack[-1] if self.stack else ""
        raw = scores.detach().reshape(flat.shape)
        event = Attended(kind, flat.amax(0), raw, axis, line(), module, factor, known.width,
                         known.added, known.times, known.weak, known.mask_at)  # fmt: skip
        self.seen.attended.append(event)
        self.alive.append(scores)
        return self._keep(out, Known("softmax", weights=event))

    def _masked(self, scores: Tensor, kind: str) -> Tensor:
        if NO_CAUSAL in self.mends and kind in (DECODER, SELF):
            scores = scores.masked_fill(_later(scores), -math.inf)
        mend = PAD_CROSS if kind == CROSS else PAD_ENCODER if kind in (ENCODER, SELF) else ""
        if self.pads and mend in self.mends:
            is_pad = torch.arange(scores.shape[-1]) >= scores.shape[-1] - self.pads
            scores = scores.masked_fill(is_pad, -math.inf)
        return scores

    def _unmasked(self, name: str, args, kwargs) -> Tensor | None:
        """The result without what would hide some scores; None for anything else."""
        if name in FILL:
            value = _number(args[2] if len(args) > 2 else kwargs.get("value"))
            return args[0] if value is not None and value < HIDDEN else None
        if name == "where" and len(args) == 3:
            for filled, kept in ((args[2], args[1]), (args[1], args[2])):
                number = _number(filled)
                if number is not None and number < HIDDEN:
                    if isinstance(kept, Tensor) and kept.ndim >= 3:
                        return kept
                    return torch.zeros(args[0].shape, dtype=torch.get_default_dtype())
        if name in ADD and len(args) == 2 and all(isinstance(each, Tensor) for each in args):
            for kept, mask in (args, args[::-1]):
                is_mask = mask.is_floating_point() and mask.numel() > 1 and self.of(kept).width
                if is_mask and mask.amin() < HIDDEN:
                    rest = mask.masked_fill(mask < HIDDEN, 0)
                    return self._note(name, kept + rest, (kept, rest))
        if name == "baddbmm" and args[0].amin() < HIDDEN:
            return self._note("bmm", torch.bmm(*args[1:3]), args[1:3])
        return None

    def _split(self, x: Tensor, *shape) -> Tensor | None:
        """Heads split or joined with the transpose that a bare `view` lacks; None for anything
        else."""
        shape = (*shape[0],) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if not all(isinstance(n, int) for n in shape) or (x.ndim, len(shape)) not in (
            (3, 4),
            (4, 3),
        ):
            return None
        full = torch.empty(x.shape, device="meta").reshape(shape).shape
        length = x.shape[1] if x.ndim == 3 else x.shape[2]
        if (length, length) not in self.kinds or full[0] != x.shape[0]:
            return None
        if x.ndim == 3 and full[2] == length != full[1]:
            return x.reshape(full[0], length, full[1], full[3]).transpose(1, 2)
        if x.ndim == 4 and full[1] == length != x.shape[1]:
            return x.transpose(1, 2).reshape(full)
        return None


def place(x: Tensor) -> int:
    """The address of its memory; a view has that of the tensor it shows."""
    return x.untyped_storage().data_ptr() if x.layout == torch.strided else 0


def _drops(
    p: float = 0.5, training: bool = True, inplace: bool = False, train: bool = True
) -> bool:
    return training and train and p > 0


def _later(scores: Tensor) -> Tensor:
    return torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)


def _note_mask(mask: Tensor, known: Known) -> None:
    """What is added to scores: zeros and ones, or numbers that other scores reach."""
    if mask.numel() < 2 or mask.dtype == torch.bool:
        return
    least = float(mask.min())
    known.added |= _is_mask(mask)
    known.weak |= -BELOW < least < 0 and bool(((mask == 0) | (mask == least)).all())


def _is_mask(mask: Tensor) -> bool:
    """Of zeros and ones."""
    zero, one = mask == 0, mask == 1
    return bool(zero.any() and one.any() and (zero | one).all())


def _reach(scores: Any, fill: float) -> bool:
    """Whether other scores may be as low as what is hidden."""
    return float(scores.abs().max()) > -fill - BELOW


def _filled(name: str, args: Any) -> float | None:
    """The number that a mask puts in place of scores."""
    some = args[1:3] if name == "where" else args[2:3] if name in FILL else ()
    return next((number for each in some if (number := _number(each)) is not None), None)


def _number(x: Any) -> float | None:
    if isinstance(x, int | float) and not isinstance(x, bool):
        return float(x)
    return float(x) if isinstance(x, Tensor) and x.numel() == 1 and x.is_floating_point() else None


class Keeping(Watching):
    """Keeps the weights of every attention, (batch, heads, query, key), with its module's name."""

    def __init__(self, model: nn.Module):
        super().__init__(model, (0, 0))
        self.kept: list[tuple[str, Tensor]] = []

    def _softmax(self, func: Callable, args, kwargs) -> Tensor:
        out, scores = func(*args, **kwargs), args[0]
        if scores.ndim == 4 and _axis(scores, args, kwargs) == -1:
            self.kept.append((self.stack[-1] if self.stack else "", out.detach()))
        return out


def _axis(scores: Tensor, args, kwargs) -> int:
    """Of a softmax, counted from the end."""
    given = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else None)
    if given is None:  # of which PyTorch warns: it takes an axis by their number
        given = 0 if scores.ndim == 3 else 1
    return given if given < 0 else given - scores.ndim


def watching(model: nn.Module, lengths: tuple[int, int], **how: Any):
    """A pass that is watched, see `stepwise`. `how`: see Watching."""
    return stepwise(model, Watching(model, lengths, **how))


Kind = TypeVar("Kind", bound=Watching)


@contextmanager
def stepwise(model: nn.Module, watch: Kind) -> Iterator[Kind]:
    """A pass in which every attention of PyTorch is computed step by step, so that it is seen. No
    other thread may run a model meanwhile."""

    def leave(*_: Any) -> None:  # a hook's value would replace the output
        if watch.stack:
            watch.stack.pop()

    hooks = []
    for name, module in model.named_modules():
        enter = lambda *_, name=name: watch.stack.append(name)  # noqa: E731
        hooks.append(module.register_forward_pre_hook(enter))
        hooks.append(module.register_forward_hook(leave, always_call=True))
    before, fast = getattr(F, ASKED), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    setattr(F, ASKED, lambda *_: False)
    try:
        with watch:
            yield watch
    finally:
        setattr(F, ASKED, before)
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()
