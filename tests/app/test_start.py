"""Streamlit's configuration lies beside the script, and is read wherever one stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, serve


def listening(port: int) -> set[str]:
    """Addresses that somebody listens on, as Linux writes them."""
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            for line in list(lines)[1:]:
                address, state = line.split()[1], line.split()[3]
                host, at = address.split(":")
                if state == "0A" and int(at, 16) == port:
                    found.add(host)
    return found


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="asks Linux who listens")
def test_started_from_another_folder_it_listens_to_this_machine_alone():
    with serve(ROOT, cwd=Path("/")) as address:
        port = int(address.rpartition(":")[2])
        assert listening(port) == {"0100007F"}  # 127.0.0.1, its bytes turned round


RUNS_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path

file = {file!r}
script = open(file, encoding="utf-8").read().partition("from app")[0]
code, before = compile(script, file, "exec"), set(sys.path)
sys.setswitchinterval(1e-6)

def run(_):
    with modified_sys_path(file):
        exec(code, {{"__file__": file}})

with ThreadPoolExecutor(8) as sessions:
    list(sessions.map(run, range(4000)))
missing, first = before - set(sys.path), len(sys.path)
run(0)
print(sorted(missing), len(sys.path) - first)
"""


def test_sessions_that_run_at_once_leave_the_path_whole():
    """Without an entry of it the server cannot import what it has not imported yet."""
    code = RUNS_AT_ONCE.format(file=str(ROOT / "app" / "main.py"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.stdout.strip() == "[] 0", done.stderr
