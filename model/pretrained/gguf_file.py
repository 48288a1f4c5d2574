"""GGUF: the files of llama.cpp, each a whole language model. First its metadata, with sizes and
tokenizer, then the tensors, most of them quantised.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

The header is read here, because the reader of the package `gguf` believes what a header says of its
lengths; the numbers are dequantised by that package.
"""

import math
import mmap
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headlight.model.extras import missing
from headlight.model.families.family import EPSILON, ONE_MATRIX, Family, Shapes, Sizes
from headlight.model.families.llama import BASE, ROTARY
from headlight.model.families.values import LONGEST, Described, quoted
from headlight.model.files import open_regular
from headlight.model.messages import reason
from headlight.model.pretrained.contents import Contents
from headlight.model.pretrained.gguf_tokenizer import gguf_tokenizer
from headlight.model.pretrained.weights import CannotLoad, WeightFile

MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32
# The specification's types of metadata → letters of the module struct.
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}  # fmt: skip
STRING, ARRAY = 8, 9
MOST = 2**22  # entries of all lists: no vocabulary comes to as many
MOST_AXES = 4
FACTORS = "rope_freqs.weight"
TOKENS = {"pad": "padding", "bos": "bos", "eos": "eos"}  # ours → theirs


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is in a file, and in which of the format's types."""

    shape: tuple[int, ...]
    kind: int
    start: int
    size: int


class Bytes:
    """The bytes of a file, mapped into memory and read from `at` on; little-endian. The header may
    lie: nothing is taken before it is known to be there. Raises CannotLoad where it is not."""

    def __init__(self, path: Path):
        self.path, self.at = path, 0
        try:
            with open_regular(path) as opened:
                self.content = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # of an empty file
            raise CannotLoad(f"{path} cannot be read: {reason(error)}.") from None

    def __len__(self) -> int:
        return len(self.content)

    def take(self, size: int) -> memoryview:
        start = self.at
        self.room_for(size)
        self.at += size
        return self.content[start : self.at]

    def room_for(self, count: int, size: int = 1) -> int:
        """`count`, if so many things of at least `size` bytes each can follow."""
        if not 0 <= count * size <= len(self) - self.at:
            raise CannotLoad(
                f"{self.path} is truncated or corrupt: at byte {self.at:,} it declares "
                f"{count * size:,} bytes, but ends after {len(self) - self.at:,}."
            )
        return count

    def number(self, form: str) -> int | float | bool:
        """One number, in the letters of the module struct."""
        return self.numbers(form, 1)[0]

    def whole(self, form: str) -> int:
        """One whole number, likewise."""
        return int(self.number(form))

    def numbers(self, form: str, count: int) -> tuple:
        self.room_for(count, struct.calcsize(f"<{form}"))
        return struct.unpack(f"<{count}{form}", self.take(count * struct.calcsize(f"<{form}")))

    def text(self, size: int) -> str:
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise CannotLoad(f"{self.path} is corrupt: no text ends at byte {self.at:,}.") from None


