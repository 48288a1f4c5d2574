"""Tables, read back by those they are for: pandas and NumPy."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from headlight.app.export import tables
from headlight.app.text import formats
from tests.app.common import view_of


@pytest.mark.parametrize("one", [False, True])
def test_tables_say_the_same_as_the_trace(trace, view, one):
    expected = trace.to_dataframe()
    if one:
        of = (expected.attention == "cross") & (expected.layer == 3) & (expected["head"] == 2)
        expected = expected[of].reset_index(drop=True)
    as_csv = pd.read_csv(io.BytesIO(tables.csv(view, one)), keep_default_na=False)
    as_parquet = pd.read_parquet(io.BytesIO(tables.parquet(view, one)))
    for found, tolerance in ((as_csv, 1e-8), (as_parquet, 0)):
        assert (found.pop("sentence") == 1).all()
        assert list(found) == list(expected)
        for column in expected:
            if column == "weight":
                assert np.abs(found[column] - expected[column]).max() <= tolerance
            else:
                assert found[column].tolist() == expected[column].tolist()
    held = parquet.read_metadata(io.BytesIO(tables.parquet(view, one))).metadata
    assert json.loads(held[b"headlight"]) == view.settings


def test_numpy_reads_weights_tokens_and_settings(trace, view):
    with np.load(io.BytesIO(tables.npz(view)), allow_pickle=False) as found:
        assert set(found) == {*trace.attention, "source", "target", "settings"}
        for kind, weights in trace.attention.items():
            assert (found[kind] == weights).all() and found[kind].dtype == np.float32
        assert tuple(found["source"]) == trace.src.tokens
        assert json.loads(str(found["settings"])) == view.settings
    with np.load(io.BytesIO(tables.npz(view, one_head=True)), allow_pickle=False) as found:
        assert (found["cross"] == trace.attention["cross"][2:3, 1:2]).all()
        assert "encoder" not in found


def test_hostile_tokens_are_text_in_tables(hostile):
    expected = list(hostile.trace.src.tokens)
    found = pd.read_parquet(io.BytesIO(tables.parquet(hostile, one_head=True)))
    assert found.key_token[: len(expected)].tolist() == expected
    table = tables.csv(view_of(hostile.trace), one_head=True)
    assert b",=1+1," not in table and b",'=1+1," in table
    text = pd.read_csv(io.BytesIO(table), keep_default_na=False, lineterminator="\n")
    safe = ["'=1+1" if token == "=1+1" else token.replace("\0", "") for token in expected]
    assert text.key_token[: len(expected)].tolist() == safe


def test_sizes_are_foreseen(view):
    for one in (False, True):
        for ending, make in (("csv", tables.csv), ("npz", tables.npz)):
            foreseen, real = tables.size(view, ending, one), len(make(view, one))
            assert 0.5 < real / foreseen < 2 or real < 10_000
    assert formats.size(3_400_000) == "3 MB" and formats.size(12_300) == "12 kB"
