"""Streamlit's configuration lies beside the script, and is read wherever one stands."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.conftest import ROOT


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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
    server = subprocess.Popen(
        [*command, "--server.port", str(port), "--server.headless", "true"],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            assert server.poll() is None, "the app ended by itself"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        assert listening(port) == {"0100007F"}  # 127.0.0.1, its bytes turned round
    finally:
        server.terminate()
        server.wait(20)


def test_nobody_is_told_and_no_traceback_is_shown():
    """What Streamlit makes of its configuration for this script, asked from another folder."""
    code = (
        "import sys; from streamlit import config; from streamlit.web import bootstrap\n"
        "config._main_script_path = sys.argv[1]; bootstrap.load_config_options({})\n"
        "names = ('browser.gatherUsageStats', 'client.showErrorDetails', 'server.address')\n"
        "print([config.get_option(name) for name in names])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "app" / "main.py")],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[False, 'none', '127.0.0.1']"
