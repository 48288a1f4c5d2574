"""A model that only the tests have: the paper's, but one encoder layer also attends to the target's
embeddings. Whatever reads models by their sites and sides must take it as any other."""

import torch
from torch import Tensor, nn

from headlight.model.presets import Preset
from headlight.model.sites import Site, sites_of
from headlight.model.transformer import (
    Config,
    EncoderLayer,
    MultiHeadAttention,
    Transformer,
    reset_parameters,
)

NAME, KIND, LAYER = "odd", "ahead", 1


class AheadLayer(EncoderLayer):
    """Self-attention, attention to the target's embeddings, feed-forward."""

    sublayers = {"self_attn": "norm1", "ahead_attn": "norm_ahead", "feed_forward": "norm2"}  # noqa: RUF012

    def __init__(self, config: Config):
        super().__init__(config)
        self.ahead_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.norm_ahead = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, mask: Tensor | None, ahead: Tensor, ahead_mask: Tensor | None):
        x = self.norm1(x + self.self_attn(x, x, x, mask))
        x = self.norm_ahead(x + self.ahead_attn(x, ahead, ahead, ahead_mask))
        return self.norm2(x + self.feed_forward(x))


class OddTransformer(Transformer):
    def __init__(self, config: Config):
        super().__init__(config)
        self.encoder.layers[LAYER] = AheadLayer(config)
        reset_parameters(self)

    def sites(self) -> tuple[Site, ...]:
        ahead = sites_of(
            KIND, "attention ahead", "encoder", self.encoder.layers, ("src", "tgt"),
            "ahead_attn", ("tgt_padding",),
        )  # fmt: skip
        return *super().sites(), *ahead

    def encode(self, src, src_mask=None, tgt=None, ahead_mask=None):
        if tgt is None:  # while a target is written, it sees where that begins
            tgt = torch.full_like(src[:, :1], self.config.bos_id)
        x, ahead = self.src_embedding(src), self.tgt_embedding(tgt)
        for layer in self.encoder.layers:
            odd = isinstance(layer, AheadLayer)
            x = layer(x, src_mask, ahead, ahead_mask) if odd else layer(x, src_mask)
        return self.encoder.norm(x)

    def hidden(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, ahead_mask=None
    ):  # fmt: skip
        memory = self.encode(src, src_mask, tgt, ahead_mask)
        return self.decode(tgt, memory, tgt_mask, memory_mask)


ODD = Preset("a test", OddTransformer, Config, "one attention more", dict(vocab_size=53), {})
