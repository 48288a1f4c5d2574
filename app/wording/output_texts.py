"""What a model's output is called, and the output as text."""

from collections.abc import Callable, Mapping

from headlight.app.wording.formats import escaped, percent
from headlight.model.analysis.domain import Domain
from headlight.model.analysis.positions import predictions
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.trace import Trace

EMBEDDING, MASKED_TOKEN = "embedding", "masked token"
ANSWERS = {  # what a model predicts → its title
    "class": "Class",
    "next token": "Next token",
    MASKED_TOKEN: "Most probable token at each position",
}
LONGEST_NAME = 300  # characters shown of a text in a model's card


def unlike_training(domain: Domain, card: Mapping) -> str:
    """A notice about a text that is unlike the training text."""
    language = LANGUAGES.get((card.get("direction") or [""])[-1])
    doubtful = (
        f"its {language} may be poor"
        if language
        else "the class may be wrong"
        if card.get("classes")
        else "the answer may be poor"
    )
    return (
        f"This model was trained on {escaped(domain.text[:LONGEST_NAME])}. This text looks "
        f"different, so {doubtful}."
    )


LANGUAGES = {
    "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "hu": "Hungarian", "is": "Icelandic", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "nb": "Norwegian Bokmål", "nl": "Dutch",
    "nn": "Norwegian Nynorsk", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


TYPED = "You typed"


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


def output(view, run: Run, trace: Callable[[], Trace | LongTrace]) -> tuple[str, str]:
    """The title of a model's output, and the output as plain text; `trace()` gives the run's
    trace. The title of a text is that of one which the model wrote itself."""
    predicted = predicted_side(view.model)
    if len(run.texts) > 1:
        return wrote(run.checkpoint), view.tokenizer.target.decode(run.texts[-1].ids)
    if predicted.predicts == EMBEDDING:
        return "Output", f"an embedding of {view.model.config.d_embedding:,} numbers"
    title, predicted_tokens = ANSWERS[predicted.predicts], predictions(trace())
    if predicted.predicts == MASKED_TOKEN:  # each row predicts the token at its own position
        return title, view.tokenizer.target.decode(predicted_tokens.best.tolist())
    last = predicted_tokens.best[-1:], predicted_tokens.preceding[-1:]
    (answer,) = view.checkpoint.outputs(*last)
    return title, f"{answer}, {percent(float(predicted_tokens.probability[-1]))}"
