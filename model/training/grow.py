"""Enlarges a trained model before further training: a new vocabulary and wider feed-forwards."""

import dataclasses
from dataclasses import replace

import torch
from torch import nn

from headlight.model import presets
from headlight.model.checkpoint import Checkpoint
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.data import DataError
from headlight.model.transformer import FeedForward


@torch.no_grad()
def grown(checkpoint: Checkpoint, tokenizer: Tokenizer, d_ff: int) -> Checkpoint:
    """The same model with another tokenizer and wider feed-forwards. A token that the old
    vocabulary has keeps its vector; another one begins with the mean of the tokens that the old
    tokenizer splits it into. New hidden units of a feed-forward read at random and write nothing
    yet, so they leave the model's output as it is."""
    old = checkpoint.model
    if d_ff < old.config.d_ff:
        raise DataError(
            f"d_ff can only grow: {d_ff:,} is less than the model's {old.config.d_ff:,}."
        )
    sizes = dataclasses.asdict(old.config) | {"vocab_size": len(tokenizer), "d_ff": d_ff}
    new = presets.build(checkpoint.preset, **sizes)
    old_parts = dict(old.named_modules())
    with_new_shape = {"src_embedding.token", "tgt_embedding.token", "generator"}
    if old.config.vocab_size != len(checkpoint.tokenizer):
        raise DataError("Only a shared vocabulary can be replaced.")
    for name, part in new.named_modules():
        source = old_parts[name]
        if isinstance(part, FeedForward) and isinstance(source, FeedForward):
            widen(source, part)
        elif name in with_new_shape:
            assert isinstance(part, nn.Embedding | nn.Linear)
            assert isinstance(source, nn.Embedding | nn.Linear)
            part.weight.copy_(vectors(source.weight, checkpoint.tokenizer, tokenizer))
        elif not name.endswith((".linear1", ".linear2")):
            for parameter, value in zip(
                part.parameters(recurse=False), source.parameters(recurse=False), strict=True
            ):
                parameter.copy_(value)
    return replace(checkpoint, model=new.eval(), tokenizer=tokenizer, means={})


def widen(old: FeedForward, new: FeedForward) -> None:
    """Copy the existing hidden units; the output ignores new ones."""
    units = old.linear1.out_features
    new.linear1.weight[:units], new.linear1.bias[:units] = old.linear1.weight, old.linear1.bias
    nn.init.zeros_(new.linear2.weight)
    new.linear2.weight[:, :units] = old.linear2.weight
    new.linear2.bias.copy_(old.linear2.bias)


def vectors(weight: torch.Tensor, old: Tokenizer, new: Tokenizer) -> torch.Tensor:
    """One row for each token of the new vocabulary, (token, d_model)."""
    return torch.stack([weight[old.ids_of_symbol(symbol)].mean(dim=0) for symbol in new.symbols()])
