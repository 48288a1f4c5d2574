"""What the text of a model's training is like: `python -m model domain NAME --data DIR`.

Measured on the validation data and written into the card; the app tells by it whether a sentence is
unlike what the model was trained on. Training does this when it ends.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from model.analysis.domain import SPLIT, SURPRISE, Domain, split_share
from model.checkpoint import Checkpoint, load, write_card
from model.decoding.search import greedy_decode
from model.masks import Masks
from model.training import tasks
from model.training.data import DataError, pad
from model.training.evaluate import in_batches
from model.training.tasks import Task

SHARE = 0.995  # of the validation data that is within the limit
MOST = 2000  # texts
IGNORED = -100  # cross_entropy's own sign for a label that does not count


@torch.no_grad()
def surprises(checkpoint: Checkpoint, texts: list[str]) -> list[float]:
    """As analysis.domain.surprise, of what the model writes for each text."""
    model = checkpoint.model
    bos, eos = model.config.bos_id, model.config.eos_id

    def answer(src):
        targets = greedy_decode(model, src)
        inputs = pad([[bos, *target] for target in targets], model.config.pad_id).to(src.device)
        labels = pad([[*target, eos] for target in targets], IGNORED).to(src.device)
        # A target's padding comes last: the causal mask already hides it from what counts.
        logits = model(src, inputs, *Masks(tgt_padding=False).build(model, src, inputs))
        loss = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return (loss.sum(dim=1) / (labels != IGNORED).sum(dim=1)).tolist()

    return in_batches(model, checkpoint.tokenizer, texts, answer)


def measures(checkpoint: Checkpoint, texts: list[str]) -> dict[str, list[float]]:
    """Measure → its value for each text."""
    values = {SPLIT: [split_share(checkpoint.tokenizer, text) for text in texts]}
    if checkpoint.writes:
        values[SURPRISE] = surprises(checkpoint, texts)
    return values


def of_task(checkpoint: Checkpoint, task: Task) -> Domain:
    texts = [source for source, _ in task.examples()["val"][:MOST]]
    return Domain.measured(task.text, measures(checkpoint, texts), SHARE)


def main(arguments: list[str] | None = None) -> None:
    about, _, more = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(prog="python -m model domain", description=about, epilog=more)
    parser.add_argument("checkpoint", help="a shipped one by name, or its folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="its data (for pairs: FILE.tsv)")
    args = parser.parse_args(arguments)
    try:
        checkpoint = load(args.checkpoint)
        card = checkpoint.card
        task = tasks.task(card.get("task"), args.data, card.get("direction") == ["de", "en"])
        domain = of_task(checkpoint, task)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    write_card(args.checkpoint, card | {"domain": domain.to_card()})
    ranges = ", ".join(
        f"{name} {mean:.3g} ± {sd:.2g}" for name, (mean, sd) in domain.ranges.items()
    )
    print(
        f"{domain.text}: {ranges}; {domain.share:.1%} of {domain.examples:,} texts within "
        f"{domain.limit:.2f} standard deviations"
    )
