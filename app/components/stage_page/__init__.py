"""The stage in one HTML file that needs no server, no network and no model: its engine answers from
what came along. Script and numbers are deflated, which halves what a notebook grows by with each
picture."""

import base64
import html
import re
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from headlight.app.components.packing import (
    Answer,
    PackedPredictions,
    id_of,
    pack_answers,
    pack_trace,
)
from headlight.app.components.scripts import UNREAD, read, script
from headlight.app.theme import DIFFERENCES, WEIGHTS
from headlight.model.analysis.head_metrics import total_variation
from headlight.model.analysis.reading import Reading
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace
from headlight.model.recording.recording import Recording
from headlight.model.rounding import percent

THEMES = ("auto", "light", "dark")
FEW, MANY = 2**14, 2**21  # bytes of all heads' scores: beside other pictures, in a file of its own
OF_ONE = 2**16  # of those of the selected head
NEVER = (
    *("model", "floors", "maps", "after", "needs", "paths", "positions"),
    *("adds", "why", "write", "beams", "pytorch"),
)
CLOSE = 1e-3  # of q · k ÷ √d to a score


def stage_page(
    trace: Trace,
    place: Place,
    title: str,
    *,
    reading: Reading = Reading(),
    minus: Trace | None = None,
    answers: PackedPredictions | None = None,
    depth: str = "heads",
    most: int = FEW,
    colours: str = "ink",
    theme: str = "auto",
    done: Sequence[str] = (),
    off: Mapping[str, Sequence[int]] = {},
    hidden: Mapping[str, Sequence[int]] = {},
) -> str:
    """A page of all heads of a trace, as `reading` merges and hides tokens, that opens at a head
    or, at the depth "heads", with it selected. With `minus`, the same over the trace before a
    change. Scores and vectors come along: of all heads if `most` bytes hold them, else of the
    selected one. `done`: what differs from the model as trained; `off`: kind → tiles (layer ×
    heads + head) of heads that are; `hidden`: side → tokens that nobody attends to. Theme "auto"
    follows the notebook that frames the page, or else the system. Raises ValueError for an unknown
    theme."""
    if theme not in THEMES:
        raise ValueError(f"{theme!r} is not one of {', '.join(map(repr, THEMES))}")
    packed = pack_trace(trace, reading, answers)
    former = pack_trace(minus, reading) if minus is not None else b""
    known = _known(trace, place, reading, most)
    run = id_of(packed + former)
    look = {
        "run": run,
        "palette": WEIGHTS[colours],
        "differences": DIFFERENCES,
        "model": "",
        "models": [],
        "lacks": isinstance(trace, Recording),
        "alone": {"known": [each._asdict() for each in known], "lacking": _lacking(trace, known)},
        "focus": place._asdict(),
        "cell": {"query": -1, "key": -1},
        "veil": [],
        "done": [{"text": f"{text[:1].upper()}{text[1:]}."} for text in done],
        "off": off,
        "hidden": hidden,
    }
    said = {"run": run, "said": _most_changed(trace, minus), "now": []} if minus else None
    style = UNREAD.sub("", read("stage/style.css")) + read("stage_page/style.css")
    data = pack_answers(
        [answer for each in known for answer in _numbers(trace, each)],
        look=look, said=said, depth=depth, theme=theme, style=style,
    )  # fmt: skip
    without = [f"stage/{name}.js" for name in NEVER]
    parts = {
        "title": html.escape(title),
        "script": _deflated(UNREAD.sub("", script("stage_page/index.js", without)).encode()),
        "run": _deflated(packed + former),
        "data": _deflated(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read("stage_page/page.html"))


def _deflated(content: bytes) -> str:
    # By level 9 the page would be a tenth smaller, and take twenty times as long.
    return base64.b64encode(zlib.compress(content, 4)).decode("ascii")


def _known(trace: Trace, place: Place, reading: Reading, most: int) -> list[Place]:
    """The heads whose scores and vectors come along: those whose scores are q · k ÷ √d, where rows
    and columns are tokens."""
    if reading.words or reading.special != "show":
        return []
    every = [
        Place(kind, layer, head)
        for kind, weights in trace.attention.items()
        for layer, head in np.ndindex(weights.shape[:2])
    ]
    for some, limit in ((every, most), ([place], max(most, OF_ONE))):
        if sum(_size(trace, each.kind) for each in some) <= limit:
            return [each for each in some if _is_product(trace, each)]
    return []


def _size(trace: Trace, kind: str) -> int:
    """What the numbers of a head of this kind take."""
    rows, columns = trace.attention[kind].shape[2:]
    width = trace.query[kind].shape[-1] if kind in trace.query else 0
    return 4 * (2 * rows * columns + width * (rows + 2 * columns))


def _vectors(trace: Trace, place: Place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, key and value of a head, the latter of the one that it may share."""
    kind, layer, head = place
    share = trace.query[kind].shape[1] // trace.key[kind].shape[1]
    q, k, v = (part[kind][layer] for part in (trace.query, trace.key, trace.value))
    return q[head], k[head // share], v[head // share]


def _is_product(trace: Trace, place: Place) -> bool:
    """Not those of rotated vectors, or with a bias for distance; of a recording none is known."""
    if place.kind not in trace.query:
        return False
    q, k, _ = _vectors(trace, place)
    scores = trace.scores[place.kind][place.layer][place.head]
    with np.errstate(all="ignore"):  # of a model that is not finite
        return np.allclose(q @ k.T / np.sqrt(q.shape[-1]), scores, CLOSE, CLOSE)


def _numbers(trace: Trace, place: Place) -> list[Answer]:
    """What the stage asks of a head, see ANSWERS in shell/stage.py."""
    kind, layer, head = place
    q, k, v = _vectors(trace, place)
    weights = trace.attention[kind][layer, head]
    of = place._asdict()
    return [
        ({"what": "scores", **of}, {"scores": q @ k.T, "weights": weights, "v": v}),
        ({"what": "vectors", **of}, {"q": q, "k": k}),
    ]


def _lacking(trace: Trace, known: Sequence[Place]) -> str:
    """Why a head has no scores."""
    if isinstance(trace, Recording):
        return ""
    if not known:
        return "This file has no scores."
    return f"Of scores, this file has those of {_name(trace, known[0])}."


def _most_changed(trace: Trace, minus: Trace) -> list[tuple[str, str]]:
    moved = {
        Place(kind, layer, head): float(share)
        for kind, weights in trace.attention.items()
        for (layer, head), share in np.ndenumerate(total_variation(weights, minus.attention[kind]))
    }
    most = max(moved, key=lambda place: np.nan_to_num(moved[place]))
    if not moved[most] > 0:
        return [("Both have the same weights.", "")]
    said = f" changes most: {percent(moved[most])} of its weight moves."
    return [(_name(trace, most), "b"), (said, "")]


def _name(trace: Trace, place: Place) -> str:
    """As the stage names a head."""
    number = trace.kinds[place.kind][place.layer].layer + 1
    return f"{place.kind.replace('_', ' ')} {number}.{place.head + 1}"