class Header:
    """What stands before the numbers: metadata by name, and tensors by name. Raises CannotLoad."""

    def __init__(self, path: Path, types: Callable[[int], tuple[int, int]]):
        self.bytes = read = Bytes(path)
        if bytes(read.take(4)) != MAGIC:
            raise CannotLoad(f"{path} is not a GGUF file: it does not start with the letters GGUF.")
        if (version := read.whole("I")) not in VERSIONS:
            raise CannotLoad(
                f"{path} is GGUF version {version:,}; only versions 2 and 3 can be read."
            )
        n_tensors, n_values = read.numbers("Q", 2)
        read.room_for(n_tensors, 24)
        self.metadata, self.entries = {}, 0
        for _ in range(read.room_for(n_values, 13)):
            name = self._text()
            self.metadata[name] = self._value(read.whole("I"))
        places = {self._text(): self._place() for _ in range(n_tensors)}
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        if type(alignment) is not int or alignment < 1:
            raise CannotLoad(
                f"{path} has {quoted(alignment)} for general.alignment, which is not valid."
            )
        begin = -(-read.at // alignment) * alignment
        self.tensors = {}
        for name, (shape, kind, offset) in places.items():
            block, size_of_block = types(kind)
            size = math.prod(shape) // block * size_of_block
            start = begin + offset
            if shape[-1] % block or start + size > len(read):
                raise CannotLoad(
                    f"{path} is truncated or corrupt: {name} of shape {shape} would end at byte "
                    f"{start + size:,}, but the file has {len(read):,}."
                )
            self.tensors[name] = StoredTensor(shape, kind, start, size)

    def _text(self) -> str:
        return self.bytes.text(self.bytes.whole("Q"))

    def _value(self, kind: int):
        if kind == STRING:
            return self._text()
        if kind == ARRAY:
            return self._list(self.bytes.whole("I"), self.bytes.whole("Q"))
        return self.bytes.number(self._letter(kind))

    def _list(self, kind: int, count: int) -> list:
        self.entries += count
        if self.entries > MOST:
            raise CannotLoad(
                f"The header of {self.bytes.path} declares a list of {count:,} entries, which "
                "is too long."
            )
        if kind == STRING:
            return [self._text() for _ in range(self.bytes.room_for(count, 8))]
        return list(self.bytes.numbers(self._letter(kind), count))

    def _letter(self, kind: int) -> str:
        if kind not in NUMBERS:
            raise CannotLoad(f"{self.bytes.path} is corrupt: {kind:,} is not a value type.")
        return NUMBERS[kind]

    def _place(self) -> tuple[tuple[int, ...], int, int]:
        """Shape, type and offset of a tensor; GGUF has the axis of neighbours first."""
        axes = self.bytes.whole("I")
        if not 1 <= axes <= MOST_AXES:
            raise CannotLoad(f"{self.bytes.path} is corrupt: a tensor has {axes:,} axes.")
        shape = self.bytes.numbers("Q", axes)[::-1]
        return shape, self.bytes.whole("I"), self.bytes.whole("Q")


class GgufWeights(WeightFile):
    """Tensors of a GGUF file, dequantised one by one when they are read."""

    def __init__(self, header: Header, dequantized: Callable[[np.ndarray, int], np.ndarray]):
        super().__init__(header.bytes.path, {n: one.shape for n, one in header.tensors.items()})
        self.header, self.dequantized = header, dequantized

    @contextmanager
    def opened(self) -> Iterator[Callable[[str], Tensor]]:
        yield self._tensor

    def equal(self, name: str, other: str) -> bool:
        """Bytes are compared: nothing need be dequantised."""
        one, two = (self.header.tensors[each] for each in (name, other))
        alike = one.shape == two.shape and one.kind == two.kind
        return alike and self._content(one) == self._content(two)

    def _content(self, place: StoredTensor) -> memoryview:
        return self.header.bytes.content[place.start : place.start + place.size]

    def _tensor(self, name: str) -> Tensor:
        place = self.header.tensors[name]
        content = self._content(place)
        # By rows: the package takes a few of them at a time.
        rows = np.frombuffer(content, np.uint8).reshape(place.shape[0], -1)
        numbers = np.require(self.dequantized(rows, place.kind), np.float32, "W")
        tensor = torch.from_numpy(numbers).reshape(place.shape)
        heads = self._turned_heads(name)
        if not heads:
            return tensor
        # llama.cpp turns neighbours, and stores what Hugging Face's halves become then.
        pairs = tensor.unflatten(0, (heads, -1, 2))
        return pairs.transpose(1, 2).flatten(0, 2)

    def _turned_heads(self, name: str) -> int:
        """How many heads a projection makes whose rows stand in pairs that turn; else 0. The other
        architectures have theirs as Hugging Face."""
        values = self.header.metadata
        if values["general.architecture"] != "llama":
            return 0
        heads = values["llama.attention.head_count"]
        if ".attn_q." in name:
            return heads
        return values.get("llama.attention.head_count_kv", heads) if ".attn_k." in name else 0


# What a header may say of an architecture. `gguf_sizes` reads SIZES; of USUAL a model has no other
# value that Headlight could follow; NOTHING changes nothing. Any other key may change what a model
# computes, and is refused.
SIZES = {
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.value_length", "attention.layer_norm_rms_epsilon", "attention.sliding_window",
    "rope.dimension_count", "rope.freq_base", "rope.scale_linear", "rope.scaling.type",
    "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_ext_factor",
}  # fmt: skip
USUAL: dict[str, tuple] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.scale": (0.0,),
    "attention.sliding_window_pattern": (None,),
    "attn_logit_softcapping": (0.0,),
    "embedding_scale": (0.0, 1.0),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "final_logit_softcapping": (0.0,),
    "logit_scale": (0.0, 1.0),
    "pooling_type": (0,),
    "residual_scale": (0.0, 1.0),
    "rope.scaling.attn_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "tensor_data_layout": ("Meta AI original pth",),
}
NOTHING = {"rope.scaling.finetuned"}


