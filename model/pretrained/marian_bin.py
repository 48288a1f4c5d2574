"""Marian's own .bin, as Firefox has its translators: a folder with model.*.bin, most of it in 8
bits, and vocab.*.spm. https://github.com/browsermt/marian-dev/blob/master/src/common/binary.cpp

A file is a table of names, types and shapes, then the numbers; among the tensors stands the
description of the model. Matrices in 8 bits are integers in the order (output, input), and behind
them the number that all were multiplied by. Those that were reordered for one kind of processor
are not read.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headlight.model.families.family import ACTIVATION_NAMES, Family, Shapes, Sizes
from headlight.model.families.values import Described, quoted
from headlight.model.files import read_within
from headlight.model.pretrained.binary import Bytes, StoredTensor
from headlight.model.pretrained.contents import Contents
from headlight.model.pretrained.sandbox import try_tokenizer
from headlight.model.pretrained.weights import CannotLoad, Stored, WeightFile
from headlight.model.spm_tokenizer import SentencePieceTokenizer
from headlight.model.tokenizer import LARGEST_TOKENIZER, Tokenizer

VERSION, MOST_AXES = 1, 4
FLOAT32, INTGEMM8, BYTES = 0x404, 0x4101, 0x101  # types of tensors
CONFIG = "special:model.yml"
EMBEDDING, BIAS = "Wemb", "decoder_ff_logit_out_b"
NEVER = -100.0  # logit of what is never written: a probability of e^-100 and less
MAX_LENGTH = 1024


def is_marian(path: Path) -> bool:
    return any(path.glob("model.*.bin"))


class MarianWeights(WeightFile):
    """The tensors of a .bin, dequantised one by one when they are read. A target begins with a
    vector of zeros: here that of one more token, which is never written."""

    def __init__(self, path: Path):
        """Reads the header alone. Raises CannotLoad."""
        self.bytes = read = Bytes(path)
        if read.whole("Q") != VERSION:
            raise CannotLoad(f"{path} is not a Marian model: it does not start with version 1.")
        heads = [read.numbers("Q", 4) for _ in range(read.room_for(read.whole("Q"), 32))]
        names = [read.text(length).rstrip("\0") for length, *_ in heads]
        shapes = []
        for _, _, axes, _ in heads:
            if not 1 <= axes <= MOST_AXES:
                raise CannotLoad(f"{path} is corrupt: a tensor has {axes:,} axes.")
            shapes.append(read.numbers("i", axes))
        read.take(read.whole("Q"))  # up to where numbers begin
        self.places: dict[str, StoredTensor] = {}
        for name, shape, (_, kind, _, size) in zip(names, shapes, heads, strict=True):
            self.places[name] = StoredTensor(shape, kind, read.at, size)
            read.take(size)
        if CONFIG not in self.places:
            raise CannotLoad(f"{path} lacks the description of its model, {CONFIG}.")
        shown = {
            name: _with_one_more(name, place.shape)
            for name, place in self.places.items()
            if name != CONFIG and not name.endswith("_QuantMultA")  # for products in 8 bits
        }
        for name in shown:
            self._check(name, self.places[name])
        super().__init__(path, shown)

    def _check(self, name: str, place: StoredTensor) -> None:
        if place.kind not in (FLOAT32, INTGEMM8):
            raise CannotLoad(
                f"{self.bytes.path} stores {name} as type {place.kind:#x}. Supported: float32, "
                "and 8-bit integers that are not packed for one processor."
            )
        needed = _length(place) + 4 if place.kind == INTGEMM8 else 4 * _length(place)
        if min(place.shape) < 1 or needed > place.size:
            raise CannotLoad(
                f"{self.bytes.path} is corrupt: {name} of shape {place.shape} needs {needed:,} "
                f"bytes but has {place.size:,}."
            )

    @property
    def description(self) -> str:
        """What the file says of its model, in YAML."""
        place = self.places[CONFIG]
        self.bytes.at = place.start
        return self.bytes.text(place.size).rstrip("\0")

    @contextmanager
    def opened(self) -> Iterator[Callable[[str], Tensor]]:
        yield self._tensor

    def _tensor(self, name: str) -> Tensor:
        place, count = self.places[name], _length(self.places[name])
        content = self.bytes.content[place.start : place.start + place.size]
        if place.kind == FLOAT32:
            numbers = np.frombuffer(content, "<f4", count).reshape(place.shape)
        else:
            integers = np.frombuffer(content, np.int8, count)
            (scale,) = np.frombuffer(content, "<f4", 1, count)
            with np.errstate(divide="ignore", invalid="ignore"):
                numbers = integers.astype(np.float32) / scale
            if name != EMBEDDING:  # that stands as it is, (token, d_model)
                numbers = numbers.reshape(place.shape[::-1]).T
            numbers = numbers.reshape(place.shape)
        if name == EMBEDDING:
            numbers = np.concatenate([numbers, np.zeros_like(numbers[:1])])
        elif name == BIAS:
            numbers = np.append(numbers, np.float32(NEVER))[None]
        return torch.from_numpy(np.array(numbers))


def _length(place: StoredTensor) -> int:
    return math.prod(place.shape)


def _with_one_more(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the token that a target begins with."""
    if name == EMBEDDING:
        return shape[0] + 1, *shape[1:]
    return (*shape[:-1], shape[-1] + 1) if name == BIAS else shape


