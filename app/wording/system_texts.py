"""Texts of the page Implementations: how systems differ, and what each later part changed."""

from collections.abc import Mapping, Sequence

from headlight.app.wording.formats import escaped, percent
from headlight.model.analysis.lineage import LINE, Swap, SwapEffect
from headlight.model.provenance import Source


def differences(measured: dict) -> str:
    """A Markdown table of differences between presets: which presets, and the effect `measured` on
    the sentence (model/analysis/family.py)."""
    m, n_tokens = measured, measured["tokens"]
    grows = {name: f"{m['lengths'][name][-1]:.1f}" for name in m["lengths"]}
    ratio = {
        name: f"{word:.1f} : {position:.1f}"
        for name, (word, position) in m["word_to_position"].items()
    }
    ignored, as_words = m["padded_mean"]
    rows = [
        (
            "Stacks",
            "encoder and decoder",
            "encoder only: bloem; decoder only: decoder_only",
            "attention sublayers in all layers: "
            + _each({n: str(m["attentions"][n]) for n in ("paper", "bloem", "decoder_only")}),
        ),
        (
            "Position of the norm",
            "after the sum",
            "before the sublayer, plus one after each stack: pre_norm, annotated",
            f"vector length at the input of layer 1: {m['lengths']['paper'][0]:.1f}; after the "
            f"last layer: **{grows['paper']}**; with the norms moved and the same weights: "
            f"**{grows['pre_norm']}**",
        ),
        (
            "Type of norm",
            "biased variance, eps 1e-5 inside the root",
            "unbiased, eps outside the root: annotated; eps 1e-12: hyunwoongko; unbiased: vanilla",
            "largest difference on the same vectors: "
            + _each({name: f"{far:.2g}" for name, far in m["norms"].items() if name != "paper"}),
        ),
        (
            "Scale of embeddings",
            "× √d_model",
            "unscaled: hyunwoongko (which never trains padding's vector), van_dijck, bloem",
            "length of word : length of position, "
            + _each({name: ratio[name] for name in ("paper", "annotated", "hyunwoongko", "bloem")}),
        ),
        (
            "Shared weights",
            "one matrix for both embeddings and the generator",
            "nothing: annotated, hyunwoongko, van_dijck",
            "cosine similarity of a token's source and target embeddings: "
            + _each(
                {
                    name: f"{m['sharing'][name]:.2f}"
                    for name in ("paper", "annotated", "hyunwoongko", "van_dijck")
                }
            ),
        ),
        (
            "Positions",
            "sinusoids from k = 0",
            "from k = 1: vanilla; learned: bloem",
            f"first number at position 1: {_each(_second(m['first_waves']))}",
        ),
        (
            "Masked scores",
            "−∞",
            "−1e9: annotated, van_dijck; −10000: hyunwoongko; −∞: vanilla, whose own code then "
            "gives NaN where nothing may be attended to (zeros here, as in paper)",
            f"a row that may attend to none of your {n_tokens} tokens gives each of them "
            + _each({name: f"{weight:.3f}" for name, weight in m["nothing_to_see"].items()}),
        ),
        (
            "Input of a head",
            "the whole vector, projected to d / h numbers",
            "a slice of it: van_dijck; the whole vector, projected to d numbers: bloem",
            "with all but the first slice of each vector erased, head 1's weights change by up to "
            + _each({name: f"{m['reach'][name]:.2g}" for name in ("paper", "van_dijck")}),
        ),
        (
            "Scaling",
            "scores ÷ √d_head",
            "queries and keys each ÷ ∜d_head: bloem",
            f"the same: largest difference of the weights **{m['fourth_roots']:.0e}** "
            f"({'within' if m['fourth_roots'] <= 1e-6 else 'NOT within'} 1e-6)",
        ),
        (
            "Biases",
            "in every projection and feed-forward layer",
            "none: vanilla; none on queries, keys and values: bloem",
            "number of biases: "
            + _each({name: f"{m['biases'][name]:,}" for name in ("paper", "vanilla", "bloem")}),
        ),
        (
            "Output",
            "logits; a softmax follows",
            "log-probabilities: annotated, bloem",
            "exponentiated, the outputs of a row add up to "
            + _each(
                {
                    name: f"{m['total_output'][name]:,.3f}"
                    for name in ("paper", "annotated", "bloem")
                }
            ),
        ),
        (
            "Dropout",
            "sublayers, sums of embeddings, attention weights",
            "only in the feed-forward: vanilla; none: van_dijck and bloem's notebook (our "
            "bloem can drop weights, sublayers and whole tokens); not on weights: hyunwoongko",
            "in training, a rate of 0.1 changes the encoder's output by "
            + _each(
                {
                    name: percent(m["dropout_noise"][name])
                    for name in ("paper", "hyunwoongko", "vanilla", "van_dijck")
                }
            ),
        ),
        (
            "Mean over positions",
            "none: it has a decoder",
            "bloem; its notebook counts padding too",
            f"8 tokens of padding move a class by {ignored:.4f} here, by **{as_words:.4f}** if "
            "they are counted",
        ),
        (
            "Initial weights",
            "Xavier uniform",
            "Kaiming uniform: hyunwoongko; PyTorch's own: vanilla, van_dijck, bloem",
            "how evenly heads attend before training (100%: equally to all tokens): "
            + _each({name: percent(share) for name, share in m["normalized_entropy"].items()}),
        ),
    ]
    return _table(("What", "Paper", "Others", "On your sentence"), rows)


