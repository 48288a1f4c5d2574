"""Headlight's Transformer, and what it takes to look inside."""

from model.capture import capture
from model.checkpoint import load
from model.masks import Masks
from model.trace import trace
from model.transformer import Config, Transformer

__all__ = ["Config", "Masks", "Transformer", "capture", "load", "trace"]
