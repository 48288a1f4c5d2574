"""Prunes heads one after another and measures what is left: `headlight prune MODEL --out CURVE`.

    headlight prune en-de --data DIR --out curve.parquet
    headlight prune en-de --kind encoder --orders "loss,random" --out curve.csv
    headlight prune en-de --orders "trained gates" --retrain 200 --out curve.csv
    headlight prune en-de --kind encoder --out curve.csv --page curve.md

There are five orders:

    loss           first the head without which the exact loss is lowest, measured anew each time
    first order    the same, estimated from gradients
    trained gates  by gates trained with a rising penalty (L0)
    entropy        first the head that spreads its attention most
    random         at random

Validation data decide the orders; the curve comes from the task's test set.
With --retrain STEPS, the curve is measured again after a short training of the remaining heads.
--page PAGE.md draws the curve and adds tables: each layer with one head left, and the survey's
value of each head. With --keep N and --to FOLDER, the model with N heads left becomes a checkpoint
of its own. It uses the first of the orders and is retrained if you asked for that. Its card names
the heads that are off.
"""

import argparse
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

from headlight.model.arguments import parser_of
from headlight.model.checkpoint import Checkpoint, folder_of, save
from headlight.model.corpus.importance import Example, Unit, examples_of
from headlight.model.corpus.pruning import (
    ONE_LEFT,
    PRUNING_COLUMNS,
    Curve,
    Statistics,
    heads_of,
    orders,
)
from headlight.model.corpus.pruning_page import write_page
from headlight.model.corpus.sentences import Line
from headlight.model.corpus.survey import Survey
from headlight.model.corpus.survey_work import one_thread
from headlight.model.corpus.trace_command import opened, progress
from headlight.model.files import replacing
from headlight.model.memory import keep_freed_memory
from headlight.model.messages import reason
from headlight.model.probing.capture import view
from headlight.model.probing.sites import attention_at
from headlight.model.training import tasks
from headlight.model.training.data import DataError
from headlight.model.training.tasks import Task

FILES = (".parquet", ".csv")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("prune", __doc__)
    known = [name for name, _ in orders(1)]
    parser.add_argument("model", help="name of a shipped model, or a folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data of the task")
    parser.add_argument("--kind", default="", help="attention type, such as encoder (default: all)")
    parser.add_argument("--orders", default=",".join(known), help=f"any of {', '.join(known)}")
    parser.add_argument(
        "--repeats", type=int, default=3, help="repeats of the random order (default 3)"
    )
    parser.add_argument(
        "--every", type=int, default=4, help="heads removed between two measurements (default 4)"
    )
    parser.add_argument("--most", type=int, default=1000, help="test sentences (default 1000)")
    parser.add_argument(
        "--ranking",
        type=int,
        default=100,
        help="validation sentences that decide the orders (default 100)",
    )
    parser.add_argument(
        "--samples", type=int, default=1000, help="bootstrap samples (default 1000)"
    )
    parser.add_argument(
        "--retrain",
        type=int,
        default=0,
        metavar="STEPS",
        help="training steps with heads off (default none)",
    )
    parser.add_argument(
        "--retrain-at",
        default="",
        metavar="N,N",
        help="numbers of heads off to retrain at (default all measured); of the random orders, "
        "only the first is retrained",
    )
    parser.add_argument("--out", type=Path, metavar="CURVE", help="ends in .parquet or .csv")
    parser.add_argument(
        "--with",
        type=Path,
        metavar="CURVE",
        dest="earlier",
        help="an earlier curve to which this one is added",
    )
    parser.add_argument(
        "--page", type=Path, metavar="PAGE.md", help="PAGE.svg is written beside it"
    )
    parser.add_argument(
        "--keep", type=int, metavar="N", help="number of heads the checkpoint in --to keeps"
    )
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="a checkpoint with N heads left")
    args = parser.parse_args(arguments)
    args.orders = [name.strip() for name in args.orders.split(",")]
    if unknown := [name for name in args.orders if name not in known]:
        parser.error(f"there is no order {unknown[0]!r}; choose from {', '.join(known)}")
    if (args.out is None and args.to is None) or (args.keep is None) != (args.to is None):
        parser.error("give --out for the curve, --keep and --to for a checkpoint, or both")
    if args.page and (args.out is None or args.page.suffix.lower() != ".md"):
        parser.error("--page must end in .md and needs --out")
    if args.out and args.out.suffix.lower() not in FILES:
        parser.error(f"--out {args.out} must end in {' or '.join(FILES)}")
    if min(args.every, args.ranking, args.samples, args.repeats) < 1 or args.most < 2:
        parser.error("numbers must be at least 1, --most at least 2")
    try:
        args.retrain_at = [int(count) for count in args.retrain_at.split(",") if count]
    except ValueError:
        parser.error("--retrain-at takes numbers of heads separated by commas, as in 8,12")
    if args.retrain < 0:
        parser.error("--retrain must be at least 0")
    return args


def examples_in(checkpoint: Checkpoint, pairs: list, most: int) -> tuple[Example, ...]:
    lines = [Line(i, *pair) for i, pair in enumerate(pairs[:most], start=1)]
    return tuple(examples_of(checkpoint, lines))


