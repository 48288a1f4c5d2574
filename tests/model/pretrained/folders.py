"""Small folders in Hugging Face's layout, with random weights written by transformers itself, and
what transformers computes with them."""

import io
import json
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.probing.capture import capture, view

LINES = [
    "The dog sees the dog, and 12 cats see it.",
    "Ein Hund sieht die Katze, oder? Größe: 3,5 m.",
    "a naïve café – “quotes” and unbelievable transformations",
] * 4
SIZES = dict(hidden_size=24, num_attention_heads=4, num_hidden_layers=2, intermediate_size=40,
             max_position_embeddings=64)  # fmt: skip
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=16)  # fmt: skip
LONGROPE = dict(rope_type="longrope", rope_theta=100.0, short_factor=[1.0, 2.0, 4.0],
                long_factor=[1.0, 3.0, 5.5])  # fmt: skip
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16)
KINDS = {  # name → model_type, class, what its config says besides
    "bert": ("bert", "BertForMaskedLM", {}),
    "bert-untied": ("bert", "BertForMaskedLM", dict(tie_word_embeddings=False)),
    "minilm": ("bert", "BertModel", {}),
    "gpt2": ("gpt2", "GPT2LMHeadModel", {}),
    "gpt2-untied": ("gpt2", "GPT2LMHeadModel", dict(tie_word_embeddings=False)),
    "llama": ("llama", "LlamaForCausalLM", {}),
    "llama-biases": ("llama", "LlamaForCausalLM", dict(attention_bias=True, mlp_bias=True)),
    "llama-groups": ("llama", "LlamaForCausalLM",
                     dict(num_key_value_heads=2, head_dim=10, tie_word_embeddings=True)),
    "llama-linear": ("llama", "LlamaForCausalLM",
                     dict(rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=2.5))),
    "llama-dynamic": ("llama", "LlamaForCausalLM",
                      dict(rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=3.0),
                           max_position_embeddings=8)),
    "llama-dynamic-short": ("llama", "LlamaForCausalLM",  # longer than any text of the tests
                            dict(rope_parameters=dict(rope_type="dynamic", rope_theta=100.0,
                                                      factor=3.0))),
    "llama3": ("llama", "LlamaForCausalLM", dict(num_key_value_heads=1, rope_parameters=LLAMA3)),
    "llama-yarn": ("llama", "LlamaForCausalLM", dict(rope_parameters=YARN)),
    # No pair turns so seldom that it would be slowed down in full.
    "llama-yarn-quick": ("llama", "LlamaForCausalLM", dict(rope_parameters=YARN | dict(
        rope_theta=3.0, original_max_position_embeddings=64))),
    # The second of three pairs is slowed down in part, as the ramp's end is rounded up.
    "llama-yarn-round": ("llama", "LlamaForCausalLM", dict(rope_parameters=YARN | dict(
        original_max_position_embeddings=64))),
    "llama-longrope": ("llama", "LlamaForCausalLM", dict(rope_parameters=LONGROPE | dict(
        original_max_position_embeddings=12, attention_factor=1.1))),
    "llama-longrope-short": ("llama", "LlamaForCausalLM", dict(rope_parameters=LONGROPE | dict(
        original_max_position_embeddings=32, factor=1.5))),
    "llama-longrope-limit": ("llama", "LlamaForCausalLM", dict(rope_parameters=LONGROPE | dict(
        original_max_position_embeddings=17, factor=1.5))),  # the longest text of the tests
    "mistral": ("mistral", "MistralForCausalLM", dict(num_key_value_heads=2)),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", dict(num_key_value_heads=2)),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", dict(num_key_value_heads=2, head_dim=16)),
    "marian": ("marian", "MarianMTModel", {}),
    "marian-apart": ("marian", "MarianMTModel",
                     dict(share_encoder_decoder_embeddings=False, scale_embedding=False,
                          activation_function="relu")),
}  # fmt: skip
TEXT, TARGET = "the dog sees", "Ein Hund"  # that all of them can read
FAMILIES = ("bert", "minilm", "gpt2", "llama-groups", "qwen3", "marian")  # one of each


