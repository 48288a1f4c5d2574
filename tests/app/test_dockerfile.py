"""The steps of the Dockerfile, carried out in an empty folder, and the command of compose.yaml
in it. What pip installs is not installed again: this environment has the same requirements."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.app.test_killed import status
from tests.app.test_serve import needs_nginx, visit
from tests.conftest import ROOT
from tests.servers import free_port
from tests.waiting import wait_until

# As root one may write everywhere, unless without capabilities. Root's nginx needs these.
LEFT = "--bounding-set=-all,+chown,+setgid,+setuid"
PLAIN = ["setpriv", LEFT] if os.name == "posix" and os.getuid() == 0 else []
cannot_tell = pytest.mark.skipif(
    bool(PLAIN) and not shutil.which("setpriv"), reason="may write everywhere"
)
TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
LED_TO = re.compile(r"headlight=\w+")
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
            ignored = any(path.match(one) for path in (name, *name.parents) for one in patterns)
            if not ignored and not file.is_dir():
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
    """Each by a version that they allow, and, but for PyTorch, with hashes; no address."""
    nginx, torch, others = of("RUN")[:3]
    assert "install -y --no-install-recommends nginx " in nginx
    assert others.endswith("--require-hashes -r requirements.lock")
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    hashes = r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.sub(rf"^(#.*\n|[\w-]+==[\w.]+{hashes})", "", lock, flags=re.MULTILINE) == ""
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", lock, flags=re.MULTILINE))
    pinned |= dict(re.findall(r"(torch)==(\S+) --index-url \S+/cpu$", torch))
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()[1:]:
        needed = Requirement(line)
        assert needed.specifier.contains(pinned[needed.name]), line
    assert of("USER") == ["headlight"] and f"useradd --system {of('USER')[0]}" in of("RUN")


def composed(**environment: str) -> list[str]:
    """The command of compose.yaml with these variables, or their defaults."""
    (service,) = COMPOSE["services"].values()
    return [
        re.sub(r"\$\{(\w+):-(\w*)\}", lambda found: environment.get(found[1], found[2]), word)
        for word in service["command"]
    ]


@contextmanager
def started(image: Path, command: list[str]) -> Iterator[int]:
    """The port at which the command of a container serves, as soon as it is healthy."""
    port = str(free_port())
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin"}
    environment |= dict(pair.split("=") for pair in of("ENV")[0].split())
    command = [port if word == "8501" else word for word in command]
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

        wait_until(is_healthy, seconds=120)
        yield int(port)
    finally:
        server.terminate()
        server.wait(20)


@pytest.mark.long
@cannot_tell
def test_it_serves_a_class_and_writes_nothing_but_temporary_files(image):
    with started(image, json.loads(of("CMD")[0])) as port:
        assert status(port, "/") == 200


@pytest.mark.long
@cannot_tell
@needs_nginx
def test_composed_it_leads_each_visitor_to_one_of_several_processes(image):
    with started(image, composed(REPLICAS="2")) as port:
        address = f"http://127.0.0.1:{port}/_stcore/health"
        given = {replica for _ in range(20) for replica in LED_TO.findall(visit(address)[1])}
        assert given == {"headlight=replica1", "headlight=replica2"}
        assert not any(LED_TO.search(visit(address, cookie)[1]) for cookie in given)


def test_a_composed_container_is_bounded_and_writes_nothing_but_temporary_files():
    (service,) = COMPOSE["services"].values()
    assert service["read_only"] and service["tmpfs"] == ["/tmp"] and service["cap_drop"] == ["ALL"]
    assert {"mem_limit", "cpus", "pids_limit", "restart"} <= service.keys()
    assert composed()[:5] == json.loads(of("CMD")[0])[:5] and composed()[-2:] == ["--replicas", "2"]
