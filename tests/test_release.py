"""The files of a release agree with one another."""

import re
import shutil
import subprocess
import tomllib
from importlib import metadata

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner

import headlight
from headlight.model.extras import EXTRAS, missing
from tests import release
from tests.conftest import ROOT

CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_everywhere():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+?),? ", changes, flags=re.MULTILINE)
    assert CITED["version"] == newest[1] == headlight.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", headlight.__version__)


def test_the_requirements_are_the_core_and_the_app_and_the_citation_is_the_project():
    extras = PROJECT["optional-dependencies"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    of_app = [*PROJECT["dependencies"], *extras["app"], *extras["bertviz"]]
    assert sorted(of_app) == [line for line in lines if not line.startswith("#")]
    assert PROJECT["keywords"] == CITED["keywords"] and CITED["license"] == "MIT"
    named = ([each["name"] for each in of["authors"]] for of in (PROJECT, CITED))
    assert len({*map(tuple, named)}) == 1
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


# What an extra brings by way of another package
BROUGHT = {"starlette": "streamlit", "uvicorn": "streamlit", "traitlets": "anywidget"}


def test_a_missing_package_is_in_the_extra_that_is_named():
    names = metadata.packages_distributions()
    for extra, packages in EXTRAS.items():
        asked = {re.split("[<>=]", each)[0] for each in PROJECT["optional-dependencies"][extra]}
        for package in packages:
            assert {BROUGHT.get(package, package), *names.get(package, ())} & asked, package
            assert f'pip install "headlight-attention[{extra}]"' in missing(f"{package}.inside")


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (release.check_date, f"## {release.VERSION}, 2026-12-01\n", "## 0.0.1, 2026-12-01\n"),
        (release.check_date, f"a\n## {release.VERSION}, 2026-12-01", f"## {release.VERSION}, soon"),
        (release.check_tags, [f"v{release.VERSION}", "main"], [f"v{release.VERSION}", "v9.0.0"]),
        (release.check_tags, [], ["v0.0.1"]),
    ],
)
def test_a_release_ends_where_a_point_does_not_hold(check, right, wrong):
    check(right)
    with pytest.raises(release.NotReady, match=re.escape(release.VERSION)):
        check(wrong)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    "told", [ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", *WORKFLOWS], ids=lambda file: file.name
)
def test_what_is_told_to_be_run_exists(told):
    text, made = told.read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"\bmake ([\w-]+)", text)}
    assert targets and targets <= {*re.findall(r"^([\w-]+):", made, flags=re.MULTILINE)}
    named = re.findall(r"(?<![\w/.])(?:tests|docs|app|model|assets)/[\w./-]*\w", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


FORMATS = {  # files → the schema of their format
    ".github/ISSUE_TEMPLATE/[!c]*.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    ".github/dependabot.yml": "dependabot",
    ".github/workflows/*.yml": "github-workflows",
    "CITATION.cff": "citation-file-format",
    "compose.yaml": "compose-spec",
}


@pytest.mark.parametrize(("files", "schema"), FORMATS.items())
def test_a_file_for_another_tool_has_its_format(files, schema):
    found = sorted(map(str, ROOT.glob(files)))
    arguments = ["--builtin-schema", f"vendor.{schema}", *found]
    done = CliRunner().invoke(check_jsonschema.main, arguments)
    assert found and done.exit_code == 0, done.output


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_finds_nothing_in_the_workflows():
    done = subprocess.run(["actionlint", *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_of_others_are_pinned_each_to_one_commit():
    used = [line for file in WORKFLOWS for line in re.findall(r"uses: (.*)", file.read_text())]
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", each) for each in used)
    assert len({*used}) == len({each.partition("@")[0] for each in used})


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_may_do_no_more_than_it_needs(file):
    """It reads; what writes is a job of its own, which runs no code of the checkout."""
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        writes = "write" in str(job.get("permissions", ""))
        assert not (writes and any("run" in step for step in job["steps"]))
