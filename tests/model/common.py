"""What the model's tests share: small random models and sentences."""

import gc
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import fields
from types import FunctionType, ModuleType

import pytest
import torch
from torch import Tensor, nn

from headlight.model import checkpoint, presets
from headlight.model.checkpoint import SHIPPED, Checkpoint
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace, trace
from headlight.model.tokenizer import Encoding, Tokenizer
from headlight.model.transformer import Transformer
from tests.devices import current, here, within

PRESETS = ["paper", "pre_norm"]  # the encoder-decoders
SIZES = dict(vocab_size=53, d_model=24, n_heads=4, d_ff=40, dropout=0.1, max_length=40)
DEPTHS = dict(n_encoder_layers=2, n_decoder_layers=3)
ALL_MASKS = [Masks(*switches) for switches in itertools.product([True, False], repeat=4)]
CHECKPOINTS = sorted(path.parent for path in SHIPPED.glob("*/config.json"))


def in_short(values: Iterable, *chosen) -> list:
    """For parametrize: the chosen values always, the others in `make test-long`."""
    return [one if one in chosen else pytest.param(one, marks=pytest.mark.long) for one in values]


def random_model(preset: str = "paper", seed: int = 0, **sizes) -> Transformer:
    """A model in eval mode. Norms and biases too are random: at their initial values a
    mistake in them would not show."""
    torch.manual_seed(seed)
    model = presets.build(preset, **SIZES | depths(preset) | sizes).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in name and "weight" in name), std=0.2)
    return here(model.requires_grad_(False))


def load(name) -> Checkpoint:
    """As checkpoint.load, on the device under test."""
    loaded = checkpoint.load(name)
    here(loaded.model)
    return loaded


def depths(preset: str) -> dict[str, int]:
    """DEPTHS, of the stacks that a preset has."""
    config = presets.PRESETS[preset].config
    return {f.name: DEPTHS[f.name] for f in fields(config) if f.name in DEPTHS and f.default}


def run_of(model: nn.Module, src: Encoding, tgt: Encoding, masks=Masks(), pad_to: int = 0) -> Run:
    """The run of a model on a pair, or on the source where it reads one text."""
    return Run((src, tgt)[: len(model.sides())], masks, pad_to)


def traced(model: nn.Module, *pair: Encoding, masks=Masks(), pad_to: int = 0) -> Trace:
    return trace(model, run_of(model, *pair, masks, pad_to))


def random_ids(*lengths: int, vocab_size: int = 53, generator=None) -> Tensor:
    """One random sentence per length, padded at the end to the longest: (batch, length)."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, vocab_size, (length,), generator=generator)
    return here(ids)


def encoding(ids: Tensor) -> Encoding:
    """One sentence of ids under made-up tokens."""
    ids = tuple(ids.flatten().tolist())
    return Encoding(ids, tuple(map(str, ids)), tuple((i, i + 1) for i in range(len(ids))))


def hooks(model: nn.Module) -> int:
    """Forward hooks and pre-hooks on a model and all its parts."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def attentions(model: Transformer) -> Iterator[tuple[str, int, nn.Module]]:
    """Every attention of a model: kind, layer, module."""
    # By hand, as a check of model.sites().
    for i, layer in enumerate(model.encoder.layers):
        yield "encoder", i, layer.self_attn
    for i, layer in enumerate(model.decoder.layers):
        yield "decoder", i, layer.self_attn
        yield "cross", i, layer.cross_attn


def tiny_tokenizer(vocab_size: int = 320) -> Tokenizer:
    """Trained on made-up lines."""
    lines = ["The dog sees the dog.", "A dog and the cat", "Ein Hund sieht die Katze, oder?"]
    return Tokenizer.train(lines * 3, vocab_size)


def assert_close(ours, theirs) -> None:
    """As torch.testing.assert_close, and as close as may be asked of the device."""
    device = current()
    loose = {} if device.type == "cpu" else dict(rtol=within(0), atol=within(0))
    torch.testing.assert_close(ours, theirs, **loose)


def max_difference(ours, theirs) -> float:
    return (ours - theirs).abs().max().item()


def check_view(model: nn.Module) -> None:
    """That a view has the same parts, and that nothing in it leads to a module of the model or to
    what one of them may change."""
    own = view(model)
    parts, theirs = ([(n, type(m)) for n, m in one.named_modules()] for one in (own, model))
    assert parts == theirs and str(own) == str(model)
    assert list(own.state_dict()) == list(model.state_dict())
    kept_apart = {id(module): module for module in model.modules()}
    for module in model.modules():
        containers = (v for v in vars(module).values() if isinstance(v, dict | set | list))
        kept_apart |= {id(one): one for one in containers}
    found, seen = [own], set()
    while found:
        one = found.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType | torch.Tensor):
            continue
        seen.add(id(one))
        assert id(one) not in kept_apart, one
        found += gc.get_referents(one)
