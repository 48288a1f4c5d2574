"""One teacher-forced pass, and everything recorded on the way."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from headlight.model.arguments import kind_of, whole
from headlight.model.by_value import ByValue, NamedArrays
from headlight.model.extras import of_extra
from headlight.model.masks import Masks
from headlight.model.memory import available
from headlight.model.messages import short
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import outputs_of
from headlight.model.probing.rows import kind_weights, rows
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    device_of,
    embedding_of,
    final_norm_of,
    kinds_of,
    layers_of,
    predicted_side,
    sides_of,
)
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.tokenizer import ROLES, CannotRead, Encoding, Tokenizer, special
from headlight.model.transformer import Config, MultiHeadAttention

if TYPE_CHECKING:
    import pandas
    import xarray

NO_ID = -1  # in place of an id
# Scores, and weights twice while those of a kind are put together.
BYTES_OF_WEIGHT = 3 * 4
SHARE = 0.5  # of the free memory that weights may take; pages make pictures and files of them


class TooLong(CannotRead):
    """A text longer than the model reads."""

    def __init__(self, side: str, length: int, max_length: int, known: str = ""):
        super().__init__(
            f"The {side} is {known}{length:,} tokens long. This model reads at most {max_length:,}."
        )
        self.length, self.max_length = length, max_length


class TooLarge(CannotRead):
    """A text whose weights do not fit into memory: those of `whose`, which take `needed` bytes of
    at most `most`."""

    def __init__(self, whose: str, texts: dict[str, Encoding], needed: int, most: int):
        lengths = [len(text.ids) for text in texts.values()]
        super().__init__(too_large(whose, lengths, needed, most))


def too_large(whose: str, lengths: Sequence[int], needed: int, most: int) -> str:
    """What TooLarge says, of texts of these lengths."""
    # They grow with the square of the length.
    fitting = [int(length * math.sqrt(most / needed)) for length in lengths]
    tokens, fits = (" and ".join(f"{n:,}" for n in some) for some in (lengths, fitting))
    return (
        f"The weights of {whose} for {tokens} tokens take {needed / 1e9:,.1f} GB of memory. "
        f"The limit is {most / 1e9:,.1f} GB, half of the free memory. Use a shorter text: "
        f"about {fits} tokens fit."
    )


@dataclass(frozen=True, repr=False, eq=False)
class Pass(ByValue):
    """The part of a trace that is kept for texts of any length. All arrays are read-only float32
    without a batch axis.

    run           the run
    sides, sites  what the model says of itself: the texts it reads, and where attention happens
    texts         side → what was read of it, special tokens and padding included
    following     the id that each row of the logits is to predict; NO_ID where there is none
    end           the token that ends a text, “…” for a model that has none
    table, token  side → (position, d_model): positions, and token embeddings × √d_model
    final         side → (position, d_model): the stream after the norm that may follow the last
                  layer
    origin        whose weights these are, in words; "" where nobody said
    shifts        kind → (layers, heads): 0 where a head follows the word that a row reads, 1 where
                  it follows the word that the row predicts; only of kinds for which it was
                  measured, with the final weights
    """

    run: Run
    sides: dict[str, Side]
    sites: tuple[Site, ...]
    texts: dict[str, Encoding]
    following: tuple[int, ...]
    end: str
    table: dict[str, np.ndarray]
    token: dict[str, np.ndarray]
    final: dict[str, np.ndarray]
    shifts: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    origin: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for field_ in fields(self):  # by kind of attention, or by side
            if type(value := getattr(self, field_.name)) is dict:
                object.__setattr__(self, field_.name, NamedArrays(value))

    def __repr__(self) -> str:
        """The tokens alone: the arrays would fill screens."""
        texts = short(" → ".join(" ".join(text.tokens) for text in self.texts.values()), 300)
        return f"<{type(self).__name__} of {texts}>"

    @property
    def masks(self) -> Masks:
        return self.run.masks

    @property
    def src(self) -> Encoding:
        """What was read of the source: eos ends it, padding follows."""
        return self._text("src")

    @property
    def tgt(self) -> Encoding:
        """What was read of the target: bos begins it, padding follows."""
        return self._text("tgt")

    def _text(self, side: str) -> Encoding:
        if side not in self.texts:
            raise ValueError(f"This model reads no {side!r}, only {', '.join(self.texts)}.")
        return self.texts[side]

    @cached_property
    def kinds(self) -> dict[str, tuple[Site, ...]]:
        """Kind of attention → its sites; they are the layers of its arrays."""
        return kinds_of(self.sites)

    @property
    def predicted(self) -> Side:
        """The side that the logits are about; of a recording without them, its last text."""
        sides = list(self.sides.values())
        return next((side for side in sides if side.predicts), sides[-1])

    def sides_of(self, kind: str) -> tuple[Side, Side]:
        """Where a kind's queries (rows) and keys (columns) come from."""
        if kind not in self.kinds:
            raise ValueError(
                f"This model has no kind of attention {kind!r}; it has {', '.join(self.kinds)}."
            )
        site = self.kinds[kind][0]
        return self.sides[site.query_side], self.sides[site.key_side]

    def texts_of(self, kind: str) -> tuple[Encoding, Encoding]:
        """The texts of a kind's queries (rows) and keys (columns)."""
        query, key = self.sides_of(kind)
        return self.texts[query.name], self.texts[key.name]

    def shift(self, kind: str, layer: int, head: int) -> int:
        """Of `shifts`; 0 where nothing was measured."""
        return int(self.shifts[kind][layer, head]) if kind in self.shifts else 0

    @property
    def next_tokens(self) -> tuple[str, ...]:
        """See `next_tokens_of`."""
        return next_tokens_of(self.predicted, self.texts, self.end)

    @property
    def preceding(self) -> tuple[int | None, ...]:
        """The id before the token that each row of the logits predicts; None where there is
        none."""
        ids = self.texts[self.predicted.name].ids
        return {"next token": ids, "masked token": (None, *ids[:-1])}.get(
            self.predicted.predicts, (None,)
        )

    def row(self, *, reading: str = "", predicting: str = "") -> int:
        """The first row of the side that is predicted that reads a token, or predicts it, from 0.
        Raises ValueError where there is none.

        >>> trace = load("en-fr").trace("A red car.")
        >>> trace.row(predicting="rouge"), trace.row(reading="voiture")
        (2, 2)
        """
        if bool(reading) == bool(predicting):
            raise ValueError("Name the token that the row is reading, or the one it is predicting.")
        tokens = self.texts[self.predicted.name].tokens if reading else self.next_tokens
        if (token := reading or predicting) not in tokens:
            does = "reads" if reading else "predicts"
            there = ", ".join(dict.fromkeys(tokens))
            raise ValueError(f"No row {does} {short(token)!r}. There are {short(there, 200)}.")
        return tokens.index(token)

    def row_words(self, kind: str, layer: int, head: int) -> tuple[str, ...]:
        """The token that a head follows at each row: the one read there, or the next one."""
        query, _ = self.sides_of(kind)
        whole("layer", layer, 0, len(self.kinds[kind]) - 1)
        whole("head", head, 0, self.kinds[kind][layer].n_heads - 1)
        is_predicted = self.shift(kind, layer, head)
        return self.next_tokens if is_predicted else self.texts[query.name].tokens


