"""Makes synthetic pairs to train on, by back-translation (Sennrich et al. 2016): `headlight
back-translate CHECKPOINT --out FILE.tsv`.

CHECKPOINT translates in the other direction. It samples sources for the targets of its own training
text, or for texts without a translation (`--texts`). Each line of FILE is a sampled source, a tab,
and the text it was sampled for. Train on them beside the model's own pairs with
`train … --also FILE`.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from headlight.model.arguments import add_device, parser_of
from headlight.model.checkpoint import Checkpoint, load
from headlight.model.decoding.generate import Sampling, truncated
from headlight.model.decoding.search import greedy_decode
from headlight.model.files import replace_file
from headlight.model.training import tasks
from headlight.model.training.data import DataError, read_lines
from headlight.model.training.evaluate import in_batches
from headlight.model.training.tasks import Example

AT_ONCE = 1000  # texts


def drawn(logits: Tensor, how: Sampling, generator: torch.Generator) -> Tensor:
    """A token of each row of logits, (row, vocab_size) → (row,)."""
    return torch.multinomial(truncated(logits, how), 1, generator=generator)[:, 0]


def in_line(text: str) -> str:
    """Without the tabs and line ends that a line of pairs has no room for."""
    return " ".join(text.split())


def back_translated(checkpoint: Checkpoint, texts: list[str], how: Sampling) -> list[Example]:
    """(sampled translation, text) pairs; texts with an empty translation are left out."""
    from tqdm import tqdm

    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    generator = torch.Generator(next(model.parameters()).device).manual_seed(how.seed)
    choose = partial(drawn, how=how, generator=generator)
    pairs = []
    for start in tqdm(range(0, len(texts), AT_ONCE), unit=f" × {AT_ONCE:,} texts", disable=None):
        some = texts[start : start + AT_ONCE]
        written = in_batches(
            model, tokenizer, some, lambda src: greedy_decode(model, src, choose=choose)
        )
        for ids, text in zip(written, some, strict=True):
            source, target = in_line(tokenizer.target.decode(ids)), in_line(text)
            if source and target:
                pairs.append((source, target))
    return pairs


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = parser_of("back-translate", __doc__)
    parser.add_argument("checkpoint", help="name of a shipped model, or a folder")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data of its task (for pairs: FILE.tsv)"
    )
    parser.add_argument(
        "--texts",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts to sample sources for, one per line, plain or gzip",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.tsv")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="samples for each text")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T")
    parser.add_argument("--seed", type=int, default=1)
    add_device(parser)
    args = parser.parse_args(arguments)
    if args.samples < 1:
        parser.error("--samples must be at least 1")
    if not 0 < args.temperature < float("inf"):
        parser.error("--temperature must be above 0")
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    try:
        checkpoint = load(args.checkpoint, device=args.device)
        card = checkpoint.card
        task = tasks.of_card(card, args.data)
        if task.score != "bleu":
            raise DataError(f"{args.checkpoint} does not translate: {task.title}.")
        if args.texts:
            lines = (line.strip() for file in args.texts for line in read_lines(file))
            texts = [*dict.fromkeys(filter(None, lines))]
        else:
            texts = [source for source, _ in task.examples()["train"]]
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    seeds = range(args.seed, args.seed + args.samples)
    samples = [
        back_translated(checkpoint, texts, Sampling(args.temperature, seed=seed)) for seed in seeds
    ]
    pairs = dict.fromkeys(pair for pairs in samples for pair in pairs)
    replace_file(args.out, "".join(f"{source}\t{target}\n" for source, target in pairs))
    print(f"{len(pairs):,} pairs of {len(texts):,} texts: {args.out}")
