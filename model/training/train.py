"""Trains a model: `headlight train TASK --out FOLDER`.

For several processes or machines, a GPU or mixed precision, put `accelerate launch` in front, as in
`accelerate launch --num_processes 2 -m headlight train TASK --out FOLDER`.

FOLDER becomes a checkpoint: the weights of one epoch, or the mean of some consecutive epochs,
whichever has the lowest validation loss so far. FOLDER/run holds what `--resume` needs.
`--start CHECKPOINT` starts from the weights and tokenizer of an earlier model, to train it
further or on other text.
"""

import argparse
import copy
import dataclasses
import json
import random
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.dropout import _DropoutNd

from headlight.model import checkpoint, presets
from headlight.model.arguments import parser_of
from headlight.model.card import curve
from headlight.model.files import replace_file
from headlight.model.masks import Masks
from headlight.model.memory import keep_freed_memory
from headlight.model.messages import reason, short
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import Tokenizer
from headlight.model.training import tasks
from headlight.model.training.average import mean
from headlight.model.training.data import DataError, Pair, batches, pad, pad_ids
from headlight.model.training.describe import describe
from headlight.model.training.mixing import check_shares, mixed
from headlight.model.training.snapshots import MARKS
from headlight.model.training.tasks import Example, Recipe, Task
from headlight.model.transformer import MultiHeadAttention

COUNTS = ("epochs", "max_tokens", "warmup", "average", "patience", "save_every")
SHARES = ("smoothing", "dropout", "attention_dropout", "bpe_dropout", "joined", "casual")
IGNORED = -100  # cross_entropy's own sign for a label that does not count


class CannotSave(Exception):
    """A file of the training could not be written."""


def rate(step: int, recipe: Recipe, last: int) -> float:
    """Linear warm-up, then inverse square root (section 5.3), written with its peak; over
    the recipe's last steps it falls to nothing besides."""
    value = recipe.peak * min(step / recipe.warmup, (recipe.warmup / step) ** 0.5)
    return value * min(1, max(0, last - step + 1) / max(1, recipe.cooldown))


def loss_of(
    model, bare, batch: list[Pair], smoothing: float, device, r_drop: float = 0.0
) -> Tensor:
    """Summed cross-entropy of a batch over its real labels. `bare` is the model itself, where
    `model` is what spreads it over processes.

    With `r_drop`, the batch is read twice under different dropout, and how far the two
    answers are apart is added (Liang et al. 2021, divided by 2 so that it is of one reading).
    """
    readings = 2 if r_drop else 1
    src = pad_ids([src for src, _ in batch] * readings, bare.config, "src").to(device)
    inputs = pad_ids([tgt[:-1] for _, tgt in batch] * readings, bare.config).to(device)
    labels = pad([tgt[1:] for _, tgt in batch] * readings, IGNORED).to(device)
    # A target's padding comes last: the causal mask already hides it from what counts.
    ids = (src, inputs)[: len(bare.sides())]
    logits = model(*ids, *Masks(tgt_padding=False).build(bare, *ids))
    loss = F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
        reduction="sum",
    )
    if not r_drop:
        return loss
    first, second = logits[labels != IGNORED].log_softmax(dim=-1).chunk(2)
    apart = ((first.exp() - second.exp()) * (first - second)).sum()  # both ways of KL together
    return loss / 2 + r_drop / 4 * apart


def labels_in(batch: list[Pair]) -> int:
    return sum(len(tgt) - 1 for _, tgt in batch)


@torch.no_grad()
def validate(model, pairs: list[Pair], max_tokens: int, device) -> float:
    """Mean cross-entropy per label, in nats."""
    model.eval()
    losses = [loss_of(model, model, b, 0.0, device) for b in batches(pairs, max_tokens)]
    model.train()
    return sum(loss.item() for loss in losses) / labels_in(pairs)


@dataclass
class Progress:
    """Where a run stands: all that decides how it goes on, beside weights, optimizer and
    random states, which Accelerate keeps."""

    epoch: int = 1
    batch: int = 0  # batches of this epoch already seen
    step: int = 0
    loss: float = 0.0  # of this epoch so far, summed over labels
    labels: int = 0
    seconds: float = 0.0  # of training, pauses left out
    history: list[dict] = field(default_factory=list)  # one row an epoch
    chosen: dict = field(default_factory=dict)  # the checkpoint: epoch, weights, val_loss

    def state_dict(self) -> dict:
        return dataclasses.asdict(self)

    def load_state_dict(self, state: dict) -> None:
        for name, value in state.items():
            setattr(self, name, value)


