"""Files of weights, read back by others."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from headlight.model.probing import rows as row_module
from headlight.model.probing.rows import ROW_COLUMNS, kind_weights
from headlight.model.probing.rows import TOKENS as TOKEN_COLUMNS
from headlight.model.surveys import tables
from headlight.model.surveys.tables import TABLE_FILES, spreadsheet_safe, together
from headlight.model.tokenizer import Encoding
from tests.model.common import encoding, random_ids, random_model, traced

TEXT = ["attention", *TOKEN_COLUMNS]
TOKENS = ("=1+2", "@a", "-", "+", "\t", 'say "', "a,b", "NA", "ü 1/2", "'", "·ing", "</script>")


def named(ids) -> Encoding:
    plain = encoding(ids)
    return Encoding(plain.ids, TOKENS[: len(plain.ids)], plain.offsets)


@pytest.fixture(scope="module")
def traces():
    """Of three sentences; the first has every awkward token."""
    model = random_model()
    pairs = [(named(random_ids(12)), named(random_ids(7)))]
    pairs += [(encoding(random_ids(n)), encoding(random_ids(n + 2))) for n in (1, 5)]
    return [traced(model, *pair) for pair in pairs]


def written(suffix: str, traces) -> io.BytesIO:
    """In two goes, as a long file is."""
    file = io.BytesIO()
    table = TABLE_FILES[suffix](file)
    table.add(traces[:2], [1, 3])
    table.add(traces[2:], [4])
    table.close()
    return io.BytesIO(file.getvalue())


def as_frame(traces, numbers=(1, 3, 4)) -> pd.DataFrame:
    frames = [t.to_dataframe().assign(sentence=n) for n, t in zip(numbers, traces, strict=True)]
    return pd.concat(map(as_text, frames), ignore_index=True)


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(TEXT, str))


def test_parquet_is_the_same_table(traces):
    read = pd.read_parquet(written(".parquet", traces))
    assert list(read) == list(ROW_COLUMNS)
    assert [read[name].dtype for name in TEXT] == ["category"] * 4
    expected = as_frame(traces)
    for name in expected:
        assert list(read[name]) == list(expected[name]), name


def test_csv_is_the_same_table_and_no_spreadsheet_takes_a_token_for_a_formula(traces):
    assert written(".csv", traces).read(3) == b"\xef\xbb\xbf"  # else Excel garbles its letters
    read = pd.read_csv(written(".csv", traces), keep_default_na=False)
    expected = as_frame(traces)
    assert list(read) == list(ROW_COLUMNS)
    for name in TOKEN_COLUMNS:
        assert not any(token.startswith(("=", "+", "-", "@", "\t", "\r")) for token in read[name])
        expected[name] = expected[name].map(spreadsheet_safe)
    np.testing.assert_allclose(read.pop("weight"), expected.pop("weight"), rtol=0, atol=5.1e-9)
    for name in expected:
        assert list(read[name]) == list(expected[name]), name


def test_spreadsheet_safe():
    for text in ("=A1", "+1", "-", "@x", "\tx", "\r"):
        assert spreadsheet_safe(text) == f"'{text}"
    assert all(spreadsheet_safe(text) == text for text in ("", "a=b", "'=", "·-", "</s>", "1"))


def test_npz_holds_the_arrays_of_each_and_no_pickles(traces):
    file = written(".npz", traces)
    with np.load(file, allow_pickle=False) as read:
        assert len(read.files) == 3 * 5
        for number, seen in zip((1, 3, 4), traces, strict=True):
            assert tuple(read[f"{number}/source"]) == seen.src.tokens
            assert tuple(read[f"{number}/target"]) == seen.tgt.tokens
            for kind, weights in seen.attention.items():
                np.testing.assert_array_equal(read[f"{number}/{kind}"], weights)
    archive = zipfile.ZipFile(file)
    assert archive.testzip() is None
    zip64 = 45  # the version that an entry of more than 2 GiB needs
    assert all(entry.extract_version >= zip64 for entry in archive.infolist())


def test_a_long_sentence_is_written_in_parts(traces, monkeypatch):
    """A table in memory takes several times the room of the weights in it."""
    whole = {suffix: written(suffix, traces) for suffix in (".csv", ".parquet")}
    monkeypatch.setattr(row_module, "MAX_ROWS_IN_MEMORY", 500)
    monkeypatch.setattr(tables, "MAX_ROWS_IN_MEMORY", 500)
    sizes = [block.weights.size for block in kind_weights(traces, [1, 3, 4])]
    assert max(sizes) == 4 * 13 * 13  # one layer
    groups = list(together(sizes, int, 500))
    assert [size for group in groups for size in group] == sizes
    assert all(len(group) == 1 or sum(group) <= 500 for group in groups)
    assert written(".csv", traces).read() == whole[".csv"].read()
    parts, at_once = (pd.read_parquet(f) for f in (written(".parquet", traces), whole[".parquet"]))
    assert as_text(parts).equals(as_text(at_once))
