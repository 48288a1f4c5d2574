"""State dicts of other systems: their names for our parameters, and reading them with care.

`load_foreign` builds the model in between: `read` → `sizes` → `fill`. Whatever does not
fit raises a ValueError in the system's own parameter names.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor, nn

from headlight.model.presets import PRESETS, build
from headlight.model.sites import ProbedModel
from headlight.model.variants import special_ids

ROUNDED = (
    "the float64 weights of {} are rounded to float32; to keep them, call "
    "torch.set_default_dtype(torch.float64) before"
)
NO_TOKEN = -1  # as pad_id, bos_id or eos_id: the system has no such token
NO_TOKENS = dict(pad_id=NO_TOKEN, bos_id=NO_TOKEN, eos_id=NO_TOKEN)
TABLES = (
    "tgt_embedding.position.table",
    "src_embedding.position.table",
    "src_embedding.position.weight",
)
TOKENS = "src_embedding.token.weight"
QUERY = "encoder.layers.0.self_attn.query"
# Angles in float32 move a table by 4e-4 within 5,000 positions, bfloat16 by 2e-3; another base or
# first frequency by far more.
TABLE_TOLERANCE = 1e-2

Words = Mapping[str, dict[str, str]]
WORDS: Words = {  # those that need no translation
    "stack": {"encoder": "encoder", "decoder": "decoder"},
    "side": {"src": "src", "tgt": "tgt"},
    "leaf": {"weight": "weight", "bias": "bias"},
}
FREE = {"layer": "[0-9]+", "head": "[0-9]+", "holder": r"(?:.+\.)?"}  # patterns, not words


@dataclass(frozen=True)
class System:
    """What another system calls our parameters, and what its shapes and code tell.

    names: templates of its name and of ours. words: for each bracket of a template, its word →
    ours; where two of its words mean one of ours, the first is the usual one. n_heads: reads the
    head count, where the names or shapes tell it. tokens: the ids that its code fixes. lacks: our
    parameters that the system does not have; they keep their random weights.
    """

    names: tuple[tuple[str, str], ...]
    words: Words
    n_heads: Callable[["ForeignStateDict"], "InferredSize | None"] | None = None
    tokens: Mapping[str, int] = field(default_factory=lambda: NO_TOKENS)
    lacks: tuple[str, ...] = ()

    def ours(self, theirs: str) -> str | None:
        """Our name of its parameter; None if it has no such parameter."""
        words = {**WORDS, **self.words}
        return next(_translated(theirs, self.names, words), None)

    def theirs(self, ours: str) -> str:
        """Its usual name of our parameter."""
        words = {
            bracket: {our: their for their, our in reversed(pairs.items())}
            for bracket, pairs in {**WORDS, **self.words}.items()
        }
        return next(_translated(ours, [(to, of) for of, to in self.names], words))


def _translated(name: str, templates, words: Words) -> Iterator[str]:
    for template, other in templates:
        if match := re.fullmatch(_pattern(template, words), name):
            yield other.format_map(
                {bracket: words.get(bracket, {}).get(word, word)
                 for bracket, word in match.groupdict().items()}
            )  # fmt: skip


def _pattern(template: str, words: Words) -> str:
    def group(bracket: re.Match) -> str:
        name = bracket[1]
        return f"(?P<{name}>{FREE.get(name) or '|'.join(words[name])})"

    return re.sub(r"\\\{(\w+)\\\}", group, re.escape(template))


@dataclass(frozen=True)
class InferredSize:
    """A size, and the parameter (by its system's name) whose shape or name tells it."""

    size: int
    by: str


@dataclass(frozen=True)
class ForeignTensor:
    """A tensor under its system's name and ours."""

    theirs: str
    ours: str
    tensor: Tensor

    def __str__(self) -> str:
        return f"{self.theirs} of shape {tuple(self.tensor.shape)}"


@dataclass(frozen=True)
class ForeignStateDict:
    """A system's state dict, its names and kinds of tensors checked; numbers and shapes are not
    yet."""

    name: str
    system: System
    weights: tuple[ForeignTensor, ...]

    def find(self, *ours: str) -> ForeignTensor:
        """The first of our matrices that is there; ValueError names the first if none is."""
        for name in ours:
            for weight in self.weights:
                if weight.ours == name:
                    if weight.tensor.ndim != 2:
                        raise ValueError(f"{weight} should have 2 dimensions")
                    return weight
        raise ValueError(f"the state dict lacks {self.system.theirs(ours[0])}")

    def has(self, ours: str) -> bool:
        return any(weight.ours == ours for weight in self.weights)

    def count(self, pattern: str) -> InferredSize | None:
        """One more than the highest number in our names that fit, so that a gap is missed later."""
        numbers = {
            int(match[1]): weight.theirs
            for weight in self.weights
            if (match := re.match(pattern, weight.ours))
        }
        return InferredSize(max(numbers) + 1, numbers[max(numbers)]) if numbers else None

    def inferred_sizes(self) -> Iterator[tuple[str, InferredSize | None]]:
        """Fields of any preset's Config, as far as names and shapes tell them."""

        def length(axis: int, *ours: str) -> InferredSize:
            weight = self.find(*ours)
            return InferredSize(weight.tensor.shape[axis], str(weight))

        linear1 = [f"{stack}.layers.0.feed_forward.linear1.weight" for stack in WORDS["stack"]]
        embedded = self.has(TOKENS) or TOKENS not in self.system.lacks
        if embedded:
            yield "vocab_size", length(0, TOKENS)
        yield "d_model", length(1, *([TOKENS] if embedded else linear1))
        yield "d_ff", length(0, *linear1)
        for stack in WORDS["stack"]:
            yield f"n_{stack}_layers", self.count(rf"{stack}\.layers\.(\d+)\.")
        if self.system.n_heads:
            yield "n_heads", self.system.n_heads(self)
        for size, ours in (
            ("tgt_vocab_size", "tgt_embedding.token.weight"),
            ("n_classes", "generator.weight"),
            ("hidden_size", f"{QUERY}.heads.0.weight"),
            *(("max_length", table) for table in TABLES),
        ):
            if self.has(ours):
                yield size, length(0, ours)

    def sizes(self, known: set[str], given: Mapping[str, object]) -> dict[str, object]:
        """The fields of a Config, of which `known` are its own: the given ones and those that
        names, shapes and the system's code tell. ValueError where they disagree or do not do."""
        if unknown := [size for size in given if size not in known]:
            raise ValueError(
                f"{self.name} has no size {unknown[0]!r}; it has {', '.join(sorted(known))}"
            )
        inferred = {size: t for size, t in self.inferred_sizes() if t and size in known}
        for size, t in inferred.items():
            if size in given and given[size] != t.size:
                raise ValueError(
                    f"{size}={given[size]} was given, but the state dict says {t.size}: see {t.by}"
                )
        told = {size: t.size for size, t in inferred.items()}
        sizes = {**self.system.tokens, **told, **given}
        if "vocab_size" not in sizes:
            raise ValueError(
                f"neither {self.name} nor the state dict has embeddings; give vocab_size to "
                "start with random ones"
            )
        if "n_heads" not in sizes:
            raise ValueError(
                f"the state dict of {self.name} does not say how many heads it has; give n_heads"
            )
        for name, token, vocabulary in special_ids(sizes):
            if not NO_TOKEN <= token < vocabulary:
                raise ValueError(
                    f"{name}={token} is not in the vocabulary of {vocabulary} tokens "
                    f"({NO_TOKEN} means none)"
                )
        return sizes

    @torch.no_grad()
    def fill(self, model: ProbedModel) -> None:
        """Put the weights into `model`, and check tables against its own."""
        parameters = dict(model.named_parameters(remove_duplicate=False))
        tables = dict(model.named_buffers())
        filled: dict[Tensor, ForeignTensor] = {}
        for weight in self.weights:
            if weight.ours in tables:
                self._check(weight, tables[weight.ours])
                continue
            if (parameter := parameters.get(weight.ours)) is None:
                raise ValueError(f"{self.name} has no parameter {weight.theirs!r}")
            numbers = self._numbers(weight, parameter)
            if parameter not in filled:
                parameter.copy_(numbers)
            elif not numbers.equal(parameter):
                raise ValueError(
                    f"{filled[parameter].theirs} and {weight.theirs} differ, but {self.name} "
                    "uses one matrix for both"
                )
            filled.setdefault(parameter, weight)
        missing = [
            (name, tuple(parameter.shape))
            for name, parameter in model.named_parameters()
            if parameter not in filled and name not in self.system.lacks
        ]
        if missing:
            first, *others = (
                f"{self.system.theirs(name)} of shape {shape}" for name, shape in missing
            )
            more = f" and {len(others)} more" if others else ""
            raise ValueError(f"the state dict lacks {first}{more}")

    def _numbers(self, weight: ForeignTensor, like: Tensor) -> Tensor:
        """The tensor in the type of `like`, its shape and numbers checked."""
        if weight.tensor.shape != like.shape:
            raise ValueError(f"{weight} should have shape {tuple(like.shape)}")
        numbers = weight.tensor.to(like)
        if not numbers.isfinite().all():
            raise ValueError(
                f"{weight.theirs} contains numbers that are NaN, infinite or too large"
            )
        return numbers

    def _check(self, weight: ForeignTensor, table: Tensor) -> None:
        numbers = self._numbers(weight, table)
        if (off := (numbers - table).abs().max().item()) > TABLE_TOLERANCE:
            raise ValueError(
                f"{weight.theirs} is not the positional table of {self.name} at these sizes: "
                f"it differs by up to {off:.2g}"
            )


def read(name: str, state_dict: Mapping[str, Tensor]) -> ForeignStateDict:
    """The tensors of a system's state dict under its names and ours. ValueError for what is no
    state dict, and for a name that the system does not have."""
    if name not in SYSTEMS:
        raise ValueError(
            f"no tensor names are known for {name!r}; choose from {', '.join(SYSTEMS)}"
        )
    if not isinstance(state_dict, Mapping):
        kind = type(state_dict).__name__
        raise ValueError(f"a state dict maps names to tensors; this is a {kind}")
    weights = []
    for theirs, tensor in state_dict.items():
        if not isinstance(theirs, str):
            raise ValueError(f"a state dict maps names to tensors; {theirs!r} is not a name")
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{theirs} should be a tensor, not a {type(tensor).__name__}")
        if not tensor.is_floating_point():
            raise ValueError(f"{theirs} should hold real numbers, not {tensor.dtype}")
        if tensor.layout != torch.strided or tensor.is_meta:
            raise ValueError(f"{theirs} should be a dense tensor with data")
        if not (ours := SYSTEMS[name].ours(theirs)):
            raise ValueError(f"{name} has no parameter {theirs!r}")
        if ours.endswith(".table") and tensor.ndim == 3 and len(tensor) == 1:
            tensor = tensor[0]  # most keep a batch dimension
        weights.append(ForeignTensor(theirs, ours, tensor))
    return ForeignStateDict(name, SYSTEMS[name], tuple(weights))


def _counted_heads(weights: ForeignStateDict) -> InferredSize | None:
    weights.find(f"{QUERY}.heads.0.weight")
    return weights.count(rf"{re.escape(QUERY)}\.heads\.(\d+)\.")


def _wide_heads(weights: ForeignStateDict) -> InferredSize | None:
    """As many as the query is times wider than the model. A square one does not tell: it is one
    wide head, or several that share the width, as in Bloem's later package `former`, whose names
    are nearly the same."""
    query = weights.find(f"{QUERY}.weight")
    rows, d_model = query.tensor.shape
    return InferredSize(rows // d_model, str(query)) if rows > d_model > 0 else None


SYSTEMS = {
    "annotated": System(
        (
            ("{side}_embed.0.lut.weight", "{side}_embedding.token.weight"),
            ("{side}_embed.1.pe", "{side}_embedding.position.table"),
            ("generator.proj.{leaf}", "generator.{leaf}"),
            (
                "{stack}.layers.{layer}.{attention}.linears.{part}.{leaf}",
                "{stack}.layers.{layer}.{attention}.{part}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.feed_forward.w_{linear}.{leaf}",
                "{stack}.layers.{layer}.feed_forward.linear{linear}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.sublayer.{place}.norm.{norm}",
                "{stack}.layers.{layer}.norm{place}.{norm}",
            ),
            ("{stack}.norm.{norm}", "{stack}.norm.{norm}"),
        ),
        {
            "attention": {"self_attn": "self_attn", "src_attn": "cross_attn"},
            "part": {"0": "query", "1": "key", "2": "value", "3": "output"},
            "linear": {"1": "1", "2": "2"},
            "place": {"0": "1", "1": "2", "2": "3"},
            "norm": {"a_2": "weight", "b_2": "bias"},
        },
    ),
    "hyunwoongko": System(
        (
            ("{side}.emb.tok_emb.weight", "{side}_embedding.token.weight"),
            ("{side}.emb.pos_emb.encoding", "{side}_embedding.position.table"),
            ("decoder.linear.{leaf}", "generator.{leaf}"),
            (
                "encoder.layers.{layer}.attention.w_{part}.{leaf}",
                "encoder.layers.{layer}.self_attn.{part}.{leaf}",
            ),
            (
                "decoder.layers.{layer}.{attention}.w_{part}.{leaf}",
                "decoder.layers.{layer}.{attention}.{part}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.ffn.linear{linear}.{leaf}",
                "{stack}.layers.{layer}.feed_forward.linear{linear}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.norm{place}.{norm}",
                "{stack}.layers.{layer}.norm{place}.{norm}",
            ),
        ),
        {
            "side": {"encoder": "src", "decoder": "tgt"},
            "attention": {"self_attention": "self_attn", "enc_dec_attention": "cross_attn"},
            "part": {"q": "query", "k": "key", "v": "value", "concat": "output"},
            "linear": {"1": "1", "2": "2"},
            "place": {"1": "1", "2": "2", "3": "3"},
            "norm": {"gamma": "weight", "beta": "bias"},
        },
        # torchtext numbers <unk> <pad> <sos> <eos> from 0, and the embedding says padding_idx=1.
        tokens=dict(pad_id=1, bos_id=2, eos_id=3),
    ),
    # Layers alone; what holds them and what stands around them is ours.
    "vanilla": System(
        (
            ("{table}.weight", "{table}.weight"),
            ("{holder}embeddings", "src_embedding.position.table"),
            (
                "encoder.layers.{layer}.multihead_attention.{part}_projector.{leaf}",
                "encoder.layers.{layer}.self_attn.{part}.{leaf}",
            ),
            (
                "decoder.layers.{layer}.{attention}.{part}_projector.{leaf}",
                "decoder.layers.{layer}.{attention}.{part}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.feed_forward_network.layers.{linear}.{leaf}",
                "{stack}.layers.{layer}.feed_forward.linear{linear}.{leaf}",
            ),
            (
                "{stack}.layers.{layer}.{place}_layer_normalization.{norm}",
                "{stack}.layers.{layer}.norm{place}.{norm}",
            ),
        ),
        {
            "table": {
                name: name for name in ("src_embedding.token", "tgt_embedding.token", "generator")
            },
            "attention": {
                "first_multihead_attention": "self_attn",
                "second_multihead_attention": "cross_attn",
            },
            "part": {part: part for part in ("query", "key", "value", "output")},
            "linear": {"0": "1", "3": "2", "2": "2"},  # with or without dropout between
            "place": {"first": "1", "second": "2", "third": "3"},
            "norm": {"gamma": "weight", "beta": "bias"},
        },
        lacks=(TOKENS,),
    ),
    # Its heads stand in plain lists, which state_dict() passes over: they have to be in a
    # ModuleList to be saved at all.
    "van_dijck": System(
        (
            ("{side}_embedding.weight", "{side}_embedding.token.weight"),
            ("linear.{leaf}", "generator.{leaf}"),
            ("positional_encoder.positional_encoding", "src_embedding.position.table"),
            (
                "encoder.{layer}.{heads}.{head}.linear_transform_{part}.{leaf}",
                "encoder.layers.{layer}.{heads}.{part}.heads.{head}.{leaf}",
            ),
            (
                "decoder.{layer}.{attention}.{head}.linear_transform_{part}.{leaf}",
                "decoder.layers.{layer}.{attention}.{part}.heads.{head}.{leaf}",
            ),
            (
                "encoder.{layer}.mha_fc_out.{leaf}",
                "encoder.layers.{layer}.self_attn.output.{leaf}",
            ),
            (
                "decoder.{layer}.{output}_mha_fc_out.{leaf}",
                "decoder.layers.{layer}.{output}.output.{leaf}",
            ),
            (
                "{stack}.{layer}.feed_forward.{linear}.{leaf}",
                "{stack}.layers.{layer}.feed_forward.linear{linear}.{leaf}",
            ),
            (
                "{stack}.{layer}.norm{place}.{leaf}",
                "{stack}.layers.{layer}.norm{place}.{leaf}",
            ),
        ),
        {
            "side": {"input": "src", "target": "tgt"},
            "heads": {"heads": "self_attn", "head": "self_attn"},
            "attention": {
                "masked_head": "self_attn",
                "masked_heads": "self_attn",
                "unmasked_head": "cross_attn",
                "unmasked_heads": "cross_attn",
            },
            "output": {"masked": "self_attn", "unmasked": "cross_attn"},
            "part": {"Q": "query", "K": "key", "V": "value"},
            "linear": {"0": "1", "2": "2"},
            "place": {"1": "1", "2": "2", "3": "3"},
        },
        _counted_heads,
    ),
    "bloem": System(
        (
            ("token_emb.weight", TOKENS),
            ("pos_emb.weight", "src_embedding.position.weight"),
            ("toprobs.{leaf}", "generator.{leaf}"),
            (
                "tblocks.{layer}.attention.{part}.{leaf}",
                "encoder.layers.{layer}.self_attn.{part}.{leaf}",
            ),
            (
                "tblocks.{layer}.ff.{linear}.{leaf}",
                "encoder.layers.{layer}.feed_forward.linear{linear}.{leaf}",
            ),
            ("tblocks.{layer}.norm{place}.{leaf}", "encoder.layers.{layer}.norm{place}.{leaf}"),
        ),
        {
            "part": {
                "toqueries": "query",
                "tokeys": "key",
                "tovalues": "value",
                "unifyheads": "output",
            },
            "linear": {"0": "1", "2": "2"},
            "place": {"1": "1", "2": "2"},
        },
        _wide_heads,
    ),
}


def load_foreign(name: str, state_dict: Mapping[str, Tensor], **sizes) -> nn.Module:
    """The preset `name` with the weights that the system's own code saved, in eval mode.

    `sizes` are fields of its Config. Names and shapes tell most; give n_heads where they do not,
    and pad_id, bos_id and eos_id where its code does not fix them (-1: no such token, no padding);
    of two vocabularies these are the target's, src_pad_id and src_eos_id the source's.
    Raises ValueError, in the system's own parameter names, for whatever does not fit: a weight
    missing, strange, of another shape or no finite real numbers, two that differ where the system
    has one, another positional table than the preset's, a size that contradicts the weights or
    that the preset does not have. Warns where float64 is rounded to float32.
    """
    weights = read(name, state_dict)
    known = {field.name for field in fields(PRESETS[name].config)}
    model = build(name, **weights.sizes(known, sizes))
    weights.fill(model)
    itemsize = torch.get_default_dtype().itemsize
    if any(weight.tensor.dtype.itemsize > itemsize for weight in weights.weights):
        warnings.warn(ROUNDED.format(name), stacklevel=2)
    return model.eval()
