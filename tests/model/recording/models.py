"""Small models of transformers with random weights, and what they are called with."""

import copy
import hashlib

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

V, LENGTH = 97, 9
E = dict(vocab_size=V, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
         intermediate_size=48, max_position_embeddings=70)  # fmt: skip
L = E | dict(num_key_value_heads=2, head_dim=8)
NO_HEAD_DIM = E | dict(num_key_value_heads=2)
IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
B = dict(vocab_size=V, d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
         decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
         max_position_embeddings=70, decoder_start_token_id=2,
         forced_eos_token_id=None, **IDS)  # fmt: skip
T = dict(vocab_size=V, d_model=32, d_kv=8, d_ff=48, num_layers=3, num_decoder_layers=3, num_heads=4,
         relative_attention_num_buckets=8, decoder_start_token_id=0, pad_token_id=0,
         eos_token_id=2)  # fmt: skip
BY_TABLE = {  # asks transformers' table for its attention: can be changed, too
    "bert": (tf.BertForMaskedLM, tf.BertConfig, E),
    "roberta": (tf.RobertaForMaskedLM, tf.RobertaConfig, E | IDS),
    "distilbert": (tf.DistilBertForMaskedLM, tf.DistilBertConfig,
                   dict(vocab_size=V, dim=32, n_layers=3, n_heads=4, hidden_dim=48)),
    "electra": (tf.ElectraForPreTraining, tf.ElectraConfig, E | dict(embedding_size=16)),
    "albert": (tf.AlbertForMaskedLM, tf.AlbertConfig, E | dict(embedding_size=16)),
    "modernbert": (tf.ModernBertForMaskedLM, tf.ModernBertConfig,
                   E | IDS | dict(local_attention=4, global_attn_every_n_layers=2,
                                  cls_token_id=1, sep_token_id=2)),
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config,
             dict(vocab_size=V, n_embd=32, n_layer=3, n_head=4, n_positions=70)),
    "gpt_neox": (tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig, E),
    "opt": (tf.OPTForCausalLM, tf.OPTConfig,
            dict(vocab_size=V, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                 ffn_dim=48, max_position_embeddings=70, word_embed_proj_dim=32)),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig, L),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config,
              NO_HEAD_DIM | dict(use_sliding_window=True, sliding_window=4, max_window_layers=1)),
    "qwen3": (tf.Qwen3ForCausalLM, tf.Qwen3Config, L),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig, L | dict(sliding_window=4)),
    "gemma2": (tf.Gemma2ForCausalLM, tf.Gemma2Config,
               L | dict(sliding_window=4, attn_logit_softcapping=5.0, query_pre_attn_scalar=8)),
    "gemma3": (tf.Gemma3ForCausalLM, tf.Gemma3TextConfig,
               L | dict(sliding_window=4, query_pre_attn_scalar=8)),
    "phi3": (tf.Phi3ForCausalLM, tf.Phi3Config,
             NO_HEAD_DIM | dict(pad_token_id=0, sliding_window=5)),
    "gpt_oss": (tf.GptOssForCausalLM, tf.GptOssConfig,
                L | dict(num_local_experts=2, num_experts_per_tok=1, sliding_window=4)),
    "bart": (tf.BartForConditionalGeneration, tf.BartConfig, B),
    "mbart": (tf.MBartForConditionalGeneration, tf.MBartConfig, B),
    "pegasus": (tf.PegasusForConditionalGeneration, tf.PegasusConfig, B),
    "m2m_100": (tf.M2M100ForConditionalGeneration, tf.M2M100Config, B),
    "t5": (tf.T5ForConditionalGeneration, tf.T5Config, T),
    "mt5": (tf.MT5ForConditionalGeneration, tf.MT5Config, T | dict(feed_forward_proj="gated-gelu")),
    "whisper": (tf.WhisperForConditionalGeneration, tf.WhisperConfig,
                {k: v for k, v in B.items() if k != "max_position_embeddings"}
                | dict(num_mel_bins=8, max_source_positions=20, max_target_positions=30)),
    "vit": (tf.ViTModel, tf.ViTConfig,
            dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
                 image_size=16, patch_size=4)),
}  # fmt: skip
BY_OUTPUT = {  # does not: can be read only
    "bloom": (tf.BloomForCausalLM, tf.BloomConfig,
              dict(vocab_size=V, hidden_size=32, n_layer=3, n_head=4)),
    "falcon": (tf.FalconForCausalLM, tf.FalconConfig,
               dict(vocab_size=V, hidden_size=32, num_hidden_layers=3, num_attention_heads=4)),
    "xglm": (tf.XGLMForCausalLM, tf.XGLMConfig,
             dict(vocab_size=V, d_model=32, num_layers=3, attention_heads=4, ffn_dim=48)),
    "deberta": (tf.DebertaV2ForMaskedLM, tf.DebertaV2Config,
                E | dict(relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8)),
}  # fmt: skip
ALL = BY_TABLE | BY_OUTPUT
TWO_TEXTS = {"bart", "mbart", "pegasus", "m2m_100", "t5", "mt5", "whisper"}
SINKS = {"gpt_oss"}
THEIRS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")


