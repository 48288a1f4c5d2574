"""What other systems call the parameters that we call ours, for presets.load_foreign."""

import re

from torch import Tensor

# Name of a preset → patterns of its system's names, and ours. The first that fits counts; ""
# stands for a table that we make ourselves.
NAMES = {
    "annotated": [
        (r"(src|tgt)_embed\.0\.lut\.weight", r"\1_embedding.token.weight"),
        (r"(src|tgt)_embed\.1\.pe", ""),
        (r"generator\.proj\.(.+)", r"generator.\1"),
        (r"(.+)\.self_attn\.linears\.(\d)\.(.+)", r"\1.self_attn.<attention \2>.\3"),
        (r"(.+)\.src_attn\.linears\.(\d)\.(.+)", r"\1.cross_attn.<attention \2>.\3"),
        (r"(.+)\.feed_forward\.w_(\d)\.(.+)", r"\1.feed_forward.linear\2.\3"),
        (r"(.+)\.sublayer\.(\d)\.norm\.(.+)", r"\1.norm<next \2>.<norm \3>"),
        (r"(encoder|decoder)\.norm\.(.+)", r"\1.norm.<norm \2>"),
    ],
    "hyunwoongko": [
        (r"encoder\.emb\.tok_emb\.weight", "src_embedding.token.weight"),
        (r"decoder\.emb\.tok_emb\.weight", "tgt_embedding.token.weight"),
        (r"decoder\.linear\.(.+)", r"generator.\1"),
        (r"(.+)\.enc_dec_attention\.w_(\w+)\.(.+)", r"\1.cross_attn.<attention \2>.\3"),
        (r"(.+)\.(?:self_)?attention\.w_(\w+)\.(.+)", r"\1.self_attn.<attention \2>.\3"),
        (r"(.+)\.ffn\.linear(\d)\.(.+)", r"\1.feed_forward.linear\2.\3"),
        (r"(.+)\.norm(\d)\.(.+)", r"\1.norm\2.<norm \3>"),
    ],
    # Layers alone; what they are held by and what stands around them is ours.
    "vanilla": [
        (r"(.+)\.second_multihead_attention\.(\w+)_projector\.(.+)", r"\1.cross_attn.\2.\3"),
        (r"(.+)\.(?:first_)?multihead_attention\.(\w+)_projector\.(.+)", r"\1.self_attn.\2.\3"),
        (r"(.+)\.(\w+)_layer_normalization\.(.+)", r"\1.norm<count \2>.<norm \3>"),
        (r"(.+)\.feed_forward_network\.layers\.(\d)\.(.+)", r"\1.feed_forward.linear<part \2>.\3"),
        (r"((?:src|tgt)_embedding\.token|generator)\.weight", r"\1.weight"),
    ],
    # Its heads stand in plain lists, which state_dict() passes over: they have to be in a
    # ModuleList to be saved at all.
    "van_dijck": [
        (r"input_embedding\.weight", "src_embedding.token.weight"),
        (r"target_embedding\.weight", "tgt_embedding.token.weight"),
        (r"linear\.(.+)", r"generator.\1"),
        (r"positional_encoder\..+", ""),
        (
            r"(encoder|decoder)\.(\d+)\.(?:masked_)?heads?\.(\d+)\.linear_transform_(\w)\.(.+)",
            r"\1.layers.\2.self_attn.<attention \4>.heads.\3.\5",
        ),
        (
            r"decoder\.(\d+)\.unmasked_heads?\.(\d+)\.linear_transform_(\w)\.(.+)",
            r"decoder.layers.\1.cross_attn.<attention \3>.heads.\2.\4",
        ),
        (r"decoder\.(\d+)\.unmasked_mha_fc_out\.(.+)", r"decoder.layers.\1.cross_attn.output.\2"),
        (
            r"(encoder|decoder)\.(\d+)\.(?:masked_)?mha_fc_out\.(.+)",
            r"\1.layers.\2.self_attn.output.\3",
        ),
        (
            r"(encoder|decoder)\.(\d+)\.feed_forward\.(\d)\.(.+)",
            r"\1.layers.\2.feed_forward.linear<part \3>.\4",
        ),
        (r"(encoder|decoder)\.(\d+)\.norm(\d)\.(.+)", r"\1.layers.\2.norm\3.\4"),
    ],
    "bloem": [
        (r"token_emb\.weight", "src_embedding.token.weight"),
        (r"pos_emb\.weight", "src_embedding.position.weight"),
        (r"toprobs\.(.+)", r"generator.\1"),
        (
            r"tblocks\.(\d+)\.attention\.(\w+)\.(.+)",
            r"encoder.layers.\1.self_attn.<attention \2>.\3",
        ),
        (r"tblocks\.(\d+)\.ff\.(\d)\.(.+)", r"encoder.layers.\1.feed_forward.linear<part \2>.\3"),
        (r"tblocks\.(\d+)\.norm(\d)\.(.+)", r"encoder.layers.\1.norm\2.\3"),
    ],
}
WORDS = {  # what stands in <> above, read by its first word
    "attention": {
        **dict(zip("0123", ("query", "key", "value", "output"), strict=True)),
        **dict(zip("qkv", ("query", "key", "value"), strict=True)),
        **dict(zip("QKV", ("query", "key", "value"), strict=True)),
        **{"concat": "output", "unifyheads": "output"},
        **{"toqueries": "query", "tokeys": "key", "tovalues": "value"},
    },
    "norm": {"gamma": "weight", "beta": "bias", "a_2": "weight", "b_2": "bias"},
    "next": {"0": "1", "1": "2", "2": "3"},
    "count": {"first": "1", "second": "2", "third": "3"},
    "part": {"0": "1", "2": "2", "3": "2"},  # of a Sequential, with or without dropout
}


