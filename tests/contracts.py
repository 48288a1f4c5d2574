"""python -m tests.contracts: import-linter over headlight. It reads the folder of a package, so it
is shown one that holds app/ and model/."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def package_folder() -> Iterator[Path]:
    """A folder with the package headlight as one folder in it, of links to this checkout."""
    with TemporaryDirectory() as folder:
        package = Path(folder, "headlight")
        package.mkdir()
        (package / "__init__.py").symlink_to(ROOT / "headlight.py")
        for name in ("app", "model"):
            (package / name).symlink_to(ROOT / name)
        yield Path(folder)


def lint(folder: Path) -> subprocess.CompletedProcess:
    """Of the package headlight in a folder."""
    command = [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"]
    command.append(ROOT / "pyproject.toml")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def main() -> int:
    with package_folder() as folder:
        done = lint(folder)
    print(done.stdout, done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
