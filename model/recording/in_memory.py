"""A model of transformers that is in memory, in the place of a checkpoint: it runs in its own code
(see watch.py), and what is known of it are its attention weights and its predictions."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from headlight.model.arguments import whole
from headlight.model.checkpoint import Changes, Checkpoint
from headlight.model.masks import Masks
from headlight.model.probing.changes import Change, parsed
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Part
from headlight.model.probing.trace import TooLong, check_memory, read_of
from headlight.model.recording.checkpoint import OF_NO_MODEL, RecordedModel
from headlight.model.recording.inputs import (
    device_of,
    given,
    most_tokens,
    target_of,
    theirs,
    written,
)
from headlight.model.recording.live import (
    asks_table,
    placed,
    record_model,
    record_pass,
)
from headlight.model.recording.recording import Recording
from headlight.model.recording.texts import Names
from headlight.model.recording.watch import (
    NAME,
    Call,
    Room,
    Watch,
    configs_of,
    names_of,
    register,
    unchanged,
    watching,
)
from headlight.model.recording.weights import CannotRecord
from headlight.model.tokenizer import Encoding, Tokenizer

LACKS = "This model runs in its own code: only its attention weights and predictions are known."
PROBE = "A small black cat sleeps."  # read once, to see where attention happens
Ids = Sequence[int]


class TheirModel(RecordedModel):
    """What one pass says of a model: where attention happens, and which texts it reads. Asked for
    parameters it gives the model's."""

    def __init__(self, model: nn.Module, first: Recording):
        super().__init__(first)
        # No parts of this module: views of it copy nothing. The second is within the first.
        self._models: tuple[Any, Any] = model, theirs(model)
        self.config = replace(OF_NO_MODEL, max_length=most_tokens(self.own, OF_NO_MODEL.max_length))

    @property
    def given(self) -> Any:
        """The model as it was given, which may wrap its own."""
        return self._models[0]

    @property
    def own(self) -> Any:
        """The model of transformers."""
        return self._models[1]

    def named_parameters(self, *given: Any, **more: Any) -> Iterator[tuple[str, nn.Parameter]]:
        return self.given.named_parameters(*given, **more)


class TheirTokenizer(Tokenizer):
    """A tokenizer of transformers, in the place of ours: it adds its special tokens."""

    kind = "theirs"

    def __init__(self, theirs: Any):
        self.theirs, self.names = theirs, Names(theirs)

    @property
    def target(self) -> "TheirTokenizer":
        return self

    def __len__(self) -> int:
        return len(self.theirs)

    def at_least(self, text: str) -> int:
        return 0

    def encode(self, text: str) -> Encoding:
        return self.text_of(self.theirs(text)["input_ids"])

    def text_of(self, ids: Ids) -> Encoding:
        """These ids, special tokens in their places."""
        return self.names.text(ids)

    def decode(self, ids: Iterable[int]) -> str:
        return self.theirs.decode(list(ids), skip_special_tokens=True)


