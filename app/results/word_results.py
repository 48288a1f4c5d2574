"""Words: what a prediction needs of them, what each adds to it, and why."""

import re
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import nn

from headlight.app.results.memoize import CORES, SMALL_RESULT, cached, memoize
from headlight.app.results.shown import Shown
from headlight.app.results.sweep_results import check_removals
from headlight.app.state import catalog
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis.alignment import ordinary_words
from headlight.model.analysis.attribution import Attribution, attribution, source_kind
from headlight.model.analysis.decomposition import (
    Carried,
    Decomposition,
    Term,
    carried,
    decomposition,
)
from headlight.model.analysis.residual import row_shares
from headlight.model.analysis.why import Why, why
from headlight.model.probing import sweeps
from headlight.model.probing.changes import Hidden, Scope
from headlight.model.probing.sites import device_of
from headlight.model.probing.sweeps import Score
from headlight.model.probing.trace import read_of

WORD = re.compile(r"\w+(?:['’-]\w+)*")
WHOLE_WORD = re.compile(r"[^\W\d_]{2,}")
SAME_BEGINNING = 3  # letters that the forms of one word share
WORDS_OF_WHY = 5  # of each side of a score, with a row or a column
REMOVALS = "Removing one source token at a time"


@cached()
def carried_of(shown: Shown, row: int, token: int, term: Term) -> Carried:
    """A head's term of such a sum, key by key. Raises CannotRead and CannotChange."""
    return carried(shown.view.model, shown.run, row, token, term, given=shown.given)


@cached()
def decomposition_of(shown: Shown, row: int, token: int) -> Decomposition:
    """A logit as a sum of terms (model/analysis/decomposition.py). Raises CannotRead and
    CannotChange."""
    return decomposition(shown.view.model, shown.run, row, token, given=shown.given)


@cached(cores=CORES)
def attribution_of(shown: Shown, score: Score, head: tuple[int, int] | None) -> Attribution:
    """Attribution of a predicted token to source words (model/analysis/attribution.py). Raises
    CannotRead and CannotChange."""
    check_removals(shown)
    assert score.position is not None and score.wanted is not None
    given = shown.given
    with reporting(REMOVALS):
        return attribution(
            shown.view.model, shown.run, score.position, score.wanted, head, score.against, given
        )


@dataclass(frozen=True)
class Needs:
    """How a prediction depends on the words of a text, (word,): `words`, their tokens [start,
    stop), the `attention` that each has, as a mean over all heads of `kind`, and the `probability`
    of the prediction without it; `all` is that with all of them."""

    kind: str
    side: str
    words: tuple[str, ...]
    tokens: tuple[tuple[int, int], ...]
    attention: np.ndarray
    probability: np.ndarray
    all: float


@cached(lambda found: SMALL_RESULT + found.pairs.nbytes, CORES)
def why_of(shown: Shown, cell: str) -> Why:
    """Raises CannotRead and CannotChange."""
    return why(shown.view.model, shown.run, cell, shown.given, beside=WORDS_OF_WHY)


@cached(lambda found: SMALL_RESULT, CORES)
def needs_of(shown: Shown, row: int) -> Needs:
    """What the likeliest answer in a row of the logits, from 0, needs: each word is hidden from all
    queries, one at a time. Raises CannotRead and CannotChange."""
    check_removals(shown)
    model, trace = shown.view.model, shown.whole
    kind = source_kind(model)
    query, key = trace.sides_of(kind)
    best, shares = (found[row, 0] for found in trace.most_probable(1))
    ids = torch.tensor(trace.texts[query.name].ids, device=device_of(model))
    mean = row_shares(model, ids, row).cpu().numpy() @ trace.attention[kind].mean(axis=(0, 1))
    text = trace.texts[key.name]
    if query == key and query.predicts == "next token":
        text = text.take(range(min(row + 1, len(text.ids))))
    spans = ordinary_words(text)
    kinds = dict.fromkeys(site.kind for site in model.sites() if site.key_side == key.name)
    hidden = [[Hidden(Scope(one), tuple(range(*tokens))) for one in kinds] for tokens, _ in spans]
    with reporting(REMOVALS):
        swept = sweeps.sweep(model, shown.run, hidden, Score(row, int(best)), shown.given)
    return Needs(
        kind,
        key.title,
        tuple(word for _, word in spans),
        tuple(tokens for tokens, _ in spans),
        np.array([mean[slice(*tokens)].sum() for tokens, _ in spans]),
        np.exp(swept.score + swept.effects),
        float(shares),
    )


