"""Word alignments of many sentences, and files of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import WordWeights, pharaoh
from headlight.model.checkpoint import Checkpoint
from headlight.model.surveys.sentences import Line, Sentence, attend, windows
from headlight.model.surveys.tables import BYTE_ORDER_MARK, csv_text

COLUMNS = ("sentence", "source_word", "source", "target_word", "target", "weight")


@dataclass(frozen=True)
class Aligned:
    """A sentence and the weights between its words, (target word, source word)."""

    number: int
    words: WordWeights


def aligned(
    checkpoint: Checkpoint,
    sentences: Sequence[Sentence],
    choose: Callable[[WordWeights], WordWeights],
) -> Iterator[Aligned]:
    """Each sentence by what `choose` takes out of its cross-attention, see
    analysis.alignment.of_attention."""
    model = checkpoint.model
    kind = alignment.aligning_kind(model.sites(), model.sides())
    site = next(site for site in model.sites() if site.kind == kind)
    for window in windows(sentences):
        for attention in attend(checkpoint, window):
            texts = attention.texts[site.query_side], attention.texts[site.key_side]
            yield Aligned(
                attention.number,
                choose(alignment.of_attention(attention.attention[site.kind], *texts)),
            )


def influenced(checkpoint: Checkpoint, lines: Iterable[Line]) -> Iterator[Aligned]:
    """Each line by what its target words lose without its source words, see
    analysis.alignment.of_influence."""
    for line in lines:
        run = checkpoint.run(line.source, line.target)
        yield Aligned(line.number, alignment.of_influence(checkpoint.model, run))


def pharaoh_lines(some: Iterable[Aligned]) -> Iterator[str]:
    """As word aligners write them: source-target, counted from 0; line 7 is of sentence 7, and
    empty where there is none."""
    written = 0
    for result in some:
        yield "\n" * (result.number - written - 1) + pharaoh(result.words.links()) + "\n"
        written = result.number


def csv_lines(some: Iterable[Aligned]) -> Iterator[str]:
    """One line for each aligned pair of words; words count from 1 and are escaped so that no
    spreadsheet takes them for formulas."""
    yield f"{BYTE_ORDER_MARK}{','.join(COLUMNS)}\n"
    for result in some:
        source, target = (
            [csv_text(w) for w in ws] for ws in (result.words.source, result.words.target)
        )
        for i, j in sorted(result.words.links(), key=lambda link: link[::-1]):
            weight = result.words.weights[j, i]
            yield f"{result.number},{i + 1},{source[i]},{j + 1},{target[j]},{weight:.6f}\n"


ALIGNMENT_FILES = {".txt": pharaoh_lines, ".csv": csv_lines}