def write(folder: Path, kind: str, seed: int = 0, **changed) -> nn.Module:
    """A random model of a kind and its tokenizer; transformers' own model, in eval mode. `changed`
    are values of its config."""
    folder.mkdir(parents=True, exist_ok=True)
    model_type, name, more = KINDS[kind]
    special = TOKENIZERS[model_type](folder)
    sizes = SIZES | more
    if model_type == "gpt2":
        sizes = more | dict(n_embd=24, n_head=4, n_layer=2, n_positions=64)
    if model_type == "marian":
        sizes = more | dict(
            d_model=24, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40,
            max_position_embeddings=64, forced_eos_token_id=None,
        )  # fmt: skip
        sizes = dict(activation_function="swish", scale_embedding=True) | sizes
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(model_type, **sizes | special | changed)
    config._attn_implementation = "eager"
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # not sinusoids
                scale = 0.3 if parameter.ndim == 1 else 1.5 * parameter.shape[-1] ** -0.5
                parameter.normal_(float(parameter.ndim == 1 and parameter.mean() > 0.5), scale)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_()
        pad = special.get("pad_token_id")
        if model_type == "marian" and pad is not None:
            model.final_logits_bias[:, pad] = 30  # it would write nothing else if it could
    model.save_pretrained(folder)
    return model


def say(file: Path, **values) -> None:
    """Change what a file of JSON says; ... takes one away."""
    changed = json.loads(file.read_text("utf-8")) | values
    file.write_text(json.dumps({k: v for k, v in changed.items() if v is not ...}), "utf-8")


@torch.no_grad()
def differences(folder: Path, model: nn.Module, exact=nullcontext, lengths=(17, 9, 13)):
    """Of ours and transformers' model of a folder: the largest difference of the logits, as a share
    of the largest, and of all weights."""
    ours = load(folder).model
    config = ours.config
    ids = [random_batch(config.vocab_size, config.pad_id, lengths)]
    if len(ours.sides()) > 1:
        ids.append(random_batch(config.vocab_size, config.pad_id, (8, 12, 5), seed=1))
        ids[1][:, 0] = config.bos_id
    with exact(model):
        expected, weights = theirs(model, *ids, pad_id=config.pad_id)
    with capture(one := view(ours)) as outputs:
        found = one.hidden(*ids, *Masks().build(one, *ids))
        if expected.shape[-1] != config.d_model:
            found = one.logits(found, ids[-1])
    assert len(outputs) == len(weights) == len(one.sites()) and found.dtype == expected.dtype
    off = (found - expected).abs().max() / expected.abs().max().clamp(min=1)
    sites = [outputs[f"{site.name}.softmax"] for site in one.sites()]
    heads = [(a - b).abs().max() for a, b in zip(sites, weights, strict=True)]
    return off.item(), max(heads).item()


def in_doubles(folder: Path) -> None:
    """Store the weights of a folder as float64, with digits that float32 does not keep."""
    file = folder / "model.safetensors"
    save_file({name: one.double() + 1e-12 for name, one in load_file(file).items()}, file)


def trained(backend, trainer, folder: Path) -> tokenizers.Tokenizer:
    backend.train_from_iterator(LINES, trainer)
    backend.save(str(folder / "tokenizer.json"))
    return backend


def word_pieces(folder: Path) -> dict:
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=150, special_tokens=names, show_progress=False, continuing_subword_prefix="##"
    )
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.enable_truncation(8)  # as some come; it is not for us
    backend.enable_padding()
    backend = trained(backend, trainer, folder)
    return dict(vocab_size=backend.get_vocab_size(), pad_token_id=0)


def byte_level(folder: Path) -> dict:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend = trained(backend, trainer, folder)
    return dict(vocab_size=backend.get_vocab_size(), bos_token_id=0, eos_token_id=0)


