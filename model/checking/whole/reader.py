"""How a model that somebody else wrote is called: found out from its parameters' names and by
trying, or given by an adapter of one line."""

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.checking.calling import message_of
from headlight.model.masks import Masks

# Source and target; one text that predicts its next token; one that is read in both directions.
PAIR, CAUSAL, TEXT = MODEL_KINDS = "pair", "causal", "text"
ANSWERS = ("targets", "labels", "target_ids")  # which a language model may take for its loss
PAD_NAMES = ("pad_id", "pad_token_id", "pad_idx", "src_pad_idx", "padding_idx", "pad")
SPECIAL_NAMES = (
    "bos_token_id", "eos_token_id", "unk_token_id", "bos_id", "eos_id", "decoder_start_token_id",
    "cls_token_id", "sep_token_id", "mask_token_id",
)  # fmt: skip
LENGTH = re.compile("len(gth)?s?$")
OUTPUTS = ("logits", "last_hidden_state", "prediction_logits", "output", "out")
SAY_HOW = "Say how it is called: checkup(model, adapter=lambda model, src, tgt: model(…))."


class CannotCall(Exception):
    """Nobody knows how to call this model. The message says what to give."""


@dataclass(frozen=True)
class Style:
    """How masks are written. `axes`: of a padding mask; `hidden`: True means hidden."""

    title: str
    axes: int
    hidden: bool = False
    dtype: torch.dtype = torch.bool

    def padding(self, real: Tensor) -> Tensor:
        """The mask of padding as the model reads it. `real`: (batch, key), True for a token."""
        return self._written({2: real, 3: real[:, None], 4: real[:, None, None]}[self.axes])

    def target(self, real: Tensor) -> Tensor:
        """The same of a target, causal."""
        may = torch.ones(real.shape[1], real.shape[1], dtype=torch.bool).tril()
        if self.axes >= 3:
            may = may & real[:, None]
        return self._written(may[:, None] if self.axes == 4 else may)

    def _written(self, may: Tensor) -> Tensor:
        if self.dtype.is_floating_point:
            return torch.zeros(may.shape).masked_fill(~may, -math.inf)
        return (~may if self.hidden else may).to(self.dtype)


STYLES = (
    Style("(batch, 1, 1, key), True for seen", 4),
    Style("(batch, 1, key), True for seen", 3),
    Style("(batch, key) and (query, key), True for hidden", 2, hidden=True),  # PyTorch's modules
    Style("(batch, key) and (query, key), True for seen", 2),
    Style("(batch, key), 1 for seen", 2, dtype=torch.long),
    Style("(batch, 1, 1, key), 1 for seen", 4, dtype=torch.long),
    Style("(batch, 1, 1, key), True for hidden", 4, hidden=True),
    Style("(batch, 1, key), True for hidden", 3, hidden=True),
    Style("(query, key), −∞ for hidden", 2, hidden=True, dtype=torch.float32),
)

Call = Callable[[Tensor, Tensor | None, Tensor], Any]
Score = tuple[int, int]


