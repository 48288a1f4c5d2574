"""A file of recordings in the place of a checkpoint: a model that knows its own texts by heart, and
no others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, repeat
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from headlight.model import checkpoint
from headlight.model.checkpoint import Changes, Checkpoint
from headlight.model.masks import Masks
from headlight.model.messages import short
from headlight.model.pretrained.weights import Progress
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Part
from headlight.model.recording.predictions import Name, known
from headlight.model.recording.recording import (
    ENDING,
    LARGEST,
    Recording,
    check_alike,
    opened,
    save,
)
from headlight.model.recording.texts import as_typed
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.tokenizer import CannotRead, Encoding, Tokenizer
from headlight.model.transformer import Config

NO_MODEL = "A recording holds attention weights, not the model."


# Of what reads and writes texts, all that a trace asks of a model.
OF_NO_MODEL = Config(
    vocab_size=2**31, d_model=1, n_heads=1, max_length=2**17, pad_id=-1, bos_id=-1, eos_id=-1
)


class RecordedModel(ProbedModel):
    """What a recording says of its model: where attention happens and what it reads."""

    config = OF_NO_MODEL

    def __init__(self, first: Recording):
        super().__init__()
        self._first = first
        # Where a model is, is told by its first parameter.
        self.none = nn.Parameter(torch.zeros(0), requires_grad=False)

    def sites(self) -> tuple[Site, ...]:
        return self._first.sites

    def sides(self) -> tuple[Side, ...]:
        return tuple(self._first.sides.values())


class RecordedTexts(Tokenizer):
    """In the place of a tokenizer: it knows its own texts alone, by the line that each is called.
    `target` knows those of the second side."""

    kind = "recorded"

    def __init__(self, texts: dict[str, Encoding], targets: dict[str, Encoding]):
        self.texts = texts
        self._target = RecordedTexts(targets, {}) if targets else self

    @property
    def target(self) -> "RecordedTexts":
        return self._target

    def __len__(self) -> int:
        return 0

    def at_least(self, text: str) -> int:
        return 0

    def encode(self, text: str) -> Encoding:
        if text not in self.texts:
            few = " · ".join(f"“{short(known, 50)}”" for known in list(self.texts)[:3])
            raise CannotRead(f"{NO_MODEL} It knows only these texts: {few}")
        return self.texts[text]

    def decode(self, ids) -> str:
        """The text with these ids."""
        return next((known for known, text in self.texts.items() if text.ids == tuple(ids)), "")


def _by_line(recordings: Iterable[Recording], side: int) -> dict[str, Recording]:
    """Recordings by their texts on one side, as one would type them; where two texts read the same,
    with a number."""
    known: dict[str, Recording] = {}
    for one in recordings:
        line = as_typed(list(one.texts.values())[side]) or "text"
        names = chain([line], (f"{line} ({number})" for number in count(2)))
        known[next(name for name in names if name not in known)] = one
    return known


@dataclass(frozen=True, repr=False)
class Recorded(Checkpoint):
    """Recordings, as a checkpoint. `by_line`: each by its text, as one types it."""

    model: RecordedModel
    tokenizer: RecordedTexts
    by_line: Mapping[str, Recording] = field(default_factory=dict)
    lacks: ClassVar[str] = NO_MODEL

    @property
    def recordings(self) -> list[Recording]:
        return list(self.by_line.values())

    @property
    def lines(self) -> list[str]:
        """Its texts, as one types them."""
        return list(self.by_line)

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
        self.encode(text)  # raises for another text
        written = list(self.by_line[text].texts.values())[-1]
        return replace(written, text=self.decode(written))

    def parts(self) -> list[Part]:
        return []

    def trace_run(
        self, run: Run, donor: Checkpoint | None = None, written: bool = False
    ) -> Recording:
        if run.changes:
            raise CannotChange(f"“{run.changes[0]}”: {NO_MODEL}")
        for one in self.recordings:
            if tuple(one.texts.values()) == run.texts:
                return replace(one, run=run)
        raise CannotRead(f"{NO_MODEL} This text was recorded with another target.")

    @cached_property
    def _name(self) -> Name:
        each = ((one.predictions, one.preceding) for one in self.recordings)
        return known((made, preceding) for made, preceding in each if made)

    def outputs(
        self, ids: Iterable[int], preceding: Iterable[int | None] = repeat(None)
    ) -> list[str]:
        """Labels of what was predicted; of another id its number, as in <7>."""
        return [self._name(*pair) for pair in zip(ids, preceding, strict=False)]

    def save(self, path: str | Path, half: bool = False) -> None:
        """See `recording.save`."""
        save(path, self.recordings, half)

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.recordings)


def load_recorded(source: str | Path | bytes, name: str = "", most: int = LARGEST) -> Recorded:
    """A file of recordings, as `file.opened` takes it. Raises CannotRecord."""
    recordings = opened(Path(source) if isinstance(source, str) else source, name, most)
    check_alike(recordings)
    by_line, first = _by_line(recordings, 0), recordings[0]
    texts, targets = (
        {line: list(one.texts.values())[side] for line, one in _by_line(recordings, side).items()}
        for side in (0, min(1, len(first.texts) - 1))
    )
    tokenizer = RecordedTexts(texts, targets if len(first.texts) > 1 else {})
    card: dict = {"title": title_of(first.origin), "look_for": " ".join(first.notes)}
    if first.predictions and first.predictions.predicts == "class":
        named = zip(first.predictions.best[0][0].tolist(), first.predictions.labels[0], strict=True)
        card["classes"] = [label for _, label in sorted(named)]
    return Recorded(RecordedModel(first), tokenizer, card, "recorded", by_line=by_line)


def title_of(origin: str) -> str:
    return f"recording of {origin}" if origin else "recording"


def load(
    name: str | Path,
    progress: Progress = lambda count, total: None,
    device: str | torch.device = "cpu",
) -> Checkpoint:
    """As `checkpoint.load`, and a file of recordings, which ends in .safetensors, as a model that
    knows only its own texts: raises CannotRecord for one that is broken.

    >>> load("en-fr").translate("A dog runs.").text
    'Un chien court.'
    """
    if isinstance(name, nn.Module):
        raise TypeError(
            "load opens a name, a folder or a file. For a model in memory, use record(model, …) "
            "for its weights, show(model, …) for a picture, or open(model, …) for the dashboard."
        )
    is_file = Path(name).suffix == ENDING and Path(name).is_file()
    return load_recorded(name) if is_file else checkpoint.load(name, progress, device)
