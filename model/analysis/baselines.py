"""What a head is needed for depends on what takes the place of its output.

zero      nothing; a constant that the rest of the model relies on is lost, too
mean      its mean over many texts, so that only what is specific to this text is lost
resample  its output in other texts, so that wrong content comes in as well
random    a control: a random vector of the length that `mean` takes away is added to its output

A head is needed where all three cost more than the control.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headlight.model.by_value import ByValue
from headlight.model.extras import of_extra
from headlight.model.probing.changes import HeadMean, HeadOff, Randomised, Resampled, Scope
from headlight.model.probing.sweeps import Sweep

if TYPE_CHECKING:
    import pandas

ZERO, MEAN, RESAMPLE, CONTROL = "zero", "mean", "resample", "random"
REPLACEMENTS = ZERO, MEAN, RESAMPLE
BEYOND = "{} − random"  # how much more than the control one of them costs
NAMES = {HeadOff: ZERO, HeadMean: MEAN, Resampled: RESAMPLE, Randomised: CONTROL}


@dataclass(frozen=True, repr=False, eq=False)
class Baselines(ByValue):
    """Effects on the score of one run.

    heads    in the order of the model
    effects  each of REPLACEMENTS and CONTROL → (head, draw); zero and mean have one draw
    """

    heads: tuple[Scope, ...]
    effects: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, swept: Sweep) -> "Baselines":
        """Of a whole sweep "baselines" with one score."""
        found: dict[str, dict[Scope, list[float]]] = {}
        for (change, *_), effect in zip(swept.changes, swept.effects, strict=True):
            found.setdefault(NAMES[type(change)], {}).setdefault(change.scope, []).append(effect)
        return cls(
            tuple(found[ZERO]),
            {name: np.array(list(of_head.values())) for name, of_head in found.items()},
        )

    @property
    def needed(self) -> np.ndarray:
        """(head,), whether each replacement costs more than the control: its mean effect is below
        that of every random vector drawn."""
        least = self.effects[CONTROL].min(axis=1)
        return np.all([self.effects[name].mean(axis=1) < least for name in REPLACEMENTS], axis=0)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row for each head: attention, layer and head (from 1), the mean effects, needed."""
        with of_extra("A table"):
            import pandas as pd

        return pd.DataFrame(
            {
                "attention": [head.kind for head in self.heads],
                "layer": [(head.layer or 0) + 1 for head in self.heads],
                "head": [(head.head or 0) + 1 for head in self.heads],
                **{name: effects.mean(axis=1) for name, effects in self.effects.items()},
                "needed": self.needed,
            }
        )
