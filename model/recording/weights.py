"""Arrays of attention weights: from any library's tensors, named and checked. What cannot be shown
says so with layer, head and row, which count from 1 as on the screen."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
OF_TRANSFORMERS = {  # its name → our kind; "" where only the weights tell
    "attentions": "",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}

MOST_LAYERS = 999  # that can be shown
KIND_NAME = re.compile("[a-z][a-z0-9_ -]{0,39}")  # what kinds and texts may be called, in files too
CROSS = re.compile(r"cross|enc(?:oder)?_?dec|encoder_att|multihead_attn|src_?att", re.IGNORECASE)
NUMBER = re.compile(r"(?<![A-Za-z])\d+(?![A-Za-z])")
WRAPPER = re.compile(  # what torch.compile, DataParallel, FSDP and PEFT put into modules' names
    r"(?<![^.])(_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module|base_layer|"
    r"original_module|modules_to_save\.[^.]+)(\.|$)"
)


def kinds_by_name(names: Iterable[str]) -> dict[str, list[str]]:
    """Kind → the names of its layers, in their order: names that differ in numbers alone are of one
    kind. Encoder, decoder and cross are called so, others by the part of the name that tells
    them apart."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(NUMBER.sub("#", name), []).append(name)
    by_numbers = {
        pattern: sorted(of_kind, key=lambda name: [int(n) for n in NUMBER.findall(name)])
        for pattern, of_kind in groups.items()
    }
    called = {pattern: _kind_of(pattern) for pattern in by_numbers}
    kinds: dict[str, list[str]] = {}
    for pattern, of_kind in by_numbers.items():
        kind, others = called[pattern], [other for other in called if other != pattern]
        if others and (not kind or kind in (called[other] for other in others)):
            kind = _apart(pattern, others)
        kind = kind and name_of(kind)
        while kind in kinds:
            kind += "_"
        kinds[kind] = of_kind
    return kinds


def unwrapped(name: str) -> str:
    """The name of a module without what wraps it or what it is in."""
    return WRAPPER.sub("", name).rstrip(".")


def layers_by_name(names: Sequence[str]) -> list[int]:
    """The numbers of the layers of one kind, from 0: the model's own, where it is the one number in
    which their names differ, or the first of a single name; else counted."""
    numbers = [[int(n) for n in NUMBER.findall(name)] for name in names]
    columns = [list(column) for column in zip(*numbers, strict=False)]
    own = [column for column in columns if len({*column}) > 1] if len(names) > 1 else columns[:1]
    is_one = len(own) == 1 and all(a < b for a, b in pairwise(own[0]))
    return own[0] if is_one and own[0][-1] < MOST_LAYERS else [*range(len(names))]


def name_of(text: str) -> str:
    """A text as a kind is called: small letters, digits, _ and -."""
    name = re.sub("[^a-z0-9_-]+", "_", text.lower()).strip("_-")[:36]
    return name if KIND_NAME.fullmatch(name) else f"attention_{name}".rstrip("_")


def _kind_of(pattern: str) -> str:
    """encoder, decoder or cross, by the name of a module; "" where it does not say."""
    before, _, after = pattern.partition("#")
    if CROSS.search(after or pattern):
        return "cross"
    for stack in ("decoder", "encoder"):
        if stack in before.lower():
            return stack
    return ""


def _apart(pattern: str, others: Sequence[str]) -> str:
    """The part of a name that no other has, as a word."""
    known = {part for other in others for part in re.split(r"\W+", other)}
    own = [part for part in re.split(r"\W+", pattern) if part and part not in known]
    return (own or [re.sub(r"\W+", "_", pattern).strip("_")])[0]


def kind_by_weights(array: np.ndarray) -> str:
    """What weights (layers, heads, query, key) without a name are: a decoder's if no token attends
    to a later one."""
    rows, keys = array.shape[-2:]
    later = np.triu(np.ones((rows, keys), bool), 1 + keys - rows)
    return "encoder" if keys < rows or rows == 1 or array[..., later].any() else "decoder"


SUM_ERROR = {np.dtype(np.float16): 2e-2, np.dtype(np.float64): 1e-3, np.dtype(np.float32): 1e-3}

NOT_TOKENS = (
    "{}: the columns of its weights are not the tokens of the text, but places in a window or a "
    "block, so they cannot be drawn."
)


class CannotRecord(ValueError):
    """Weights that cannot be shown, in a sentence."""


def layers_of(name: str, layers, row: int) -> list[np.ndarray]:
    if isinstance(layers, Mapping | str) or not isinstance(layers, Sequence):
        layers = list(array_of(name, layers))
    if not len(layers):
        raise CannotRecord(f"{name} holds no layer.")
    return [layer_of(f"{name}, layer {i + 1}", layer, row) for i, layer in enumerate(layers)]


