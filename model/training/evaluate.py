"""Scores a checkpoint on its test sets: `headlight evaluate NAME --data DIR --beam 5`."""

import json
import math
import sys
import time
from itertools import zip_longest
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from headlight.model.arguments import Parser, add_device, may_change_shipped
from headlight.model.card import with_scores
from headlight.model.checkpoint import Checkpoint, is_shipped, load, write_card
from headlight.model.decoding.search import beam_search, greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.sites import device_of
from headlight.model.sites import ProbedModel
from headlight.model.training import data, tasks
from headlight.model.training.data import DataError, Pair
from headlight.model.training.tasks import Example, Task

IGNORED = -100  # cross_entropy's own sign for a label that does not count


def in_batches(model, tokenizer, texts: list[str], answer, size: int = 100) -> list:
    """`answer(src)` for all texts, in their order; texts of similar length go together, each alone
    where no token can pad them."""
    config, side = model.config, model.sides()[0]
    size = size if config.special_ids(side.name)[0] >= 0 else 1
    sources = [data.with_special_ids(side, ids, config) for ids in tokenizer.encode_batch(texts)]
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    answers = {}
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        src = data.pad_ids([sources[i] for i in chosen], config, side.name)
        answers |= zip(chosen, answer(src.to(device_of(model))), strict=True)
    return [answers[i] for i in range(len(texts))]


def translate(checkpoint: Checkpoint, texts: list[str], beam: int = 1) -> list[str]:
    """Translations by greedy search, or by beam search with more than one beam."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer

    def decode(src):
        return greedy_decode(model, src) if beam == 1 else beam_search(model, src, beam)

    return [tokenizer.target.decode(ids) for ids in in_batches(model, tokenizer, texts, decode)]


def classify(checkpoint: Checkpoint, texts: list[str]) -> list[str]:
    """The most probable class of each text."""

    @torch.no_grad()
    def decide(src):
        logits = checkpoint.model(src, *Masks().build(checkpoint.model, src))
        return logits[:, 0].argmax(dim=-1).tolist()

    chosen = in_batches(checkpoint.model, checkpoint.tokenizer, texts, decide)
    return [checkpoint.classes[i] for i in chosen]


@torch.no_grad()
def ends_predicted(checkpoint: Checkpoint, texts: list[str], ends: list[str]) -> float:
    """The share of the tokens of the ends, but their first, which nothing announces, that are the
    most probable next ones behind the tokens before them; each end is that of its text."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    config, side = model.config, model.sides()[0]
    right = total = 0
    for text, end in zip(tokenizer.encode_batch(texts), tokenizer.encode_batch(ends), strict=True):
        ids = torch.tensor([data.with_special_ids(side, text, config)], device=device_of(model))
        best = model(ids, *Masks().build(model, ids))[0, -len(end) : -1].argmax(dim=-1)
        right += int((best == ids[0, 1 - len(end) :]).sum())
        total += len(end) - 1
    return right / total


@torch.no_grad()
def perplexity(model: ProbedModel, pairs: list[Pair], most: int = 2000) -> dict:
    """exp of the mean −log p of every token of the texts, given those before it; and half the width
    of its 95% interval, over 1,000 resampled test sets."""
    per_text = []  # of each text its loss in nats, and how many tokens it has
    for batch in data.batches(pairs, most):
        ids = data.pad_ids([tgt for _, tgt in batch], model.config).to(device_of(model))
        logits = model(ids[:, :-1], *Masks(tgt_padding=False).build(model, ids[:, :-1]))
        labels = data.pad([tgt[1:] for _, tgt in batch], IGNORED).to(ids.device)
        losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(dim=1)
        per_text += zip(losses.tolist(), (len(tgt) - 1 for _, tgt in batch), strict=True)
    per_text = np.array(per_text)
    resampled = np.random.default_rng(0).integers(len(per_text), size=(1000, len(per_text)))
    sums = np.array([per_text[texts].sum(axis=0) for texts in resampled])
    low, high = np.exp(np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975]))
    losses, tokens = per_text.sum(axis=0)
    return {"perplexity": math.exp(losses / tokens), "interval": float(high - low) / 2}


