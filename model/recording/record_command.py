"""Records what every head attends to, for pictures: `headlight record MODEL TEXT --out FILE`.

    headlight record en-de "A dog runs." --out dog.safetensors
    headlight record models/mine --file sentences.txt --half --out mine.safetensors

Each line of the file is a sentence, or source and target with a tab in between; without a target,
the model writes its own. The app shows FILE as a model that knows these texts alone: drop it on
Share, or put it into the folder of --models. In Python, `load` opens it.

FILE holds the weights and the texts, not the model. For a table of the weights, use
`headlight trace`.
"""

import argparse
import sys
from collections.abc import Sequence

from headlight.model.arguments import add_device
from headlight.model.checkpoint import Checkpoint
from headlight.model.messages import LONGEST_MESSAGE, MOST_OF_REASON, reason, short
from headlight.model.probing import changes
from headlight.model.probing.changes import CannotChange, Change
from headlight.model.recording.recording import (
    ENDING,
    LARGEST,
    MOST_TEXTS,
    Recording,
    of_trace,
    save,
)
from headlight.model.recording.weights import CannotRecord
from headlight.model.surveys.sentences import Line, encode, read
from headlight.model.surveys.trace_command import check_texts, opened, parser_of_texts, progress
from headlight.model.tokenizer import CannotRead
from headlight.model.training.data import DataError


def recordings(
    checkpoint: Checkpoint, lines: list[Line], changed: Sequence[Change], origin: str
) -> list[Recording]:
    """A recording of each line. Raises DataError and CannotChange."""
    found, size = [], 0
    notes = [f"Changed: {changes.written(changed)}"] if changed else []
    with progress(len(lines)) as bar:
        for line in lines:
            try:
                trace = checkpoint.trace(line.source, line.target, changes=changed)
                found.append(of_trace(trace, origin, notes))
            except (CannotRead, CannotRecord, ValueError) as error:
                if isinstance(error, CannotChange):
                    raise
                where = f"Line {line.number:,}: " if len(lines) > 1 else ""
                raise DataError(f"{where}{error}") from None
            size += found[-1].nbytes
            if size > LARGEST:
                raise DataError(
                    f"Line {line.number:,}: with it the weights take more than "
                    f"{LARGEST / 1e9:,.1f} GB, the most that a file holds."
                )
            if bar is not None:
                bar.update()
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of_texts("record", __doc__)
    parser.add_argument(
        "--changes", default="", metavar="LINE", help="changes to the model, such as cross.1.2=off"
    )
    parser.add_argument(
        "--half", action="store_true", help="weights in float16: half the size, within 0.0005"
    )
    add_device(parser)
    args = parser.parse_args(arguments)
    check_texts(parser, args, [ENDING])
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    try:
        if args.file is None and not args.text.strip():
            raise DataError("The text is empty.")
        lines = read(args.file) if args.file else [Line(1, args.text, args.target)]
        if not 0 < len(lines) <= MOST_TEXTS:
            raise DataError(f"A file holds 1 to {MOST_TEXTS:,} texts, not {len(lines):,}.")
        checkpoint = opened(args.model, args.device)
        changed = changes.parse(args.changes)
        changes.check(changed, checkpoint.parts())
        encode(checkpoint, lines)  # what cannot be read says so before anything is computed
        name = args.model.rstrip("/").rpartition("/")[2]
        save(args.out, recordings(checkpoint, lines, changed, name), args.half)
    except (DataError, CannotChange, CannotRecord) as error:
        sys.exit(short(error, LONGEST_MESSAGE))
    except OSError as error:
        sys.exit(f"{short(args.out, MOST_OF_REASON)} cannot be written: {reason(error)}.")
    except KeyboardInterrupt:
        sys.exit(f"Stopped. {short(args.out)} was not written.")
