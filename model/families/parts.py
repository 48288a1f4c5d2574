"""Parts of later models, each with its source.

`explained` is what a part says of itself on screen, where it differs from the paper's: a sentence
or two, on a feed-forward with places for its sizes; of a table, what it is made of; of an output,
what comes before the word “logit”. `blocks`, of an output in several blocks, has a text for each.
`steps` names what happens within a part and is shown as a
step of its own: its name in HeadSteps, and the module whose output it is.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from headlight.model.transformer import FeedForward, MultiHeadAttention, PositionalEncoding, Scores

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,  # x Φ(x), with the error function (Hendrycks and Gimpel 2016)
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),  # its approximation there, as GPT-2 has it
    "tanh": nn.Tanh,
    "identity": nn.Identity,
    "silu": nn.SiLU,  # x σ(x) (Elfwing et al. 2017), also called swish (Ramachandran et al. 2017)
}


class RMSNorm(nn.Module):
    """weight · x / √(mean of x² + eps): no mean is taken off and nothing added (Zhang and
    Sennrich 2019, equation 4)."""

    explained = "The norm is an RMSNorm, which does not subtract the mean."

    def __init__(self, width: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


class ActivatedFeedForward(FeedForward):
    """The paper's feed-forward with another activation: f(x W1 + b1) W2 + b2."""

    def __init__(self, d_model: int, d_ff: int, activation: str):
        super().__init__(d_model, d_ff)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.activation(self.linear1(x)))


class GatedFeedForward(FeedForward):
    """(f(x W) ⊙ x V) W2, SwiGLU where f is silu (Shazeer 2020, equation 6)."""

    explained = (
        "Two linear maps {narrow} → {wide}: the first, after a {activation}, gates the second. A "
        "third leads back to {narrow}."
    )
    steps: ClassVar = {"gate": "activation"}

    def __init__(self, d_model: int, d_ff: int, activation: str = "silu", bias: bool = False):
        nn.Module.__init__(self)
        self.gate = nn.Linear(d_model, d_ff, bias)
        self.activation = ACTIVATIONS[activation]()
        self.linear1 = nn.Linear(d_model, d_ff, bias)
        self.linear2 = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.activation(self.gate(x)) * self.linear1(x))


class NormedProjection(nn.Module):
    """Queries or keys whose heads are each normed behind the projection (Henry et al. 2020; with
    RMSNorm in Qwen3, Yang et al. 2025). (batch, length, d_model) → (batch, length, heads · d_head)
    """

    explained = "Queries and keys are normalised first, each separately."
    steps: ClassVar = {"projected": "linear"}

    def __init__(self, linear: nn.Linear, d_head: int, eps: float):
        super().__init__()
        self.linear = linear
        self.norm = RMSNorm(d_head, eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.linear(x).unflatten(-1, (-1, self.norm.weight.shape[0]))).flatten(-2)


class GroupedQueryAttention(MultiHeadAttention):
    """Groups of heads share a key and a value head (Ainslie et al. 2023): heads 0 to
    n_heads / n_key_heads - 1 the first, and so on. With n_key_heads = n_heads each has its own.
    A head is d_head wide, whatever d_model is. Biases: of queries, keys and values; of the output.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_key_heads: int,
        d_head: int,
        scores: Scores,
        bias: bool = False,
        output_bias: bool = False,
    ):
        super().__init__(d_model, n_heads)
        self.n_key_heads, self.d_head = n_key_heads, d_head
        self.query = nn.Linear(d_model, n_heads * d_head, bias)
        self.key = nn.Linear(d_model, n_key_heads * d_head, bias)
        self.value = nn.Linear(d_model, n_key_heads * d_head, bias)
        self.scores = scores
        self.output = nn.Linear(n_heads * d_head, d_model, output_bias)

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Projected keys, (batch, key heads, key, d_head), which `scores` shares out, and values,
        (batch, heads, key, d_head): one for every query head."""
        k, v = super().keys_values(key, value)
        shared = self.n_heads // self.n_key_heads
        return k, v if shared == 1 else v.repeat_interleave(shared, dim=1)

    def split(self, x: Tensor) -> Tensor:
        """(batch, length, heads · d_head) → (batch, heads, length, d_head), of either kind of
        heads"""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


class NoPositions(nn.Module):
    """In place of a positional table where nothing is added to the embeddings: zeros, (position,
    d_model)."""

    zero: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.register_buffer("zero", torch.zeros(d_model, device="cpu"), persistent=False)

    def forward(self, length: int) -> Tensor:
        return self.zero.expand(length, -1)


class HalvedPositions(PositionalEncoding):
    """The paper's sinusoids, all sines before all cosines (Marian, Junczys-Dowmunt et al. 2018,
    as tensor2tensor first had it)."""

    def __init__(self, max_length: int, d_model: int):
        with torch.device("cpu"):  # numbers, even where a model is built without any
            super().__init__(max_length, d_model)
        self.table = torch.cat([self.table[:, 0::2], self.table[:, 1::2]], dim=1)
