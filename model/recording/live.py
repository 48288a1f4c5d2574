"""Records a model that is not ours while it runs in its own code.

Models of transformers take their attention from a table of functions, where ours is (see watch.py).
Those that do not ask the table are read by output_attentions, modules of torch by their own
weights; both can only be read. The model is afterwards as it was: implementation, hooks, training
mode.
"""

import inspect
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import Any, overload

import torch
from torch import Tensor, nn

from headlight.model.checking.whole.watching import Keeping, stepwise
from headlight.model.probing.changes import (
    CannotChange,
    Change,
    HeadOff,
    MaskChange,
    Temperature,
    WeightChange,
    check,
    parsed,
)
from headlight.model.probing.sites import Part
from headlight.model.probing.trace import Trace
from headlight.model.recording import forms
from headlight.model.recording.inputs import (
    Read,
    check_readable,
    check_texts,
    given,
    read_of,
    takes_any,
    texts_of_pass,
    theirs,
)
from headlight.model.recording.predictions import with_predictions
from headlight.model.recording.recording import Recording, of_trace, recording_of
from headlight.model.recording.texts import Names, Words
from headlight.model.recording.watch import (
    NAME,
    Call,
    Place,
    Room,
    Watch,
    check_room,
    configs_of,
    has_eager,
    names_of,
    register,
    unchanged,
    watching,
)
from headlight.model.recording.weights import (
    NOT_TOKENS,
    OF_TRANSFORMERS,
    CannotRecord,
    kind_by_weights,
    kinds_by_name,
    layers_by_name,
    layers_of,
    stacked,
    unwrapped,
)

ARGUMENTS = (
    "query", "key", "value", "key_padding_mask", "need_weights", "attn_mask",
    "average_attn_weights", "is_causal",
)  # fmt: skip
LENGTH_FIRST = (
    "Without batch_first, the first axis of the input is the length: this is text {} of {}, with "
    "{} tokens. If the first axis is the batch, build the module with batch_first=True."
)
CANNOT = (
    "“{}”: this can only be done to our own models. In transformers' own code one can switch heads "
    "off, and change masks, the temperature and weights."
)
NOT_READ = "{} of {} cannot be read, so its attention is not shown."
ATTENTION = re.compile("Atte?n")  # in the names of classes
IN_PARTS = "{}: attention stays within {} parts of the input, as in windows. This is part {}."
MASKS = "attention_mask", "decoder_attention_mask"  # of the text (or source), and of the target
ONLY_READ = "“{}”: {} can only be read: it does not ask transformers' table for its attention."
MODULES_CANNOT = "“{}”: in a module of torch one can switch heads off and change masks, no more."


# Modules of torch: what else happens inside one function of torch, which nothing can enter


def check_changes(changes: Sequence[Change]) -> None:
    for change in changes:
        if not isinstance(change, MaskChange | HeadOff):
            raise CannotChange(MODULES_CANNOT.format(change))