def with_similar_word(shown: Shown, line: str, index: int) -> str | None:
    """The line that a model reads first in a run, with another word in place of its token `index`,
    from 0: the word of the model's example sentences whose embedding has the largest cosine with
    the token's. None where the token is no whole word, or no other word of one token is there."""
    side = shown.view.model.sides()[0]
    text = read_of(shown.view.model, shown.run)[side.name]
    if index >= len(text.ids) or text.roles[index]:
        return None
    words = _whole_words(shown.view)
    start, end = text.offsets[index]
    token, token_id = line[start:end], text.ids[index]
    if words.get(token_id) != token:
        words = words | _words_in(shown.view, line)
    if words.get(token_id) != token:
        return None
    others = [each for each, word in words.items() if _is_another(word, token)]
    if not others:
        return None
    module = shown.view.model.get_submodule(side.embedding)
    table = next(part for part in module.modules() if isinstance(part, nn.Embedding)).weight
    with torch.no_grad():
        cosines = nn.functional.cosine_similarity(table[others].float(), table[token_id].float())
    for at in cosines.argsort(descending=True).tolist():
        swapped = line[:start] + words[others[at]] + line[end:]
        ids = list(shown.view.checkpoint.encode(swapped).ids)
        if len(ids) == len(shown.run.texts[0].ids) and others[at] in ids:
            return swapped
    return None


def with_words_exchanged(shown: Shown, line: str, first: int, second: int) -> str | None:
    """The line that a model reads first in a run, with the words of two of its tokens in each
    other's place, where each begins as large as the other did. None where they are no two words."""
    side = shown.view.model.sides()[0]
    text = read_of(shown.view.model, shown.run)[side.name]
    if max(first, second) >= len(text.ids) or text.roles[first] or text.roles[second]:
        return None
    ends = [text.offsets[at][1] for at in (first, second)]
    words = [w for w in WORD.finditer(line) if any(w.start() < at <= w.end() for at in ends)]
    if len(words) < 2:
        return None
    (early, late), (one, other) = words, (word[0] for word in words)
    if one[0].isupper() != other[0].isupper():
        one, other = (word[0].swapcase() + word[1:] for word in (one, other))
    between = line[early.end() : late.start()]
    return line[: early.start()] + other + between + one + line[late.end() :]


def _is_another(word: str, token: str) -> bool:
    """Whether it can stand where the token does, and is no other form of it: “dog”, “dogs”."""
    alike = word[:SAME_BEGINNING].lower() == token[:SAME_BEGINNING].lower()
    return not alike and word[0].isupper() == token[0].isupper()


def _whole_words(view: ModelView) -> dict[int, str]:
    """Token → word, for the words of the model's example sentences that are one token."""

    def make():
        lines = [*catalog.examples(view.name), *chain(*catalog.pairs(view.name))]
        return {key: word for line in lines for key, word in _words_in(view, line).items()}

    return memoize(("whole words", view.name, view.stamp), make, lambda words: 100 * len(words))


def _words_in(view: ModelView, line: str) -> dict[int, str]:
    text = view.checkpoint.encode(line)
    return {
        token_id: line[start:end]
        for token_id, (start, end) in zip(text.ids, text.offsets, strict=True)
        if WHOLE_WORD.fullmatch(line[start:end])
        and not line[max(0, start - 1) : start].isalnum()
        and not line[end : end + 1].isalnum()
    }
