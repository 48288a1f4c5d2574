"""Draws one head, all heads of a kind, or a word alignment, for a paper:
`headlight figure MODEL TEXT --out FILE`.

    headlight figure en-de "A dog runs." --layer 3 --head 3 --out fig.pdf
    headlight figure en-de "A dog runs." --kind encoder --whole --width page --out fig.svg
    headlight figure en-de "A dog runs." --alignment --out fig.pdf
    headlight figure mine.safetensors --kind decoder --numbers --width 84mm --out fig.png

MODEL is the name of a shipped model, a folder, or a recording: then TEXT is one of its own, or left
out for its first. FILE ends in .svg, .pdf or .png. Layers and heads start at 1. A width is column
(3.25 inches), page (6.75), or a size such as 84mm or 3.3in; letters that would be too small to read
are refused. A caption for the figure is printed.
"""

import sys
from pathlib import Path

from headlight.app.export.paper import AlignmentFigure, Figure, ending_of, inches_of, place_of
from headlight.app.theme import WEIGHTS
from headlight.model.arguments import parser_of
from headlight.model.messages import LONGEST_MESSAGE, MOST_OF_REASON, reason, short
from headlight.model.recording.checkpoint import load_recorded
from headlight.model.surveys.trace_command import opened

RECORDING = ".safetensors"
OF_HEADS = "kind", "layer", "head", "whole", "numbers", "changes", "colours"
ALONE = "An alignment takes the heads that align words: leave out --{}."


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("figure", __doc__)
    parser.add_argument("model", help="name of a shipped model, a folder, or a recording")
    parser.add_argument("text", nargs="?", help="a sentence")
    parser.add_argument(
        "--target", metavar="TEXT", help="its target (default: the model writes one)"
    )
    parser.add_argument(
        "--kind", help="of attention, such as encoder (default: the model's last one)"
    )
    parser.add_argument("--layer", type=int, metavar="N", help="default: the first")
    parser.add_argument("--head", type=int, metavar="N", help="default: 1")
    parser.add_argument("--whole", action="store_true", help="all heads of the kind")
    parser.add_argument("--alignment", action="store_true",
                        help="which source word each target word goes back to")  # fmt: skip
    parser.add_argument("--numbers", action="store_true", help="weights in the cells that fit them")
    parser.add_argument("--changes", default="", metavar="LINE",
                        help="changes to the model, such as cross.1.2=off")  # fmt: skip
    parser.add_argument("--colours", choices=[*WEIGHTS], default="ink",
                        help="of weights: ink (default) or viridis")  # fmt: skip
    parser.add_argument("--width", default="column", help="column (default), page, 84mm, 3.3in …")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args(arguments)
    try:
        # Before the model is read, which takes time.
        ending_of(args.out)
        inches_of(args.width)
        if args.model.lower().endswith(RECORDING):
            checkpoint = load_recorded(args.model)
            text = checkpoint.lines[0] if args.text is None else args.text
        elif (args.text or "").strip():
            checkpoint, text = opened(args.model, "cpu"), args.text
        else:
            raise ValueError("Give a text for the model to read.")
        if args.alignment:
            for name in OF_HEADS:
                if getattr(args, name) != parser.get_default(name):
                    raise ValueError(ALONE.format(name))
            words = checkpoint.align(text, args.target)
            figure = AlignmentFigure(words, checkpoint.card.get("title", args.model))
        else:
            trace = checkpoint.trace(text, args.target, changes=args.changes)
            place = place_of(trace, args.kind, args.layer, args.head)
            figure = Figure(
                trace, *place, whole=args.whole, numbers=args.numbers, colours=args.colours
            )
        caption = figure.save(args.out, args.width)
    except (ValueError, LookupError) as error:
        stop(str(error))
    except OSError as error:
        stop(f"{short(error.filename or args.model, MOST_OF_REASON)}: {reason(error)}.")
    except KeyboardInterrupt:
        stop(f"Stopped. {args.out} was not written.")
    else:
        print(caption)


def stop(message: str) -> None:
    print(short(message, LONGEST_MESSAGE), file=sys.stderr)
    sys.exit(2)
