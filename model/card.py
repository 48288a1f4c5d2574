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
import math
from statistics import NormalDist

import yaml
from torch import nn

from headlight.model.rounding import percent
from headlight.model.sites import ProbedModel

MEASURES = {"bleu_lc": "BLEU, lowercased", "bleu": "BLEU", "chrf": "chrF",
            "accuracy": "% accuracy", "exact": "% exact", "perplexity": "perplexity"}  # fmt: skip
MEANINGS = {  # of what is measured of a text, see analysis/domain.py
    "split": "Split: the share of words that are several tokens.",
    "surprise": "Surprise: mean −log p of the tokens that the model writes, in nats.",
}
SHARES = "accuracy", "exact"
RESAMPLED = "bleu_lc", "perplexity"
METRICS = {"bleu_lc": "bleu", "accuracy": "accuracy", "exact": "exact_match",
           "perplexity": "perplexity"}  # fmt: skip  # as model hubs call them


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
        return "random weights, untrained"
    if not scores:
        return "not evaluated"
    first = [score for score in scores if score["set"] == scores[0]["set"]]
    measure = next(name for name in MEASURES if name in first[0])
    best = (min if measure == "perplexity" else max)(first, key=lambda score: score[measure])
    unit = MEASURES[measure]
    written = f"{best[measure]:.1f}{'' if unit.startswith('%') else ' '}{unit}"
    return f"{written} ({best['decode']})"