def ours(name: str, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a system's state dict under our names. ValueError for a name that the
    system does not have."""
    if name not in NAMES:
        raise ValueError(f"no names are known of {name!r}; there are {', '.join(NAMES)}")
    found = {}
    for theirs, tensor in state_dict.items():
        fits = ((re.fullmatch(pattern, theirs), becomes) for pattern, becomes in NAMES[name])
        match, replacement = next(((m, becomes) for m, becomes in fits if m), (None, None))
        if not match:
            raise ValueError(f"{name} has no parameter {theirs!r}")
        if replacement:
            found[re.sub(r"<(\w+) (\w+)>", _word, match.expand(replacement))] = tensor
    return found


def _word(match: re.Match) -> str:
    return WORDS[match[1]].get(match[2], match[2])


def sizes_of(weights: dict[str, Tensor]) -> dict[str, int]:
    """The sizes that shapes tell, as fields of any preset's Config; of n_heads they tell only
    where heads have projections of their own width."""

    def count(pattern: str) -> int:
        return len({m[1] for key in weights if (m := re.match(pattern, key))})

    def shape(key: str):
        if key not in weights:
            raise ValueError(f"there is no {key} among the weights")
        return weights[key].shape

    vocab_size, d_model = shape("src_embedding.token.weight")
    sizes = {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "d_ff": shape("encoder.layers.0.feed_forward.linear1.weight")[0],
        "n_encoder_layers": count(r"encoder\.layers\.(\d+)\."),
        "n_decoder_layers": count(r"decoder\.layers\.(\d+)\."),
    }
    if "tgt_embedding.token.weight" in weights:
        sizes["tgt_vocab_size"] = len(weights["tgt_embedding.token.weight"])
    query = "encoder.layers.0.self_attn.query"
    if heads := count(rf"{re.escape(query)}\.heads\.(\d+)\."):
        sizes |= {"n_heads": heads, "hidden_size": shape(f"{query}.heads.0.weight")[0]}
    if "src_embedding.position.weight" in weights:  # a classifier, its heads as wide as the model
        sizes |= {
            "n_heads": shape(f"{query}.weight")[0] // d_model,
            "max_length": shape("src_embedding.position.weight")[0],
            "n_classes": shape("generator.weight")[0],
        }
    return sizes
