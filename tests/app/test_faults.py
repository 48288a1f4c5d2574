"""What may go wrong around the program gets a sentence; nothing is lost, and the next action works.

Others are where they belong: a WebSocket that drops and a server that starts anew in
browser/test_reconnect.py, a program that is ended while it writes in
model/surveys/test_trace_command.py and model/training/test_train.py, broken folders and weights in
model/test_broken_checkpoints.py and test_not_finite.py.
"""

import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch

from headlight.app.command import main as command
from headlight.app.results.shown import Shown
from headlight.app.server.ports import check
from tests.app.common import forget_all
from tests.conftest import ROOT

SENTENCE = "the dog sees the cat"


@contextmanager
def most_bytes_of_a_file(count: int):
    """As a disk has that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("name", "ending"),
    [("trace", ".csv"), ("trace", ".npz"), ("align", ".txt")],
)
def test_a_full_disk_is_told_once_and_the_old_file_stays(tmp_path, capsys, name, ending):
    """No second traceback comes when what was half written is let go of."""
    out = tmp_path / f"out{ending}"
    out.write_text("old")
    arguments = [name, "en-de", "A dog runs.", "--out", str(out)]
    with pytest.raises(SystemExit) as end, most_bytes_of_a_file(10):
        command(arguments)
    said = capsys.readouterr().err if end.value.code == 1 else f"{end.value.code}\n"
    assert said.startswith(f"{out} cannot be written: ") and said.count("\n") == 1
    assert out.read_text() == "old" and list(tmp_path.iterdir()) == [out]
    command(arguments)
    assert out.stat().st_size > 10


def test_a_port_that_is_taken(capsys):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as end:
            check(port)
    said = str(end.value.code)
    assert said.startswith(f"Port {port} is used by another program; ")
    free = int(re.search(r"(\d+) is free", said)[1])
    check(free)
    for none in (0, 65536, -1):
        with pytest.raises(SystemExit, match="is not a port"):
            check(none)


@pytest.mark.parametrize(
    "error", [lambda: torch.empty(2**50), lambda: bytearray(2**60)], ids=["PyTorch", "Python"]
)
def test_memory_that_runs_out_ends_one_page_and_no_session(page, monkeypatch, error):
    page.query_params.update(model="uneven", source=SENTENCE, target="ein Hund")
    page.run()
    with monkeypatch.context() as patch:
        patch.setattr(Shown, "trace", property(lambda shown: error()))
        for key in ("stage", "take-away", "tokenizer"):
            page.switch_page(key).run()
            assert not page.exception, key
            assert any("more memory than is free" in one.value for one in page.error), key
    page.switch_page("stage").run()
    assert not page.exception and not page.error
    assert page.text_area(key="source").value == SENTENCE


def test_another_error_is_not_taken_for_a_lack_of_memory(page, monkeypatch):
    def fails(*given, **more):
        raise RuntimeError("a mistake of ours")

    page.query_params.update(model="uneven", source=SENTENCE, target="ein Hund")
    monkeypatch.setattr(Shown, "trace", property(fails))
    assert page.run().exception


@pytest.fixture
def in_use(page, models, tmp_path, monkeypatch):
    """A page that shows a model of a folder, and the folder."""
    folder = shutil.copytree(models / "uneven", tmp_path / "models" / "used")
    monkeypatch.setattr("sys.argv", ["router.py", "--models", str(tmp_path / "models")])
    forget_all()
    page.query_params.update(model="used", source=SENTENCE, target="ein Hund")
    page.run()
    assert not page.exception and not page.error
    yield page, folder
    forget_all()


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_folder_that_changes_while_it_is_used(in_use, models, what):
    """What is in memory is shown on; nothing is said of files that it did not come from."""
    page, folder = in_use
    shutil.rmtree(folder)
    if what == "replaced":
        shutil.copytree(models / "short", folder)
    page.text_area(key="source").set_value("a man walks home").run()
    for key in ("stage", "take-away"):
        page.switch_page(key).run()
        assert not page.exception, key
        said = [one.value for one in page.error]
        assert len(said) == (key == "take-away"), (key, said)
    assert said[0].startswith("The files of the model “used” were changed or removed")
    page.selectbox(key="step").set_value("10").run()
    assert not page.exception and "cannot be loaded" in page.error[0].value
    page.selectbox(key="model").set_value("en-de").run()
    assert not page.exception and not page.error


BARE = """
import io, os, sys, tempfile
assert not os.access(sys.argv[1], os.W_OK) and sys.getfilesystemencoding()
from pathlib import Path
from headlight.app import theme
from tests.app.common import App
theme.HEAD_START = 0
page = App(Path(sys.argv[1]), timeout=120)
page.query_params.update(model="en-de", source="Ein na\\xefve caf\\xe9 \\U0001f642")
page.run()
for key in ("stage", "take-away"):
    page.switch_page(key).run()
    assert not page.exception and not page.error, (page.exception, page.error)
from headlight.app.export import pictures
from headlight.app.command import main
main(["trace", "en-de", "A dog.", "--out", sys.argv[2] + "/w.csv"])
print("fine")
"""
READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" && exec "$2" -c "$3" "$1" "$4"
"""


@pytest.mark.long
def test_a_read_only_project_and_home_without_language_or_temporary_folder(tmp_path):
    """In a namespace of its own, where the machine allows one."""
    alone = ["unshare", "-rm"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no namespace")
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/proc/none", "LANG": "C", "LC_ALL": "C",
        "TMPDIR": "/nowhere", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0",
    }  # fmt: skip
    shell = ["sh", "-c", READ_ONLY, "sh", str(ROOT), sys.executable, BARE, str(tmp_path)]
    done = subprocess.run([*alone, *shell], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "fine", done.stderr[-2000:]
    assert (tmp_path / "w.csv").stat().st_size > 100
