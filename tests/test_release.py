"""The files of a release agree with one another."""

import re
import tomllib

import yaml

import headlight
from tests.conftest import ROOT


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+?),? ", changes, flags=re.MULTILINE)
    assert cited["version"] == newest[1] == headlight.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", headlight.__version__)


def test_the_citation_has_what_its_format_requires():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= {*cited}
    assert cited["license"] == "MIT" and (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_the_package_asks_for_what_was_tested_and_for_no_less():
    """Its lower bounds are those of requirements.txt, which may add upper ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    tested = [line for line in lines if not line.startswith("#")]
    assert project["dependencies"] == [line.partition(",<")[0] for line in tested]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["keywords"] == cited["keywords"]
    assert [each["name"] for each in project["authors"]] == [
        each["name"] for each in cited["authors"]
    ]


def test_what_contributors_are_told_to_run_exists():
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = {*re.findall(r"make ([\w-]+)", told)}
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets and all(
        re.search(rf"^{target}:", made, flags=re.MULTILINE) for target in targets
    )
