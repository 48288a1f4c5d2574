"""A page, a setting, a change and a family, each planted in a copy of the app in as few files as
docs/extending.md says, and shown whole."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from headlight.app.export import bundle
from headlight.app.export.view import permalink
from headlight.app.state import catalog
from headlight.app.state.pages import GROUPS, PAGES, check_modules
from headlight.app.state.settings import SETTINGS, headers, shared
from headlight.app.text import block_texts
from headlight.model import commands, load
from headlight.model.analysis.architecture import blocks
from headlight.model.presets import FAMILIES
from headlight.model.probing.changes import VERBS
from headlight.model.probing.reference import Reference
from tests.app.common import App, complete, components, forget_all, view_of
from tests.conftest import ROOT
from tests.model.pretrained.folders import write

TEXT = "A dog runs."
EXTENDING = (ROOT / "docs" / "extending.md").read_text("utf-8")
FENCES = re.findall(r"```text\n(.*?)```", EXTENDING, re.DOTALL)
PAGE, ROW = FENCES[0], textwrap.indent(FENCES[1], "    ")
NOTE = """        Setting(
            "note", "Note", "", "line", "On this view.", badge="Note: {}", header="note: {}"
        ),
"""
CHANGE = '''@dataclass(frozen=True)
class Twice(OutputChange):
    """The head's output is twice as large."""

    verb, order, words = "twice", 4, "output doubled"
    example, help = "cross.1.2=twice", "doubles the output of a head"
    ready_made = ("twice",)

    def replaced(self, output, part, first, given):
        return 2 * output

    def reweigh(self, model, part, heads, mean):
        attention = model.get_submodule(part.name)
        for head in heads:
            attention.output.weight[:, _rows(attention, head)] *= 2


'''
FAMILY = '''"""As GPT-2, with norms that divide by the largest number of a vector."""

from dataclasses import replace

from torch import nn

from headlight.model.families import gpt2


class LargestNorm(nn.LayerNorm):
    explained = "The norm divides by the largest number."

    def forward(self, x):
        return x / x.abs().amax(dim=-1, keepdim=True) * self.weight + self.bias


def build(config):
    model = gpt2.gpt2(config)
    for name, part in list(model.named_modules()):
        if type(part) is nn.LayerNorm:
            model.set_submodule(name, LargestNorm(config.d_model))
    return model


