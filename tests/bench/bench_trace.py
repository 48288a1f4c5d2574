"""Writing what every head sees in a file of sentences should cost little more than reading it."""

import atexit
import random
import tempfile
from functools import partial
from pathlib import Path

import torch

from headlight.model import checkpoint, load
from headlight.model.masks import Masks
from headlight.model.surveys.sentences import BATCH, Line, encode, windows
from headlight.model.surveys.trace_command import Processes, run
from headlight.model.training.data import batches, pad
from tests.bench.harness import Row
from tests.conftest import ROOT
from tests.devices import current, here

SENTENCES = 1000
chance = random.Random(0)


def pairs() -> list[Line]:
    """Made up of the words of the examples, about as long as the captions of Multi30K."""
    text = (ROOT / "assets" / "examples" / "en-de.txt").read_text(encoding="utf-8")
    words = text.split()
    lengths = [min(30, max(4, round(chance.gauss(12, 4)))) for _ in range(SENTENCES)]
    return [
        Line(number, *(" ".join(chance.choices(words, k=length)) for _ in ("source", "target")))
        for number, length in enumerate(lengths, start=1)
    ]


def whole_file(suffix: str):
    """From texts to the finished file, against forward passes of the same batches, with logits,
    that nobody looks into."""
    held: checkpoint.Checkpoint = load("en-de")
    here(held.model)
    lines, one = pairs(), Processes(0, 1, current())
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    passes = []
    for window in windows(encode(held, lines)):
        for batch in batches([s.texts for s in window], BATCH):
            src, tgt = (here(pad(list(side), 0)) for side in zip(*batch, strict=True))
            passes.append((src, tgt, *Masks().build(held.model, src, tgt)))

    def ours():
        run(held, encode(held, lines), Path(folder.name) / f"weights{suffix}", one)

    @torch.inference_mode()
    def theirs():
        for inputs in passes:
            held.model(*inputs)

    return ours, theirs


ROWS = [
    Row(
        name=f"file of sentences, {suffix}",
        condition=f"1,000 texts of about 12 words with targets → {suffix} with all weights ÷ bare "
        "forward passes of the same batches, en-de (4+4 layers, 4 heads)",
        bar=1.2,
        sides=partial(whole_file, suffix),
        pairs=9,
        warm_up=1,
    )
    for suffix in (".npz", ".parquet", ".csv")
]