@dataclass(frozen=True, repr=False, eq=False)
class Trace(Pass):
    """The trace of one run, with every number behind attention.

    >>> load("copy").trace("a b").attention["cross"].shape  # (layers, heads, query, key)
    (2, 2, 3, 3)

    attention     kind → (layers, heads, query, key), after the mask; a layer for each site of the
                  kind, in the order of `kinds`
    scores        kind → for each layer (heads, query, key), as the softmax got them
    query         kind → (layers, heads, query, d_head); key and value: (.., key, d_head)
    output        kind → (layers, query, d_model), what the attention gives to the residual stream
    feed_forward  side → (layers, position, d_model), likewise
    stream        side → (depth, position, d_model): what enters layer 1, then what leaves each
                  layer
    logits        (row, vocab_size), of the side that is predicted: row i scores its token at
                  i + 1; of a text's class (1, n_classes)
    """

    attention: dict[str, np.ndarray]
    scores: dict[str, tuple[np.ndarray, ...]]
    query: dict[str, np.ndarray]
    key: dict[str, np.ndarray]
    value: dict[str, np.ndarray]
    output: dict[str, np.ndarray]
    feed_forward: dict[str, np.ndarray]
    stream: dict[str, np.ndarray]
    logits: np.ndarray

    def __repr__(self) -> str:
        shapes = "; ".join(f"{kind} {array.shape}" for kind, array in self.attention.items())
        return f"{super().__repr__()[:-1]}; attention (layers, heads, query, key): {shapes}>"

    @property
    def embedded(self) -> dict[str, np.ndarray]:
        """side → (position, d_model), what enters layer 1: token + table."""
        return {side: stream[0] for side, stream in self.stream.items()}

    def allowed(self, kind: str) -> np.ndarray:
        """Where any head of a kind has weight, (query, key): to what a row may attend."""
        return np.any(self.attention[kind], axis=(0, 1))

    def most_probable(self, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and probabilities of the likeliest next tokens (or classes), best first, each
        (row, count); without a count all."""
        return most_probable(torch.from_numpy(self.logits.copy()), count)

    @property
    def log_probabilities(self) -> np.ndarray:
        """Of the ids that are `following`, (row,), natural; NaN where there is none."""
        return log_probabilities(torch.from_numpy(self.logits.copy()), self.following)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row for each weight: attention (its kind), layer, head, query_position,
        query_token, row_word, key_position, key_token, weight. The row_word is the token that the
        head follows: the one that its row reads, or the next one (see `shifts`).

        Layers, heads and positions count from 1, as on the screen, and weights that a mask
        hides are there, as 0. Text is categorical: about 16 bytes a row.
        """
        with of_extra("A table"):  # to look inside a model takes no pandas
            import pandas as pd

        columns, names = rows(list(kind_weights([self], [1])))
        del columns["sentence"]
        categorical = {
            name: pd.Categorical.from_codes(columns[name], texts) for name, texts in names.items()
        }
        return pd.DataFrame({**columns, **categorical}, copy=False)

    def to_xarray(self, kind: str) -> "xarray.DataArray":
        """The weights of a kind as (layer, head, query, key), with the numbers of layers and heads
        on the screen, from 1, and the tokens as coordinates. Raises ValueError for another kind."""
        with of_extra("An array of xarray"):
            import xarray

        query, key = self.texts_of(kind)
        weights = self.attention[kind]
        coordinates = {
            "layer": [site.layer + 1 for site in self.kinds[kind]],
            "head": np.arange(1, weights.shape[1] + 1),
            "query_token": ("query", list(query.tokens)),
            "key_token": ("key", list(key.tokens)),
        }
        return xarray.DataArray(weights, coordinates, ("layer", "head", "query", "key"), kind)

    @property
    def nbytes(self) -> int:
        values = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for value in values for array in _arrays(value))


