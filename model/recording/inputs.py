"""What a model that is not ours is called with, and which texts these are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headlight.model.probing.trace import NO_ID
from headlight.model.recording.texts import Names, Words, as_text
from headlight.model.recording.unchanged import unchanged
from headlight.model.recording.weights import CannotRecord

NO_TOKENIZER = "A text needs the model's tokenizer; without one, give token ids."
MOST_WRITTEN = 64  # tokens of a target that the model writes itself


@dataclass(frozen=True)
class Read:
    """What a pass reads: what the model is called with, and as far as they are known the ids of its
    text (or source) and of its target, and the id that follows the last one."""

    inputs: dict
    ids: tuple[list[int] | None, list[int] | None]
    after: int = NO_ID

    @property
    def lengths(self) -> list[int | None]:
        return [None if ids is None else len(ids) for ids in self.ids]


def _ids(tokenizer, text, device, **how) -> Tensor:
    if isinstance(text, str):
        if tokenizer is None:
            raise CannotRecord(NO_TOKENIZER)
        return tokenizer(text, return_tensors="pt", **how)["input_ids"].to(device)
    ids = torch.as_tensor(text, device=device)
    return ids[None] if ids.ndim == 1 else ids


def read_of(model: Any, tokenizer, text, target) -> Read:
    device = next(model.parameters()).device
    if isinstance(text, str) and tokenizer is not None:
        inputs = {k: v.to(device) for k, v in tokenizer(text, return_tensors="pt").items()}
    else:
        inputs = {"input_ids": _ids(tokenizer, text, device)}
    if not getattr(model.config, "is_encoder_decoder", False):
        if target is not None:
            raise CannotRecord("This model reads one text and no target.")
        return given(inputs, 0)
    after = NO_ID
    if target is None:
        if not getattr(model, "can_generate", bool)():
            raise CannotRecord(f"{type(model).__name__} writes no target itself; give one.")
        read, after = written(model, inputs)
    elif isinstance(target, str):
        if tokenizer is None:
            raise CannotRecord(NO_TOKENIZER)
        labels = tokenizer(text_target=target, return_tensors="pt")["input_ids"].to(device)
        read = model.prepare_decoder_input_ids_from_labels(labels=labels)
        after = int(labels[0, -1])
    else:
        read = _ids(tokenizer, target, device)
    return replace(given(inputs | {"decoder_input_ids": read}, 0), after=after)


@torch.no_grad()
def written(model: Any, inputs: Mapping, **how: Any) -> tuple[Tensor, int]:
    """The ids that the decoder reads of a target that the model writes itself, greedily, (1,
    length), and the one that it ended with. `how`: for `generate`."""
    # Without an end a model writes on, past the positions that it knows.
    most = min(MOST_WRITTEN, getattr(model.config, "max_position_embeddings", 2**20) - 2)
    with unchanged(model):
        model.eval()
        ids = model.generate(**inputs, max_new_tokens=most, do_sample=False, num_beams=1, **how)
    end = model.generation_config.eos_token_id
    ends = end if isinstance(end, list) else [end]
    if ids.shape[1] > 1 and ids[0, -1].item() in ends:
        return ids[:, :-1], int(ids[0, -1])
    return ids, NO_ID


def given(inputs: dict, row: int) -> Read:
    """What somebody calls the model with."""
    ids = [
        each[row].tolist() if isinstance(each, Tensor) and each.ndim == 2 and row < len(each)
        else None
        for each in (inputs.get("input_ids"), inputs.get("decoder_input_ids"))
    ]  # fmt: skip
    return Read(inputs, (ids[0], ids[1]))


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
