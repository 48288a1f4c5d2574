"""The effect on sentences of switching off a part of the model: their loss, and the output or
decision. Numbers are per sentence, so any subset can be summed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.model.analysis.baselines import CONTROL, MEAN, RESAMPLE
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.applying import PatchInputs, applied, applied_by_row
from headlight.model.probing.changes import (
    Change,
    HeadMean,
    HeadOff,
    Randomised,
    Resampled,
    Scope,
    Skipped,
)
from headlight.model.probing.sites import device_of, parts_of, predicted_side
from headlight.model.sites import ProbedModel
from headlight.model.surveys.sentences import Line, encode, write_targets
from headlight.model.training.data import DataError, batches, pad_ids

TOKENS = 1024  # tokens of a batch on either side, with padding
WRITTEN_TOKENS = 4096  # of the sources of a batch that is written: steps are few and small
BLEU, ACCURACY, EXACT_MATCH = "bleu", "accuracy", "exact"
BLEU_ORDER = 4
DRAWS = 2  # for a sentence, of what is drawn at random in place of a head


@dataclass(frozen=True)
class Unit:
    """A unit that is switched off as a whole.

    part         "head", "sublayer" or "layer"
    kind         of its attention; encoder_feed_forward …; of a layer its stack
    layer, head  from 0; no head but of a head
    """

    part: str
    kind: str
    layer: int
    head: int | None
    changes: tuple[Change, ...]


def units(model: ProbedModel) -> list[Unit]:
    """Every head, every sublayer and every layer. Of a layer all sublayers are skipped at once: the
    residual stream goes by, in a post-norm layer through its norms."""
    heads = [
        Unit("head", s.kind, s.layer, head, (HeadOff(Scope(s.kind, s.layer, head)),))
        for s in model.sites()
        for head in range(s.n_heads)
    ]
    parts = [p for p in parts_of(model.sites(), model.sides()) if p.what in Skipped.parts]
    skipped = {p.name: Skipped(Scope(p.kind, p.layer)) for p in parts}
    sublayers = [Unit("sublayer", p.kind, p.layer, None, (skipped[p.name],)) for p in parts]
    layers = [
        Unit(
            "layer",
            side.stack,
            layer,
            None,
            tuple(change for part, change in skipped.items() if part.startswith(f"{name}.")),
        )
        for side in model.sides()
        for layer, name in enumerate(side.layers)
    ]
    return heads + sublayers + layers


@dataclass(frozen=True)
class Example:
    """A sentence of a survey.

    texts      ids of each side, special tokens included
    label      of a classifier: the number of its class
    reference  the target that was given, as text; None where the model wrote its own
    """

    number: int
    source: str
    texts: tuple[list[int], ...]
    label: int | None
    reference: str | None


def examples_of(checkpoint: Checkpoint, lines: Sequence[Line]) -> list[Example]:
    """Lines, of a classifier with the name of a class behind the tab. Where there is no target the
    model's own is taken. Raises DataError."""
    classes = checkpoint.classes
    if predicted_side(checkpoint.model).predicts not in ("next token", "class"):
        raise DataError("A survey needs a model that predicts the next token or a class.")
    for line in lines:
        if classes and line.target is not None and line.target not in classes:
            raise DataError(
                f"Line {line.number:,}: {line.target!r} is not one of this model's classes, "
                f"{', '.join(classes)}."
            )
    texts = [Line(line.number, line.source, None if classes else line.target) for line in lines]
    sentences = []
    for start in range(0, len(texts), 1000):  # targets are written for some at a time
        sentences += write_targets(checkpoint, encode(checkpoint, texts[start : start + 1000]))
    examples = [
        Example(s.number, line.source, s.texts, None, line.target)
        for s, line in zip(sentences, lines, strict=True)
    ]
    if not classes:
        return examples
    verdicts = decided(checkpoint, examples)
    return [
        Example(e.number, e.source, e.texts, verdict if e.reference is None else
                classes.index(e.reference), e.reference)
        for e, verdict in zip(examples, verdicts, strict=True)
    ]  # fmt: skip


def losses(
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    changes: Sequence[Change] = (),
    each: Callable[[Example], Sequence[Change]] = lambda example: (),
) -> np.ndarray:
    """(sentence, 2): −log p in nats of all predicted tokens, and their number. `each`: more changes
    for one sentence."""
    results = np.zeros((len(examples), 2))
    model, given = checkpoint.model, PatchInputs(checkpoint.means)
    for rows in example_batches(checkpoint, examples):
        some = [examples[i] for i in rows]
        with torch.inference_mode(), applied_by_row(model, changes, list(map(each, some)), given):
            lost, counts = loss_of(model, some)
            results[rows, 0], results[rows, 1] = lost.double().cpu(), counts.cpu()
    return results


def baseline_losses(
    checkpoint: Checkpoint, examples: Sequence[Example], head: Scope
) -> dict[str, np.ndarray]:
    """As `losses`, with the mean output of a head in its place, with its outputs in other texts,
    and with a random vector added; of what is drawn the mean of DRAWS, others for each sentence."""

    def drawn(make: type[Resampled | Randomised]) -> np.ndarray:
        draws = (
            losses(checkpoint, examples, each=lambda e, i=i: [make(head, DRAWS * e.number + i)])
            for i in range(DRAWS)
        )
        return np.mean([*draws], axis=0)

    mean = losses(checkpoint, examples, [HeadMean(head)])
    return {MEAN: mean, RESAMPLE: drawn(Resampled), CONTROL: drawn(Randomised)}


