"""What a model that is not ours is called with, and which texts these are."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.messages import reason
from headlight.model.probing.trace import NO_ID, TooLong
from headlight.model.recording.texts import Names, Words, as_text
from headlight.model.recording.watch import unchanged
from headlight.model.recording.weights import CannotRecord, unwrapped

NOT_CALLABLE = (
    "A tokenizer of the type {} cannot be called. Wrap it: "
    "PreTrainedTokenizerFast(tokenizer_object=tokenizer)."
)
NO_TOKENIZER = "A text needs the model's tokenizer; without one, give token ids."
MOST_WRITTEN = 64  # tokens of a target that the model writes itself


@dataclass(frozen=True)
class Read:
    """What a pass reads: what the model is called with, and as far as they are known the ids of its
    text (or source) and of its target, and the id that follows the last one."""

    inputs: dict
    ids: tuple[list[int] | None, list[int] | None]
    after: int = NO_ID
    ordered: tuple = ()

    @property
    def lengths(self) -> list[int | None]:
        return [None if ids is None else len(ids) for ids in self.ids]


def check_texts(tokenizer: Any, *texts: Any) -> None:
    """Raises CannotRecord for a tokenizer that is none, and for texts that are neither a text nor
    token ids."""
    if isinstance(tokenizer, str):
        raise CannotRecord("The tokenizer is missing: show(model, tokenizer, text).")
    for text in texts:
        if isinstance(text, str) and tokenizer is None:
            raise CannotRecord(NO_TOKENIZER)
        if isinstance(text, str) and not callable(tokenizer):
            raise CannotRecord(NOT_CALLABLE.format(type(tokenizer).__name__))
        if isinstance(text, Mapping) or hasattr(text, "input_ids"):
            raise CannotRecord("Pass the tokenizer's output as inputs=….")
        is_list = isinstance(text, Sequence) and not isinstance(text, str)
        if is_list and any(isinstance(each, str) for each in text):
            raise CannotRecord("Give one text at a time, or its token ids.")


def _ids(ids, device) -> Tensor:
    try:
        ids = torch.as_tensor(ids, device=device)
        ids = ids[None] if ids.ndim == 1 else ids
        if ids.ndim != 2 or ids.is_floating_point() or ids.is_complex():
            raise ValueError
    except (ValueError, TypeError, RuntimeError, OverflowError):
        raise CannotRecord("Token ids are whole numbers, in a list or a tensor.") from None
    return ids.long()


def _tokenized(tokenizer, text: str, device, **how: str) -> dict[str, Tensor]:
    """What a tokenizer of transformers makes of a text."""
    try:
        made = tokenizer(*([] if how else [text]), return_tensors="pt", **how)
        return {name: each.to(device) for name, each in made.items()}
    except Exception as error:  # a tokenizer may be anything
        raise CannotRecord(f"The tokenizer cannot read this text: {reason(error)}.") from error


def target_of(own: Any, tokenizer, target: str, device=None) -> tuple[Tensor, int]:
    """What the decoder reads of a target, (1, length): a token to start with, and the target but
    for its last token, which is given besides. Raises CannotRecord."""
    labels = _tokenized(tokenizer, target, device, text_target=target).get("input_ids")
    if labels is None or not labels.numel():
        raise CannotRecord("The target is empty.")
    if hasattr(own, "prepare_decoder_input_ids_from_labels"):
        with unchanged(own):
            read = own.prepare_decoder_input_ids_from_labels(labels=labels)
    else:
        configs = own.config, getattr(own, "generation_config", None)
        starts = (getattr(config, "decoder_start_token_id", None) for config in configs)
        if (start := next((each for each in starts if each is not None), None)) is None:
            raise CannotRecord(
                f"{type(own).__name__} does not say with which token a target starts. Give the "
                "target as token ids."
            )
        read = torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1)
    return read, int(labels[0, -1])


def most_tokens(own: Any, most: int) -> int:
    """How many tokens a model has positions for, or `most` if it has no end of them. Where padding
    has a position, those up to it are not used for tokens."""
    said = getattr(own.config.get_text_config(), "max_position_embeddings", None)
    learned = [
        module.num_embeddings - module.padding_idx - 1 for name, module in own.named_modules()
        if isinstance(module, nn.Embedding) and name.rpartition(".")[2] == "position_embeddings"
        and module.padding_idx is not None
    ]  # fmt: skip
    return min([most, *learned, *([said] if isinstance(said, int) and said > 0 else [])])


def check_length(own: Any, read: "Read") -> None:
    """Raises CannotRecord for a text without tokens, and TooLong for one that is longer than the
    model's positions reach."""
    for title, length in zip(("text", "target"), read.lengths, strict=True):
        if length == 0:
            raise CannotRecord(f"The {title} is empty.")
        if length and (most := most_tokens(own, length)) < length:
            raise TooLong(title, length, most)


def theirs(model: nn.Module) -> Any:
    """The model of transformers that a module is, wraps or holds: the outermost one; None if there
    is none."""
    return next((m for m in model.modules() if "PreTrainedModel" in _bases(m)), None)


def _bases(module: nn.Module) -> list[str]:
    return [kind.__name__ for kind in type(module).__mro__]


