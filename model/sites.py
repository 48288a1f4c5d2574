"""What a model says of itself: the texts it reads (`Side`), where attention happens (`Site`), and
the class of all models that do (`ProbedModel`)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

if TYPE_CHECKING:
    from headlight.model.transformer import Config, FeedForward, MultiHeadAttention


@dataclass(frozen=True)
class Side:
    """One text that a model reads.

    name      in code: "src" or "tgt"
    title     in words
    stack     name of the module that holds its layers: "encoder" or "decoder"
    begins    whether <s> stands before the text
    ends      whether </s> stands behind it
    writes    whether the model writes this text itself, where none is given
    predicts  what the logits tell of it: "next token" (row i scores the token at i + 1), "masked
              token" (row i scores the token at i itself), "class" (one row for the whole text),
              "embedding" (one row, the vector of the whole text) or nothing
    embedding, layers, norm   names of the modules that its vectors pass: what enters layer 1, the
              layers, and what follows the last of them
    table     whether positions are a table that is added to its tokens
    """

    name: str
    title: str
    stack: str
    embedding: str
    layers: tuple[str, ...]
    norm: str
    begins: bool = False
    ends: bool = False
    writes: bool = False
    predicts: str = ""
    table: bool = True


@dataclass(frozen=True)
class Site:
    """One place where attention happens.

    kind        sites of one kind stand in layers above each other: "encoder", "decoder", "cross"
    layer       the layer it stands in, from 0
    name        of its module
    query_side, key_side   names of the texts that queries and keys come from
    title       its kind in words
    masks       which switches of Masks concern it
    n_heads     of the queries; n_key_heads: of keys and values, fewer where queries share them
    window      a query may attend to keys fewer than this many tokens away; 0: to any
    """

    kind: str
    layer: int
    name: str
    query_side: str
    key_side: str
    title: str
    masks: tuple[str, ...]
    n_heads: int
    n_key_heads: int
    window: int = 0


class Layer(nn.Module):
    """A layer of a stack. `sublayers`: each with its norm, in the order of the forward pass;
    `norm_first`: whether that norm comes before it, not after the sum."""

    sublayers: ClassVar[Mapping[str, str]]
    norm_first: ClassVar[bool] = False
    feed_forward: "FeedForward"


OneLayer = TypeVar("OneLayer", bound=nn.Module, covariant=True)


class LayerList(nn.ModuleList, Generic[OneLayer]):
    """A ModuleList whose type says what it holds."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[OneLayer]: ...


def sites_of(
    kind: str, title: str, stack: str, layers: LayerList[Layer], sides: tuple[str, str],
    attention: str, masks: tuple[str, ...],
) -> list[Site]:  # fmt: skip
    """The sites of one kind: the sublayer `attention` of those of the `layers` that have it."""
    sites = []
    for i, layer in enumerate(layers):
        if attention in layer.sublayers:
            name = f"{stack}.layers.{i}.{attention}"
            module: MultiHeadAttention = getattr(layer, attention)
            heads = module.n_heads, module.n_key_heads
            sites.append(Site(kind, i, name, *sides, title, masks, *heads))
    return sites


class ProbedModel(nn.Module):
    """A model that code can look inside without knowing which one it is.

    Its forward takes the ids of each side, (batch, length), and then a mask for each kind of
    attention, in their order: `logits(hidden(*ids, *masks), ids of the predicted side)`.
    """

    config: "Config"
    generator: nn.Module
    # What makes masks in place of the functions of these names in masks.py.
    mask_makers: Mapping[str, Callable[..., Tensor]] = MappingProxyType({})

    def sides(self) -> tuple[Side, ...]:
        """The texts that the model reads."""
        raise NotImplementedError

    def sites(self) -> tuple[Site, ...]:
        """All attention, kind by kind."""
        raise NotImplementedError

    def hidden(self, *args: Any, **kwargs: Any) -> Tensor:
        """Final hidden states of the predicted side, (batch, length, d_model), from ids and masks
        as forward takes them."""
        raise NotImplementedError

    def logits(self, x: Tensor, ids: Tensor) -> Tensor:
        """Logits from final hidden states and the ids of the predicted side."""
        raise NotImplementedError

    @property
    def window(self) -> int:
        """The widest window of its attention; 0: none has one."""
        return max((site.window for site in self.sites()), default=0)