def loss_of(model: ProbedModel, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """For each sentence of a batch: the loss, and its number of tokens."""
    ids = [
        _padded(model, [e.texts[n] for e in examples], side.name)
        for n, side in enumerate(model.sides())
    ]
    hidden = model.hidden(*ids, *Masks().build(model, *ids))
    if predicted_side(model).predicts == "class":
        labels = torch.tensor([e.label for e in examples], device=hidden.device)
        logits = model.logits(hidden, ids[-1])[:, 0]
        return F.cross_entropy(logits, labels, reduction="none"), torch.ones(len(examples))
    end = [model.config.eos_id] * (model.config.eos_id >= 0)
    following = [[*e.texts[-1][1:], *end] for e in examples]
    counts = torch.tensor([len(wanted) for wanted in following])
    # Only the logits of predicted tokens: those of padding would be most of the work.
    rows = [hidden[i, : len(wanted)] for i, wanted in enumerate(following)]
    labels = torch.tensor([i for wanted in following for i in wanted], device=hidden.device)
    read = [ids[-1][i, : len(row)] for i, row in enumerate(rows)]
    logits = model.logits(torch.cat(rows)[None], torch.cat(read)[None])[0]
    # Cross-entropy without a copy of the logits.
    each = logits.logsumexp(dim=-1) - logits.gather(1, labels[:, None])[:, 0]
    return torch.stack([part.sum() for part in each.split(counts.tolist())]), counts


@torch.inference_mode()
def written(
    checkpoint: Checkpoint, examples: Sequence[Example], changes: Sequence[Change] = ()
) -> list[str]:
    """The greedy output for each source."""
    texts = [""] * len(examples)
    model = checkpoint.model
    with applied(model, changes, PatchInputs(checkpoint.means)):
        for rows in example_batches(checkpoint, examples, WRITTEN_TOKENS, sources=True):
            src = _padded(model, [examples[i].texts[0] for i in rows], "src")
            for i, ids in zip(rows, greedy_decode(model, src), strict=True):
                texts[i] = checkpoint.tokenizer.target.decode(ids)
    return texts


@torch.inference_mode()
def decided(
    checkpoint: Checkpoint, examples: Sequence[Example], changes: Sequence[Change] = ()
) -> list[int]:
    """The index of the most probable class of each text."""
    verdicts, model = [0] * len(examples), checkpoint.model
    with applied(model, changes, PatchInputs(checkpoint.means)):
        for rows in example_batches(checkpoint, examples):
            ids = _padded(model, [examples[i].texts[0] for i in rows], "src")
            logits = model(ids, *Masks().build(model, ids))[:, 0]
            for i, verdict in zip(rows, logits.argmax(dim=-1).tolist(), strict=True):
                verdicts[i] = verdict
    return verdicts


def quality(
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    measure: str,
    changes: Sequence[Change] = (),
) -> np.ndarray:
    """Of each sentence what `score` takes the sum of, (sentence, statistic): for "bleu" what BLEU
    is counted from, else whether the answer is right, and 1."""
    if measure == ACCURACY:
        right = [v == e.label for v, e in
                 zip(decided(checkpoint, examples, changes), examples, strict=True)]  # fmt: skip
        return np.stack([right, np.ones(len(examples))], axis=-1)
    texts = written(checkpoint, examples, changes)
    if measure == EXACT_MATCH:
        right = [text == e.reference for text, e in zip(texts, examples, strict=True)]
        return np.stack([right, np.ones(len(examples))], axis=-1)
    from sacrebleu.metrics.bleu import BLEU as Bleu  # in the extra `train`

    bleu = Bleu(effective_order=True)  # which keeps it from warning; counts are the same
    given = [e.reference for e in examples if e.reference is not None]  # all have one
    scores = [bleu.sentence_score(text, [reference]) for text, reference in
              zip(texts, given, strict=True)]  # fmt: skip
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], dtype=float)


def score(measure: str, sums: np.ndarray) -> np.ndarray:
    """(.., statistic), summed over sentences → (..): BLEU as sacreBLEU has it, or percent."""
    if measure != BLEU:
        return 100 * sums[..., 0] / sums[..., 1]
    counts, totals = sums[..., :BLEU_ORDER], sums[..., BLEU_ORDER : 2 * BLEU_ORDER]
    written, given = sums[..., -2], sums[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where no n-gram is right, sacreBLEU counts a half, then a quarter … ("exp").
        halved = 0.5 ** (counts == 0).cumsum(axis=-1)
        logs = np.log(np.where(counts == 0, halved, counts) / totals)
        bleu = 100 * np.exp(logs.mean(axis=-1) + np.minimum(1 - given / written, 0))
    return np.where(counts.any(axis=-1) & totals.all(axis=-1), bleu, 0)


def example_batches(
    checkpoint: Checkpoint, examples: Sequence[Example], tokens: int = TOKENS, sources: bool = False
) -> Iterator[list[int]]:
    """Indices of examples in batches of similar length; single ones if there is no padding
    token."""
    pairs = [(e.texts[0], e.texts[0 if sources else -1], i) for i, e in enumerate(examples)]
    for batch in batches(pairs, tokens if checkpoint.model.config.pad_id >= 0 else 1):
        yield [i for *_, i in batch]


def _padded(model: ProbedModel, ids: list[list[int]], side: str) -> Tensor:
    return pad_ids(ids, model.config, side).to(device_of(model))
