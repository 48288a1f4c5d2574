"""Training: stopped and resumed, by several processes, with a full disk, on broken files."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from torch.nn import functional as F
from torch.nn.modules.dropout import _DropoutNd

from headlight.model import checkpoint, presets
from headlight.model.masks import Masks
from headlight.model.training import tasks, train
from headlight.model.training.data import DataError, pad
from headlight.model.training.train import CannotSave, Recipe, Training, how_to_go_on, rate
from tests.devices import here
from tests.model.common import in_short

ROOT = Path(__file__).resolve().parents[3]
TINY = dict(
    d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1, dropout=0.1
)  # fmt: skip
RECIPE = Recipe(epochs=4, max_tokens=64, peak=1e-2, warmup=4, average=2)


@pytest.fixture(scope="module")
def task():
    """Reversed letters, few and small, with dropout."""
    task = tasks.toy("reverse")
    examples = task.examples()
    few = {"train": examples["train"][:60], "val": examples["val"][:10]}
    return dataclasses.replace(task, sizes=TINY, examples=lambda: few)


def weights(run):
    model = run.accelerator.unwrap_model(run.model)
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@pytest.fixture(scope="module")
def whole(task, tmp_path_factory):
    """A run that nobody stopped."""
    run = Training(task, RECIPE, tmp_path_factory.mktemp("whole"))
    run.train()
    return run


@pytest.fixture
def undrawn(monkeypatch):
    """The curve is not drawn, which takes longer than an epoch."""
    monkeypatch.setattr(train, "curve", lambda *rows: "<svg/>")


class Stopped(Exception):
    pass


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("stop", in_short([1, 7, 13, 20, 29], 13))
def test_resumed_is_bit_identical(task, whole, tmp_path, stop, monkeypatch):
    """Stopped after any step, in or between epochs, with a state saved every third step."""
    step = Training.step

    def step_and_stop(self, batch):
        if self.progress.step == stop:
            raise Stopped
        return step(self, batch)

    assert how_to_go_on(tmp_path) == "Nothing had been saved yet."
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Training, "step", step_and_stop)
        Training(task, RECIPE, tmp_path).train(save_every=3)
    assert "--resume" in how_to_go_on(tmp_path) or stop < 3
    torch.manual_seed(99)
    resumed = Training(task, RECIPE, tmp_path)
    resumed.resume()
    assert resumed.progress.step <= stop and (stop != 13 or resumed.progress.step == 12)
    resumed.train(save_every=3)
    assert resumed.progress.step == whole.progress.step > max(29, stop)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name
    same = [(f / "model.safetensors").read_bytes() for f in (whole.folder, tmp_path)]
    assert same[0] == same[1]


def test_what_a_run_leaves(whole):
    names = {path.name for path in whole.folder.iterdir()}
    assert names == {
        "README.md", "config.json", "curve.svg", "log.jsonl", "means.safetensors",
        "model.safetensors", "run", "tokenizer.json",
    }  # fmt: skip
    assert not list(whole.folder.rglob("*.new"))
    rows = [json.loads(line) for line in (whole.folder / "log.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert "curve.svg" in (whole.folder / "README.md").read_text()
    assert "validation" in (whole.folder / "curve.svg").read_text()


def test_checkpoint_has_the_lowest_validation_loss(whole):
    held = checkpoint.load(whole.folder)
    rows = [json.loads(line) for line in (whole.folder / "log.jsonl").read_text().splitlines()]
    lowest = min(row[name] for row in rows for name in ("val_loss", "mean_val_loss"))
    assert held.card["val_loss"] == lowest
    assert whole.validate(here(held.model)) == pytest.approx(lowest, abs=1e-3)  # float16


def test_loss_is_that_of_real_labels(whole):
    """Padding counts nothing: the loss of a batch is the sum of those of its pairs."""
    model = whole.accelerator.unwrap_model(whole.model).eval()
    batch = sorted(whole.pairs["train"], key=lambda pair: len(pair[0]))[::8]
    assert len({len(src) for src, _ in batch}) > 2

    @torch.no_grad()
    def loss(pairs):
        return train.loss_of(model, model, pairs, 0.1, whole.accelerator.device)

    torch.testing.assert_close(loss(batch), sum(loss([pair]) for pair in batch))
    src, tgt = (pad([side], 0).to(whole.accelerator.device) for side in batch[0])
    masks = Masks().build(model, src, tgt[:, :-1])
    logits = model(src, tgt[:, :-1], *masks)[0].detach()
    expected = F.cross_entropy(logits, tgt[0, 1:], label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss(batch[:1]), expected, atol=1e-4, rtol=1e-4)
    model.train()


def test_r_drop_adds_how_far_two_readings_are_apart(whole):
    model = whole.accelerator.unwrap_model(whole.model)
    batch, device = whole.pairs["train"][:5], whole.accelerator.device

    @torch.no_grad()
    def loss(r_drop):
        torch.manual_seed(0)
        return train.loss_of(model, model, batch, 0.1, device, r_drop)

    assert loss(2.0) > loss(1.0)
    apart = [loss(r_drop) - loss(1.0) for r_drop in (11.0, 21.0)]
    torch.testing.assert_close(2 * apart[0], apart[1], rtol=1e-3, atol=1e-3)
    model.eval()  # without dropout the two are one
    torch.testing.assert_close(loss(1.0), loss(0.0))
    model.train()


@pytest.mark.usefixtures("undrawn")
def test_under_bpe_dropout_a_resumed_run_reads_what_was_drawn(tmp_path):
    """Each epoch splits the text anew, the same for whoever asks again."""
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"the dog number {i}\tder Hund Nummer {i}\n" for i in range(50)))
    task = dataclasses.replace(tasks.task("pairs", file), sizes=TINY)
    recipe = dataclasses.replace(RECIPE, epochs=3, bpe_dropout=0.3)
    run = Training(task, recipe, tmp_path / "run")
    first, second = run.epoch(1), run.epoch(2)
    again = Training(task, recipe, tmp_path / "run")
    assert again.last == run.last
    assert [again.epoch(number) for number in (1, 2)] == [first, second]

    def texts(batches):
        pairs = (pair for batch in batches for pair in batch)
        return sorted(tuple(map(run.tokenizer.decode, pair)) for pair in pairs)

    def tokens(batches):
        return sorted(pair for batch in batches for pair in batch)

    usual = [run.pairs["train"]]
    assert texts(first) == texts(second) == texts(usual)
    assert tokens(first) != tokens(second) and tokens(first) != tokens(usual)
    run.train()
    assert len(run.progress.history) == 3
    # It tells how many steps there are; those of epochs that are over are gone.
    assert {f.name for f in run.folder.glob("run/text-*")} == {"text-0001.json"}


def test_bpe_dropout_is_a_share_of_merges(task, tmp_path, monkeypatch):
    recipe = dataclasses.replace(RECIPE, bpe_dropout=0.1)
    pieces = SimpleNamespace(kind="Unigram")
    other = SimpleNamespace(tokenizer=pieces, preset="", model=torch.nn.Linear(1, 1), card={})
    monkeypatch.setattr(train, "begin_with", lambda name, task: other)
    with pytest.raises(DataError, match="Unigram"):
        Training(task, recipe, tmp_path, start=tmp_path)


def test_a_later_run_begins_with_the_weights_of_an_earlier_one(task, whole, tmp_path):
    """And adds its steps and its recipe to those that led there."""
    recipe = dataclasses.replace(RECIPE, epochs=1)
    run = Training(task, recipe, tmp_path, start=whole.folder)
    for name in weights(whole):
        expected = checkpoint.load(whole.folder).model.get_parameter(name)
        assert torch.equal(weights(run)[name].cpu(), expected), name
    assert run.model.training and all(p.requires_grad for p in run.model.parameters())
    run.train()
    card = checkpoint.load(tmp_path).card
    before = checkpoint.load(whole.folder).card
    assert card["step"] == before["step"] + run.progress.step
    assert [r["epochs"] for r in card["recipes"]] == [4, 1]
    assert [r.get("begins with") for r in card["recipes"]] == [None, before["weights"]]
    text = (tmp_path / "README.md").read_text()
    assert "| setting | run 1 | run 2 |" in text
    marks = {m for m in train.MARKS if before["step"] < m <= card["step"]}
    assert {int(f.stem[5:]) for f in tmp_path.glob("run/step-*")} == marks
    with pytest.raises(DataError, match="trained for a different task"):
        Training(
            dataclasses.replace(task, classes=("a", "b")), recipe, tmp_path, start=whole.folder
        )
    checkpoint.write_card(tmp_path, {})  # one that another program wrote
    bare = Training(task, recipe, tmp_path, start=tmp_path)
    assert (bare.recipes, bare.steps_before) == ([], 0)
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(DataError, match="cannot be read"):
        Training(task, recipe, tmp_path, start=tmp_path)


@pytest.mark.usefixtures("undrawn")
def test_attention_weights_have_a_rate_of_dropout_of_their_own(task, whole, tmp_path):
    """Of this run, whatever the model it begins with has."""
    share = 0.4
    recipe = dataclasses.replace(RECIPE, epochs=1, attention_dropout=share)
    run = Training(task, recipe, tmp_path, start=whole.folder)
    parts = run.model.named_modules()
    rates = {name: part.p for name, part in parts if isinstance(part, torch.nn.Dropout)}
    of_attention = {name for name in rates if name.endswith("_attn.dropout")}
    assert len(of_attention) == 3 and {rates[name] for name in of_attention} == {share}
    assert {rates[name] for name in rates.keys() - of_attention} == {0.1}
    run.train()
    assert checkpoint.load(tmp_path).card["recipes"][-1]["attention_dropout"] == share


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_a_rate_of_dropout_is_set_where_the_preset_has_one(preset):
    sizes = presets.own_sizes(preset) | {"dropout": 0.0}

    def rates(model):
        parts = dict(model.named_modules()).items()
        return {name: part.p for name, part in parts if isinstance(part, _DropoutNd)}

    with torch.device("meta"):
        model = presets.build(preset, **sizes)
        expected = presets.build(preset, **sizes | {"dropout": 0.35})
    train.set_dropout(model, preset, 0.35)
    assert rates(model) == rates(expected)
    assert (0.35 in rates(model).values()) == (preset != "van_dijck")  # which has none
    assert model.config == expected.config


@pytest.mark.usefixtures("undrawn")
def test_patience(task, tmp_path):
    """With a rate of nothing, no epoch is better than the first."""
    run = Training(task, dataclasses.replace(RECIPE, epochs=9, peak=0.0, patience=2), tmp_path)
    run.train()
    assert len(run.progress.history) == 3


def test_rate_rises_then_falls():
    recipe = Recipe(peak=1e-3, warmup=10, cooldown=0)
    assert rate(5, recipe, 100) == pytest.approx(5e-4)
    assert rate(10, recipe, 100) == pytest.approx(1e-3)
    assert rate(40, recipe, 100) == pytest.approx(5e-4)
    cooling = dataclasses.replace(recipe, cooldown=20)
    assert rate(40, cooling, 100) == rate(40, recipe, 100)
    assert rate(91, cooling, 100) == pytest.approx(rate(91, recipe, 100) / 2)


def test_full_disk(task, tmp_path, monkeypatch):
    """Whatever cannot be written, the checkpoint that was there can still be read."""
    run = Training(task, dataclasses.replace(RECIPE, epochs=1), tmp_path)
    run.train()
    before = (tmp_path / "model.safetensors").read_bytes()

    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def torn(*args, **kwargs):  # what torch.save says on a full disk
        raise RuntimeError("[enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0")

    for target, name, fault in ((os, "fsync", no_space), (Accelerator, "save_state", torn)):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, fault)
            run = Training(task, dataclasses.replace(RECIPE, epochs=2), tmp_path)
            run.resume()
            with pytest.raises(CannotSave, match="--resume") as caught:
                run.train()
            assert "\n" not in str(caught.value)
        assert checkpoint.load(tmp_path).model
        if target is os:
            assert (tmp_path / "model.safetensors").read_bytes() == before
    run = Training(task, dataclasses.replace(RECIPE, epochs=2), tmp_path)
    run.resume()
    run.train()
    assert len(run.progress.history) == 2


def test_bad_input_is_one_sentence(tmp_path):
    file = tmp_path / "pairs.tsv"
    for text, words in {
        "": "is empty", "a\tb\tc\n": "3 columns", "a\tb\n": "one pair is not enough",
        "a " * 2000 + "\tb\nc\td\ne\tf\n": "reads at most 1,024",
    }.items():  # fmt: skip
        file.write_text(text)
        with pytest.raises(SystemExit) as caught:
            train.main(["pairs", str(file), "--out", str(tmp_path / "out"), "--resume"])
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_loss_that_is_no_number_is_said(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"a b {i}\tc d {i}\n" for i in range(40)))
    options = ["--peak", "1e30", "--warmup", "1", "--epochs", "1"]
    with pytest.raises(SystemExit, match="--peak may be too high"):
        train.main(["pairs", str(file), "--out", str(tmp_path / "out"), *options])


STEPS = """
import json, sys, torch
from pathlib import Path
from headlight.model.training import tasks
from headlight.model.training import train
torch.set_default_dtype(torch.float64)
task = tasks.pairs(Path(sys.argv[1]))
task.sizes["dropout"] = 0.0
recipe = train.Recipe(max_tokens=600, warmup=10)
run = train.Training(task, recipe, Path(sys.argv[2]), cpu=True)
batches = [batch for epoch in range(1, 20) for batch in run.epoch(epoch)][:50]
losses = [run.step(batch) for batch in batches]
if run.accelerator.is_main_process:
    print(json.dumps([run.accelerator.num_processes, losses]))
"""


@pytest.mark.long
def test_two_processes_equal_one(tmp_path):
    """At a rate so high that rounding would grow from step to step, which tells sums apart best."""
    file, script = tmp_path / "pairs.tsv", tmp_path / "steps.py"
    pairs = tasks.toy("reverse").examples()["train"][:300]
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})" + STEPS)
    launcher = ["-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision",
                "no", "--dynamo_backend", "no", "--multi_gpu", "--num_processes", "2"]  # fmt: skip
    found = {}
    for name, launch in {"one": (), "two": launcher}.items():
        process = subprocess.run(
            [sys.executable, *launch, *map(str, (script, file, tmp_path / name))],
            cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr.decode()
        count, found[name] = json.loads(process.stdout.decode().splitlines()[-1])
        assert count == 1 + (name == "two")
    assert len(found["one"]) == 50
    assert max(abs(a - b) for a, b in zip(found["one"], found["two"], strict=True)) <= 1e-6
