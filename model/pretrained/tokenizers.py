"""The tokenizer of a folder in Hugging Face's layout, and which ids are special in it."""

from pathlib import Path
from textwrap import shorten

from headlight.model.families.family import Family, Sizes
from headlight.model.families.values import Described, values_in
from headlight.model.files import read_json
from headlight.model.pretrained.tokenizer_classes import rebuild
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.spm_tokenizer import SPECIAL, UNKNOWN, SentencePieceTokenizer
from headlight.model.tokenizer import (
    LARGEST_TOKENIZER,
    CannotRead,
    Tokenizer,
    backend_of,
    panics_as_errors,
)

MASK = "[MASK]"
SAID = "tokenizer_config.json"  # which may say otherwise than the tokenizer itself
MOST_SAID = 200  # letters of what the library says of a file
SPARE = 128  # rows that a vocabulary may have besides, to be a round number


def tokenizer_of(folder: Path, config: Described) -> Tokenizer:
    """Of a model that a config.json describes. Raises CannotLoad for a missing, broken or strange
    one."""
    kind = str(config.values["model_type"])
    needed = "source.spm" if kind == "marian" else "tokenizer.json"
    if not (folder / needed).is_file():
        raise CannotLoad(f"{folder} has no readable tokenizer: {needed} is missing.")
    said = Described(values_in(file) if (file := folder / SAID).is_file() else {}, str(file), SAID)
    if kind != "marian":
        return _from_json(folder / needed, kind, said, config)
    try:
        return SentencePieceTokenizer.of_two(folder, _separate(folder, said))
    except (OSError, ValueError) as error:
        raise CannotLoad(str(error)) from None


def _separate(folder: Path, said: Described) -> bool:
    """Whether source and target of a Marian have a vocabulary each. Raises CannotLoad where its
    files contradict each other."""
    other = folder / "target_vocab.json"
    separate = said.flag("separate_vocabs")
    if separate != other.is_file():
        verb = "There is no" if separate else "There is a"
        raise CannotLoad(
            f"{verb} file {other}, but {said.where} has {separate} for separate_vocabs."
        )
    for name, usual in (
        ("unk_token", UNKNOWN),
        *zip(("eos_token", "pad_token"), SPECIAL, strict=True),
    ):
        said.refuse(name, usual, {"content": usual})
    return separate


def check_vocabulary(where: Path, tokenizer: Tokenizer, sizes: Sizes) -> None:
    """Raises CannotLoad where a tokenizer does not fit the model's vocabulary."""
    for side, vocabulary in (
        (tokenizer, sizes["vocab_size"]),
        (tokenizer.target, sizes.get("tgt_vocab_size", sizes["vocab_size"])),
    ):
        last = side.last_id
        if last >= vocabulary:
            raise CannotLoad(
                f"{where}: its tokenizer has ids up to {last:,}, but the model has "
                f"{vocabulary:,} tokens. It belongs to another model."
            )
        if last + 1 + SPARE + vocabulary // 100 < vocabulary:
            raise CannotLoad(
                f"{where}: its tokenizer has {last + 1:,} tokens, but the model has "
                f"{vocabulary:,}. It belongs to another model."
            )


def _from_json(file: Path, kind: str, said: Described, config: Described) -> Tokenizer:
    try:
        values = read_json(file, LARGEST_TOKENIZER)
        for token in values.get("added_tokens") or ():
            if token["content"] == MASK:  # one types it: it is what BERT fills in
                token["special"] = False
        with panics_as_errors():
            backend = backend_of(values)
            rebuild(backend, file, kind, said, config)
            return Tokenizer(backend, typed=True)
    except CannotLoad:
        raise
    # The library raises plain Exceptions.
    except Exception as error:
        # The library quotes what stands in the file, however long that is.
        why = shorten(str(error).rstrip("."), MOST_SAID, placeholder=" …")
        raise CannotLoad(f"{file} is not a tokenizer: {why}.") from None


def special_ids(
    where: Path, tokenizer: Tokenizer, config: Described, family: Family, vocabulary: int
) -> Sizes:
    """The fields pad_id, bos_id, eos_id, src_* and special_tokens: what stands around a text, as
    the tokenizer puts it there. Raises CannotLoad where it is not what the config says."""
    pad, bos_in_config, eos = map(config.token, ("pad_token_id", "bos_token_id", "eos_token_id"))
    own: Sizes = {}  # of the source, where there are two
    if family.starts:
        bos = config.token("decoder_start_token_id")
        if min(pad, bos, eos) < 0:
            raise CannotLoad(
                f"{config.where} lacks pad_token_id, eos_token_id or decoder_start_token_id."
            )
        if bos > tokenizer.target.last_id:
            raise CannotLoad(
                f"{where}: {config.said_by} says {bos:,} for decoder_start_token_id, but its "
                f"tokenizer has ids up to {tokenizer.target.last_id:,}."
            )
        wanted = {"</s>": eos, "<pad>": pad}
        ids = {name: tokenizer.target.id_of(name) for name in wanted}
        if ids != wanted:
            raise CannotLoad(
                f"{where}: its tokenizer has {ids}, but {config.said_by} says {wanted}. It "
                "belongs to another model."
            )
        of_source = {name: tokenizer.id_of(name) for name in wanted}
        if None in of_source.values():
            raise CannotLoad(f"{where}: its source vocabulary lacks </s> or <pad>.")
        own = dict(src_eos_id=of_source["</s>"], src_pad_id=of_source["<pad>"])
    else:
        # A config keeps GPT-2's default id, 50256, for a smaller vocabulary: no token has it.
        pad, bos_in_config, eos = (
            token if token < vocabulary else -1 for token in (pad, bos_in_config, eos)
        )
        try:
            before, behind = tokenizer.around()
        except CannotRead as error:
            raise CannotLoad(f"{where}: {error}") from None
        if len(before) > 1 or (len(behind) > 1):
            raise CannotLoad(
                f"{where}: its tokenizer adds several tokens around a text, which is not supported."
            )
        if max((*before, *behind), default=0) > tokenizer.target.last_id:
            raise CannotLoad(f"{where}: its tokenizer adds an id that its vocabulary lacks.")
        bos = before[0] if before else -1
        if family.surrounds:
            eos = behind[0] if behind else -1
            if min(bos, eos) < 0:
                raise CannotLoad(
                    f"{where}: its tokenizer adds no [CLS] and [SEP] around a text. It belongs "
                    "to another model."
                )
        if not family.surrounds and before and bos_in_config >= 0 and bos != bos_in_config:
            raise CannotLoad(
                f"{where}: its tokenizer starts texts with the id {bos}, but {config.said_by} "
                f"has {bos_in_config} for bos_token_id. It belongs to another model."
            )
        if pad in (bos, eos):
            pad = -1  # no token of its own: a text could not be told from its padding
    for name, token in (("pad_token_id", pad), ("eos_token_id", eos)):
        if token >= 0 and not tokenizer.target.is_added(token):
            raise CannotLoad(
                f"{where}: {config.said_by} has {token} for {name}, which is no special token of "
                f"its tokenizer of {tokenizer.target.last_id + 1:,} tokens. Set {name} to the id "
                "of one, or to null if there is none."
            )
    names = tuple(tokenizer.target.token(i) if i >= 0 else "" for i in (pad, bos, eos))
    return own | dict(pad_id=pad, bos_id=bos, eos_id=eos, special_tokens=names)
