"""Headlight's Transformer and the tools to look inside it: the public names."""

from headlight.model.decoding.generate import Beam, Greedy, Sampling
from headlight.model.masks import Masks
from headlight.model.presets import build
from headlight.model.pretrained.state_dicts import load_foreign
from headlight.model.probing.capture import capture, view
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace, trace
from headlight.model.recording.checkpoint import load
from headlight.model.recording.live import record
from headlight.model.recording.recording import save
from headlight.model.transformer import Config, Transformer

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
    "record",
    "save",
    "trace",
    "view",
]
