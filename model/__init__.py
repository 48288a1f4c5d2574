"""Headlight's Transformer and the tools to look inside it: the public names."""

from model.checkpoint import load
from model.decoding.generate import Beam, Greedy, Sampling
from model.masks import Masks
from model.presets import build
from model.pretrained.state_dicts import load_foreign
from model.probing.capture import capture, view
from model.probing.run import Run
from model.probing.trace import Trace, trace
from model.transformer import Config, Transformer

__all__ = [
    "Beam",
    "Config",
    "Greedy",
    "Masks",
    "Run",
    "Sampling",
    "Trace",
    "Transformer",
    "build",
    "capture",
    "load",
    "load_foreign",
    "trace",
    "view",
]