def marian_sizes(config: Described, weights: Shapes) -> Sizes:
    for name, *usual in (
        ("type", "transformer"),
        ("transformer-decoder-autoreg", "rnn"),
        ("dec-cell", "ssru"),
        ("dec-cell-base-depth", 2),
        ("transformer-ffn-depth", 2),
        ("transformer-preprocess", ""),
        ("transformer-postprocess", "dan", "an"),
        ("transformer-postprocess-emb", "d", ""),
        ("transformer-postprocess-top", ""),
        ("transformer-train-position-embeddings", False),
        ("transformer-tied-layers", []),
        ("transformer-rnn-projection", False),
        ("transformer-no-projection", False),
        ("transformer-decoder-dim-ffn", 0),
        ("tied-embeddings-all", True),
        ("lemma-dim-emb", 0),
        ("input-types", []),
        ("right-left", False),
        ("output-omit-bias", False),
        ("ulr", False),
    ):
        config.refuse(name, *usual)
    return dict(
        vocab_size=config.count("vocabulary") + 1,
        d_model=config.count("dim-emb"),
        n_heads=config.count("transformer-heads"),
        d_ff=config.count("transformer-dim-ffn"),
        n_encoder_layers=config.count("enc-depth"),
        n_decoder_layers=config.count("dec-depth"),
        max_length=MAX_LENGTH,
        activation=ACTIVATION_NAMES[
            config.choice("transformer-ffn-activation", ACTIVATION_NAMES, "swish")
        ],
    )


def _matrix(ours: str, theirs: str, matrix: str, bias: str) -> dict[str, str | Stored]:
    """The names of a linear map; Marian's matrices are (input, output)."""
    return {
        f"{ours}.weight": Stored(f"{theirs}_{matrix}", True),
        f"{ours}.bias": f"{theirs}_{bias}",
    }


