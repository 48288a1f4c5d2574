"""The wheel holds what the app needs, and works alone: beside a user's own model.py and app.py, and
with nothing of the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.servers import free_port, serving

pytestmark = pytest.mark.long
LARGEST = 75 * 2**20  # bytes
LARGEST_CORE = 50 * 2**20  # of what the core needs beside PyTorch and NumPy, installed
ENDS = "py", "conf", "css", "html", "js", "json", "md", "yaml"
SHIPPED = {  # folder → patterns of the files in it that are installed
    "app": (".streamlit/*", *(f"**/*.{end}" for end in ENDS)),
    "model": ("**/*.py",),
    "assets": ("*.svg", "checkpoints/**/*", "examples/*", "vendor/*"),
    "docs": ("commands.md",),
}
USERS_OWN = "raise SystemExit('a file of the user was imported')"


def tracked() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    command += [*SHIPPED, "headlight", "*.py", "*.toml", "*.txt", "*.md", "LICENSE"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy: setuptools writes into the folder that it builds from."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", built, checkout], check=True, capture_output=True)
    (file,) = built.glob("headlight_attention-*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """An environment that holds the wheel, and shares what it depends on with ours."""
    folder = tmp_path_factory.mktemp("environment")
    python = _environment(folder)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(_packages(folder))
    return python


def _packages(folder: Path) -> Path:
    bases = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("purelib", "venv", vars=bases))


def _environment(folder: Path) -> Path:
    """Its Python. It has our dependencies, but not the checkout: a .pth file that is reached by way
    of another one is not read."""
    venv.create(folder, with_pip=False)
    shared = [entry for entry in sys.path if Path(entry).name == "site-packages"]
    (_packages(folder) / "shared.pth").write_text("\n".join(shared))
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


@pytest.fixture(scope="module")
def editable(checkout, tmp_path_factory) -> Path:
    """An environment into which a checkout is installed with `pip install -e`, which shares what it
    depends on with ours."""
    python = _environment(tmp_path_factory.mktemp("editable"))
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps"]
    command += ["--no-build-isolation", "-e", checkout]
    subprocess.run(command, check=True, capture_output=True)
    return python


@pytest.fixture
def desk(tmp_path) -> Path:
    """A folder of a user, whose files are called like our folders, and a folder like ours."""
    for name in ("model.py", "app.py"):
        (tmp_path / name).write_text(USERS_OWN)
    (tmp_path / "headlight").mkdir()  # as a checkout is called: it holds no package itself
    return tmp_path


def test_it_holds_what_the_checkout_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        file.relative_to(ROOT).as_posix()
        for folder, patterns in SHIPPED.items()
        for pattern in patterns
        for file in (ROOT / folder).glob(pattern)
    } & {*tracked()}
    own = ("__init__.py", "__main__.py", "py.typed")
    assert inside == {f"headlight/{name}" for name in (*own, *expected)}
    assert wheel.stat().st_size <= LARGEST


@pytest.mark.parametrize("installed", ["python", "editable"])
def test_it_is_imported_beside_a_users_own_files(request, installed, desk):
    python = request.getfixturevalue(installed)
    code = "import headlight as h; h.load('copy').trace('a b c'); print(h.__file__)"
    done = subprocess.run([python, "-c", code], cwd=desk, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = Path(done.stdout.strip())
    assert file.parts[-2:] == ("headlight", "__init__.py") and not file.is_relative_to(ROOT)


def test_its_command_writes_a_file(python, desk):
    command = [python, "-m", "headlight", "trace", "copy", "a b", "--out", "weights.csv"]
    done = subprocess.run(command, cwd=desk, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (desk / "weights.csv").read_text("utf-8-sig").startswith("sentence,attention,layer,head")


def test_its_command_opens_the_app(python, desk, context):
    with _running([python, "-m", "headlight"], desk) as (address, printed):
        _expect_first_model(context, address)
    greeting, *more = [line.strip() for line in printed.read_text().splitlines() if line.strip()]
    assert "Streamlit" in greeting and more == [f"URL: {address}"]


def test_installed_into_an_empty_environment_it_opens_the_app(wheel, desk, context):
    """With everything that it depends on, as pip brings it."""
    folder = desk / "environment"
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([scripts / "python", "-m", "pip", "install", "-q", f"{wheel}[app]"], check=True)
    with _running([scripts / "headlight"], desk) as (address, _):
        _expect_first_model(context, address)


OF_TORCH = ("torch", "sympy", "networkx", "mpmath", "Jinja2", "MarkupSafe", "filelock", "fsspec")
CORE = """
from headlight import check, load, show
trace = load("copy").trace("a b c")
assert "<iframe" in show(trace)._repr_html_() and str(check.verdict("scores", lambda q, k: q))
trace.to_dataframe()
"""


def test_beside_pytorch_the_core_is_small_and_names_the_extra_that_is_missing(wheel, tmp_path):
    """What one has who has PyTorch: links to it and to what it needs."""
    linked = tmp_path / "torch"
    linked.mkdir()
    for name in (*OF_TORCH, "typing_extensions", "setuptools"):
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (linked / top).symlink_to(distribution.locate_file(top))
    venv.create(tmp_path / "environment", with_pip=True)
    packages = _packages(tmp_path / "environment")
    (packages / "linked.pth").write_text(str(linked))
    scripts = tmp_path / "environment" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([scripts / "python", "-m", "pip", "install", "-q", wheel], check=True)
    brought = sum(
        file.stat().st_size
        for top in packages.iterdir()
        if not top.name.startswith(("headlight", "numpy", "pip"))
        for file in ([top] if top.is_file() else top.rglob("*.*"))
    )
    assert brought <= LARGEST_CORE
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True)
    told = 'Run: pip install "headlight-attention[notebook]"\n'
    assert run([scripts / "python", "-c", CORE]).stderr.endswith(f"A table needs pandas. {told}")
    done = run([scripts / "headlight"])
    told = 'The app needs streamlit. Run: pip install "headlight-attention[app]"\n'
    assert (done.returncode, done.stderr) == (1, told)


@contextmanager
def _running(command: list, folder: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and a file of what it prints."""
    port, printed = free_port(), folder / "printed"
    environment = os.environ | {"STREAMLIT_SERVER_HEADLESS": "true"}
    with printed.open("w") as file:
        options = {"cwd": folder, "env": environment, "stdout": file}
        with serving([*command, "--port", str(port)], port, **options) as address:
            yield address, printed


def _expect_first_model(context, address: str) -> None:
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".st-key-stage_place canvas", timeout=60_000)
    page.close()
