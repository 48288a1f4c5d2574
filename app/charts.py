"""Arrays and labels in, Plotly figures out. Query is the row, key is the column, always."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from headlight.app.text.axis import MOST_LABELS, Axis, plain
from headlight.app.theme import DIFFERENCES, FONT, INKED, LINES, ink_on, ramp

STOPS = INKED["light"]  # of other numbers than weights
MOST_NAMED_CELLS = 128 * 128  # cells whose hover text names both tokens
MOST_LETTERS = 70  # total length of labels side by side; longer ones are turned
MOST_NUMBERED = 14  # columns; with more, the numbers in the cells would be too small to read
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
    scale = {"colorscale": stops, "cmin": 0, "cmax": 1} if stops else _scale(weights, None)
    figure.update_layout(coloraxis=scale | {"colorbar": _colorbar("weight")})
    return _finish(figure, height=_height(query, 34))


def tables(named: Mapping[str, np.ndarray], rows: Axis) -> go.Figure:
    """Tables of (row, dimension) side by side under their names, on one scale from −1 to 1."""
    figure = make_subplots(
        1,
        len(named),
        shared_yaxes=True,
        horizontal_spacing=0.02,
        column_titles=[f"<b>{plain(name)}</b>" for name in named],
    )
    for column, table in enumerate(named.values(), start=1):
        dimensions = Axis("dimension", [str(i) for i in range(table.shape[1])])
        cells = _cells(table, rows, dimensions, "value")
        hover = f"{rows.title} %{{y}}, dimension %{{x}}: %{{z:.4f}}<extra></extra>"
        # too many cells to name each in the hover text
        cells.update(customdata=None, hovertemplate=hover)
        figure.add_trace(cells, row=1, col=column)
        ticks = list(range(0, table.shape[1], max(1, table.shape[1] // 4)))
        figure.update_xaxes(tickvals=ticks, col=column)
    figure.update_xaxes(title={"text": "dimension", "font": {"size": FONT}}, tickfont_size=FONT)
    figure.update_yaxes(**rows.layout(34 * len(rows.labels)))
    figure.update_yaxes(range=[len(rows.labels) - 0.5, -0.5], showticklabels=False, title_text="")
    figure.update_yaxes(showticklabels=True, title_text=rows.title, col=1)
    figure.update_layout(
        coloraxis={
            "colorscale": DIFFERENCES["light"],
            "cmin": -1,
            "cmax": 1,
            "colorbar": _colorbar("value"),
        }
    )
    return _finish(figure, height=_height(rows, 24), top=40)


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


def curves(
    values: Mapping[str, tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]],
    across: str,
    up: str,
    log: bool = False,
) -> go.Figure:
    """One curve per name, through its x and y; `log`: logarithmic y axis."""
    figure = go.Figure()
    for i, (name, (x, y)) in enumerate(values.items()):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                name=plain(name),
                mode="lines",
                line={"color": LINES[i % len(LINES)], "dash": DASHES[i % len(DASHES)], "width": 3},
                hovertemplate=f"{plain(name)}<br>{across} %{{x}}: %{{y:.6g}}<extra></extra>",
            )
        )
    for axes, title in ((figure.update_xaxes, across), (figure.update_yaxes, up)):
        axes(title={"text": title, "font": {"size": FONT}}, tickfont={"size": FONT})
    if log:
        figure.update_yaxes(type="log", dtick=1)
    # The legend goes above: its entries are sentences and would take half of the width.
    legend = {"font": {"size": FONT}, "orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(showlegend=len(values) > 1, legend=legend)
    return _finish(figure, height=400, top=40)


def matrix(
    values: np.ndarray,
    rows: Axis,
    columns: Axis,
    name: str,
    ends: tuple[float, float] | None = None,
    numbers: str = ".2f",
) -> go.Figure:
    """A table of numbers as a heatmap, with the numbers in the cells if they fit. `ends` are the
    ends of the colour scale; without them it is symmetric around zero."""
    figure = go.Figure(_cells(values, rows, columns, name))
    if numbers and values.shape[1] <= MOST_NUMBERED and len(rows.labels) <= 2 * MOST_NUMBERED:
        figure.add_trace(_numbers(values, ends, numbers))
    _sides(figure, rows, columns, width=400)
    if max(map(len, columns.labels), default=0) <= 8 and len(columns.labels) <= MOST_NUMBERED:
        figure.update_xaxes(tickangle=0)
    figure.update_layout(coloraxis=_scale(values, ends) | {"colorbar": _colorbar(name)})
    return _finish(figure, height=_height(rows, 34))


def matrices(
    named: Mapping[str, np.ndarray], rows: Axis, columns: Axis, name: str, ends: tuple[float, float]
) -> go.Figure:
    """Several tables side by side under their names, on one colour scale."""
    titles = [f"<b>{plain(title)}</b>" for title in named]
    spaced = {"shared_yaxes": True, "horizontal_spacing": 0.03}
    figure = make_subplots(1, len(named), column_titles=titles, **spaced)
    for column, values in enumerate(named.values(), start=1):
        figure.add_trace(_cells(values, rows, columns, name), row=1, col=column)
    _sides(figure, rows, columns, width=300)
    figure.update_xaxes(side="bottom")
    figure.update_yaxes(title_text="")
    figure.update_yaxes(title_text=rows.title, col=1)
    colours = {"colorscale": STOPS, "cmin": ends[0], "cmax": ends[1]}
    figure.update_layout(coloraxis=colours | {"colorbar": _colorbar(name)})
    return _finish(figure, height=_height(rows, 30), top=40)


def _scale(values: np.ndarray, ends: tuple[float, float] | None) -> dict:
    if ends is None:
        largest = float(np.abs(values).max(initial=0)) or 1.0
        return {"colorscale": DIFFERENCES["light"], "cmin": -largest, "cmax": largest}
    return {"colorscale": STOPS, "cmin": ends[0], "cmax": ends[1]}


def _numbers(values: np.ndarray, ends: tuple[float, float] | None, digits: str) -> go.Scatter:
    """Numbers drawn over their cells: Plotly would choose grey on green."""
    scale = _scale(values, ends)
    shares = (values - scale["cmin"]) / max(scale["cmax"] - scale["cmin"], 1e-12)
    row, column = np.indices(values.shape)
    return go.Scatter(
        x=column.ravel(),
        y=row.ravel(),
        text=[f"{value:{digits}}" for value in values.ravel()],
        mode="text",
        textfont={"size": FONT, "color": inks(scale["colorscale"], shares.ravel())},
        hoverinfo="skip",
        showlegend=False,
        meta=shares.ravel().tolist(),  # for other colours of the cells
    )


def inks(stops: Sequence[str], shares: Sequence[float] | np.ndarray) -> np.ndarray:
    """Black or white, whichever is readable at each share of a scale."""
    places = np.rint(255 * np.clip(np.nan_to_num(shares), 0, 1)).astype(int)
    return ink_on(ramp(stops, 256)[places])


def turn(points: np.ndarray, k: int, matrix: np.ndarray, sides: tuple[str, str]) -> go.Figure:
    """Points of the plane, (position, 2), each with a thin line to where `matrix` takes it, and
    position 0 with an arrow to position k."""
    turned = points @ matrix.T
    ways = np.stack([points, turned, np.full_like(points, np.nan)], axis=1).reshape(-1, 2)
    figure = go.Figure(
        go.Scatter(
            x=ways[:, 0],
            y=ways[:, 1],
            mode="lines",
            line={"color": LINES[0], "width": 2},
            name=f"p → matrix · PE(p), k = {k}",
            hoverinfo="skip",
        )
    )
    largest = max(float(np.abs(points).max()), 1e-9)
    named = [0, k]  # and further points that do not overlap these
    for p, point in enumerate(points):
        if np.linalg.norm(points[named] - point, axis=1).min() > largest / 4:
            named.append(p)
    figure.add_trace(
        go.Scatter(
            x=points[:, 0],
            y=points[:, 1],
            mode="markers+text",
            text=[str(p) if p in named else "" for p in range(len(points))],
            textposition="top center",
            textfont={"size": FONT},
            marker={"color": LINES[1], "size": 9},
            name="PE(p)",
            hovertemplate="position %{pointNumber}: %{x:.6f}, %{y:.6f}<extra></extra>",
        )
    )
    figure.add_annotation(
        x=turned[0, 0],
        y=turned[0, 1],
        ax=points[0, 0],
        ay=points[0, 1],
        **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": ""},
        **{"showarrow": True, "arrowhead": 2, "arrowwidth": 3, "arrowcolor": LINES[1]},
    )
    for axes, title in zip((figure.update_xaxes, figure.update_yaxes), sides, strict=True):
        axes(title={"text": title, "font": {"size": FONT}}, tickfont={"size": FONT})
        axes(range=[-1.25 * largest, 1.25 * largest], constrain="domain")
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    legend = {"font": {"size": FONT}, "orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(legend=legend)
    return _finish(figure, height=460, top=40)


def _cells(
    z: np.ndarray, rows: Axis, columns: Axis, name: str, colours: str = "coloraxis"
) -> go.Heatmap:
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
        coloraxis=colours,
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
