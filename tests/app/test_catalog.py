"""A folder of --models that is broken in any way fails alone."""

import json
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.delta_generator import DeltaGenerator
from tokenizers import Regex, Tokenizer, pre_tokenizers

from headlight.app import command
from headlight.app.state import catalog
from tests.app.common import forget_all, plain_text
from tests.model.pretrained.folders import write


def configured(change):
    """Changes config.json."""

    def breaks(folder):
        file = folder / "config.json"
        config = change(json.loads(file.read_text(encoding="utf-8")))
        file.write_text(json.dumps(config), encoding="utf-8")

    return breaks


def carded(**card):
    return configured(lambda config: config | {"card": config["card"] | card})


def with_bytes(name, content):
    def breaks(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return breaks


def is_a_folder(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def leads_nowhere(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(folder / "model.safetensors")


def fails_on_pairs(folder):
    """Its tokenizer's regular expression takes more steps on 28 times qk than are allowed."""
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    first = pre_tokenizers.Split(Regex("((qk)+(qk)+)+y"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([first, backend.pre_tokenizer])
    backend.save(str(folder / "tokenizer.json"))


# What is wrong → what makes it so; what else there is: tests/model/test_broken_checkpoints.py.
BROKEN = {
    "a folder for a file": is_a_folder,
    "not JSON": with_bytes("config.json", b"{"),
    "weights that lead nowhere": leads_nowhere,
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
}
OTHERS = {
    "it opens on a head": carded(opens={"kind": "encoder", "layer": 0, "head": 2}),
    "its tokenizer fails": fails_on_pairs,
}
ODD = {  # what is odd, and no reason not to read the model
    "the title is a list": carded(title=["a"], look_for={"a": 1}),
    "half a character in the title": carded(title="\ud800"),
    "scores are a number": carded(scores=5),
    "a score is a text": carded(scores=[{"set": "x", "decode": "greedy", "bleu": "good"}]),
    "a score of nothing": carded(scores=[{}]),
    "it opens on nothing": carded(opens=7),
    "it opens on a head it lacks": carded(opens={"kind": "cross", "layer": 9, "head": 0}),
    "a snapshot that is none": with_bytes("snapshots/step-000010.safetensors", b"not weights"),
    "a snapshot of no step": with_bytes("snapshots/step-last.safetensors", b"not weights"),
}


@pytest.fixture(scope="module")
def models(models, tmp_path_factory):
    """A folder with a good model and all these; see tests/conftest.py."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(models / "short", folder / "good")
    for what, breaks in (BROKEN | ODD | OTHERS).items():
        shutil.copytree(models / "short", folder / what)
        breaks(folder / what)
    return folder


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_folder_fails_alone_and_says_so(page, what):
    page.query_params.update(model=what, source="the dog", target="ein Hund")
    page.run()
    assert not page.exception
    assert plain_text(page.error[0].value).startswith(f"The model “{what}” cannot be loaded (")
    page.selectbox(key="model").set_value("good").run()
    assert not page.exception and not page.error


def test_a_model_that_cannot_be_read_is_tried_once_for_all_settings(page, monkeypatch):
    page.query_params.update(model="not JSON", source="the dog")
    page.run()
    tried = []

    def read(*which):
        tried.append(which)
        raise ValueError("broken")

    monkeypatch.setattr(catalog, "_read", read)
    page.run()
    assert plain_text(page.error[0].value).startswith("The model “not JSON” cannot be loaded (")
    assert len(tried) == 2  # by the settings, and by the page, which says why


@pytest.mark.parametrize("what", ODD)
def test_an_odd_folder_is_read_all_the_same(page, what):
    page.query_params.update(model=what, source="the dog", target="ein Hund")
    page.run()
    assert not page.exception and not page.error and page.session_state["model"] == what


def test_a_model_opens_on_the_head_of_its_card(page):
    page.query_params.update(model="it opens on a head", source="the dog", target="ein Hund")
    page.switch_page("bertviz").run()
    found = [page.segmented_control(key=key).value for key in ("kind", "layer", "head")]
    assert found == ["encoder", 1, 3]
    page.segmented_control(key="kind").set_value("cross").run()
    assert page.segmented_control(key="head").value == 3  # what is shown stays


def test_a_folder_that_may_not_be_looked_into_fails_alone(page, monkeypatch):
    """As root nothing is forbidden, so the refusal is played."""
    exists = catalog.Path.exists

    def refuse(path, **more):
        if path.parent.name == "not JSON":
            raise PermissionError(13, "Permission denied")
        return exists(path, **more)

    monkeypatch.setattr(catalog.Path, "exists", refuse)
    forget_all()
    assert {"good", "not JSON"} <= set(catalog.models())
    forget_all()


def test_a_folder_whose_name_is_no_text_can_be_sent_to_a_browser(models, tmp_path, monkeypatch):
    try:
        shutil.copytree(models / "good", tmp_path / "caf\udce9")
    except OSError:
        pytest.skip("this file system takes no such name")
    monkeypatch.setattr("sys.argv", ["main.py", "--models", str(tmp_path)])
    forget_all()
    assert "caf?" in catalog.models()
    for name in catalog.models():
        name.encode("utf-8")
    forget_all()


def test_how_much_of_a_large_model_is_read_is_said(page, monkeypatch, tmp_path):
    """In steps of a percent, and gone with the last one; nothing of a small one."""
    said = []
    monkeypatch.setattr(DeltaGenerator, "progress", lambda self, *told: said.append(told))
    write(tmp_path, "gpt2")
    monkeypatch.setattr(catalog, "folders", lambda: {"theirs": tmp_path})
    for large in (catalog.LARGE, 1):
        assert not said
        monkeypatch.setattr(catalog, "LARGE", large)
        with catalog._progress("theirs") as progress:
            catalog._read("theirs", "final", "cpu", progress)
    percents = [percent for percent, _ in said]
    assert percents == sorted({*percents}) and percents[-1] == 100 and 0 < percents[0] < 100
    assert said[-1][1] == "Loading theirs: 0 of 0 million parameters"


def test_two_sessions_that_ask_for_a_model_at_once_have_it_read_once(page, monkeypatch):
    """A large one in memory twice may not fit."""
    forget_all()
    read, count, all_ask = catalog._read, [], threading.Barrier(3)

    def asks(_):
        all_ask.wait(60)
        return catalog.view_of("en-de", "final", "cpu")

    def counted(*given):
        count.append(given)
        return read(*given)

    monkeypatch.setattr(catalog, "_read", counted)
    with ThreadPoolExecutor(3) as pool:
        views = [*pool.map(asks, range(3))]
    assert len(count) == 1 and len({id(view.model) for view in views}) == 3


@pytest.mark.parametrize("view", ["stage", "tokenizer"])
def test_a_text_that_the_tokenizer_fails_on_is_told(page, view):
    page.query_params.update(model="its tokenizer fails", source="qk" * 28, target="ein Hund")
    page.switch_page(view).run()
    assert not page.exception
    assert "fails on this text: Onig: Regex search error" in plain_text(page.error[0].value)
    assert "Your text is still in the box." in plain_text(page.error[0].value)
    page.text_area(key="source").set_value("the dog").run()
    assert not page.exception and not page.error


def test_the_command_says_where_models_compute_unless_a_session_chooses(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["main.py", "--device", "cuda:1"])
    assert (catalog.device_of("auto"), catalog.device_of("cpu")) == ("cuda:1", "cpu")
    assert command.main(["--device", "bird"]) == 2
    assert "Device bird cannot be used" in capsys.readouterr().err
