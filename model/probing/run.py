"""A run as a value: everything that determines the result of a pass, except the device."""

from dataclasses import dataclass
from types import NoneType

from headlight.model.arguments import kind_of, whole
from headlight.model.by_value import OneLine
from headlight.model.masks import Masks
from headlight.model.probing.changes import Change
from headlight.model.tokenizer import Encoding

FINAL = "final"  # the training step that a checkpoint ends with


@dataclass(frozen=True, repr=False)
class Run(OneLine):
    """One pass of one model over its texts. Equal runs give equal traces.

    >>> copy = load("copy")
    >>> copy.trace_run(copy.run("a b c")) == copy.trace("a b c")
    True

    texts       what each side of the model reads, in the order of `model.sides()`, without special
                tokens and padding
    masks       which masks are on
    pad_to      tokens that each side is padded to; 0: no padding
    checkpoint  the model, by the name that its reader knows it by; empty for one without a name
    step        the training step of its weights
    changes     what is changed in the pass, see changes.py
    other       the run that its patches are taken from
    """

    texts: tuple[Encoding, ...]
    masks: Masks = Masks()
    pad_to: int = 0
    checkpoint: str = ""
    step: str = FINAL
    changes: tuple[Change, ...] = ()
    other: "Run | None" = None

    def __post_init__(self):
        for text in self.texts:
            kind_of("a text of a run", text, Encoding, "an Encoding, as load(…).encode(…) makes it")
        kind_of("masks", self.masks, Masks, "Masks(…)")
        kind_of("other", self.other, (Run, NoneType), "a Run, or None")
        whole("pad_to", self.pad_to, 0)
