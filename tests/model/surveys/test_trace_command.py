"""headlight trace"""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from headlight.app.command import main
from headlight.model.surveys import trace_command as command
from headlight.model.surveys.sentences import windows
from tests.conftest import ROOT
from tests.model.common import PATIENCE, forked, load
from tests.waiting import wait_until

WORDS = ["a", "dog", "man", "girl", "boy", "street", "water", "ball", "red", "blue"]


def python(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_sentence_as_one_types_it(tmp_path):
    """Quietly: Python used to warn that the package had imported the module already."""
    out = tmp_path / "weights.csv"
    done = python("-W", "error", "-m", "headlight", "trace", "en-de", "A dog, a cat.", "--out", out)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    read = pd.read_csv(out, keep_default_na=False)
    expected = load("en-de").trace("A dog, a cat.").to_dataframe()
    assert list(read.query_token) == list(expected.query_token)
    np.testing.assert_allclose(read.weight, expected.weight, rtol=0, atol=2e-6)


def refused(capsys, arguments) -> str:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code in (1, 2)  # what cannot be done, what is no command
    return capsys.readouterr().err


def arguments_of(file, out) -> list[str]:
    return ["en-de", "--file", str(file), "--out", str(out)]


def begun(errors, arguments: list[str]) -> None:
    """Headlight in a process of its own, as from the command line."""
    sys.stderr = errors.open("w", buffering=1)
    main(arguments)


def test_a_signal_leaves_the_old_file_and_nothing_else(tmp_path):
    """That of `kill`. It ends in the KeyboardInterrupt of ^C, which is tried above."""
    file, out, errors = (tmp_path / name for name in ("many.txt", "w.csv", "errors"))
    file.write_text("\n".join([f"{' '.join(WORDS * 5)}\tein Hund"] * 600))
    out.write_text("old")
    process = forked(begun, errors, ["trace", *arguments_of(file, out)])
    # Until it writes, beside the old file.
    wait_until(lambda: not process.is_alive() or len(list(tmp_path.iterdir())) == 4)
    process.terminate()
    process.join(PATIENCE)
    assert process.exitcode == 1, errors.read_text()
    assert errors.read_text().strip().splitlines()[-1] == f"Stopped. {out} was not written."
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"many.txt", "w.csv", "errors"}


@pytest.mark.parametrize("package", ["tqdm", "accelerate"])
def test_without_the_extra_for_training_it_works(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    command.main(["en-de", "A dog.", "--target", "Ein Hund.", "--out", str(tmp_path / "w.NPZ")])
    assert np.load(tmp_path / "w.NPZ")["1/target"].tolist() == ["<s>", "Ein", "Hund", "."]


def test_without_pyarrow_one_sentence_says_what_to_do(tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refused(capsys, ["en-de", "A dog.", "--out", str(tmp_path / "w.parquet")])
    assert said == 'pyarrow is not installed. Run: pip install "headlight-attention[train]"\n'


def test_changes_are_made_in_every_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "windows", partial(windows, most=1))  # one for each
    lines = tmp_path / "lines.txt"
    lines.write_text("A dog runs.\tEin Hund rennt.\nTwo men\tZwei Männer\n")
    out = tmp_path / "weights.npz"
    line = "encoder=hide:1; cross.2.3=uniform"
    command.main(["en-de", "--file", str(lines), "--out", str(out), "--changes", line])
    found = np.load(out)
    for number, pair in enumerate(lines.read_text().splitlines(), start=1):
        source, target = pair.split("\t")
        expected = load("en-de").trace(source, target, changes=line)
        for kind, weights in expected.attention.items():
            np.testing.assert_allclose(found[f"{number}/{kind}"], weights, atol=1e-5)
