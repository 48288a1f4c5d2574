"""`headlight align`: files of word alignments."""

import csv

import pytest

from headlight.app.command import main
from headlight.model import load
from headlight.model.analysis.alignment import of_trace, pharaoh

PAIRS = ("A man sleeps.", "A dog runs on the beach.\tEin Hund rennt am Strand.", "Two girls.")


@pytest.fixture
def pairs(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"\n{pair}\n" for pair in PAIRS), encoding="utf-8")
    return file


def test_a_line_a_sentence_as_python_has_it(pairs, tmp_path):
    out = tmp_path / "links.txt"
    main(["align", "en-de", "--file", str(pairs), "--out", str(out)])
    found = [load("en-de").align(*line.split("\t")).links() for line in PAIRS]
    assert out.read_text().split("\n") == [
        "", pharaoh(found[0]), "", pharaoh(found[1]), "", pharaoh(found[2]), "",
    ]  # fmt: skip
    assert "1-1" in pharaoh(found[1])


def test_a_table_of_the_pairs(pairs, tmp_path):
    out = tmp_path / "links.csv"
    main(["align", "en-de", "--file", str(pairs), "--out", str(out)])
    assert out.read_bytes().startswith(b"\xef\xbb\xbf")  # else Excel garbles its letters
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    words = load("en-de").align(*PAIRS[1].split("\t"))
    of_second = [row for row in rows if row["sentence"] == "4"]
    assert {(int(row["source_word"]) - 1, int(row["target_word"]) - 1) for row in of_second} == (
        words.links()
    )
    for row in of_second:
        i, j = int(row["source_word"]) - 1, int(row["target_word"]) - 1
        assert (words.source[i], words.target[j]) == (row["source"], row["target"])
        assert float(row["weight"]) == pytest.approx(words.weights[j, i], abs=1e-5)


@pytest.mark.parametrize(("more", "shift"), [((), 0), (("--row", "predicted"), 1)])
def test_one_head_at_either_row(tmp_path, more, shift):
    out = tmp_path / "links.txt"
    main(["align", "en-de", "A dog runs.", "--by", "1.2", *more, "--out", str(out)])
    en_de = load("en-de")
    words = en_de.alignment.of(of_trace(en_de.trace("A dog runs.")), [(0, 1)], shift)
    assert out.read_text() == pharaoh(words.links()) + "\n"