def bleu_and_chrf(translations: list[str], references: list[list[str]]) -> dict:
    """sacreBLEU's figures for cased text (and BLEU for lowercased), with their signatures; of the
    lowercased one also half the width of its 95% interval, over 1,000 resampled test sets. A text
    may have several references."""
    from sacrebleu.metrics.bleu import BLEU  # only those who evaluate need it
    from sacrebleu.metrics.chrf import CHRF

    streams = list(zip_longest(*references))  # None where a text has fewer than another
    metrics = {"bleu_lc": BLEU(lowercase=True), "bleu": BLEU(), "chrf": CHRF()}
    figures = {
        name: metric.corpus_score(translations, streams).score for name, metric in metrics.items()
    }
    signature = {name: str(metric.get_signature()) for name, metric in metrics.items()}
    resampled = BLEU(lowercase=True).corpus_score(translations, streams, n_bootstrap=1000)
    return figures | {"interval": resampled._ci, "signature": signature}


def with_all_targets(examples: list[Example]) -> dict[str, list[str]]:
    """Source → all its targets: a text may have several right translations."""
    targets: dict[str, list[str]] = {}
    for source, target in examples:
        targets.setdefault(source, []).append(target)
    return targets


def evaluate(checkpoint: Checkpoint, task: Task, examples: list[Example], beam: int = 1) -> dict:
    """The figures of one test set, without its name."""
    if task.score == "bleu":
        references = with_all_targets(examples)
        translations = translate(checkpoint, list(references), beam)
        decode = "greedy" if beam == 1 else f"beam {beam}"
        return {"decode": decode} | bleu_and_chrf(translations, list(references.values()))
    sources, targets = (list(side) for side in zip(*examples, strict=True))
    if task.score == "perplexity":
        pairs = task.encode(checkpoint.tokenizer, examples, checkpoint.model.config)
        figures = perplexity(checkpoint.model, pairs)
        return {"decode": "every next token"} | figures | {"examples": len(examples)}
    if task.continues:
        share = ends_predicted(checkpoint, sources, targets)
        decode = "most probable next token"
        return {"decode": decode, task.score: 100 * share, "examples": len(targets)}
    if task.classes:
        answers, decode = classify(checkpoint, sources), "most probable class"
    else:
        answers = translate(checkpoint, sources, beam)
        decode = "greedy" if beam == 1 else f"beam {beam}"
    right = sum(answer == target for answer, target in zip(answers, targets, strict=True))
    return {"decode": decode, task.score: 100 * right / len(targets), "examples": len(targets)}


def main(arguments: list[str] | None = None) -> None:
    parser = Parser(prog="headlight evaluate", description=__doc__)
    parser.add_argument("checkpoint", help="name of a shipped model, or a folder")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data of its task (for pairs: FILE.tsv)"
    )
    parser.add_argument("--beam", type=int, default=1, help="1: greedy search (default)")
    add_device(parser)
    parser.add_argument("--validation", action="store_true",
                        help="use the validation data; the card is not changed")  # fmt: skip
    may_change_shipped(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per test set")
    args = parser.parse_args(arguments)
    if args.beam < 1:
        parser.error("--beam must be at least 1")
    try:
        run(args)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))


def run(args) -> None:
    checkpoint = load(args.checkpoint, device=args.device)
    card = checkpoint.card
    task = tasks.of_card(card, args.data)
    scores = []
    sets = task.sets_of("val") if args.validation else task.tests()
    for name, examples in sets.items():
        start = time.perf_counter()
        score = {"set": name} | evaluate(checkpoint, task, examples, args.beam)
        scores.append(score)
        if args.json:
            print(json.dumps(score, ensure_ascii=False), flush=True)
        else:
            figures = "  ".join(f"{k} {v:.2f}" for k, v in score.items() if isinstance(v, float))
            seconds = time.perf_counter() - start
            print(f"{name}  {score['decode']}  {figures}  ({seconds:.1f} s)", flush=True)
    if args.validation:
        return
    if is_shipped(args.checkpoint) and not args.change_shipped:
        print("--change-shipped would write this into its card.", file=sys.stderr)
        return
    write_card(args.checkpoint, with_scores(card, scores))
