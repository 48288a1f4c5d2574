"""How far a text is from the training text: two measures, and their ranges over the validation
data, stored in the checkpoint's card."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.trace import Trace
from headlight.model.tokenizer import Tokenizer

SPLIT, SURPRISE = "split", "surprise"
# On a toy task the range may be zero; smaller differences are rounding.
LEAST_DEVIATION, LEAST_LIMIT = 0.01, 1.0


@dataclass(frozen=True)
class Domain:
    """What a model was trained on.

    text      in words, as in "image captions"
    ranges    measure → mean and standard deviation over the validation data
    limit     the distance below which `share` of the validation data lie
    examples  how many texts that was measured on
    """

    text: str
    ranges: Mapping[str, Sequence[float]]
    limit: float
    share: float
    examples: int

    @classmethod
    def measured(cls, text: str, measures: Mapping[str, Sequence[float]], share: float) -> "Domain":
        """`measures`: each of all texts, in one order."""
        ranges = {
            name: (float(np.mean(values)), max(LEAST_DEVIATION, float(np.std(values))))
            for name, values in measures.items()
        }
        distances = [
            distance(ranges, dict(zip(measures, values, strict=True)))
            for values in zip(*measures.values(), strict=True)
        ]
        limit = max(LEAST_LIMIT, float(np.quantile(distances, share)))
        return cls(text, ranges, limit, share, len(distances))

    @classmethod
    def of_card(cls, card: Mapping) -> "Domain | None":
        """None where a card holds none, or something else by this name."""
        try:
            domain = cls(**card["domain"])
            ranges = {name: (float(m), float(sd)) for name, (m, sd) in domain.ranges.items()}
            if not {*ranges} <= {SPLIT, SURPRISE} or not all(sd > 0 for _, sd in ranges.values()):
                return None
            return replace(domain, text=str(domain.text), ranges=ranges, limit=float(domain.limit))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def to_card(self) -> dict:
        return asdict(self)

    def excludes(self, measures: Mapping[str, float]) -> bool:
        """Whether a text is further away than nearly all validation texts."""
        return distance(self.ranges, measures) > self.limit


def distance(ranges: Mapping[str, Sequence[float]], measures: Mapping[str, float]) -> float:
    """How far the measures are above their means, in standard deviations, combined."""
    return math.hypot(
        *(max(0.0, measures[name] - mean) / deviation for name, (mean, deviation) in ranges.items())
    )


def split_share(tokenizer: Tokenizer, text: str) -> float:
    """The share of pre-tokens that are split into several tokens: rare or unseen in training."""
    n_tokens = Counter(tokenizer.word_ids(text)).values()
    return sum(n > 1 for n in n_tokens) / max(1, len(n_tokens))


def surprise(trace: Trace | LongTrace) -> float:
    """Mean −log p in nats of the tokens of the predicted side, each given those before it; with
    the </s> that ends a text of the model's own."""
    wanted = trace.log_probabilities
    if not trace.predicted.writes:
        wanted = wanted[:-1]  # the prediction after a text that the model did not write
    return float(-np.nanmean(wanted)) if np.isfinite(wanted).any() else 0.0
