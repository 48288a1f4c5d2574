"""A file of recordings in the place of a checkpoint: a model that knows its own texts by heart, and
no others."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from headlight.model.checkpoint import Changes, Checkpoint
from headlight.model.masks import Masks
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Part
from headlight.model.recording.file import opened
from headlight.model.recording.predictions import Name, known
from headlight.model.recording.recording import Recording
from headlight.model.recording.texts import as_typed
from headlight.model.recording.weights import CannotRecord
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.tokenizer import CannotRead, Encoding, Tokenizer
from headlight.model.transformer import Config

NO_MODEL = "A recording holds attention weights and predictions alone, not the model."
LONGEST = 2**17  # tokens of a text


# Of what reads and writes texts, all that a trace asks of a model.
OF_NO_MODEL = Config(
    vocab_size=2**31, d_model=1, n_heads=1, max_length=LONGEST, pad_id=-1, bos_id=-1, eos_id=-1
)


class RecordedModel(ProbedModel):
    """What a recording says of its model: where attention happens and what it reads."""

    def __init__(self, recordings: list[Recording]):
        super().__init__()
        self.recordings = recordings
        self.config = OF_NO_MODEL
        # Where a model is, is told by its first parameter.
        self.none = nn.Parameter(torch.zeros(0), requires_grad=False)

    def sites(self) -> tuple[Site, ...]:
        return self.recordings[0].sites

    def sides(self) -> tuple[Side, ...]:
        return tuple(self.recordings[0].sides.values())


class RecordedTexts(Tokenizer):
    """In the place of a tokenizer: it knows its own texts alone."""

    kind = "recorded"

    def __init__(self, texts: dict[str, Encoding]):
        self.texts = texts

    @property
    def target(self) -> "RecordedTexts":
        return self

    def __len__(self) -> int:
        return 0

    def at_least(self, text: str) -> int:
        return 0

    def encode(self, text: str) -> Encoding:
        if text not in self.texts:
            few = " · ".join(f"“{known}”" for known in list(self.texts)[:3])
            raise CannotRead(f"{NO_MODEL} It knows its own texts alone: {few}")
        return self.texts[text]

    def decode(self, ids) -> str:
        """The text with these ids."""
        return next((known for known, text in self.texts.items() if text.ids == tuple(ids)), "")


@dataclass(frozen=True)
class Recorded(Checkpoint):
    """Recordings, as a checkpoint."""

    model: RecordedModel
    lacks: ClassVar[str] = NO_MODEL

    @property
    def recordings(self) -> list[Recording]:
        return self.model.recordings

    @property
    def lines(self) -> list[str]:
        """Its texts, as one types them."""
        return [as_typed(next(iter(one.texts.values()))) for one in self.recordings]

    def translate(
        self,
        text: str,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
        other: Run | None = None,
        donor: Checkpoint | None = None,
    ) -> Encoding:
        """The recorded target."""
        return [*self._of(self.encode(text)).texts.values()][-1]

    def parts(self) -> list[Part]:
        return []

    def shifts(self) -> dict[str, np.ndarray]:
        return {}

    def trace_run(
        self, run: Run, donor: Checkpoint | None = None, written: bool = False
    ) -> Recording:
        if run.changes:
            raise CannotChange(f"“{run.changes[0]}”: {NO_MODEL}")
        return replace(self._of(run.texts[0]), run=run)

    @cached_property
    def _name(self) -> Name:
        each = ((one.predictions, one.preceding) for one in self.recordings)
        return known((made, preceding) for made, preceding in each if made)

    def outputs(
        self, ids: Iterable[int], preceding: Iterable[int | None] = repeat(None)
    ) -> list[str]:
        """Labels of what was predicted; of another id its number, as in <7>."""
        return [self._name(*pair) for pair in zip(ids, preceding, strict=False)]

    def _of(self, text: Encoding) -> Recording:
        for one in self.recordings:
            if next(iter(one.texts.values())) == text:
                return one
        raise CannotRead(NO_MODEL)


def load_recorded(path: str | Path) -> Recorded:
    """Raises CannotRecord."""
    recordings = opened(path)
    first = recordings[0]
    for i, one in enumerate(recordings):
        if (one.sites, one.sides) != (first.sites, first.sides):
            raise CannotRecord(f"Recording {i + 1} has other heads or texts than the first.")
    texts = {as_typed(text): text for one in recordings for text in one.texts.values()}
    title = f"recording of {first.origin}" if first.origin else "recording"
    card: dict = {"title": title, "look_for": " ".join(first.notes)}
    if first.predictions and first.predictions.predicts == "class":
        named = zip(first.predictions.best[0][0].tolist(), first.predictions.labels[0], strict=True)
        card["classes"] = [label for _, label in sorted(named)]
    return Recorded(RecordedModel(recordings), RecordedTexts(texts), card, "recorded")
