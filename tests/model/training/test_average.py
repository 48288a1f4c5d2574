"""The mean of the weights of checkpoints."""

import json

import pytest
import torch
from torch.testing import assert_close

from model import checkpoint, presets
from model.tokenizer import Tokenizer
from model.training.average import average, main
from model.training.data import DataError

SIZES = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)
TOKENIZER = Tokenizer.train(["a dog", "ein Hund"], 300)


def saved(folder, seed, step=None, preset="pre_norm", tokenizer=TOKENIZER, **sizes):
    torch.manual_seed(seed)
    model = presets.build(preset, vocab_size=len(tokenizer), **SIZES | sizes).eval()
    about = {
        "task": "multi30k",
        "scores": [{"set": "a"}],
        "alignment": {},
        "recipes": [{"seed": 1}],
    }
    if step:
        about |= {"step": step, "weights": f"epoch {step}"}
    checkpoint.save(folder, model, preset, tokenizer, {})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"card": about | {"domain": {}}}))
    return folder


@pytest.fixture
def two(tmp_path):
    return [saved(tmp_path / f"run-{step}", step, step) for step in (1000, 2000)]


def weights(folder):
    return dict(checkpoint.load(folder).model.named_parameters())


def test_the_mean_by_shares(two, tmp_path, capsys):
    out = tmp_path / "mean"
    main([*map(str, two), "--shares", "1", "3", "--out", str(out)])
    found, (earlier, later) = weights(out), map(weights, two)
    for name in found:
        expected = torch.lerp(earlier[name], later[name], 0.75)
        assert_close(found[name], expected.half().float(), rtol=0, atol=0, msg=name)
    said = "25% those after step 1,000, 75% epoch 2000"
    assert said in capsys.readouterr().out
    assert f"Weights: {said} of the last run." in (out / "README.md").read_text()


def test_without_shares_all_count_the_same_and_one_alone_is_itself(two, tmp_path):
    main([*map(str, two), "--out", str(tmp_path / "mean")])
    main([str(two[1]), "--out", str(tmp_path / "same")])
    found, same, earlier, later = map(weights, (tmp_path / "mean", tmp_path / "same", *two))
    for name in found:
        assert_close(found[name], ((earlier[name] + later[name]) / 2).half().float())
        assert torch.equal(same[name], later[name])


def test_nothing_that_was_measured_on_others_stays(two):
    mean = average([checkpoint.load(folder) for folder in two], [1.0, 1.0])
    assert mean.card.keys() == {"task", "recipes", "step", "weights"}
    assert not mean.means


def test_models_that_have_no_mean(two, tmp_path):
    first = checkpoint.load(two[0])
    others = {
        "presets": saved(tmp_path / "preset", 1, 1, preset="paper"),
        "shapes": saved(tmp_path / "shape", 1, 1, d_ff=24),
        "tokenizers": saved(
            tmp_path / "words", 1, 1, tokenizer=Tokenizer.train(["a god", "ein Hund"], 300)
        ),
        "no step": saved(tmp_path / "bare", 1),
    }
    for word, folder in others.items():
        with pytest.raises(DataError, match=word):
            average([first, checkpoint.load(folder)], [1.0, 1.0])


@pytest.mark.parametrize(
    "options, words",
    [
        ("--shares 1", "2 checkpoints need as many --shares"),
        ("--shares 1 -1", "numbers from 0"),
        ("--shares 0 0", "not all 0"),
        ("--shares 1 nan", "numbers from 0"),
    ],
)
def test_what_is_no_share_is_refused(two, tmp_path, capsys, options, words):
    with pytest.raises(SystemExit):
        main([*map(str, two), "--out", str(tmp_path / "mean"), *options.split()])
    assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*map(str, two), "--out", str(two[0])])
    assert "is not empty" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no checkpoint"):
        main([str(two[0]), "nowhere", "--out", str(tmp_path / "mean")])
