"""Arrays and labels in, Plotly figures out. Query is the row, key is the column, always."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from headlight.app.text.axis import MOST_LABELS, Axis, plain
from headlight.app.theme import DIFFERENCES, FONT, LINES

MOST_NAMED_CELLS = 128 * 128  # cells whose hover text names both tokens
MOST_LETTERS = 70  # total length of labels side by side; longer ones are turned
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star")


def attention(
    weights: np.ndarray, query: Axis, key: Axis, stops: Sequence[str] | None
) -> go.Figure:
    """The weights of a head, (query, key), in a scale of such `stops`; without any, the difference
    of two. A row that may attend to nothing is left blank."""
    seen = np.where(weights.any(axis=1, keepdims=True), weights, np.nan)
    figure = go.Figure(_cells(seen, query, key, "weight"))
    _sides(figure, query, key, width=400)
    scale = {"colorscale": stops, "cmin": 0, "cmax": 1} if stops else _differences(weights)
    bar = {"title": {"text": "weight"}, "tickfont": {"size": FONT}, "thickness": 16}
    figure.update_layout(coloraxis=scale | {"colorbar": bar})
    return _finish(figure, height=int(np.clip(190 + 34 * len(query.labels), 360, 1000)))


def lines(values: Mapping[str, Sequence[float] | np.ndarray], across: Axis, up: str) -> go.Figure:
    """One line per name, over the labels of `across`."""
    figure = go.Figure()
    for i, (name, line) in enumerate(values.items()):
        figure.add_trace(
            go.Scatter(
                y=line,
                name=name,
                mode="lines+markers",
                line={"color": LINES[i % len(LINES)], "dash": DASHES[i % len(DASHES)], "width": 3},
                marker={"symbol": MARKERS[i % len(MARKERS)], "size": 9},
                hovertemplate=f"{name}, %{{x}}: %{{y:.4f}}<extra></extra>",
            )
        )
    turned = sum(map(len, across.labels)) + len(across.labels) > MOST_LETTERS
    figure.update_xaxes({**across.layout(900), "tickangle": -90 if turned else 0})
    figure.update_yaxes(title={"text": up, "font": {"size": FONT}}, tickfont={"size": FONT})
    figure.update_layout(legend={"font": {"size": FONT}})
    return _finish(figure, height=400)


def _differences(values: np.ndarray) -> dict:
    largest = float(np.abs(values).max(initial=0)) or 1.0
    return {"colorscale": DIFFERENCES["light"], "cmin": -largest, "cmax": largest}


def _cells(z: np.ndarray, rows: Axis, columns: Axis, name: str) -> go.Heatmap:
    """One heatmap whose hover text names row, column and the exact number."""
    # If every position has a tick, the hover text uses its label: names for every cell would be
    # most of the data sent to the browser.
    cells, row, column = None, "%{y}", "%{x}"
    if max(z.shape) > MOST_LABELS and z.size > MOST_NAMED_CELLS:
        row, column = "position %{y}", "position %{x}"
    elif max(z.shape) > MOST_LABELS or rows.hover:
        cells = np.empty((*z.shape, 2), dtype=object)
        names = map(plain, rows.hover or rows.labels)
        cells[..., 0] = np.array([*names], dtype=object)[:, None]
        cells[..., 1] = np.array([plain(label) for label in columns.labels], dtype=object)
        row, column = "%{customdata[0]}", "%{customdata[1]}"
    gap = 1 if max(z.shape) <= 32 else 0
    return go.Heatmap(
        z=z,
        customdata=cells,
        coloraxis="coloraxis",
        hoverongaps=False,
        hovertemplate=f"{rows.title}: <b>{row}</b><br>{columns.title}: <b>{column}</b>"
        f"<br>{name} %{{z:.6f}}<extra></extra>",
        xgap=gap,
        ygap=gap,
    )


def _sides(figure: go.Figure, rows: Axis, columns: Axis, width: int) -> None:
    figure.update_xaxes(side="top", tickangle=-90, **columns.layout(width))
    figure.update_yaxes(**rows.layout(34 * len(rows.labels)))
    # Points that are clicked would leave room around the cells.
    figure.update_xaxes(range=[-0.5, len(columns.labels) - 0.5])
    figure.update_yaxes(range=[len(rows.labels) - 0.5, -0.5])


def _finish(figure: go.Figure, height: int) -> go.Figure:
    return figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        font={"size": FONT},
        hoverlabel={"font": {"size": FONT}},
    )