def layer_of(where: str, layer, row: int) -> np.ndarray:
    """(heads, query, key)."""
    if layer is None:
        raise CannotRecord(
            f"{where}: there are no weights. Implementations other than eager return none; load "
            'the model with attn_implementation="eager", or give the model itself.'
        )
    array = array_of(where, layer)
    if array.ndim == 4:
        if not 0 <= row < len(array):
            raise CannotRecord(f"{where}: there is no row {row + 1} in a batch of {len(array)}.")
        array = array[row]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3:
        raise CannotRecord(
            f"{where} has the shape {tuple(array.shape)}; it should be (heads, query, key), or "
            "with a batch before them."
        )
    return array


def array_of(where: str, value) -> np.ndarray:
    """As an array of floats on the CPU."""
    try:
        if isinstance(value, torch.Tensor):
            if value.device.type == "meta":
                raise CannotRecord(f"{where} is on the device meta, where tensors hold no numbers.")
            value = value.detach()
            value = value.to_dense() if value.layout != torch.strided else value
            if value.is_quantized:
                value = value.dequantize()
            if value.dtype == torch.bfloat16:
                value = value.half() if value.abs().max() <= 1 else value.float()
            value = value.cpu().numpy()
        array = np.asarray(value)
    except CannotRecord:
        raise
    except Exception as error:  # whatever a library raises on what is no array
        why = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
        raise CannotRecord(f"{where} is no array of numbers: {why}.") from None
    if array.dtype.kind not in "fiu":
        raise CannotRecord(f"{where} holds {array.dtype}, not numbers with a fraction.")
    return array if array.dtype in SUM_ERROR else array.astype(np.float32)


def stacked(kind: str, layers: Sequence[np.ndarray], numbers: Sequence[int]) -> np.ndarray:
    """The layers with these numbers as one array."""
    name = kind or "attention"
    for number, layer in zip(numbers, layers, strict=True):
        if layer.shape != layers[0].shape:
            raise CannotRecord(
                f"{name}: layer {number + 1} has {_size(layer)}, but layer {numbers[0] + 1} has "
                f"{_size(layers[0])}."
            )
    if not min(layers[0].shape):
        raise CannotRecord(f"{name} is empty: it has {_size(layers[0])}.")
    return np.stack(layers)


def _size(layer: np.ndarray) -> str:
    heads, queries, keys = layer.shape
    return f"{heads} heads of {queries} × {keys} weights"


def check(kind: str, array: np.ndarray, partial: bool, numbers: Sequence[int]) -> list[str]:
    """Raises CannotRecord for what is no weights of layers with these numbers; notes for what is
    unusual."""
    name = kind or "attention"

    def where(wrong: np.ndarray) -> str:
        layer, head, row = np.argwhere(wrong)[0][:3]
        return f"{name}, layer {numbers[layer] + 1}, head {head + 1}, row {row + 1}"

    if (wrong := ~np.isfinite(array)).any():
        value = array[tuple(np.argwhere(wrong)[0])]
        raise CannotRecord(f"{where(wrong)}: a weight is {value}.")
    if (wrong := array < 0).any():
        raise CannotRecord(
            f"{where(wrong)}: a weight is {array[wrong][0]:.3g}. Weights are not negative; are "
            "these the scores before the softmax?"
        )
    if _are_offsets(array):
        raise CannotRecord(NOT_TOKENS.format(name))
    sums, error = array.sum(axis=-1, dtype=np.float64), SUM_ERROR[array.dtype]
    if (wrong := sums > 1 + error).any():
        raise CannotRecord(
            f"{where(wrong)}: the weights add up to {sums[wrong][0]:.3f}, not to 1. Was the model "
            "in training mode? Dropout changes weights; call model.eval()."
        )
    wrong = (sums < 1 - error) & (sums > 0)
    if wrong.any() and not partial:
        raise CannotRecord(
            f"{where(wrong)}: the weights add up to {sums[wrong][0]:.3f}, not to 1. If a sink or a "
            "window takes the rest, say partial=True."
        )
    if wrong.any():
        return [
            f"Rows of {name} add up to less than 100%, down to {sums[sums > 0].min():.0%}: what is "
            "missing went elsewhere, as to a sink."
        ]
    return []


def _are_offsets(array: np.ndarray) -> bool:
    """Whether columns stand for the tokens around that of the row, as Longformer's do: weights are
    0 just where these would lie before or behind the text."""
    rows, keys = array.shape[-2:]
    token = np.add.outer(np.arange(rows), np.arange(keys)) - keys // 2
    inside = (token >= 0) & (token < rows)
    return (
        1 < keys <= rows
        and keys % 2 == 1
        and np.array_equal((array > 0).all((0, 1)), inside)
        and not array[..., ~inside].any()
    )
