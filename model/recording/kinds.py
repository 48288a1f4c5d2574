"""What each kind of attention is called: by the names of modules, or by its weights."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

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
CROSS = re.compile(r"cross|enc(?:oder)?_?dec|encoder_att|multihead_attn", re.IGNORECASE)
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


def is_in(name: str, known: Iterable[str]) -> bool:
    """Whether a module is one of these, or a part of one of them."""
    parts = name.split(".")
    return any(".".join(parts[:i]) in known for i in range(1, len(parts) + 1))


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
