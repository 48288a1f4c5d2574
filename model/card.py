"""The model card: README.md of a checkpoint folder, written from its config.json.

A card is a dict: `task`, `title`, `look_for`, `data`, `terms`, for a classifier `classes`; from
training `weights`, `step`, `curve`, and `recipes`, one dict per run that led to the weights;
from evaluation `scores`, one dict per test set and way of decoding. Every entry may be missing.
`weights` is "random" for a model that was never trained.
"""

from torch import nn

from model.transformer import Transformer

MEASURES = {"bleu_lc": "BLEU, lowercased", "bleu": "BLEU", "chrf": "chrF",
            "accuracy": "% accuracy", "exact": "% exact"}  # fmt: skip


def with_scores(card: dict, scores: list[dict]) -> dict:
    """The card with these scores in the place of earlier ones of the same set and decoding."""

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
    best = max(first, key=lambda score: score[measure])
    return f"{best[measure]:.1f} {MEASURES[measure]} ({best['decode']})"


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers; what is shared counts once."""
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
        _table([{"size": name, "value": value} for name, value in sizes.items()]),
    ]
    if scores := card.get("scores"):
        rows = [
            {"set": s["set"], "decoding": s["decode"]}
            | {MEASURES[m]: f"{s[m]:.2f}" for m in MEASURES if m in s}
            for s in scores
        ]
        signatures = sorted({text for s in scores for text in s.get("signature", {}).values()})
        parts += ["## Scores", _table(rows), "\n".join(f"- `{text}`" for text in signatures)]
    if recipes := card.get("recipes"):
        names = dict.fromkeys(name for recipe in recipes for name in recipe)
        rows = [
            {"setting": name}
            | {f"run {i}": recipe.get(name, "") for i, recipe in enumerate(recipes, start=1)}
            for name in names
        ]
        parts += ["## Training", f"Weights: {card['weights']} of the last run.", _table(rows)]
    if "curve" in card:
        parts += [f"![Loss per token by epoch]({card['curve']})"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(rows: list[dict]) -> str:
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def curve(history: list[dict]) -> str:
    """Training and validation loss by epoch, as an SVG picture."""
    width, height, margin = 640, 320, 48
    series = {"loss": "#1f77b4", "val_loss": "#d62728"}
    values = [row[name] for row in history for name in series]
    low, high = min(values), max(values)
    last = max(history[-1]["epoch"], 2)

    def point(epoch, value):
        x = margin + (epoch - 1) / (last - 1) * (width - 2 * margin)
        y = height - margin - (value - low) / ((high - low) or 1) * (height - 2 * margin)
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<polyline fill="none" stroke="{color}" stroke-width="2" points="'
        + " ".join(point(row["epoch"], row[name]) for row in history)
        + '"/>'
        for name, color in series.items()
    ]
    bottom, right = height - margin, width - margin
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 font-family="sans-serif" font-size="13">
<rect width="100%" height="100%" fill="white"/>
<path d="M{margin} {margin}V{bottom}H{right}" fill="none" stroke="#888"/>
{"".join(lines)}
<text x="{margin - 6}" y="{margin + 4}" text-anchor="end">{high:.2f}</text>
<text x="{margin - 6}" y="{bottom + 4}" text-anchor="end">{low:.2f}</text>
<text x="{margin}" y="{bottom + 20}" text-anchor="middle">1</text>
<text x="{right}" y="{bottom + 20}" text-anchor="middle">{last}</text>
<text x="{width / 2}" y="{bottom + 34}" text-anchor="middle">epoch</text>
<text x="{right}" y="{margin - 22}" text-anchor="end" fill="#1f77b4">training loss per token</text>
<text x="{right}" y="{margin - 6}" text-anchor="end" fill="#d62728">validation loss per token</text>
</svg>
"""
