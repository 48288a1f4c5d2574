"""A report on how important heads are: the curve of Voita et al. 2019 as a picture, and the tables
of Michel et al. 2019, from the rows that `prune` writes and a survey."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headlight.model.card import table
from headlight.model.corpus.pruning import AT_RANDOM, ONE_LEFT
from headlight.model.corpus.survey import IN_WORDS, SIGNIFICANT, Survey
from headlight.model.files import replace_file

NO_LOSS = 0.15  # of BLEU: what Voita et al. 2019 take for none
Rows = Sequence[Mapping]


def curves(rows: Rows, measure: str) -> dict[tuple[str, int], np.ndarray]:
    """(order, steps of training) → (point, 5): heads off, value, low, high, p. Of several repeats
    the mean, from the lowest low to the highest high, and the largest p."""
    by_order: dict[tuple[str, int], dict[int, list]] = {}
    for row in rows:
        if row["measure"] != measure or row["order"] == ONE_LEFT:
            continue
        points = by_order.setdefault((row["order"], row["retrained"]), {})
        points.setdefault(row["off"], []).append(
            [row[name] for name in ("value", "low", "high", "p")]
        )
    return {
        at: np.array(
            [
                (off, value.mean(), low.min(), high.max(), p.max())
                for off, repeats in sorted(points.items())
                for value, low, high, p in [np.array(repeats).T]
            ]
        )
        for at, points in by_order.items()
    }


def picture(rows: Rows, measure: str) -> str:
    """Quality against heads that are left, a line an order, as SVG; broken where what is left was
    trained further."""
    import matplotlib  # slow, and only this draws
    from matplotlib.figure import Figure

    lines = curves(rows, measure)
    orders = list(dict.fromkeys(name for name, _ in lines))
    counts = np.unique(np.concatenate([points[:, 0] for points in lines.values()]))
    fixed = {"svg.fonttype": "none", "svg.hashsalt": "headlight"}  # the same file every time
    with matplotlib.rc_context(fixed), io.StringIO() as file:
        axes = Figure(figsize=(8, 4.5), layout="constrained").add_subplot(
            xlabel="heads left", ylabel=IN_WORDS[measure], xticks=counts.max() - counts
        )
        for (name, steps), points in lines.items():
            i = orders.index(name)
            off, value, low, high, p = points.T
            left = counts.max() - off + 0.12 * (i - 2)  # overlapping error bars would be unreadable
            look = {"color": f"C{i}", "marker": "osD^v"[i % 5], "markersize": 5}
            axes.errorbar(
                left,
                value,
                [value - low, high - value],
                label=f"{name}, then {steps:,} steps of training" if steps else name,
                linewidth=1.2,
                elinewidth=0.7,
                linestyle="--" if steps else ":" if name == AT_RANDOM else "-",
                **look,
            )
            differs = p <= SIGNIFICANT
            look |= {"linestyle": "", "markerfacecolor": "white", "zorder": 3}
            axes.plot(left[differs], value[differs], **look)
        axes.invert_xaxis()
        axes.grid(alpha=0.3)
        axes.legend(title="order of removal", fontsize="small")
        axes.figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def heads_that_go(points: np.ndarray, plain: float) -> int:
    """How many heads can be off, of (point, 4), before more than NO_LOSS of `plain` is lost."""
    lost = points[:, 1] < plain - NO_LOSS
    return int(points[lost.argmax() - 1 if lost.any() else -1, 0])


def curve_table(rows: Rows, measure: str) -> list[dict]:
    """A row an order and training, with the quality at every number of heads that are off."""
    curves_by_order = curves(rows, measure)
    plain = next(points[0, 1] for points in curves_by_order.values())
    counts = sorted({int(off) for points in curves_by_order.values() for off in points[:, 0]})
    lines = []
    for (name, steps), points in curves_by_order.items():
        value = {int(off): f"{value:.2f}" for off, value, *_ in points}
        lines.append(
            {"order of removal": name, "trained": f"{steps:,} steps" if steps else ""}
            | {f"{count} off": value.get(count, "") for count in counts}
            | {f"removed at ≤ {NO_LOSS}": heads_that_go(points, plain)}
        )
    return lines


def head_table(survey: Survey, kind: str) -> list[dict]:
    """What is lost without each head of a kind of attention, a row a layer (Michel et al. 2019,
    table 1); bold where that is no chance."""
    lines: dict[int, dict] = {}
    for row in survey.of(survey.card["score"] or "loss"):
        if row["kind"] == kind:
            text = signed(row["value"])
            text = f"**{text}**" if row["p_holm"] <= SIGNIFICANT else text
            lines.setdefault(row["layer"], {"layer": row["layer"]})[f"head {row['head']}"] = text
    return [*lines.values()]


def one_left_table(rows: Rows, measure: str, plain: float) -> list[dict]:
    """What is lost where a layer has one head left, and which (Michel et al. 2019, table 2); bold
    where that is no chance, each by itself."""
    return [
        {
            "attention": row["kind"],
            "layer": row["layer"],
            "remaining head": row["head"],
            "change": ("**{}**" if row["p"] <= SIGNIFICANT else "{}").format(
                signed(row["value"] - plain)
            ),
        }
        for row in rows
        if (row["measure"], row["order"]) == (measure, ONE_LEFT)
    ]


def signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def write_page(rows: Rows, measure: str, survey: Survey | None, out: Path) -> None:
    """The page and, beside it, its picture. Raises OSError."""
    drawing, name = out.with_suffix(".svg"), IN_WORDS[measure]
    plain = next(r["value"] for r in rows if r["measure"] == measure and not r["off"])
    parts = [
        "# Heads switched off",
        f"![{name} against heads left]({drawing.name})",
        f"{name} on test data against heads left, as in Voita et al. 2019, Section 6.2. The "
        f"whole model has {plain:.2f}. Bars: 95% bootstrap intervals over sentences. Several "
        "random orders: their mean, with bars from the lowest to the highest end. White points "
        f"differ from the whole model (p ≤ {SIGNIFICANT} each, paired bootstrap). Validation "
        "data decided all orders. The last column: how many heads go before more than "
        f"{NO_LOSS} is lost.",
        table(curve_table(rows, measure)),
    ]
    if survey:
        parts += [
            "## One head off",
            f"Change in {IN_WORDS[survey.card['score'] or 'loss']} without each head, over the "
            f"{survey.card['sentences']:,} sentences of the survey ({survey.card['data']}), as "
            f"in Michel et al. 2019, Table 1. Bold: p ≤ {SIGNIFICANT}, corrected for all heads "
            "(Holm).",
        ]
        for kind in dict.fromkeys(row["kind"] for row in survey.rows if row["part"] == "head"):
            parts += [f"### {kind}", table(head_table(survey, kind))]
    if left := one_left_table(rows, measure, plain):
        parts += [
            "## One head left in a layer",
            f"Change in {name} on test data when only one head of a layer stays on: the one "
            "with the lowest validation loss. As in Michel et al. 2019, Table 2. Bold: p ≤ "
            f"{SIGNIFICANT}, not corrected.",
            table(left),
        ]
    replace_file(drawing, picture(rows, measure))
    replace_file(out, "\n\n".join(parts) + "\n")
