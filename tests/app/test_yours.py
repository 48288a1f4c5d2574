"""`headlight check FILE.py`: what it starts, whom it refuses, and what becomes of hostile files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from streamlit.testing.v1 import AppTest

from headlight.app.command import main
from headlight.app.export import file_judge
from headlight.app.export.file_judge import FileAnswer, FileJudge, JudgedPart, judge
from headlight.app.server import lan
from headlight.app.server.checked_file import YOURS_PATH, checked_file
from headlight.app.state.pages import PAGES
from headlight.app.text.formats import escaped
from headlight.app.views.yours import shown_trials
from headlight.model.checking.verdict import CANNOT_TELL, NOT_YET, UNJUDGED
from headlight.model.checking.verdict import RIGHT as HOLDS
from headlight.model.checking.whole.result import WRONG as BROKEN
from headlight.model.checkpoint import load
from tests.app.hostile_files import CRASHES, ENDLESS, ESCAPES, PLAIN
from tests.waiting import wait_until

RIGHT = "def scores(q, k):\n    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
WRONG = "def scores(q, k):\n    return q @ k.transpose(-2, -1)\n"
FILES = PLAIN | CRASHES | ESCAPES | ENDLESS
SAMPLE = ["it exits", "a segmentation fault", "PyTorch broken", "it leaves a process"]


def answered(judge: FileJudge, text: str) -> FileAnswer:
    judge.file.write_text(text, encoding="utf-8")
    time.sleep(2 * file_judge.INTERVAL)
    wait_until(lambda: not judge.since and judge.answer.is_done)
    return judge.answer


@contextmanager
def judging(folder: Path, model: str = "", name: str = "") -> Iterator[FileJudge]:
    file = folder / "mine.py"
    file.write_text(RIGHT, encoding="utf-8")
    judge = FileJudge(file, model, name)
    try:
        yield judge
    finally:
        judge.close()


def left_behind(folder: Path) -> list[psutil.Process]:
    """Processes that a file started: they stand in its folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def expect_sentences(answer: FileAnswer, folder: Path, name: str) -> None:
    """Of what is not right, and nothing is left running."""
    told = [each for each in (*answer.trials, *answer.parts) if not each.ok]
    sentences = [answer.error, *(line for each in told for line in each.said)]
    assert any(sentences) and "Traceback" not in "".join(sentences), name
    assert all(len(line) <= 600 and "\n" not in line for line in sentences), name
    wait_until(lambda: not left_behind(folder))


def check_all(folder: Path, names) -> None:
    with judging(folder) as judge:
        for name in names:
            answer = answered(judge, FILES[name])
            assert not answer.parts or not all(part.ok for part in answer.parts), name
            expect_sentences(answer, folder, name)
        assert all(part.ok for part in answered(judge, f"{RIGHT}# again").parts)
    assert not left_behind(folder)


def test_a_few_hostile_files_end_in_a_sentence(tmp_path):
    check_all(tmp_path, SAMPLE)


@pytest.mark.long
def test_all_hostile_files_end_in_a_sentence(tmp_path):
    assert len(FILES) >= 60
    check_all(tmp_path, FILES)


@pytest.mark.long
def test_a_save_ends_what_the_one_before_is_at(tmp_path):
    with judging(tmp_path) as judge:
        answered(judge, RIGHT + "# once")
        judge.file.write_text("while True: pass")
        time.sleep(1)
        began = time.monotonic()
        assert (
            answered(judge, WRONG).parts[0].said[0] == "That is the dot product. Divide it by √d."
        )
        assert time.monotonic() - began < 5


@pytest.mark.long
def test_an_endless_loop_is_named_by_its_line(tmp_path):
    with judging(tmp_path) as judge:
        answer = answered(judge, "def scores(q, k):\n    while True:\n        pass\n")
        assert "longer than 10 seconds" in answer.error
        assert "It was at line 2" in answer.error or "It was at line 3" in answer.error


@pytest.mark.long
def test_a_child_that_was_killed_is_replaced(tmp_path):
    with judging(tmp_path) as judge:
        answered(judge, WRONG)
        assert judge.child is not None
        psutil.Process(judge.child.pid).kill()
        assert answered(judge, RIGHT).parts[0].ok
        judge.file.unlink()
        wait_until(lambda: "not there any more" in judge.answer.error)


