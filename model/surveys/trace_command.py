"""Writes what every head attends to, in numbers: `headlight trace MODEL TEXT --out FILE`.

    headlight trace en-de "A dog runs." --out weights.csv
    headlight trace en-de --file sentences.txt --out weights.parquet

Each line of the file is a sentence, or source and target with a tab in between; without a target,
the model writes its own. FILE ends in .csv or .parquet (one row per weight) or in .npz (the arrays
"7/cross" … of line 7). In a CSV, an apostrophe before a token like "=" keeps a spreadsheet from
reading it as a formula. Sentences, layers, heads and positions start at 1.

Several processes, GPUs or machines can share a file of sentences. Put `accelerate launch` in front,
as in `accelerate launch --multi_gpu --num_processes 2 -m headlight trace …`. The number
counts processes, even on a machine without a GPU.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from headlight.model.analysis.finite import parameters_not_finite
from headlight.model.arguments import add_device, parser_of
from headlight.model.checkpoint import Checkpoint, load
from headlight.model.extras import missing
from headlight.model.files import replacing
from headlight.model.memory import keep_freed_memory
from headlight.model.messages import LONGEST_MESSAGE, MOST_OF_REASON, reason, short
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing import changes
from headlight.model.probing.changes import CannotChange, Change
from headlight.model.probing.sites import parts_of
from headlight.model.surveys.sentences import (
    Line,
    Sentence,
    SentenceAttention,
    attend,
    encode,
    read,
    windows,
)
from headlight.model.surveys.tables import TABLE_FILES, table
from headlight.model.training.data import DataError

Share = TypeVar("Share")


@dataclass(frozen=True)
class Processes:
    """This process's rank, the number of processes, and its device."""

    index: int
    count: int
    device: str | torch.device

    @classmethod
    def launched(cls, device: str) -> "Processes":
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(0, 1, device)
        from accelerate import PartialState  # there where one launched with it

        state = PartialState(cpu=device == "cpu")
        return cls(state.process_index, state.num_processes, state.device or device)

    def gather(self, share: Share) -> list[Share] | None:
        """What every process has, in their order, for the first one; None for the others."""
        if self.count == 1:
            return [share]
        everyone: list[Any] | None = [None] * self.count if self.index == 0 else None
        torch.distributed.gather_object(share, everyone)
        return everyone

    def part(self) -> None:
        """A barrier: a process that leaves early would break the others' connection."""
        if self.count > 1:
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()


def attend_to_all(
    checkpoint: Checkpoint,
    sentences: list[Sentence],
    processes: Processes,
    changed: Sequence[Change],
) -> Iterator[list[SentenceAttention]]:
    """The attention weights of all sentences, window by window, in their order, for the first
    process. The windows are dealt out, so that they do not depend on how many processes
    there are."""
    dealt = list(windows(sentences))
    for start in range(0, len(dealt), processes.count):
        share = dealt[start + processes.index : start + processes.index + 1]
        for results in (
            processes.gather([attend(checkpoint, window, changed) for window in share]) or ()
        ):
            yield from results


def progress(total: int, unit: str = "sentence"):
    """A bar on a terminal, where there is tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext()
    return tqdm(total=total, unit=unit, disable=None)


def run(
    checkpoint: Checkpoint,
    sentences: list[Sentence],
    out: Path,
    processes: Processes,
    changed: Sequence[Change] = (),
) -> None:
    """Trace the sentences and write `out`, at no time more than a few windows in memory."""
    results = attend_to_all(checkpoint, sentences, processes, changed)
    if processes.index > 0:
        list(results)
        return
    # A file is written by another thread while the model reads on.
    with (
        replacing(out) as file,
        table(file, out.suffix.lower()) as rows,
        ThreadPoolExecutor(1) as pool,
        progress(len(sentences)) as bar,
    ):
        writing = None
        for window in results:
            if writing:
                writing.result()
            writing = pool.submit(rows.add, window, [sentence.number for sentence in window])
            if bar is not None:
                bar.update(len(window))
        if writing:
            writing.result()


def parser_of_texts(
    command: str, doc: str | None, needs_out: bool = True
) -> argparse.ArgumentParser:
    """Of a command that writes a file about a sentence, or about a file of them."""
    parser = parser_of(command, doc)
    parser.add_argument("model", help="name of a shipped model, or a folder")
    parser.add_argument("text", nargs="?", help="a sentence")
    parser.add_argument(
        "--target", metavar="TEXT", help="its target (default: the model writes one)"
    )
    parser.add_argument("--file", type=Path, help="many sentences, one per line")
    parser.add_argument("--out", type=Path, required=needs_out, metavar="FILE")
    return parser


def check_texts(
    parser: argparse.ArgumentParser, args: argparse.Namespace, endings: Iterable[str]
) -> None:
    """Whether the arguments name one thing to read and a file to write with one of the
    `endings`."""
    if args.out is None:
        parser.error("the following arguments are required: --out")
    if (args.text is None) == (args.file is None):
        parser.error("give either a text or a --file of sentences")
    if args.target is not None and args.text is None:
        parser.error("--target needs a text; in a file, write the target after a tab")
    if args.out.suffix.lower() not in endings:
        parser.error(f"--out {args.out} must end in {', '.join(endings)}")
    if args.out.is_dir():
        parser.error(f"--out {args.out} is a folder")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of_texts("trace", __doc__)
    parser.add_argument(
        "--changes",
        default="",
        metavar="LINE",
        help="changes to the model, such as cross.1.2=off (see model/probing/changes.py)",
    )
    add_device(parser)
    args = parser.parse_args(arguments)
    check_texts(parser, args, TABLE_FILES)
    return args


def opened(name: str, device: str | torch.device) -> Checkpoint:
    """A checkpoint on a device; DataError where there is no such thing, or with weights that are no
    numbers: there would be none in a file either."""
    try:
        checkpoint = load(name, device=device)
    except (FileNotFoundError, CannotLoad) as error:
        raise DataError(str(error)) from None
    if spoilt := parameters_not_finite(checkpoint.model):
        raise DataError(f"The weights {spoilt[0]} of {name} are NaN or infinite.")
    return checkpoint


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    keep_freed_memory()
    try:
        if args.file:
            lines = read(args.file)
        elif args.text.strip():
            lines = [Line(1, args.text, args.target)]
        else:
            raise DataError("The text is empty.")
        processes = Processes.launched(args.device)
        checkpoint = opened(args.model, processes.device)
        changed = changes.parse(args.changes)
        changes.check(changed, parts_of(checkpoint.model.sites(), checkpoint.model.sides()))
        run(checkpoint, encode(checkpoint, lines), args.out, processes, changed)
        processes.part()
    except (DataError, CannotChange) as error:
        stop(str(error))
    except ImportError as error:
        stop(missing(error.name))
    except OSError as error:
        stop(f"{short(args.out, MOST_OF_REASON)} cannot be written: {reason(error)}.")
    except KeyboardInterrupt:
        stop(f"Stopped. {args.out} was not written.")


def stop(message: str) -> None:
    """Exit with a message, printed by one process only."""
    if os.environ.get("RANK", "0") == "0":
        print(short(message, LONGEST_MESSAGE), file=sys.stderr)
    sys.exit(1)  # as for everything that was understood and could not be done
