"""Streamlit's configuration lies beside the script, and is read wherever one stands."""

import os
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
