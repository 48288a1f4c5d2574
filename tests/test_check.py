"""What `make check` runs is near to what changed, and fits into its time."""

import ast
import json
import random
from pathlib import Path

import pytest

from tests import check
from tests.conftest import ROOT
from tests.suite import DURATIONS


@pytest.mark.parametrize(
    ("file", "nearest"),
    [
        ("model/masks.py", "tests/model/test_masks.py"),
        ("model/probing/trace.py", "tests/model/probing/test_trace.py"),
        ("app/charts.py", "tests/app/test_charts.py"),
        ("app/components/head_grid/index.js", "tests/browser/test_head_grid.py"),
        ("tests/app/test_heads.py", "tests/app/test_heads.py"),
    ],
)
def test_the_nearest_are_those_of_its_name(file, nearest):
    distances = check.distances([file])
    assert distances[nearest] == 0 == min(distances.values())
    assert (check.EVERY_PAGE in distances) or not file.startswith("app/")
    assert all((ROOT / test).is_file() for test in distances)


def test_those_that_import_it_come_before_those_that_import_these():
    distances = check.distances(["model/masks.py"])
    for test, distance in distances.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        if distance:
            is_near = "headlight.model.masks" in imported or "model/masks.py" in text
            assert (distance == 1) == is_near, test


def test_of_several_files_the_nearest_counts():
    files = ["model/masks.py", "app/wording/notices.py"]
    alone = [check.distances([file]) for file in files]
    together = check.distances(files)
    assert together.keys() == alone[0].keys() | alone[1].keys()
    for test, distance in together.items():
        assert distance == min(one[test] for one in alone if test in one)


def test_a_view_is_near_to_what_opens_it():
    distances = check.distances(["app/views/take_away.py"])
    assert distances["tests/app/test_take_away.py"] == 0
    assert distances["tests/app/test_other_models.py"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_they_fit_into_the_time_the_nearest_first(seed, tmp_path, monkeypatch):
    chance = random.Random(seed)
    seconds = {str(test): chance.uniform(1, 30) for test in range(20)}
    monkeypatch.setattr(check, "DURATIONS", tmp_path / "durations.json")
    check.DURATIONS.write_text(json.dumps(seconds))
    nearest = {test: chance.randrange(4) for test in seconds}
    chosen, rest = check.within(60, nearest)
    assert {*chosen, *rest} == {*seconds} and len(chosen) + len(rest) == len(seconds)
    assert sum(seconds[test] for test in chosen) <= 60
    for test in rest:  # it did not fit beside those that are nearer
        before = sum(seconds[one] for one in chosen if nearest[one] <= nearest[test])
        assert before + seconds[test] > 60


def test_every_file_in_the_table_of_durations_exists():
    assert all((ROOT / file).is_file() for file in json.loads(DURATIONS.read_text()))
    assert DURATIONS.parent == Path(check.__file__).parent