@pytest.mark.long
def test_it_ends_with_the_app(tmp_path):
    """Also where the app is killed: its end of the pipe closes."""
    with judging(tmp_path) as judge:
        answered(judge, WRONG)
        judge.file.write_text("import time\ntime.sleep(100)")
        time.sleep(1)
        child = judge.child
        assert child is not None and child.stdin is not None and left_behind(tmp_path)
        child.stdin.close()
        assert child.wait(10) == 0
    assert not left_behind(tmp_path)


SMALL = """
import os, sys, time, torch
from torch import nn

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(self, ids):
        {}
        x = self.embed(ids) + torch.arange(ids.shape[1])[:, None] / 9
        return self.out(x + x.cumsum(1))

def model():
    return {{"model": Small(), "kind": "causal"}}
"""
HOSTILE_MODELS = {
    "it raises": "raise ValueError('no')",
    "it exits": "sys.exit()",
    "it exits at once": "os._exit(0)",
    "a signal": "os.kill(os.getpid(), 11)",
    "all memory": "x = [torch.ones(10**8)]\n        while True: x.append(x[-1] + 1)",
    "an endless loop": "while True: pass",
    "endless recursion": "return self.forward(ids)",
    "it writes into the answer": "for i in range(3, 64):\n            try: "
    "os.write(i, b'{\"trials\": 5}\\n')\n            except OSError: pass",
    "it leaves a process": "os.fork() or time.sleep(100)",
}


@pytest.mark.long
def test_hostile_models_end_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(file_judge, "SECONDS_OF_MODEL", 8)
    monkeypatch.setattr(file_judge, "_start", start_with("SECONDS_OF_MODEL", 8))
    with judging(tmp_path, name="model") as judge:
        for name, line in HOSTILE_MODELS.items():
            expect_sentences(answered(judge, SMALL.format(line)), tmp_path, name)
        assert answered(judge, SMALL.format("")).trials
    assert not left_behind(tmp_path)


CHILD = """
import sys
from pathlib import Path
from headlight.app.export import file_judge
file_judge.{} = {}
file_judge.serve(Path(sys.argv[1]), "", sys.argv[2])
"""


def start_with(name: str, value: object):
    """A child in which a constant has another value."""

    def start(file, model, named):
        command = [sys.executable, "-c", CHILD.format(name, value), str(file), named]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    return start


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="others leave behind what leaves the group")
def test_without_process_numbers_of_its_own_it_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(file_judge, "_start", start_with("CLONE_NEWUSER", -1))
    check_all(tmp_path, [*ESCAPES, "an endless loop", "all memory", "it exits at once"])


@pytest.mark.long
def test_without_a_fork_files_are_judged_and_endless_ones_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(file_judge, "_start", start_with("CAN_FORK", False))
    monkeypatch.setattr(file_judge, "CAN_FORK", False)
    with judging(tmp_path) as judge:
        assert not answered(judge, WRONG).parts[0].ok
        assert "longer than 10 seconds" in answered(judge, "while True: pass").error
        assert answered(judge, f"print('not our answer')\n{RIGHT}").parts[0].ok
        assert "has ended" in answered(judge, "import os; os._exit(1)").error
        assert answered(judge, RIGHT).parts[0].ok


def lines_of(tmp_path, text: str, model: str = "", name: str = "") -> list[dict]:
    file, found = tmp_path / "mine.py", []
    file.write_text(text, encoding="utf-8")
    judge(file, model, load(model) if model else None, found.append, name)
    return found


def test_a_model_is_tried_by_its_name_and_then_the_parts_beside_it(tmp_path):
    (held,) = lines_of(tmp_path, SMALL.format(""), name="model")
    assert BROKEN not in {each["state"] for each in held["trials"]}
    leaky = SMALL.format("").replace("cumsum(1)", "mean(1, keepdim=True)")
    seen, part = lines_of(tmp_path, f"{leaky}\n{WRONG}", name="model")
    answer = file_judge._with(FileAnswer(), json.loads(json.dumps(seen)))
    worst, right = answer.trials[0], answer.trials[-1]
    assert (worst.name, worst.state, right.ok) == ("The future", BROKEN, True)
    assert worst.lesson == "4-masks" and worst.matrices[0].values.min() < 0
    assert part["part"] == "scores" and answer.seconds > 0
    (none,) = lines_of(tmp_path, "x = 1", name="model")
    assert none["said"] == ["There is no 'model' in mine.py. It has no model."]


