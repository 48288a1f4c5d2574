"""What an app should know of a trained model: `python -m model describe NAME --data DIR`.

What the text of its training is like, by which a sentence unlike it is told, and the head that it
is opened on. Measured on the validation data and written into the card; training does this when it
ends.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from model.analysis.domain import SPLIT, SURPRISE, Domain, split_share
from model.analysis.head_metrics import measured, most_telling, over_sentences
from model.checkpoint import Checkpoint, load, write_card
from model.decoding.search import greedy_decode
from model.masks import Masks
from model.probing.trace import TooLong
from model.training import tasks
from model.training.data import DataError, pad
from model.training.evaluate import in_batches
from model.training.tasks import Task

SHARE = 0.995  # of the validation data that is within the limit
MOST = 2000  # texts
MOST_TRACED = 100  # texts
IGNORED = -100  # cross_entropy's own sign for a label that does not count


def described(checkpoint: Checkpoint, task: Task) -> dict:
    """For the card: `domain` (see analysis.domain), and `opens`, a head."""
    texts = [source for source, _ in task.examples()["val"][:MOST]]
    domain = Domain.measured(task.text, measures(checkpoint, texts), SHARE)
    return {"domain": domain.to_card(), "opens": opening_head(checkpoint, texts[:MOST_TRACED])}


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


def opening_head(checkpoint: Checkpoint, texts: list[str]) -> dict:
    """Kind, layer and head, counted from 0, the layer as its site has it: the most telling head of
    the last kind, over all texts that the model can read."""
    seen = []
    for text in texts:
        try:
            seen.append(checkpoint.trace(text))
        except TooLong:
            continue
    kind, sites = list(seen[0].kinds.items())[-1]
    layer, head = most_telling(over_sentences([measured(trace)[kind] for trace in seen]))
    return {"kind": kind, "layer": sites[layer].layer, "head": head}


def main(arguments: list[str] | None = None) -> None:
    about, _, more = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m model describe", description=about, epilog=more
    )
    parser.add_argument("checkpoint", help="a shipped one by name, or its folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="its data (for pairs: FILE.tsv)")
    args = parser.parse_args(arguments)
    try:
        checkpoint = load(args.checkpoint)
        card = checkpoint.card
        task = tasks.task(card.get("task"), args.data, card.get("direction") == ["de", "en"])
        found = described(checkpoint, task)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    write_card(args.checkpoint, card | found)
    domain, opens = Domain.of_card(found), found["opens"]
    ranges = ", ".join(
        f"{name} {mean:.3g} ± {sd:.2g}" for name, (mean, sd) in domain.ranges.items()
    )
    print(
        f"{domain.text}: {ranges}; {domain.share:.1%} of {domain.examples:,} texts within "
        f"{domain.limit:.2f} standard deviations\n"
        f"opened on {opens['kind']}, layer {opens['layer'] + 1}, head {opens['head'] + 1}"
    )
