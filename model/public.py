"""The public names, from the modules that have them."""

from headlight.model.decoding.generate import Beam as Beam
from headlight.model.decoding.generate import Greedy as Greedy
from headlight.model.decoding.generate import Sampling as Sampling
from headlight.model.masks import Masks as Masks
from headlight.model.presets import build as build
from headlight.model.pretrained.state_dicts import load_foreign as load_foreign
from headlight.model.probing.capture import capture as capture
from headlight.model.probing.capture import view as view
from headlight.model.probing.run import Run as Run
from headlight.model.probing.trace import Trace as Trace
from headlight.model.probing.trace import trace as trace
from headlight.model.recording.checkpoint import load as load
from headlight.model.recording.live import record as record
from headlight.model.recording.recording import save as save
from headlight.model.transformer import Config as Config
from headlight.model.transformer import Transformer as Transformer
