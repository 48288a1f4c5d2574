"""Who may look at whom. A mask is boolean; True = may attend; it broadcasts to
(batch, heads, query, key)."""

from dataclasses import dataclass

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Every query may attend to what is not padding: (batch, length) → (batch, 1, 1, key)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device=None) -> Tensor:
    """Each position may attend to itself and what came before (section 3.2.3): (query, key)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


@dataclass(frozen=True)
class Masks:
    """Which of the masks are on. All on is how the model was trained."""

    causal: bool = True  # decoder self-attention: no looking ahead
    src_padding: bool = True  # encoder self-attention: no looking at source padding
    tgt_padding: bool = True  # decoder self-attention: no looking at target padding
    memory_padding: bool = True  # cross-attention: no looking at source padding

    def build(
        self, src: Tensor, tgt: Tensor, pad_id: int
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The three masks for these ids: encoder, decoder, cross. None where nothing is masked."""
        src_pad, tgt_pad = padding_mask(src, pad_id), padding_mask(tgt, pad_id)
        src_padded, tgt_padded = not src_pad.all(), not tgt_pad.all()
        tgt_mask = causal_mask(tgt.shape[1], tgt.device)[None, None] if self.causal else None
        if self.tgt_padding and tgt_padded:
            tgt_mask = tgt_pad if tgt_mask is None else tgt_mask & tgt_pad
        return (
            src_pad if self.src_padding and src_padded else None,
            tgt_mask,
            src_pad if self.memory_padding and src_padded else None,
        )
