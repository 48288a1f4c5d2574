"""The files of a release agree with one another."""

import re

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