def parameter_count(model: nn.Module) -> int:
    """The number of trainable parameters; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def markdown(card: dict, model: ProbedModel, preset: str, name: str) -> str:
    """The text of README.md; `name` is that of the folder. Above it stands the front matter that
    model hubs read."""
    parts = [
        f"---\n{yaml.safe_dump(front_matter(card, name), allow_unicode=True, sort_keys=False)}---",
        f"# {card.get('title', 'A model')}",
        _use(card, name),
        f"## What it does\n\n{card['look_for']}" if "look_for" in card else "",
        _data(card),
        _scores(card),
        _limits(card),
        _heads(card, name),
        _recipe(card, model, preset),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def front_matter(card: dict, name: str) -> dict:
    """What a model hub reads: license, languages, task and scores."""
    free = card.get("terms", "").startswith("None")
    found: dict = {"license": "mit"} if free else {"license": "other", "license_name": "see-terms"}
    task = "text-classification" if "classes" in card else ""
    if "direction" in card:
        found["language"], task = card["direction"], "translation"
    if task:
        found["pipeline_tag"] = task
    found["library_name"] = "headlight"
    found["tags"] = ["transformer", "attention", "interpretability"]
    results = [
        {
            "task": {"type": task or "text-generation"},
            "dataset": {"name": score["set"], "type": score["set"]},
            "metrics": [
                {"type": METRICS[measure], "value": round(score[measure], 2)}
                for measure in METRICS
                if measure in score
            ],
        }
        for score in _best(card)
    ]
    return found | ({"model-index": [{"name": name, "results": results}]} if results else {})


def _best(card: dict) -> list[dict]:
    """The first way of decoding of every test set."""
    found: dict[str, dict] = {}
    for score in card.get("scores", []):
        found.setdefault(score["set"], score)
    return [*found.values()]


def _use(card: dict, name: str) -> str:
    text = "a b c"
    if "direction" in card:
        text = "A dog runs."
    elif "classes" in card:
        text = "a gripping story, told with wit"
    elif any("perplexity" in score for score in card.get("scores", ())):
        text = "She has never seen the sea."
    lines = [
        "from headlight import load, show",
        "",
        f'model = load("{name}")  # or the path of a folder',
    ]
    if "direction" in card:
        lines += [f'print(model.translate("{text}").text)']
    elif "classes" in card:
        lines += [f'print(model.classify("{text}"))']
    lines += [f'show(model.trace("{text}"))  # every head, in a notebook']
    return "\n".join(["```python", *lines, "```"])


def _data(card: dict) -> str:
    if not {"data", "terms"} & {*card}:
        return ""
    lines = [f"- Data: {card['data']}"] if "data" in card else []
    lines += [f"- Terms of the data: {card['terms']}"] if "terms" in card else []
    return "\n".join(["## Data and terms\n", *lines, "- The code is under the MIT licence."])


def _scores(card: dict) -> str:
    if not (scores := card.get("scores")):
        return ""
    rows = [
        {"set": s["set"], "decoding": s["decode"]}
        | {MEASURES[m]: _figure(s, m) for m in MEASURES if m in s}
        for s in scores
    ]
    parts = ["## Scores", table(rows)]
    if any("interval" in score for score in scores):
        parts += ["± is half the width of the 95% interval, from 1,000 resampled test sets."]
    if any(measure in score for score in scores for measure in SHARES):
        parts += ["In brackets: Wilson's 95% interval."]
    signatures = sorted({text for s in scores for text in s.get("signature", {}).values()})
    parts += ["\n".join(f"- `{text}`" for text in signatures)]
    return "\n\n".join(part for part in parts if part)


def _limits(card: dict) -> str:
    if not (domain := card.get("domain")):
        return ""
    rows = [
        {"measure": name, "mean": f"{mean:.3f}", "standard deviation": f"{deviation:.3f}"}
        for name, (mean, deviation) in domain["ranges"].items()
    ]
    return "\n\n".join(
        [
            "## Limits",
            f"The model learnt from {domain['text']}. Expect nonsense for other texts. The app "
            "warns about a sentence that is unlike them. Such a sentence lies more than "
            f"{domain['limit']:.2f} standard deviations above the means, all measures taken "
            f"together. At most {1 - domain['share']:.1%} of {domain['examples']:,} validation "
            "texts do.",
            table(rows),
            " ".join(MEANINGS[measure] for measure in domain["ranges"] if measure in MEANINGS),
        ]
    )


def _heads(card: dict, name: str) -> str:
    parts = []
    if opens := card.get("opens"):
        parts += [f"The app opens on {_link(name, **opens)}."]
    if alignment := card.get("alignment"):
        rows = [
            {"head that aligns words": _link(name, "cross", layer, head)}
            | {title: percent(alignment['agreement'][shift][layer][head])
               for shift, title in enumerate(("row that reads the word", "row that predicts it"))}
            for layer, head in alignment["heads"]
        ]  # fmt: skip
        against = (
            "gold alignments, which chose them."
            if alignment.get("by") == "gold links"
            else "what the model needs: the source word without which the word's log-probability "
            "falls most. No gold alignments were used."
        )
        parts += [
            table(rows),
            f"Together the heads that align words agree on {alignment['together']:.1%} of "
            f"{alignment['words']:,} target words with {against}",
        ]
    return "\n\n".join(["## Heads worth seeing", *parts]) if parts else ""


def _link(name: str, kind: str, layer: int, head: int) -> str:
    """A head in the app, as it runs on this machine."""
    query = f"model={name}&kind={kind}&layer={layer + 1}&head={head + 1}"
    return f"[{kind}, layer {layer + 1}, head {head + 1}](http://localhost:8501/?{query})"


def _recipe(card: dict, model: ProbedModel, preset: str) -> str:
    sizes = [{"size": name, "value": value} for name, value in vars(model.config).items()]
    parts = [
        "## Recipe",
        f"{parameter_count(model):,} parameters, preset `{preset}`; weights in float16.",
        table(sizes),
    ]
    if recipes := card.get("recipes"):
        names = dict.fromkeys(name for recipe in recipes for name in recipe)
        rows = [
            {"setting": name}
            | {f"run {i}": recipe.get(name, "") for i, recipe in enumerate(recipes, start=1)}
            for name in names
        ]
        parts += [f"Weights: {card['weights']}, last training run.", table(rows)]
    if "curve" in card:
        parts += [f"![Loss per token by epoch]({card['curve']})"]
    return "\n\n".join(parts)


def _figure(score: dict, measure: str) -> str:
    """With its interval: measured for lowercased BLEU and perplexity, by Wilson's formula for a
    share."""
    if measure in SHARES and "examples" in score:
        least, most = wilson(score[measure] / 100, score["examples"])
        return f"{score[measure]:.2f} ({100 * least:.1f} to {100 * most:.1f})"
    interval = score.get("interval") if measure in RESAMPLED else None
    return f"{score[measure]:.2f}" + ("" if interval is None else f" ± {interval:.2f}")


def wilson(share: float, examples: int) -> tuple[float, float]:
    """The 95% interval of a share that was measured on so many examples (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.975)
    centre = (share + z * z / (2 * examples)) / (1 + z * z / examples)
    half = z / (1 + z * z / examples)
    half *= math.sqrt(share * (1 - share) / examples + z * z / (4 * examples**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def table(rows: list[dict]) -> str:
    """In Markdown: names of columns out of the first row."""
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def curve(history: list[dict]) -> str:
    """Training and validation loss by epoch, as an SVG picture."""
    import matplotlib  # imported late: slow, and only needed after training
    from matplotlib.figure import Figure

    # The same file every time.
    fixed = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "headlight"})
    with fixed, io.StringIO() as file:
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="epoch", ylabel="loss per token")
        epochs = [row["epoch"] for row in history]
        for name, label in (("loss", "training"), ("val_loss", "validation")):
            axes.plot(epochs, [row[name] for row in history], label=label)
        axes.locator_params("x", integer=True)
        axes.legend()
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()
