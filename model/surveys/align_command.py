"""Aligns words by cross-attention: `headlight align MODEL --file PAIRS --out FILE`.

    headlight align en-de "A dog runs." --out links.csv
    headlight align en-de --file pairs.tsv --out links.txt
    headlight align en-de --file pairs.tsv --by 1.2 --row read --out links.txt
    headlight align models/en-pt --gold GOLD --choose
    headlight align models/en-pt --gold GOLD --back models/pt-en

Each line of PAIRS is source and target with a tab in between; without a target, the model writes
its own. FILE ends in .txt or .csv. A .txt has the Pharaoh format: one line per sentence, such as
0-0 1-2, source word and target word counted from 0. A .csv has one line per pair of words, with its
weight, and shows what counts as a word: a punctuation mark does.

Without --by, the heads are those that were chosen for the model. Some heads align the word that a
row of the decoder reads, others the word that it predicts; each is read at the row where it was
measured. `describe` chooses heads without gold alignments, `align --choose` with them. If none
were chosen, words are aligned by influence, and the output says so.

--gold measures the error rate against gold alignments, with 95% intervals from bootstrap samples
of pairs. A line of GOLD is {"src_words": […], "tgt_words": […], "alignment": [[0, 0], …]}, numbers
of source word and target word. --choose uses the first half of the pairs to choose heads and the
second half to measure them, and keeps the choice with the model. --back is a model of the opposite
direction. Then the links that both models find are measured too.
"""

import argparse
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from headlight.model.analysis.alignment import (
    JUST_READ,
    NO_HEADS,
    PREDICTED,
    HeadAlignment,
    Links,
    aligning_kind,
)
from headlight.model.arguments import may_change_shipped
from headlight.model.checkpoint import Checkpoint, add_to_card, keep_shipped
from headlight.model.files import replacing
from headlight.model.messages import MOST_OF_REASON, reason, short
from headlight.model.surveys.alignments import ALIGNMENT_FILES, aligned, influenced
from headlight.model.surveys.gold_alignments import (
    Choose,
    GoldPair,
    choose_heads,
    diagonals,
    error_rate,
    read_gold,
    turned,
    weights_of,
)
from headlight.model.surveys.sentences import Line, encode, read
from headlight.model.surveys.trace_command import check_texts, opened, parser_of_texts
from headlight.model.training.data import DataError

ROWS = {"read": JUST_READ, "predicted": PREDICTED}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of_texts("align", __doc__, needs_out=False)
    parser.add_argument(
        "--by", metavar="LAYER.HEAD", help="one head, such as 1.2, instead of the best ones"
    )
    parser.add_argument(
        "--row",
        choices=ROWS,
        help="which of a row's two words the head aligns (default: as measured)",
    )
    parser.add_argument(
        "--gold", type=Path, metavar="GOLD", help="alignments by hand, to measure against"
    )
    parser.add_argument(
        "--choose", action="store_true", help="choose heads by the first half of GOLD"
    )
    parser.add_argument(
        "--back", metavar="MODEL", help="a model for the other direction, with --gold"
    )
    may_change_shipped(parser)
    args = parser.parse_args(arguments)
    if args.gold is None:
        if args.choose or args.back:
            parser.error("--choose and --back need --gold")
        check_texts(parser, args, ALIGNMENT_FILES)
    elif any(given is not None for given in (args.text, args.target, args.file, args.out)):
        parser.error("--gold measures: leave out text, --target, --file and --out")
    elif (args.by or args.row) and (args.choose or args.back):
        parser.error("--by and --row name the head: leave out --choose and --back")
    if args.by is not None and not re.fullmatch(r"[1-9]\d*\.[1-9]\d*", args.by):
        parser.error(f"--by {args.by} is not a head. Write layer and head, as in 1.2")
    return args


def chooser(checkpoint: Checkpoint, by: str | None, row: str | None) -> Choose | None:
    """What takes the wanted heads out of cross-attention; None where none were chosen. Raises
    DataError."""
    sites = checkpoint.model.sites()
    kind = aligning_kind(sites, checkpoint.model.sides())
    if kind is None:
        raise DataError("This model has no cross-attention, so it aligns nothing.")
    known: HeadAlignment | None = checkpoint.alignment
    shift = None if row is None else ROWS[row]
    if known is None and (by is None) != (shift is None):
        raise DataError(
            "No aligning heads were chosen for this model. Give --by and --row together, or "
            "choose heads with --gold and --choose."
        )
    if by is None:
        return None if known is None else lambda words: known.of(words, shift=shift)
    layer, head = (int(number) - 1 for number in by.split("."))
    numbers = {site.layer: i for i, site in enumerate(s for s in sites if s.kind == kind)}
    if layer not in numbers or head >= next(s.n_heads for s in sites if s.kind == kind):
        raise DataError(f"There is no head {by}: cross-attention has no such layer or head.")
    at = numbers[layer], head
    if shift is None:
        assert known is not None
        return lambda words: known.of(words, [at])
    return lambda words: replace(words, weights=words.weights[shift][at])


