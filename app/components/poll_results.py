"""The answers of a class as a picture, and over it what the model does."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from html import escape
from statistics import median, quantiles
from typing import Any

from headlight.app.theme import PRIMARY
from headlight.model.rounding import percent

BLUE = f"light-dark({PRIMARY['light']}, {PRIMARY['dark']})"
PALE = "color-mix(in srgb, currentColor 32%, transparent)"
BINS = 10
Rounds = Sequence[Mapping[str, Any]]  # of each round student → answer


def results(about: Mapping[str, Any], rounds: Rounds, truth: Any) -> str:
    """As HTML, one round below the other: side by side they leave no room for a bar. `about`: the
    question, as shell/room.py asks it; `truth`: what the model does, None while that is hidden."""
    draw = _PICTURES[about["kind"]]
    parts = []
    for number, answers in enumerate(rounds):
        title = f"{len(answers)} answers" if len(answers) != 1 else "1 answer"
        if len(rounds) > 1:
            title = ("First", "After the discussion")[number] if len(rounds) == 2 else (
                f"Round {number + 1}"
            )  # fmt: skip
            title += f": {len(answers)}"
        parts.append(f"<small>{title}</small>{draw(about, [*answers.values()], truth)}")
    return f"<div style='display:grid;gap:6px;font-size:0.85rem'>{''.join(parts)}</div>"


def _bar(label: str, count: int, most: int, right: bool = False) -> str:
    weight = "font-weight:700" if right else ""
    return (
        f"<div style='display:grid;grid-template-columns:minmax(4em,40%) 1fr 2em;gap:8px;"
        f"align-items:center;{weight}'><span style='overflow-wrap:anywhere'>{escape(label)}"
        f"{' ✓' if right else ''}</span><span style='height:1.1em;border-radius:2px;background:"
        f"{BLUE if right else PALE};width:{100 * count / max(most, 1):.0f}%'></span>"
        f"<span>{count}</span></div>"
    )


def _choices(about: Mapping, answers: list, truth: Any) -> str:
    counts = Counter(answers)
    most = max(counts.values(), default=1)
    return "".join(_bar(c, counts[c], most, c == truth) for c in about["choices"])


def _numbers(about: Mapping, answers: list, truth: Any) -> str:
    share = bool(about.get("share"))

    def text(number: float) -> str:
        return percent(number) if share else f"{number:.4g}"

    if not answers:
        return _model(truth, text)
    # Exact, as they were typed: no number is too large, and 0.3 is where the bin of 0.3 begins.
    values = [_exact(each, share) for each in answers]
    model = None if truth is None else _exact(truth, share)
    every = [*values, *([] if model is None else [model])]
    low, high = (Fraction(0), Fraction(1)) if share else (min(every), max(every))
    width = high - low or Fraction(BINS)
    bins = Counter(min(int((value - low) / width * BINS), BINS - 1) for value in values)
    most = max(bins.values())
    columns = "".join(
        f"<span style='flex:1;height:{100 * bins[i] / most:.0f}%;background:{PALE};min-width:4px;"
        f"text-align:center;font-size:11px;line-height:1.3'>{bins[i] or ''}</span>"
        for i in range(BINS)
    )
    line = ""
    if model is not None:
        line = (
            f"<i style='position:absolute;inset:0 auto 0 {float(100 * (model - low) / width):.1f}%;"
            f"border-left:3px solid {BLUE}'></i>"
        )
    ends = f"<span>{text(float(low))}</span><span>{text(float(low + width))}</span>"
    return (
        f"<div style='position:relative;display:flex;align-items:flex-end;gap:2px;height:90px;"
        f"border-bottom:1px solid currentColor'>{columns}{line}</div>"
        f"<div style='display:flex;justify-content:space-between'>{ends}</div>"
        f"{_model(truth, text)}<span>Median of the class: {text(float(median(values)))}</span>"
    )


def _exact(number: float, share: bool) -> Fraction:
    """A number as it was typed; a share no further than a share can be."""
    exact = Fraction(repr(float(number)))
    return min(max(exact, Fraction(0)), Fraction(1)) if share else exact


def _model(truth: Any, text: Callable[[float], str]) -> str:
    return "" if truth is None else f"<b style='color:{BLUE}'>The model: {text(truth)}</b>"


def _shade(count: int, most: int) -> str:
    return f"background:color-mix(in srgb, {BLUE} {60 * count / max(most, 1):.0f}%, transparent);"


def _frame(right: bool) -> str:
    return f"outline:3px solid {BLUE};" if right else ""


def _words(about: Mapping, answers: list, truth: Any) -> str:
    counts = Counter(answers)
    most = max(counts.values(), default=1)
    words = [
        f"<span style='{_shade(counts[c], most)}{_frame(c == truth)}padding:2px 6px;"
        f"border-radius:4px'>{escape(c.partition(' ')[2])}<sup>{counts[c] or ''}</sup></span>"
        for c in about["choices"]
    ]
    return f"<div style='line-height:2.1'>{' '.join(words)}</div>"


def _heads(about: Mapping, answers: list, truth: Any) -> str:
    counts = Counter(map(tuple, answers))
    most = max(counts.values(), default=1)
    right = {tuple(head) for head in truth or ()}
    parts = []
    for kind, title, layers, heads in about["heads"]:
        cells = "".join(
            f"<span style='min-width:1.5em;height:1.5em;border:1px solid {PALE};"
            f"text-align:center;{_shade(counts[kind, layer, head], most)}"
            f"{_frame((kind, layer, head) in right)}'>{counts[kind, layer, head] or ''}</span>"
            for layer in range(layers)
            for head in range(heads)
        )
        grid = f"display:grid;grid-template-columns:repeat({heads},minmax(0,2em));gap:3px"
        parts.append(f"<div><small>{escape(title)}</small><div style='{grid}'>{cells}</div></div>")
    key = "Number: votes" + (". Framed: the model" if right else "")
    return (
        f"<div style='display:flex;gap:12px;flex-wrap:wrap'>{''.join(parts)}</div>"
        f"<span>Rows: layers. Columns: heads. {key}.</span>"
    )


def _painted(about: Mapping, answers: list, truth: Any) -> str:
    """The mean row, with the middle half of the class as a line, and a mark for the model."""
    rows = []
    for i, label in enumerate(about["choices"]):
        shares = [float(answer[i]) for answer in answers]
        mean = sum(shares) / len(shares) if shares else 0.0
        low, _, high = quantiles(shares, n=4) if len(shares) > 1 else (mean, mean, mean)
        low, high = max(low, 0.0), min(high, 1.0)
        mark = "" if truth is None else (
            f"<i style='position:absolute;top:-2px;bottom:-2px;left:{100 * truth[i]:.0f}%;"
            f"border-left:3px solid {BLUE}'></i>"
        )  # fmt: skip
        rows.append(
            f"<div style='display:grid;grid-template-columns:5em 1fr 3em;gap:8px'>"
            f"<span>{escape(str(label))}</span><span style='position:relative'>"
            f"<i style='position:absolute;inset:0 auto 0 0;background:{PALE};"
            f"width:{100 * mean:.0f}%'></i>"
            f"<i style='position:absolute;top:45%;left:{100 * low:.0f}%;"
            f"width:{100 * (high - low):.0f}%;border-top:2px solid currentColor'></i>{mark}</span>"
            f"<span>{percent(mean)}</span></div>"
        )
    key = "Bar: mean of the class. Line: its middle half"
    key += "" if truth is None else ". Mark: the model"
    return f"<div style='display:grid;gap:4px'>{''.join(rows)}</div><span>{key}.</span>"


_PICTURES = {
    "choose": _choices,
    "number": _numbers,
    "token": _words,
    "head": _heads,
    "paint": _painted,
}