def _norm(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.weight": f"{theirs}_ln_scale", f"{ours}.bias": f"{theirs}_ln_bias"}


def _attention(ours: str, theirs: str) -> dict[str, str | Stored]:
    names: dict[str, str | Stored] = {}
    for part in ("query", "key", "value", "output"):
        names |= _matrix(f"{ours}.{part}", theirs, f"W{part[0]}", f"b{part[0]}")
    return names


def _feed_forward(ours: str, theirs: str) -> dict[str, str | Stored]:
    return _matrix(f"{ours}.linear1", theirs, "W1", "b1") | _matrix(
        f"{ours}.linear2", theirs, "W2", "b2"
    )


_ENCODER, _DECODER = "encoder.layers.{}", "decoder.layers.{}"
MARIAN_BIN = Family(
    "marian_ssru",
    marian_sizes,
    {
        "src_embedding.token.weight": EMBEDDING,
        "generator.bias": BIAS,
        **_attention(f"{_ENCODER}.self_attn", "encoder_l{}_self"),
        **_norm(f"{_ENCODER}.norm1", "encoder_l{}_self_Wo"),
        **_feed_forward(f"{_ENCODER}.feed_forward", "encoder_l{}_ffn"),
        **_norm(f"{_ENCODER}.norm2", "encoder_l{}_ffn_ffn"),
        f"{_DECODER}.recurrence.input.weight": Stored("decoder_l{}_rnn_W", True),
        **_matrix(f"{_DECODER}.recurrence.forget", "decoder_l{}_rnn", "Wf", "bf"),
        **_norm(f"{_DECODER}.norm1", "decoder_l{}_rnn_ffn"),
        **_attention(f"{_DECODER}.cross_attn", "decoder_l{}_context"),
        **_norm(f"{_DECODER}.norm2", "decoder_l{}_context_Wo"),
        **_feed_forward(f"{_DECODER}.feed_forward", "decoder_l{}_ffn"),
        **_norm(f"{_DECODER}.norm3", "decoder_l{}_ffn_ffn"),
    },
    "",
    {"n_encoder_layers": r"encoder_l(\d+)_", "n_decoder_layers": r"decoder_l(\d+)_"},
    EMBEDDING,
    first=1,
    starts=True,
)


def marian_contents(folder: Path) -> Contents:
    """What the .bin in a folder says of itself. Raises CannotLoad."""
    path = _only(folder, "model.*.bin")
    try:
        import yaml  # an extra: only who has such a file needs it
    except ImportError:
        raise CannotLoad(f"{path} needs the package pyyaml. Run: pip install pyyaml") from None
    weights = MarianWeights(path)
    try:
        values = yaml.safe_load(weights.description)
    except yaml.YAMLError:
        values = None
    if not isinstance(values, dict):
        raise CannotLoad(f"{path} is corrupt: {CONFIG} does not describe a model.")
    sizes = values.get("dim-vocabs")
    if not isinstance(sizes, list) or len(set(sizes)) != 1 or type(sizes[0]) is not int:
        raise CannotLoad(
            f"{path} has {quoted(sizes)} for dim-vocabs; source and target must share one "
            "vocabulary."
        )
    values |= {"vocabulary": sizes[0], "eos_token_id": 0}
    values |= {"pad_token_id": sizes[0], "decoder_start_token_id": sizes[0]}

    def tokenizer() -> Tokenizer:
        try:
            file = _only(folder, "vocab.*.spm")
            try_tokenizer(file, read_within(file, LARGEST_TOKENIZER), "sentencepiece")
            return SentencePieceTokenizer.of_one(file)
        except (OSError, ValueError) as error:
            raise CannotLoad(str(error)) from None

    return Contents(
        where=path,
        family=MARIAN_BIN,
        config=Described(values, str(path), CONFIG),
        weights=weights,
        tokenizer=tokenizer,
        card={"title": folder.name, "family": "marian"} | _languages(path),
        files=(path,),
        more={},
    )


def _languages(path: Path) -> dict:
    """From which language into which, as Firefox names its files: model.enpt.intgemm.alphas.bin."""
    named = re.match(r"model\.([a-z]{2})([a-z]{2})\.", path.name)
    return {"direction": list(named.groups())} if named else {}


def _only(folder: Path, pattern: str) -> Path:
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        what = "several files" if files else "no file"
        raise CannotLoad(f"{folder} has {what} {pattern}; one is needed.")
    return files[0]
