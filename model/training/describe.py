"""Measures what the app shows about a trained model: `headlight describe NAME --data DIR`.

    headlight describe en-de --data DIR
    headlight describe models/en-pt --file sentences.txt

It measures statistics of the training text, so that the app can warn about a sentence that is
unlike it. It chooses the head that the app opens on, and the heads that align words. It measures
the mean output of each head, which the change `mean` puts in place of its output. And it keeps
outputs at some tokens, from which the change `resample` draws.

It uses the validation data of the model's task. Training runs this at its end. For a model that
was trained elsewhere, give a --file. Each line is a source, or source and target with a tab in
between; without a target, the model writes its own. Then there are no statistics of the training
text. The results go into the card; for a model that was added, into headlight.json in its folder.
The outputs go into means.safetensors.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch.nn import functional as F

from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import HeadAlignment
from headlight.model.analysis.domain import SPLIT, SURPRISE, Domain, split_share
from headlight.model.analysis.head_metrics import measured, most_telling, over_sentences
from headlight.model.arguments import may_change_shipped, parser_of
from headlight.model.checkpoint import Checkpoint, add_to_card, keep_shipped, load, write_means
from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.changes import DRAWN
from headlight.model.probing.patching import recorded
from headlight.model.probing.run import Run
from headlight.model.probing.trace import CannotRead, TooLong, read_of, trace
from headlight.model.surveys.sentences import Line, read
from headlight.model.training import tasks
from headlight.model.training.data import DataError, pad
from headlight.model.training.evaluate import in_batches
from headlight.model.training.tasks import Task

SHARE = 0.98  # of the validation data that is within the limit
MOST = 3000  # texts
MOST_TRACED = 100  # texts
DRAWN_TOKENS = 128
IGNORED = -100  # cross_entropy's own sign for a label that does not count


def describe(folder: str | Path, task: Task) -> dict:
    """Measures a checkpoint and writes what it finds; gives what the card says now of its `domain`
    (see analysis.domain), of the head that it `opens` on, and of its `alignment`, where it has
    cross-attention (see analysis.alignment)."""
    sources = list(dict.fromkeys(source for source, _ in task.examples()["val"]))
    texts = sources[:: math.ceil(len(sources) / MOST)]  # of a sorted list, not its beginning
    domain = Domain.measured(task.text, measures(load(folder), texts), SHARE)
    description = {"domain": domain.to_card()}
    return describe_heads(
        folder, [Line(i, text) for i, text in enumerate(texts[:MOST_TRACED], 1)], description
    )


def describe_heads(
    folder: str | Path, lines: Sequence[Line], found: Mapping = MappingProxyType({})
) -> dict:
    """As `describe`, of a checkpoint's heads alone; with what else was `found`. Raises DataError
    where the model can read none of the lines."""
    checkpoint = load(folder)
    if len(checkpoint.model.sides()) == 1 and any(line.target for line in lines):
        raise DataError("This model reads one text and no target.")
    runs = list(runs_of(checkpoint, lines))
    if not runs:
        raise DataError("None of these sentences fits the model.")
    found = {**found, "opens": opening_head(checkpoint, runs)}
    if aligning := alignment_of(checkpoint, runs):
        found["alignment"] = aligning.to_card()
    add_to_card(folder, found)
    write_means(folder, mean_outputs(checkpoint, runs))
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


def runs_of(checkpoint: Checkpoint, lines: Iterable[Line]) -> Iterator[Run]:
    """Of all lines that the model can read."""
    for line in lines:
        with suppress(TooLong):
            run = checkpoint.run(line.source, line.target)
            read_of(checkpoint.model, run)
            yield run


def opening_head(checkpoint: Checkpoint, runs: Sequence[Run]) -> dict:
    """Kind, layer and head, counted from 0, the layer as its site has it: the most telling head of
    the last kind."""
    traces = [trace(checkpoint.model, run) for run in runs]
    kind, sites = list(traces[0].kinds.items())[-1]
    layer, head = most_telling(over_sentences([measured(trace)[kind] for trace in traces]))
    return {"kind": kind, "layer": sites[layer].layer, "head": head}


def alignment_of(checkpoint: Checkpoint, runs: Sequence[Run]) -> HeadAlignment | None:
    """How well each head aligns words; None for a model without cross-attention."""
    model = checkpoint.model
    if alignment.aligning_kind(model.sites(), model.sides()) is None:
        return None
    return alignment.measured(
        [alignment.of_trace(trace(model, run)) for run in runs],
        [alignment.of_influence(model, run) for run in runs],
    )


def mean_outputs(checkpoint: Checkpoint, runs: Iterable[Run]) -> dict[str, torch.Tensor]:
    """As PatchInputs has them, over all tokens of all texts that are read, special ones too: the
    mean output of all heads, and their outputs at DRAWN_TOKENS, or all there are."""
    rows: dict[str, list[torch.Tensor]] = {site.name: [] for site in checkpoint.model.sites()}
    for run in runs:
        given = recorded(checkpoint.model, run)
        for name, outputs in rows.items():
            outputs.append(given[name, "heads"].double())
    found = {}
    for name, outputs in rows.items():
        all_rows = torch.cat(outputs)
        chosen = np.random.default_rng(0).permutation(len(all_rows))[:DRAWN_TOKENS]
        found[name] = all_rows.mean(dim=0).float()
        found[name + DRAWN] = all_rows[chosen].half()
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("describe", __doc__)
    parser.add_argument("checkpoint", help="name of a shipped model, or a folder")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data of its task (for pairs: FILE.tsv)"
    )
    parser.add_argument("--file", type=Path, help="sentences, for a model without a task")
    may_change_shipped(parser)
    args = parser.parse_args(arguments)
    if args.file and args.data:
        parser.error("give either a --file or the --data of the task")
    try:
        keep_shipped(args.checkpoint, args.change_shipped)
        card = load(args.checkpoint).card
        if args.file:
            description = describe_heads(args.checkpoint, read(args.file)[:MOST_TRACED])
        elif card.get("task") in tasks.NAMES:
            description = describe(args.checkpoint, tasks.of_card(card, args.data))
        else:
            raise DataError("This model's card names no task. Give a --file of sentences.")
    except (DataError, CannotRead, FileNotFoundError, FileExistsError) as error:
        sys.exit(str(error))
    if domain := Domain.of_card(description):
        ranges = ", ".join(
            f"{name} {mean:.3g} ± {sd:.2g}" for name, (mean, sd) in domain.ranges.items()
        )
        print(
            f"{domain.text}: {ranges}; {domain.share:.1%} of {domain.examples:,} texts within "
            f"{domain.limit:.2f} standard deviations"
        )
    opens = description["opens"]
    print(f"opened on {opens['kind']}, layer {opens['layer'] + 1}, head {opens['head'] + 1}")
    if aligning := HeadAlignment.of_card(description):
        heads = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in aligning.heads)
        print(f"best alignment by {heads}: {aligning.together:.1%} of {aligning.words:,} words")
