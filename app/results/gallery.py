"""What the gallery of heads says of each head: its group, its caption, what is lost without it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headlight.app.components.gallery import GalleryHead, GalleryOptions
from headlight.app.text import head_card, part_names
from headlight.app.text.formats import signed
from headlight.model.analysis.head_metrics import ALIGNS, HABITS, Measured, habit_of
from headlight.model.probing.changes import Scope
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Pass
from headlight.model.surveys.survey import ALIGNMENT, Survey


def gallery_heads(
    measured: Mapping[str, Measured],
    trace: Pass,
    survey: Survey | None = None,
    off: Mapping[str, Sequence[int]] | None = None,
) -> list[GalleryHead]:
    """All heads: of a survey, which `measured` is then of, those without which the model loses most
    come first; else those that show their pattern most clearly. `off`: kind → the tiles of heads
    that are switched off."""
    largest = max((row["value"] for row in survey.of("loss")), default=0.0) if survey else 0.0
    heads: list[tuple[float, GalleryHead]] = []
    for kind, numbers in measured.items():
        layers, n_heads = numbers.rows["entropy"].shape
        for layer, head in np.ndindex(layers, n_heads):
            number = part_names.layer_number(trace, kind, layer)
            numbered = Place(kind, number - 1, head)
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
            bar, lost, missed, without = None, "", False, ""
            rank = nearest.score if nearest else 0.0
            if survey:
                rank = loss = known["loss"]["value"]
                bar = max(loss, 0.0) / largest if largest > 0 else 0.0
                lost = f"loss without it {'+' * (loss >= 0)}{signed(loss, 3)}"
                missed = head_card.is_missed(survey, numbered)
                without = head_card.without_head(survey, numbered)
            finding = head_card.head_finding(name, nearest, aligned, without)
            is_off = layer * n_heads + head in (off or {}).get(kind, ())
            heads.append(
                (
                    -rank,
                    GalleryHead(
                        kind, layer, number, head, name, habit, caption, finding,
                        bar, lost, missed, is_off,
                    ),
                )
            )  # fmt: skip
    return [head for _, head in sorted(heads, key=lambda pair: pair[0])]


MAPS = "Maps: rows are queries, columns keys."


def gallery_options(
    heads: Sequence[GalleryHead],
    kinds: Iterable[str],
    selected: tuple[str, int, int],
    survey: Survey | None,
    note: str,
    says: bool,
    here: str,
) -> GalleryOptions:
    """What stands around the heads: groups that have any, kinds, and the legend of the bars."""
    legend = []
    if survey:
        legend = [f"loss without the head, over {survey.card['sentences']:,} sentences"]
        if any(head.missed for head in heads):
            legend.append("needed, whatever takes its place")
    present = {head.habit for head in heads}
    return GalleryOptions(
        heads=heads,
        habits=[
            (habit, *head_card.HABIT_TITLES[habit]) for habit in (*HABITS, "") if habit in present
        ],
        kinds=[(kind, kind.replace("_", " ")) for kind in kinds],
        selected=selected,
        legend=legend,
        note=f"{MAPS} {note}".strip(),
        says=says,
        here=here,
    )
