"""A model on a sentence, and what lessons need to know of it: heads by what they do, rows by what
they show. Everything is computed once, when it is first asked for."""

import math
import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headlight.app.text import STRINGS
from headlight.model.analysis import head_metrics
from headlight.model.analysis.alignment import JUST_READ, PREDICTED, ordinary_words
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Beam, Generation, Greedy, How
from headlight.model.masks import Masks
from headlight.model.probing.trace import Trace
from headlight.model.rounding import percent
from headlight.model.tokenizer import CONTINUES

LIMITS = STRINGS["questions"]  # as a live page has them
LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
END = "</s>"
LEAST_AGREEMENT = 0.4  # of a head that is said to align, with the word that the model needs most
MOST_RESULTS = 500  # of one run
LEAST_INDUCTION = 0.5  # mean weight on the token after the earlier copy
HEADS = (
    "any",
    "best aligning",
    "aligns the word read",
    "aligns the word predicted",
    "most telling",
    "induction",
)


class NoQuestion(Exception):
    """This sentence, or this model, has nothing that the question could be about. Its text is a
    sentence for the student."""


@dataclass(frozen=True)
class NamedHead:
    """A head, counted from 0 as in a trace's arrays. `shift`: JUST_READ or PREDICTED, the word of a
    row that the head follows."""

    kind: str
    layer: int
    head: int
    shift: int = JUST_READ

    @property
    def scope(self) -> str:
        """As changes name it."""
        return f"{self.kind}.{self.layer + 1}.{self.head + 1}"


@dataclass(frozen=True)
class Needed:
    """Which source word a predicted token comes from, by attention and by removal.

    row        the row of the logits that predicts the token
    words      the source words
    attention  (word,) mean weight over all heads
    removal    (word,) what the token's log-probability loses when the word is hidden, in nats
    """

    row: int
    words: tuple[str, ...]
    attention: np.ndarray
    removal: np.ndarray

    @property
    def by_attention(self) -> int:
        return int(self.attention.argmax())

    @property
    def by_removal(self) -> int:
        return int(self.removal.argmax())

    @property
    def is_clear(self) -> bool:
        """Whether one word is needed, and clearly more than any other."""
        best, second = np.sort(self.removal)[::-1][:2] if len(self.words) > 1 else (0, 0)
        return best >= 0.4 and best - second >= 0.2


