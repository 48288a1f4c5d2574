"""Says why a head attends to a word: `headlight why MODEL TEXT CELL`.

    headlight why en-fr "A dog runs." "cross.1.1=3>2"
    headlight why en-fr "A dog runs." "cross.1.1=3>2" --target "Un chien court." --by parts

A cell is a query and a key: `cross.1.1=3>2` is query 3 and key 2 of cross-attention, layer 1, head
1. Without =3>2 the tokens are listed with their numbers, and the key that each query weighs most.

The sentence says how far the key's score is above the mean of the row's other keys. Then it says
what that goes back to: two words that meet, a pull that every query has, or where both stand. Where
nothing leads, both sides are given. The shares are exact, but they are no cause. So the weight
without each named word is there too: the model runs again with the mean of the text's embeddings in
its place. Behind that stand the largest pairs.
"""

import sys

from headlight.model.analysis.why import BY, Why, placed
from headlight.model.arguments import add_device, parser_of
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.run import Run
from headlight.model.rounding import percent
from headlight.model.surveys.trace_command import opened
from headlight.model.tokenizer import CannotRead


def strongest(checkpoint: Checkpoint, run: Run, head: str) -> list[str]:
    """A line for each query of a head: its number, and the key that it weighs most. Raises
    CannotRead."""
    trace = checkpoint.trace_run(run)
    site, number, *_ = placed(checkpoint.model, trace.texts, f"{head}=1>1")
    weights = trace.attention[site.kind][trace.kinds[site.kind].index(site), number]
    queries, keys = (text.tokens for text in trace.texts_of(site.kind))
    return [
        f"{i} {query} attends most to {key + 1} {keys[key]}"
        for i, (query, key) in enumerate(zip(queries, weights.argmax(-1).tolist(), strict=True), 1)
    ]


def table(found: Why, count: int = 5) -> list[str]:
    """The largest pairs, each with its share of the margin."""
    return [
        f"{percent(value / found.margin):>5}  {found.named_as(ask)} × {found.named_as(offer)}"
        for ask, offer, value in found.largest(count)
        if found.margin > 0 and value > 0
    ]


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("why", __doc__)
    parser.add_argument("model", help="name of a shipped model, or a folder")
    parser.add_argument("text", help="what the model reads")
    parser.add_argument("cell", help="a head, a query and a key, or a head alone")
    parser.add_argument("--target", help="default: what the model writes")
    parser.add_argument("--changes", default="", metavar="LINE", help="as in the app")
    parser.add_argument("--by", choices=BY, default="words", help="default: words")
    add_device(parser)
    args = parser.parse_args(arguments)
    try:
        checkpoint = opened(args.model, args.device)
        run = checkpoint.run(args.text, args.target, changes=args.changes)
        if "=" not in args.cell:
            print(*strongest(checkpoint, run, args.cell), sep="\n")
            return
        found = checkpoint.why(run, args.cell, args.by)
    except (CannotRead, CannotChange, FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
    print(found, *table(found), sep="\n")
