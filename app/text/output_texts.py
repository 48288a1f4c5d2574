"""What a model's output is called, and the output as text."""

from collections.abc import Callable
from typing import Any

from headlight.app.text import STRINGS
from headlight.model.analysis.predictions import predictions
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.trace import Trace
from headlight.model.rounding import percent

EMBEDDING, MASKED_TOKEN = "embedding", "masked token"
ANSWERS = STRINGS["answers"]  # what a model predicts → its title


TYPED = STRINGS["typed"]


def wrote(writer: str, reader: str = "") -> str:
    """Who wrote a target, before the target itself; `reader`: the model that reads it, if that is
    another one."""
    return (
        f"Written by model {writer}; this model only reads"
        if reader not in ("", writer)
        else f"Model {writer} wrote"
    )


def only_reads(writer: str) -> str:
    """The same as a sentence of its own."""
    return f"Model {writer} wrote the target; this model only reads it."


def output(
    checkpoint: Checkpoint, run: Run, trace: Callable[[], Trace | LongTrace]
) -> tuple[str, str]:
    """The title of a model's output, and the output as plain text; `trace()` gives the run's
    trace. The title of a text is that of one which the model wrote itself."""
    if len(run.texts) > 1:
        text = checkpoint.tokenizer.target.decode(run.texts[-1].ids)
        is_recorded = not checkpoint.parts()
        title = (
            checkpoint.model.sides()[-1].title.capitalize()
            if is_recorded
            else wrote(run.checkpoint)
        )
        return title, text
    if not any(side.predicts for side in checkpoint.model.sides()):
        return "", ""  # a recording of weights alone
    predicted = predicted_side(checkpoint.model)
    if predicted.predicts == EMBEDDING:
        config: Any = checkpoint.model.config  # one that such models alone have
        return "Output", f"an embedding of {config.d_embedding:,} numbers"
    title, predicted_tokens = ANSWERS[predicted.predicts], predictions(trace())
    if predicted.predicts == MASKED_TOKEN:  # each row predicts the token at its own position
        text = checkpoint.tokenizer.target.decode(predicted_tokens.best.tolist())
        return (title, text) if text else ("", "")  # a recording can decode only what was read
    last = predicted_tokens.best[-1:], predicted_tokens.preceding[-1:]
    (answer,) = checkpoint.outputs(*last)
    return title, f"{answer}, {percent(float(predicted_tokens.probability[-1]))}"
