import numpy as np
import pytest

from headlight.app import charts
from headlight.app.text.axis import Axis
from headlight.app.theme import DIFFERENCES, INKED, PAPER

RANDOM = np.random.default_rng(0)


def rows_of_weights(*shape):
    weights = RANDOM.random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_equal_labels_stay_apart_and_tags_are_text():
    axis = Axis("query", ["the", "<b>dog</b> & co", "the"])
    figure = charts.attention(rows_of_weights(3, 3), axis, axis, INKED["light"])
    for side in (figure.layout.xaxis, figure.layout.yaxis):
        assert list(side.tickvals) == [0, 1, 2]
        assert list(side.ticktext) == ["the", "&lt;b&gt;dog&lt;/b&gt; &amp; co", "the"]
    assert figure.data[0].z.shape == (3, 3)


def test_hover_names_row_and_column_of_each_cell():
    """By the ticks where each position has one, else cell by cell, as long as there are few."""
    for length, by in ((3, "%{x}"), (100, "%{customdata[1]}"), (300, "position %{x}")):
        weights = rows_of_weights(2, length) if length < 300 else rows_of_weights(length, length)
        rows, columns = (Axis("", [f"{i}<" for i in range(n)]) for n in weights.shape)
        figure = charts.attention(weights, rows, columns, INKED["light"])
        assert f"<b>{by}</b>" in figure.data[0].hovertemplate
        assert np.array_equal(figure.data[0].z, weights)
        if length == 3:
            assert list(figure.layout.xaxis.ticktext) == ["0&lt;", "1&lt;", "2&lt;"]
        if length == 100:
            assert figure.data[0].customdata[1, 2].tolist() == ["1&lt;", "2&lt;"]


def test_a_row_that_attends_to_nothing_is_blank():
    weights = rows_of_weights(3, 3)
    weights[1] = 0
    z = charts.attention(weights, Axis("", "abc"), Axis("", "abc"), INKED["light"]).data[0].z
    assert np.isnan(z[1]).all() and not np.isnan(z[[0, 2]]).any()


def test_many_labels_are_thinned_to_what_fits():
    axis = Axis("", [str(i) for i in range(1000)])
    shown = axis.layout(room=400)
    assert len(shown["tickvals"]) <= charts.MOST_LABELS
    assert [axis.labels[value] for value in shown["tickvals"]] == shown["ticktext"]


def brightness(colour):
    """Relative luminance, as WCAG 2.2 defines it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_change_is_like_the_paper_and_more_differs_more_from_it(scheme):
    away = [abs(brightness(c) - brightness(PAPER[scheme])) for c in DIFFERENCES[scheme]]
    middle = len(away) // 2
    assert away[middle] < 0.1
    assert away[: middle + 1] == sorted(away[: middle + 1], reverse=True)
    assert away[middle:] == sorted(away[middle:])
