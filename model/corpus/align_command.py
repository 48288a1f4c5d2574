"""Which words go together, out of cross-attention: `python -m model align MODEL --file PAIRS --out
FILE`.

    python -m model align en-de "A dog runs." --out links.csv
    python -m model align en-de --file pairs.tsv --out links.txt
    python -m model align en-de --file pairs.tsv --by 1.2 --row read --out links.txt

A line of PAIRS holds source and target with a tab between; without a target the model writes its
own. FILE ends in .txt (Pharaoh format, a line a sentence: 0-0 1-2, source word and target word
counted from 0) or in .csv (a line a pair of words, with their weight). Words are counted as they
stand in the CSV: a punctuation mark is one of its own.

Without --by the heads are those that the model's card names, each read at the row that it was
measured to align: some heads align the word that a row of the decoder reads, others the word that
it predicts.
"""

import argparse
import re
import sys
from dataclasses import replace

from model.analysis.alignment import PREDICTED, READ, HeadAlignment, aligning_kind
from model.checkpoint import Checkpoint
from model.corpus.alignments import FILES, aligned
from model.corpus.sentences import Line, encode, read
from model.corpus.trace_command import opened, parsed_texts, parser_of_texts
from model.files import replacing
from model.training.data import DataError

ROWS = {"read": READ, "predicted": PREDICTED}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of_texts("align", __doc__)
    parser.add_argument("--by", metavar="LAYER.HEAD", help="one head, as in 1.2, not the best ones")
    parser.add_argument("--row", choices=ROWS, help="where its word stands; else as measured")
    args = parsed_texts(parser, arguments, FILES)
    if args.by is not None and not re.fullmatch(r"[1-9]\d*\.[1-9]\d*", args.by):
        parser.error(f"--by {args.by} is no head; write layer and head, as in 1.2")
    return args


def chooser(checkpoint: Checkpoint, by: str | None, row: str | None):
    """What takes the wanted heads out of cross-attention. Raises DataError."""
    sites = checkpoint.model.sites()
    kind = aligning_kind(sites, checkpoint.model.sides())
    if kind is None:
        raise DataError("This model has no cross-attention: it aligns nothing.")
    known: HeadAlignment | None = checkpoint.alignment
    shift = ROWS.get(row)
    if known is None and (by is None or shift is None):
        raise DataError(
            "The card of this model does not say which heads align words, and at which row: "
            "measure it with `python -m model describe`, or name a head with --by and its --row."
        )
    if by is None:
        return lambda words: known.of(words, shift=shift)
    layer, head = (int(number) - 1 for number in by.split("."))
    numbers = {site.layer: i for i, site in enumerate(s for s in sites if s.kind == kind)}
    if layer not in numbers or head >= next(s.n_heads for s in sites if s.kind == kind):
        raise DataError(f"There is no head {by}: cross-attention has no such layer or head.")
    at = numbers[layer], head
    if shift is None:
        return lambda words: known.of(words, [at])
    return lambda words: replace(words, weights=words.weights[shift][at])


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    try:
        lines = read(args.file) if args.file else [Line(1, args.text, args.target)]
        checkpoint = opened(args.model, "cpu")
        heads = chooser(checkpoint, args.by, args.row)
        found = aligned(checkpoint, encode(checkpoint, lines), heads)
        with replacing(args.out) as file:
            file.writelines(line.encode() for line in FILES[args.out.suffix.lower()](found))
    except DataError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{args.out} cannot be written: {error.strerror or error}.")
