"""The head that a model is opened on: `python -m model opening NAME --data DIR`.

Measured on validation data and written into the card. Training does this when it ends.
"""

import argparse
import sys
from pathlib import Path

from model.analysis.head_metrics import measured, most_telling, over_sentences
from model.checkpoint import Checkpoint, load, write_card
from model.probing.trace import TooLong
from model.training import tasks
from model.training.data import DataError
from model.training.tasks import Task

MOST = 100  # texts


def of_task(checkpoint: Checkpoint, task: Task) -> dict:
    """Kind, layer and head, counted from 0, the layer as its site has it."""
    seen = []
    for source, _ in task.examples()["val"][:MOST]:
        try:
            seen.append(checkpoint.trace(source))
        except TooLong:
            continue
    kind, sites = list(seen[0].kinds.items())[-1]
    layer, head = most_telling(over_sentences([measured(trace)[kind] for trace in seen]))
    return {"kind": kind, "layer": sites[layer].layer, "head": head}


def main(arguments: list[str] | None = None) -> None:
    about, _, more = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(prog="python -m model opening", description=about, epilog=more)
    parser.add_argument("checkpoint", help="a shipped one by name, or its folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="its data (for pairs: FILE.tsv)")
    args = parser.parse_args(arguments)
    try:
        checkpoint = load(args.checkpoint)
        card = checkpoint.card
        task = tasks.task(card.get("task"), args.data, card.get("direction") == ["de", "en"])
        opens = of_task(checkpoint, task)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    write_card(args.checkpoint, card | {"opens": opens})
    print(f"{opens['kind']}, layer {opens['layer'] + 1}, head {opens['head'] + 1}")