def byte_fallback(folder: Path) -> dict:
    """As Llama 2: spaces as ▁, what is unknown as bytes."""
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    backend = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)],
        show_progress=False,
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    backend = trained(backend, trainer, folder)
    values = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    values["added_tokens"] = [one for one in values["added_tokens"] if one["id"] < len(special)]
    (folder / "tokenizer.json").write_text(json.dumps(values), "utf-8")
    ids = dict(bos_token_id=1, eos_token_id=2, pad_token_id=3)
    return dict(vocab_size=backend.get_vocab_size()) | ids


def sentence_piece(folder: Path) -> dict:
    import sentencepiece

    symbols: dict[str, int] = {"</s>": 0, "<unk>": 1}
    for side, lines in (("source", LINES), ("target", LINES[1::3] * 3)):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=70,
            hard_vocab_limit=False, character_coverage=1.0, minloglevel=2,
        )  # fmt: skip
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        for i in range(3, len(processor)):
            symbols.setdefault(processor.id_to_piece(i), len(symbols))
    symbols |= {">>deu<<": len(symbols), "<pad>": len(symbols) + 1}
    (folder / "vocab.json").write_text(json.dumps(symbols), "utf-8")
    pad = symbols["<pad>"]
    ids = dict(pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad)
    return dict(vocab_size=len(symbols), decoder_vocab_size=len(symbols)) | ids


TOKENIZERS = {
    "bert": word_pieces,
    "gpt2": byte_level,
    "llama": byte_fallback,
    "mistral": byte_fallback,
    "qwen2": byte_level,
    "qwen3": byte_level,
    "marian": sentence_piece,
}


@contextmanager
def default_type(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def in_float64(model: nn.Module):
    """transformers computes RMSNorm, rotary positions and softmax in float32 whatever a model's
    type is. Here "float32" means float64 to it, `model` is in float64, and what it computed from
    its config is computed anew."""
    patched = {
        (torch, "float32"): torch.float64,
        (torch, "float"): torch.float64,
        (torch, "FloatTensor"): torch.DoubleTensor,
        (torch.Tensor, "float"): torch.Tensor.double,
    }
    before = {place: getattr(*place) for place in patched}
    model.double()
    try:
        for place, value in patched.items():
            setattr(*place, value)
        with default_type(torch.double):
            for name, part in list(model.named_modules()):
                if name.endswith("rotary_emb"):
                    model.set_submodule(name, type(part)(model.config))
                if name.endswith("embed_positions"):
                    part.weight.data = part.create_weight()
            yield
    finally:
        for place, value in before.items():
            setattr(*place, value)


@torch.no_grad()
def theirs(model: nn.Module, *ids: torch.Tensor, pad_id: int) -> tuple[torch.Tensor, list]:
    """Logits (or last vectors) of a batch, and all weights, in the order of our sites."""
    arguments = dict(input_ids=ids[0], attention_mask=(ids[0] != pad_id).long())
    if len(ids) > 1:
        real = (ids[1] != pad_id).long()
        real[:, 0] = 1
        arguments |= dict(decoder_input_ids=ids[1], decoder_attention_mask=real)
        arguments |= dict(use_cache=False)
    found = model(**arguments, output_attentions=True, return_dict=True)
    if len(ids) > 1:
        weights = [*found.encoder_attentions, *found.decoder_attentions, *found.cross_attentions]
    else:
        weights = list(found.attentions)
    return found[0], weights


def random_batch(vocab_size: int, pad_id: int, lengths=(17, 9, 13), first: int = 4, seed: int = 0):
    """Ids of texts of these lengths, padded at their ends where there is padding."""
    chance = np.random.default_rng(seed)
    if pad_id < 0:
        lengths = (max(lengths),) * len(lengths)
    ids = np.full((len(lengths), max(lengths)), pad_id)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = chance.integers(first, vocab_size - 2, length)
    return torch.tensor(ids)