SYSTEM = replace(gpt2.PRESETS["gpt2"], system="Planted", build=build, differs="another norm")
FAMILY = replace(
    gpt2.FAMILY, preset="planted", model_types=("planted",), presets={"planted": SYSTEM}
)
'''
PLANTS = {  # kind → file → what it holds, or a part of it → what comes before that
    "page": {
        "app/views/token_count.py": PAGE,
        "app/state/pages.py": {'    Page(\n        title="Tokenizer",\n': ROW},
    },
    "setting": {
        "app/state/settings.py": {"        *PAGE_SETTINGS,\n": NOTE},
        "app/shell/drawer.py": {'    widgets.draw("device")\n': '    widgets.draw("note")\n'},
    },
    "change": {
        "model/probing/changes.py": {"VERBS = {\n": CHANGE, "        HeadOff, HeadMean,": "Twice,"},
    },
    "family": {"model/families/planted.py": FAMILY},
}


def opened(key: str = "", **chosen) -> AppTest:
    page = App(Path.cwd())
    page.query_params.update({"model": "en-de", "source": TEXT} | chosen)
    page.run()
    page = page.switch_page(key).run() if key else page
    assert not page.exception, page.exception
    return page


def done(page: AppTest) -> list[str]:
    """What the stage says that is not as trained."""
    (look,) = components(page, "stage_look")
    return [each["text"] for each in look["done"]]


def check_page() -> None:
    """In the menu, under its address, with its setting in the address, and in what is exported."""
    entry = PAGES["token-count"]
    assert GROUPS["Model"][0] == entry and entry.path == "token-count"
    page = opened("tokenizer")
    links = [link["label"] for each in components(page, "page_links") for link in each["links"]]
    assert "Token count" in links
    for times, chosen in ((2, {}), (3, {"times": "3"})):
        page = opened(entry.key, **chosen)
        assert page.number_input(key="times").value == times
        shown = [text.value for text in page.markdown]
        assert f"{times} × 4 tokens" in shown, shown  # a, dog, runs and the full stop
    chosen = shared(complete({"model": "en-de", "source": TEXT}) | {"times": 3}, "token-count")
    link = permalink(chosen, "token-count")
    assert link.startswith("token-count?") and "&times=3" in link
    view = replace(view_of(load("en-de").trace(TEXT)), settings=chosen, page="token-count")
    read = bundle.read(bundle.make(view, bundle.Model("en-de", "model.safetensors", "0" * 64)))
    assert read.page == "token-count" and read.settings["times"] == 3


def check_setting() -> None:
    """Drawn, in the address, undone where it is said, and in the header of an exported file."""
    for note in ("", "twice"):
        page = opened(note=note)
        assert page.text_input(key="note").value == note
    assert done(page) == ["Note: twice"]
    chosen = complete({"note": "twice"})
    assert "note: twice" in headers(chosen) and "note=twice" in permalink(chosen, "stage")


def check_change() -> None:
    """In the menu of changes with its help, in the sentence, in a trace, and in PyTorch's twin."""
    page = opened(changes="cross.1.2=twice")
    assert done(page) == ["Cross 1.2 output doubled"]
    page.session_state["what_if"] = True
    page.run()
    assert "twice" in page.selectbox(key="ready_made").options
    assert any("doubles the output of a head" in text.value for text in page.markdown)
    model = load("en-de")
    plain, changed = model.trace(TEXT), model.trace(TEXT, changes="cross.1.2=twice")
    assert abs(plain.logits - changed.logits).max() > 0.01
    run = model.run(TEXT, changes="cross.1.2=twice")
    twin = Reference(model.model).trace(model.model, run)
    assert abs(twin.logits - changed.logits).max() < 1e-4


def check_family() -> None:
    """From a folder in Hugging Face's layout, through the command, to its trace and the stage."""
    commands.main(["presets"])
    commands.main(["pretrained", "add", "theirs/tiny", "--into", "models"])
    commands.main(["pretrained", "add", "like-gpt2", "--into", "models"])
    like, ours = (load(Path("models", name)) for name in ("like-gpt2", "tiny"))
    traces = [each.trace(TEXT) for each in (like, ours)]
    assert traces[0].texts["tgt"].ids == traces[1].texts["tgt"].ids
    assert abs(traces[0].logits - traces[1].logits).max() > 0.01
    sys.argv[1:] = ["--models", "models"]
    forget_all()
    page = opened(model="tiny")
    assert not page.error and page.settings["model"] == "tiny"
    found = {block.part: block for block in blocks(ours.model, {"tgt": 4})}
    told = block_texts.explained(ours.model, traces[1], found["norm"])
    assert "The norm divides by the largest number." in told, told
    assert catalog.examples("tiny") == catalog.examples("like-gpt2") != []


def main() -> None:
    """In the copy: what is wrong with each kind of plant."""
    found = {}
    for kind in PLANTS:
        try:
            globals()[f"check_{kind}"]()
            found[kind] = ""
        except Exception:
            found[kind] = traceback.format_exc()
    print(json.dumps(found))


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, str]:
    """What is wrong with each kind of plant in a copy of the app that has all of them."""
    house = tmp_path_factory.mktemp("house")
    for name in ("app", "model", "headlight"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, house / name, symlinks=True, ignore=ignored)
    (house / "assets").symlink_to(ROOT / "assets")
    write(house / "like-gpt2", "gpt2")
    shutil.copytree(house / "like-gpt2", house / "theirs" / "tiny")
    config = house / "theirs" / "tiny" / "config.json"
    config.write_text(config.read_text("utf-8").replace('"gpt2"', '"planted"'), "utf-8")
    for files in PLANTS.values():
        for file, text in files.items():
            if not isinstance(text, str):
                inserted, text = text, (house / file).read_text("utf-8")
                for place, planted in inserted.items():
                    assert text.count(place) == 1, place
                    text = text.replace(place, planted + place)
            (house / file).write_text(text, "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "tests.app.test_planted"],
        cwd=house,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("kind", PLANTS)
def test_what_is_planted_is_shown_whole(found, kind):
    assert len(PLANTS[kind]) <= (1 if kind == "family" else 2)  # files
    assert not found[kind], found[kind]


def test_what_is_not_planted_is_absent():
    assert "token-count" not in PAGES and not {"times", "note"} & SETTINGS.keys()
    assert "twice" not in VERBS and "planted" not in FAMILIES
    assert all("Token count" not in [page.title for page in pages] for pages in GROUPS.values())


def test_a_module_without_a_row_is_named_and_a_row_without_a_module():
    page = PAGES["tokenizer"]
    check_modules([page], [Path("tokenizer.py")])
    with pytest.raises(ValueError, match=r"token_count\.py has no row in MENU") as error:
        check_modules([page], [Path("tokenizer.py"), Path("token_count.py")])
    assert "\n" not in str(error.value) and len(str(error.value)) <= 300
    with pytest.raises(ValueError, match=r"names app/views/tokenizer\.py, which does not exist"):
        check_modules([page], [])


if __name__ == "__main__":
    main()
