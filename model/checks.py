"""Checks a checkpoint's config and card against the shapes of its weights before anything is built:
the folder may hold anything. All raise CannotLoad with a message."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.changes import DRAWN
from headlight.model.probing.sites import attention_at
from headlight.model.sites import ProbedModel
from headlight.model.variants import special_ids

LONGEST = 2**16  # tokens; a longer table of positions is a mistake, or meant to fill the memory


def check_sizes(folder: Path, sizes: Mapping, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Checks that the sizes agree with the weights, and that special tokens are in the
    vocabulary."""
    largest = max(chain.from_iterable(shapes.values()), default=0)
    most = {"max_length": LONGEST, "n_encoder_layers": len(shapes), "n_decoder_layers": len(shapes)}
    for name, size in sizes.items():
        if isinstance(size, int) and size > most.get(name, largest):
            raise CannotLoad(
                f"{folder} says {size:,} for {name}, but its weights allow at most "
                f"{most.get(name, largest):,}."
            )
    for name, token, vocabulary in special_ids(sizes):
        if not -1 <= token < vocabulary:
            raise CannotLoad(f"{folder} says {token:,} for {name}, which is not a token.")


def check_card(folder: Path, model: ProbedModel, card) -> None:
    """Checks the entries of a card that are used; the others are ignored."""
    if not isinstance(card, dict):
        raise CannotLoad(f"{folder} has an invalid card.")
    for name in ("classes", "direction"):
        texts = card.get(name, [])
        if not isinstance(texts, list) or not all(map(_is_text, texts)):
            raise CannotLoad(f"{folder}: “{name}” in its card is not a list of texts.")
    if not _is_text(card.get("task", "")):
        raise CannotLoad(f"{folder}: “task” in its card is not text.")
    if not isinstance(card.get("pruned", []), list):
        raise CannotLoad(f"{folder}: “pruned” in its card is not a list of heads.")
    classes, wanted = card.get("classes", []), getattr(model.config, "n_classes", 0)
    if classes and len(classes) != wanted:
        raise CannotLoad(
            f"{folder}: its card names {len(classes)} classes, but the model has {wanted}."
        )


def check_means(file: Path, model: ProbedModel, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Checks that outputs belong to this model's heads: their means, and some that may be drawn."""
    wanted = {
        site.name: (site.n_heads, attention_at(model, site).output.in_features // site.n_heads)
        for site in model.sites()
    }
    drawn = {name: shape for name, shape in shapes.items() if name.endswith(DRAWN)}
    if drawn:
        wanted |= {at + DRAWN: (*drawn.get(at + DRAWN, ())[:1], *of) for at, of in wanted.items()}
    if shapes != wanted or (0,) in {shape[:1] for shape in drawn.values()}:
        raise CannotLoad(f"{file} belongs to another model.")


def _is_text(value: object) -> bool:
    """Raises for a lone surrogate, which is not a character."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()