class SentenceRun:
    """A model on a sentence, with the masks as trained and without changes."""

    def __init__(self, checkpoint: Checkpoint, name: str, sentence: str):
        self.checkpoint, self.name, self.sentence = checkpoint, name, sentence
        self._results = {}

    def once(self, key, compute: Callable):
        if key not in self._results:
            result = compute()
            if len(self._results) >= MOST_RESULTS:  # the oldest makes room: acts have no end
                self._results.pop(next(iter(self._results)))
            self._results[key] = result
        return self._results[key]

    # Passes

    def trace(self, changes: str = "", masks: Masks = Masks(), pad_to: int = 0) -> Trace:
        """A pass over the sentence and the model's own unchanged output."""
        key = "trace", changes, masks, pad_to
        return self.once(
            key,
            lambda: self.checkpoint.trace(
                self.sentence, masks=masks, pad_to=pad_to, changes=changes
            ),
        )

    def written(
        self, changes: str = "", masks: Masks = Masks(), pad_to: int = 0
    ) -> tuple[str, ...]:
        """The tokens that the model writes, by greedy decoding."""
        key = "written", changes, masks, pad_to
        return self.once(
            key,
            lambda: tuple(self.checkpoint.translate(self.sentence, masks, pad_to, changes).tokens),
        )

    def generation(self, how: How = Greedy(), beginning: tuple[int, ...] = ()) -> Generation:
        key = "generation", how, beginning
        return self.once(key, lambda: self.checkpoint.generate(self.sentence, how, beginning))

    @cached_property
    def base(self) -> Trace:
        return self.trace()

    @property
    def writes(self) -> bool:
        return self.checkpoint.writes and len(self.checkpoint.model.sides()) > 1

    @property
    def src(self) -> tuple[str, ...]:
        return tuple(self.base.src.tokens)

    @property
    def tgt(self) -> tuple[str, ...]:
        return tuple(self.base.tgt.tokens)

    @property
    def log_probabilities(self) -> np.ndarray:
        """Row i: of the token after row i, in nats."""
        return self.base.log_probabilities

    def hide(self, *columns: int) -> str:
        """The change that hides source tokens from all heads."""
        places = ",".join(str(column + 1) for column in columns)
        return f"encoder=hide:{places}; cross=hide:{places}"

    @cached_property
    def common(self) -> dict[str, str]:
        """Placeholders available to every text."""
        config, found = self.checkpoint.model.config, {}
        found["d_model"], found["d_head"] = str(config.d_model), str(config.d_head)
        found["heads"], found["vocabulary"] = str(config.n_heads), f"{config.vocab_size:,}"
        if direction := self.checkpoint.card.get("direction"):
            names = [LANGUAGES.get(code, code) for code in direction]
            found["source language"], found["target language"] = names
        if alignment := self.checkpoint.alignment:
            found["agreement"] = percent(alignment.together)
            found["heads that predict"] = str(int((alignment.shifts == PREDICTED).sum()))
            found["heads in cross"] = str(alignment.shifts.size)
        return found

    # Heads

    def head(self, name: str, kind: str = "", rng: random.Random | None = None) -> NamedHead | None:
        """A head by what it does; None if the model has no such head. `any` draws one of `kind`
        from `rng`."""
        if name == "any":
            kinds = [kind] if kind else sorted(self.base.attention)
            if not set(kinds) <= set(self.base.attention):
                return None
            assert rng is not None
            kind = rng.choice(kinds)
            layers, heads = self.base.attention[kind].shape[:2]
            return NamedHead(kind, rng.randrange(layers), rng.randrange(heads))
        if name == "most telling":
            measured = head_metrics.measured(self.base)
            if kind not in measured:
                return None
            return NamedHead(kind, *head_metrics.most_telling(measured[kind]))
        return self.once(("head", name), lambda: self._head(name))

    def _head(self, name: str) -> NamedHead | None:
        if name == "induction":
            return self._induction()
        alignment = self.checkpoint.alignment
        if alignment is None or "cross" not in self.base.attention:
            return None
        shifts = alignment.shifts
        if name == "best aligning":
            layer, head = alignment.heads[0]
            return NamedHead("cross", layer, head, int(shifts[layer, head]))
        shift = PREDICTED if name == "aligns the word predicted" else JUST_READ
        for layer, head in alignment.heads:
            if shifts[layer, head] == shift:
                return NamedHead("cross", layer, head, shift)
        agreement = np.where(shifts == shift, np.asarray(alignment.agreement)[shift], -1)
        layer, head = np.unravel_index(agreement.argmax(), agreement.shape)
        if agreement.max() <= LEAST_AGREEMENT:
            return None
        return NamedHead("cross", int(layer), int(head), shift)

    def _induction(self) -> NamedHead | None:
        """The decoder's head with the most weight on the token after an earlier copy of the query's
        token (Olsson et al. 2022)."""
        tokens = self.tgt if "decoder" in self.base.attention else ()
        copies = [(i, tokens.index(t)) for i, t in enumerate(tokens) if tokens.index(t) < i]
        if not copies:
            return None
        weights = self.base.attention["decoder"]
        share = np.mean([weights[:, :, i, before + 1] for i, before in copies], axis=0)
        layer, head = np.unravel_index(share.argmax(), share.shape)
        if share.max() <= LEAST_INDUCTION:
            return None
        return NamedHead("decoder", int(layer), int(head))

    def weights(self, head: NamedHead) -> np.ndarray:
        """(query, key), float64."""
        return self.base.attention[head.kind][head.layer, head.head].astype(np.float64)

    def scores(self, head: NamedHead) -> np.ndarray:
        """(query, key), float64, as the softmax gets them."""
        return self.base.scores[head.kind][head.layer][head.head].astype(np.float64)

    def queries(self, head: NamedHead) -> tuple[str, ...]:
        return tuple(self.base.texts_of(head.kind)[0].tokens)

    def keys(self, head: NamedHead) -> tuple[str, ...]:
        return tuple(self.base.texts_of(head.kind)[1].tokens)

    def is_of_one_text(self, head: NamedHead) -> bool:
        """Whether a head's rows and columns are of the same text."""
        site = self.base.kinds[head.kind][head.layer]
        return site.query_side == site.key_side

    def label(self, head: NamedHead, row: int) -> str:
        """A row's name: the word that the head follows."""
        tokens, place = self.queries(head), row + head.shift
        return tokens[place] if place < len(tokens) else END

    @cached_property
    def links(self) -> list[tuple[int, int]]:
        """(source word, target word), from 0, in the order of the target."""
        aligned = self.checkpoint.align(self.sentence)
        return sorted(aligned.links(), key=lambda link: link[1])

    @cached_property
    def partner(self) -> dict[int, int]:
        """Target token → source token, of aligned words that are one token each."""
        source, target = (ordinary_words(self.base.texts[side]) for side in ("src", "tgt"))
        spans = ((source[s][0], target[t][0]) for s, t in self.links)
        return {t[0]: s[0] for s, t in spans if s[1] - s[0] == 1 == t[1] - t[0]}

    @cached_property
    def needed(self) -> list[Needed]:
        """For each token of the translation."""
        spans = ordinary_words(self.base.src)
        mean = self.base.attention["cross"].astype(np.float64).mean(axis=(0, 1))
        # One pass per token gives the losses of all rows; those of a word's tokens are added, as
        # on the page Attribution.
        losses = np.array(
            [
                self.log_probabilities - self.trace(self.hide(column)).log_probabilities
                for column in range(len(self.src))
            ]
        )
        words = tuple(word for _, word in spans)

        def by_word(of_tokens):
            return np.array([of_tokens[start:stop].sum() for (start, stop), _ in spans])

        rows = range(len(self.tgt) - 1) if words else ()
        return [Needed(row, words, by_word(mean[row]), by_word(losses[:, row])) for row in rows]

    def right_repeats(self, changes: str = "") -> tuple[int, int]:
        """Of the tokens that an earlier copy determines: how many the model predicts, how many
        there are."""
        trace, tokens = self.trace(changes), self.tgt
        known = [
            i
            for i in range(len(tokens) - 1)
            if tokens[i] in tokens[:i] and tokens[i + 1] in tokens[: i + 1]
        ]
        right = sum(int(trace.logits[i].argmax()) == trace.following[i] for i in known)
        return right, len(known)

    def parting(self) -> int | None:
        """The step at which greedy decoding and beam search of width 4 diverge; None if they write
        the same."""
        paths = self.generation().path, self.generation(Beam(4)).path
        longest = max(map(len, paths))
        return next((i for i in range(longest) if paths[0][i : i + 1] != paths[1][i : i + 1]), None)


