"""Sixty and more architectures of transformers, small and random, beside those of models.py: most
take the sizes that those of their kind take."""

import transformers as tf

from tests.model.recording.models import ALL, IDS, NO_HEAD_DIM, B, E, L, T, V

G = dict(vocab_size=V, n_embd=32, n_layer=2, n_head=4, n_positions=70)  # as GPT-2 calls them
HYBRID = L | dict(num_hidden_layers=4)


def _decoders(sizes: dict, *names: str) -> dict:
    return {name: (getattr(tf, f"{name}ForCausalLM"), sizes) for name in names}


def _masked(sizes: dict, *names: str) -> dict:
    return {name: (getattr(tf, f"{name}ForMaskedLM"), sizes) for name in names}


def _written(sizes: dict, *names: str) -> dict:
    return {name: (getattr(tf, f"{name}ForConditionalGeneration"), sizes) for name in names}


MORE = (
    _masked(E | IDS, "Camembert", "XLMRoberta", "Esm", "Data2VecText", "Xmod", "MPNet")
    | _masked(E, "Deberta", "ConvBert", "RemBert", "MegatronBert", "Ernie", "RoCBert",
              "Nystromformer")
    | _masked(E | dict(embedding_size=32), "RoFormer")
    | _masked(E | dict(embedding_size=32, intra_bottleneck_size=32), "MobileBert")
    | _masked(E | IDS | dict(attention_window=8), "Longformer")
    | _masked(E | IDS | dict(block_size=2, num_random_blocks=1), "BigBird")
    | _masked(
        dict(vocab_size=V, d_model=32, n_head=4, d_head=8, d_inner=48, block_sizes=[1, 1]), "Funnel"
    )
    | _decoders(L, "Starcoder2", "Gemma", "Olmo2", "Nemotron", "Helium", "MiniMax")
    | _decoders(NO_HEAD_DIM | IDS, "StableLm", "Phi", "Olmo", "Granite", "Cohere", "Persimmon",
                "BioGpt")
    | _decoders(L | IDS | dict(num_experts=2, num_local_experts=2, num_experts_per_tok=1,
                               moe_intermediate_size=16), "Mixtral", "Qwen3Moe")
    | _decoders(L | IDS, "Glm", "SmolLM3")
    | _decoders(G | dict(rotary_dim=4), "GPTJ", "CodeGen")
    | _decoders(G, "GPTBigCode")
    | _decoders(dict(vocab_size=V, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48,
                     attention_types=[[["global", "local"], 1]], window_size=4,
                     max_position_embeddings=70), "GPTNeo")
    | _decoders(dict(vocab_size=V, d_model=32, n_heads=4, n_layers=2, max_seq_len=70), "Mpt")
    | _decoders(HYBRID | dict(layer_types=["conv", "conv", "full_attention", "conv"]), "Lfm2")
    | _decoders(HYBRID | dict(attn_layer_period=2, attn_layer_offset=1, num_experts=2,
                              mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False), "Jamba")
    | _decoders(HYBRID | IDS | dict(mamba_d_state=8, mamba_n_heads=8, mamba_d_head=8,
                                    mamba_n_groups=1, attn_layer_indices=[1, 3]), "Bamba")
    | _decoders(HYBRID | dict(lru_width=32, block_types=["recurrent", "recurrent", "attention"],
                              attention_window_size=8), "RecurrentGemma")
    | _decoders(HYBRID | dict(linear_num_key_heads=2, linear_num_value_heads=2,
                              linear_key_head_dim=8, linear_value_head_dim=8, num_experts=2,
                              num_experts_per_tok=1, moe_intermediate_size=16,
                              shared_expert_intermediate_size=16,
                              layer_types=["linear_attention", "full_attention"] * 2), "Qwen3Next")
    | {
        "XLNet": (tf.XLNetLMHeadModel,
                  dict(vocab_size=V, d_model=32, n_layer=2, n_head=4, d_inner=48)),
        "XLM": (tf.XLMWithLMHeadModel, dict(vocab_size=V, emb_dim=32, n_layers=2, n_heads=4,
                                            max_position_embeddings=70, pad_index=0)),
        "OpenAIGPT": (tf.OpenAIGPTLMHeadModel, G),
        "CTRL": (tf.CTRLLMHeadModel, G | dict(dff=48)),
        "Canine": (tf.CanineModel, E | dict(local_attention=False, num_hash_buckets=64)),
        "Marian": (tf.MarianMTModel, B),
        "Reformer": (tf.ReformerModelWithLMHead,
                     dict(vocab_size=V, hidden_size=32, num_attention_heads=4,
                          attention_head_size=8, axial_pos_embds=False, is_decoder=True,
                          feed_forward_size=48,
                          max_position_embeddings=70, attn_layers=["local", "local"],
                          local_attn_chunk_length=4)),
    }
    | _written(B, "Blenderbot", "BlenderbotSmall", "PLBart", "Mvp", "BigBirdPegasus", "PegasusX")
    | _written(B | dict(num_experts=2), "NllbMoe")
    | _written(B | dict(attention_window=4, max_encoder_position_embeddings=70,
                        max_decoder_position_embeddings=70), "LED")
    | _written(T, "UMT5", "LongT5")
    | _written(T | dict(num_experts=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
               "SwitchTransformers")
    | _written(dict(vocab_size=V, hidden_size=32, num_encoder_layers=2, num_decoder_layers=2,
                    num_encoder_attention_heads=4, num_decoder_attention_heads=4,
                    encoder_ffn_dim=48, decoder_ffn_dim=48, ngram=2, max_position_embeddings=70,
                    decoder_start_token_id=1, **IDS), "ProphetNet")
    | {"FSMT": (tf.FSMTForConditionalGeneration,
                {k: v for k, v in B.items() if k != "vocab_size"}
                | dict(src_vocab_size=V, tgt_vocab_size=V, langs=["en", "de"]))}
)  # fmt: skip


def made(name: str):
    """(the class, its configuration)."""
    if name in ALL:
        kind, config, sizes = ALL[name]
        return kind, config(**sizes)
    kind, sizes = MORE[name]
    return kind, kind.config_class(**sizes)


NAMES = [*ALL, *MORE]
