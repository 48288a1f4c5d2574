"""A model with numbers that are none says so on every page, and where they begin."""

import re
import shutil

import pytest
from safetensors.torch import load_file, save_file

from headlight.app.state.pages import PAGES
from headlight.model.analysis import finite
from headlight.model.checkpoint import load
from headlight.model.surveys.trace_command import main as trace_command
from tests.app.common import plain_text

FILE = "model.safetensors"
QUERY = "encoder.layers.1.self_attn.query.weight"
SPOILT = {  # folder → weight, where, what → what is said, a part of it
    "nan": (QUERY, (0, 0), float("nan"), f"of encoder self-attention, layer 2.*{QUERY}"),
    "infinite": ("decoder.layers.2.norm1.bias", 0, float("inf"),
                 "decoder self-attention, layer 3.*norm1"),
    "overflow": ("encoder.layers.0.feed_forward.linear2.bias", 0, 3e38,
                 "layer 2 on.*finite, but so large"),
}  # fmt: skip


def spoil(folder, name, at, value):
    weights = {name: weight.float() for name, weight in load_file(folder / FILE).items()}
    weights[name][at] = value
    save_file(weights, folder / FILE)


@pytest.fixture(scope="module")
def models(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spoilt")
    for name, (weight, at, value, _) in SPOILT.items():
        spoil(shutil.copytree(models / "uneven", folder / name), weight, at, value)
    unmet = shutil.copytree(models / "uneven", folder / "unmet")
    spoil(unmet, "decoder.layers.4.feed_forward.linear1.bias", 0, float("-inf"))  # ReLU: zero
    shutil.copytree(models / "uneven", folder / "uneven")
    return folder


def said(page) -> list[str]:
    sentences = [plain_text(error.value) for error in page.error]
    return [one for one in sentences if one.startswith(("This model's numbers", "Some values"))]


def opened(page, name):
    page.query_params.update(model=name, source="the dog sees the cat", target="ein Hund")
    return page.run()


@pytest.mark.parametrize("name", SPOILT)
def test_it_is_said_where_it_begins(page, name):
    (sentence,) = said(opened(page, name))
    assert re.search(SPOILT[name][3], sentence), sentence


def test_every_page_says_it(page):
    opened(page, "nan")
    for key in PAGES:
        page.switch_page(key).run()
        assert not page.exception, key
        (sentence,) = said(page)
        assert "layer 2" in sentence, key


def test_numbers_that_the_sentence_does_not_meet_are_told_too(page, models):
    assert finite.begins(load(models / "unmet").trace("the dog", "ein Hund")) == ""
    assert finite.parameters_not_finite(load(models / "uneven").model) == []
    (sentence,) = said(opened(page, "unmet"))
    assert "nothing in this sentence depends on them" in sentence


def test_no_file_is_made_of_them(models, tmp_path, capsys):
    with pytest.raises(SystemExit):
        trace_command([str(models / "nan"), "the dog", "--out", str(tmp_path / "x.csv")])
    assert f"The weights {QUERY} of" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
