"""The same weights in torch.nn.Transformer, and what it attends to.

PyTorch's masks say the opposite of ours: there, True = may not attend. This file is the only
place that turns them round. Where a row may attend to nothing PyTorch has NaN and we zeros.
"""

from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.masks import Masks, causal_mask, local_mask
from headlight.model.presets import GENERATOR
from headlight.model.probing.capture import view
from headlight.model.probing.changes import check
from headlight.model.probing.reference_changes import under_masks, with_other_weights
from headlight.model.probing.run import Run
from headlight.model.probing.sites import parts_of
from headlight.model.probing.trace import ids_of, read_of, read_only
from headlight.model.sites import LayerList, ProbedModel
from headlight.model.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MaskedSoftmax,
    MultiHeadAttention,
    Scores,
    Transformer,
)
from headlight.model.variants import (
    DropoutFeedForward,
    FilledSoftmax,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
)

# What the twin has a counterpart for. A subclass may compute something else: it has none.
POST_NORM = {EncoderLayer, DecoderLayer}
PRE_NORM = {PreNormEncoderLayer, PreNormDecoderLayer}
PARTS = {Encoder, Decoder, MultiHeadAttention, Scores, MaskedSoftmax, FeedForward}
PARTS |= {LayerList, nn.Linear, nn.LayerNorm, nn.Dropout, nn.Identity}
PARTS |= {FilledSoftmax, DropoutFeedForward}  # the same but in training, or where a row is empty


@dataclass(frozen=True)
class ReferenceTrace:
    """What the twin did: weights by kind, (layers, heads, query, key), and logits,
    (tgt, vocab_size); read-only float32."""

    attention: dict[str, np.ndarray]
    logits: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.logits.nbytes + sum(array.nbytes for array in self.attention.values())


class Reference(nn.Module):
    """torch.nn.Transformer with the weights of `model`, between the same embeddings and
    generator. Raises ValueError for a model whose layers it cannot express."""

    def __init__(self, model: ProbedModel):
        super().__init__()
        if odd := without_counterpart(model):
            raise ValueError(f"torch.nn.Transformer has no counterpart for {', '.join(odd)}.")
        assert isinstance(model, Transformer)
        model = view(model)  # the embeddings and generator here are ours alone
        config = self.config = model.config
        eps = next(iter(_eps(model)), 1e-5)
        layer: dict[str, Any] = dict(
            d_model=config.d_model,
            nhead=config.n_heads,
            dim_feedforward=config.d_ff,
            dropout=config.dropout,
            batch_first=True,
            norm_first=any(type(part) in PRE_NORM for part in model.modules()),
            layer_norm_eps=eps,
        )
        # A post-norm stack has no norm of its own, and nested tensors would drop padded rows.
        norms = [
            None if isinstance(stack.norm, nn.Identity) else nn.LayerNorm(config.d_model, eps)
            for stack in (model.encoder, model.decoder)
        ]
        with GENERATOR:
            encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(**layer),
                config.n_encoder_layers,
                norms[0],
                enable_nested_tensor=False,
            )
            decoder = nn.TransformerDecoder(
                nn.TransformerDecoderLayer(**layer), config.n_decoder_layers, norms[1]
            )
            twin = nn.Transformer(
                config.d_model,
                config.n_heads,
                custom_encoder=encoder,
                custom_decoder=decoder,
                batch_first=True,
            )
        weight = next(model.parameters())
        twin.to(weight.device, weight.dtype)
        twin.load_state_dict(_state(model, twin))
        twin.requires_grad_(False)
        self.src_embedding, self.tgt_embedding = model.src_embedding, model.tgt_embedding
        self.transformer = twin
        self.generator = model.generator
        self.windows = {site.kind: site.window for site in model.sites()}
        self.eval()

    def forward(self, src: Tensor, tgt: Tensor, masks: Masks = Masks()) -> Tensor:
        """src, tgt: ids, (batch, length). Logits, (batch, tgt, vocab_size)."""
        src_padding, tgt_padding = (
            ids == self.config.special_ids(side)[0] for side, ids in (("src", src), ("tgt", tgt))
        )
        src_mask = tgt_mask = None
        if masks.causal:
            tgt_mask = ~causal_mask(tgt.shape[1], tgt.device)
        if window := self.windows["encoder"]:
            src_mask = ~local_mask(src.shape[1], window, src.device)
        if window := self.windows["decoder"]:
            far = ~local_mask(tgt.shape[1], window, tgt.device)
            tgt_mask = far if tgt_mask is None else tgt_mask | far
        hidden = self.transformer(
            self.src_embedding(src),
            self.tgt_embedding(tgt),
            src_mask=src_mask,
            tgt_mask=tgt_mask,
            src_key_padding_mask=src_padding if masks.src_padding else None,
            tgt_key_padding_mask=tgt_padding if masks.tgt_padding else None,
            memory_key_padding_mask=src_padding if masks.memory_padding else None,
        )
        return self.generator(hidden)

    @torch.no_grad()
    def trace(
        self, model: ProbedModel, run: Run, means: Mapping[str, Tensor] = MappingProxyType({})
    ) -> ReferenceTrace:
        """The same pass as `trace` of the model that this is the twin of; `means` as Given has
        them. `self` must be the caller's own view. Raises CannotChange for a change that
        torch.nn.Transformer cannot be given."""
        if run.changes:
            check(run.changes, parts_of(model.sites(), model.sides()))
            twin = Reference(with_other_weights(model, run.changes, means))
        else:
            twin = self
        ids = ids_of(model, read_of(model, run))
        with (
            under_masks(attentions_of(twin.transformer), model, run.changes, run.masks, ids),
            capture_reference(twin.transformer) as captured,
        ):
            logits = twin(*ids, run.masks)
        attention = {
            kind: read_only(torch.stack([weights[0] for weights in captured[kind]]))
            for kind in captured
        }
        return ReferenceTrace(attention, read_only(logits[0]))


