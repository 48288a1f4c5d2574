"""The covered pictures of the shipped lessons by name, and of the plan for a class by step: data of
components/shared/covered.js. tests/covered_pictures.py makes them out of the models and says what
is in them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("pictures.json")
Picture = Mapping[str, Any]


@cache
def _pictures() -> Mapping[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def of_lessons() -> Mapping[str, Picture]:
    return _pictures()["lessons"]


def of_plan() -> Sequence[Picture | None]:
    return _pictures()["plan"]
