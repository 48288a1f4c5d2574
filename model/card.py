"""The model card: README.md of a checkpoint folder, written from its config.json.

A card is a dict: `task`, `title`, `look_for`, `data`, `terms`, for a classifier `classes`; from
training `weights`, `step`, `curve`, `recipes`, one dict per run that led to the weights, and
`domain`, what the text of the training is like (see analysis/domain.py), `opens`, the head that it
is opened on, {kind, layer, head} counted from 0, `alignment`, which heads align words (see
analysis/alignment.py); from evaluation `scores`, one dict per test set and way of decoding. Every
entry may be missing.
`weights` is "random" for a model that was never trained.
"""

import io

from torch import nn

from headlight.model.transformer import Transformer

MEASURES = {"bleu_lc": "BLEU, lowercased", "bleu": "BLEU", "chrf": "chrF",
            "accuracy": "% accuracy", "exact": "% exact", "perplexity": "perplexity"}  # fmt: skip


def with_scores(card: dict, scores: list[dict]) -> dict:
    """The card with these scores; earlier ones of the same test set and decoding are replaced."""

    def which(score):
        return score["set"], score["decode"]

    new = {which(score): score for score in scores}
    unchanged = [score for score in card.get("scores", []) if which(score) not in new]
    return card | {"scores": [*unchanged, *scores]}


def headline(card: dict) -> str:
    """The card's best figure in a few words, as in `41.0 BLEU, lowercased (beam 5)`."""
    scores = card.get("scores")
    if card.get("weights") == "random":
        return "random weights, not trained"
    if not scores:
        return "not evaluated"
    first = [score for score in scores if score["set"] == scores[0]["set"]]
    measure = next(name for name in MEASURES if name in first[0])
    best = (min if measure == "perplexity" else max)(first, key=lambda score: score[measure])
    return f"{best[measure]:.1f} {MEASURES[measure]} ({best['decode']})"


def parameter_count(model: nn.Module) -> int:
    """The number of trainable parameters; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def markdown(card: dict, model: Transformer, preset: str) -> str:
    """The text of README.md."""
    parameters = parameter_count(model)
    parts = [f"# {card.get('title', 'A model')}", card.get("look_for", "")]
    parts += [f"- Data: {card['data']}" if "data" in card else ""]
    parts[-1] += f"\n- Terms of the data: {card['terms']}" if "terms" in card else ""
    sizes = vars(model.config)
    parts += [
        "## Sizes",
        f"{parameters:,} parameters, preset `{preset}`; weights in float16.",
        table([{"size": name, "value": value} for name, value in sizes.items()]),
    ]
    if scores := card.get("scores"):
        rows = [
            {"set": s["set"], "decoding": s["decode"]}
            | {MEASURES[m]: _figure(s, m) for m in MEASURES if m in s}
            for s in scores
        ]
        signatures = sorted({text for s in scores for text in s.get("signature", {}).values()})
        parts += ["## Scores", table(rows)]
        if any("interval" in score for score in scores):
            parts += ["± is half the width of the 95 % interval, from 1,000 resampled test sets."]
        parts += ["\n".join(f"- `{text}`" for text in signatures)]
    if domain := card.get("domain"):
        rows = [
            {"measure": name, "mean": f"{mean:.3f}", "standard deviation": f"{deviation:.3f}"}
            for name, (mean, deviation) in domain["ranges"].items()
        ]
        parts += [
            "## The text it was trained on",
            f"{domain['text'].capitalize()}. A sentence is called unlike them where it lies more "
            f"than {domain['limit']:.2f} standard deviations above the means, all measures taken "
            f"together, as at most {1 - domain['share']:.1%} of {domain['examples']:,} validation "
            "texts do. Split: the share of words that are several tokens. Surprise: mean −log p of "
            "the tokens that the model writes, in nats.",
            table(rows),
        ]
    if alignment := card.get("alignment"):
        rows = [
            {"layer": layer + 1, "head": head + 1}
            | {name: f"{alignment['agreement'][shift][layer][head]:.0%}"
               for shift, name in enumerate(("row that reads the word", "row that predicts it"))}
            for layer, head in alignment["heads"]
        ]  # fmt: skip
        by_hand = alignment.get("by") == "gold links"
        against = (
            "gold alignments, which chose them."
            if by_hand
            else "what the model needs: the source word without which the word's log-probability "
            "falls most. No gold alignments were used."
        )
        parts += [
            "## The heads that align words",
            f"Together they agree on {alignment['together']:.1%} of {alignment['words']:,} target "
            f"words with {against}",
            table(rows),
        ]
    if recipes := card.get("recipes"):
        names = dict.fromkeys(name for recipe in recipes for name in recipe)
        rows = [
            {"setting": name}
            | {f"run {i}": recipe.get(name, "") for i, recipe in enumerate(recipes, start=1)}
            for name in names
        ]
        parts += ["## Training", f"Weights: {card['weights']} of the last run.", table(rows)]
    if "curve" in card:
        parts += [f"![Loss per token by epoch]({card['curve']})"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figure(score: dict, measure: str) -> str:
    """With its interval, which lowercased BLEU alone has."""
    interval = score.get("interval") if measure == "bleu_lc" else None
    return f"{score[measure]:.2f}" + ("" if interval is None else f" ± {interval:.2f}")


def table(rows: list[dict]) -> str:
    """In Markdown: names of columns out of the first row."""
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def curve(history: list[dict]) -> str:
    """Training and validation loss by epoch, as an SVG picture."""
    import matplotlib  # imported late: slow, and only needed after training
    from matplotlib.figure import Figure

    fixed = {"svg.fonttype": "none", "svg.hashsalt": "headlight"}  # the same file every time
    with matplotlib.rc_context(fixed), io.StringIO() as file:
        axes = Figure(figsize=(8, 4), layout="constrained").add_subplot(
            xlabel="epoch", ylabel="loss per token"
        )
        epochs = [row["epoch"] for row in history]
        for name, label in (("loss", "training"), ("val_loss", "validation")):
            axes.plot(epochs, [row[name] for row in history], label=label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend()
        axes.figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()
