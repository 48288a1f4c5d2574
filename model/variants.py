"""Parts that other systems have in place of the paper's. presets.py puts them in."""

from torch import Tensor

from model.transformer import DecoderLayer, EncoderLayer


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
