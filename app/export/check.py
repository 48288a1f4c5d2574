"""Is my part of the Transformer right? It is told what is wrong with it, by name.

>>> print(check.verdict("scores", lambda q, k: q @ k.transpose(-2, -1)))  # doctest: +ELLIPSIS
scores: not yet. That is the dot product. Divide it by √d...

check.attention(my_attention)  # a verdict, or an AssertionError with that sentence

Each takes a function, a module or, of `multi_head`, a class, in PyTorch or NumPy. It is safe in
pytest and in notebooks, where a verdict is a picture: yours, ours, and where they differ.
"""

import base64
import html
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from headlight.app.components.matrix import Matrix, pack
from headlight.app.components.scripts import read, script
from headlight.app.text.formats import listed
from headlight.app.theme import INK, PAPER, PRIMARY
from headlight.model.checking import judge
from headlight.model.checking.parts import PARTS
from headlight.model.checking.real import SENTENCE, real
from headlight.model.checking.verdict import NotYet, Verdict
from headlight.model.checkpoint import Checkpoint, load
from headlight.model.probing.trace import CannotRead, Trace

LOGITS_WITHIN = 1e-3  # of a model that computes the same
HEIGHT = 420  # pixels of a frame
MOST_SHOWN = 40  # rows and columns shown
RIGHT, WRONG = "#17692f, #7bd389", "#a3230c, #ffb9a6"  # light, dark


def matrices_of(verdict: Verdict) -> list[Matrix]:
    """Of the last two axes, around the first cell that differs."""
    yours, ours = verdict.yours, verdict.ours
    if not isinstance(ours, Tensor) or ours.dim() < 1:
        return []
    fits = isinstance(yours, Tensor) and yours.shape == ours.shape
    lead = verdict.index[:-2] if verdict.index else (0,) * max(ours.dim() - 2, 0)

    def flat(x):
        x = x.float()[lead] if x.dim() > 2 else x.float()
        return np.atleast_2d(x.numpy())[:MOST_SHOWN, :MOST_SHOWN]

    axes = ("", "", *verdict.axes)[-2:]
    rows, columns = (verdict.case.rows, verdict.case.columns) if verdict.case else ((), ())
    labels = {"query": rows, "key": columns, "token": rows}
    row, column = verdict.index[-2:] if len(verdict.index) >= 2 else (-1, -1)
    options: dict[str, Any] = {
        "row_name": axes[0], "column_name": axes[1],
        "rows": labels.get(axes[0], ())[:MOST_SHOWN],
        "columns": labels.get(axes[1], ())[:MOST_SHOWN],
        "follow": row, "column": column, "single": True, "blank": "NaN",
    }  # fmt: skip
    if not fits:
        return [Matrix("ours", flat(ours), **options)]
    two = {"yours": flat(yours), "ours": flat(ours)}
    most = float(np.nanmax(np.abs(two["ours"]), initial=0)) or 1.0
    ends = ("{}", "{}")
    look: dict[str, Any] = {"largest": most, "scale": "value", "ends": ends}
    if axes == ("query", "key") and min(x.min() for x in map(np.nan_to_num, two.values())) >= 0:
        look = {"weights": True, "scale": "weight"}
    both = [Matrix(t, x, labelled=t == "yours", **look, **options) for t, x in two.items()]
    apart = np.nan_to_num(two["yours"]) - two["ours"]
    return [*both, Matrix("yours − ours", apart, ends=ends, labelled=False, numbers=False,
                            **options)]  # fmt: skip