def model_of(name, seed=0):
    kind, config, sizes = ALL[name]
    torch.manual_seed(seed)
    model = kind(config(**sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model.eval()


def inputs_of(name, length=LENGTH):
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(3, V, (1, length), generator=random)
    target = torch.randint(3, V, (1, 6), generator=random)
    if name == "vit":
        return dict(pixel_values=torch.randn(1, 3, 16, 16, generator=random))
    if name == "whisper":
        features = torch.randn(1, 8, 40, generator=random)
        return dict(input_features=features, decoder_input_ids=target)
    inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids))
    return inputs | dict(decoder_input_ids=target) if name in TWO_TEXTS else inputs


def eager(model):
    """A copy of the model with eager attention. Not by set_attn_implementation: models that do not
    ask the table stay with sdpa, and Falcon then returns weights without its causal mask."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "_attn_implementation_internal"):
            module.config._attn_implementation_internal = "eager"
    return model


def state_of(model):
    """Everything by which one could tell that somebody was there."""
    digest = hashlib.sha256()
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(name.encode() + tensor.detach().float().numpy().tobytes())
    modules = []
    for name, module in model.named_modules():
        hooks = [(k, tuple(v.items())) for k, v in vars(module).items() if "_hooks" in k and
                 isinstance(v, dict)]  # fmt: skip
        trained = {k for k, p in module.named_parameters(recurse=False) if p.requires_grad}
        modules.append((name, type(module), module.training, hooks, sorted(vars(module)), trained))
    configs = [
        (type(m.config).__name__, m.config._attn_implementation, m.config.to_json_string())
        for m in model.modules() if hasattr(m, "config")
    ]  # fmt: skip
    return digest.hexdigest(), modules, configs, torch.get_rng_state().tolist()


def named(names, short):
    """Parameters of a test, of which `make test` takes the `short` ones alone."""
    return [n if n in short else pytest.param(n, marks=pytest.mark.long) for n in names]


SHORT = {"llama", "bart", "gemma2", "falcon", "deberta"}  # two of them do not ask the table


def in_part(model):
    """Some modules in training mode, as where layers are frozen."""
    for i, module in enumerate(model.modules()):
        module.training = i % 3 == 0
    return model


def some(shape=(2, 4, 5, 5), causal=False, seed=0):
    weights = np.random.default_rng(seed).random(shape).astype(np.float32) + 0.01
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(axis=-1, keepdims=True)


TOKENS = ["[CLS]", "un", "##believ", "##able", "[SEP]"]


class Own(nn.Module):
    def __init__(self, batch_first=True):
        super().__init__()
        torch.manual_seed(0)
        self.transformer = nn.Transformer(16, 4, 2, 2, 32, batch_first=batch_first, dropout=0.2)

    def forward(self, src, tgt):
        length = tgt.shape[1 if self.transformer.batch_first else 0]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.transformer(src, tgt, tgt_mask=mask, tgt_is_causal=True)
