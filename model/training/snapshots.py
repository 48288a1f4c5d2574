"""Keeps earlier training steps of a model: `headlight snapshots FOLDER --data DIR`.

Training keeps the weights of some steps in FOLDER/run. This command picks six, evenly spaced in
log(step), scores them, and writes them in a small format. That is float16; in a large model,
matrices have 8 bits and one scale for every 32 numbers. For a model that was trained further
(`--start`), it also picks from the snapshots in FOLDER/snapshots that the model started with.
"""

import json
import math
import sys
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor
from torch.nn import functional

from headlight.model.arguments import may_change_shipped, parser_of
from headlight.model.checkpoint import keep_shipped, load
from headlight.model.files import replace_file
from headlight.model.messages import reason
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.sites import ProbedModel
from headlight.model.training.data import DataError

MARKS = frozenset(round(2 ** (k / 2)) for k in range(60))  # steps that training keeps
COUNT = 6
LARGE = 1_000_000  # parameters; smaller ones are small enough in float16
GROUP = 32
SCALE = ".scale"


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of a matrix in groups, (group, 32) int8, and a float16 scale for each group."""
    groups = functional.pad(weight.flatten(), (0, -weight.numel() % GROUP)).view(-1, GROUP)
    smallest = torch.finfo(torch.float16).smallest_normal
    scale = (groups.abs().amax(dim=1, keepdim=True) / 127).clamp_min(smallest).half()
    return (groups / scale).round().clamp(-127, 127).to(torch.int8), scale


def dequantize(groups: Tensor, scale: Tensor, shape: torch.Size) -> Tensor:
    return (groups * scale.float()).flatten()[: shape.numel()].view(shape)


def write(folder: Path, step: int, weights: dict[str, Tensor], score: dict) -> None:
    """Put the weights of one step, and how well they do, into FOLDER/snapshots."""
    tensors, large = {}, sum(weight.numel() for weight in weights.values()) > LARGE
    for name, weight in weights.items():
        if large and weight.dim() == 2:
            tensors[name], tensors[name + SCALE] = quantize(weight)
        else:
            tensors[name] = weight.half()
    (folder / "snapshots").mkdir(parents=True, exist_ok=True)
    data = save(tensors, {"score": json.dumps(score)})
    replace_file(file_of(folder, step), data)


def file_of(folder: Path, step: int) -> Path:
    return folder / "snapshots" / f"step-{step:06d}.safetensors"


def steps(folder: Path) -> dict[int, dict]:
    """Step → score of every snapshot of a checkpoint, first step first."""
    scores = {}
    for file in sorted(folder.glob("snapshots/step-*.safetensors")):
        with safe_open(file, "pt") as opened:
            score = json.loads((opened.metadata() or {}).get("score", "{}"))
        scores[_step_of(file)] = score
    return scores


def _step_of(file: Path) -> int:
    return int(file.stem.removeprefix("step-"))


@torch.no_grad()
def put_into(model: ProbedModel, folder: Path, step: int) -> None:
    """Give the model the weights of a snapshot. Raises CannotLoad, and changes nothing, where they
    are not there or of another model."""
    file, values = file_of(folder, step), {}
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise CannotLoad(f"{file} cannot be read: {reason(error)}.") from None
    for name, parameter in model.named_parameters():
        scale = tensors.get(name + SCALE)
        groups = -(-parameter.numel() // GROUP)
        stored = parameter.shape if scale is None else (groups, GROUP)
        if name not in tensors or tensors[name].shape != stored:
            raise CannotLoad(
                f"{file} belongs to another model: {name} is missing or has another shape."
            )
        if scale is not None and scale.shape != (groups, 1):
            raise CannotLoad(
                f"{file} belongs to another model: the scales of {name} have the wrong shape."
            )
        value = tensors[name]
        values[parameter] = value if scale is None else dequantize(value, scale, parameter.shape)
    for parameter, value in values.items():
        parameter.copy_(value)


def choose(available: list[int], count: int = COUNT) -> list[int]:
    """The steps nearest to `count` points evenly spaced in log(step), the last one included.

    The first point is a thousandth of the last step: before that nothing has been learnt.
    """
    last = max(available)
    points = [last * 1000 ** (k / (count - 1) - 1) for k in range(count)]
    return sorted(
        {min(available, key=lambda step: abs(math.log(step / point))) for point in points}
    )


def make(folder: Path, task) -> None:
    """Write the snapshots of a training, with the scores of its task's first test set."""
    from headlight.model.training import evaluate  # the app, which only reads, does without

    files = {_step_of(file): file for file in folder.glob("run/step-*.safetensors")}
    before = {_step_of(file): file for file in folder.glob("snapshots/step-*.safetensors")}
    if not files and not before:
        raise DataError(
            f"{folder} has no weights of earlier steps. Only folders written by `train` have them."
        )
    chosen = choose([*files, *before])
    checkpoint = load(folder)
    name, examples = next(iter(task.tests().items()))
    for step in chosen:
        if step in files:
            write(folder, step, load_file(files[step]), {})
            put_into(checkpoint.model, folder, step)
            score = {"set": name} | evaluate.evaluate(checkpoint, task, examples)
            score.pop("signature", None)
            write(folder, step, load_file(files[step]), score)
            print(f"step {step:,}: {score}", flush=True)
    for step in before.keys() - set(chosen):
        before[step].unlink()


def main(arguments: list[str] | None = None) -> None:
    from headlight.model.training import tasks

    parser = parser_of("snapshots", __doc__)
    parser.add_argument("folder", type=Path, help="a folder written by `train`")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data of the task, for the scores")
    may_change_shipped(parser)
    args = parser.parse_args(arguments)
    try:
        keep_shipped(args.folder, args.change_shipped)
        make(args.folder, tasks.of_card(load(args.folder).card, args.data))
    except (DataError, FileNotFoundError, FileExistsError) as error:
        sys.exit(str(error))