@dataclass(frozen=True)
class InMemory(Checkpoint):
    """A model of transformers with its tokenizer, as a checkpoint. `lines`: the texts that it opens
    on."""

    model: TheirModel
    tokenizer: TheirTokenizer
    lines: tuple[str, ...] = ()
    lacks: ClassVar[str] = LACKS

    def parts(self) -> list[Part]:
        """Its heads, if it takes its attention from the table that ours stands in."""
        if not asks_table(self.model.own):
            return []
        return [
            Part("attention", site.kind, site.layer, site.name, "", site.n_heads)
            for site in self.model.sites()
        ]

    def encode(self, text: str, side: int = 0) -> Encoding:
        """As the model's tokenizer makes it, special tokens included; a target as the decoder
        reads it."""
        whole("side", side, 0, len(self.model.sides()) - 1)
        most = self.model.config.max_length
        if side:
            ids, _ = target_of(self.model.own, self.tokenizer.theirs, text)
            read = self.tokenizer.text_of(ids[0].tolist())
        else:
            read = self.tokenizer.encode(text)
        if len(read.ids) > most:
            raise TooLong(self.model.sides()[side].title, len(read.ids), most)
        return read

    def translate(
        self,
        text: str,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
        other: Run | None = None,
        donor: Checkpoint | None = None,
    ) -> Encoding:
        """What the model writes, greedily, in its own code, with its own generation settings."""
        nothing = Encoding((), (), ())
        if not self.writes:
            return nothing
        changes = parsed(changes)
        source = self._ids(self.encode(text))
        with self._changed(changes):
            # With changes each step is a whole pass, in which a call has its place.
            ids, _ = written(
                self.model.given, self.model.own, {"input_ids": source}, use_cache=not changes
            )
        return self.tokenizer.text_of(ids[0].tolist())

    def trace_run(
        self, run: Run, donor: Checkpoint | None = None, written: bool = False
    ) -> Recording:
        texts = read_of(self.model, run)
        check_memory(self.model.sites(), texts)
        names = ("input_ids", "decoder_input_ids")
        ids = {name: self._ids(text) for name, text in zip(names, texts.values(), strict=False)}
        source, *target = texts.values()
        traced = record_pass(
            self.model.given, given(ids, 0), self.tokenizer.names,
            (source, target[0] if target else None), run.changes,
            kinds=self._calls() if self.parts() else None,
        )  # fmt: skip
        return replace(traced, run=run)

    def outputs(
        self, ids: Iterable[int], preceding: Iterable[int | None] = repeat(None)
    ) -> list[str]:
        if self.classes:
            return super().outputs(ids)
        name = self.tokenizer.names.after
        return [name(int(i), before) for i, before in zip(ids, preceding, strict=False)]

    def _ids(self, text: Encoding) -> Tensor:
        return torch.tensor([text.ids], device=device_of(self.model.given))

    @contextmanager
    def _changed(self, changes: Sequence[Change]) -> Iterator[None]:
        """The model with changes, for as many passes as happen in the block."""
        if not changes:
            yield
            return
        given, own = self.model.given, self.model.own
        room = Room([site.name for site in self.model.sites()], (None, None))
        watch = Watch(names_of(own), room, placed(self._calls(), changes), calls=deque(maxlen=0))

        def start_a_pass(*_: Any) -> None:
            watch.counts.clear()
            room.calls.clear()

        starts = [own, own.get_encoder()] if own.config.is_encoder_decoder else [own]
        register()
        with unchanged(given):
            for start in starts:
                start.register_forward_pre_hook(start_a_pass)
            for config in configs_of(given):
                config._attn_implementation_internal = NAME
            token = watching.set(watch)
            try:
                yield
            finally:
                watching.reset(token)

    def _calls(self) -> dict[str, list[Call]]:
        """The calls of attention in a pass, without their weights."""
        counts, found = Counter(), {}
        for site in self.model.sites():
            none = torch.empty(1, site.n_heads, 0, 0)
            call = Call(site.name, counts[site.name], none, site.n_key_heads)
            found.setdefault(site.kind, []).append(call)
            counts[site.name] += 1
        return found


def in_memory(model: nn.Module, tokenizer: Any, *texts: str) -> InMemory:
    """A model and its tokenizer, both of transformers, as a checkpoint that opens on these texts.
    Raises CannotRecord."""
    if not isinstance(model, nn.Module) or theirs(model) is None:
        raise CannotRecord(
            f"{type(model).__name__} is not a model of transformers. Use record or show, which "
            "read any module of PyTorch."
        )
    if tokenizer is None or not callable(tokenizer):
        raise CannotRecord("To read what one types, the model needs its tokenizer.")
    first = record_model(model, tokenizer, texts[0] if texts else PROBE)
    own = theirs(model)
    name = type(own).__name__
    count = sum(parameter.numel() for parameter in model.parameters())
    card: dict = {"title": f"{name} in memory · {count:,} parameters", "look_for": LACKS}
    if any(side.predicts == "class" for side in first.sides.values()):
        label = own.config.id2label
        card["classes"] = [str(label[i]) for i in range(len(label))]
    return InMemory(
        TheirModel(model, first), TheirTokenizer(tokenizer), card, "in memory", lines=texts
    )
