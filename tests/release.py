"""python -m tests.release: the checklist of a release, for a developer and for the workflow.

Walks its points in order, ends at the first that does not hold, and leaves the wheel in dist/."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable

import headlight
from tests.conftest import ROOT

VERSION = headlight.__version__
PYTHON = sys.executable
BY_HAND = f"""What no script can say:
- make test-browser, make test-long DATA=… and, on a quiet machine, make bench pass
- the pictures of make screenshots look right, and so does public/index.html after make site
- the image builds: make lock, docker compose build
Then publish it: git tag v{VERSION} && git push origin v{VERSION}"""


class NotReady(Exception):
    """Why, in a sentence."""


def changes_are_committed() -> None:
    if changed := _output("git", "status", "--porcelain"):
        raise NotReady(f"Commit these files, or remove them:\n{changed}")


def changelog_has_a_date() -> None:
    check_date((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def check_date(changelog: str) -> None:
    if not re.search(rf"^## {re.escape(VERSION)}, \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        raise NotReady(f"CHANGELOG.md needs the line “## {VERSION}, YEAR-MONTH-DAY”.")


def tag_is_the_version() -> None:
    pushed = os.environ.get("GITHUB_REF_NAME", "")
    check_tags([*_output("git", "tag", "--points-at", "HEAD").split(), *pushed.split()])


def check_tags(tags: Iterable[str]) -> None:
    """Without a tag, all is well: it comes last."""
    if wrong := {tag for tag in tags if re.match(r"v\d", tag)} - {f"v{VERSION}"}:
        raise NotReady(f"This commit is tagged {', '.join(sorted(wrong))}, not v{VERSION}.")


def documentation_is_up_to_date() -> None:
    _run(PYTHON, "-m", "tests.documentation")
    changes_are_committed()


def tests_pass() -> None:
    """That version, citation and changelog agree, among them."""
    _run("make", "test", f"PYTHON={PYTHON}")


def wheel_opens_the_app() -> None:
    """From an empty environment, with what it should hold and nothing else."""
    _run(PYTHON, "-m", "pytest", "-m", "long", "tests/browser/test_wheel.py")
    _run(PYTHON, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", ".")


POINTS: tuple[Callable[[], None], ...] = (
    changes_are_committed,
    changelog_has_a_date,
    tag_is_the_version,
    documentation_is_up_to_date,
    tests_pass,
    wheel_opens_the_app,
)


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _run(*command: str) -> None:
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise NotReady(f"Failed: {' '.join(command)}")


def main() -> int:
    for point in POINTS:
        print(f"… {point.__name__.replace('_', ' ')}", flush=True)
        try:
            point()
        except NotReady as why:
            print(why, file=sys.stderr)
            return 1
    print(BY_HAND)
    return 0


if __name__ == "__main__":
    sys.exit(main())
