"""The dashboard on a model of transformers that is in memory."""

from pathlib import Path

import pytest
import transformers as tf

import headlight
from headlight.app import in_process
from headlight.app.command import main
from headlight.app.state import catalog
from headlight.app.state.options import OTHER
from headlight.app.state.pages import PAGES
from headlight.model.recording.in_memory import LACKS
from tests.app.common import words
from tests.model.pretrained.folders import write

TEXT = "the dog sees the cat"
SCRIPT = """
from tests.app.test_in_memory_models import model_and_tokenizer
pair = model_and_tokenizer("{folder}")
model, tokenizer = pair
made = lambda: (*pair, "a text")
number = 7
"""


def model_and_tokenizer(folder, kind="gpt2"):
    folder = Path(folder)
    model = write(folder, kind)
    return model, tf.AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The name of a model that this process has in memory, and serves to nobody."""
    monkeypatch.setattr(catalog, "_in_memory", {})
    monkeypatch.setattr(in_process._server, "start", lambda *_: None)
    headlight.open(*model_and_tokenizer(tmp_path), TEXT, name="mine", wait=False, browser=False)
    return "mine"


@pytest.mark.parametrize("key", PAGES)
def test_every_page_shows_it_or_says_what_it_lacks(mine, page, key):
    page.query_params.update(model=mine)
    page.switch_page(key).run()
    assert not page.exception
    said = [info.value for info in page.info]
    assert any(LACKS in text for text in said) != PAGES[key].weights


def test_two_models_of_one_tokenizer_can_be_compared(mine, page, tmp_path):
    """As a model before and after it was tuned."""
    _, tokenizer = model_and_tokenizer(tmp_path)
    tuned = write(tmp_path, "gpt2", seed=1)
    headlight.open(tuned, tokenizer, TEXT, name="tuned", wait=False, browser=False)
    assert catalog.alike(mine) == ["tuned"]
    page.query_params.update(model=mine, other_model="tuned", shows=OTHER)
    page.run()
    assert not page.exception
    assert "tuned" in words(page)


def test_it_is_the_first_in_the_list_and_its_texts_are_offered(mine):
    assert catalog.models()[0] == mine
    assert catalog.examples(mine) == [TEXT]
    assert catalog.sha256(catalog.view_of(mine, catalog.FINAL, "cpu"))[0] == "its parameters"


def test_a_shipped_name_stays_the_shipped_models(mine, tmp_path):
    headlight.open(*model_and_tokenizer(tmp_path), name="en-de", wait=False, browser=False)
    assert [*catalog._in_memory] == [mine, "en-de (yours)"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--live", "FILE:absent"], "has nothing called absent"),
        (["--live", "FILE:number"], "int is not a model of transformers"),
        (["--live", "FILE:not a name"], "--live takes a script"),
        (["--live", "absent.py:model"], "There is no script absent.py.\n"),
        (["--serve", "--live", "script.py:model"], "this machine alone"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(arguments, says, tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=tmp_path / "model"))
    assert main([each.replace("FILE", str(script)) for each in arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", ["model", "pair", "made"])
def test_a_script_names_a_model_in_three_ways(name, tmp_path, monkeypatch):
    script, seen = tmp_path / "script.py", []
    script.write_text(SCRIPT.format(folder=tmp_path / "model"))
    monkeypatch.setattr(in_process, "open", lambda *given, **more: seen.append(given))
    assert in_process.live(f"{script}:{name}", 8501) == 0
    ((model, tokenizer, *texts),) = seen
    assert type(model).__name__ == "GPT2LMHeadModel" and callable(tokenizer)
    assert texts == (["a text"] if name == "made" else [])