def gguf_sizes(config: Described, weights: Shapes) -> Sizes:
    """Of a Llama, Mistral, Qwen2 or Qwen3."""
    for name, usual in USUAL.items():
        config.refuse(name, *usual)
    config.refuse_others(SIZES | USUAL.keys() | NOTHING | {f"{role}_token_id" for role in TOKENS})
    n_heads, length = (
        config.count("attention.head_count"),
        config.count("context_length", most=LONGEST),
    )
    d_model, window = (
        config.count("embedding_length"),
        config.values.get("attention.sliding_window"),
    )
    head_size = config.count("attention.key_length", default=d_model // n_heads or 1)
    config.refuse("attention.value_length", head_size)
    config.refuse("rope.dimension_count", head_size)
    has = weights.shapes.__contains__
    embedding = weights.shapes.get("token_embd.weight", (0,))[0]
    return _gguf_rotary(config, weights, length, head_size) | dict(
        vocab_size=config.count("vocab_size", default=embedding),
        d_model=d_model,
        n_heads=n_heads,
        n_key_heads=config.count("attention.head_count_kv", default=n_heads),
        head_size=head_size,
        d_ff=config.count("feed_forward_length"),
        n_decoder_layers=config.count("block_count"),
        # Within its window such a model attends to all that came before, as any other.
        max_length=min(length, config.count("attention.sliding_window")) if window else length,
        norm_eps=config.number("attention.layer_norm_rms_epsilon", 1e-6, *EPSILON),
        query_bias=has("blk.0.attn_q.bias"),
        output_bias=has("blk.0.attn_output.bias"),
        forward_bias=has("blk.0.ffn_up.bias"),
        normed_heads=has("blk.0.attn_q_norm.weight"),
        dropout=0.0,
    )


def _gguf_rotary(config: Described, weights: Shapes, length: int, head_size: int) -> Sizes:
    """The fields rotary_*. As in llama.cpp a factor may have an older name, and makes the rule
    "linear" where none is named. Llama 3 comes without the numbers of its rule, but with the factor
    that each pair is slowed down by."""
    rule = config.choice("rope.scaling.type", ("none", "linear", "yarn"), "linear")
    older = config.number("rope.scale_linear", 1.0, *ROTARY["factor"])
    factor = config.number("rope.scaling.factor", older, *ROTARY["factor"])
    settings: dict[str, float] = {}
    config.refuse("rope.scaling.yarn_ext_factor", -1.0, float(rule == "yarn"))
    if rule == "yarn":
        beta = {"fast": 32.0, "slow": 1.0}
        settings = {
            f"beta_{end}": config.number(
                f"rope.scaling.yarn_beta_{end}", usual, *ROTARY[f"beta_{end}"]
            )
            for end, usual in beta.items()
        }
    if FACTORS in weights.shapes:
        if rule == "yarn" or (rule == "linear" and factor != 1):
            raise CannotLoad(
                f"{config.where} has both {FACTORS} and a factor of rope.scaling, {factor:g}, "
                "which Headlight does not support together."
            )
        if weights.shapes[FACTORS] != (head_size // 2,):
            raise CannotLoad(
                f"{config.where} has {FACTORS} of the wrong shape, {weights.shapes[FACTORS]}."
            )
        with weights.opened() as read:
            factors = read(FACTORS)
        if not (factors > 0).all():  # nor NaN
            raise CannotLoad(f"{config.where} has {FACTORS} with numbers that are not positive.")
        rule = "divided"
        settings = {f"factor {i + 1}": one for i, one in enumerate(factors.tolist())}
    elif rule == "none" or (rule == "linear" and factor == 1):
        rule = "default"
    else:
        settings["factor"] = factor
    return dict(
        rotary_base=config.number("rope.freq_base", 10000.0, *BASE),
        rotary_rule=rule,
        rotary_settings=tuple(settings.items()),
        rotary_length=config.count("rope.scaling.original_context_length", default=length),
    )


def _layers(names: dict[str, str]) -> dict[str, str]:
    return {f"decoder.layers.{{}}.{ours}": f"blk.{{}}.{theirs}" for ours, theirs in names.items()}


GGUF = Family(
    "llama",
    gguf_sizes,
    {
        "tgt_embedding.token": "token_embd",
        "decoder.norm": "output_norm",
        "generator": "output",
        **_layers(
            {
                "self_attn.query": "attn_q",
                "self_attn.key": "attn_k",
                "self_attn.value": "attn_v",
                "self_attn.output": "attn_output",
                "self_attn.query.linear": "attn_q",
                "self_attn.key.linear": "attn_k",
                "self_attn.query.norm": "attn_q_norm",
                "self_attn.key.norm": "attn_k_norm",
                "norm1": "attn_norm",
                "norm2": "ffn_norm",
                "feed_forward.gate": "ffn_gate",
                "feed_forward.linear1": "ffn_up",
                "feed_forward.linear2": "ffn_down",
            }
        ),
    },
    "",
    {"n_decoder_layers": r"blk\.(\d+)\."},
    "token_embd.weight",
    lambda config: (("token_embd.weight", "output.weight"),),
    ONE_MATRIX,
    r"(rope_freqs|output)\.weight$",
)
ARCHITECTURES = ("llama", "qwen2", "qwen3")


def gguf_contents(path: Path) -> Contents:
    """What a GGUF file says of itself, or the one in a folder. Raises CannotLoad."""
    path = _file_of(path)
    try:
        import gguf  # an extra: only who has such a file needs it
    except ImportError:
        raise CannotLoad(missing("gguf", str(path))) from None

    def types(kind: int) -> tuple[int, int]:
        """Numbers in a block of a type, and the bytes of a block."""
        try:
            kind = gguf.GGMLQuantizationType(kind)
            sizes = gguf.GGML_QUANT_SIZES[kind]
            gguf.quants.dequantize(np.zeros((1, sizes[1]), np.uint8), kind)
        except (ValueError, KeyError, NotImplementedError):
            name = getattr(kind, "name", f"number {kind:,}")
            raise CannotLoad(
                f"{path} has weights of the type {name}, which cannot be read."
            ) from None
        return sizes

    header = Header(path, types)
    values = header.metadata
    kind = values.get("general.architecture")
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise CannotLoad(
            f"{path} has the architecture {quoted(kind)}. Headlight reads GGUF files of {known}."
        )
    if values.get("split.count", 0) not in (0, 1):
        raise CannotLoad(
            f"{path} is one part of a split model. Only models in a single GGUF file can be read."
        )
    if values.get("general.type", "model") != "model":
        raise CannotLoad(
            f"{path} has {quoted(values['general.type'])} for general.type: it is no whole model."
        )
    tokens = {
        f"{role}_token_id": values.get(f"tokenizer.ggml.{theirs}_token_id")
        for role, theirs in TOKENS.items()
    }
    sizes = {n.removeprefix(f"{kind}."): v for n, v in values.items() if n.startswith(f"{kind}.")}
    config = Described(sizes | tokens, str(path), "its header")
    card = {"title": str(values.get("general.name", path.stem)), "family": kind}
    if "general.license" in values:
        card["terms"] = str(values["general.license"])
    dequantized = lambda content, kind: gguf.quants.dequantize(  # noqa: E731
        content, gguf.GGMLQuantizationType(kind)
    )
    return Contents(
        where=path,
        family=GGUF,
        config=config,
        weights=GgufWeights(header, dequantized),
        tokenizer=partial(gguf_tokenizer, path, values),
        card=card,
        files=(path,),
        more={},
    )


def _file_of(path: Path) -> Path:
    if path.is_file():
        return path
    files = sorted(path.glob("*.gguf"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files)
        raise CannotLoad(f"{path} contains several models. Name one of them: {names}.")
    return files[0]