def page(title: str, text: str, is_ok: bool, matrices: Sequence[Matrix]) -> str:
    """A page that shows a text, whose first sentence is the verdict, above matrices, without a
    server."""
    first, *more = (html.escape(line) for line in text.split("\n"))
    head, _, rest = first.partition(". ")
    colours = {"paper": PAPER, "ink": INK, "primary": PRIMARY}
    parts = {name: f"{each['light']}, {each['dark']}" for name, each in colours.items()} | {
        "title": html.escape(title),
        "said": "<br>".join([f"<b>{head}.</b> {rest}", *more]),
        "tone": RIGHT if is_ok else WRONG,
        "css": read("matrices/style.css"),
        "js": script("matrices/index.js").replace("export default function", "function draw"),
        "data": base64.b64encode(pack(matrices, fills=False)).decode("ascii"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read("check_page/page.html"))


def document(verdict: Verdict) -> str:
    """A page that shows a verdict, without a server."""
    return page(verdict.part, str(verdict), verdict.ok, matrices_of(verdict))


def frame(title: str, document: str) -> str:
    """A page as a notebook shows it."""
    return (
        f'<iframe title="{html.escape(title)}" srcdoc="{html.escape(document)}" '
        f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
    )


class ShownVerdict(Verdict):
    """A verdict that a notebook shows as a picture."""

    def _repr_html_(self) -> str:
        return frame(self.part, document(self))


class NotRight(NotYet):
    """In a notebook, the picture in place of a traceback; the cell still fails."""

    shown = False

    def _render_traceback_(self) -> list[str]:
        if not self.shown:  # IPython asks twice
            from IPython.display import display

            self.shown = True
            display(self.verdict)
        return [str(self.verdict)]


class NotTheSame(AssertionError):
    """Parts with which a trained model computes something else. In a notebook, the sentence in
    place of a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@cache
def _trace(model: str) -> Trace:
    return load(model).trace(SENTENCE)


def verdict(name: str, function: Callable, on: str = "", **how: Any) -> ShownVerdict:
    """What is to be said of a part, which is never raised. `on`: a translator, whose numbers on a
    real sentence are one more case, and the picture; `how`: as `judged` takes it."""
    case = real(name, _trace(on), on) if on else None
    return ShownVerdict(**vars(judge.verdict(name, function, case, **how)))


def in_trained_model(
    translator: Checkpoint, parts: Mapping[str, Callable], pad_to: int = 0
) -> tuple[bool, str]:
    """Whether a translator computes the same with these parts in place of ours, and what it writes.
    `pad_to` fills up the source. Raises ValueError, TypeError and CannotRead."""
    start = f"With your {listed([*parts])}, “{SENTENCE}” becomes "
    mine = translator.with_parts(**parts)
    ours, yours = (model.translate(SENTENCE, pad_to=pad_to).text for model in (translator, mine))
    if yours != ours:
        return False, f"{start}“{yours}” Ours writes “{ours}”"
    run = translator.run(SENTENCE, pad_to=pad_to)
    apart = float(np.abs(mine.trace_run(run).logits - translator.trace_run(run).logits).max())
    same = f"{start}“{yours}”, as with ours. "
    if apart <= LOGITS_WITHIN:
        return True, f"{same}Logits differ by at most {apart:.0e}."
    return False, f"{same}But its logits differ by up to {apart:.2g}: the same text proves little."


def in_model(on: str = "en-fr", pad_to: int = 0, **parts: Callable) -> str:
    """What the translator `on` writes with these parts in place of ours, such as
    `attention=mine`. `pad_to` fills up the source, so that padding masks count. Raises NotTheSame
    where its logits differ or a part fails, and ValueError for what is no part of it."""
    if not parts:
        raise ValueError("Give at least one part, such as attention=mine.")
    try:
        is_same, sentence = in_trained_model(load(on), parts, pad_to)
    except CannotRead as error:
        raise NotTheSame(str(error)) from None
    if not is_same:
        raise NotTheSame(sentence)
    return sentence


def _check(name: str) -> Callable[..., ShownVerdict]:
    def checked(function: Callable, **how: Any) -> ShownVerdict:
        found = verdict(name, function, **how)
        if not found:
            raise NotRight(found)
        return found

    checked.__name__, checked.__doc__ = name, f"Checks `{PARTS[name].asks}`. Raises NotRight."
    return checked


scores = _check("scores")
softmax = _check("softmax")
attention = _check("attention")
split_heads = _check("split_heads")
merge_heads = _check("merge_heads")
multi_head = _check("multi_head")
causal_mask = _check("causal_mask")
padding_mask = _check("padding_mask")
positional_encoding = _check("positional_encoding")
rotary = _check("rotary")
layer_norm = _check("layer_norm")
feed_forward = _check("feed_forward")
encoder_layer = _check("encoder_layer")
pre_norm_layer = _check("pre_norm_layer")
greedy = _check("greedy")
cached_step = _check("cached_step")