def is_word(tokens: Sequence[str], i: int) -> bool:
    """Whether token i is a whole word."""
    token = tokens[i]
    goes_on = i + 1 < len(tokens) and tokens[i + 1].startswith(CONTINUES)
    return bool(re.search(r"\w", token)) and not token.startswith(("<", CONTINUES)) and not goes_on


def is_mark(token: str) -> bool:
    """Whether it is punctuation or a special token."""
    return not re.search(r"\w", token) or token.startswith("<")


def names_of(tokens: Sequence[str]) -> list[str]:
    """Tokens as choices: those that occur twice carry their place."""
    return [
        token if tokens.count(token) == 1 else f"{token} ({i + 1})"
        for i, token in enumerate(tokens)
    ]


# HeadRows by what they show


class HeadRows:
    """The rows of one head, and which of them a selector such as `sharp, new` fits."""

    def __init__(self, run: SentenceRun, head: NamedHead, used: Collection[int] = ()):
        self.run, self.head, self.used = run, head, used
        self.weights = run.weights(head)
        self.queries, self.keys = run.queries(head), run.keys(head)
        self.order = np.argsort(-self.weights, axis=1, kind="stable")
        ranked = -np.sort(-self.weights, axis=1)
        self.first = ranked[:, 0]
        self.second = ranked[:, 1] if ranked.shape[1] > 1 else np.zeros(len(ranked))
        places = range(head.shift, len(self.weights) + head.shift)
        self.named = [p < len(self.queries) and is_word(self.queries, p) for p in places]

    def fitting(self, selector: str) -> list[int]:
        """From the first on, or with `late` from the last on; of `A or B` those of B where A fits
        none."""
        for option in selector.split(" or "):
            words = [word.strip() for word in option.split(",")]
            rows = [
                i
                for i in range(len(self.weights))
                if all(WORD_CONDITIONS[w](self, i) for w in words)
            ]
            if rows:
                return rows[::-1] if "late" in words else rows
        return []

    def key(self, i: int) -> int:
        return int(self.order[i, 0])

    def sharp(self, i: int) -> bool:
        leads = self.first[i] >= LIMITS["sharp"] and self.second[i] <= self.first[i] / 2
        return bool(leads and self.named[i] and not is_mark(self.keys[self.key(i)]))

    def spread(self, i: int) -> bool:
        first, second, limits = self.first[i], self.second[i], LIMITS["spread"]
        fits = first <= limits["most"] and second >= limits["second"]
        return bool(self.named[i] and fits and first - second > limits["lead"])

    def sink(self, i: int) -> bool:
        marks = [j for j, token in enumerate(self.keys) if is_mark(token)]
        inside = 0 < i < len(self.weights) - self.head.shift - 1
        return bool(inside and self.weights[i, marks].sum() >= LIMITS["sink"])

    def crossing(self, i: int) -> bool:
        return any(self.sharp(e) and self.key(e) > self.key(i) for e in range(i))

    def repeated(self, i: int) -> bool:
        return not self.queries[i].startswith("<") and self.queries.index(self.queries[i]) < i

    def clearest(self, i: int) -> bool:
        def lead(row):
            fits = self.named[row] and not is_mark(self.keys[self.key(row)])
            return float(self.first[row] - self.second[row]) if fits else -1.0

        leads = [lead(row) for row in range(len(self.weights))]
        return i == int(np.argmax(leads)) and leads[i] >= LIMITS["clearest"]

    def two_words(self, i: int) -> bool:
        if i + 1 >= len(self.queries):
            return False
        if not (is_word(self.queries, i) and is_word(self.queries, i + 1)):
            return False
        partners = self.run.partner.get(i), self.run.partner.get(i + 1)
        # A word with two partners, such as an article that takes its gender from the noun, is no
        # clear case.
        sources = list(self.run.partner.values())
        if any(partner is None or sources.count(partner) > 1 for partner in partners):
            return False
        heads = (self.run.head(f"aligns the word {word}") for word in ("read", "predicted"))
        return all(
            head is None or self.run.weights(head)[i, partners[head.shift]] >= 0.6 for head in heads
        )

    def vital(self, i: int) -> bool:
        place = i + self.head.shift
        return (
            place < len(self.queries)
            and is_word(self.queries, place)
            and self.queries[place] not in self.run.written(self.run.hide(self.key(i)))
        )

    def written_without_its_key(self, i: int) -> bool:
        if i == 0 or not is_word(self.queries, i):
            return False
        hidden = self.run.hide(self.key(i))
        if self.queries[i] not in self.run.written(hidden):
            return False
        fall = self.run.trace(hidden).log_probabilities[i - 1] - self.run.log_probabilities[i - 1]
        return bool(fall < math.log(0.7))

    def sharp_columns(self) -> list[int]:
        """Columns whose largest weight is 80% or more and at least twice the second largest."""
        ranked = -np.sort(-self.weights, axis=0)
        second = ranked[1] if len(ranked) > 1 else np.zeros(ranked.shape[1])
        return [
            j
            for j, key in enumerate(self.keys)
            if ranked[0, j] >= LIMITS["sharp"]
            and second[j] <= ranked[0, j] / 2
            and not is_mark(key)
        ]


# Cheap words come first in lessons: `vital` and the like take passes.
WORD_CONDITIONS: dict[str, Callable[[HeadRows, int], bool]] = {
    "any": lambda rows, i: True,
    "late": lambda rows, i: True,
    "first": lambda rows, i: i == 0,
    "word": lambda rows, i: is_word(rows.queries, i),
    "new": lambda rows, i: i not in rows.used,
    "sharp": HeadRows.sharp,
    "spread": HeadRows.spread,
    "sink": HeadRows.sink,
    "crossing": HeadRows.crossing,
    "repeated": HeadRows.repeated,
    "clearest": HeadRows.clearest,
    "two words": HeadRows.two_words,
    "vital": HeadRows.vital,
    "written without its key": HeadRows.written_without_its_key,
}