def cell_compared(row: str, key: str, ours: float, theirs: float) -> str:
    """One weight in both systems; `row` in words."""
    difference = f", difference {ours - theirs:.0e}" if ours != theirs else ""
    return (
        f"{escaped(row)}: weight on “{escaped(key)}” **{ours:.6f}** here, **{theirs:.6f}** in "
        f"PyTorch{difference}."
    ).replace("-", "−")


def _second(waves: dict[str, list[float]]) -> dict[str, str]:
    return {name: f"{wave[1]:.2f}" for name, wave in waves.items() if len(wave) > 1}


def _each(values: dict[str, str]) -> str:
    return ", ".join(f"{escaped(name)} **{value}**" for name, value in values.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def disagreements(source: Source) -> str:
    """A Markdown table: what a source's text says, what its code does, and what our preset does."""
    rows = [(d.what, d.text, d.code, d.ours) for d in source.disagreements]
    return _table(("What", "Its text", "Its code", "Ours"), rows)


def repairs(source: Source) -> str:
    """A Markdown table of what was built as intended rather than as written, and the effect."""
    return _table(("Mistake", "Ours"), [(r.mistake, r.changes) for r in source.repairs])


def swap(step: Swap) -> str:
    """What is swapped, who introduced it, and its class here."""
    return f"**{step.year}: {step.becomes}**, replacing {step.was}  \n{step.source} · `{step.part}`"


def effect(step: Swap, measured: SwapEffect) -> str:
    """The effect of a swap: its finding, and the numbers that all swaps share."""
    counted = {"parameters": measured.parameters}
    if len({*measured.cached}) > 1:
        counted["bytes of keys and values per token"] = measured.cached
    rows = [(name, *(f"{number:,}" for number in pair)) for name, pair in counted.items()]
    first, *_, last = measured.moved
    return (
        f"{step.finding.format(**measured.curves.numbers)}\n\n"
        f"{_table(('', 'before', 'after'), rows)}\n\nDecoder attention weight that moved: "
        f"{percent(first, 1)} in layer 1, {percent(last, 1)} in layer {len(measured.moved)}."
    )


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "−") if number else "0"


def lineage(effects: Mapping[str, SwapEffect]) -> str:
    """A Markdown table of all swaps (model/analysis/lineage.py), one row each."""
    rows = [
        (
            str(LINE[name].year),
            LINE[name].was,
            f"**{LINE[name].becomes}**",
            _signed(measured.parameters[1] - measured.parameters[0]),
            percent(sum(measured.moved) / len(measured.moved), 1),
        )
        for name, measured in effects.items()
    ]
    return _table(("Year", "Before", "Since then", "Parameters", "Attention moved"), rows)
