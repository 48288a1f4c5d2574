"""What the documentation says of the shipped translator, as expressions that a test evaluates."""

from functools import cache

import numpy as np

from headlight.model import Beam, Sampling, load
from headlight.model.checkpoint import SHIPPED
from headlight.model.training import snapshots

S = "She has never seen the red car of my sister."
B = "My brother has a red car."
P = "Several girls are playing with flour."


@cache
def en_fr():
    return load("en-fr")


@cache
def french(sentence: str, **options) -> str:
    return en_fr().decode(en_fr().translate(sentence, **options))


@cache
def beam(sentence: str, width: int) -> str:
    return en_fr().decode(en_fr().generate(sentence, Beam(width)).run.texts[1])


@cache
def _trace(sentence: str, **options):
    return en_fr().trace(sentence, french(sentence), **options)


def head_values(
    sentence: str, head: str, what: str, **options
) -> tuple[np.ndarray, list[str], list[str]]:
    """What a head, as in “cross.3.3”, has for a sentence: (query, key), with their tokens."""
    kind, layer, number = head.split(".")
    trace = _trace(sentence, **options)
    queries, keys = (text.tokens for text in trace.texts_of(kind))
    return getattr(trace, what)[kind][int(layer) - 1][int(number) - 1], [*queries], [*keys]


def row(sentence: str, head: str, word: str) -> dict[str, float]:
    weights, queries, keys = head_values(sentence, head, "attention")
    return dict(zip(keys, weights[queries.index(word)].tolist(), strict=True))


def column(sentence: str, head: str, word: str, **options) -> float:
    weights, _, keys = head_values(sentence, head, "attention", **options)
    return float(weights[:, keys.index(word)].sum())


def scores(sentence: str, head: str, word: str) -> list[float]:
    found, queries, _ = head_values(sentence, head, "scores")
    return found[queries.index(word)].tolist()


def unscaled(sentence: str, head: str, word: str) -> dict[str, float]:
    """The row without the division by √d."""
    config = en_fr().model.config
    found, queries, keys = head_values(sentence, head, "scores")
    sharp = found[queries.index(word)] * (config.d_model // config.n_heads) ** 0.5
    shares = np.exp(sharp - sharp.max())
    return dict(zip(keys, (shares / shares.sum()).tolist(), strict=True))


def probability(sentence: str, target: str | None = None, **options) -> float:
    """Of the whole target."""
    return float(np.exp(en_fr().trace(sentence, target, **options).log_probabilities.sum()))


@cache
def _at(number: int):
    early = load("en-fr")
    snapshots.put_into(early.model, SHIPPED / "en-fr", number)
    return early


@cache
def step(number: int) -> str:
    return _at(number).decode(_at(number).translate(S))


def step_weight(number: int) -> float:
    trace = _at(number).trace(S, french(S))
    query, key = trace.tgt.tokens.index("voiture"), trace.src.tokens.index("red")
    return float(trace.attention["cross"][2, 2, query, key])


def after(sentence: str, word: str, **options) -> float:
    """Of the token that follows a word of the translation, given all that the model sees there."""
    trace = _trace(sentence, **options)
    return float(np.exp(trace.log_probabilities[trace.tgt.tokens.index(word)]))


def heads() -> list[str]:
    """All heads, as changes name them."""
    sites = en_fr().model.sites()
    each = range(1, en_fr().model.config.n_heads + 1)
    return [f"{site.kind}.{site.layer + 1}.{head}" for site in sites for head in each]


def first_words(sentence: str, word: str) -> tuple[str, str]:
    """The source words that attention and removal put first for a word of the translation."""
    run = en_fr().run(sentence)
    at = run.texts[1].tokens.index(word)
    found = en_fr().attribution(run, at, run.texts[1].ids[at])
    return tuple(found.words[found.values[how].argmax()] for how in ("attention", "removal"))


def previous(sentence: str, head: str) -> float:
    """The share of tokens, but the first, with the largest weight on the token before."""
    weights, _, _ = head_values(sentence, head, "attention")
    return float(np.mean(weights.argmax(axis=1)[1:] == np.arange(len(weights) - 1)))


def width(head: str) -> int:
    """Of a head's queries."""
    kind, layer, number = head.split(".")
    return _trace(S).query[kind][int(layer) - 1][int(number) - 1].shape[-1]


def most_needed(sentence: str) -> str:
    """The head without which the translation loses most."""
    effects = en_fr().sweep(en_fr().run(sentence), "heads")
    return effects.change[effects.effect.idxmin()]


def sampled(sentence: str, temperature: float, seed: int) -> str:
    return en_fr().decode(en_fr().generate(sentence, Sampling(temperature, seed=seed)).run.texts[1])


class between:
    """`x in between(a, b)`"""

    def __init__(self, least: float, most: float):
        self.least, self.most = least, most

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most