class Training:
    """One training: its model, its data and its folder."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        folder: Path,
        seed: int = 1,
        precision: str | None = None,
        cpu: bool = False,
        start: Path | None = None,
        dropout: float | None = None,
        vocab: int | None = None,
        d_ff: int | None = None,
    ):
        self.task, self.recipe, self.folder, self.seed = task, recipe, Path(folder), seed
        from accelerate import Accelerator  # part of the extra `train`: --help does without
        from accelerate.utils import set_seed

        self.accelerator = Accelerator(mixed_precision=precision, cpu=cpu)
        examples = task.examples()
        check_shares(recipe.shares, task.sets_of("train"))
        set_seed(seed)
        if start is None:
            task = replace(task, vocab_size=vocab or task.vocab_size)
            self.tokenizer, self.preset = self.first_tokenizer(task, examples["train"]), task.preset
            sizes = {"vocab_size": len(self.tokenizer)} | task.sizes
            sizes |= {"d_ff": d_ff} if d_ff else {}
            model = presets.build(self.preset, **sizes)
            task.first_weights(model)
            before = {}
        else:
            initial = begin_with(start, task)
            self.tokenizer, self.preset = initial.tokenizer, initial.preset
            model = initial.model.train().requires_grad_(True)
            before = initial.card
        self.recipes, self.steps_before = before.get("recipes", []), before.get("step", 0)
        self.begins_with = before.get("weights")
        if recipe.bpe_dropout and self.tokenizer.kind != "BPE":
            kind = self.tokenizer.kind
            raise DataError(f"BPE-dropout leaves out merges, but this tokenizer has none ({kind}).")
        if dropout is not None:
            set_dropout(model, self.preset, dropout)
        for part in model.modules():
            if isinstance(part, MultiHeadAttention):
                part.dropout.p = recipe.attention_dropout
        self.config = model.config
        self.examples, self.sets = examples["train"], task.sets_of("train")
        self.pairs = {
            split: task.encode(self.tokenizer, examples[split], self.config) for split in examples
        }
        self.model, self.optimizer = self.accelerator.prepare(
            model,
            torch.optim.AdamW(
                model.parameters(),
                betas=(0.9, 0.98),
                eps=1e-9,
                weight_decay=recipe.weight_decay,
                fused=self.accelerator.device.type in ("cpu", "cuda"),
            ),
        )
        self.last = recipe.epochs * len(self.epoch(1))  # steps, without an early stop
        self.progress = Progress()
        self.accelerator.register_for_checkpointing(self.progress)
        # With several processes each draws its own dropout.
        set_seed(seed, device_specific=True)

    def first_tokenizer(self, task: Task, examples: list[Example]) -> Tokenizer:
        """Trained once, by one process; the others and a resumed run load it."""
        file = self.folder / "run" / "tokenizer.json"
        with self.accelerator.main_process_first(), saving(self.folder, OSError):
            if not file.exists():
                tokenizer = task.tokenizer(examples)
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(file, tokenizer.to_json())
            return Tokenizer.load(file)

    def epoch(self, number: int) -> list[list[Pair]]:
        """The batches of an epoch, the same every time."""
        seed = self.seed * 100_003 + number
        pairs, recipe = self.pairs["train"], self.recipe
        if recipe.shares or recipe.joined or recipe.casual:
            self.examples = mixed(self.sets, recipe, random.Random(seed))
            pairs = self.task.encode(self.tokenizer, self.examples, self.config)
        if recipe.bpe_dropout:
            pairs = self.split_at_random(number)
        return list(batches(pairs, recipe.max_tokens, torch.Generator().manual_seed(seed)))

    def split_at_random(self, number: int) -> list[Pair]:
        """The training text of an epoch under BPE-dropout. The library draws from no seed of ours,
        so one process does it, once; the others and a resumed run read what it wrote."""
        file = self.folder / "run" / f"text-{number:04d}.json"
        with self.accelerator.main_process_first(), saving(self.folder, OSError):
            if not file.exists():
                tokenizer = self.tokenizer.with_dropout(self.recipe.bpe_dropout)
                pairs = self.task.encode(tokenizer, self.examples, self.config)
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(file, json.dumps(pairs))
            return json.loads(file.read_text())

    def step(self, batch: list[Pair]) -> float:
        """One update on a batch that all processes share; its mean loss per label."""
        acc, progress, recipe = self.accelerator, self.progress, self.recipe
        progress.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = rate(progress.step, recipe, self.last)
        # A process without examples still takes part, with weight 0.
        share = batch[acc.process_index :: acc.num_processes]
        labels = labels_in(batch)
        with acc.autocast():
            loss = loss_of(
                self.model,
                acc.unwrap_model(self.model),
                share or batch[:1],
                recipe.smoothing,
                acc.device,
                recipe.r_drop,
            )
        loss = loss * bool(share)
        # Gradients are averaged over processes, the loss is a mean over all labels.
        acc.backward(loss * acc.num_processes / labels)
        self.optimizer.step()
        self.optimizer.zero_grad()
        reduced = acc.reduce(loss.detach(), "sum")
        assert isinstance(reduced, torch.Tensor)
        total = reduced.item()
        progress.loss, progress.labels = progress.loss + total, progress.labels + labels
        return total / labels

    def train(self, save_every: int = 1000) -> None:
        """Go on from where `progress` stands to the end, or until patience ends."""
        from tqdm import tqdm

        acc, progress, recipe = self.accelerator, self.progress, self.recipe
        bar = tqdm(
            total=self.last, initial=progress.step, unit="step",
            disable=None if acc.is_main_process else True,
        )  # fmt: skip
        self.model.train()
        start, tokens = time.perf_counter() - progress.seconds, 0
        began = time.perf_counter()
        while progress.epoch <= recipe.epochs and not self.is_over():
            for batch in self.epoch(progress.epoch)[progress.batch :]:
                loss = self.step(batch)
                progress.batch += 1
                step = self.steps_before + progress.step
                if step in MARKS and acc.is_main_process:
                    self.keep(f"step-{step:06d}")
                progress.seconds = time.perf_counter() - start
                tokens += labels_in(batch)
                bar.update()
                speed = tokens / (time.perf_counter() - began)
                bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} tokens/s", refresh=False)
                if progress.step % save_every == 0:
                    self.save()
            row = self.finish_epoch()
            if acc.is_main_process:
                text = "epoch {epoch}, step {step}: loss {loss:.4f}, validation {val_loss:.4f}"
                tqdm.write(text.format(**row), file=sys.stderr)
        bar.close()
        if acc.is_main_process:
            with saving(self.folder, OSError):
                describe(self.folder, self.task)

    def is_over(self) -> bool:
        """Whether no better checkpoint has come for `patience` epochs."""
        done, chosen = self.progress.epoch - 1, self.progress.chosen
        return bool(chosen) and done - chosen["epoch"] >= self.recipe.patience

    def finish_epoch(self) -> dict:
        """Validate, keep this epoch's weights, write the checkpoint, save the state."""
        from accelerate.utils import broadcast_object_list

        acc, progress, now = self.accelerator, self.progress, self.progress.epoch
        model = acc.unwrap_model(self.model)
        first = max(1, now - self.recipe.average + 1)
        candidates = {f"epoch {now}": model}
        if acc.is_main_process:
            self.keep(f"epoch-{now:04d}")
            candidates[f"mean of epochs {first}–{now}"] = self.mean_of(range(first, now + 1))
        # The others learn from the main process, which alone has the files, how it went.
        losses = [{name: self.validate(candidate) for name, candidate in candidates.items()}]
        broadcast_object_list(losses)
        val_loss, mean_val_loss = losses[0].values()
        row = {
            "epoch": now,
            "step": progress.step,
            "loss": progress.loss / progress.labels,
            "val_loss": val_loss,
            "mean_val_loss": mean_val_loss,
            "seconds": progress.seconds,
        }
        progress.history.append(row)
        progress.epoch, progress.batch = now + 1, 0
        progress.loss, progress.labels = 0.0, 0
        best = min(losses[0], key=losses[0].__getitem__)
        better = losses[0][best] < progress.chosen.get("val_loss", torch.inf)
        if better:
            progress.chosen = {"epoch": now, "weights": best, "val_loss": losses[0][best]}
        if not progress.chosen:
            raise DataError("The validation loss is not a number. --peak may be too high.")
        if acc.is_main_process:
            with saving(self.folder, OSError):
                self.write(candidates[best] if better else None)
        self.save()
        return row

    def mean_of(self, epochs) -> ProbedModel:
        """A model with the mean of the weights after these epochs."""
        files = [self.folder / "run" / f"epoch-{epoch:04d}.safetensors" for epoch in epochs]
        model = copy.deepcopy(self.accelerator.unwrap_model(self.model))
        state = mean([from_bytes(file.read_bytes()) for file in files])
        model.load_state_dict(state, strict=False)  # shared weights are there once
        return model

    def write(self, model: ProbedModel | None) -> None:
        """The log and the checkpoint; without a better model, only the card is new."""
        history = self.progress.history
        log = "".join(json.dumps(row) + "\n" for row in history)
        replace_file(self.folder / "log.jsonl", log)
        replace_file(self.folder / "curve.svg", curve(history))
        if model is None:
            checkpoint.write_card(self.folder, self.card())
        else:
            checkpoint.save(self.folder, model, self.preset, self.tokenizer, self.card())

    def keep(self, name: str) -> None:
        """The weights as they are now, in a file of the run."""
        model = self.accelerator.unwrap_model(self.model)
        weights = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
        with saving(self.folder, OSError):
            (self.folder / "run").mkdir(parents=True, exist_ok=True)
            replace_file(self.folder / "run" / f"{name}.safetensors", to_bytes(weights))

    def validate(self, model) -> float:
        pairs = self.pairs["val"]
        return validate(model, pairs, self.recipe.max_tokens, self.accelerator.device)

    def card(self) -> dict:
        task, progress = self.task, self.progress
        recipe = vars(self.recipe) | {
            "shares": dict(self.recipe.shares),
            "epochs": len(progress.history),
            "steps": progress.step,
            "minutes": round(progress.seconds / 60, 1),
            "seed": self.seed,
            "dropout": self.config.dropout,
            "precision": self.accelerator.mixed_precision,
        }
        for name, value in {"also": task.also, "begins with": self.begins_with}.items():
            if value:
                recipe[name] = value
        card = {
            "task": task.name,
            "title": task.title,
            "look_for": task.look_for,
            "data": task.data,
            "terms": task.terms,
            "recipes": [*self.recipes, recipe],
            "step": self.steps_before + progress.step,
            "weights": progress.chosen["weights"],
            "val_loss": progress.chosen["val_loss"],
            "curve": "curve.svg",
        }
        extra = {"classes": task.classes, "direction": task.direction}
        return card | {name: list(value) for name, value in extra.items() if value}

    def save(self) -> None:
        """Save the state next to the earlier one, replace that one, then delete files that only the
        earlier one needed."""
        acc, progress = self.accelerator, self.progress
        run = self.folder / "run"
        # PyTorch and safetensors have errors of their own for a full disk.
        with saving(self.folder, OSError, RuntimeError, SafetensorError):
            acc.save_state(str(run / "state.new"), safe_serialization=False)
            acc.wait_for_everyone()
            if acc.is_main_process:
                name = f"state-{progress.step:08d}-{progress.epoch:04d}"
                shutil.rmtree(run / name, ignore_errors=True)
                (run / "state.new").rename(run / name)
                for old in run.glob("state-*"):
                    if old.name != name:
                        shutil.rmtree(old, ignore_errors=True)
                if progress.history:
                    last = len(progress.history) - self.recipe.average + 1
                    for old in run.glob("epoch-*.safetensors"):
                        epoch = int(old.stem.removeprefix("epoch-"))
                        if epoch < last:
                            old.unlink()
                    for old in run.glob("text-*.json"):
                        # The first one tells how many steps there are.
                        if 1 < int(old.stem.removeprefix("text-")) < progress.epoch:
                            old.unlink()
        acc.wait_for_everyone()

    def resume(self) -> None:
        """Take up the last saved state, if there is one."""
        states = sorted((self.folder / "run").glob("state-*"))
        if states:
            self.accelerator.load_state(str(states[-1]))


