"""What each head does by its measures, and what is lost without it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headlight.app.text import head_card, part_names
from headlight.app.text.formats import Parts
from headlight.model.analysis.head_metrics import ALIGNS, Measured, habit_of
from headlight.model.probing.changes import Scope
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Pass
from headlight.model.surveys.survey import ALIGNMENT, Survey


@dataclass(frozen=True)
class HeadHabit:
    """A head by its place, as in `Place`: what it does (`habit`, "" where it follows no pattern) in
    two words and in a sentence; and whether the model is surely worse without it (`missed`)."""

    kind: str
    layer: int
    head: int
    habit: str
    caption: str
    finding: Parts
    missed: bool = False


def head_habits(
    measured: Mapping[str, Measured], trace: Pass, survey: Survey | None = None
) -> list[HeadHabit]:
    """All heads: of a survey, which `measured` is then of, those without which the model loses most
    come first; else those that show their pattern most clearly."""
    heads: list[tuple[float, HeadHabit]] = []
    for kind, numbers in measured.items():
        for layer, head in np.ndindex(numbers.rows["entropy"].shape):
            numbered = Place(kind, part_names.layer_number(trace, kind, layer) - 1, head)
            known = survey.head(*numbered) if survey else {}
            aligned = known[ALIGNMENT]["value"] if ALIGNMENT in known else 0.0
            found = habit_of(numbers, layer, head, aligned)
            habit, nearest = found or ("", None)
            aligned = aligned if habit == ALIGNS else 0.0
            name = part_names.short_name(Scope(*numbered))
            name = name[0].lower() + name[1:]
            caption = "no pattern"
            if nearest:
                caption = head_card.caption(numbers, layer, head, nearest, aligned)
            rank, missed, without = nearest.score if nearest else 0.0, False, ""
            if survey:
                rank = known["loss"]["value"]
                missed = head_card.is_missed(survey, numbered)
                without = head_card.without_head(survey, numbered)
            finding = head_card.head_finding(name, nearest, aligned, without)
            heads.append((-rank, HeadHabit(kind, layer, head, habit, caption, finding, missed)))
    return [head for _, head in sorted(heads, key=lambda pair: pair[0])]