@dataclass(frozen=True)
class Reader:
    """`call(src, tgt, real)`: the model; `real`: (batch, key), True where the source is no padding.
    `kind`: one of MODEL_KINDS, or "" while nobody knows; `pad`: the id of padding; `specials`: ids
    with a meaning of their own; `how`: in words; `length_first`: ids and logits are (length, batch,
    …), as PyTorch's modules have them by default; `shifts`: it shifts the text itself, so that a
    row reads the tokens before its own; `with_loss(src, tgt, real)`: what it returns when it is
    given the text as targets, too."""

    call: Call
    kind: str
    pad: int | None
    specials: frozenset[int]
    how: str = ""
    length_first: bool = False
    shifts: bool = False
    with_loss: Call | None = None

    def __call__(self, src: Tensor, tgt: Tensor | None = None) -> Tensor:
        """Logits, (batch, row, output), or one row for a whole text. `src`, `tgt`: (batch,
        length) of ids. Raises CannotCall, and whatever the model does."""
        read = src if tgt is None else tgt
        out = self._rows(src, tgt, read.shape[1])
        if self.shifts or out.shape[1] == read.shape[1] - 1 > 0:  # it leaves out a token
            more = torch.cat([read, read[:, -1:]], 1)
            out = self._rows(*((more, None) if tgt is None else (src, more)), read.shape[1])
        return out[:, -read.shape[1] :]  # learned prompts stand before the text

    def _rows(self, src: Tensor, tgt: Tensor | None, n: int) -> Tensor:
        """Whatever form the logits have, as (batch, row, output). `n`: how many rows to expect."""
        real = torch.ones_like(src, dtype=torch.bool) if self.pad is None else src != self.pad
        if self.length_first:
            out = tensor_of(self.call(src.T, None if tgt is None else tgt.T, real))
        else:
            out = tensor_of(self.call(src, tgt, real))
        if out.ndim == 2 and out.shape[0] == len(src) * n and n > 1:
            out = out.view(n, len(src), -1) if self.length_first else out.view(len(src), n, -1)
        if out.ndim == 2:
            return out[:, None]
        if self.length_first:
            return out.transpose(0, 1)
        return out.transpose(1, 2) if out.shape[1] != n == out.shape[2] else out


def tensor_of(out: Any) -> Tensor:
    """The logits in what a model returns. Raises CannotCall."""
    if isinstance(out, Tensor):
        return out
    for name in OUTPUTS:
        value = out.get(name) if isinstance(out, Mapping) else getattr(out, name, None)
        if isinstance(value, Tensor):
            return value
    some: Iterable = out.values() if isinstance(out, Mapping) else out or ()
    found = [x for x in some if isinstance(x, Tensor) and x.ndim >= 2 and x.is_floating_point()]
    if not found:
        raise CannotCall(
            "The model returns no tensor of numbers. Let an adapter return its logits."
        )
    return next((x for x in found if x.ndim == 3), found[0])


def exact(model: nn.Module) -> nn.Module:
    """A copy in eval mode and float64: what the code does, without what rounding adds. Raises
    CannotCall."""
    try:
        copied = copy.deepcopy(getattr(model, "_orig_mod", model))  # of torch.compile
    except Exception as error:  # it holds a file, a lock, a tensor of a graph
        raise CannotCall(f"The model cannot be copied: {message_of(error)[:160]}.") from error
    wider = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}

    def exactly(x: Tensor) -> Tensor:
        return x.to("cpu", torch.float64 if x.is_floating_point() else wider.get(x.dtype, x.dtype))

    return copied.eval()._apply(exactly)  # `to` leaves half of a complex number


