"""What a family of other people's models is: its systems by name, what a Hugging Face config.json
says of their sizes, and what our parameters are called in their files. Each family says it in its
own file, as FAMILY; registry.py finds them."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from headlight.model.families.values import Described
from headlight.model.sites import ProbedModel
from headlight.model.transformer import Config

# Their names of activations → ours.
ACTIVATION_NAMES = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
EPSILON = 0.0, 1.0  # least and most
ONE_MATRIX = {"tied": ("tgt_embedding.token.weight", "generator.weight")}


Sizes = dict[str, Any]  # fields of a Config, which checks them
Ties = tuple[tuple[str, ...], ...]


class Shapes(Protocol):
    """The shapes of a file's weights, and how to read them."""

    shapes: Mapping[str, tuple[int, ...]]

    def opened(self) -> AbstractContextManager[Callable[[str], Tensor]]: ...


@dataclass(frozen=True)
class Preset:
    """A system: its name, how to build it, its kind of Config, what it does otherwise than the
    paper, in a line, the sizes it is shown at, the vocabulary's apart, and whose those are.
    `examples`: the file of English examples, in assets/examples, that its models can read."""

    system: str
    build: Callable[..., ProbedModel]  # of its Config
    config: type[Config]
    differs: str
    vocabulary: Mapping[str, int]
    sizes: Mapping[str, float | str]
    whose_sizes: str = "its own sizes"
    examples: str = ""


@dataclass(frozen=True)
class Stored:
    """Where one of our parameters is: the tensor `name`, or the `part`-th of its `parts` equal
    shares of outputs; `transposed`: (input, output), as in GPT-2."""

    name: str
    transposed: bool = False
    part: int = 0
    parts: int = 1

    def shape(self, ours: torch.Size) -> tuple[int, ...]:
        """Of the tensor, where our parameter has the shape `ours`."""
        shape = (ours[0] * self.parts, *ours[1:])
        return shape[::-1] if self.transposed else shape

    def take(self, tensor: Tensor) -> Tensor:
        """Our parameter out of the tensor."""
        return (tensor.T if self.transposed else tensor).chunk(self.parts)[self.part]


@dataclass(frozen=True)
class Family:
    """A family, and how to read its models.

    preset       what its models are built as
    sizes        config and weights → fields of the preset's Config, without the special tokens
    names        our module, or parameter, → theirs, {} for the number of a layer
    prefix       what may stand before their names
    layers       field of Config → pattern of a layer's names
    embedding    name of the token embeddings
    ties         config → groups of their weights that share a tensor
    one_matrix   field of Config → two of our parameters that are one where it is true
    ignored      pattern of weights that may be there and are not used
    model_types  what a config.json calls its models
    presets      our systems of it by name
    surrounds    whether its tokenizer puts a token on each side of a text
    embeds       whether its Config can say how a model makes one vector of a text, as BertConfig
    starts       whether a target begins with the config's decoder_start_token_id
    """

    preset: str
    sizes: Callable[[Described, Shapes], Sizes]
    names: Mapping[str, str | Stored]
    prefix: str
    layers: Mapping[str, str]
    embedding: str
    ties: Callable[[Described], Ties] = lambda config: ()
    one_matrix: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    ignored: str = r"(?!)"
    model_types: tuple[str, ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict)
    surrounds: bool = False
    embeds: bool = False
    starts: bool = False

    def has(self, theirs: str) -> bool:
        """Whether its models have a parameter of this name, without the prefix."""
        template = re.sub(r"(?<=\.)\d+(?=\.)", "{}", theirs)
        names = {
            place.name if isinstance(place, Stored) else place for place in self.names.values()
        }
        return not names.isdisjoint((template, template.rpartition(".")[0]))

    def stored(self, ours: str, plain: Mapping[str, str]) -> Stored:
        """Where a parameter of ours is, among weights under their `plain` names."""
        numbers = re.findall(r"\.(\d+)\.", ours)
        template = re.sub(r"\.\d+\.", ".{}.", ours)
        module, _, leaf = template.rpartition(".")
        place = self.names.get(template)
        if place is None:
            place = self.names.get(ours.rpartition(".")[0]) or self.names[module]
            place = Stored(place) if isinstance(place, str) else place
            place = replace(place, name=f"{place.name}.{leaf}")
        place = Stored(place) if isinstance(place, str) else place
        theirs = place.name.format(*numbers)
        name = plain.get(theirs, theirs)
        # A bias has no axis of inputs.
        return replace(place, name=name, transposed=place.transposed and leaf == "weight")


def ties_of(*groups: tuple[str, ...], default: bool) -> Callable[[Described], Ties]:
    return lambda config: groups if config.flag("tie_word_embeddings", default) else ()


def layer_names(ours: str, theirs: str, names: Mapping[str, str]) -> dict[str, str]:
    """The names of a layer's modules."""
    return {f"{ours}.{name}": f"{theirs}.{their}" for name, their in names.items()}
