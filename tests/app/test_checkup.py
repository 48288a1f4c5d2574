"""The check-up of a whole model in a terminal and in a notebook."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from headlight import checkup
from headlight.app.export import checkup_command, file_judge
from headlight.app.export.checkup import LEAK, NONE, drawn, matrices_of
from tests.conftest import ROOT, long_but
from tests.model.checking.whole.cases import WRONG
from tests.model.checking.whole.report import tried

MODELS = """
import os
import torch
from torch import nn


class Bigram(nn.Module):
    def __init__(self, mixes=False):
        super().__init__()
        self.mixes, self.embed, self.out = mixes, nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(self, ids):
        x = self.embed(ids) + torch.arange(ids.shape[1])[:, None] / 9
        x = x + x.cumsum(1) / (1 + torch.arange(ids.shape[1])[:, None])
        return self.out(x + x.mean(1, keepdim=True) * self.mixes)


class NeedsSizes(nn.Module):
    def __init__(self, width):
        super().__init__()


model = Bigram()
leaks = Bigram(mixes=True)


def arguments():
    return {"model": leaks, "kind": "causal"}


def ends():
    os._exit(0)
"""


@pytest.fixture
def here(monkeypatch):
    """Without a fork, which would end all other processes that pytest has started."""
    monkeypatch.setattr(file_judge, "CAN_FORK", False)
    monkeypatch.setattr(sys, "path", [*sys.path])


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        checkup_command.main([*arguments])
    return ended.value.code, capsys.readouterr().out


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(MODELS, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "code", "said"), [
    ("model", 0, "Bigram, called with ids: "), ("Bigram", 0, "right"),
    ("arguments", 1, "The future: wrong, sees the future."),
    ("NeedsSizes", 2, "missing 1 required positional argument"),
    ("other", 2, "There is no 'other' in mine.py. It has Bigram, NeedsSizes, model, leaks."),
])  # fmt: skip
def test_the_command_says_what_is_wrong_and_ends_with_it(here, capsys, file, name, code, said):
    ended, printed = run(capsys, f"{file}:{name}", "--kind", "causal")
    assert ended == code and said in printed and "Traceback" not in printed


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("leaks", 1, "sees the future"), ("ends", 2, file_judge.NEVER_JUDGED)],
)
def test_a_file_runs_in_a_process_of_its_own(file, name, code, said):
    command = [sys.executable, "-m", "headlight", "checkup", f"{file}:{name}", "--kind", "causal"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code and said in done.stdout and not done.stderr


def test_the_command_says_why_a_file_does_not_run(here, capsys, tmp_path):
    (tmp_path / "mine.py").write_text("import torch\nx = 1 / 0\n")
    for name, said in (("mine", "Line 2: "), ("nothing", "")):
        code, told = run(capsys, f"{tmp_path / name}.py:model")
        assert code == 2 and told.startswith(said)


class Leaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(self, ids):
        x = self.embed(ids)
        return self.out(x + x.mean(1, keepdim=True))


def test_a_notebook_shows_which_row_depends_on_which_token():
    torch.manual_seed(0)
    found = checkup(Leaks(), kind="causal")
    two, right = drawn(found)
    leaks = np.ones_like(right.values) - np.tril(np.ones_like(right.values))
    assert ((two.values < 0) == (leaks > 0)).all() and (right.values == 1 - leaks).all()
    assert next(each.trial for each in found.findings if matrices_of(each)) == "The future"
    page = found._repr_html_()
    assert page.startswith("<iframe") and "sees the future" in page


@pytest.mark.parametrize("name", long_but(("MiniGPT: no causal",), WRONG))
def test_red_is_what_breaks_the_law_and_mended_nothing_does(name):
    for finding in tried(WRONG[name]).findings:
        if not (shown := matrices_of(finding)):
            continue
        found, right, *mended = shown
        moves, asked = np.abs(found.values) > NONE, right.values > 0
        red = found.values < 0
        if finding.fault:
            assert red.any() and (moves != asked)[red].all()
            assert np.abs(found.values)[(moves != asked) & ~red].max(initial=0) <= LEAK
        else:
            assert not red.any() and not mended
        assert (right.values >= 0).all() and all((each.values >= 0).all() for each in mended)


def test_loss_and_decoding_have_the_same_form():
    loss = checkup.loss(lambda model, src, tgt: model(src, tgt).sum() * 0, size=20)
    for each in (loss, checkup.decoding(lambda model, src: [])):
        assert each is not None and each._repr_html_().startswith("<iframe")