def most_probable(logits: torch.Tensor, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    """As Trace.most_probable, of logits (row, vocab_size)."""
    if count is not None:
        whole("count", count, 0)
    count = min(count or logits.shape[-1], logits.shape[-1])
    best = logits.softmax(dim=-1).topk(count)
    return best.indices.cpu().numpy(), best.values.cpu().numpy()


def log_probabilities(logits: torch.Tensor, following: Sequence[int]) -> np.ndarray:
    """As Trace.log_probabilities, of logits (row, vocab_size)."""
    ids = torch.tensor(following, dtype=torch.long, device=logits.device)[:, None]
    of_following = logits[: len(ids)].log_softmax(dim=-1).gather(1, ids.clamp(min=0))
    return of_following.masked_fill(ids == NO_ID, math.nan)[:, 0].cpu().numpy()


def _arrays(value) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _arrays(part)


def read_of(model: ProbedModel, run: Run) -> dict[str, Encoding]:
    """Side → what the model reads of it: the text between bos and eos, as the side has them, then
    padding. Raises CannotRead: TooLong, a text of no token at all, or padding where the
    model has no token for it."""
    kind_of("run", run, Run, "a Run")
    config, texts = model.config, {}
    if len(run.texts) != len(model.sides()):
        raise ValueError(f"This model reads {len(model.sides())} texts, not {len(run.texts)}.")
    for side, text in zip(model.sides(), run.texts, strict=True):
        text = with_special_tokens(side, text, config)
        pad, _, _ = special_tokens(config, side)
        length = max(len(text.ids), run.pad_to)
        if length > config.max_length:
            raise TooLong(side.title, length, config.max_length)
        if not length:
            raise CannotRead(f"The {side.title} is empty. This model needs at least one token.")
        padding = length - len(text.ids)
        if padding and pad.ids[0] < 0:
            raise CannotRead(
                f"The {side.title} cannot be padded to {length:,} tokens: this model has no "
                f"padding token (its pad_id is {pad.ids[0]})."
            )
        texts[side.name] = text + pad * padding
        for token in (min(texts[side.name].ids), max(texts[side.name].ids)):
            whole(f"an id of the {side.title}", token, 0, vocabulary_of(model, side) - 1)
    return texts


def vocabulary_of(model: ProbedModel, side: Side) -> int:
    """How many tokens the vocabulary of a side has."""
    if not side.embedding:  # a model that is not of ours
        return model.config.vocab_size
    return embedding_of(model, side).token.num_embeddings


def check_length(tokenizer: Tokenizer, side: Side, text: str, max_length: int) -> None:
    """Raises TooLong for a text that cannot fit, before it is made into tokens: a megabyte of them
    takes seconds."""
    least = tokenizer.at_least(text) + side.begins + side.ends
    if least > max_length:
        raise TooLong(side.title, least, max_length, known="at least ")


def bytes_of_weights(sites: Iterable[Site], texts: dict[str, Encoding]) -> int:
    """What a trace takes for the weights of these sites, and for the scores behind them."""
    return BYTES_OF_WEIGHT * sum(
        site.n_heads * len(texts[site.query_side].ids) * len(texts[site.key_side].ids)
        for site in sites
    )  # fmt: skip


def most_bytes() -> int:
    """That weights may take."""
    return int(available() * SHARE)


def check_memory(
    sites: Iterable[Site], texts: dict[str, Encoding], whose: str = "all heads"
) -> None:
    """Raises TooLarge before a tensor is made; `whose` weights these are, in words."""
    needed, most = bytes_of_weights(sites, texts), most_bytes()
    if needed > most:
        raise TooLarge(whose, texts, needed, most)


def following_of(model: ProbedModel, texts: dict[str, Encoding]) -> tuple[int, ...]:
    """The id that each row of the logits is to predict in what a model reads: the next one, with
    eos behind the last, or, but for special tokens, the one that stands there; NO_ID at padding.
    Empty where there is one row for the whole text."""
    side, eos = predicted_side(model), model.config.eos_id
    text = texts[side.name]
    if side.predicts == "masked token":
        return tuple(NO_ID if role else i for i, role in zip(text.ids, text.roles, strict=True))
    if side.predicts != "next token":
        return ()
    real = without_padding(text)
    padding = [NO_ID] * (len(text.ids) - real)
    return (*text.ids[1:real], eos if eos >= 0 else NO_ID, *padding)


def next_tokens_of(side: Side, texts: Mapping[str, Encoding], end: str) -> tuple[str, ...]:
    """The token after each of the predicted side's text: `end` after the last, and padding as
    it is. Empty where something else than the next token is predicted."""
    if side.predicts != "next token":
        return ()
    tokens, real = texts[side.name].tokens, without_padding(texts[side.name])
    return (*tokens[1:real], end, *tokens[real:]) if real else tokens


def end_of(config: Config) -> str:
    """The token that ends a predicted text, “…” for a model that has none."""
    _, _, name = config.special_tokens
    return name if config.eos_id >= 0 else "…"


def without_padding(text: Encoding) -> int:
    """How many tokens stand before the padding, which comes last: a pad among other tokens is one
    that a model wrote."""
    last = (i for i, role in enumerate(text.roles, start=1) if role != "pad")
    return max(last, default=0)


def with_special_tokens(side: Side, text: Encoding, config: Config) -> Encoding:
    """A text between bos and eos, as its side has them."""
    _, bos, eos = special_tokens(config, side)
    return bos * side.begins + text + eos * side.ends


def special_tokens(config: Config, side: Side) -> tuple[Encoding, Encoding, Encoding]:
    """The tokens for padding, the beginning and the end of a side's texts, as one-token texts."""
    pad, bos, eos = map(special, config.special_ids(side.name), config.special_tokens, ROLES)
    return pad, bos, eos


def ids_of(model: ProbedModel, texts: dict[str, Encoding]) -> list[torch.Tensor]:
    """The ids of each text, (1, length), where the model is."""
    return [torch.tensor([text.ids], device=device_of(model)) for text in texts.values()]


@torch.no_grad()
def trace(model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()) -> Trace:
    """Run the model once over its texts and record what happens; `given` is what its changes take
    from elsewhere.

    `model` must be the caller's own view. Raises CannotRead before any tensor is made, and
    CannotChange.

    >>> copy = load("copy")
    >>> trace(view(copy.model), copy.run("a b")).logits.shape
    (3, 285)
    """
    texts = read_of(model, run)
    sides, sites = sides_of(model), model.sites()
    check_memory(sites, texts)
    ids = ids_of(model, texts)
    modules = modules_of(model, sides.values()) | _modules(model, sides.values(), sites)
    with applied(model, run.changes, given), outputs_of(modules) as outputs:
        logits = model(*ids, *run.masks.build(model, *ids))

    kinds = kinds_of(sites)

    def per_kind(part, of=lambda site, output: output[0]):
        return {
            kind: read_only(torch.stack([of(s, outputs[s.name, part]) for s in of_kind]))
            for kind, of_kind in kinds.items()
        }

    def split(site, output):  # (heads, length, d_head)
        return attention_at(model, site).split(output)[0]

    parts = per_side(outputs, sides)
    return Trace(
        run=run,
        sides=sides,
        sites=sites,
        texts=texts,
        following=following_of(model, texts),
        end=end_of(model.config),
        table=parts["table"],
        token=parts["token"],
        final=parts["final"],
        attention=per_kind("softmax"),
        scores={
            kind: tuple(read_only(outputs[site.name, "scores"][0]) for site in of_kind)
            for kind, of_kind in kinds.items()
        },
        query=per_kind("query", split),
        key=per_kind("key", split),
        value=per_kind("value", split),
        output=per_kind("output"),
        feed_forward={
            name: read_only(torch.stack([outputs[name, i, "feed_forward"][0] for i in side.layers]))
            for name, side in sides.items()
            if side.layers
        },
        stream={
            name: read_only(
                torch.stack([outputs[name, depth][0] for depth in ("embedded", *side.layers)])
            )
            for name, side in sides.items()
        },
        logits=read_only(logits[0]),
    )


def per_side(outputs: dict, sides: Iterable[str]) -> dict[str, dict[str, np.ndarray]]:
    """The fields of a Pass that are made for each side, of the outputs of `modules_of`."""
    # A copy: the positional table is a slice of the model's own.
    return {
        part: {name: read_only(outputs[name, part].flatten(0, -2).clone()) for name in sides}
        for part in ("table", "token", "final")
    }


def _modules(
    model: ProbedModel, sides: Iterable[Side], sites: Iterable[Site]
) -> dict[tuple, nn.Module]:
    """What a trace keeps the output of besides, by (name of its site or side, part)."""
    modules = {}
    for site in sites:
        attention = attention_at(model, site)
        modules |= {(site.name, part): module for part, module in numbers_of(attention).items()}
        modules[site.name, "output"] = attention
    for side in sides:
        for name, layer in zip(side.layers, layers_of(model, side), strict=True):
            modules[side.name, name, "feed_forward"] = layer.feed_forward
    return modules


def numbers_of(attention: MultiHeadAttention) -> dict[str, nn.Module]:
    """The modules whose outputs are the numbers of an attention."""
    return {
        "softmax": attention.softmax,
        "scores": attention.scores,
        "query": attention.query,
        "key": attention.key,
        "value": attention.value,
    }


def modules_of(model: ProbedModel, sides: Iterable[Side]) -> dict[tuple, nn.Module]:
    """What is kept the output of at each side, by (its name, part)."""
    modules = {}
    for side in sides:
        embedding = embedding_of(model, side)
        modules |= {
            (side.name, "embedded"): embedding,
            (side.name, "token"): embedding.token,
            (side.name, "table"): embedding.position,
            (side.name, "final"): final_norm_of(model, side),
        }
        for name, layer in zip(side.layers, layers_of(model, side), strict=True):
            modules[side.name, name] = layer
    return modules


def read_only(tensor: torch.Tensor) -> np.ndarray:
    """float32, on the CPU."""
    array = tensor.float().cpu().numpy()
    array.flags.writeable = False
    return array