def begin_with(name: Path, task: Task) -> checkpoint.Checkpoint:
    """The checkpoint that a training begins with; DataError where it cannot."""
    try:
        initial = checkpoint.load(name)
    except (FileNotFoundError, CannotLoad) as error:
        raise DataError(f"--start {name} cannot be read: {error}") from error
    if initial.classes != task.classes:
        raise DataError(f"{name} was trained for a different task from {task.title!r}.")
    return initial


def set_dropout(model: ProbedModel, preset: str, rate: float) -> None:
    """Another rate of dropout, wherever the preset has it."""
    model.config = dataclasses.replace(model.config, dropout=rate)
    with torch.device("meta"):
        example = presets.build(preset, **dataclasses.asdict(model.config))
    for name, part in example.named_modules():
        if isinstance(part, _DropoutNd):
            ours = model.get_submodule(name)
            assert isinstance(ours, _DropoutNd)
            ours.p = part.p


@contextmanager
def saving(folder: Path, *errors: type[Exception]):
    try:
        yield
    except errors as error:
        raise CannotSave(
            f"Could not write to {short(folder)}. Is the disk full? ({reason(error)}) "
            f"{how_to_go_on(folder)}"
        ) from error


def how_to_go_on(folder: Path) -> str:
    """What is left of a training that ended early."""
    if any((folder / "run").glob("state-*")):
        return f"--resume continues from the last saved state in {short(folder)}."
    return "Nothing had been saved yet."


