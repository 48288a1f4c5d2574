"""What an app should know of a trained model: `python -m model describe NAME --data DIR`.

What the text of its training is like, by which a sentence unlike it is told, the head that it is
opened on, which heads align words, and the mean output of each head, which is put in the place of
one that is ablated.
Measured on the validation data and written into the card, the averages into means.safetensors;
training does this when it ends.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from torch.nn import functional as F

from model.analysis import alignment
from model.analysis.alignment import HeadAlignment
from model.analysis.domain import SPLIT, SURPRISE, Domain, split_share
from model.analysis.head_metrics import measured, most_telling, over_sentences
from model.arguments import parser_of
from model.checkpoint import Checkpoint, load, write_card, write_means
from model.decoding.search import greedy_decode
from model.masks import Masks
from model.probing.patching import recorded
from model.probing.run import Run
from model.probing.trace import TooLong, trace
from model.training import tasks
from model.training.data import DataError, pad
from model.training.evaluate import in_batches
from model.training.tasks import Task

SHARE = 0.996  # of the validation data that is within the limit
MOST = 2000  # texts
MOST_TRACED = 100  # texts
IGNORED = -100  # cross_entropy's own sign for a label that does not count


def describe(folder: str | Path, task: Task) -> dict:
    """Measures a checkpoint and writes what it finds; gives what the card says now of its `domain`
    (see analysis.domain), of the head that it `opens` on, and of its `alignment`, where it has
    cross-attention (see analysis.alignment)."""
    checkpoint = load(folder)
    texts = [source for source, _ in task.examples()["val"][:MOST]]
    domain = Domain.measured(task.text, measures(checkpoint, texts), SHARE)
    found = {"domain": domain.to_card(), "opens": opening_head(checkpoint, texts[:MOST_TRACED])}
    if aligning := alignment_of(checkpoint, texts[:MOST_TRACED]):
        found["alignment"] = aligning.to_card()
    write_card(folder, checkpoint.card | found)
    write_means(folder, mean_outputs(checkpoint, texts[:MOST_TRACED]))
    return found


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
    seen = [trace(checkpoint.model, run) for run in _runs(checkpoint, texts)]
    kind, sites = list(seen[0].kinds.items())[-1]
    layer, head = most_telling(over_sentences([measured(trace)[kind] for trace in seen]))
    return {"kind": kind, "layer": sites[layer].layer, "head": head}


def alignment_of(checkpoint: Checkpoint, texts: list[str]) -> HeadAlignment | None:
    """How well each head aligns what the model writes; None for a model without cross-attention."""
    model = checkpoint.model
    if alignment.aligning_kind(model.sites(), model.sides()) is None:
        return None
    runs = list(_runs(checkpoint, texts))
    return alignment.measured(
        [alignment.of_trace(trace(model, run)) for run in runs],
        [alignment.of_influence(model, run) for run in runs],
    )


def mean_outputs(checkpoint: Checkpoint, texts: list[str]) -> dict[str, torch.Tensor]:
    """Name of an attention → the mean output of its heads, (heads, d_head), over all tokens of all
    texts, special ones too, and of what the model writes for them."""
    rows: dict[str, list[torch.Tensor]] = {site.name: [] for site in checkpoint.model.sites()}
    for run in _runs(checkpoint, texts):
        given = recorded(checkpoint.model, run)
        for name, outputs in rows.items():
            outputs.append(given[name, "heads"].double())
    return {name: torch.cat(outputs).mean(dim=0).float() for name, outputs in rows.items()}


def _runs(checkpoint: Checkpoint, texts: list[str]) -> Iterator[Run]:
    """Of all texts that the model can read."""
    for text in texts:
        with suppress(TooLong):
            yield checkpoint.run(text)


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("describe", __doc__)
    parser.add_argument("checkpoint", help="a shipped one by name, or its folder")
    parser.add_argument("--data", type=Path, metavar="DIR", help="its data (for pairs: FILE.tsv)")
    args = parser.parse_args(arguments)
    try:
        card = load(args.checkpoint).card
        task = tasks.of_card(card, args.data)
        found = describe(args.checkpoint, task)
    except (DataError, FileNotFoundError) as error:
        sys.exit(str(error))
    domain, opens = Domain.of_card(found), found["opens"]
    ranges = ", ".join(
        f"{name} {mean:.3g} ± {sd:.2g}" for name, (mean, sd) in domain.ranges.items()
    )
    print(
        f"{domain.text}: {ranges}; {domain.share:.1%} of {domain.examples:,} texts within "
        f"{domain.limit:.2f} standard deviations\n"
        f"opened on {opens['kind']}, layer {opens['layer'] + 1}, head {opens['head'] + 1}"
    )
    if aligning := HeadAlignment.of_card(found):
        heads = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in aligning.heads)
        print(f"aligned best by {heads}: {aligning.together:.1%} of {aligning.words:,} words")
