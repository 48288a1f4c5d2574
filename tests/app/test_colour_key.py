"""Every page says what its colours mean."""

import json

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.components.colour_key import Scale, Swatch
from headlight.app.components.matrices import scales
from headlight.app.components.matrix import Matrix
from headlight.app.state.pages import PAGES

TEXT = "A dog runs."
NAMED = {  # page → what its line above the picture says
    "inside": "q·k",
    "lookup": "query",
}


def key_of(page) -> str:
    bodies = [html.proto.body for html in page.get("html")]
    return " ".join(body for body in bodies if "hl-key" in body)


def test_weights_may_go_up_to_more_than_one():
    longest = Matrix("length", 3 * np.eye(2), "system", "after", weights=True, largest=3)
    (scale,) = scales([longest])
    assert (scale.low, scale.high, scale.palette) == ("0", "3", theme.INKED)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_its_scale(page, name):
    """In a line above the picture, or in the title of the figure's own scale; and no weights have
    another one than was chosen."""
    page.query_params.update(model="en-de", source=TEXT, colours="viridis")
    page.run()
    page.switch_page(name).run()
    assert NAMED.get(name, "") in key_of(page)
    shown = [*page.get("bidi_component"), *page.get("html")]  # a chart may be of other numbers
    ink = theme.INKED["light"][9].encode()
    assert not any(ink in element.proto.SerializeToString() for element in shown)
    for chart in page.get("plotly_chart"):
        figure = json.loads(chart.proto.spec)
        for trace in figure["data"]:
            if trace["type"] != "heatmap":
                continue
            colours = figure["layout"][trace["coloraxis"]]
            assert colours.get("showscale") is False or colours["colorbar"]["title"]["text"]


def test_matrices_of_one_scale_share_it():
    score = np.array([[3.0, -44.6], [np.nan, 1.0]])
    matrices = (("q·kᵀ", score, False), ("weights", np.eye(2), True), ("masked", score, False))
    both, weights = scales([Matrix(n, x, "query", "key", weights=w) for n, x, w in matrices])
    assert both == Scale("q·kᵀ, masked", theme.DIFFERENCES, "value −45", "45")
    assert weights == Scale("weights", theme.INKED, "0", "1")


def test_a_name_is_shown_as_text():
    for each in (Swatch("<b>", theme.FOCUS), Scale("<b>", theme.INKED, "0", "1")):
        assert "&lt;b&gt;" in each.html()
