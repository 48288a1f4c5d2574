"""What other people's models predict, against the softmax of their own logits."""

import json

import numpy as np
import pytest
import tokenizers
import torch
import transformers as tf

from headlight.model import record
from headlight.model.recording.checkpoint import load_recorded
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import E, inputs_of, model_of, named

PREDICTS = {
    "gpt2": "next token",
    "llama": "next token",
    "bloom": "next token",  # read by its output
    "bert": "masked token",
    "bart": "next token",
    "t5": "next token",
    "electra": "",  # tells of each token whether it was replaced
    "vit": "",
}


@pytest.mark.parametrize("name", named(PREDICTS, {"gpt2", "bert", "bart"}))
def test_the_likeliest_answers_are_those_of_its_own_logits(name):
    model, inputs = model_of(name), inputs_of(name)
    recorded = record(model, inputs=inputs)
    assert recorded.predicted.predicts == PREDICTS[name]
    ids, shares = recorded.most_probable(10)
    if not PREDICTS[name]:
        assert not len(ids) and not len(recorded.log_probabilities)
        return
    with torch.no_grad():
        expected = model(**inputs).logits[0].softmax(dim=-1).numpy()
    assert ids.shape == (len(expected), 10)
    assert np.abs(shares - -np.sort(-expected)[:, :10]).max() < 1e-5
    assert np.abs(np.take_along_axis(expected, ids, 1) - shares).max() < 1e-5
    read = inputs.get("decoder_input_ids", inputs["input_ids"])[0].tolist()
    if PREDICTS[name] == "next token":
        assert recorded.preceding == tuple(read)
        rows, wanted = range(len(read) - 1), read[1:]
        assert np.isnan(recorded.log_probabilities[-1])  # nobody knows what follows the last
        assert recorded.next_tokens[-1] == "…"
    else:
        rows, wanted = range(len(read)), read
    assert (
        np.abs(np.exp(recorded.log_probabilities[: len(rows)]) - expected[rows, wanted]).max()
        < 1e-5
    )


def test_a_change_changes_what_is_predicted():
    model, inputs = model_of("gpt2"), inputs_of("gpt2")
    plain, changed = (record(model, inputs=inputs, changes=c) for c in ("", "all=mask:none"))
    assert changed.predicted.predicts == "next token"
    assert np.nanmax(np.abs(plain.log_probabilities - changed.log_probabilities)) > 1e-3


def classifier(**config):
    torch.manual_seed(0)
    names = {0: "sad", 1: "glad", 2: "neither"}
    config = tf.BertConfig(**E, id2label=names, **config)
    return tf.BertForSequenceClassification(config).eval()


def test_a_classifier_predicts_its_classes(tmp_path):
    model, inputs = classifier(), inputs_of("bert")
    recorded = record(model, inputs=inputs)
    with torch.no_grad():
        expected = model(**inputs).logits[0].softmax(dim=-1).numpy()
    ids, shares = recorded.most_probable()
    assert (
        recorded.predicted.predicts == "class" and np.abs(expected[ids[0]] - shares[0]).max() < 1e-6
    )
    assert recorded.outputs([2, 0, 1]) == ["neither", "sad", "glad"]
    recorded.save(tmp_path / "one.safetensors")
    assert load_recorded(tmp_path / "one.safetensors").classes == ("sad", "glad", "neither")
    several = record(classifier(problem_type="multi_label_classification"), inputs=inputs)
    assert several.predicted.predicts == ""  # its probabilities are no softmax


def words(vocabulary=("<unk>", "a", "dog", "##s", "run", "##ning", "[CLS]", "[SEP]")):
    """A tokenizer of transformers, of few words."""
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    backend.decoder = tokenizers.decoders.WordPiece()
    return tf.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


class Slow:
    """A tokenizer without a backend."""

    def __init__(self, fast):
        self.get_vocab, self.convert_ids_to_tokens = fast.get_vocab, fast.convert_ids_to_tokens


@pytest.mark.parametrize("tokenizer", [words(), Slow(words())], ids=["fast", "slow"])
def test_answers_have_names(tokenizer):
    """What continues the word that a row reads is marked as such."""
    recorded = record(model_of("gpt2"), tokenizer, [1, 2, 3, 4, 5])
    assert recorded.texts["src"].tokens == ("a", "dog", "·s", "run", "·ning")
    labels = recorded.predictions.labels
    ids = recorded.most_probable()[0]
    plain = dict(enumerate(["<unk>", "a", "dog", "·s", "run", "·ning", "[CLS]", "[SEP]"]))
    for row in range(5):
        for i, label in zip(ids[row].tolist(), labels[row], strict=True):
            assert label == plain.get(i, f"<{i}>")


def test_a_file_keeps_what_is_predicted(tmp_path):
    file, again = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    recorded = record(model_of("bart"), words(), "a dog", "dogs running")
    recorded.save(file)
    checkpoint = load_recorded(file)
    (back,) = checkpoint.recordings
    back.save(again)
    assert again.read_bytes() == file.read_bytes()
    ids, shares = back.most_probable(3)
    assert np.array_equal(ids, recorded.most_probable(3)[0])
    assert np.array_equal(shares, recorded.most_probable(3)[1])
    assert (back.following, back.preceding) == (recorded.following, recorded.preceding)
    assert back.next_tokens == recorded.next_tokens
    for row, before in enumerate(back.preceding):
        labels = list(back.predictions.labels[row][:3])
        assert checkpoint.outputs(ids[row].tolist(), [before] * 3) == labels


@pytest.mark.parametrize(
    ("field", "value"),
    [("side", "here"), ("predicts", "nothing"), ("labels", [["a"]]), ("labels", 3),
     ("following", [1, 2]), ("following", None)],
)  # fmt: skip
def test_predictions_that_do_not_fit_get_a_sentence(field, value, tmp_path):
    file = tmp_path / "one.safetensors"
    record(model_of("gpt2"), text=[5, 6, 7]).save(file)
    whole = file.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    content = json.loads(header["__metadata__"]["headlight"])
    content["recordings"][0]["predicted"][field] = value
    header["__metadata__"]["headlight"] = json.dumps(content)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + size :])
    with pytest.raises(CannotRecord, match=r"[.?]$"):
        load_recorded(file)
