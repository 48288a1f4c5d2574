"""The steps of the Dockerfile, carried out in an empty folder. What pip installs is not installed
again: this environment has the same requirements."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.load.server import free_port
from tests.waiting import wait_until

# As root one may write everywhere, unless without capabilities.
PLAIN = ["setpriv", "--bounding-set=-all"] if os.name == "posix" and os.getuid() == 0 else []
TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
STEPS = [line.split(" ", 1) for line in TEXT.splitlines() if line]


def of(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


@pytest.fixture
def image(tmp_path):
    """A folder with what is copied into the image, in which nobody may write."""
    patterns = (ROOT / ".dockerignore").read_text().split()
    for source, target in map(str.split, of("COPY")):
        for file in [ROOT / source, *(ROOT / source).rglob("*")]:
            name = file.relative_to(ROOT)
            if (
                any(name.match(one) for path in (name, *name.parents) for one in patterns)
                or file.is_dir()
            ):
                continue
            copied = tmp_path / target / file.relative_to(ROOT / source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copied)
    folders = [path for path in [tmp_path, *tmp_path.rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    yield tmp_path
    for folder in folders:
        folder.chmod(0o755)


def test_it_installs_what_the_requirements_say():
    torch, others = of("RUN")[:2]
    assert shlex.split(torch)[3] in (ROOT / "requirements.txt").read_text().splitlines()
    assert shlex.split(torch)[5].endswith("/cpu") and others.endswith("-r requirements.txt")
    assert of("USER") == ["headlight"] and f"useradd --system {of('USER')[0]}" in of("RUN")


@pytest.mark.long
@pytest.mark.skipif(bool(PLAIN) and not shutil.which("setpriv"), reason="may write everywhere")
def test_it_serves_a_class_and_writes_nothing_but_temporary_files(image):
    port = str(free_port())
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    environment |= dict(pair.split("=") for pair in of("ENV")[0].split())
    command = json.loads(of("CMD")[0].replace("8501", port))
    health = shlex.split(of("HEALTHCHECK")[0].partition("CMD ")[2].replace("8501", port))
    options = {"cwd": image, "env": environment}

    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([*PLAIN, *words], capture_output=True, text=True, **options)

    found = run(command[0], "-c", "import headlight; print(headlight.__file__)")
    assert Path(found.stdout.strip()) == image / "headlight" / "__init__.py"
    assert "PermissionError" in run(command[0], "-c", "open('a', 'w')").stderr
    server = subprocess.Popen([*PLAIN, *command], **options)
    try:

        def is_healthy() -> bool:
            assert server.poll() is None, "the app ended by itself"
            return run(*health).returncode == 0

        wait_until(is_healthy)
    finally:
        server.terminate()
        server.wait(20)
