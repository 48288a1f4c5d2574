"""Positional tables that a model may be given in place of its own, (position, d_model)."""

import torch
from torch import Tensor, nn

from headlight.model.transformer import PositionalEncoding

POSITION_KINDS = ("sinusoidal", "learned", "none", "shifted")


def kind_of_table(position: nn.Module) -> str:
    return "sinusoidal" if isinstance(position, PositionalEncoding) else "learned"


@torch.no_grad()
def full_table(position: nn.Module, max_length: int) -> Tensor:
    """All rows, (max_length, d_model), whatever hooks there are."""
    return position.forward(max_length)


@torch.no_grad()
def table_of(kind: str, position: nn.Module, max_length: int, shift: int = 0) -> Tensor:
    """A table of a kind in KINDS, (position, d_model), for a model whose table is `position`.

    A kind other than the model's has the lengths of the model's vectors: sinusoids, or, for a
    learned table, random vectors, the same every time. "shifted" leaves out the first `shift`
    rows.
    """
    table = full_table(position, max_length)
    if kind == "none":
        return torch.zeros_like(table)
    if kind == "shifted":
        return table[shift:]
    if kind == kind_of_table(position):
        return table
    if kind == "learned":
        chance = torch.Generator().manual_seed(0)  # PyTorch's own belongs to all sessions
        other = torch.randn(table.shape, generator=chance)
    else:
        other = PositionalEncoding(len(table), table.shape[1]).table
    other = nn.functional.normalize(other.to(table), dim=-1)
    return other * table.norm(dim=-1, keepdim=True)
