"""The card of a checkpoint, and the curve of its training."""

import contextlib
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from headlight.model import checkpoint
from headlight.model.card import curve, markdown, wilson
from headlight.model.checkpoint import SHIPPED

SVG = "{http://www.w3.org/2000/svg}"
HISTORY = [
    {"epoch": epoch, "loss": loss, "val_loss": loss + 0.5}
    for epoch, loss in enumerate([4.0, 2.0, 1.5, 1.0], start=1)
]


def lines(picture) -> list[np.ndarray]:
    """The corners of every path of four points, (point, 2)."""
    found = (
        np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d")), dtype=float)
        for path in picture.iter(f"{SVG}path")
        if "z" not in path.get("d")
    )
    return [points for points in found if len(points) == len(HISTORY)]


def test_the_curve_is_the_history():
    picture = ElementTree.fromstring(curve(HISTORY))
    assert {"epoch", "loss per token", "training", "validation"} <= {
        text.text for text in picture.iter(f"{SVG}text")
    }
    training, validation = lines(picture)
    across, up = (np.array([row[name] for row in HISTORY]) for name in ("epoch", "loss"))
    scale = (training[1, 1] - training[0, 1]) / (up[1] - up[0])
    assert scale < 0  # in an SVG y grows downwards
    assert np.allclose(training[:, 1] - training[0, 1], scale * (up - up[0]), atol=1e-3)
    assert np.allclose(validation[:, 1] - training[:, 1], scale * 0.5, atol=1e-3)
    step = training[1, 0] - training[0, 0]
    assert step > 0 and np.allclose(training[:, 0] - training[0, 0], step * (across - 1), atol=1e-3)


@pytest.mark.parametrize("folder", sorted(SHIPPED.iterdir()), ids=lambda folder: folder.name)
def test_the_card_of_a_shipped_model_is_that_of_its_config(folder):
    found = checkpoint.load(folder.name)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text == markdown(found.card, found.model, found.preset, folder.name)
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["library_name"] == "headlight" and front["license"] in ("mit", "other")
    (index,) = front["model-index"]
    assert index["name"] == folder.name and all(one["metrics"] for one in index["results"])
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    order = ["What it does", "Data and terms", "Scores", "Limits", "Heads worth seeing", "Recipe"]
    assert titles == [title for title in order if title in titles] and titles[-1] == "Recipe"


@pytest.mark.parametrize("folder", sorted(SHIPPED.iterdir()), ids=lambda folder: folder.name)
def test_what_a_card_shows_runs(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names := {})
    assert names["model"].tokenizer and ("print" in code) == bool(printed.getvalue())


def test_an_interval_holds_a_share_as_often_as_it_says():
    """Wilson's interval, against draws: 95% hold the true share, but for what is discrete."""
    rng = np.random.default_rng(0)
    for share, examples in ((0.77, 1066), (0.5, 100), (0.98, 400)):
        drawn = rng.binomial(examples, share, 4000) / examples
        held = [least <= share <= most for least, most in (wilson(x, examples) for x in drawn)]
        assert 0.93 <= np.mean(held) <= 0.97
    assert wilson(1.0, 1000) == pytest.approx((1 - 0.0038, 1), abs=2e-4)
