"""Averages a model with one trained further from it:
`headlight average EARLIER LATER --shares 1 3 --out FOLDER`.

Between a model and one trained further from it lie models that are often better than both (Wortsman
et al. 2022, Robust fine-tuning of zero-shot models). Measure the result with
`headlight describe FOLDER` and `evaluate`, which write it into the card.
"""

import argparse
import copy
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from headlight.model import checkpoint
from headlight.model.arguments import parser_of
from headlight.model.checkpoint import Checkpoint
from headlight.model.training.data import DataError

MEASURED = ("val_loss", "scores", "domain", "opens", "alignment")  # of other weights


def share_of(checkpoint: Checkpoint, share: float, last: bool) -> str:
    """As a card says it, of the last run or by its step."""
    card = checkpoint.card
    if not last:
        return f"{share:.0%} after step {card['step']:,}"
    weights = card["weights"]
    return f"{share:.0%} {f'({weights})' if ', ' in weights else weights}"  # a mean itself


def mean(
    states: Sequence[Mapping[str, Tensor]], shares: list[float] | None = None
) -> dict[str, Tensor]:
    """The mean of several state dicts, each with its share if they have some."""
    weights = torch.tensor(shares or [1.0] * len(states), dtype=torch.float64)
    weights /= weights.sum()
    return {
        name: torch.tensordot(weights, torch.stack([s[name] for s in states]).double(), dims=1).to(
            value.dtype
        )
        for name, value in states[0].items()
    }


@torch.no_grad()
def average(checkpoints: list[Checkpoint], shares: list[float]) -> Checkpoint:
    """A checkpoint with the mean weights, and what the last one's card says of its training. Raises
    DataError where they are not of one preset, of the same shapes and with one vocabulary."""
    *_, last = checkpoints
    parameters = [dict(each.model.named_parameters()) for each in checkpoints]
    shapes = [{name: p.shape for name, p in some.items()} for some in parameters]
    for each, shapes_of_one in zip(checkpoints, shapes, strict=True):
        if each.preset != last.preset or shapes_of_one != shapes[-1]:
            raise DataError("Models with different weight shapes or presets cannot be averaged.")
        if each.tokenizer.to_json() != last.tokenizer.to_json():
            raise DataError("Models with different tokenizers cannot be averaged.")
        if not {"step", "weights"} <= each.card.keys():
            raise DataError(
                "Only models written by `train` can be averaged; the card of one has no step."
            )
    model = copy.deepcopy(last.model)
    model.load_state_dict(mean(parameters, shares), strict=False)  # shared weights are there once
    parts = zip(checkpoints, shares, strict=True)
    text = ", ".join(share_of(each, share / sum(shares), each is last) for each, share in parts)
    card = {name: value for name, value in last.card.items() if name not in MEASURED}
    return Checkpoint(model, last.tokenizer, card | {"weights": text}, last.preset)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = parser_of("average", __doc__)
    parser.add_argument(
        "checkpoints",
        nargs="+",
        metavar="CHECKPOINT",
        help="names of shipped models, or folders; the last trained one last",
    )
    parser.add_argument("--shares", type=float, nargs="+", metavar="N",
                        help="share of each in the mean (default: equal shares)")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    args = parser.parse_args(arguments)
    args.shares = args.shares or [1.0] * len(args.checkpoints)
    if len(args.shares) != len(args.checkpoints):
        parser.error(f"{len(args.checkpoints)} checkpoints need as many --shares")
    if not all(0 <= share < float("inf") for share in args.shares) or not sum(args.shares):
        parser.error("--shares must be numbers from 0, and not all 0")
    if args.out.exists() and any(args.out.iterdir()):
        parser.error(f"{args.out} is not empty. Name another folder")
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    try:
        averaged = average([checkpoint.load(name) for name in args.checkpoints], args.shares)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    checkpoint.save(args.out, averaged.model, averaged.preset, averaged.tokenizer, averaged.card)
    if "curve" in averaged.card:
        shutil.copy(checkpoint.folder_of(args.checkpoints[-1]) / averaged.card["curve"], args.out)
    print(f"{averaged.card['weights']}: {args.out}")
