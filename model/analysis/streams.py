"""Where the vectors of a pass come from: the residual stream as a sum of vectors, by what wrote
them (`Parts`) or by the words that they go back to (`Words`).

What a norm divides by and the weights of an attention are held as they were in the pass; then the
sum is exact. It does not say what the model would do if one of the vectors were not there.

A feed-forward is no linear map. Of `Words` its output is taken apart around the text's mean vector:
what it makes of the mean is constant, and the difference of each hidden number from that is shared
out in proportion, along the slope between the two points. With a slope through zero instead, terms
twenty times as large as their sum would cancel each other. Where a gate of its own multiplies the
hidden numbers (SwiGLU), that gate is held.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from headlight.model.analysis.decomposition import (
    BIASES,
    HEAD,
    POSITION,
    SUBLAYERS,
    TOKEN,
    Term,
    frozen_norm,
)
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.changes import Skipped
from headlight.model.probing.run import Run
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    final_norm_of,
    layers_of,
    parts_of,
    sides_of,
    steps_within,
    sublayers_of,
)
from headlight.model.probing.trace import check_memory, ids_of, read_of
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.tokenizer import CannotRead

MOST_NUMBERS = 2**25  # of a stream: 134 MB, several times
AT_ONCE = 2**24  # hidden numbers of a feed-forward


@dataclass(frozen=True)
class WordOrigin:
    """What a vector goes back to: a "token" of a side, "position" or "biases"."""

    what: str
    side: str = ""
    token: int | None = None


class RecordedPass:
    """A pass. `model` must be the caller's own view. Raises CannotRead and CannotChange."""

    @torch.no_grad()
    def __init__(self, model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()):
        self.model, self.run, self.given = model, run, given
        self.texts, self.sides = read_of(model, run), sides_of(model)
        check_memory(model.sites(), self.texts)
        self.sites = {site.name: site for site in model.sites()}
        self.skipped = {
            part.name
            for part in parts_of(model.sites(), model.sides())
            for change in run.changes
            if isinstance(change, Skipped) and change.scope.holds(part)
        }
        self.modules: dict[Hashable, nn.Module] = {}
        for side in self.sides.values():
            embedding = embedding_of(model, side)
            self.modules |= {
                (side.name, TOKEN): embedding.token,
                (side.name, POSITION): embedding.position,
                (side.name, "norm"): final_norm_of(model, side),
            }
            if isinstance(norm := getattr(embedding, "norm", None), nn.Module):
                self.modules[side.name, "embedding"] = norm
            for name, layer in zip(side.layers, layers_of(model, side), strict=True):
                for sub, module, norm in sublayers_of(layer):
                    at = f"{name}.{sub}"
                    self.modules |= {at: module, (at, "norm"): norm}
                    inner = ("linear1", "linear2")
                    if at in self.sites:
                        inner = ("query", "key", "scores", "softmax", "output")
                    for part in inner:
                        if hasattr(module, part):
                            self.modules[at, part] = getattr(module, part)
        for name in self.sites:
            for part in ("query", "key"):
                for step, module in steps_within(getattr(self.modules[name], part)).items():
                    self.modules[name, part, step] = module
        with (
            applied(model, run.changes, given),
            inputs_of(self.modules) as self.inputs,
            outputs_of(self.modules) as self.outputs,
        ):
            ids = ids_of(model, self.texts)
            model(*ids, *run.masks.build(model, *ids))
        self.norm = cache(self._norm)  # of this pass

    def _norm(self, at: Hashable) -> Callable[[Tensor], Tensor]:
        """What a norm did in this pass, as a linear map, and its shift, which goes to the biases:
        (term, position, width) → the same."""
        module = self.modules.get(at)
        if module is None or isinstance(module, nn.Identity):
            return lambda vectors: vectors
        frozen = frozen_norm(module, self.inputs[at][0][0], self.outputs[at][0])
        factor, shift = (one.to(self.inputs[at][0]) for one in (frozen.factor, frozen.shift))

        def through(vectors: Tensor) -> Tensor:
            if frozen.centred:
                vectors = vectors - vectors.mean(dim=-1, keepdim=True)
            vectors = vectors * factor
            vectors[-1] += shift
            return vectors

        return through

    def heads(self, site: Site) -> Tensor:
        """What the output projection reads, (query, heads, d_head)."""
        return self.inputs[site.name, "output"][0][0].unflatten(-1, (site.n_heads, -1))

    def real(self, side: str) -> list[int]:
        """Positions that are no padding."""
        return [i for i, role in enumerate(self.texts[side].roles) if role != "pad"]


