"""The tokenizer in the metadata of a GGUF file, as one of Hugging Face's library: byte-level BPE
(its model "gpt2") or SentencePiece's BPE with bytes for what is unknown ("llama")."""

from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from headlight.model.families.values import Described, quoted
from headlight.model.messages import reason
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.tokenizer import Tokenizer, panics_as_errors

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # token types
SPACE = "▁"
# What a text is split into before it is merged, by the name that llama.cpp has for it. A word is
# matched with the punctuation or space before it, a number in groups of so many digits.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)


def words(digits: str, add_prefix_space: bool = False) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(WORDS.format(digits=digits)), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=False)
    return pre_tokenizers.Sequence([split, as_bytes])


PRE_TOKENIZERS = {
    "gpt-2": _GPT2,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _GPT2]),
    "llama-bpe": words("{1,3}"),
    "qwen2": words(""),
}


# What a header may say of a tokenizer, as of an architecture: what is read here or changes nothing,
# and what has no other value that Headlight could follow. Of special tokens, which id stands where.
KNOWN = {
    "model", "pre", "tokens", "token_type", "scores", "merges", "added_tokens", "add_bos_token",
    "add_space_prefix",
}  # fmt: skip
USUAL: dict[str, tuple] = {
    "add_eos_token": (False,),
    "add_sep_token": (False,),
    "precompiled_charsmap": ([],),
    "remove_extra_whitespaces": (False,),
    "token_type_count": (0,),
}


def gguf_tokenizer(path: Path, metadata: dict) -> Tokenizer:
    """Raises CannotLoad for one that is missing, strange or broken."""
    values = {
        name.removeprefix("tokenizer.ggml."): value
        for name, value in metadata.items()
        if name.startswith("tokenizer.ggml.")
    }
    said = Described(values, str(path), "its header")
    for name, usual in USUAL.items():
        said.refuse(name, *usual)
    said.refuse_others(
        KNOWN | USUAL.keys() | {name for name in values if name.endswith("_token_id")}
    )
    kind, tokens, types = (values.get(name) for name in ("model", "tokens", "token_type"))
    if not isinstance(kind, str) or kind not in KINDS:
        raise CannotLoad(f"{path} has the tokenizer {quoted(kind)}; supported: {', '.join(KINDS)}.")
    if not isinstance(tokens, list) or not isinstance(types, list) or len(types) != len(tokens):
        raise CannotLoad(f"{path} has no tokenizer: its tokens or their types are missing.")
    try:
        with panics_as_errors():
            backend = KINDS[kind](path, values, tokens)
            typed = [*zip(tokens, types, strict=True)]
            special = [AddedToken(name, special=True) for name, one in typed if one == CONTROL]
            backend.add_special_tokens(special)
            added = [AddedToken(n, normalized=False) for n, one in typed if one == USER_DEFINED]
            backend.add_tokens(added)
            _around(backend, values, tokens, kind)
    except CannotLoad:
        raise
    except Exception as error:  # the library raises plain ones
        raise CannotLoad(f"{path} has a broken tokenizer: {reason(error)}.") from None
    if backend.get_vocab_size() != len(tokens):
        raise CannotLoad(f"{path} has a broken tokenizer: some tokens occur twice.")
    return Tokenizer(backend, typed=True)


def _byte_level(path: Path, values: dict, tokens: list[str]) -> tokenizers.Tokenizer:
    pre = values.get("pre")
    if not isinstance(pre, str) or pre not in PRE_TOKENIZERS:
        raise CannotLoad(
            f"{path} splits texts by the rule {quoted(pre)}; supported: "
            f"{', '.join(PRE_TOKENIZERS)}."
        )
    backend = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[tuple(pair.split(" ", 1)) for pair in values["merges"]],
            ignore_merges=pre == "llama-bpe",
        )
    )
    if pre == "qwen2":
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = PRE_TOKENIZERS[pre]
    backend.decoder = decoders.ByteLevel()
    return backend


def _byte_fallback(path: Path, values: dict, tokens: list[str]) -> tokenizers.Tokenizer:
    """SentencePiece merges whichever pair becomes the token of the best score, so that scores are
    the order of merges."""
    ids = {token: i for i, token in enumerate(tokens)}
    by_score = sorted(range(len(tokens)), key=lambda i: -values["scores"][i])
    merges = [
        (tokens[i][:at], tokens[i][at:])
        for i in by_score
        for at in range(1, len(tokens[i]))
        if tokens[i][:at] in ids and tokens[i][at:] in ids
    ]
    unknown = tokens[values.get("unknown_token_id", 0)]
    backend = tokenizers.Tokenizer(
        models.BPE(vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    prefix = values.get("add_space_prefix", True)
    backend.normalizer = normalizers.Sequence(
        [*([normalizers.Prepend(SPACE)] if prefix else []), normalizers.Replace(" ", SPACE)]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
         *([decoders.Strip(" ", 1, 0)] if prefix else [])]
    )  # fmt: skip
    return backend


KINDS = {"gpt2": _byte_level, "llama": _byte_fallback}


def _around(backend: tokenizers.Tokenizer, values: dict, tokens: list[str], kind: str) -> None:
    """What stands before a text: in byte-level BPE nothing, unless the file says so or is Llama
    3's, as llama.cpp has it."""
    bytes_alone = processors.ByteLevel(trim_offsets=True)
    begins = values.get("add_bos_token", kind == "llama" or values.get("pre") == "llama-bpe")
    if begins and "bos_token_id" in values:
        first = values["bos_token_id"]
        template = processors.TemplateProcessing(
            single=f"{tokens[first]} $A", special_tokens=[(tokens[first], first)]
        )
        steps = [template] if kind == "llama" else [bytes_alone, template]
        backend.post_processor = processors.Sequence(steps)
    elif kind == "gpt2":
        backend.post_processor = bytes_alone
