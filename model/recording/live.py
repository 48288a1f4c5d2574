"""Records a model that is not ours while it runs in its own code.

Models of transformers take their attention from a table of functions, where ours is (see watch.py).
Those that do not ask the table are read by output_attentions, modules of torch by their own
weights; both can only be read. The model is afterwards as it was: implementation, hooks, training
mode.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from headlight.model.probing.changes import (
    CannotChange,
    Change,
    HeadOff,
    MaskChange,
    Temperature,
    WeightChange,
    check,
    parse,
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
from headlight.model.recording.kinds import (
    OF_TRANSFORMERS,
    is_in,
    kind_by_weights,
    kinds_by_name,
    layers_by_name,
)
from headlight.model.recording.predicted import with_predictions
from headlight.model.recording.recording import Recording, of_trace, recording_of
from headlight.model.recording.texts import Names, Words
from headlight.model.recording.torch_modules import check_changes, length_first, read_modules
from headlight.model.recording.unchanged import configs_of, unchanged
from headlight.model.recording.watch import (
    NAME,
    Call,
    Place,
    Room,
    Watch,
    check_room,
    has_eager,
    names_of,
    register,
    watching,
)
from headlight.model.recording.weights import NOT_TOKENS, CannotRecord, layers_of, stacked

CANNOT = (
    "“{}”: this can only be done to our own models. In transformers' own code one can switch heads "
    "off, and change masks, the temperature and weights."
)
NOT_READ = "{} of {} cannot be read, so its attention is not shown."
ATTENTION = re.compile("Atte?n")  # in the names of classes
IN_PARTS = "{}: {} parts of the input, such as windows, attend within themselves. This is part {}."
MASKS = "attention_mask", "decoder_attention_mask"  # of the text (or source), and of the target
ONLY_READ = "“{}”: {} can only be read: it does not ask transformers' table for its attention."


# Passes


def asks_table(model: nn.Module) -> set[bool]:
    """Whether the attention of a model of transformers takes its function from the table; of some
    models a part does and another does not."""
    tops: list[Any] = [m for m in model.modules() if hasattr(m, "_can_set_attn_implementation")]
    return {bool(top._can_set_attn_implementation()) for top in tops}


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
        if not any(name in around or is_in(name, known) for name in names[module]):
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
    lengths, notes = read.lengths, []
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
        raise CannotRecord(notes[0])
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


def record(what, *given, **more) -> Recording:
    """The attention of a model (see `record_model`), weights that are there already (see
    `forms.read`), or those of a trace, as a recording."""
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
    changes = parse(changes) if isinstance(changes, str) else tuple(changes)
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
    asks, calls, output, unread = asks_table(model), [], None, []
    if True in asks:
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
        found, notes, _ = forms.by_kind(weights, row)
        notes = [note for note in notes if note == forms.NO_ENCODER]
        notes += _in_parts(read, {OF_TRANSFORMERS[k]: w[0] for k, w in weights.items() if w}, row)
        found, more = _of_tokens(model, found, read, row)
        notes += more
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