class Streams:
    """The streams of a recorded pass as sums. `names` says what the vectors of `read_by` come from,
    the biases last."""

    def __init__(self, recorded: RecordedPass):
        self.recorded = recorded
        self._final = cache(lambda side: self._walk(recorded.sides[side], None))

    def read_by(self, site: Site) -> tuple[tuple, Tensor, tuple, Tensor]:
        """What the projections of an attention read, each with the names of its terms: for queries,
        and for keys and values. (term, position, width), in the model's type."""
        asks = self._walk(self.recorded.sides[site.query_side], site.name)
        offers = asks if site.key_side == site.query_side else self._final(site.key_side)
        return self.names(site.query_side, site.name), asks, self.names(
            site.key_side, site.name if offers is asks else None
        ), offers  # fmt: skip

    def compared(self, site: Site, which: str, head: int, read: Tensor) -> Tensor:
        """Terms of what the "query" or the "key" projection reads, as the scores compare them:
        projected, normed and turned, of one head (of keys, one that a group may share). (term,
        position, width) → (term, position, d_head)."""
        recorded = self.recorded
        projection = recorded.modules[site.name, which]
        project, bias = affine(steps_within(projection).get("projected", projection))
        count = site.n_heads if which == "query" else site.n_key_heads

        def of_head(vectors: Tensor) -> Tensor:
            return vectors.unflatten(-1, (count, -1))[..., head, :]

        vectors = of_head(project(read))
        vectors[-1] += of_head(bias)
        if (norm := getattr(projection, "norm", None)) is not None:
            before = of_head(recorded.outputs[site.name, which, "projected"][0])
            frozen = frozen_norm(norm, before, of_head(recorded.outputs[site.name, which][0]))
            vectors = vectors * frozen.factor.to(vectors)
        if turn := steps_within(recorded.modules[site.name, "scores"]).get(f"{which[0]}_rotated"):
            vectors = turn(vectors[:, None], vectors.shape[1])[:, 0]
        return vectors

    def names(self, side: str, until: str | None) -> tuple:
        raise NotImplementedError

    def embedded(self, side: Side) -> Tensor:
        raise NotImplementedError

    def attended(self, stream: Tensor, site: Site, read: Tensor) -> Tensor:
        """The stream behind an attention that read some vectors."""
        raise NotImplementedError

    def fed(self, stream: Tensor, at: str, side: Side, read: Tensor) -> Tensor:
        """The stream behind a feed-forward that read some vectors."""
        raise NotImplementedError

    def _walk(self, side: Side, until: str | None) -> Tensor:
        """The stream of a side as the sublayer `until` reads it, or what leaves its last norm."""
        recorded = self.recorded
        stream = recorded.norm((side.name, "embedding"))(self.embedded(side))
        for layer, name in zip(layers_of(recorded.model, side), side.layers, strict=True):
            for sub, *_ in sublayers_of(layer):
                at = f"{name}.{sub}"
                norm, site = recorded.norm((at, "norm")), recorded.sites.get(at)
                read = norm(stream) if layer.norm_first else stream
                if at == until:
                    return read
                if at not in recorded.skipped:
                    stream = (self.attended(stream, site, read) if site
                              else self.fed(stream, at, side, read))  # fmt: skip
                if not layer.norm_first:
                    stream = norm(stream)
        return recorded.norm((side.name, "norm"))(stream)

    def _embedding(self, side: Side) -> tuple[Tensor, Tensor, Tensor]:
        """Token, position, and whatever else an embedding adds before a norm."""
        token, position = (self.recorded.outputs[side.name, what] for what in (TOKEN, POSITION))
        token, position = token[0], position.reshape(-1, token.shape[-1])
        before = self.recorded.inputs.get((side.name, "embedding"))
        rest = before[0][0] - token - position if before else torch.zeros_like(token)
        return token, position, rest


