"""A recording: attention weights without the model that they come from, as a trace.

Weights come in many forms: as transformers returns them, from `generate` too, in one array, or by
name. All are brought into one: kind of attention → (layers, heads, query, key), with the tokens of
each text. What cannot be shown as it is says so with layer, head and row, which count from 1 as on
the screen.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from headlight.model.files import replace_file
from headlight.model.masks import Masks
from headlight.model.probing.run import Run
from headlight.model.probing.trace import NO_ID, Trace
from headlight.model.sites import Side, Site
from headlight.model.tokenizer import OTHER_SPECIAL, Encoding, named

TEXT, SOURCE, TARGET = "text", "source", "target"  # titles of sides
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
PATTERN = "hook_pattern"  # what TransformerLens calls weights
CROSS = re.compile(r"cross|enc(?:oder)?_?dec|encoder_att|multihead_attn", re.IGNORECASE)
NUMBER = re.compile(r"(?<![A-Za-z])\d+(?![A-Za-z])")
SUM_ERROR = {np.dtype(np.float16): 2e-2, np.dtype(np.float64): 1e-3, np.dtype(np.float32): 1e-3}
LARGEST_FILE, LONGEST_HEADER = 2**31, 2**24  # bytes
MOST_TEXTS = 1_000  # of a file
KEY, FORMAT = "headlight", "recording 1"  # in a file's metadata
BEGINS = json.dumps({"format": FORMAT})[:-1]  # what stands under the key
Words = Sequence[str] | Sequence[int] | Encoding | None


class CannotRecord(ValueError):
    """Weights that cannot be shown, in a sentence."""


@dataclass(frozen=True, repr=False)
class Recording(Trace):
    """A trace of which only the weights are known: all other numbers are empty. `origin`: where
    they come from, in words. `notes`: what is unusual about them, a sentence each."""

    origin: str = field(default="", kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        write(path, [self])


def recording(
    attention: Mapping[str, np.ndarray],
    texts: Mapping[str, Encoding],
    read: Mapping[str, tuple[str, str]],
    *,
    titles: Mapping[str, str] = {},
    names: Mapping[str, Sequence[str]] = {},
    key_heads: Mapping[str, Sequence[int]] = {},
    **known,
) -> Recording:
    """A recording of checked weights, kind → (layers, heads, query, key), and of texts by side.
    `read`: kind → the sides of its queries and keys; `titles`: of sides; `names`: kind → names of
    the modules; `known`: further fields."""
    across = {query for query, key in read.values() if query != key}
    stacks = {query: kind for kind, (query, key) in read.items() if query == key}
    sides = {
        name: Side(
            name, titles.get(name, name), stacks.get(name, name), "", (), "", writes=name in across
        )
        for name in texts
    }
    sites = tuple(
        Site(
            kind, layer, names[kind][layer] if kind in names else f"{kind}.{layer}", *read[kind],
            TITLES.get(kind, f"{kind} attention"), (), weights.shape[1],
            key_heads[kind][layer] if kind in key_heads else weights.shape[1],
        )
        for kind, weights in attention.items()
        for layer in range(len(weights))
    )  # fmt: skip
    for weights in attention.values():
        weights.flags.writeable = False
    parts = "table token final scores query key value output feed_forward stream"
    nothing = {part: {} for part in parts.split()}
    run = Run(tuple(texts.values()), Masks())
    return Recording(
        run, sides, sites, dict(texts), (), "…", attention=dict(attention),
        logits=np.zeros((0, 0), np.float32), **nothing, **known,
    )  # fmt: skip


def read(
    weights, tokens: Words = None, target: Words = None, *, row: int = 0, kind: str = "",
    origin: str = "", partial: bool = False,
) -> Recording:  # fmt: skip
    """A recording of weights in any of the forms that this file's beginning names. `tokens`: of the
    text, or of the source; `target`: of what a decoder reads; numbers stand for tokens that are not
    given. `row`: of a batch, from 0. `kind`: what to call the weights of one array. `partial`: rows
    may add up to less than 1, as where a sink takes the rest. Raises CannotRecord."""
    layers_of, notes = _by_kind(weights, row, kind)
    attention = {kind: _stacked(kind, layers) for kind, layers in layers_of.items()}
    if not attention:
        raise CannotRecord("There are no weights in it.")
    for kind, array in attention.items():
        notes += _check(kind, array, partial)
    attention = {kind: array.astype(np.float32) for kind, array in attention.items()}
    attention = {_renamed(kind, array): array for kind, array in attention.items()}
    texts, titles, read_by = _texts(attention, tokens, target)
    return recording(attention, texts, read_by, titles=titles, notes=tuple(notes), origin=origin)


# Forms


def _by_kind(weights, row: int, kind: str) -> tuple[dict[str, list[np.ndarray]], list[str]]:
    """Kind → for each layer (heads, query, key), and notes. A kind that is only known by the
    weights is called ""."""
    if isinstance(weights, Mapping) or hasattr(weights, "cache_dict"):
        weights = dict(getattr(weights, "cache_dict", weights))
        if "sequences" in weights:
            return _generated(weights, row)
        if theirs := {k: v for k, v in weights.items() if k in OF_TRANSFORMERS and _is_there(v)}:
            found = {OF_TRANSFORMERS[k]: _layers(k, v, row) for k, v in theirs.items()}
            return found, _batch_note(theirs.values(), row)
        if any(name in OF_TRANSFORMERS for name in weights):
            raise CannotRecord(
                "It has no attention weights. Ask for them with output_attentions=True, of a model "
                'loaded with attn_implementation="eager".'
            )
        return _named(weights, row), []
    if isinstance(weights, str | bytes) or weights is None:
        raise CannotRecord(f"{type(weights).__name__} is not attention weights.")
    if isinstance(weights, Sequence):
        return {kind: _layers("attentions", weights, row)}, _batch_note([weights], row)
    array = _array("the array", weights)
    if not 2 <= array.ndim <= 5:
        raise CannotRecord(
            f"The array has {array.ndim} axes; weights have layers, heads, queries and keys."
        )
    while array.ndim < 4:
        array = array[None]
    name = kind or "attentions"
    return {kind: _layers(name, list(array), row)}, _batch_note([list(array)], row)


def _is_there(layers) -> bool:
    """Whether it holds anything: of a model without cross-attention transformers returns ()."""
    return layers is not None and not (isinstance(layers, Sequence) and not len(layers))


def _batch_note(groups: Iterable[Sequence], row: int) -> list[str]:
    of_batches = (x for layers in groups for x in layers if getattr(x, "ndim", 0) == 4)
    sizes = {layer.shape[0] for layer in of_batches}
    return [f"Row {row + 1} of a batch of {max(sizes)}."] if sizes and max(sizes) > 1 else []


def _named(weights: Mapping, row: int) -> dict[str, list[np.ndarray]]:
    """Weights by name: a kind is a name without its layer's number, as `kinds_by_name` says it.
    Kinds under their own names stand for all layers."""
    names = [name for name in weights if isinstance(name, str)]
    patterns = [name for name in names if name.endswith(PATTERN)]
    ours = [name for name in names if name in TITLES]
    if not patterns and ours:
        return {name: _layers(name, list(_array(name, weights[name])), row) for name in ours}
    names = patterns or names
    if not names:
        raise CannotRecord("It names no weights.")
    kinds = kinds_by_name(names)
    return {
        kind: [_layer(name, weights[name], row) for name in of_kind]
        for kind, of_kind in kinds.items()
    }


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
        while kind in kinds:
            kind += "_"
        kinds[kind] = of_kind
    return kinds


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


def _layers(name: str, layers, row: int) -> list[np.ndarray]:
    if isinstance(layers, Mapping | str) or not isinstance(layers, Sequence):
        layers = list(_array(name, layers))
    if not len(layers):
        raise CannotRecord(f"{name} holds no layer.")
    return [_layer(f"{name}, layer {i + 1}", layer, row) for i, layer in enumerate(layers)]


def _layer(where: str, layer, row: int) -> np.ndarray:
    """(heads, query, key)."""
    if layer is None:
        raise CannotRecord(
            f"{where}: there are no weights. Implementations other than eager return none; load "
            'the model with attn_implementation="eager", or give the model itself.'
        )
    array = _array(where, layer)
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


def _array(where: str, value) -> np.ndarray:
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


# What generate() returns


def _generated(output: Mapping, row: int) -> tuple[dict[str, list[np.ndarray]], list[str]]:
    """The steps of `generate`, put together to one pass over all that was read: a row for each
    token but the last one written, which nobody read."""
    beams = output.get("beam_indices")
    if beams is not None:
        beams = _array("beam_indices", beams)
        if not 0 <= row < len(beams):
            raise CannotRecord(f"There is no row {row + 1} among {len(beams)} sequences.")
        beams = beams[row].astype(int)
    found, notes = {}, []
    for name, kind in OF_TRANSFORMERS.items():
        steps = output.get(name)
        if steps is None:
            continue
        if kind == "encoder":  # one pass, of the texts before they were given to beams
            count = len(output["sequences"]) or 1
            size = _array(name, steps[0]).shape[0]
            found[kind] = _layers(name, steps, row * size // count)
            continue
        if not isinstance(steps, Sequence) or not steps or not isinstance(steps[0], Sequence):
            raise CannotRecord(f"{name} of generate() should hold the layers of each step.")
        if beams is not None:
            ended = np.flatnonzero(beams < 0)
            steps = steps[: ended[0] if len(ended) else len(beams)]
        rows = [row if beams is None else int(beams[i]) for i in range(len(steps))]
        by_layer = [
            [_layer(f"{name}, step {i + 1}, layer {j + 1}", layer, at) for j, layer in
             enumerate(step)] for i, (step, at) in enumerate(zip(steps, rows, strict=True))
        ]  # fmt: skip
        depths = {len(step) for step in by_layer}
        if len(depths) > 1:
            raise CannotRecord(f"{name}: its steps have {min(depths)} to {max(depths)} layers.")
        depth = depths.pop()
        # A decoder alone attends to what it has written, too.
        kind = kind or "decoder"
        join = _joined_cross if kind == "cross" else _joined
        found[kind] = [join([step[j] for step in by_layer], name) for j in range(depth)]
    if not found:
        raise CannotRecord(
            "This output of generate() has no weights. Call it with output_attentions=True and "
            "return_dict_in_generate=True."
        )
    return found, notes


def _joined(steps: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Self-attention, step by step (heads, query, key), as one (heads, length, length). With a
    cache a step has the rows of new tokens alone, and without one all. Keys of a cache that keeps
    a window are the last ones; one of a fixed size has room behind them."""
    heads, first = steps[0].shape[:2]
    length = first
    ends = []
    for step in steps[1:]:
        new = step.shape[1] if step.shape[1] <= length else step.shape[1] - length
        cached = (step.shape[1] <= length and step.shape[1] < step.shape[2]) or step.shape[1] == 1
        length += new if cached else max(step.shape[1] - length, 0)
        ends.append(length)
    whole = np.zeros((heads, length, length), steps[0].dtype)
    for step, end in zip(steps, [first, *ends], strict=True):
        if len(step) != heads:
            raise CannotRecord(f"{name}: its steps have {heads} and {len(step)} heads.")
        rows, keys = step.shape[1], min(step.shape[2], end)
        start = end - keys if step.shape[2] <= end else 0
        whole[:, end - rows : end, start : start + keys] = step[:, :, :keys]
    return whole


