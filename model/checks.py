"""What a checkpoint's folder says of itself, compared with the shapes of its weights before
anything is built of it: anyone may have written it. All raise CannotLoad, with a sentence."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from torch import nn

from model.pretrained.weights import CannotLoad
from model.probing.sites import attention_at

LONGEST = 2**16  # tokens; a longer table of positions is a mistake, or meant to fill the memory


def check_sizes(folder: Path, sizes: Mapping, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Whether the weights leave room for each of the sizes, and special tokens are tokens."""
    largest = max(chain.from_iterable(shapes.values()), default=0)
    most = {"max_length": LONGEST, "n_encoder_layers": len(shapes), "n_decoder_layers": len(shapes)}
    for name, size in sizes.items():
        if isinstance(size, int) and size > most.get(name, largest):
            raise CannotLoad(
                f"{folder} says {size:,} for {name}, but by its weights it is at most "
                f"{most.get(name, largest):,}."
            )
    for name in ("pad_id", "bos_id", "eos_id"):
        if not -1 <= sizes.get(name, -1) < sizes["vocab_size"]:
            raise CannotLoad(f"{folder} says {sizes[name]:,} for {name}, which is no token.")


def check_card(folder: Path, model: nn.Module, card) -> None:
    """Whether what is asked of a card can be read from it; the rest of it may say anything."""
    if not isinstance(card, dict):
        raise CannotLoad(f"{folder}: its card is none.")
    for name in ("classes", "direction"):
        texts = card.get(name, [])
        if not isinstance(texts, list) or not all(map(_is_text, texts)):
            raise CannotLoad(f"{folder}: “{name}” in its card is no list of texts.")
    if not _is_text(card.get("task", "")):
        raise CannotLoad(f"{folder}: “task” in its card is no text.")
    if not isinstance(card.get("pruned", []), list):
        raise CannotLoad(f"{folder}: “pruned” in its card is no list of heads.")
    classes, wanted = card.get("classes", []), getattr(model.config, "n_classes", 0)
    if classes and len(classes) != wanted:
        raise CannotLoad(
            f"{folder}: its card names {len(classes)} classes, but the model tells {wanted} apart."
        )


def check_means(file: Path, model: nn.Module, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Whether mean outputs of heads are of this model's."""
    wanted = {
        site.name: (site.n_heads, attention_at(model, site).output.in_features // site.n_heads)
        for site in model.sites()
    }
    if shapes != wanted:
        raise CannotLoad(f"{file} is of another model.")


def _is_text(value: object) -> bool:
    """Half of a character is none."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()