def write(args: argparse.Namespace) -> None:
    """Raises DataError and OSError."""
    lines = read(args.file) if args.file else [Line(1, args.text, args.target)]
    checkpoint = opened(args.model, "cpu")
    heads = chooser(checkpoint, args.by, args.row)
    sentences = encode(checkpoint, lines)
    if heads is None:
        print(NO_HEADS, file=sys.stderr)
        alignments = influenced(checkpoint, lines)
    else:
        alignments = aligned(checkpoint, sentences, heads)
    try:
        with replacing(args.out) as file:
            file.writelines(
                line.encode() for line in ALIGNMENT_FILES[args.out.suffix.lower()](alignments)
            )
    except OSError as error:
        out = short(args.out, MOST_OF_REASON)
        raise DataError(f"{out} cannot be written: {reason(error)}.") from None


@dataclass(frozen=True)
class MeasuredLinks:
    """How a model links the pairs that it is measured on, by way of aligning, the best one first;
    and the heads that were chosen for that, None where it was not asked."""

    links: dict[str, list[Links]]
    chosen: HeadAlignment | None

    @property
    def best(self) -> list[Links]:
        return next(iter(self.links.values()))


def measured(name: str, pairs: list[GoldPair], args: argparse.Namespace) -> MeasuredLinks:
    """Raises DataError."""
    checkpoint, half = opened(name, "cpu"), len(pairs) // 2 if args.choose else 0
    heads = chooser(checkpoint, args.by, args.row)
    weights, chosen = [weights_of(checkpoint, pair) for pair in pairs], None
    if args.choose:
        chosen = choose_heads(weights[:half])
        if chosen is None:
            raise DataError(f"{args.gold}: the first half of its pairs has no links.")
        heads = chosen.of
        print(f"{name}: heads by lines {lines_of(pairs[:half])}: {in_words(checkpoint, chosen)}")
    elif heads is None:
        print(f"{name}: {NO_HEADS}")
    rest, links = weights[half:], {}
    if heads:
        links["heads"] = [one.links(heads(one.attention)) for one in rest]
    links["influence"] = [one.links(one.influence) for one in rest]
    return MeasuredLinks(links, chosen)


def in_words(checkpoint: Checkpoint, chosen: HeadAlignment) -> str:
    kind = aligning_kind(checkpoint.model.sites(), checkpoint.model.sides())
    layers = [site.layer + 1 for site in checkpoint.model.sites() if site.kind == kind]
    rows = {shift: name for name, shift in ROWS.items()}
    return ", ".join(
        f"layer {layers[layer]} head {head + 1} (the word that is "
        f"{rows[chosen.shifts[layer, head]]})"
        for layer, head in chosen.heads
    )


def lines_of(pairs: list[GoldPair]) -> str:
    return f"{pairs[0].number:,} to {pairs[-1].number:,}"


def compare(args: argparse.Namespace) -> None:
    """Print the error rates of a model, of one of the other direction, and of what both link; keep
    the heads that were chosen. Raises DataError, CannotLoad and OSError."""
    pairs = read_gold(args.gold)
    if args.choose and len(pairs) < 2:
        raise DataError(f"{args.gold}: one pair is not enough to choose heads and to measure them.")
    for name in filter(None, (args.model, args.back) if args.choose else ()):
        keep_shipped(name, args.change_shipped)
    rest = pairs[len(pairs) // 2 :] if args.choose else pairs
    there = measured(args.model, pairs, args)
    models = {args.model: there}
    ways = dict(there.links)
    if args.back:
        back = models[args.back] = measured(args.back, [pair.turned() for pair in pairs], args)
        returned = {name: list(map(turned, links)) for name, links in back.links.items()}
        ways |= {f"{name}, back": links for name, links in returned.items()}
        both = zip(there.best, map(turned, back.best), strict=True)
        ways["both directions"] = [one & other for one, other in both]
    ways["diagonal"] = diagonals(rest)
    print(f"Alignment error rate of lines {lines_of(rest)} ({len(rest):,} pairs), 95% intervals:")
    width = max(map(len, ways))
    for name, links in ways.items():
        print(f"  {name:{width}}  {error_rate(links, rest)}")
    if args.choose:
        for name, of_model in models.items():
            assert of_model.chosen is not None
            add_to_card(name, {"alignment": of_model.chosen.to_card()})
        print("The chosen heads are saved with the model.")


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    try:
        compare(args) if args.gold else write(args)
    except DataError as error:
        sys.exit(str(error))