def attentions_of(transformer: nn.Transformer) -> dict[str, list[nn.MultiheadAttention]]:
    """Kind → one a layer."""
    ends = {
        "encoder": ("encoder", "self_attn"),
        "decoder": ("decoder", "self_attn"),
        "cross": ("decoder", "multihead_attn"),
    }
    return {
        kind: [
            part
            for name, part in transformer.named_modules()
            if isinstance(part, nn.MultiheadAttention)
            and (name.partition(".")[0], name.rpartition(".")[2]) == of_kind
        ]
        for kind, of_kind in ends.items()
    }


@contextmanager
def capture_reference(transformer: nn.Transformer):
    """Weights of every nn.MultiheadAttention, kind → list over layers of
    (batch, heads, query, key)."""
    captured: dict[str, list[Tensor]] = {}

    def with_weights(module, args, kwargs):
        # Without a Python hook and need_weights, eval() takes a fused path that keeps no weights.
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    def record(kind):
        return lambda module, inputs, output: captured.setdefault(kind, []).append(output[1])

    with ExitStack() as hooks:
        for kind, attentions in attentions_of(transformer).items():
            for attention in attentions:
                hooks.enter_context(
                    attention.register_forward_pre_hook(with_weights, with_kwargs=True)
                )
                hooks.enter_context(attention.register_forward_hook(record(kind)))
        yield captured


def without_counterpart(model: ProbedModel) -> list[str]:
    """The parts of a model that torch.nn.Transformer cannot express; empty if it has a twin."""
    if not isinstance(model, Transformer):
        is_alone = len(model.sides()) == 1
        return ["an encoder or decoder alone" if is_alone else f"{type(model).__name__}’s layers"]
    parts = [part for stack in (model.encoder, model.decoder) for part in stack.modules()]
    kinds = {type(part) for part in parts}
    odd = sorted(kind.__name__ for kind in kinds - PARTS - POST_NORM - PRE_NORM)
    if kinds & POST_NORM and kinds & PRE_NORM:
        odd.append("mixed pre-norm and post-norm layers")
    if any(isinstance(part, nn.Linear) and part.bias is None for part in parts):
        odd.append("projections without bias")
    if len(_eps(model)) > 1:
        odd.append("norms with different eps")
    return odd


def _eps(model: Transformer) -> set[float]:
    return {part.eps for part in model.modules() if isinstance(part, nn.LayerNorm)}


def _state(model: Transformer, twin: nn.Transformer) -> dict[str, Tensor]:
    """Our parameters under PyTorch's names."""
    state = {}
    for name, module in model.named_modules():
        name = name.replace("cross_attn", "multihead_attn").replace("feed_forward.", "")
        if isinstance(module, MultiHeadAttention):
            parts = (module.query, module.key, module.value)
            state[f"{name}.in_proj_weight"] = torch.cat([part.weight for part in parts])
            state[f"{name}.in_proj_bias"] = torch.cat([part.bias for part in parts])
            state[f"{name}.out_proj.weight"] = module.output.weight
            state[f"{name}.out_proj.bias"] = module.output.bias
        elif isinstance(module, nn.LayerNorm) or name.endswith(("linear1", "linear2")):
            state[f"{name}.weight"], state[f"{name}.bias"] = module.weight, module.bias
    if state.keys() != twin.state_dict().keys():
        raise ValueError("torch.nn.Transformer has no counterpart for this model's shape.")
    return state
