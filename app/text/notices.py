"""Notices that a reader needs before reading the pictures."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from headlight.app.text.formats import escaped
from headlight.app.text.part_names import kind_name
from headlight.model.analysis.domain import Domain
from headlight.model.analysis.leak import Leak
from headlight.model.probing.trace import Pass
from headlight.model.rounding import percent
from headlight.model.tokenizer import Encoding

STOPPED = "You stopped this computation."

LONGEST_NAME = 300  # characters shown of a text in a model's card
LANGUAGES = {
    "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "hu": "Hungarian", "is": "Icelandic", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "nb": "Norwegian Bokmål", "nl": "Dutch",
    "nn": "Norwegian Nynorsk", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def needs_more(lacks: str) -> str:
    """Shown in place of a page that looks inside the model; `lacks`: see Checkpoint.lacks."""
    pages = "the stage, BertViz and Share"
    return f"This page looks inside the model. {lacks} See {pages}."


def queue_position(people: int) -> str:
    """How many people are ahead in the queue."""
    if not people:
        return "You are next …"
    return f"{people} {'people are' if people > 1 else 'person is'} ahead of you …"


def leak(trace: Pass, leak: Leak) -> str:
    """How much attention goes to positions that the training masks would hide, layer by layer."""
    layers = ", ".join(percent(share) for share in leak.shares)
    which = "by layer" if len(leak.shares) > 1 else "in its only layer"
    return f"{kind_name(trace, leak.kind)} puts this weight on {leak.where}, {which}: {layers}."


def notices(side: str, text: str, encoding: Encoding) -> list[str]:
    """Notices about a typed text: invisible characters, and characters that the model hardly
    knows."""
    if not text:
        return []
    notes = []
    control = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cf")})
    if control:
        names = ", ".join(f"U+{ord(c):04X}" for c in control)
        notes.append(
            f"The {side} contains invisible characters ({names}). The model reads them like any "
            "others; the pictures show their codes."
        )
    torn = sorted({text[start] for start, end in _spans_of_several_tokens(encoding)} - {*control})
    if torn:
        names = ", ".join(f"U+{ord(c):04X}" for c in torn[:8]) + (" …" if len(torn) > 8 else "")
        notes.append(
            f"The {side} contains characters that the model has rarely or never seen in "
            f"training ({names}). It reads them byte by byte (🙂 1/4 is the first of four "
            "bytes). Do not expect it to know them."
        )
    return notes


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


def left_out(count: int) -> str:
    """A notice about pasted pairs with the same source."""
    pairs = "pair was" if count == 1 else "pairs were"
    return f"{count:,} pasted {pairs} left out, because a later pair has the same source."


def _spans_of_several_tokens(encoding: Encoding) -> set[tuple[int, int]]:
    counts = Counter(span for span in encoding.offsets if span[1] - span[0] == 1)
    return {span for span, count in counts.items() if count > 1}


def not_finite(where: str, parameters: Sequence[str]) -> str:
    """Sentences on NaN and infinite numbers: where they first appear, and which weights contain
    some."""
    more = f" and {len(parameters) - 1} more" if len(parameters) > 1 else ""
    weights = f"in the weights “{parameters[0]}”{more}" if parameters else ""
    if not where:
        return (
            f"Some values {weights} are NaN or infinite, but nothing in this sentence depends "
            "on them."
        )
    message = (
        f"This model's numbers are NaN or infinite from {where} on. Everything after that is blank."
    )
    if not parameters:
        return f"{message} Its weights are finite, but so large that their products overflow."
    return f"{message} Some values {weights} are NaN or infinite too."


def nothing_padded(longest: int) -> str:
    """Beside a padding mask that is off; `longest`: the length up to which nothing is padded."""
    return (
        "Nothing is padded, so a padding mask has nothing to hide. "
        f"Pad to more than {longest} tokens."
    )


def compared(trace: Pass, kind: str) -> str:
    """Sentences on how queries and keys differ from their projections when they enter the
    scores."""
    site, sentences = trace.kinds[kind][0], ""
    if not trace.sides[site.query_side].table:
        sentences += (
            " Queries and keys are shown after their rotation by position, as the scores "
            "compare them."
        )
    if site.n_key_heads < site.n_heads:
        sentences += f" The {site.n_heads} heads share {site.n_key_heads} key heads."
    return sentences
