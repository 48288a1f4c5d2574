"""headlight: one door for every command."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headlight.app.command import COMMANDS as OF_APP
from headlight.app.command import main as headlight_main
from headlight.model import commands as door
from headlight.model.checkpoint import SHIPPED
from headlight.model.pretrained.weights import CannotLoad
from tests.conftest import ROOT


def test_it_lists_every_command(capsys):
    assert headlight_main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in door.COMMANDS)


SHORT = ("lessons check", "ascii")  # in `make test`
EVERY = [
    *door.COMMANDS, *OF_APP, "", "check", "data fetch", "lessons", "lessons check",
    "lessons report", "pretrained add", "pretrained list",
]  # fmt: skip
NOT_HERE = "import sys; sys.modules.update(dict.fromkeys({names!r}))"
OF_TRAINING = ("accelerate", "pooch", "sacrebleu", "tqdm")  # the extra `train`


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        pytest.param(name, encoding, marks=[] if (name, encoding) == SHORT else pytest.mark.long)
        for name in EVERY
        for encoding in ("cp1252", "ascii")
    ],
)
def test_every_command_explains_itself_in_any_console(name, encoding, tmp_path):
    """As a process, where its own module is the first to read the arguments, in an installation
    that cannot train."""
    (tmp_path / "sitecustomize.py").write_text(NOT_HERE.format(names=OF_TRAINING))
    consoles = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "headlight", *name.split(), "--help"],
        cwd=ROOT, env=os.environ | consoles, capture_output=True, encoding=encoding, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"usage: headlight {name}".strip())


FILES = {  # command → arguments that name a file or folder that is not there
    "train": ["pairs", "{missing}.tsv", "--out", "{out}"],
    "evaluate": ["{missing}"],
    "describe": ["{missing}"],
    "snapshots": ["{missing}"],
    "why": ["{missing}", "a", "cross.1.1=1>1"],
    "paths": ["{missing}", "a", "b"],
    "average": ["{missing}", "{missing}", "--out", "{out}"],
    "back-translate": ["{missing}", "--out", "{out}.tsv"],
    "trace": ["{missing}", "a b", "--out", "{out}.csv"],
    "trace --file": ["copy", "--file", "{missing}", "--out", "{out}.csv"],
    "record": ["{missing}", "a b", "--out", "{out}.safetensors"],
    "record --file": ["copy", "--file", "{missing}", "--out", "{out}.safetensors"],
    "align": ["{missing}", "a b", "--out", "{out}.txt"],
    "align --file": ["copy", "--file", "{missing}", "--out", "{out}.txt"],
    "survey": ["{missing}", "--out", "{out}.parquet"],
    "survey --file": ["copy", "--file", "{missing}", "--out", "{out}.parquet"],
    "pretrained": ["add", "{missing}", "--into", "{out}"],
}


@pytest.mark.parametrize(
    "arguments",
    [["describe", "copy"], ["survey", "copy"], ["snapshots", str(SHIPPED / "copy")],
     ["align", "en-de", "--gold", "GOLD", "--choose"]],
)  # fmt: skip
def test_a_shipped_model_is_not_changed_unasked(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("GOLD").write_text('{"src_words": ["a"], "tgt_words": ["b"], "alignment": [[0, 0]]}\n' * 2)
    with pytest.raises(SystemExit, match=r"came with Headlight.*--change-shipped"):
        door.main(arguments)


def ended(end, capsys):
    """Its code, and what it says; a sentence Python prints, and ends with 1."""
    if isinstance(end.code, str):
        return 1, f"{end.code}\n"
    return end.code, capsys.readouterr().err


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_ends_every_command_alike(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would be quoted without its middle
    missing, out = Path("missing"), Path("out")
    arguments = [text.format(missing=missing, out=out) for text in FILES[name]]
    with pytest.raises(SystemExit) as end:
        door.main([name.partition(" ")[0], *arguments])
    code, said = ended(end.value, capsys)
    assert code == 1
    assert str(missing) in said and said.count("\n") == 1 and "Traceback" not in said
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with unusable things; a long path would be quoted without its middle."""
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("\n")
    Path("tabs.txt").write_text("a\tb\tc")
    Path("folder.csv").mkdir()
    return tmp_path