@torch.no_grad()
def read_modules(
    model: nn.Module, read: Read, changes: Mapping[Place, Sequence[Change]] = {}
) -> list[Call]:
    """The calls of nn.MultiheadAttention wherever it stands in a model of torch. Hooks keep its
    layers off the path on which they compute no weights."""
    all_names = names_of(model)
    names = {m: all_names[m] for m in all_names if isinstance(m, nn.MultiheadAttention)}
    if not names:
        return read_softmaxes(model, read, changes)
    watch = Watch({**names}, Room([*chain(*names.values())], (None, None)))
    places: list[Place] = []
    projections: dict[nn.MultiheadAttention, nn.Parameter] = {}  # of those with heads off

    def restore() -> None:
        while projections:
            module, weight = projections.popitem()
            module.out_proj.weight = weight

    def ask(module, args, kwargs):
        given = dict(zip(ARGUMENTS, args, strict=False)) | kwargs
        at = -2 if module.batch_first or given["query"].ndim == 2 else 0
        rows, keys = (given[what].shape[at] for what in ("query", "key"))
        places.append(watch.place(module))
        watch.room.check(places[-1][0], module.num_heads, rows, keys)
        here = changes.get(places[-1], ())
        if masks := [change for change in here if isinstance(change, MaskChange)]:
            given |= _masked(given, module.num_heads, rows, keys, masks)
        if off := [change for change in here if isinstance(change, HeadOff)]:
            projections[module] = module.out_proj.weight
            weight = projections[module].clone()
            for change in off:  # (d_model, heads, d_head)
                weight.view(len(weight), module.num_heads, -1)[:, change.scope.heads] = 0
            module.out_proj.weight = nn.Parameter(weight, requires_grad=False)
        return (), given | {"need_weights": True, "average_attn_weights": False}

    def keep(module, args, kwargs, output):
        restore()
        watch.calls.append(Call(*places.pop(), output[1].detach(), module.num_heads))

    with unchanged(model), ExitStack() as hooks:
        model.eval()
        hooks.callback(restore)
        for module in names:
            hooks.enter_context(module.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.enter_context(module.register_forward_hook(keep, with_kwargs=True))
        model(*read.ordered, **read.inputs)
    if not watch.calls:
        raise CannotRecord(f"{type(model).__name__} does not call its attention in this pass.")
    return list(watch.calls)


def read_softmaxes(
    model: nn.Module, read: Read, changes: Mapping[Place, Sequence[Change]] = {}
) -> list[Call]:
    """The calls of attention in code of one's own: every softmax over the last axis of four, and
    every scaled_dot_product_attention."""
    for here in changes.values():
        raise CannotChange(f"“{here[0]}”: code of your own can only be read, not changed.")
    counts = Counter[str]()
    calls: list[Call] = []
    with unchanged(model):
        model.eval()
        with stepwise(model, Keeping(model)) as watch:
            model(*read.ordered, **read.inputs)
    for name, weights in watch.kept:
        calls.append(Call(unwrapped(name), counts[name], weights, weights.shape[1]))
        counts[name] += 1
    if not calls:
        raise CannotRecord(
            "This model has no attention that can be read: no nn.MultiheadAttention, and no "
            "softmax over scores (batch, heads, query, key). Give its weights instead."
        )
    check_room(sum(call.weights[0].numel() for call in calls), calls[0].weights.shape[-2:])
    return calls


def length_first(
    model: nn.Module, read: Read, calls: Sequence[Call], row: int
) -> tuple[Read, list[str]]:
    """What a pass read, and a note where the first axis of its input was the length and others
    may have meant it as the batch: then the texts of the batch attend to each other."""
    texts = (x for x in (*read.ordered, *read.inputs.values()) if isinstance(x, Tensor))
    size = next((tuple(text.shape[:2]) for text in texts if text.ndim > 1), None)
    batch, rows = (calls[0].weights.shape[at] for at in (0, -2))
    firsts = {m.batch_first for m in model.modules() if isinstance(m, nn.MultiheadAttention)}
    if batch == 1 or True in firsts or size != (rows, batch):
        return read, []
    note = LENGTH_FIRST.format(row + 1, batch, rows)
    return Read({}, (None, None)), [note]


def _masked(
    given: Mapping[str, Any], heads: int, rows: int, keys: int, changes: Sequence[MaskChange]
) -> dict[str, Tensor | bool | None]:
    """The masks that a module is called with as one, changed: (batch × heads, query, key)."""
    query: Tensor = given["query"]
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    count = 1 if query.ndim == 2 else query.numel() // (rows * query.shape[-1])
    added = torch.zeros(count, heads, rows, keys, dtype=query.dtype, device=query.device)
    if mask is not None:
        mask = mask.view(count, heads, rows, keys) if mask.ndim == 3 else mask
        added = added + _added(mask, query.dtype)
    if padding is not None:
        added = added + _added(padding.view(count, 1, 1, keys), query.dtype)
    least = torch.finfo(query.dtype).min
    allowed = before = added > least / 2
    allowed = allowed.clone()
    for change in changes:
        change.allow(allowed[:, change.scope.heads], 0)
    added = torch.where(before, added, 0).masked_fill(~allowed, least)
    return {"attn_mask": added.flatten(0, 1), "key_padding_mask": None, "is_causal": False}


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as it is added to scores; in a mask of truth values True hides."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)


# Passes


def asks_table(model: nn.Module) -> bool:
    """Whether a part of a model of transformers takes its attention from the table."""
    tops: list[Any] = [m for m in model.modules() if hasattr(m, "_can_set_attn_implementation")]
    return any(top._can_set_attn_implementation() for top in tops)


@torch.no_grad()
def _pass(model: nn.Module, read: Read, changes: Mapping[Place, Sequence[Change]]) -> tuple:
    """The calls of one pass, what it returned, and the classes whose attention was not read."""
    names = names_of(model, theirs(model))
    attends = {kind for kind in {type(module) for module in names} if has_eager(kind)}
    each = [name for module, own in names.items() if type(module) in attends for name in own]
    watch = Watch(names, Room(each, read.lengths), changes)
    ran: list[nn.Module] = []
    with unchanged(model):
        model.eval()
        for module in names:
            if ATTENTION.search(type(module).__name__):
                module.register_forward_hook(lambda module, *_: ran.append(module))
        for config in configs_of(model):
            config._attn_implementation_internal = NAME
        token = watching.set(watch)
        try:
            output = model(*read.ordered, **read.inputs)
        finally:
            watching.reset(token)
    known = {call.name for call in watch.calls}
    around = {name[:i] for name in known for i, letter in enumerate(name) if letter == "."}
    unread: dict[str, None] = {}
    for module in sorted(ran, key=lambda module: names[module][0]):  # a whole before its parts
        parts_of = tuple(f"{name}." for name in known)
        if not any(name in around | known or name.startswith(parts_of) for name in names[module]):
            known |= {*names[module]}
            unread[type(module).__name__] = None
    return watch.calls, output, list(unread)


@torch.no_grad()
def _read_by_output(model: nn.Module, read: Read) -> dict:
    """What a model of transformers that does not ask the table says of itself."""
    if not takes_any(model):
        own = type(theirs(model)).__name__
        raise CannotRecord(f"{own} can only be read by itself, not inside {type(model).__name__}.")
    lengths = [length for length in read.lengths if length]
    config = theirs(model).config.get_text_config()
    heads, layers = (getattr(config, f"num_{n}", 0) for n in ("attention_heads", "hidden_layers"))
    if lengths and isinstance(heads, int) and isinstance(layers, int):
        check_room(heads * layers * max(lengths) ** 2, lengths)
    with unchanged(model):
        model.eval()
        for config in configs_of(model):
            config._attn_implementation_internal = "eager"
        # With a cache to come, FSMT's decoder would attend ahead.
        takes = inspect.signature(theirs(model).forward).parameters
        inputs = ({"use_cache": False} if "use_cache" in takes else {}) | read.inputs
        return dict(model(**inputs | {"output_attentions": True, "return_dict": True}))


def _of_tokens(
    model: nn.Module, found: forms.ByKind, read: Read, row: int
) -> tuple[forms.ByKind, list[str]]:
    """Weights (heads, query, key) of which the columns are tokens, without those of padding behind
    them, and notes about others, which may be as many. To tell them, one token is hidden: then no
    other attends to it, and its column is empty. Raises CannotRecord if none are left."""
    lengths, notes = read.lengths, forms.without_encoder(found)
    if None in lengths[: 1 + ("cross" in found)]:
        return found, notes
    hidden, at = _one_hidden(theirs(model), read, row)
    without = forms.by_kind(_read_by_output(model, hidden), row)[0] if any(at) else {}
    shown: forms.ByKind = {}
    for kind, layers in found.items():
        if any((layer < 0).any() for layer in layers):  # no weights, which is said later
            shown[kind] = layers
            continue
        sides = kind in ("decoder", "cross"), kind == "decoder"
        (rows, keys), column = (lengths[side] for side in sides), at[sides[1]]
        shown[kind] = [layer[:, :rows, :keys] for layer in layers]
        mask = hidden.inputs.get(MASKS[sides[0]])
        seen = slice(None) if mask is None else mask[row].bool().cpu().numpy()
        fits = (layer.shape[-1] - keys == layer.shape[-2] - rows >= 0 for layer in layers)
        behind = (layer[:, :rows, keys:].any() for layer in layers)
        empty = () if column is None else without.get(kind, ())
        to_hidden = (layer[:, :rows][:, seen, column].any() for layer in empty)
        if not all(fits) or any(behind) or any(to_hidden):
            notes.append(NOT_TOKENS.format(kind or "attention"))
            del shown[kind]
    if not shown:
        raise CannotRecord(notes[-1])
    return shown, notes


def _one_hidden(own: Any, read: Read, row: int) -> tuple[Read, list[int | None]]:
    """A pass in which the masks hide one more token of each text, and which: None where there are
    too few, or the model takes no mask."""
    inputs, at, takes = dict(read.inputs), [], inspect.signature(own.forward).parameters
    for ids, name in zip(("input_ids", "decoder_input_ids"), MASKS, strict=True):
        mask = inputs.get(name, torch.ones_like(inputs[ids]) if ids in inputs else None)
        at.append(None)
        if name in takes and isinstance(mask, torch.Tensor) and mask.ndim == 2:
            seen = mask[row].nonzero().flatten().tolist()
            if len(seen) > 2:
                at[-1], inputs[name] = seen[1], mask.clone()
                inputs[name][row, seen[1]] = 0
    return replace(read, inputs=inputs), at


# Recording


@overload
def record(
    what: nn.Module, tokenizer: Any = ..., text: Any = ..., target: Any = ..., *,
    inputs: Any = ..., tokens: Words = ..., target_tokens: Words = ...,
    changes: str | Sequence[Change] = ..., row: int = ...,
) -> Recording: ...  # fmt: skip
@overload
def record(what: Trace, origin: str = ..., notes: Sequence[str] = ...) -> Recording: ...
@overload
def record(
    what: Any, tokens: Words = ..., target: Words = ..., *, row: int = ..., kind: str = ...,
    origin: str = ..., partial: bool = ...,
) -> Recording: ...  # fmt: skip


def record(what, *given, **more) -> Recording:
    """The attention of a model (see `record_model`), weights that are there already (see
    `forms.read`), or those of a trace, as a recording.

    >>> import numpy
    >>> record(numpy.full((1, 1, 2, 2), 0.5), ["a", "b"]).attention
    {'encoder': array(1, 1, 2, 2)}
    """
    if isinstance(what, nn.Module):
        return record_model(what, *given, **more)
    if isinstance(what, Trace):
        return of_trace(what, *given, **more)
    return forms.read(what, *given, **more)


def record_model(
    model: nn.Module, tokenizer=None, text=None, target=None, *, inputs=None, tokens: Words = None,
    target_tokens: Words = None, changes: str | Sequence[Change] = "", row: int = 0,
) -> Recording:  # fmt: skip
    """The attention of one pass of any PyTorch model over a text (and a target, which it writes
    itself if none is given), as text or as ids. `inputs`: what the model is called with instead, a
    dict or a tuple, with `tokens` as names. `changes`: a line of changes that are made in the pass.
    Raises CannotRecord and CannotChange; the model is afterwards as it was."""
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    changes = parsed(changes)
    check_readable(model)
    own = theirs(model)
    if own is None:
        check_changes(changes)
        origin, read, words = (
            type(model).__name__,
            given(inputs or (), row),
            (tokens, target_tokens),
        )
        calls = read_modules(model, read)
        kinds = kinds_of_calls(calls)
        if changes:
            kinds = _renamed(kinds, read_modules(model, read, placed(kinds, changes)))
        read, notes = length_first(model, read, calls, row)
        return _of_calls(origin, kinds, read, Names(None), words, changes, row, notes)
    if inputs is None:
        if text is None:
            check_texts(tokenizer)
            raise CannotRecord("Give a text, token ids, or what it is called with, as inputs.")
        read = read_of(model, tokenizer, text, target)
    else:
        read = given(inputs, row)
    return record_pass(model, read, Names(tokenizer), (tokens, target_tokens), changes, row)


def record_pass(
    model: nn.Module, read: Read, names: Names, words: tuple[Words, Words],
    changes: Sequence[Change], row: int = 0, kinds: dict[str, list[Call]] | None = None,
) -> Recording:  # fmt: skip
    """What `record_model` gives of a model of transformers. `kinds`: kind → its calls, where they
    are known, which saves the pass without changes."""
    own: Any = theirs(model)
    origin = type(own).__name__
    calls, output, unread = [], None, []
    if asks_table(model):
        register()
        places = placed(kinds, changes) if kinds else {}
        calls, output, unread = _pass(model, read, places)
    if not calls:
        if changes:
            raise CannotChange(ONLY_READ.format(changes[0], origin))
        output = _read_by_output(model, read)
        weights = {name: output.get(name) for name in OF_TRANSFORMERS}
        if not any(weights.values()):
            raise CannotRecord(f"{origin} has no attention weights in this pass.")
        found, notes = _of_tokens(model, forms.by_kind(weights, row)[0], read, row)
        notes += _in_parts(read, {OF_TRANSFORMERS[k]: w[0] for k, w in weights.items() if w}, row)
        made = recording_of(
            found, *texts_of_pass(found, read, names, words), partial=True, notes=notes,
            origin=origin,
        )  # fmt: skip
        return with_predictions(made, own, output, read, names, row)
    if kinds:
        kinds = _renamed(kinds, calls)
    else:
        kinds = kinds_of_calls(calls)
        if changes:
            again, output, _ = _pass(model, read, placed(kinds, changes))
            kinds = _renamed(kinds, again)
    notes = [NOT_READ.format(name, origin) for name in unread]
    made = _of_calls(origin, kinds, read, names, words, changes, row, notes)
    return with_predictions(made, own, output, read, names, row)


def kinds_of_calls(calls: Sequence[Call]) -> dict[str, list[Call]]:
    """Kind → its calls, a layer each."""
    names = list(dict.fromkeys(call.name for call in calls))
    found = {}
    for kind, of_kind in kinds_by_name(names).items():
        found[kind] = [call for name in of_kind for call in calls if call.name == name]
    return {kind or _told(of_kind): of_kind for kind, of_kind in found.items()}


def _told(calls: Sequence[Call]) -> str:
    """What a kind is called whose name does not say: by its weights."""
    weights = [call.weights[0].float().cpu().numpy() for call in calls]
    return kind_by_weights(stacked("", weights, range(len(calls))))


def _renamed(kinds: dict[str, list[Call]], again: Sequence[Call]) -> dict[str, list[Call]]:
    """The calls of another pass under the names of the one without changes: a mask may have made a
    decoder look ahead."""
    by_place = {call.place: call for call in again}
    return {kind: [by_place[call.place] for call in calls] for kind, calls in kinds.items()}


def placed(kinds: dict[str, list[Call]], changes: Sequence[Change]) -> dict[Place, list[Change]]:
    """Place → the changes to the attention there, in the order in which they act."""
    parts = {}
    for kind, of_kind in kinds.items():
        layers = layers_by_name([call.name for call in of_kind])
        for layer, call in zip(layers, of_kind, strict=True):
            part = Part("attention", kind, layer, call.name, "", call.weights.shape[-3])
            parts[call.place] = part
    for change in changes:
        if not isinstance(change, MaskChange | Temperature | WeightChange | HeadOff):
            raise CannotChange(CANNOT.format(change))
    check(changes, list(parts.values()))
    changes = sorted(changes, key=lambda change: change.order)
    return {
        place: here for place, part in parts.items()
        if (here := [change for change in changes if change.scope.holds(part)])
    }  # fmt: skip


def _in_parts(read: Read, weights: Mapping[str, torch.Tensor], row: int) -> list[str]:
    """Notes about kinds of which the batch is not that of the input, as where attention is within
    windows. `weights`: of a layer of each, (batch, heads, query, key)."""
    given = (x for x in (*read.ordered, *read.inputs.values()) if isinstance(x, torch.Tensor))
    batch = next((len(each) for each in given if each.ndim > 1), 0)
    return [
        IN_PARTS.format(kind or "attention", len(each), row + 1) for kind, each in weights.items()
        if each.ndim == 4 and batch and len(each) > batch and not len(each) % batch
    ]  # fmt: skip


def _of_calls(
    origin: str, kinds: dict[str, list[Call]], read: Read, names: Names,
    words: tuple[Words, Words], changes: Sequence[Change], row: int, notes: Sequence[str] = (),
) -> Recording:  # fmt: skip
    for kind, of_kind in kinds.items():
        rows, keys = of_kind[0].weights.shape[-2:]
        if rows < keys and kind in ("encoder", "decoder"):
            raise CannotRecord(
                f"{kind}: its {rows} tokens attend to {keys}, as where a prefix was learned or a "
                "cache is given. Only attention among the tokens of a text can be shown."
            )
    found = {k: layers_of(k, [call.weights for call in calls], row) for k, calls in kinds.items()}
    weights = {kind: of_kind[0].weights for kind, of_kind in kinds.items()}
    notes = [*notes, *_in_parts(read, weights, row)]
    if changes:
        notes.append(f"Changed in the model's own code: {'; '.join(map(str, changes))}.")
    return recording_of(
        found, *texts_of_pass(found, read, names, words), partial=True, notes=notes,
        origin=origin,
        names={kind: [call.name for call in of_kind] for kind, of_kind in kinds.items()},
        key_heads={kind: [call.key_heads for call in of_kind] for kind, of_kind in kinds.items()},
    )  # fmt: skip
