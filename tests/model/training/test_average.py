"""The mean of the weights of checkpoints."""

import pytest
import torch
from torch.testing import assert_close

from headlight.model import checkpoint, presets
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.average import average, main
from headlight.model.training.data import DataError
from headlight.model.variants import PrunedSoftmax

SIZES = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)
TOKENIZER = Tokenizer.train(["a dog", "ein Hund"], 300)


def saved(folder, seed, step=None, preset="pre_norm", tokenizer=TOKENIZER, **sizes):
    torch.manual_seed(seed)
    model = presets.build(preset, vocab_size=len(tokenizer), **SIZES | sizes).eval()
    card = {"task": "multi30k", "alignment": {}, "domain": {}}
    card |= {"scores": [{"set": "a", "decode": "greedy", "bleu": 1.0}]}
    if step:
        card |= {"step": step, "weights": f"epoch {step}", "recipes": [{"seed": 1}]}
    checkpoint.save(folder, model, preset, tokenizer, card)
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
    said = "25% after step 1,000, 75% epoch 2000"
    assert said in capsys.readouterr().out
    assert f"Weights: {said}, last training run." in (out / "README.md").read_text()


def test_the_mean_of_a_mean_says_what_is_in_it(two, tmp_path, capsys):
    mean = tmp_path / "mean"
    main([*map(str, two), "--out", str(mean)])
    main([str(two[0]), str(mean), "--out", str(tmp_path / "again")])
    said = "50% after step 1,000, 50% (50% after step 1,000, 50% epoch 2000)"
    assert said in capsys.readouterr().out


def test_nothing_that_was_measured_on_others_stays_and_they_stay_as_they_are(two):
    each = [checkpoint.load(folder) for folder in two]
    found = average(each, [1.0, 1.0])
    assert found.card.keys() == {"task", "recipes", "step", "weights"}
    assert not found.means
    for folder, one in zip(two, each, strict=True):
        own = weights(folder)
        assert all(torch.equal(p, own[name]) for name, p in one.model.named_parameters())


def test_heads_that_are_pruned_stay_so(two, tmp_path):
    for folder in two:
        checkpoint.write_card(
            folder,
            checkpoint.load(folder).card | {"pruned": [{"kind": "cross", "layer": 0, "head": 1}]},
        )
    main([*map(str, two), "--out", str(tmp_path / "mean")])
    attention = checkpoint.load(tmp_path / "mean").model.decoder.layers[0].cross_attn
    assert isinstance(attention.softmax, PrunedSoftmax)


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
