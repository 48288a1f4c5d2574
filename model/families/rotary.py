"""Rotary positions (Su et al. 2021): pairs of numbers of a query or key turn by an angle that grows
with its position, so that a score depends on how far apart the two are. How fast each pair turns,
and what rules slow it down for longer texts than a model was first trained on.

As Hugging Face stores its weights, number i of a head's d_head is paired with number
i + d_head / 2, not with its neighbour.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor, nn

from headlight.model.sites import ProbedModel
from headlight.model.transformer import Scores


@dataclass(frozen=True)
class Rotary:
    """How queries and keys of d_head numbers turn.

    base      wavelengths go from 2π to 2π · base
    rule      of RULES: what is done for longer texts
    settings  names of the rule's numbers, as in a Hugging Face config, and these; of longrope some
              are one for each pair
    length    tokens that the model was first trained on
    """

    base: float = 10000.0
    rule: str = "default"
    settings: tuple[tuple[str, float | tuple[float, ...]], ...] = ()
    length: int = 0

    def __post_init__(self):
        if self.rule not in RULES:
            raise ValueError(
                f"there is no rotary rule {self.rule!r}; choose from {', '.join(RULES)}"
            )
        given = dict(self.settings)
        missing = [name for name in NEEDED.get(self.rule, ()) if not given.get(name)]
        if missing:
            raise ValueError(f"the rotary rule {self.rule!r} needs {', '.join(missing)}")
        if self.rule == "longrope" and self.length < 2:
            raise ValueError("the rotary rule 'longrope' needs a length of at least 2 tokens")

    @property
    def given(self) -> dict[str, float]:
        """The settings by name that are one number."""
        return {name: value for name, value in self.settings if not isinstance(value, tuple)}

    @property
    def of_pairs(self) -> dict[str, tuple[float, ...]]:
        """The settings by name that are one number for each pair."""
        return {name: value for name, value in self.settings if isinstance(value, tuple)}

    def frequencies(self, d_head: int, length: int = 0) -> Tensor:
        """Radians that each pair turns from one position to the next in a text of `length` tokens,
        (d_head / 2,), float64."""
        return RULES[self.rule](self, d_head, length)

    def turns_by(self, length: int) -> int:
        """What of a text's length its frequencies hang on: of two lengths with one value they are
        the same."""
        if self.rule == "dynamic":
            return max(length, self.length)
        return int(self.rule == "longrope" and length > self.length)

    @property
    def stretch(self) -> float:
        """What queries and keys are multiplied by besides: 1 but with YaRN (Peng et al. 2023,
        section 3.4) and LongRoPE (Ding et al. 2024, in the form of Phi-3)."""
        if self.rule not in ("yarn", "longrope"):
            return 1.0
        if given := self.given.get("attention_factor"):
            return given
        if self.rule == "longrope":
            factor = max(self.given["factor"], 1.0)
            return math.sqrt(1 + math.log(factor) / math.log(self.length))
        over, under = self.given.get("mscale"), self.given.get("mscale_all_dim")
        if over and under:
            return self._by_logarithm(over) / self._by_logarithm(under)
        return self._by_logarithm(1.0)

    def _by_logarithm(self, share: float) -> float:
        return 0.1 * share * math.log(max(self.given["factor"], 1.0)) + 1.0


def plain(base: float, d_head: int) -> Tensor:
    """base^(-2i / d_head) for pair i (Su et al. 2021, equation 15)."""
    even = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu")
    return base ** (-even / d_head)


def default(rotary: Rotary, d_head: int, length: int) -> Tensor:
    return plain(rotary.base, d_head)


def linear(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """All turn slower by one factor: position interpolation (Chen et al. 2023)."""
    return plain(rotary.base, d_head) / rotary.given["factor"]


def dynamic(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """Of a text longer than the model was trained on the base grows with its length: slow pairs
    are slowed down, the quickest is not (NTK-aware, "emozilla" 2023; Peng et al. 2023, appendix B).
    """
    factor = rotary.given["factor"]
    over = max(length, rotary.length) / rotary.length
    grown = (factor * over - (factor - 1)) ** (d_head / (d_head - 2))
    return plain(rotary.base * grown, d_head)


def llama3(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """Pairs that turn often within the trained length stay, those that turn seldom are slowed down
    by the factor, and those between by a share of it (Llama 3.1, Grattafiori et al. 2024)."""
    low, high = rotary.given["low_freq_factor"], rotary.given["high_freq_factor"]
    frequencies = plain(rotary.base, d_head)
    turns = rotary.length * frequencies / (2 * math.pi)
    unchanged = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (unchanged + (1 - unchanged) / rotary.given["factor"])


def yarn(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """As llama3 by a ramp, here over the pairs and not over their turns (Peng et al. 2023, section
    3.2)."""
    settings, frequencies = rotary.given, plain(rotary.base, d_head)

    def pair_of(turns: float) -> float:
        """The pair that turns so often within the trained length."""
        wavelength = rotary.length / (2 * math.pi * turns)
        return d_head * math.log(wavelength) / (2 * math.log(rotary.base))

    first = pair_of(settings.get("beta_fast") or 32)
    last = pair_of(settings.get("beta_slow") or 1)
    if settings.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device="cpu")
    slowed = ((pairs - first) / (last - first or 0.001)).clamp(0, 1)
    return frequencies * (1 - slowed + slowed / settings["factor"])


def longrope(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """Each pair is slowed down by a factor of its own, found by search; other ones in a text longer
    than the model was first trained on (Ding et al. 2024)."""
    factors = rotary.of_pairs["long_factor" if length > rotary.length else "short_factor"]
    return plain(rotary.base, d_head) / torch.tensor(factors, dtype=torch.float64, device="cpu")


def divided(rotary: Rotary, d_head: int, length: int) -> Tensor:
    """Each pair is slowed down by a factor of its own, the settings in their order: what llama3
    comes to, as GGUF files have it."""
    factors = torch.tensor(list(rotary.given.values()), dtype=torch.float64, device="cpu")
    return plain(rotary.base, d_head) / factors


RULES: dict[str, Callable[[Rotary, int, int], Tensor]] = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "llama3": llama3,
    "yarn": yarn,
    "longrope": longrope,
    "divided": divided,
}
NEEDED = {  # of the rules that a config.json may name
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor",),
    "longrope": ("long_factor", "short_factor", "factor"),
}
EACH_PAIR = ("long_factor", "short_factor")  # settings that have a number for each pair


class Rotation(nn.Module):
    """Turns the heads' queries, or keys, by their positions: (batch, heads, rows, d_head), the last
    rows of a text of `length` tokens."""

    def __init__(self, rotary: Rotary):
        super().__init__()
        self.rotary = rotary

    def forward(self, x: Tensor, length: int) -> Tensor:
        cosine, sine = turns(self.rotary, x.shape[-1], length, x.dtype, x.device)
        cosine, sine = cosine[-x.shape[-2] :], sine[-x.shape[-2] :]
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def angles(rotary: Rotary, d_head: int, length: int, dtype: torch.dtype) -> Tensor:
    """How far each pair has turned at each position of a text, in radians, (length, d_head / 2)."""
    position = torch.arange(length, dtype=dtype, device="cpu")
    return position[:, None] * rotary.frequencies(d_head, length).to(dtype)


@lru_cache(maxsize=8)  # all layers turn by the same angles
@torch.inference_mode(False)  # they may be trained with as well
def turns(
    rotary: Rotary, d_head: int, length: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angles, each (length, d_head / 2)."""
    turned = angles(rotary, d_head, length, dtype)
    cosine, sine = turned.cos() * rotary.stretch, turned.sin() * rotary.stretch
    return cosine.to(device), sine.to(device)


class RotaryScores(Scores):
    """The scores of equation 1 between turned queries and keys; those of a text to itself.

    k: (batch, key heads, key, d_head), fewer heads than q has where groups of these share one.
    """

    explained = "Queries and keys are rotated by an angle that grows with the position."
    steps: ClassVar = {"q_rotated": "query_rotation", "k_rotated": "key_rotation"}

    def __init__(self, rotary: Rotary):
        super().__init__()
        self.query_rotation = Rotation(rotary)
        self.key_rotation = Rotation(rotary)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        length = k.shape[-2]  # q may be the last rows alone, while a text is written
        q, k = self.query_rotation(q, length), self.key_rotation(k, length)
        # The heads of a group stand one below the other, as so many more queries.
        shared = q.shape[1] // k.shape[1]
        grouped = q.unflatten(1, (-1, shared)).flatten(2, 3)
        return super().forward(grouped, k).unflatten(2, (shared, -1)).flatten(1, 2)


def turns_of(model: ProbedModel, length: int) -> list[int]:
    """`turns_by` of all that turns in a model, for a text of this length."""
    rotations = (part for part in model.modules() if isinstance(part, Rotation))
    return [rotation.rotary.turns_by(length) for rotation in rotations]
