"""`headlight doctor` finds what would keep the app from working."""

import importlib.metadata
import re
import shutil
import socket
import sys
from types import SimpleNamespace

import psutil
import pytest
import torch

import headlight
from headlight.app import command
from headlight.app.command import doctor
from tests.conftest import ROOT
from tests.servers import free_port


def checked(capsys, *arguments: str) -> tuple[list[str], int]:
    """Its lines, and with what it exits."""
    status = 0
    try:
        doctor.main(arguments)
    except SystemExit as end:
        status = end.code
    return capsys.readouterr().out.splitlines(), status


def test_a_machine_that_runs_the_tests_is_well(capsys):
    lines, status = checked(capsys, "--port", str(free_port()))
    assert status == 0 and len(lines) == 10 and all(line.startswith("ok") for line in lines)
    assert f"PyTorch    {torch.__version__}" in lines[2]


def absent(name):
    raise importlib.metadata.PackageNotFoundError(name)


def memory():
    return SimpleNamespace(available=3e8, total=2e9)


def disk(_):
    return SimpleNamespace(free=1e8)


SPOILT = [  # what is replaced, the line that says so, and what it says
    (lambda m: m.setattr(sys, "version_info", (3, 10)), 1, "Python 3.11 or newer"),
    (lambda m: m.setattr(torch, "__version__", "2.5.1+cpu"), 2, "2.5.1.*too old.*>=2.6"),
    (lambda m: m.setattr(importlib.metadata, "version", absent), 3, "streamlit, plotly.*missing"),
    (lambda m: m.setattr(psutil, "virtual_memory", memory), 6, "0.3 GB free"),
    (lambda m: m.setitem(sys.modules, "psutil", None), 6, "psutil.*pip install"),
    (lambda m: m.setattr(shutil, "disk_usage", disk), 7, "0.1 GB free"),
]


@pytest.mark.parametrize(("spoil", "line", "says"), SPOILT)
def test_what_is_wrong_is_named_and_the_rest_is_still_checked(
    monkeypatch, capsys, spoil, line, says
):
    monkeypatch.setattr(doctor, "model", lambda: "not tried")
    spoil(monkeypatch)
    lines, status = checked(capsys)
    assert status == 1 and len(lines) == 10
    assert lines[line].startswith("NO") and re.search(says, lines[line]), lines[line]


def test_a_port_that_is_taken_is_named(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "model", lambda: "not tried")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        lines, status = checked(capsys, "--port", str(port))
    assert status == 1 and f"Port {port} is used by another program" in lines[8]
    assert "not a port" in checked(capsys, "--port", "70000")[0][8]


def test_it_asks_for_what_the_requirements_ask_for():
    requirements = (ROOT / "requirements.txt").read_text()
    bounds = (".".join(map(str, bound)) for bound in (doctor.OLDEST_TORCH, doctor.NEWER_TORCH))
    assert "torch>={},<{}\n".format(*bounds) in requirements
    required = {re.split(r"[<>=]", line)[0] for line in requirements.splitlines()}
    assert {*doctor.PACKAGES} <= required
    oldest = ".".join(map(str, doctor.OLDEST_PYTHON))
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()


def test_a_newer_pytorch_is_said_and_not_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.15.0+cpu")
    assert doctor.pytorch().endswith("newer than those we tested")


def test_the_other_package_of_this_name_is_said(monkeypatch, tmp_path, capsys):
    """Installed before ours, it shares a folder with it; after ours, its files stand there."""
    assert not command.other_package()
    monkeypatch.syspath_prepend(tmp_path)
    installed = tmp_path / "headlight-0.1.14.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: headlight\nVersion: 0.1.14\n")
    for module, is_other in (("headlight.console", True), ("headlight.app.command", False)):
        (installed / "entry_points.txt").write_text(f"[console_scripts]\nheadlight={module}:main\n")
        assert command.other_package() == is_other
    monkeypatch.setattr(command, "other_package", lambda: True)
    with pytest.raises(doctor.Problem, match=r"database migrations.*pip uninstall headlight"):
        doctor.package()
    monkeypatch.delattr(headlight, "__version__")
    assert command.main(["doctor"]) == 1 and capsys.readouterr().err.count("\n") == 1
