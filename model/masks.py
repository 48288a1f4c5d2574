"""Which query may attend to which key. A mask is boolean; True = may attend; it broadcasts to
(batch, heads, query, key)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from torch import Tensor

from headlight.model.sites import ProbedModel, Site


def padding(ids: Tensor, pad_id: int, bos_id: int | None = None) -> Tensor:
    """Which tokens are padding, (batch, length). Marian's targets begin with its padding token:
    where both ids are one, the first token is none."""
    is_padding = ids == pad_id
    if bos_id == pad_id:
        is_padding[:, 0] = False
    return is_padding


def padding_mask(ids: Tensor, pad_id: int, bos_id: int | None = None) -> Tensor:
    """Every query may attend to what is not padding: (batch, length) → (batch, 1, 1, key)."""
    return ~padding(ids, pad_id, bos_id)[:, None, None, :]


def causal_mask(length: int, device=None) -> Tensor:
    """Each position may attend to itself and what came before (section 3.2.3): (query, key)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def local_mask(length: int, window: int, device=None) -> Tensor:
    """Each position may attend to those fewer than `window` away, itself included (Beltagy et al.
    2020, section 3.1): (query, key)."""
    near = torch.ones(length, length, dtype=torch.bool, device=device)
    return near.triu(1 - window).tril(window - 1)


@dataclass(frozen=True)
class Masks:
    """Which of the masks are on. All on is how the model was trained.

    >>> trace = load("copy").trace("a b c", masks=Masks(causal=False))
    >>> bool(trace.attention["decoder"][0, 0, 0, 1] > 0)  # the first row looks ahead
    True
    """

    causal: bool = True  # decoder self-attention: no token attends to a later one
    src_padding: bool = True  # encoder self-attention: none attends to source padding
    tgt_padding: bool = True  # decoder self-attention: none attends to target padding
    memory_padding: bool = True  # cross-attention: none attends to source padding

    def build(self, model: ProbedModel, *ids: Tensor) -> tuple[Tensor | None, ...]:
        """A mask for each kind of attention of `model`, in their order, for the ids of each of its
        sides, (batch, length). None where nothing is masked. Sites of a kind share theirs."""
        texts = dict(zip((side.name for side in model.sides()), ids, strict=True))
        kinds = {site.kind: site for site in model.sites()}
        special = model.config.special_ids
        return tuple(
            self.of(
                site, texts[site.query_side], texts[site.key_side], *special(site.key_side)[:2],
                makers=model.mask_makers,
            )
            for site in kinds.values()
        )  # fmt: skip

    def over(self, written: Iterable[int], pad_id: int) -> "Masks":
        """Masks for generated text: a generated `<pad>` is an ordinary token."""
        return replace(self, tgt_padding=False) if pad_id in written else self

    def of(
        self,
        site: Site,
        query: Tensor,
        key: Tensor,
        pad_id: int,
        bos_id: int | None = None,
        makers: Mapping[str, Callable[..., Tensor]] = MappingProxyType({}),
    ) -> Tensor | None:
        """The mask of the attention at a site, from query and key ids, (batch, length). `makers`:
        see ProbedModel."""
        on = [name for name in site.masks if getattr(self, name)]
        mask = None
        if "causal" in on:
            make = makers.get("causal_mask", causal_mask)
            mask = make(query.shape[1], query.device)[None, None]
        if site.window:
            near = local_mask(query.shape[1], site.window, query.device)[None, None]
            mask = near if mask is None else mask & near
        if any(name != "causal" for name in on):
            visible = makers.get("padding_mask", padding_mask)(key, pad_id, bos_id)
            if not visible.all():
                mask = visible if mask is None else mask & visible
        return mask