def test_parts_are_judged_by_their_names(tmp_path):
    found = lines_of(tmp_path, f"from math import sqrt as softmax\n{WRONG}")
    assert [line["part"] for line in found] == ["scores"]
    assert found[0]["said"][0] == "That is the dot product. Divide it by √d."
    assert [matrix["title"] for matrix in found[0]["matrices"]] == ["yours", "ours", "yours − ours"]
    assert lines_of(tmp_path, RIGHT)[0]["state"] == "right"
    (none,) = lines_of(tmp_path, "def attend(q, k): pass")
    assert none["said"][0].startswith("No function has one of the names that can be judged: scores")


def test_an_error_is_a_sentence_with_its_line(tmp_path):
    for text, sentence, line in (
        ("x = 1\ndef f(:\n", "Line 2: invalid syntax. (def f(:)", 2),
        ("\n\n1 / 0", "Line 3: ZeroDivisionError: division by zero. (1 / 0)", 3),
        ("def scores(q, k):\n    return q @ k", "Line 2: sizes 4 and 6 meet on one axis.", 2),
        ("def scores(q, k):\n    raise SystemExit", "Line 2: it ends the program", 2),
    ):
        (found,) = lines_of(tmp_path, text)
        assert found["said"][0].startswith(sentence) and found["line"] == line


@pytest.mark.long
def test_the_translator_runs_with_them(tmp_path):
    found = lines_of(tmp_path, RIGHT, "en-fr")[-1]["in_model"]
    assert found.startswith("With your scores, “She has never seen the red car of my sister.”")
    assert "as with ours. Logits differ by at most" in found
    text = "def scores(q, k):\n    return 0 * (q @ k.transpose(-2, -1))\n"
    assert "Ours writes “Elle" in lines_of(tmp_path, text, "en-fr")[-1]["in_model"]


def test_what_the_child_may_have_been_made_to_say_is_no_error():
    """Code that is judged can write into the answer."""
    part = {"part": "x", "state": "right", "said": [], "line": 0, "matrices": []}
    odd = {"said": 5, "line": "<b>", "state": "<b>", "matrices": [{"values": [[1] * 99] * 99}]}
    forged = [part | {name: value} for name, value in odd.items()]
    forged += [{"end": "x"}, {"trials": 5, "seconds": 1}, {"trials": [], "seconds": "<b>"}]
    for each in [*forged, {"trials": [{"part": "x", "state": "<b>"}], "seconds": 1}]:
        with pytest.raises((ValueError, TypeError, KeyError)):
            file_judge._with(FileAnswer(), each)
    long = part | {"part": "<b>\ud800", "said": ["x" * 999] * 99, "line": 1}
    (shown,) = file_judge._with(FileAnswer(), long).parts
    assert len(shown.said) == 6 and len(shown.said[0]) == 500 and shown.name == "<b>?"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["FILE", "--serve"], "check runs your code on this machine alone, so it does not go with"),
        (["nothing.py"], "There is no file "),
        (["FOLDER"], "There is no file "),
        (["notebook.ipynb"], "notebook.ipynb is not a Python file"),
    ],
)
def test_what_cannot_be_judged_is_refused(tmp_path, capsys, arguments, sentence):
    for name in ("mine.py", "notebook.ipynb"):
        (tmp_path / name).touch()
    places = {"FILE": str(tmp_path / "mine.py"), "FOLDER": str(tmp_path)}
    places["notebook.ipynb"] = str(tmp_path / "notebook.ipynb")
    assert main(["check", *(places.get(each, each) for each in arguments)]) == 2
    assert sentence in capsys.readouterr().err


def test_the_page_exists_only_if_the_app_was_started_with_a_file(monkeypatch):
    assert YOURS_PATH not in PAGES and checked_file() is None
    monkeypatch.setattr("sys.argv", ["main.py", "--check", "mine.py"])
    assert checked_file() == (Path("mine.py"), "")
    monkeypatch.setenv(lan.ADDRESS, "http://192.0.2.1:8501")
    assert checked_file() is None


