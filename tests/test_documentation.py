"""The documentation builds, its links lead somewhere, its code runs, and what it says of a model is
so. Its pages in a browser: tests/browser/test_documentation.py."""

import contextlib
import dataclasses
import io
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from headlight.app import command
from headlight.app.lessons import class_plan
from headlight.app.state.address import PLACE
from headlight.app.state.pages import MENU
from headlight.app.state.settings import SETTINGS
from headlight.model import Masks, load, presets, transformer
from headlight.model.probing import changes
from headlight.model.probing.changes import check, parse
from headlight.model.probing.sites import parts_of
from tests import claims, documentation
from tests.conftest import ROOT, long_but
from tests.documentation import DOCS
from tests.markup import Markup

MARKDOWN = [ROOT / "README.md", *documentation.pages()]
SHAPES = DOCS / "reference" / "shapes.md"
MOST_WORDS = {"README.md": 600}
MOST_MEDIAN, LONGEST = 15, 28  # words of a sentence
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|vs|cf|Fig)\.")
# Commands that start a server, download, install or take long are tried elsewhere. That those of
# ours exist, their help on the page Commands shows.
STARTS = re.compile(
    r"headlight( --.*)?( +#.*)?$|headlight (check|checkup|page|doctor|lessons|train|evaluate|"
    r"survey|data|pretrained|back-translate|average|describe|snapshots) |(pip|uvx|make|docker|"
    r"accelerate|streamlit|python|py|python3) |\.venv"
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> list[str]:
    """Paragraphs and items of lists, without code, tables, headings and markup."""
    text = COMMENT.sub("", FENCE.sub("", text))
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        is_item = re.match(r"\s*([-*] |\d+\. )", line)
        is_other = not line.strip() or re.match(r"\s*(\||#|!\[|::: |---)", line)
        if is_item or is_other:
            blocks.append([])
        if not is_other:
            blocks[-1].append(re.sub(r"^\s*([-*] |\d+\. |> )", "", line).strip())
    return [plain(" ".join(block)) for block in blocks if block]


def plain(block: str) -> str:
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    block = re.sub(r"<https?://[^>]*>", "LINK", block)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", re.sub(r"`[^`]*`", "CODE", block))


def sentences(block: str) -> list[list[str]]:
    """Words of each sentence."""
    block = ABBREVIATION.sub(lambda found: found[0].replace(".", "·"), block)
    parts = re.split(r"(?<=[.!?…:])[”’\")]*\s+(?=[“‘\"(]*[A-Z0-9√])", block)
    words = [re.findall(r"[\w√−-]+(?:['’.,·]\w+)*", part) for part in parts]
    return [found for found in words if found]


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_sentences_are_short(page):
    found = [one for block in prose(page.read_text("utf-8")) for one in sentences(block)]
    long = [" ".join(words) for words in found if len(words) > LONGEST]
    assert not long
    assert statistics.median(map(len, found)) <= MOST_MEDIAN
    assert sum(map(len, found)) <= MOST_WORDS.get(page.name, 10**6)


def is_read(key: str, texts: list[str]) -> bool:
    """Whether an address may say this of a setting, or of a place on the stage."""
    if key in PLACE:
        return bool(re.fullmatch(PLACE[key], texts[0]))
    return key in SETTINGS and SETTINGS[key].could_be(SETTINGS[key].parse(texts))


def test_every_address_of_the_teaching_plan_is_one_of_the_app():
    paths = {page.path for page in MENU}
    for slide in class_plan.plan().slides:
        path, _, query = slide.at.partition("?")
        asked = parse_qs(query)
        assert path in paths and all(is_read(*each) for each in asked.items()), slide.at


def test_what_comes_out_of_the_code_is_up_to_date():
    old = [
        name_of(page)
        for page in documentation.pages()
        if documentation.renewed(text := page.read_text("utf-8")) != text
    ]
    assert not old, "run make docs"


def test_what_a_command_prints_stands_on_the_page_and_takes_no_pytorch():
    named = [[], *([name] for name in documentation.ALL_COMMANDS), ["pretrained", "add", "--into"]]
    code = f"""
import sys
from headlight.app import command
for words in {named}:
    command.main([*words, "--help"])
command.main(["presets"])
assert not {{"torch", "numpy"}} & sys.modules.keys()
assert not command._printed(["tarin", "--help"]) and not command._printed(["presets", "paper"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    parts = [f"\n{documentation.main_help()}\n"]
    parts += [documentation.helps(name)[0] for name in documentation.ALL_COMMANDS]
    assert done.returncode == 0, done.stderr
    assert [part for part in parts if part not in f"\n{done.stdout}"] == []


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_between_pages_of_the_repository_lead_somewhere(page):
    text = COMMENT.sub("", FENCE.sub("", page.read_text("utf-8")))
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if not urlsplit(link).scheme:
            assert (page.parent / link).exists(), link


@pytest.mark.long
def test_every_public_name_has_an_entry(site):
    anchors = Markup((site / "reference" / "index.html").read_text("utf-8")).places
    for of in documentation.public():
        assert f"{of.__module__}.{of.__name__}" in anchors


def test_arrays_have_the_shapes_that_are_listed():
    model = load("en-fr")
    trace, run = model.trace("A dog runs."), model.run("A dog runs.")
    known = {
        "trace": trace,
        "layer": 0,
        "written": model.generate("A dog runs."),
        "pairs": model.align("A dog runs."),
        "swept": model.swept(run),
        "parts": model.decomposition(run, 0, 5),
        "found": model.attribution(run, 0, 5),
    }
    sizes = {
        "layers": model.model.config.n_encoder_layers,
        "layers + 1": model.model.config.n_encoder_layers + 1,
        "heads": model.model.config.n_heads,
        "d_model": model.model.config.d_model,
        "d_head": model.model.config.d_model // model.model.config.n_heads,
        "vocab_size": len(trace.logits[0]),
        "row": len(trace.tgt.ids),
        "step": len(known["written"].path),
        "target word": len(known["pairs"].target),
        "source word": len(known["pairs"].source),
        "change": len(known["swept"].changes),
        "term": len(known["parts"].terms),
    }
    rows = re.findall(r"^\| `(\w+\.[^`]+)`[^|]*\| \(([^)]*)\)", SHAPES.read_text("utf-8"), re.M)
    fields = {field.name for field in dataclasses.fields(trace)}
    arrays = {name for name in fields if "ndarray" in str(type(trace).__annotations__.get(name))}
    assert arrays <= {re.split(r"\W", row[0])[1] for row in rows}
    for code, shape in rows:
        for kind, side in zip(trace.kinds, ("src", "tgt", "tgt"), strict=True):
            query, key = trace.texts_of(kind)
            own = {"query": len(query.ids), "key": len(key.ids)}
            own |= sizes | {"position": len(trace.texts[side].ids)}
            expected = tuple(own[name] for name in re.split(r", ?", shape) if name)
            assert eval(code, known | {"kind": kind, "side": side}).shape == expected, code


def test_links_into_the_app_say_what_the_app_reads():
    links = [
        link
        for page in MARKDOWN
        for link in re.findall(r"http://localhost:8501/[\w-]*\?[^>)\s]+", page.read_text("utf-8"))
    ]
    assert links
    for link in links:
        for key, texts in parse_qs(urlsplit(link).query).items():
            assert is_read(key, texts), (link, key)
            if key == "changes":
                assert parse(texts[0])


def test_every_page_of_the_app_is_described_and_pictured():
    for page in MENU:
        file = DOCS / "pages" / f"{page.key or 'attention'}.md"
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", file.read_text("utf-8"))
        assert pictures, page.title
        assert all((file.parent / picture).is_file() for picture in pictures), page.title


def test_every_change_that_is_written_can_be_made():
    text = (DOCS / "what-if.md").read_text("utf-8")
    model = load("en-fr").model
    written = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", FENCE.sub("", text))
    written += [code.strip() for _, language, code in FENCE.findall(text) if language == "text"]
    lines = [line for line in written if re.match(r"[a-z_.\d]+=[a-z]", line)]
    assert len(lines) >= len(documentation.EXAMPLES)
    for line in lines:
        check(parse(line), parts_of(model.sites(), model.sides()))


def test_parts_of_the_papers_file_are_there():
    text = (DOCS / "how-it-is-built.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:\d|table)[^|]*\| (.*) \|$", text, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)} - {"generator"}
    ours = {
        name
        for name, each in vars(transformer).items()
        if isinstance(each, type) and each.__module__ == transformer.__name__
    }
    assert named == ours


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:app|assets|docs|model|tests)/[^`\s]*)`", page.read_text("utf-8"))
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", long_but(MARKDOWN[:1], MARKDOWN), ids=name_of)
def test_code_runs(page, tmp_path, monkeypatch):
    """Python in one namespace for each page; what stands behind `# →` is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(changes, "VERBS", dict(changes.VERBS))  # a page adds one to each
    monkeypatch.setattr(presets, "PRESETS", dict(presets.PRESETS))
    text, names = page.read_text("utf-8"), {"__name__": "page"}
    for before, indent, language, code in blocks(text):
        code = re.sub(f"(?m)^{indent}", "", code)
        if before.startswith("run: no"):
            continue
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(code, page.name, "exec"), names)
            said = re.findall(r"^print\(.*\)  # → (.*)$", code, re.MULTILINE)
            lines = printed.getvalue().splitlines()
            assert [line for line in said if line not in lines] == []
        elif language in ("sh", "powershell"):
            for line in code.replace("\\\n", " ").splitlines():
                run(line.strip())


def recipes() -> str:
    text = (DOCS / "python.md").read_text("utf-8")
    return "".join(code for *_, language, code in blocks(text) if language == "python")


@pytest.mark.long
def test_types_of_the_recipes_are_clean(tmp_path):
    """Functions in them have no annotations."""
    pytest.importorskip("mypy", reason="mypy comes with the extra long")
    (tmp_path / "recipes.py").write_text(recipes(), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--allow-untyped-defs", "recipes.py"]
    command += ["--allow-untyped-calls", "--follow-imports=silent"]
    command += ["--disable-error-code=import-untyped"]  # of pandas
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


COMPLETED = """
from headlight import | load show check record Beam Masks Sampling capture view Trace save
en_fr.| trace translate generate sweep why paths align attribution baselines run with_parts
trace.| attention scores query key value src tgt row logits to_dataframe to_xarray
figure.| save widget to_plotly page selected
widget.| head cell observe
written.| text tokens probabilities run
why.| pairs asks offers
pairs.| links
check.| verdict scores softmax in_model
"""


@pytest.mark.long
@pytest.mark.parametrize("line", COMPLETED.strip().splitlines())
def test_an_editor_completes_public_names(line):
    jedi = pytest.importorskip("jedi", reason="jedi comes with the extra long")
    typed, names = line.split("|")
    code = f"{recipes()}\n{typed}"
    project = jedi.Project(ROOT, sys_path=[str(ROOT), *sys.path])
    offered = jedi.Script(code, project=project).complete(code.count("\n") + 1, len(typed))
    assert {*names.split()} - {each.name for each in offered} == set()


@pytest.mark.long
@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_commands_that_are_not_run_exist_with_their_options(page):
    helps = {"": documentation.main_help()}
    helps["check"] = command._printed(["check", "--help"])  # written on its page
    for line in re.findall(r"(?:^ *|-m )(headlight [^#\n]*)", codes(page), re.MULTILINE):
        words = shlex.split(line)[1:]
        name = "" if not words or words[0].startswith("-") else words[0]
        assert name in helps or name in documentation.ALL_COMMANDS, line
        if name not in helps:
            helps[name] = "\n".join(documentation.helps(name))
        for option in filter(re.compile("-").match, words):
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", helps[name]), line


def codes(page: Path) -> str:
    """The lines of a page that are commands, in blocks and in sentences."""
    text = COMMENT.sub("", page.read_text("utf-8"))
    shown = [code for _, language, code in FENCE.findall(text) if language in ("sh", "powershell")]
    within = re.findall(r"(?<!`)`(headlight [^`\n]+)`(?!`)", FENCE.sub("", text))
    return "\n".join([*shown, *within]).replace("\\\n", " ")


def blocks(text: str) -> list[tuple[str, str, str, str]]:
    """Of every block of code: the comment right before it, indentation, language and code."""
    found = re.findall(
        r"(?:<!-- (run: no[^>]*?) -->\s*)?^( *)```(\w+)\n(.*?)^ *```",
        text,
        re.DOTALL | re.MULTILINE,
    )
    return [*found]


def run(line: str) -> None:
    """A command of the page, but what STARTS something."""
    words = shlex.split(line, comments=True)
    if not words or STARTS.match(line):
        return
    assert words[0] == "headlight", line
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [page for page in MARKDOWN if "<!-- check:" in page.read_text("utf-8")], ids=name_of
)
def test_what_is_said_of_a_model_is_so(page):
    found = re.findall(r"<!-- check: (.*?) -->", page.read_text("utf-8"), re.DOTALL)
    wrong = []
    for claim in found:
        if not eval(claim, vars(claims) | {"Masks": Masks}):
            is_now = eval(re.split(r" (?:==|in|<) ", claim)[0], vars(claims) | {"Masks": Masks})
            wrong.append(f"{claim} (is {is_now!r})")
    assert not wrong