def _joined_cross(steps: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Cross-attention, step by step, as one (heads, query, key)."""
    rows = [steps[0]]
    seen = steps[0].shape[1]
    for step in steps[1:]:
        if step.shape[2] != steps[0].shape[2]:
            raise CannotRecord(f"{name}: its steps attend to texts of different lengths.")
        new = step.shape[1] if step.shape[1] == 1 else step.shape[1] - seen
        rows.append(step[:, step.shape[1] - new :])
        seen += new
    return np.concatenate(rows, axis=1)


# Checks


def _stacked(kind: str, layers: Sequence[np.ndarray]) -> np.ndarray:
    name = kind or "attention"
    for i, layer in enumerate(layers):
        if layer.shape != layers[0].shape:
            raise CannotRecord(
                f"{name}: layer {i + 1} has {_size(layer)}, but layer 1 has {_size(layers[0])}."
            )
    if not min(layers[0].shape):
        raise CannotRecord(f"{name} is empty: it has {_size(layers[0])}.")
    return np.stack(layers)


def _size(layer: np.ndarray) -> str:
    heads, queries, keys = layer.shape
    return f"{heads} heads of {queries} × {keys} weights"


def _check(kind: str, array: np.ndarray, partial: bool) -> list[str]:
    """Raises CannotRecord for what is no weights; notes for what is unusual."""
    name = kind or "attention"

    def where(wrong: np.ndarray) -> str:
        layer, head, row = np.argwhere(wrong)[0][:3] + 1
        return f"{name}, layer {layer}, head {head}, row {row}"

    if (wrong := ~np.isfinite(array)).any():
        value = array[tuple(np.argwhere(wrong)[0])]
        raise CannotRecord(f"{where(wrong)}: a weight is {value}.")
    if (wrong := array < 0).any():
        raise CannotRecord(
            f"{where(wrong)}: a weight is {array[wrong][0]:.3g}. Weights are not negative; are "
            "these the scores before the softmax?"
        )
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


def _renamed(kind: str, array: np.ndarray) -> str:
    """What weights without a name are: a decoder's if no token attends to a later one."""
    if kind:
        return kind
    rows, keys = array.shape[-2:]
    later = np.triu(np.ones((rows, keys), bool), 1 + keys - rows)
    return "encoder" if keys < rows or rows == 1 or array[..., later].any() else "decoder"


# Texts


def _texts(attention: Mapping[str, np.ndarray], tokens: Words, target: Words):
    """side → what was read, side → its title, and kind → the sides of queries and keys."""
    if not any(kind in attention for kind in TITLES) and len(attention) > 1:  # towers
        read_by = {kind: (kind, kind) for kind in attention}
        words = {kind: kind.removesuffix("_model") for kind in attention}
        given = dict(zip(attention, (tokens, target), strict=False))
        titles = words
        texts = {
            kind: as_text(given.get(kind), array.shape[-1], titles[kind])
            for kind, array in attention.items()
        }
        return texts, titles, read_by
    two = "cross" in attention or len({a.shape[-1] for a in attention.values()}) > 1
    if not two:
        read_by = dict.fromkeys(attention, ("src", "src"))
        titles, given = {"src": TEXT}, {"src": tokens if target is None else target}
        if tokens is not None and target is not None:
            raise CannotRecord(
                "These weights are of one text, so only its tokens are needed, not a target's."
            )
    else:
        read_by = {
            kind: {"cross": ("tgt", "src"), "decoder": ("tgt", "tgt")}.get(kind, ("src", "src"))
            for kind in attention
        }
        titles, given = {"src": SOURCE, "tgt": TARGET}, {"src": tokens, "tgt": target}
    lengths: dict[str, int] = {}
    for kind, array in attention.items():
        each = zip(read_by[kind], array.shape[-2:], ("rows", "columns"), strict=True)
        for side, length, what in each:
            if lengths.setdefault(side, length) != length:
                raise CannotRecord(
                    f"{kind}: its {what} are {length}, but the {titles[side]} has {lengths[side]} "
                    "tokens elsewhere."
                )
    texts = {
        side: as_text(given[side], lengths[side], title)
        for side, title in titles.items()
        if side in lengths
    }
    return texts, titles, read_by


def as_text(tokens: Words, length: int, title: str) -> Encoding:
    """Tokens of any tokenizer as ours are written; numbers where none are given."""
    if tokens is None:
        tokens = [str(i + 1) for i in range(length)]
    if isinstance(tokens, str | bytes):
        raise CannotRecord(f"The {title} is a text; give its tokens, as a list.")
    if not isinstance(tokens, Encoding):
        try:
            tokens = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
        except TypeError:
            raise CannotRecord(f"The tokens of the {title} are no list.") from None
        if len(tokens) == 1 and isinstance(tokens[0], list | tuple):
            tokens = tokens[0]  # of a batch
        if not all(isinstance(token, str | int | np.integer) for token in tokens):
            raise CannotRecord(f"A token of the {title} is neither text nor a number.")
        tokens = _written(tokens)
    if len(tokens.ids) != length:
        raise CannotRecord(
            f"The {title} has {len(tokens.ids):,} tokens, but its weights are for {length:,}."
        )
    return tokens


SPECIAL = re.compile(r"<[^<>\s]*>|\[[A-Z0-9_]+\]|<\|.*\|>")
SPACES = ("Ġ", "▁")


def _written(tokens: Sequence) -> Encoding:
    """As other tokenizers write them: Ġ or ▁ for a space before, ## for none."""
    ids = tuple(token if isinstance(token, int) else NO_ID for token in tokens)
    names = [str(token) for token in tokens]
    marked = any(name.startswith(SPACES) for name in names)
    joined = any(name.startswith("##") for name in names)
    text, offsets = "", []
    for name in names:
        if SPECIAL.fullmatch(name):
            offsets.append((len(text), len(text)))
            continue
        has_space = name.startswith(SPACES) if marked else not (joined and name.startswith("##"))
        part = name.lstrip("Ġ▁") if marked else name.removeprefix("##") if joined else name
        part = part.replace("Ċ", "\n") if marked else part
        text += " " * (has_space and bool(text))
        offsets.append((len(text), len(text) + len(part)))
        text += part
    shown = named(text, offsets)
    special = [bool(SPECIAL.fullmatch(name)) for name in names]
    each = zip(names, shown, special, strict=True)
    shown = tuple(name if is_special else mine for name, mine, is_special in each)
    roles = tuple(OTHER_SPECIAL if is_special else "" for is_special in special)
    return Encoding(ids, shown, tuple(offsets), roles)


# Files


def write(path: str | Path, recordings: Sequence[Recording]) -> None:
    """Recordings in one file: safetensors, with the texts in its metadata."""
    tensors, described = {}, []
    for i, one in enumerate(recordings):
        tensors |= {f"{i}.{kind}": np.ascontiguousarray(w) for kind, w in one.attention.items()}
        described.append(
            {
                "texts": {side: [*map(list, text.parts)] for side, text in one.texts.items()},
                "titles": {name: side.title for name, side in one.sides.items()},
                "read": {kind: [s[0].query_side, s[0].key_side] for kind, s in one.kinds.items()},
                "names": {kind: [s.name for s in sites] for kind, sites in one.kinds.items()},
                "key_heads": {k: [s.n_key_heads for s in sites] for k, sites in one.kinds.items()},
                "origin": one.origin,
                "notes": list(one.notes),
            }
        )
    # Under one key: safetensors writes several in any order.
    content = {"format": FORMAT, "recordings": described}
    metadata = {KEY: json.dumps(content, ensure_ascii=False)}
    replace_file(Path(path), to_bytes(tensors, metadata))


def is_recording(path: str | Path) -> bool:
    """Whether a file says that it is one."""
    try:
        with safe_open(path, "np") as file:
            return (file.metadata() or {}).get(KEY, "").startswith(BEGINS)
    except (OSError, SafetensorError):
        return False


def opened(path: str | Path) -> list[Recording]:
    """The recordings of a file that `write` wrote, or of anyone's that says so. Raises
    CannotRecord."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CannotRecord(f"{path.name} is larger than {LARGEST_FILE / 1e9:.0f} GB.")
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if not metadata.get(KEY, "").startswith(BEGINS):
                raise CannotRecord(f"{path.name} is not a recording that this version reads.")
            described = json.loads(metadata[KEY])["recordings"]
            if not isinstance(described, list) or not 0 < len(described) <= MOST_TEXTS:
                raise CannotRecord(f"{path.name}: it describes no recordings.")
            return [_opened(file, i, each) for i, each in enumerate(described)]
    except CannotRecord:
        raise
    except OSError as error:
        raise CannotRecord(f"{path.name} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # the file may hold anything
        why = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
        raise CannotRecord(f"{path.name} is broken: {type(error).__name__}: {why}.") from None


def _opened(file, number: int, described: Mapping) -> Recording:
    read_by = {str(kind): tuple(map(str, pair)) for kind, pair in described["read"].items()}
    texts = {str(side): _encoding(parts) for side, parts in described["texts"].items()}
    attention = {}
    for kind, sides in read_by.items():
        array = file.get_tensor(f"{number}.{kind}")
        if array.ndim != 4 or array.shape[-2:] != tuple(len(texts[side].ids) for side in sides):
            raise CannotRecord(f"{kind} has the shape {array.shape}, which does not fit its texts.")
        array = _array(kind, array).astype(np.float32)
        if not min(array.shape):
            raise CannotRecord(f"{kind} is empty.")
        _check(kind, array, partial=True)
        attention[kind] = array
    names = {kind: [str(name) for name in described["names"].get(kind, ())] for kind in attention}
    names = {kind: each for kind, each in names.items() if len(each) == len(attention[kind])}
    key_heads = {kind: [int(n) for n in described["key_heads"][kind]] for kind in attention}
    if any(len(each) != len(attention[kind]) for kind, each in key_heads.items()):
        raise CannotRecord("It does not say of each layer how many heads its keys have.")
    return recording(
        attention, texts, read_by, names=names, key_heads=key_heads,
        titles={str(side): str(title) for side, title in described["titles"].items()},
        origin=str(described["origin"]), notes=tuple(map(str, described["notes"])),
    )  # fmt: skip


def _encoding(parts: Sequence) -> Encoding:
    ids, tokens, offsets, roles = parts
    if not len(ids) == len(tokens) == len(offsets) == len(roles) > 0:
        raise CannotRecord("A text has parts of different lengths.")
    spans = tuple((int(start), int(end)) for start, end in offsets)
    if any(not 0 <= start <= end <= 10**7 for start, end in spans):
        raise CannotRecord("A token is at no place of its text.")
    return Encoding(tuple(map(int, ids)), tuple(map(str, tokens)), spans, tuple(map(str, roles)))


def as_typed(text: Encoding) -> str:
    """The text that tokens were made from, as far as they tell."""
    out = ""
    for token, (start, end), role in zip(*text.parts[1:], strict=True):
        if not role:
            out += " " * max(0, start - len(out)) + token.removeprefix("·")[: max(0, end - start)]
    return out.strip() or " ".join(text.tokens)
