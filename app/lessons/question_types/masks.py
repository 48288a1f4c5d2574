"""Questions about masks (section 3.2.3). True means: may attend."""

from typing import ClassVar

import numpy as np

from headlight.app.lessons.formatting import number
from headlight.app.lessons.question import (
    CHOOSE,
    NUMBER,
    PAINT,
    Draw,
    Question,
    QuestionType,
    Veil,
)
from headlight.app.lessons.question_types.attention import row_values
from headlight.app.lessons.sentence_run import NoQuestion, names_of
from headlight.model.misconceptions import OF_MASKS, chosen

PAINTABLE_MASKS = ("causal", "padding", "window")


def mask_of(kind: str, length: int, real: int = 0, width: int = 1) -> np.ndarray:
    """(query, key), True = may attend. `real`: the tokens before the padding; `width`: how far a
    window reaches to either side."""
    places = np.arange(length)
    if kind == "causal":
        return places[:, None] >= places
    if kind == "padding":
        return np.tile(places < real, (length, 1))
    return np.abs(places[:, None] - places) <= width


def booleans(row: np.ndarray) -> str:
    return " ".join("True" if may else "False" for may in row)


class MaskType(QuestionType):
    """A mask to paint, or its squares to count."""

    name = "mask"
    asks: ClassVar = {
        "paint": PAINT,
        "allowed in a row": NUMBER,
        "allowed in all": NUMBER,
        "row as booleans": CHOOSE,
    }
    sentences: ClassVar = {
        **chosen(OF_MASKS, "True for False", "rows for columns", "without the diagonal"),
        "padding rows closed too": "Masking the columns is enough. The output of a *<pad>* row "
        "is not used.",
        "itself left out": "You left out the token itself.",
        "later ones": "You counted the later tokens. Those are masked.",
        "all": "Without a mask, yes.",
        "half of all": "Nearly. The diagonal belongs to the allowed half.",
    }

    def _paint(self, draw: Draw) -> Question:
        kind = draw.keys.get("mask") or draw.rng.choice(PAINTABLE_MASKS)
        length = draw.keys.get("length") or draw.rng.randint(4, 8)
        real = draw.keys.get("real") or draw.rng.randint(2, length - 1)
        width = draw.keys.get("width") or draw.rng.randint(1, length - 2)
        truth = mask_of(kind, length, real, width)
        answers = {"True for False": ~truth, "rows for columns": truth.T}
        if kind == "padding":
            answers["padding rows closed too"] = truth & truth.T
        else:
            answers["without the diagonal"] = truth & ~np.eye(length, dtype=bool)
        return Question(
            PAINT,
            truth,
            given={
                "mask": kind,
                "length": number(length),
                "real": number(real),
                "width": number(width),
            },
            misconceptions=self.mistakes(answers, truth),
            veil=(Veil("masks"),),
        )

    def _row_as_booleans(self, draw: Draw) -> Question:
        length = draw.keys.get("length") or draw.rng.randint(4, 8)
        i = 2 if draw.keys.get("row") == "third" else draw.rng.randint(1, length - 2)
        truth = mask_of("causal", length)
        answers = {
            "True for False": booleans(~truth[i]),
            "without the diagonal": booleans(np.arange(length) < i),
            "rows for columns": booleans(truth[:, i]),
        }
        answer = booleans(truth[i])
        given = {"length": number(length), "row number": number(i + 1)}
        return self.choose(draw, answer, answers, given=given, veil=(Veil("masks"),))

    def _of_decoder(self, draw: Draw) -> tuple[int, tuple[Veil, ...]]:
        if "decoder" not in draw.run.base.attention:
            raise NoQuestion("This model has no decoder, so no causal mask.")
        return len(draw.run.tgt), (Veil("masks", "decoder"),)

    def _allowed_in_a_row(self, draw: Draw) -> Question:
        n, veil = self._of_decoder(draw)
        rows = draw.rows().fitting(draw.keys.get("row", "any"))
        # Near the ends the wrong counts would coincide with the right one.
        rows = [i for i in rows if i >= 2 and len({i, i + 1, n - i, n}) == 4]
        if not rows:
            raise NoQuestion("This text is too short. Try a longer sentence.")
        i = draw.rng.choice(rows)
        given, _ = row_values(draw.run, draw.of_head, i)
        given["row"] = names_of(draw.run.queries(draw.of_head))[i]
        before = given.pop("before")
        answer = float(i + 1)
        answers = {"itself left out": float(i), "later ones": float(n - i), "all": float(n)}
        shown = {"answer": number(answer), "before": before}
        return self.number(answer, answers, given=given, shown=shown, veil=veil)

    def _allowed_in_all(self, draw: Draw) -> Question:
        n, veil = self._of_decoder(draw)
        if n < 3:
            raise NoQuestion("This text is too short. Try a longer sentence.")
        answer = n * (n + 1) / 2
        answers = {
            "half of all": n * n / 2,
            "without the diagonal": n * (n - 1) / 2,
            "all": float(n * n),
        }
        given, shown = {"length": number(n)}, {"answer": number(answer)}
        return self.number(answer, answers, given=given, shown=shown, veil=veil)
