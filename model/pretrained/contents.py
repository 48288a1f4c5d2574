"""From what a model's files say to the model, the same for every kind of file.

Everything that can be wrong is looked for before memory is taken: what the description says is
compared with the shapes in the headers of the weights, by a model that holds no numbers.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from headlight.model import presets
from headlight.model.families.family import Family, Sizes, Ties
from headlight.model.families.values import Described
from headlight.model.memory import available
from headlight.model.pretrained.tokenizers import check_vocabulary, special_ids
from headlight.model.pretrained.weights import CannotLoad, Progress, WeightFile
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import Tokenizer

ROUNDED = "Some of its weights are stored as float64. Headlight rounds them to float32."


@dataclass(frozen=True)
class Contents:
    """What is known of a model before a number of it is read.

    where      the folder or file, for sentences about it
    config     the description of its sizes and special tokens
    more       sizes that stand elsewhere
    tokenizer  makes its tokenizer, and raises CannotLoad
    card       as in model/card.py
    files      those with its weights
    """

    where: Path
    family: Family
    config: Described
    weights: WeightFile
    tokenizer: Callable[[], Tokenizer]
    card: dict
    files: tuple[Path, ...]
    more: Sizes

    @property
    def parameters(self) -> int:
        """Numbers in its files."""
        return sum(map(math.prod, self.weights.shapes.values()))

    @property
    def bytes(self) -> int:
        """Of the files with its weights."""
        return sum(file.stat().st_size for file in self.files)


@dataclass(frozen=True)
class Pretrained:
    """The model in eval mode, float32, on the CPU."""

    model: ProbedModel
    tokenizer: Tokenizer
    card: dict
    preset: str


def built(contents: Contents, progress: Progress) -> Pretrained:
    """The model in our own classes. Raises CannotLoad."""
    where, family, config = contents.where, contents.family, contents.config
    weights = contents.weights
    plain = weights.plain(family.prefix)
    _check_types(contents)
    shared = tied(weights, family.ties(config), plain)
    sizes = family.sizes(config, weights) | contents.more
    for field, (one, other) in family.one_matrix.items():
        sizes[field] = family.stored(one, shared).name == family.stored(other, shared).name
    _check_sizes(contents, sizes, shared)
    tokenizer = contents.tokenizer()
    check_vocabulary(where, tokenizer, sizes)
    sizes |= special_ids(where, tokenizer, config, family, sizes["vocab_size"])
    try:
        with torch.device("meta"):
            model = presets.build(family.preset, **sizes)
    except (ValueError, RuntimeError) as error:
        raise CannotLoad(f"{config.where}: {error}.") from None
    stored = {ours: family.stored(ours, shared) for ours, _ in model.named_parameters()}
    weights.check(model, stored, config.said_by)
    names = [place.name for place in stored.values()]
    ignored = (name for theirs, name in plain.items() if re.match(family.ignored, theirs))
    weights.check_known([*names, *ignored])
    check_memory(where, model)
    weights.fill(model, stored, progress)
    if weights.rounded and torch.get_default_dtype() == torch.float32:
        contents.card["rounded"] = True
    return Pretrained(model.eval(), tokenizer, contents.card, family.preset)


def _check_types(contents: Contents) -> None:
    """Whether all parameters are stored as real numbers; integers may be a table or a mask."""
    family, weights = contents.family, contents.weights
    tied_ones = {name for group in family.ties(contents.config) for name in group}
    for name, kind in weights.others.items():
        theirs = name.removeprefix(family.prefix)
        if theirs in tied_ones or family.has(theirs):
            raise CannotLoad(
                f"{weights.where} stores {name} in {kind}. Find the model in float32, float16 "
                "or bfloat16."
            )


def _check_sizes(contents: Contents, sizes: Sizes, plain: dict[str, str]) -> None:
    """What decides how much is built: the embedding's shape and the number of layers."""
    where, family, config = contents.where, contents.family, contents.config
    shapes, said_by = contents.weights.shapes, config.said_by
    name = plain.get(family.embedding)
    if name is None:
        raise CannotLoad(f"{where} lacks the weight {family.embedding}.")
    wanted = sizes["vocab_size"], sizes["d_model"]
    if shapes[name] != wanted:
        raise CannotLoad(
            f"{where}: {name} has shape {shapes[name]}, but {said_by} says {wanted} (tokens, "
            "d_model)."
        )
    for field, pattern in family.layers.items():
        matches = [re.match(pattern, name) for name in plain]
        count = len({match[1] for match in matches if match})
        if count != sizes[field]:
            raise CannotLoad(
                f"{where} has {count:,} layers in its weights, but {said_by} says {sizes[field]:,}."
            )
    largest = max(max(shape, default=0) for shape in shapes.values())
    for field in ("d_ff", "n_heads", "head_size", "n_segments"):
        if sizes.get(field, 0) > 3 * largest:
            raise CannotLoad(
                f"{config.where} has {sizes[field]:,} for {field}, more than any shape "
                "in its weights."
            )


def check_memory(where: Path, model: ProbedModel) -> None:
    """Raises CannotLoad for a model whose numbers do not fit, with the largest of its tensors as it
    is stored besides."""
    sizes = [p.numel() * torch.get_default_dtype().itemsize for p in model.parameters()]
    needed, free = sum(sizes) + max(sizes), available()
    if needed > free:
        raise CannotLoad(
            f"{where} needs {needed / 1e9:,.1f} GB of memory as float32, but only "
            f"{free / 1e9:,.1f} GB are free on this machine."
        )


def tied(weights: WeightFile, groups: Ties, plain: Mapping[str, str]) -> dict[str, str]:
    """`plain` with the tensor that each weight of a group has: its own if one is stored that
    differs, else the group's, which is the first that is stored. So does transformers 5."""
    shared = dict(plain)
    for group in groups:
        stored = [plain[name] for name in group if name in plain]
        for name in group if stored else ():
            own = plain.get(name, stored[0])
            if own == stored[0] or weights.equal(own, stored[0]):
                shared[name] = stored[0]
    return shared
