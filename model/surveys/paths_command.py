"""Finds what carries the difference between two sentences: `headlight paths MODEL TEXT OTHER`.

    headlight paths en-fr "My father is old." "My mother is old."
    headlight paths copy "a b c" "d b c" --held-out "c a b" "b a b"

A path leads from one part of the model to what another part reads. The two texts need the same
number of tokens, and tokens that the model expects after them must differ. Of all paths, the
fewest are kept that still carry the difference between these two tokens; all others give what they
give in the other text.

The sentence says how many paths that are, and what they carry together. Below stands each with the
share that goes with it alone, as a change to try in the app. Paths of one pair often carry little
of others: give more pairs to choose on with --pair, and some to test on with --held-out.
"""

import sys

from headlight.model.analysis.paths import KEEP
from headlight.model.arguments import add_device, parser_of
from headlight.model.rounding import percent
from headlight.model.surveys.trace_command import opened
from headlight.model.tokenizer import CannotRead


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("paths", __doc__)
    parser.add_argument("model", help="name of a shipped model, or a folder")
    parser.add_argument("text", help="what the model reads")
    parser.add_argument("other", help="what it is compared with")
    pair = {"nargs": 2, "metavar": ("TEXT", "OTHER"), "action": "append", "default": []}
    parser.add_argument("--pair", **pair, help="one more pair to choose on; may be repeated")
    parser.add_argument("--held-out", **pair, help="a pair to test on; may be repeated")
    parser.add_argument(
        "--keep", type=float, default=KEEP, metavar="SHARE", help=f"default: {KEEP}"
    )
    add_device(parser)
    args = parser.parse_args(arguments)
    try:
        checkpoint = opened(args.model, args.device)
        pairs = [[args.text, args.other], *args.pair]
        found = checkpoint.paths(pairs, args.keep, args.held_out)
    except (CannotRead, FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
    shares = (f"{percent(effect):>5}" for effect in found.effects.tolist())
    lines = (f"{share}  {path}" for share, path in zip(shares, found.paths, strict=True))
    print(found, *lines, sep="\n")