@pytest.fixture
def started(monkeypatch):
    """The page as `headlight check mine.py` starts it, with an answer."""
    monkeypatch.setattr("sys.argv", ["main.py", "--check", "mine.py"])
    monkeypatch.setattr("streamlit.get_option", lambda name: "127.0.0.1")

    def draw(answer=None):
        judged = SimpleNamespace(since=0.0, answer=answer or FileAnswer())
        monkeypatch.setattr("headlight.app.views.yours._judge", lambda *_: judged)
        return AppTest.from_function(draw_page).run()

    return draw


def draw_page() -> None:
    import streamlit as st

    from headlight.app.shell import frame
    from headlight.app.views import yours

    with frame.of_page(frame.make(st.container())):
        yours.page()


SQRT = escaped("Divide it by √d.")
PART = JudgedPart("scores", NOT_YET, ("Divide it by √d.",), 2, ())
OTHER = JudgedPart("multi_head", UNJUDGED, ("It has no parameters.",), 0, ())
ANSWERS = {
    "PyTorch and the model are starting": FileAnswer(),
    f"**scores: not yet.** {SQRT} (line 2)": FileAnswer((PART,), is_done=True),
    "**multi\\_head: cannot be judged.**": FileAnswer((OTHER,), is_done=True),
    f"**In en-fr.** {escaped('a *b*')}": FileAnswer((PART,), "a *b*", is_done=True),
    escaped("It *ended*."): FileAnswer(error="It *ended*.", is_done=True),
    "hello": FileAnswer((PART,), printed="hello", is_done=True),
}


@pytest.mark.parametrize("text", ANSWERS)
def test_the_page_shows_an_answer(started, text):
    page = started(ANSWERS[text])
    assert not page.exception
    kinds = (page.markdown, page.caption, page.info, page.error, page.code)
    assert any(text in shown.value for kind in kinds for shown in kind)


STATES = {"The future": BROKEN, "Padding": CANNOT_TELL, "A": HOLDS, "B": HOLDS}
TRIALS = tuple(
    JudgedPart(name, state, (f"{name} moves.", "Row 1 does."), 0, ())
    for name, state in STATES.items()
)


def test_trials_stand_worst_first_and_those_that_hold_as_one():
    shown = shown_trials(FileAnswer(trials=TRIALS))
    assert [each.name for each in shown] == ["The future", "Padding", "2 right"]
    assert shown[-1].said == ("A; B.",)
    (one,) = shown_trials(FileAnswer(trials=TRIALS[2:], seconds=1.52))
    assert f"{one.name}: {one.said[0]}" == "Nothing wrong: all 2 trials hold, in 1.5 s."


def test_the_page_shows_a_trial_and_its_parts_behind_a_view(started):
    page = started(FileAnswer((PART,), trials=TRIALS, is_done=True))

    def verdict():
        return next(each.value for each in page.markdown if each.value.startswith("**"))

    assert verdict() == f"**The future: wrong.** {escaped('The future moves.')}"
    page.radio[0].set_value(1).run()
    assert verdict().startswith("**Padding: cannot tell.**")
    page.segmented_control[0].set_value("Parts").run()
    assert not page.exception and verdict().startswith("**scores: not yet.**")


def test_the_page_is_for_this_machine_alone(started, monkeypatch):
    monkeypatch.setattr("streamlit.get_option", lambda name: "0.0.0.0")
    assert "listen to this machine alone" in started().error[0].value


@pytest.mark.skipif(not hasattr(os, "fork"), reason="as it is there")
def test_without_a_fork_it_is_said(started, monkeypatch):
    monkeypatch.setattr("headlight.app.views.yours.CAN_FORK", False)
    assert "without limits on memory" in started().warning[0].value


def test_the_terminal_shows_the_verdict_and_moves_no_cursor():
    part = JudgedPart("scores", NOT_YET, ("\x1b[2JDivide it by √d.", "First difference: …"), 2, ())
    said = file_judge._in_terminal("mine.py", FileAnswer((part,), error="Too long."))
    assert "\x1b" not in said
    assert [*said.splitlines()][1:] == [
        "  scores: not yet. [2JDivide it by √d. First difference: …", "  Too long.",
    ]  # fmt: skip