def share(text: str) -> tuple[str, float]:
    """`captions=0.5` as its two parts."""
    name, sign, number = text.partition("=")
    value = float(number)
    if not sign or not 0 <= value <= 100:
        raise ValueError
    return name, value


class Shares(argparse.Action):
    """Collects `SET=N` into a dictionary."""

    def __call__(self, parser, namespace, values, option_string=None):
        assert values is not None and not isinstance(values, str)
        setattr(namespace, self.dest, dict(values))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = parser_of("train", __doc__)
    parser.add_argument("task", choices=tasks.NAMES)
    parser.add_argument(
        "file", nargs="?", type=Path, help="for pairs: source, tab and target on each line"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data files of the task")
    parser.add_argument(
        "--also", type=Path, metavar="FILE", help="more pairs: source, tab and target on each line"
    )
    parser.add_argument("--reverse", action="store_true", help="multi30k: German to English")
    parser.add_argument(
        "--resume", action="store_true", help="continue after a stop, with the same options"
    )
    parser.add_argument(
        "--start", type=Path, metavar="CHECKPOINT", help="start from its weights and tokenizer"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixed-precision", choices=["no", "fp16", "bf16"], metavar="TYPE")
    parser.add_argument(
        "--save-every",
        type=int,
        default=1000,
        metavar="STEPS",
        help="save the state after this many steps, and after every epoch",
    )
    parser.add_argument("--cpu", action="store_true", help="use the CPU even if there is a GPU")
    parser.add_argument(
        "--dropout",
        type=float,
        metavar="P",
        help="dropout everywhere except on attention weights "
        "(default: the task's, or that of --start)",
    )
    parser.add_argument("--vocab", type=int, metavar="N", help="vocabulary size, without --start")
    parser.add_argument("--d-ff", type=int, metavar="N", help="feed-forward width, without --start")
    for setting in dataclasses.fields(Recipe):
        name = "--" + setting.name.replace("_", "-")
        text = setting.metadata["help"]
        if setting.name == "shares":
            parser.add_argument(
                name, type=share, nargs="+", action=Shares, metavar="SET=N", help=text
            )
        else:
            parser.add_argument(name, type=setting.type, metavar="N", help=text)
    args = parser.parse_args(arguments)
    if (args.task == "pairs") != (args.file is not None):
        parser.error("only the task `pairs` takes a file, and it needs one")
    if args.start and (args.vocab or args.d_ff):
        parser.error("with --start, vocabulary and feed-forwards are as large as they are")
    for name, value in vars(args).items():
        least, most = int(name in COUNTS), 1 if name in SHARES else sys.float_info.max
        if isinstance(value, int | float) and not least <= value <= most:
            option = "--" + name.replace("_", "-")
            parser.error(f"{option} must be a number from {least}" + " to 1" * (name in SHARES))
    if args.out.exists() and not args.resume and any(args.out.iterdir()):
        parser.error(f"{args.out} is not empty. Name another folder, or use --resume")
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    keep_freed_memory()
    try:
        task = tasks.task(args.task, args.file or args.data, args.reverse)
        if args.also is not None:
            task = tasks.with_more(task, args.also)
        given = {f.name: getattr(args, f.name) for f in dataclasses.fields(Recipe)}
        changes = {name: value for name, value in given.items() if value is not None}
        recipe = dataclasses.replace(task.recipe, **changes)
        training = Training(
            task,
            recipe,
            args.out,
            seed=args.seed,
            precision=args.mixed_precision,
            cpu=args.cpu,
            start=args.start,
            dropout=args.dropout,
            vocab=args.vocab,
            d_ff=args.d_ff,
        )
        if args.resume:
            training.resume()
        training.train(args.save_every)
    except (DataError, CannotSave) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"\nStopped. {how_to_go_on(args.out)}")
