"""Measures every head over many sentences, and what is lost without it: `headlight survey
MODEL`.

    headlight survey en-de --data DIR
    headlight survey en-de --file pairs.tsv --out survey.parquet
    headlight survey en-de copy reverse sort induction reviews

Without --file, the sentences are the validation data of the model's task. Each line of a file is a
source, or source and target with a tab in between; for a classifier, text and class. Without a
target the model's own is used, and BLEU or accuracy are not measured. The table (described in
model/surveys/survey.py) is written to survey.parquet in the model's folder, or to --out.

Intervals come from the bootstrap, p-values from paired approximate randomisation (Noreen 1989). It
swaps the results of single sentences with and without a head at random, 200 times for each head of
the model. So p can be small enough after Holm's correction for all heads.

A head is called needed where zero, its mean output and its output in other texts each cost more
in its place than a random vector. See model/analysis/baselines.py.
Outputs in other texts are those that `headlight describe` keeps, or else those of the first
sentences.

If you stop it, the same command continues where it stopped. Several processes share the work: put
`accelerate launch` in front, as in `accelerate launch --multi_gpu --num_processes 2 -m headlight
survey …`. The table is the same.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from headlight.model.arguments import add_device, may_change_shipped, parser_of
from headlight.model.checkpoint import Checkpoint, folder_of, keep_shipped, parameters_sha256
from headlight.model.extras import missing
from headlight.model.memory import keep_freed_memory
from headlight.model.messages import reason
from headlight.model.probing.changes import DRAWN
from headlight.model.surveys.importance import ACCURACY, BLEU, EXACT_MATCH, examples_of
from headlight.model.surveys.sentences import Line, read
from headlight.model.surveys.survey import FILE, Survey
from headlight.model.surveys.survey_table import card_of, table
from headlight.model.surveys.survey_work import Plan, one_thread, work
from headlight.model.surveys.trace_command import Processes, opened, progress, stop
from headlight.model.training import tasks
from headlight.model.training.data import DataError
from headlight.model.training.describe import MOST_TRACED, mean_outputs, runs_of


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("survey", __doc__)
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="names of shipped models, or a folder"
    )
    parser.add_argument("--file", type=Path, help="many sentences, one per line")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data of the task (default: where it was fetched)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"default: MODEL/{FILE}")
    parser.add_argument("--most", type=int, default=1000, help="sentences (default 1000)")
    parser.add_argument(
        "--aligned", type=int, default=200, help="sentences used for alignment (default 200)"
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=1000,
        help="bootstrap samples for the intervals (default 1000)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of the bootstrap and the test"
    )
    add_device(parser)
    may_change_shipped(parser)
    args = parser.parse_args(arguments)
    if args.file and args.data:
        parser.error("give either a --file or the --data of the task")
    if args.out and len(args.models) > 1:
        parser.error("--out works with one model only")
    if args.out and args.out.suffix.lower() != ".parquet":
        parser.error(f"--out {args.out} must end in .parquet")
    if min(args.most, args.samples) < 2 or args.aligned < 0:
        parser.error("--most and --samples must be at least 2, --aligned at least 0")
    return args


def lines_of(checkpoint: Checkpoint, args: argparse.Namespace) -> tuple[list[Line], str, str]:
    """The sentences, what their answers are scored by ("" for nothing), and what they are. Raises
    DataError."""
    card = checkpoint.card
    if args.file:
        lines = read(args.file)[: args.most]
        measure = ACCURACY if checkpoint.classes else BLEU
        if card.get("task") in tasks.TOYS:
            measure = EXACT_MATCH
        known = all(line.target is not None for line in lines)
        known &= bool(checkpoint.classes) or checkpoint.writes
        return lines, measure if known else "", args.file.name
    if card.get("task") not in tasks.NAMES:
        raise DataError("This model's card names no task. Give a --file of sentences.")
    task = tasks.of_card(card, args.data)
    pairs = task.examples()["val"][: args.most]
    if task.continues:  # such a model reads one text; what it loses is told, and no answer scored
        pairs = [(source,) for source, _ in pairs]
    lines = [Line(number, *pair) for number, pair in enumerate(pairs, start=1)]
    return lines, "" if task.continues else task.score, f"{task.name}, validation data"


def survey(name: str, args: argparse.Namespace, processes: Processes) -> None:
    """Of one model. Raises DataError and OSError."""
    checkpoint = opened(name, processes.device)
    out = args.out or folder_of(name) / FILE
    lines, measure, what = lines_of(checkpoint, args)
    with one_thread():
        examples = tuple(examples_of(checkpoint, lines))
        if not any(at.endswith(DRAWN) for at in checkpoint.means):
            has_target = len(checkpoint.model.sides()) > 1
            some = [one if has_target else replace(one, target=None) for one in lines[:MOST_TRACED]]
            means = mean_outputs(checkpoint, runs_of(checkpoint, some))
            checkpoint = replace(checkpoint, means=means)
    if len(examples) < 2:
        raise DataError(f"{what}: one sentence is not enough for a survey.")
    plan = Plan(checkpoint, examples, measure, args.aligned)
    parts = out.with_name(f".{out.name}.{plan.fingerprint[:16]}")
    bar = progress(len(plan.parts), "part") if processes.index == 0 else progress(0)
    with bar as shown:
        numbers = work(plan, parts, processes, shown if processes.index == 0 else None)
    if numbers is None:
        return
    rows = table(plan, numbers, args.samples, args.seed)
    about = {
        "model": Path(name).name,
        "parameters": parameters_sha256(checkpoint.model),
        "data": what,
        "samples": args.samples,
        "seed": args.seed,
        "signature": _signature(measure),
    }
    card = card_of(plan, rows, about)
    if not args.file and checkpoint.card["task"] not in tasks.TOYS:
        card["texts"] = {}  # sentences of a data set are not ours to give on
    Survey(tuple(rows), card).save(out)
    shutil.rmtree(parts, ignore_errors=True)
    print(f"{out}: {len(rows):,} numbers from {len(examples):,} sentences")


def _signature(measure: str) -> str:
    if measure != BLEU:
        return measure
    from sacrebleu.metrics.bleu import BLEU as Bleu

    bleu = Bleu()
    bleu.corpus_score(["one"], [["reference"]])  # before that it does not know how many there are
    return f"{bleu.get_signature()}, greedy"


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    for name in [] if args.out else args.models:
        keep_shipped(name, args.change_shipped, "--out FILE, or ")
    keep_freed_memory()
    try:
        processes = Processes.launched(args.device)
        for name in args.models:
            survey(name, args, processes)
        processes.part()
    except (DataError, FileNotFoundError) as error:
        stop(str(error))
    except ImportError as error:
        stop(missing(error.name))
    except OSError as error:
        stop(f"The survey cannot be written: {reason(error)}.")
    except KeyboardInterrupt:
        stop("Stopped. The same command continues from here.")
