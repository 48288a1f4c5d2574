"""headlight record"""

import numpy as np
import pytest

from headlight import load
from headlight.app.command import main
from tests.model.common import in_short
from tests.model.pretrained.folders import FAMILIES, write

CHANGED = "all.1.2=off; all.1=temperature:2.0"
LINES_OF = "", CHANGED
LINES = "the dog sees the cat\nthe cat sees the dog\n"


@pytest.mark.parametrize(
    "of",
    in_short(
        [(name, line) for name in ("en-fr", "english", "reviews", *FAMILIES) for line in LINES_OF],
        ("en-fr", ""), ("bert", CHANGED),
    ),
)  # fmt: skip
def test_each_weight_is_the_traces(tmp_path, of):
    name, changes = of
    model = name
    if name in FAMILIES:
        write(tmp_path / name, name)
        model = str(tmp_path / name)
    file, out = tmp_path / "lines.txt", tmp_path / "x.safetensors"
    ours = load(model)
    file.write_text(LINES + ("the cat\tthe dog\n" if ours.writes else ""))
    main(["record", model, "--file", str(file), "--changes", changes, "--out", str(out)])
    back = load(out)
    assert back.card["title"] == f"recording of {name}" and changes in back.card["look_for"]
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    for line, texts in zip(back.lines, lines, strict=True):
        expected, found = ours.trace(*texts, changes=changes), back.trace(line)
        assert found.texts == expected.texts
        for kind, weights in expected.attention.items():
            assert np.array_equal(found.attention[kind], weights)
