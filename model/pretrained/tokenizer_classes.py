"""How transformers 5 builds the tokenizer of a folder: where it has a class of its own for it, from
the vocabulary and merges in tokenizer.json alone, and what splits a text by the class and by
tokenizer_config.json. So that a text has the same ids here, the same is done."""

from collections.abc import Callable
from pathlib import Path

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from headlight.model.families.values import Described
from headlight.model.pretrained.gguf_tokenizer import words
from headlight.model.pretrained.weights import CannotLoad

AS_IT_IS = "PreTrainedTokenizer"  # tokenizer.json says it all
OTHER_NAMES = {"TokenizersBackend": AS_IT_IS, "PythonBackend": AS_IT_IS}
USUAL = {  # model_type → class, where none is named
    "bert": "BertTokenizer",
    "gpt2": "GPT2Tokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
}
FIXED = {"qwen2": "Qwen2Tokenizer", "mistral": AS_IT_IS}  # whatever is named


def _bert(backend: tokenizers.Tokenizer, said: Described) -> None:
    strip = said.values.get("strip_accents")
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=said.flag("tokenize_chinese_chars", True),
        strip_accents=None if strip is None else said.flag("strip_accents"),
        lowercase=said.flag("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.model.continuing_subword_prefix = "##"


def _gpt2(backend: tokenizers.Tokenizer, said: Described) -> None:
    backend.normalizer = None
    spaced = said.flag("add_prefix_space")
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    _plain(backend)


def _qwen2(backend: tokenizers.Tokenizer, said: Described) -> None:
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = words("", said.flag("add_prefix_space"))
    _plain(backend)


def _plain(backend: tokenizers.Tokenizer) -> None:
    """A BPE over bytes."""
    model = backend.model
    model.dropout = model.unk_token = None
    model.fuse_unk = model.byte_fallback = model.ignore_merges = False
    model.continuing_subword_prefix = model.end_of_word_suffix = ""


def _llama(backend: tokenizers.Tokenizer, said: Described) -> None:
    backend.normalizer = None
    scheme = "never"
    if said.flag("add_prefix_space", True):
        scheme = "always" if said.flag("legacy") else "first"
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme, split=False)
    _plain(backend)
    backend.model.fuse_unk = backend.model.byte_fallback = True


BUILT: dict[str, tuple[str, Callable[[tokenizers.Tokenizer, Described], None]]] = {
    # class → its kind of model, and what makes its parts
    "BertTokenizer": ("WordPiece", _bert),
    "GPT2Tokenizer": ("BPE", _gpt2),
    "Qwen2Tokenizer": ("BPE", _qwen2),
    "LlamaTokenizer": ("BPE", _llama),
}


def rebuild(
    backend: tokenizers.Tokenizer, file: Path, kind: str, said: Described, config: Described
) -> None:
    """Gives the tokenizer of a tokenizer.json the parts that transformers' class for it has.
    Raises CannotLoad for a class that is not known here, or does not fit."""
    both = (one.values.get("tokenizer_class") for one in (said, config))
    named = next((name for name in both if name is not None), None)
    if named is not None and not isinstance(named, str):
        raise CannotLoad(f"{said.where} has no name for tokenizer_class.")
    name = FIXED.get(kind) or (named or USUAL.get(kind, AS_IT_IS)).removesuffix("Fast")
    name = OTHER_NAMES.get(name, name)
    of_bytes = isinstance(backend.decoder, tokenizers.decoders.ByteLevel)
    if name == AS_IT_IS or (name == "LlamaTokenizer" and of_bytes):
        return
    model, build = BUILT.get(name, ("", None))
    if named is None and type(backend.model).__name__ != model:
        raise CannotLoad(f"{file} is no tokenizer of a {kind}. It belongs to another model.")
    if build is None or type(backend.model).__name__ != model:
        raise CannotLoad(
            f"{said.where} names the class {name[:60]!r}, which would not read a text as "
            f"{file.name} does. Headlight knows {', '.join(BUILT)}."
        )
    build(backend, said)