REFUSED = """
trace nothing dog --out w.csv | There is no checkpoint nothing
trace en-de "  " --out w.csv | The text is empty.
trace en-de dog --out nowhere/w.csv | w.csv cannot be written: No such file or directory.
trace en-de dog --out folder.csv | is a folder
trace en-de dog --out weights | must end in .npz, .csv, .parquet
trace en-de dog | required: --out
trace en-de --out w.csv | error: give
trace en-de dog --file tabs.txt --out w.csv | error: give
trace en-de --file tabs.txt --target y --out w.csv | error:
align reviews film --out x.txt | aligns nothing
align en-de dog --by 9.1 --out x.txt | no head 9.1
align en-de dog --by 0.1 --out x.txt | error:
align en-de dog --out x.pdf | error:
align en-de dog | required: --out
align en-de dog --choose --out x.txt | need --gold
align en-de dog --gold g | --gold measures
align en-de --gold g --by 1.1 --choose | --by and --row name the head
record english dog --target x --out x.safetensors | one text and no target
record english dog --changes cross=off --out x.safetensors | “cross=off”
why copy "a b c" "cross.2.1=2>2" --changes cross=of | there is no “of”
paths copy "a b" "a b c" | the same number of tokens
paths copy "a b c" "d b c" --keep 3 | from 0 to 1
paths copy "a b c" "d b c" --held-out a | expected 2 arguments
average copy copy --shares 1 --out out | 2 checkpoints need as many --shares
average copy copy --shares 1 -1 --out out | numbers from 0
average copy copy --shares 0 0 --out out | not all 0
average copy copy --out . | is not empty
train copy --out . | --resume
train copy --out out --start copy --d-ff 128 | as large as they are
train copy --out out --warmup 0 | --warmup must be a number from
train copy --out out --peak nan | --peak must be a number from
train copy --out out --attention-dropout 1.5 | --attention-dropout must be a number from
"""
LINES = [tuple(line.split(" | ")) for line in REFUSED.strip().splitlines()]


@pytest.mark.parametrize(("line", "sentence"), LINES)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(line, sentence, here, capsys):
    before = sorted(here.rglob("*"))
    with pytest.raises(SystemExit) as end:
        door.main(shlex.split(line))
    code, said = ended(end.value, capsys)
    assert sentence in said.splitlines()[-1] and "Traceback" not in said
    assert code == 2 or (code == 1 and said.count("\n") == 1)
    assert sorted(here.rglob("*")) == before


def test_the_commands_that_take_no_file():
    assert set(door.COMMANDS) - {name.partition(" ")[0] for name in FILES} == {"data", "presets"}


@pytest.mark.parametrize(
    ("name", "said"),
    [("tarin", "Did you mean train?"), ("lesson", "Did you mean lessons?"), ("x", "Choose from ")],
)  # fmt: skip
def test_an_unknown_command_is_answered_without_pytorch(name, said):
    code = "import sys; sys.modules['torch'] = None; from headlight.app.command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, name], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"There is no command {name!r}. {said}")


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(door.COMMANDS, "train", ("nosuchpackage.train", ""))
    said = r"nosuchpackage is not installed\. Run: pip install \"headlight-attention\""
    with pytest.raises(SystemExit, match=said):
        door.main(["train"])


def test_its_arguments_are_those_of_the_command_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["headlight", "tarin", "train"])
    with pytest.raises(SystemExit, match="'tarin'"):
        headlight_main()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/there/x"), "/there/x: No space left on device."),
        (OSError(27, "File too large"), "File too large."),
        (FileNotFoundError("There is no checkpoint x."), "There is no checkpoint x."),
        (SystemExit("a" + "x" * 50_000 + "."), "a" + "x" * 149 + "…" + "x" * 148 + "."),
        (CannotLoad("x is cut off."), "x is cut off."),
    ],
)
def test_what_a_command_cannot_do_is_one_sentence(monkeypatch, error, said):
    class Fails:
        def main(self, arguments):
            raise error

    monkeypatch.setattr(door, "import_module", lambda name: Fails())
    with pytest.raises(SystemExit) as end:
        door.main(["train"])
    assert end.value.code == said
