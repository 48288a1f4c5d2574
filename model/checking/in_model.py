"""A student's parts in a trained model: `load("en-fr").with_parts(attention=mine)`.

A variant is a swapped part, and so is a student's. Each stands where ours stood, under the same
name and with the same weights, so that hooks, changes and pictures find it. It is given copies: an
operation in place must not change what a hook has recorded. Decoding takes no shortcut past it
(see STUDENTS in decoding/cache.py, and fused.fits).
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.checking.calling import Outcome, file_of, said, wants_numpy, where
from headlight.model.checking.part import squeezed
from headlight.model.checking.parts import PARTS
from headlight.model.probing.capture import view
from headlight.model.probing.changes import CannotChange
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import CannotRead
from headlight.model.transformer import (
    EncoderLayer,
    FeedForward,
    MaskedSoftmax,
    MultiHeadAttention,
    PositionalEncoding,
    Scores,
)
from headlight.model.variants import PreNormEncoderLayer

Model = TypeVar("Model", bound=ProbedModel)
Shape = tuple[int, ...]
TOLERANCE = 1e-3  # of what values make of the weights, against the output itself


class PartFailed(CannotRead):
    """A student's part raised, or returned something that cannot stand in the model."""


class StudentPart:
    """A function or module of a student's, called safely."""

    def __init__(self, name: str, function: Callable[..., Any]):
        if not callable(function):
            raise TypeError(f"{name} must be a function or a module, not {str(function)[:80]!r}.")
        if isinstance(function, nn.Module):
            function.eval()
        self.name, self.function = name, function
        self.numpy = wants_numpy(function, PARTS[name].takes)

    def __call__(self, *inputs: Any, shape: Shape) -> Tensor:
        """What it returns for copies of the inputs, which must have this shape. Raises
        PartFailed."""
        like = next((x for x in inputs if isinstance(x, Tensor)), torch.empty(0))
        if self.numpy and torch.is_grad_enabled() and like.requires_grad:
            raise PartFailed(
                f"Your {self.name} is written in NumPy, which has no gradients. Write it in "
                "PyTorch for this."
            )
        try:
            value = self.function(*map(self._copied, inputs))
        except Exception as error:  # the student's own
            file = file_of(self.function)
            line, text, _ = where(error, file)
            outcome = Outcome(error=error, line=line, text=text)
            place = f" ({Path(file).name})" if Path(file).is_file() else ""  # else of a notebook
            raise PartFailed(
                f"Your {self.name}{place} failed in the model. {said(outcome)}"[:300]
            ) from error
        value = value[0] if isinstance(value, tuple) and value else value
        if isinstance(value, np.ndarray | np.generic):
            with suppress(TypeError):  # of objects
                value = torch.as_tensor(np.asarray(value))
        if not isinstance(value, Tensor):
            what = "nothing" if value is None else f"a value of type {type(value).__name__}"
            raise PartFailed(
                f"Your {self.name} returns {what}. It should return numbers of shape {shape}."
            )
        is_mask = self.name.endswith("_mask")
        if is_mask != (value.dtype == torch.bool):
            kinds = ("booleans", "numbers") if is_mask else ("numbers", "booleans")
            raise PartFailed(f"Your {self.name} returns {kinds[1]}. It should return {kinds[0]}.")
        if PARTS[self.name].loose:
            value = squeezed(value)
        if tuple(value.shape) != shape:
            raise PartFailed(
                f"Your {self.name} returns the shape {tuple(value.shape)}. It should be {shape}."
            )
        return value.to(like.device) if is_mask or not like.is_floating_point() else value.to(like)

    def _copied(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return x.detach().cpu().numpy().copy() if self.numpy else x.clone()


class StudentScores(Scores):
    """`scores(q, k)`"""

    part: StudentPart

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.part(q, k, shape=(*q.shape[:3], k.shape[2]))


class StudentSoftmax(MaskedSoftmax):
    """`softmax(scores, mask)`"""

    part: StudentPart

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.part(scores, mask, shape=tuple(scores.shape))


class StudentFeedForward(FeedForward):
    """`feed_forward(x, w1, b1, w2, b2)`"""

    part: StudentPart

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.linear1, self.linear2
        if _is_hooked(one) or _is_hooked(two):
            two(one(x).relu())  # for the hooks alone, which see our steps
        return self.part(x, one.weight, one.bias, two.weight, two.bias, shape=tuple(x.shape))


class StudentNorm(nn.LayerNorm):
    """`layer_norm(x, gain, bias)`"""

    part: StudentPart

    def forward(self, input: Tensor) -> Tensor:
        return self.part(input, self.weight, self.bias, shape=tuple(input.shape))


class StudentHeads(MultiHeadAttention):
    """`split_heads(x, n_heads)` and `merge_heads(heads)`, each where it is given."""

    splits: StudentPart | None = None
    merges: StudentPart | None = None

    def split(self, x: Tensor) -> Tensor:
        if self.splits is None:
            return super().split(x)
        shape = (len(x), self.n_heads, x.shape[1], x.shape[2] // self.n_heads)
        return self.splits(x, self.n_heads, shape=shape)

    def merge(self, heads: Tensor) -> Tensor:
        if self.merges is None:
            return super().merge(heads)
        batch, count, length, width = heads.shape
        return self.merges(heads, shape=(batch, length, count * width))


class StudentAttention(StudentHeads):
    """`attention(q, k, v, mask)`, whose output goes on. Where its weights are recorded or changed,
    they are asked for as well (see WeightsOfAttention), and mix the values."""

    part: StudentPart

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        q, (k, v) = self.split(self.query(query)), self.keys_values(key, value)
        if _is_hooked(self.softmax) or _is_hooked(self.scores):
            assert isinstance(self.softmax, WeightsOfAttention)
            # Not `self.scores`, whose hooks may change them: then the two differ.
            self.softmax.inputs = q, k, v, self.scores.forward(q, k)
            try:
                heads = self.softmax(self.scores(q, k), mask) @ v
            finally:
                self.softmax.inputs = None  # no tensor outlives its pass
        else:
            heads = self.part(q, k, v, mask, shape=(*q.shape[:3], v.shape[3]))
        return self.output(self.merge(heads))


class WeightsOfAttention(MaskedSoftmax):
    """In the place of the softmax while one function computes all of attention. Its weights are
    what it returns for values that are an identity; its own scores stay inside it."""

    part: StudentPart
    inputs: tuple[Tensor, Tensor, Tensor, Tensor] | None = None  # q, k, v and our scores

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.inputs is None:  # alone, as on the page Inside a head
            return self.weights(*_with_products(scores), mask)
        q, k, v, ours = self.inputs
        if scores is not ours and not torch.equal(scores.nan_to_num(), ours.nan_to_num()):
            raise CannotChange(
                "Your attention computes its own scores, so this change cannot reach them. Give "
                "scores and softmax as parts of their own."
            )
        weights = self.weights(q, k, mask)
        own = self.part(q, k, v, mask, shape=(*q.shape[:3], v.shape[3]))
        largest = float(own.detach().nan_to_num().abs().max()) if own.numel() else 0.0
        near = TOLERANCE * max(1.0, largest)
        if not torch.allclose(weights @ v, own, TOLERANCE, near, equal_nan=True):
            raise PartFailed(
                "Your attention's output is not its weights times the values, so there are no "
                "weights to show. The model still translates with it."
            )
        return weights

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """(batch, heads, query, key). The identity is given in pieces as wide as values are: a
        student may read d off them."""
        count, width = k.shape[2:]
        one = torch.eye(count, math.ceil(count / width) * width).to(k)
        pieces = (
            self.part(q, k, piece.expand(*k.shape[:2], -1, -1), mask, shape=tuple(q.shape))
            for piece in one.split(width, dim=1)
        )
        return torch.cat([*pieces], dim=-1)[..., :count]


def _with_products(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys that have these scores."""
    count = scores.shape[-1]
    one = torch.eye(count).to(scores).expand(*scores.shape[:2], -1, -1)
    return scores * math.sqrt(count), one


def _through_sublayers(layer: "StudentLayer | StudentPreNormLayer", x: Tensor, mask) -> Tensor:
    """One call of a student's layer. What it leaves out has no output to record."""
    names = {"self_attn": "attend", "norm1": "norm1", "feed_forward": "feed", "norm2": "norm2"}
    left = dict(names)

    def called(name: str) -> Callable[..., Tensor]:
        def sublayer(*inputs, **by_name):
            left.pop(name, None)
            return getattr(layer, name)(*inputs, **by_name)

        return sublayer

    output = layer.part(x, mask, *map(called, names), shape=tuple(x.shape))
    for name, title in left.items():
        if any(map(_is_hooked, getattr(layer, name).modules())):
            raise PartFailed(
                f"Your {layer.part.name} never calls {title}, so it has nothing to show. The model "
                "still translates with it."
            )
    return output


class StudentLayer(EncoderLayer):
    """`encoder_layer(x, mask, attend, norm1, feed, norm2)`"""

    part: StudentPart

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return _through_sublayers(self, x, mask)


class StudentPreNormLayer(PreNormEncoderLayer):
    """The same with its norms before."""

    part: StudentPart

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return _through_sublayers(self, x, mask)


# Part → what it stands for, and what stands there then.
REPLACEABLE: Mapping[str, tuple[type[nn.Module], type[nn.Module]]] = {
    "scores": (Scores, StudentScores),
    "softmax": (MaskedSoftmax, StudentSoftmax),
    "attention": (MultiHeadAttention, StudentAttention),
    "split_heads": (MultiHeadAttention, StudentHeads),
    "merge_heads": (MultiHeadAttention, StudentHeads),
    "layer_norm": (nn.LayerNorm, StudentNorm),
    "feed_forward": (FeedForward, StudentFeedForward),
    "encoder_layer": (EncoderLayer, StudentLayer),
    "pre_norm_layer": (PreNormEncoderLayer, StudentPreNormLayer),
    "positional_encoding": (PositionalEncoding, PositionalEncoding),
}
MASK_PARTS = ("causal_mask", "padding_mask")
OTHER_LAYER = {"encoder_layer": "pre_norm_layer", "pre_norm_layer": "encoder_layer"}


def with_student_parts(model: Model, parts: Mapping[str, Callable[..., Any]]) -> Model:
    """A view of a model with a student's parts in place of ours. Raises ValueError, TypeError and
    PartFailed."""
    model = view(model)
    for name in parts:
        if name not in (*REPLACEABLE, *MASK_PARTS):
            raise ValueError(
                f"No part {name[:40]!r} can be put into a model. There are "
                f"{', '.join((*REPLACEABLE, *MASK_PARTS))}."
            )
    if "attention" in parts and (both := {"scores", "softmax"} & {*parts}):
        raise ValueError(f"attention computes its own {min(both)}: give one of the two.")
    # In the order of REPLACEABLE: attention stands before what splits and merges its heads.
    for name in (name for name in REPLACEABLE if name in parts):
        _put(model, name, StudentPart(name, parts[name]))
    masks = {name: StudentPart(name, parts[name]) for name in MASK_PARTS if name in parts}
    model.mask_makers = {**model.mask_makers, **{n: _maker(part) for n, part in masks.items()}}
    return model


def _put(model: ProbedModel, name: str, part: StudentPart) -> None:
    ours, students = REPLACEABLE[name]
    fitting = (ours, StudentAttention, StudentHeads) if "heads" in name else (ours,)
    places = [place for place, module in model.named_modules() if type(module) in fitting]
    if not places:
        hint = ""
        if name in OTHER_LAYER and any(isinstance(m, EncoderLayer) for m in model.modules()):
            where_norms = "before" if name == "encoder_layer" else "after"
            hint = f": it norms {where_norms} each sublayer, so write {OTHER_LAYER[name]}"
        raise ValueError(f"This model has no {name} as the paper's{hint}.")
    for place in places:
        module = model.get_submodule(place)
        module = module if isinstance(module, students) else _as(students, module)
        if name == "positional_encoding":
            assert isinstance(module, PositionalEncoding)
            # One table, as ours: decoding reads it row by row.
            module.table = part(*module.table.shape, shape=tuple(module.table.shape))
        elif isinstance(module, StudentHeads) and name == "split_heads":
            module.splits = part
        elif isinstance(module, StudentHeads) and name == "merge_heads":
            module.merges = part
        elif isinstance(module, StudentAttention):
            if type(module.softmax) is not MaskedSoftmax or type(module.scores) is not Scores:
                raise ValueError("Some attention of this model is not the paper's.")
            module.part, module.softmax = part, _as(WeightsOfAttention, module.softmax)
            module.softmax.part = part
        else:
            vars(module)["part"] = part
        model.set_submodule(place, module)


def _as(kind: type[nn.Module], module: nn.Module) -> Any:
    """A module of another kind with everything that this one holds: weights, names, hooks."""
    other = object.__new__(kind)
    for name, value in vars(module).items():
        vars(other)[name] = value.copy() if isinstance(value, dict) else value
    return other


def _maker(part: StudentPart) -> Callable[..., Tensor]:
    """As the function of this name in masks.py."""

    def causal_mask(length: int, device=None) -> Tensor:
        return part(length, shape=(length, length)).to(device)

    def padding_mask(ids: Tensor, pad_id: int, bos_id: int | None = None) -> Tensor:
        visible = part(ids, pad_id, shape=(len(ids), 1, 1, ids.shape[1]))
        if bos_id == pad_id:  # see `padding` in masks.py
            visible[..., 0] = True
        return visible

    return causal_mask if part.name == "causal_mask" else padding_mask


def _is_hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)
