"""How far attention can be trusted over many sentences: whether attention, gradient and removal put
source words in the same order (analysis/attribution.py). One predicted token of each sentence is
examined, at a position drawn with the sentence's number as seed."""

import random
from collections.abc import Sequence

import numpy as np

from headlight.model.analysis.attribution import (
    BY_ATTENTION,
    GRADIENT,
    NORMS,
    REMOVAL,
    ROLLOUT,
    attribution,
)
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.capture import view
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.surveys.importance import Example
from headlight.model.surveys.sentences import text_of

METHODS = (BY_ATTENTION, ROLLOUT, NORMS, GRADIENT, REMOVAL)
PAIRS = [(one, two) for i, one in enumerate(METHODS) for two in METHODS[i + 1 :]]


def correlations(checkpoint: Checkpoint, examples: Sequence[Example], most: int) -> np.ndarray:
    """Spearman's ρ of each of PAIRS, (sentence, pair), of the first `most` numbers; NaN for others,
    for sentences of too few words, and where a method has no order."""
    model = view(checkpoint.model)
    results = np.full((len(examples), len(PAIRS)), np.nan)
    for i, example in enumerate(examples):
        if example.number <= most:
            correlations = attribution(model, *_asked(checkpoint, example)).correlations()
            results[i] = [correlations.get(pair, np.nan) for pair in PAIRS]
    return results


def _asked(checkpoint: Checkpoint, example: Example) -> tuple[Run, int, int]:
    """The run, the row of the logits, and the token, or class, that it predicts."""
    texts = zip(checkpoint.model.sides(), example.texts, strict=True)
    run = Run(tuple(text_of(checkpoint, side, ids) for side, ids in texts))
    if predicted_side(checkpoint.model).predicts == "class":
        assert example.label is not None
        return run, 0, example.label
    ids = example.texts[-1]
    row = random.Random(example.number).randrange(max(1, len(ids) - 1))
    token = ids[row + 1] if row + 1 < len(ids) else checkpoint.model.config.eos_id
    return run, row, token