class Parts(Streams):
    """By what wrote them: embedding, heads, feed-forwards, biases."""

    def names(self, side, until):
        model, recorded = self.recorded.model, self.recorded
        found, of_side = [Term(TOKEN), Term(POSITION)], recorded.sides[side]
        for i, layer in enumerate(layers_of(model, of_side)):
            for sub, *_ in sublayers_of(layer):
                at = f"{of_side.layers[i]}.{sub}"
                if at == until:
                    return (*found, Term(BIASES))
                if at in recorded.skipped:
                    continue
                if site := recorded.sites.get(at):
                    found += [Term(HEAD, site.kind, site.layer, h) for h in range(site.n_heads)]
                else:
                    found.append(Term(SUBLAYERS[sub], of_side.stack, i))
        return (*found, Term(BIASES))

    def embedded(self, side):
        return torch.stack(self._embedding(side))

    def attended(self, stream, site, read):
        heads = self.recorded.heads(site)
        apart = torch.eye(site.n_heads).to(heads)[:, None, :, None] * heads  # each by itself
        project, bias = affine(attention_at(self.recorded.model, site).output)
        return _with(stream, project(apart.flatten(2)), bias)

    def fed(self, stream, at, side, read):
        return _with(stream, self.recorded.outputs[at], stream.new_zeros(()))


def _with(stream: Tensor, written: Tensor, bias: Tensor) -> Tensor:
    return torch.cat([stream[:-1], written, stream[-1:] + bias])


class Words(Streams):
    """By the tokens of all texts, all positions together, and biases. Raises CannotRead for texts
    that are too long."""

    def __init__(self, recorded: RecordedPass):
        super().__init__(recorded)
        self.origins = (
            *(WordOrigin(TOKEN, side, i) for side, text in recorded.texts.items()
              for i in range(len(text.ids))),
            WordOrigin(POSITION),
            WordOrigin(BIASES),
        )  # fmt: skip
        longest = max(len(text.ids) for text in recorded.texts.values())
        if len(self.origins) * longest * recorded.model.config.d_model > MOST_NUMBERS:
            raise CannotRead("These texts are too long to follow every word through the model.")

    def names(self, side, until):
        return self.origins

    def embedded(self, side):
        token, position, rest = self._embedding(side)
        stream = token.new_zeros(len(self.origins), *token.shape)
        rows = torch.arange(len(token))
        stream[self.origins.index(WordOrigin(TOKEN, side.name, 0)) + rows, rows] = token
        stream[-2], stream[-1] = position, rest
        return stream

    def attended(self, stream, site, read):
        recorded, attention = self.recorded, attention_at(self.recorded.model, site)
        if site.key_side != site.query_side:
            read = self._final(site.key_side)
        value, bias = affine(attention.value)
        values = value(read)
        values[-1] += bias
        values = values.unflatten(-1, (site.n_key_heads, -1))
        values = values.repeat_interleave(site.n_heads // site.n_key_heads, dim=2)
        weights = recorded.outputs[site.name, "softmax"][0]
        project, bias = affine(attention.output)
        written = project(torch.einsum("hpk,okhd->ophd", weights, values).flatten(2))
        written[-1] += bias
        return stream + written

    def fed(self, stream, at, side, read):
        recorded, module = self.recorded, self.recorded.modules[at]
        before = recorded.outputs[at, "linear1"][0]
        behind = recorded.inputs[at, "linear2"][0][0]
        middle = constant = torch.zeros_like(before[0])
        if not hasattr(module, "gate"):
            middle = before[recorded.real(side.name)].mean(dim=0)
            constant = getattr(module, "activation", torch.relu)(middle)
        moved = before - middle
        slope = torch.where(moved == 0, 0, (behind - constant) / torch.where(moved == 0, 1, moved))
        (narrow, first), (wide, second) = (
            affine(recorded.modules[at, part]) for part in ("linear1", "linear2")
        )
        some, written = max(1, AT_ONCE // before.numel()), []
        for each in read.split(some):
            hidden = narrow(each)
            if not hasattr(module, "gate"):  # each word's own difference from its mean
                hidden -= hidden[:, recorded.real(side.name)].mean(dim=1, keepdim=True)
            written.append(wide(hidden * slope))
        written = torch.cat(written)
        written[-1] += wide(first * slope if hasattr(module, "gate") else constant) + second
        return stream + written


def affine(module: nn.Module) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A projection as a linear map, and what it adds, for any module that is one."""
    if isinstance(module, nn.Linear):
        weight, bias = module.weight, module.bias
        return (lambda x: x @ weight.T), weight.new_zeros(len(weight)) if bias is None else bias
    width = next(p.shape[-1] for p in module.parameters() if p.dim() == 2)
    width *= len(getattr(module, "heads", [0]))  # heads that each read a slice of the vector
    bias = module(next(module.parameters()).new_zeros(1, 1, width))[0, 0]
    return (lambda x: module(x) - bias), bias
