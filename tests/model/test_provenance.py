"""What is said of the sources, against their own formulas, as published."""

import re

import torch

from headlight.model import presets
from headlight.model.masks import Masks
from headlight.model.presets import build
from tests.conftest import ROOT
from tests.devices import here
from tests.model.common import random_ids, random_model

PAGE = (ROOT / "docs" / "implementations.md").read_text(encoding="utf-8")
_, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
SOURCES = {text.partition("\n")[0]: text for text in SECTIONS}  # preset → what is said of it


def added(n_tokens: int, d_model: int, table: int) -> tuple[int, ...] | None:
    """The shape of vanilla's sum, whose table is cut along its dimensions; None: it fails."""
    vectors, positions = torch.zeros(2, n_tokens, d_model), torch.zeros(table, d_model)
    try:
        return tuple((vectors + positions[:, :n_tokens]).shape)
    except RuntimeError:
        return None


def test_vanilla_s_sum_fails_but_where_it_is_said_not_to():
    for n_tokens in range(2, 9):
        for d_model in range(2, 9):
            for table in range(2, 9):
                passes = n_tokens >= d_model and table == n_tokens
                assert (added(n_tokens, d_model, table) is not None) == passes
    assert added(1, 6, 8) == (2, 8, 6)  # one word becomes eight
    assert "at least as long as the model is wide" in SOURCES["vanilla"]
    assert "one-word" in SOURCES["vanilla"]


def test_vanilla_s_empty_rows_are_nan_in_its_code_and_zeros_here():
    scores = torch.zeros(1, 4).masked_fill(torch.zeros(1, 4) == 0, float("-inf"))
    assert scores.softmax(dim=-1).isnan().all()
    model, src, tgt = random_model("vanilla"), random_ids(5), random_ids(4)
    nothing = here(torch.zeros(1, 1, 1, 5, dtype=torch.bool))
    _, *others = Masks().build(model, src, tgt)
    assert model(src, tgt, nothing, *others).isfinite().all()
    assert "NaN" in SOURCES["vanilla"]


def test_vanilla_s_text_and_code_project_alike():
    """Both make one projection of all d numbers, then cut it into heads."""
    assert "what a head projects" not in SOURCES["vanilla"]


def test_van_dijck_s_cuts_are_slices_where_there_are_as_many_heads_as_numbers():
    for n_heads in range(1, 7):
        for numbers in range(1, 7):
            x = torch.randn(1, 2, n_heads * numbers)
            cuts = [cut.tolist() for cut in torch.split(x, n_heads, dim=2)]
            slices = [part.tolist() for part in x.chunk(n_heads, dim=2)]
            assert (cuts == slices) == (n_heads == numbers)
    assert "as many numbers as there are heads" in SOURCES["van_dijck"]


def test_what_the_notebook_lacks_is_said():
    assert "no dropout" in SOURCES["bloem"] and "names no sizes" in SOURCES["bloem"]
    assert "notebook names none" in presets.PRESETS["bloem"].whose_sizes
    model = build("bloem", **presets.own_sizes("bloem", 50))
    rates = {
        part.p for part in model.modules() if isinstance(part, torch.nn.modules.dropout._DropoutNd)
    }
    assert rates == {0.0}