def run(checkpoint: Checkpoint, task: Task, args: argparse.Namespace) -> None:
    """Raises DataError, CannotLoad and OSError."""
    heads, earlier = heads_of(checkpoint, args.kind), read(args.earlier) if args.earlier else []
    if not heads:
        kinds = ", ".join(dict.fromkeys(site.kind for site in checkpoint.model.sites()))
        raise DataError(f"This model has no attention type {args.kind!r}; it has {kinds}.")
    survey = Survey.load(folder_of(args.model)) if args.page else None
    if args.keep is not None and not 0 <= args.keep <= len(heads):
        raise DataError(f"--keep {args.keep}: the model has only {len(heads)} heads.")
    ranking = examples_in(checkpoint, task.examples()["val"], args.ranking)
    wanted = {at: of for at, of in orders(args.repeats).items() if at[0] in args.orders}
    ordered = {at: of(checkpoint, ranking, heads) for at, of in wanted.items()}
    again = further(checkpoint, task, args.retrain) if args.retrain else None
    if args.to is not None:
        off = ordered[args.orders[0], 1][: len(heads) - args.keep]
        write_pruned(again(off) if again else checkpoint, off, args.to)
    if args.out is None:
        return
    tests = examples_in(checkpoint, next(iter(task.tests().values())), args.most)
    plain = Statistics.of(checkpoint, tests, task.score, ())
    curve, rows = Curve(tests, task.score, args.samples, plain), []
    measured = sorted({*range(0, len(heads), args.every), len(heads)})
    trained = sorted({0, *(n for n in args.retrain_at or measured if n <= len(heads))})
    with progress(len(ordered), "order") as bar:
        for (name, repeat), order in ordered.items():
            at = {"order": name, "repeat": repeat, "retrained": 0}
            rows += [at | row for row in curve.points(checkpoint, order, measured)]
            if again and repeat == 1:
                at["retrained"] = args.retrain
                rows += [at | row for row in curve.points(checkpoint, order, trained, again)]
            if bar is not None:
                bar.update()
    if args.page:
        at = {"order": ONE_LEFT, "repeat": 1, "retrained": 0}
        rows += [at | row for row in curve.one_left(checkpoint, heads_of(checkpoint), ranking)]
    rows = added(earlier, rows)
    write(rows, args.out)
    if args.page:
        write_page(rows, task.score, survey, args.page)


def further(checkpoint: Checkpoint, task: Task, steps: int) -> Callable:
    """A function that trains the checkpoint some steps further with heads off. Raises DataError."""
    from headlight.model.corpus.retraining import retrained  # in the extra `train`

    pairs = task.encode(checkpoint.tokenizer, task.examples()["train"], checkpoint.model.config)
    # Every order ends with all heads off.
    once = lru_cache(8)(lambda off: retrained(checkpoint, sorted(off, key=str), pairs, steps))
    return lambda off: once(frozenset(off))


OF_WEIGHTS = ("scores", "curve", "val_loss", "domain", "opens", "alignment")  # in a card


def write_pruned(checkpoint: Checkpoint, off: list[Unit], folder: Path) -> None:
    """The checkpoint without some heads: their columns of the output projection are zero, and its
    card lists them as {kind, layer, head}, counted from 0."""
    model = view(checkpoint.model)
    sites = {(site.kind, site.layer): site for site in model.sites()}
    for unit in off:
        site = sites[unit.kind, unit.layer]
        projection = attention_at(model, site).output
        size = projection.in_features // site.n_heads
        weight = projection.weight.clone()  # the view shares it
        weight[:, unit.head * size : (unit.head + 1) * size] = 0
        projection.weight = torch.nn.Parameter(weight, requires_grad=False)
    names = [{"kind": u.kind, "layer": u.layer, "head": u.head} for u in off]
    card = {k: v for k, v in checkpoint.card.items() if k not in OF_WEIGHTS}
    pruned = [*checkpoint.card.get("pruned", ()), *names]
    save(folder, model, checkpoint.preset, checkpoint.tokenizer, card | {"pruned": pruned})


def read(path: Path) -> list[dict]:
    """Raises DataError."""
    from pyarrow import ArrowException, csv, parquet

    try:
        table = (csv.read_csv if path.suffix.lower() == ".csv" else parquet.read_table)(path)
        return table.select(PRUNING_COLUMNS).to_pylist()
    except (OSError, ArrowException, KeyError) as error:
        raise DataError(f"{path} is not a curve: {reason(error)}.") from None


def added(earlier: list[dict], rows: list[dict]) -> list[dict]:
    """The rows of two curves; newer rows replace older ones."""
    numbers = ("value", "low", "high", "p")

    def what(row: dict) -> tuple:
        return tuple(row[name] or "" for name in PRUNING_COLUMNS if name not in numbers)

    return [*({what(row): row for row in [*earlier, *rows]}).values()]


def write(rows: list[dict], out: Path) -> None:
    """Raises OSError."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.Table.from_pylist([{name: row[name] for name in PRUNING_COLUMNS} for row in rows])
    with replacing(out) as file:
        if out.suffix.lower() == ".csv":
            csv.write_csv(table, file)
        else:
            parquet.write_table(table, file)


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    keep_freed_memory()
    try:
        checkpoint = opened(args.model, "cpu")
        card = checkpoint.card
        task = tasks.of_card(card, args.data)
        with one_thread():
            run(checkpoint, task, args)
    except DataError as error:
        sys.exit(str(error))
    except ImportError as error:
        sys.exit(f"{error.name} is not installed. Run: pip install {error.name}")
    except OSError as error:
        sys.exit(f"{args.out or args.to} cannot be written: {reason(error)}.")
