"""Arrays and labels in, Plotly figures out. Query is the row, key is the column, always."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.look import DIFFERENCES, FONT
from app.look import WEIGHTS as SCALE

WEIGHTS = {"colorscale": SCALE, "cmin": 0, "cmax": 1}
MOST_LABELS = 64  # more would overlap on a projector
MOST_NAMED_CELLS = 128 * 128  # cells whose hover text names both pieces


@dataclass(frozen=True)
class Axis:
    """What runs along a side of a picture: its name in words, and a label a position."""

    title: str
    labels: Sequence[str]

    def layout(self, room: int) -> dict:
        """Ticks of a side about `room` pixels long. Positions are numbers: Plotly would merge
        two equal labels into one row."""
        every = -(-len(self.labels) // MOST_LABELS)
        shown = range(0, len(self.labels), max(1, every))
        size = int(np.clip(0.85 * room / max(1, len(shown)), 9, FONT))
        return {
            "title": {"text": self.title, "font": {"size": FONT}},
            "tickmode": "array",
            "tickvals": list(shown),
            "ticktext": [plain(self.labels[i]) for i in shown],
            "tickfont": {"size": size},
            "showgrid": False,
            "zeroline": False,
        }


def plain(text: str) -> str:
    """Text for Plotly, which would read `<b>` as a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attention(weights: np.ndarray, query: Axis, key: Axis) -> go.Figure:
    """One head, (query, key). A row that may attend to nothing is left blank."""
    figure = go.Figure(_cells(_blank_empty_rows(weights), query, key, "weight"))
    _sides(figure, query, key, width=400)
    figure.update_layout(coloraxis=WEIGHTS | {"colorbar": _colorbar("weight")})
    return _finish(figure, height=_height(query, 34))


def comparison(ours: np.ndarray, theirs: np.ndarray, query: Axis, key: Axis) -> go.Figure:
    """Two versions of one head, (query, key), and ours minus theirs on a scale of its own,
    symmetric around zero."""
    delta = ours - theirs
    finite = np.abs(delta[np.isfinite(delta)])
    largest = float(finite.max()) if finite.any() else 1e-9  # all equal: the middle colour
    ends = [-largest, 0, largest]
    figure = make_subplots(
        1,
        3,
        shared_yaxes=True,
        horizontal_spacing=0.02,
        column_titles=["<b>ours</b>", "<b>torch.nn.Transformer</b>", "<b>ours − theirs</b>"],
    )
    for column, (values, name, colours) in enumerate(
        [
            (_blank_empty_rows(ours), "weight", "coloraxis"),
            (theirs, "weight", "coloraxis"),
            (delta, "difference", "coloraxis2"),
        ],
        start=1,
    ):
        figure.add_trace(_cells(values, query, key, name, colours), row=1, col=column)
    _sides(figure, query, key, width=240)
    figure.update_yaxes(title_text="", col=2)
    figure.update_yaxes(title_text="", col=3)
    figure.update_xaxes(side="bottom")
    below = {"orientation": "h", "yanchor": "top", "y": -0.3, "thickness": 16}
    figure.update_layout(
        coloraxis=WEIGHTS | {"colorbar": _colorbar("weight") | below | {"x": 0.32, "len": 0.5}},
        coloraxis2={
            "colorscale": DIFFERENCES,
            "cmin": -largest,
            "cmax": largest,
            "colorbar": _colorbar("difference")
            | below
            | {"x": 0.84, "len": 0.3}
            | {"tickvals": ends, "ticktext": [f"{end:.0e}" if end else "0" for end in ends]},
        },
    )
    return _finish(figure, height=_height(query, 30) + 130, top=40)


def vectors(values: np.ndarray, position: Axis, largest: float | None = None) -> go.Figure:
    """One vector a row, (position, d_model), on a scale symmetric around zero."""
    largest = float(np.abs(values).max()) if largest is None else largest
    dimension = Axis("dimension", [str(i) for i in range(values.shape[1])])
    figure = go.Figure(_cells(values, position, dimension, "value"))
    _sides(figure, position, dimension, width=800)
    ticks = list(range(0, values.shape[1], max(1, values.shape[1] // 16)))
    figure.update_xaxes(
        side="bottom", tickangle=0, tickvals=ticks, ticktext=ticks, tickfont_size=FONT
    )
    figure.update_layout(
        coloraxis={
            "colorscale": DIFFERENCES,
            "cmin": -largest,
            "cmax": largest,
            "colorbar": _colorbar("value"),
        }
    )
    return _finish(figure, height=_height(position, 24))


def _blank_empty_rows(weights: np.ndarray) -> np.ndarray:
    return np.where(weights.any(axis=1, keepdims=True), weights, np.nan)


def _cells(
    z: np.ndarray, rows: Axis, columns: Axis, name: str, colours: str = "coloraxis"
) -> go.Heatmap:
    """One heatmap whose hover text names row, column and the exact number."""
    # Where every position has its tick, hover text takes the names from there: a name for every
    # cell would be most of what the browser is sent.
    cells, row, column = None, "%{y}", "%{x}"
    if max(z.shape) > MOST_LABELS and z.size > MOST_NAMED_CELLS:
        row, column = "position %{y}", "position %{x}"
    elif max(z.shape) > MOST_LABELS:
        cells = np.empty((*z.shape, 2), dtype=object)
        cells[..., 0] = np.array([plain(label) for label in rows.labels], dtype=object)[:, None]
        cells[..., 1] = np.array([plain(label) for label in columns.labels], dtype=object)
        row, column = "%{customdata[0]}", "%{customdata[1]}"
    digits = ".2e" if name == "difference" else ".6f"
    gap = 1 if max(z.shape) <= 32 else 0
    return go.Heatmap(
        z=z,
        customdata=cells,
        coloraxis=colours,
        hoverongaps=False,
        hovertemplate=f"{rows.title}: <b>{row}</b><br>{columns.title}: <b>{column}</b>"
        f"<br>{name} %{{z:{digits}}}<extra></extra>",
        xgap=gap,
        ygap=gap,
    )


def _sides(figure: go.Figure, rows: Axis, columns: Axis, width: int) -> None:
    figure.update_xaxes(side="top", tickangle=-90, **columns.layout(width))
    figure.update_yaxes(**rows.layout(34 * len(rows.labels)))
    figure.update_yaxes(range=[len(rows.labels) - 0.5, -0.5])


def _height(rows: Axis, each: int) -> int:
    return int(np.clip(190 + each * len(rows.labels), 360, 1000))


def _colorbar(name: str) -> dict:
    return {"title": {"text": name}, "tickfont": {"size": FONT}, "thickness": 16}


def _finish(figure: go.Figure, height: int, top: int = 10) -> go.Figure:
    return figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": top, "b": 10},
        font={"size": FONT},
        hoverlabel={"font": {"size": FONT}},
    )