def pad_of(model: nn.Module, tokenizer: Any = None) -> int | None:
    """The id of padding, as the tokenizer, the model or one of its embeddings says."""
    for owner in (tokenizer, getattr(model, "config", None), model):
        for name in PAD_NAMES:
            value = getattr(owner, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
    found = {m.padding_idx for m in model.modules() if isinstance(m, nn.Embedding)} - {None}
    return found.pop() if len(found) == 1 else None


def vocabulary_of(model: nn.Module) -> int:
    """How many ids every embedding of tokens knows."""
    tables = {name.lower(): module.num_embeddings for name, module in model.named_modules()
              if isinstance(module, nn.Embedding)}  # fmt: skip
    words = [size for name, size in tables.items() if not re.search("pos|type|segm|rel|wpe", name)]
    return min(words or tables.values(), default=16)


def find(
    model: nn.Module, tokenizer: Any = None, adapter: Callable | None = None, kind: str = "",
    pad: int | None = None, score: Callable[[Reader], Score] = lambda reader: (2, 1),
) -> Reader:  # fmt: skip
    """How to call a model, see `check_model`. `score`: how well a reader keeps texts of a batch
    apart, 0 to 2 for wholly, and how many laws it keeps, which tells ways of calling apart. Raises
    CannotCall."""
    pad = pad_of(model, tokenizer) if pad is None else pad
    owners = getattr(model, "config", None), tokenizer, model
    ids = {pad, *(getattr(owner, name, None) for owner in owners for name in SPECIAL_NAMES)}
    none = Reader(lambda *_: None, kind, pad, frozenset(x for x in ids if isinstance(x, int)))
    if adapter is not None:
        return _adapted(model, adapter, none)
    if hasattr(model, "sides") and hasattr(model, "sites"):
        return _ours(model, none)
    parameters = {p.name: p for p in inspect.signature(model.forward).parameters.values()
                  if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}  # fmt: skip
    if "input_ids" in parameters and ("attention_mask" in parameters or owners[0] is not None):
        return _of_transformers(model, parameters.keys(), none)
    return _by_names(model, parameters, none, score)


def _with_kind(none: Reader, call: Call, is_pair: bool, how: str, model: nn.Module) -> Reader:
    kind = none.kind or (PAIR if is_pair else _guess(model))
    return replace(none, call=call, kind=kind, how=how)


def _guess(model: nn.Module) -> str:
    """The kind of a model that reads one text, by its name; "" where that says nothing."""
    name, config = type(model).__name__, getattr(model, "config", None)
    if getattr(config, "causal", None) is False:
        return TEXT
    if getattr(config, "is_decoder", False):
        return CAUSAL
    if re.search("Masked|Classif|Tagg|BERT|Bert", name):
        return TEXT
    if re.search("GPT|Decoder|Llama|Language|Bigram|LM(?![a-z])|LMHead", name):
        return CAUSAL
    return TEXT if "Encoder" in name else ""


def _adapted(model: nn.Module, adapter: Callable, none: Reader) -> Reader:
    needed = [p for p in inspect.signature(adapter).parameters.values() if p.default is p.empty]
    is_pair = len(needed) >= 3

    def call(src: Tensor, tgt: Tensor | None, real: Tensor) -> Any:
        return adapter(model, src, tgt) if is_pair else adapter(model, src)

    return _with_kind(none, call, is_pair, "your adapter", model)


def _ours(model: Any, none: Reader) -> Reader:
    sides, pad = model.sides(), model.config.pad_id
    is_pair = len(sides) == 2

    def call(src: Tensor, tgt: Tensor | None, real: Tensor) -> Any:
        ids = (src,) if tgt is None else (src, tgt)
        return model(*ids, *Masks().build(model, *ids))

    kind = none.kind or (PAIR if is_pair else
                         CAUSAL if sides[0].predicts == "next token" else TEXT)  # fmt: skip
    return replace(none, call=call, kind=kind, pad=pad if pad >= 0 else None, how="its own masks")


def _of_transformers(model: nn.Module, takes: Iterable[str], none: Reader) -> Reader:
    names = {*takes}

    def call(src: Tensor, tgt: Tensor | None, real: Tensor) -> Any:
        given = {"input_ids": src, "attention_mask": real.long(), "decoder_input_ids": tgt,
                 "use_cache": False}  # fmt: skip
        return model(**{name: value for name, value in given.items() if name in names})

    told = [n for n in ("input_ids", "decoder_input_ids", "attention_mask") if n in names]
    return _with_kind(none, call, "decoder_input_ids" in names, ", ".join(told), model)


def _by_names(
    model: nn.Module, parameters: Mapping[str, inspect.Parameter], none: Reader,
    score: Callable[[Reader], Score],
) -> Reader:  # fmt: skip
    """What is neither a mask, a length nor a number, and has no default, are ids."""
    said = f"forward({', '.join(parameters)}) of {type(model).__name__}"
    masks = [n for n in parameters if re.search("mask|pad", n.lower()) and n != "is_causal"]
    others = [name for name in parameters if name not in masks]
    ids = [n for n in others if parameters[n].default is inspect.Parameter.empty
           and not LENGTH.search(n.lower()) and not _is_number(n, parameters)]  # fmt: skip
    ids = ids or others[:1]
    if len(ids) == 3 and ids[2] in ANSWERS:
        ids = ids[:2]
    answers = next((n for n in others if n in ANSWERS and n not in ids), "")
    if not 0 < len(ids) < 3:
        raise CannotCall(f"{said} is not understood. {SAY_HOW}")
    forms = [(ids, answers), *([(ids[:1], ids[1])] if ids[1:] and ids[1] in ANSWERS else [])]
    best, most, error = None, (0, -1), None
    told = none  # where nobody says what is padding, masks and lengths do
    if none.pad is None:
        told = replace(none, pad=0, specials=none.specials | {0})
    for length_first, form, style in product((False, True), forms, (*(STYLES * bool(masks)), None)):
        if length_first and most[0] == 2:
            break
        try:
            given = told if style or any(map(LENGTH.search, parameters)) else none
            each = _named(model, parameters, given, *form, masks if style else [], style)
            kept = score(each := replace(each, length_first=length_first))
        except Exception as problem:  # of the model, called in a way that it does not know
            error = error or problem
            continue
        if kept > most and (not length_first or kept[0] + (kept[1] > most[1]) > 1):
            best, most = each, kept
    if best is None:
        raise CannotCall(f"{said} fails: {message_of(error)[:160]}. {SAY_HOW}") from error
    return replace(best, how=best.how + "; (length, batch)" * best.length_first)


def _is_number(name: str, parameters: Mapping[str, inspect.Parameter]) -> bool:
    """As `start_pos` of models with a cache."""
    return parameters[name].annotation in (int, "int") or name in ("start_pos", "offset")


def _named(
    model: nn.Module, parameters: Mapping[str, inspect.Parameter], none: Reader, ids: Sequence[str],
    answers: str, masks: Sequence[str], style: Style | None,
) -> Reader:  # fmt: skip
    """`ids`: names of one or two; `answers`: that of what follows the text, which some models take
    for their loss, or ""; a mask or a length belongs to the side in its name."""
    is_pair = len(ids) == 2
    is_causal = not is_pair and (none.kind or _guess(model)) == CAUSAL
    needed = {name for name, each in parameters.items() if each.default is each.empty}
    lengths = [name for name in parameters if LENGTH.search(name.lower())]
    numbers = {name: 0 for name in needed if _is_number(name, parameters)}

    def call(src: Tensor, tgt: Tensor | None, real: Tensor) -> Any:
        given: dict[str, Any] = numbers | dict(zip(ids, (src, tgt), strict=False))
        text = src if tgt is None else tgt
        own = real if tgt is None else torch.ones(len(real), tgt.numel() // len(real)) > 0
        reals = {n: own if _is_of_target(n) or is_causal else real for n in (*lengths, *masks)}
        given |= {name: reals[name].sum(1) for name in lengths}
        for name in masks:
            assert style is not None
            mask = _mask(style, name, reals[name], _is_of_target(name) or is_causal)
            if mask is None and name in needed:
                mask = torch.zeros(2 * reals[name].shape[1:], dtype=torch.bool)
            if mask is not None:
                given[name] = mask
        out = model(**given, **({answers: text} if answers in needed else {}))
        if answers and tensor_of(out).shape[1:-1] == (1,) and text.numel() > len(real):
            out = model(**given, **{answers: text})  # nanoGPT's gives all rows only then
        return out

    how = ", ".join([*ids, *lengths, *masks]) + (f"; masks {style.title}" if style else "")
    with_loss = call if is_pair or ids[-1] in ANSWERS else None
    if answers and not is_pair:
        with_loss = lambda src, tgt, real: model(**{ids[0]: src, answers: src})  # noqa: E731
    return replace(_with_kind(none, call, is_pair, how, model), with_loss=with_loss)


def _is_of_target(name: str) -> bool:
    """Or else of the source: for its encoder, or for cross-attention."""
    name = name.lower()
    if re.search("mem|cross|src_tgt|enc_dec|encoder_attention", name):
        return False
    return bool(re.search("tgt|trg|dec|target|look|causal|no_?peak|^d_|future", name))


def _mask(style: Style, name: str, real: Tensor, of_target: bool) -> Tensor | None:
    if "key_padding" in name or ("padding_mask" in name and style.axes == 2):
        return ~real if style.hidden else real
    if of_target:
        return style.target(real)
    if style.axes == 2 and style.hidden:
        return None  # PyTorch's src_mask and memory_mask, which hide nothing
    return style.padding(real)
