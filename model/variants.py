"""Parts that other systems have in place of the paper's. presets.py puts them in."""

from dataclasses import dataclass

from torch import Tensor, nn

from model.transformer import (
    Config,
    Decoder,
    DecoderLayer,
    Embedding,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
)


class PreNormEncoderLayer(EncoderLayer):
    """Norm before each sublayer, inside the residual branch (Xiong et al. 2020)."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.norm1(x)
        x = x + self.dropout(self.self_attn(y, y, y, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class PreNormDecoderLayer(DecoderLayer):
    """Norm before each sublayer, inside the residual branch (Xiong et al. 2020)."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache=(None, None),
    ) -> Tensor:
        own, other = cache
        y = self.norm1(x)
        x = x + self.dropout(self.self_attn(y, y, y, mask, own))
        y = self.norm2(x)
        x = x + self.dropout(self.cross_attn(y, memory, memory, memory_mask, other))
        return x + self.dropout(self.feed_forward(self.norm3(x)))


class LearnedPositions(nn.Embedding):
    """A learned vector per position. Returns the table, (position, d_model)."""

    def forward(self, length: int, start: int = 0) -> Tensor:
        return self.weight[start : start + length]


class WideAttention(MultiHeadAttention):
    """Heads as wide as the model, d_head = d_model, and projections without bias (Bloem 2019)."""

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__(d_model, n_heads, dropout)
        wide = n_heads * d_model
        self.query = nn.Linear(d_model, wide, bias=False)
        self.key = nn.Linear(d_model, wide, bias=False)
        self.value = nn.Linear(d_model, wide, bias=False)
        self.output = nn.Linear(wide, d_model)


@dataclass(frozen=True)
class ClassifierConfig(Config):
    """Sizes of a classifier."""

    n_decoder_layers: int = 0
    n_classes: int = 2

    def __post_init__(self):
        super().__post_init__()
        if self.n_decoder_layers:
            raise ValueError(f"a classifier has no decoder layers, not {self.n_decoder_layers}")


class Classifier(nn.Module):
    """Encoder layers, then the mean over the source's positions, then a class (Bloem 2019).

    It is called as a Transformer is, so that whoever runs and reads one can run and read the
    other. Its decoder has no layers, and the target plays no part: the one row of logits,
    (batch, 1, n_classes), scores the classes.
    """

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        self.src_embedding = Embedding(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.generator = nn.Linear(config.d_model, config.n_classes)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(self.src_embedding(src), src_mask)
        real = (src != self.config.pad_id)[..., None]
        mean = (memory * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
        return self.generator(mean)
