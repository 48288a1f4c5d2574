"""The page on what heads are worth."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from headlight.model.checkpoint import SHIPPED, load
from headlight.model.corpus import prune_command
from headlight.model.corpus.importance import Example, losses
from headlight.model.corpus.pruning import ONE_LEFT, Curve, Statistics, heads_of, together
from headlight.model.corpus.pruning_page import curves, head_table, heads_that_go, write_page
from headlight.model.corpus.survey import SIGNIFICANT, Survey
from headlight.model.training import tasks


def row(order="loss", repeat=1, retrained=0, off=0, value=40.0, p=1.0, **head):
    place = dict.fromkeys(("kind", "layer", "head")) | head
    numbers = dict(measure="bleu", value=value, low=value - 1, high=value + 1, p=p)
    return dict(order=order, repeat=repeat, retrained=retrained, off=off, **place, **numbers)


ROWS = [
    *(row(off=off, value=value) for off, value in ((0, 40), (2, 39.9), (6, 39.9))),
    row(off=4, value=39.5, p=SIGNIFICANT),
    *(row("random", repeat, off=off, value=40 - repeat * off)
      for repeat in (1, 2) for off in (0, 2)),
    row("loss", retrained=9, off=0), row("loss", retrained=9, off=6, value=39.86),
    row(ONE_LEFT, off=3, value=37.5, p=0.01, kind="cross", layer=2, head=4),
]  # fmt: skip


def test_curves_and_how_many_heads_go():
    found = curves(ROWS, "bleu")
    assert list(found) == [("loss", 0), ("random", 0), ("loss", 9)]
    assert found["random", 0].tolist() == [[0, 40, 39, 41, 1], [2, 37, 35, 39, 1]]
    assert {at: heads_that_go(points, 40) for at, points in found.items()} == {
        ("loss", 0): 2,
        ("random", 0): 0,
        ("loss", 9): 6,
    }


def test_a_page_with_its_picture(tmp_path):
    survey, out = Survey.load(SHIPPED / "en-de"), tmp_path / "page.md"
    write_page(ROWS, "bleu", survey, out)
    page = out.read_text()
    assert "![BLEU against heads left](page.svg)" in page
    assert "| loss |  | 40.00 | 39.90 | 39.50 | 39.90 | 2 |" in page
    assert "| loss | 9 steps | 40.00 |  |  | 39.86 | 6 |" in page
    assert "| cross | 2 | 4 | **−2.50** |" in page
    tree = ElementTree.parse(tmp_path / "page.svg")
    words = {text for one in tree.iter() for text in [one.text] if text}
    assert {"loss", "random", "loss, then 9 steps of training", "heads left"} <= words
    markers = [one.get("style") for one in tree.iter() if one.tag.endswith("}use")]
    assert sum("fill: #ffffff" in style for style in markers) == 1  # the significant loss
    before = (tmp_path / "page.svg").read_bytes()
    write_page(ROWS, "bleu", survey, out)
    assert (tmp_path / "page.svg").read_bytes() == before


def test_the_table_of_heads_is_the_survey_s():
    survey = Survey.load(SHIPPED / "en-de")
    for kind in ("encoder", "decoder", "cross"):
        for line in head_table(survey, kind):
            for head in range(1, 5):
                known = survey.head(kind, line["layer"] - 1, head - 1)["bleu"]
                text = line[f"head {head}"].replace("−", "-")
                assert float(text.strip("*")) == pytest.approx(known["value"], abs=5e-3)
                assert text.startswith("**") == (known["p_holm"] <= 0.05)


def test_of_one_head_left_it_is_the_one_that_loses_least():
    copy, task = load("copy"), tasks.task("copy", None, False)
    pairs = task.encode(copy.tokenizer, task.examples()["val"][:20], copy.model.config)
    examples = [Example(i, "", texts, None, "x") for i, texts in enumerate(pairs, start=1)]
    heads, plain = heads_of(copy), Statistics.of(copy, examples, "exact", ())
    rows = Curve(examples, "exact", 20, plain).one_left(copy, heads, examples)
    layers = list(dict.fromkeys((unit.kind, unit.layer) for unit in heads))
    found = {(one["kind"], one["layer"] - 1): one for one in rows if one["measure"] == "loss"}
    assert list(found) == layers
    for layer, one in found.items():
        of_layer = [unit for unit in heads if (unit.kind, unit.layer) == layer]
        lost = [
            np.divide(*losses(
                copy, examples, together([o for o in of_layer if o != left])
            ).sum(axis=0))
            for left in of_layer
        ]  # fmt: skip
        assert one["value"] == min(lost) and one["head"] - 1 == int(np.argmin(lost))


def test_the_command_writes_all_three(tmp_path):
    out, page = tmp_path / "curve.csv", tmp_path / "page.md"
    prune_command.main(["copy", "--ranking", "4", "--most", "6", "--samples", "20", "--every", "6",
                        "--orders", "entropy", "--out", str(out), "--page", str(page)])  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"curve.csv", "page.md", "page.svg"}
    table = pd.read_csv(out)
    assert {*table["order"]} == {"entropy", ONE_LEFT} and not table["retrained"].any()
    assert (table[table["order"] == ONE_LEFT].groupby("measure").size() == 6).all()
    assert page.read_text().count("\n| cross |") == 2
    prune_command.main(["copy", "--ranking", "4", "--most", "6", "--samples", "20", "--every", "4",
                        "--orders", "entropy", "--out", str(out), "--with", str(out)])  # fmt: skip
    both = pd.read_csv(out)
    counts = {*both[both["order"] == "entropy"]["off"]}
    assert counts == {0, 4, 6, 8, 12} and not both.duplicated().any()
    assert both[both["order"] == ONE_LEFT].equals(table[table["order"] == ONE_LEFT].set_index(
        both[both["order"] == ONE_LEFT].index))  # fmt: skip
