"""What runs on Windows and macOS, as far as Linux can tell: without what those systems lack. The
packages that we need are imported before, since they look at the system themselves."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.servers import free_port

pytestmark = pytest.mark.long
LACKING = {
    "win32": (
        ("resource", "fcntl", "pwd", "grp", "termios", "readline"),
        ("fork", "getuid", "geteuid", "setsid", "killpg", "O_NONBLOCK", "mkfifo"),
    ),
    "darwin": ((), ("sched_getaffinity",)),
}
CODE = """
import os, sys
import matplotlib.pyplot, pandas, plotly.graph_objects, psutil, pyarrow.parquet, streamlit, torch
import tokenizers, torch.distributed, streamlit.web.bootstrap, uvicorn, socket, subprocess
from streamlit.testing.v1 import AppTest
from torch.utils.data import DataLoader

modules, names = {lacking}
sys.modules |= dict.fromkeys(modules)
for name in names:
    delattr(os, name)
sys.platform = {system!r}

from headlight import load
from headlight.app import command
from headlight.app.command import doctor
from headlight.app.server import serve

load("copy").trace("a b c")
folder, port = sys.argv[1:]
doctor.main(["--port", port])
command.main(["trace", "copy", "a b", "--out", folder + "/weights of änna.csv"])
command.main(["page", "copy", "--out", folder + "/page of änna.html"])
page = AppTest.from_file({router!r}, default_timeout=60).run()
assert not page.exception, page.exception
if {system!r} == "win32":
    assert serve.main([]) == 1
print("all done")
"""


@pytest.mark.parametrize("system", LACKING)
def test_model_commands_and_a_page_run_without_what_is_linux_s(system, tmp_path):
    folder = tmp_path / "für alle"
    folder.mkdir()
    code = CODE.format(lacking=LACKING[system], system=system, router=str(ROOT / "app/router.py"))
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(free_port())],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("all done\n"), done.stdout + done.stderr
    assert {file.suffix for file in folder.iterdir()} == {".csv", ".html"}
    assert (system == "win32") == ("needs Linux or macOS" in done.stderr)
