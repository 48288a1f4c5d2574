import pytest
import torch

from headlight.model.checkpoint import Checkpoint, load, save
from headlight.model.pretrained.weights import CannotLoad
from tests.devices import current
from tests.model.common import CHECKPOINTS, PRESETS, random_model, traced


@pytest.fixture(params=PRESETS)
def saved(request, tokenizer, tmp_path):
    """A model and the folder it was saved in."""
    model = random_model(request.param, vocab_size=len(tokenizer))
    save(tmp_path / "new", model, request.param, tokenizer, {"task": "test"})
    return model, tmp_path / "new"


def test_what_was_saved_is_loaded(saved, tokenizer):
    model, folder = saved
    loaded = load(folder, device=current())
    assert loaded.model.config == model.config
    assert loaded.card == {"task": "test"}
    assert loaded.tokenizer.encode("the dog 🙂") == tokenizer.encode("the dog 🙂")
    theirs = dict(loaded.model.named_parameters())
    for name, parameter in model.named_parameters():
        assert theirs[name].equal(parameter.half().float())
    assert loaded.model.generator.weight is loaded.model.src_embedding.token.weight
    src, tgt = tokenizer.encode("the dog"), tokenizer.encode("ein Hund")
    ours, again = traced(model, src, tgt).logits, traced(loaded.model, src, tgt).logits
    assert abs(ours - again).max() < 0.02


def test_a_trace_without_a_target_is_over_the_model_s_own(saved):
    loaded = load(saved[1])
    own = loaded.translate("the dog the")
    seen = loaded.trace("the dog the")
    assert seen.tgt.ids == (loaded.model.config.bos_id, *own.ids)
    best = torch.from_numpy(seen.logits.copy()).argmax(dim=-1)
    assert best.tolist()[: len(own.ids)] == list(own.ids)


def test_a_model_that_cannot_begin_a_target_is_given_one(tokenizer):
    model = random_model(vocab_size=len(tokenizer), bos_id=-1)
    checkpoint = Checkpoint(model, tokenizer, {}, "paper")
    assert checkpoint.trace("the dog", "der Hund").tgt == tokenizer.encode("der Hund")
    with pytest.raises(ValueError, match=r"^This model has no token that starts a target"):
        checkpoint.trace("the dog")


@pytest.mark.parametrize(
    ("typed", "meant"), [("en-fR", "en-fr"), ("EN_DE", "en-de"), ("sorts", "sort")]
)
def test_a_wrong_name_is_answered_with_all_names_the_closest_first(typed, meant):
    with pytest.raises(FileNotFoundError) as error:
        load(typed)
    listed = str(error.value).rpartition("first: ")[2].rstrip(".").split(", ")
    assert listed[0] == meant and {*listed} == {each.name for each in CHECKPOINTS}


@pytest.mark.parametrize("device", ["meta", "bird", "cuda:77", "mps:9", "", "cpu:x"])
def test_a_device_that_cannot_be_used_is_refused_in_a_short_sentence(device):
    with pytest.raises(CannotLoad, match=rf"^Device {device} cannot be used: .*\.$") as error:
        load("copy", device=device)
    assert len(str(error.value)) < 250 and "\n" not in str(error.value)
    assert load("copy").to(current()).trace("a b") == load("copy", device=current()).trace("a b")