def check_readable(model: nn.Module) -> None:
    """Raises CannotRecord unless all weights of the model are in this process."""
    parts = [*model.parameters()]
    if any(type(each).__name__ == "DTensor" or hasattr(each, "ds_id") for each in parts) or any(
        "FullyShardedDataParallel" in _bases(module) for module in model.modules()
    ):
        raise CannotRecord(
            "This model is sharded: each process has only some of its numbers. Give a model that "
            "is whole in one process."
        )
    for name, module in model.named_modules():
        own = chain(module.parameters(recurse=False), module.buffers(recurse=False))
        if "_hf_hook" not in vars(module) and any(each.device.type == "meta" for each in own):
            raise CannotRecord(
                f"{unwrapped(name) or type(model).__name__} is on the device meta, where tensors "
                "hold no numbers."
            )


def device_of(model: nn.Module) -> torch.device:
    """Where it wants its inputs; hooks of accelerate bring parts of it there as they are used."""
    hooks = (vars(module).get("_hf_hook") for module in model.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks)
    device = next((each for each in devices if each is not None), None)
    here = (each.device for each in model.parameters() if each.device.type != "meta")
    return next(here, torch.device("cpu")) if device is None else torch.device(device)


def takes_any(model: nn.Module) -> bool:
    """Whether a module takes what those of transformers take, or hands on what it is given."""
    takes = inspect.signature(model.forward).parameters
    hands_on = any(each.kind is each.VAR_KEYWORD for each in takes.values())
    return hands_on or "PreTrainedModel" in _bases(model)


def _accepted(model: nn.Module, inputs: dict) -> dict:
    """Those of the inputs that a module of somebody's own takes."""
    if takes_any(model):
        return inputs
    takes = inspect.signature(model.forward).parameters
    if "input_ids" not in takes:
        raise CannotRecord(
            f"{type(model).__name__} takes no input_ids; give what it is called with, as inputs."
        )
    return {name: each for name, each in inputs.items() if name in takes}


def read_of(model: Any, tokenizer, text, target) -> Read:
    device, own = device_of(model), theirs(model)
    check_texts(tokenizer, text, target)
    if isinstance(text, str):
        inputs = _tokenized(tokenizer, text, device)
    else:
        inputs = {"input_ids": _ids(text, device)}
    inputs = _accepted(model, inputs)
    check_length(own, given(inputs, 0))
    if not getattr(own.config, "is_encoder_decoder", False):
        if target is not None:
            raise CannotRecord("This model reads one text and no target.")
        return given(inputs, 0)
    after = NO_ID
    if target is None:
        if not own.can_generate():
            raise CannotRecord(f"{type(own).__name__} writes no target itself; give one.")
        read, after = written(model, own, inputs)
    elif isinstance(target, str):
        read, after = target_of(own, tokenizer, target, device)
    else:
        read = _ids(target, device)
    made = replace(given(inputs | {"decoder_input_ids": read}, 0), after=after)
    check_length(own, made)
    return made


@torch.no_grad()
def written(model: Any, own: Any, inputs: Mapping, **how: Any) -> tuple[Tensor, int]:
    """The ids that the decoder reads of a target that the model writes itself, greedily, (1,
    length), and the one that it ended with. `own`: see `theirs`; `how`: for `generate`."""
    # Without an end a model writes on, past the positions that it knows.
    most = max(1, min(MOST_WRITTEN, most_tokens(own, 2**20) - 2))
    writer = model if hasattr(model, "generate") else own
    with unchanged(model):
        model.eval()
        ids = writer.generate(**inputs, max_new_tokens=most, do_sample=False, num_beams=1, **how)
    end = own.generation_config.eos_token_id
    ends = end if isinstance(end, list) else [end]
    if ids.shape[1] > 1 and ids[0, -1].item() in ends:
        return ids[:, :-1], int(ids[0, -1])
    return ids, NO_ID


def given(inputs: Mapping | Sequence, row: int) -> Read:
    """What somebody calls the model with."""
    named, ordered = (inputs, ()) if isinstance(inputs, Mapping) else ({}, tuple(inputs))
    ids = [
        each[row].tolist() if isinstance(each, Tensor) and each.ndim == 2 and row < len(each)
        and not each.is_meta else None
        for each in (named.get("input_ids"), named.get("decoder_input_ids"))
    ]  # fmt: skip
    return Read(dict(named), (ids[0], ids[1]), ordered=ordered)


def texts_of_pass(
    found: Mapping[str, Sequence[np.ndarray]], read: Read, names: Names, words: tuple[Words, Words]
) -> list[Words]:
    """The tokens of the text (or source) and of the target: as somebody names them, or as the
    tokenizer does, with their ids wherever there is one for each."""
    shape = next(iter(found.values()))[0].shape if "cross" not in found else found["cross"][0].shape
    lengths = (shape[-1], shape[-2] if "cross" in found else None)
    if len(found) > 1 and "cross" not in found:
        lengths = None, None  # towers, which read each its own
    texts: list[Words] = []
    for word, ids, length in zip(words, read.ids, lengths, strict=True):
        if ids is None or len(ids) != length:
            texts.append(word)
        elif word is None:
            texts.append(names.text(ids))
        else:
            texts.append(replace(as_text(word, len(ids), "text"), ids=tuple(ids)))
    return texts
