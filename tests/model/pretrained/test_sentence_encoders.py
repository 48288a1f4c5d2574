"""A sentence encoder makes the vector that sentence-transformers make of the same folder, by their
documentation, or is refused by the name of what no part here can do."""

import itertools
import json
import re
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.pretrained.command import add
from headlight.model.pretrained.weights import CannotLoad
from tests.model.pretrained.folders import TEXT, random_batch, say, write

IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
KEYS = {  # as files had them first, one key for each
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "lasttoken": "pooling_mode_lasttoken",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
}
DENSE = {  # what → (numbers that come out, with bias, activation) of each
    "none": (),
    "tanh": ((10, True, TANH),),
    "two": ((40, False, IDENTITY), (7, True, "torch.nn.modules.activation.GELU")),
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A BERT without a head."""
    folder = tmp_path_factory.mktemp("bert")
    write(folder, "minilm")
    return folder


def as_flags(*modes):
    return {key: mode in modes for mode, key in KEYS.items()}


def encoder(bare, into, pooling, dense=(), normalized=False, kinds=()):
    """A folder with these modules; `pooling` is the config of that one, `kinds` are types of more.
    Gives the linear maps."""
    shutil.copytree(bare, into)
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    (into / "1_Pooling").mkdir()
    (into / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    torch.manual_seed(3)
    maps, width = [], 24
    for i, (out, bias, activation) in enumerate(dense, start=2):
        linear, name = nn.Linear(width, out, bias), f"{i}_Dense"
        values = dict(in_features=width, out_features=out, bias=bias)
        (into / name).mkdir()
        (into / name / "config.json").write_text(
            json.dumps(values | {"activation_function": activation})
        )
        tensors = {f"linear.{name}": p.detach() for name, p in linear.named_parameters()}
        save_file(tensors, into / name / "model.safetensors")
        modules.append(("Dense", name))
        maps.append((linear, activation))
        width = out
    modules += [("Normalize", f"{len(modules)}_Normalize")] * normalized
    modules += [(kind, f"{len(modules)}_{kind}") for kind in kinds]
    listed = [
        dict(idx=i, name=str(i), path=path, type=f"sentence_transformers.models.{kind}")
        for i, (kind, path) in enumerate(modules)
    ]
    (into / "modules.json").write_text(json.dumps(listed))
    return maps


@torch.no_grad()
def expected(folder, ids, pad_id, mode, maps, normalized):
    """One text at a time, so that nothing need know of padding."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    vectors = []
    for row in ids:
        states = model(row[row != pad_id][None]).last_hidden_state[0]
        vector = {
            "mean": states.mean(0), "cls": states[0], "lasttoken": states[-1],
            "max": states.max(0).values,
        }[mode]  # fmt: skip
        for linear, activation in maps:
            vector = linear(vector)
            if activation == TANH:
                vector = vector.tanh()
            elif activation != IDENTITY:
                vector = nn.functional.gelu(vector)
        vectors.append(vector / vector.norm() if normalized else vector)
    return torch.stack(vectors)


def matches(folder, mode, maps, normalized):
    model = load(folder).model
    ids = random_batch(model.config.vocab_size, model.config.pad_id)
    with torch.no_grad():
        ours = model(ids, *Masks().build(model, ids))
    theirs = expected(folder, ids, model.config.pad_id, mode, maps, normalized)
    assert ours.shape == (len(ids), 1, model.config.d_embedding)
    assert (ours[:, 0] - theirs).abs().max() <= 1e-5


@pytest.mark.parametrize("dense", DENSE)
@pytest.mark.parametrize("mode", ["mean", "cls", "max", "lasttoken"])
def test_vectors(bare, mode, dense, tmp_path):
    layers = DENSE[dense]
    ways = itertools.product((as_flags(mode), {"pooling_mode": mode}), (False, True))
    for i, (pooling, normalized) in enumerate(ways):
        folder = tmp_path / str(i)
        matches(folder, mode, encoder(bare, folder, pooling, layers, normalized), normalized)


def test_what_is_not_said(bare, tmp_path):
    """A model without modules, and one whose pooling says nothing, take the mean."""
    matches(bare, "mean", (), False)
    encoder(bare, tmp_path / "silent", {"word_embedding_dimension": 24})
    matches(tmp_path / "silent", "mean", (), False)
    (tmp_path / "silent" / "modules.json").unlink()
    matches(tmp_path / "silent", "mean", (), False)
    encoder(bare, tmp_path / "alone", {"pooling_mode_cls_token": True})
    matches(tmp_path / "alone", "cls", (), False)


def test_the_head_of_a_model_that_became_an_encoder_is_not_used(tmp_path):
    write(tmp_path / "bert", "bert")
    encoder(tmp_path / "bert", tmp_path / "encoder", as_flags("max"))
    matches(tmp_path / "encoder", "max", (), False)
    assert load(tmp_path / "bert").model.sides()[0].predicts == "masked token"


def test_added_with_all_its_modules(bare, tmp_path):
    maps = encoder(bare, tmp_path / "encoder", as_flags("max"), DENSE["two"], True)
    added = add(str(tmp_path / "encoder"), tmp_path / "models")
    matches(added.folder, "max", maps, True)
    trace = load(added.folder).trace(TEXT)
    assert trace.logits.shape == (1, 7)


def refused(folder, sentence):
    with pytest.raises(CannotLoad) as error:
        load(folder)
    message = str(error.value)
    assert re.search(sentence, message) and message.endswith(".") and "\n" not in message, message


def modules(**changed):
    """Changes the last module of modules.json, or all that stands in it."""

    def change(folder):
        file = folder / "modules.json"
        values = json.loads(file.read_text())
        values[-1] |= changed
        file.write_text(json.dumps(values))

    return change


def of_dense(**changed):
    return lambda folder: say(folder / "2_Dense" / "config.json", **changed)


def without_bias(folder):
    file = folder / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": load_file(file)["linear.weight"]}, file)


def one_more(folder):
    file = folder / "2_Dense" / "model.safetensors"
    save_file(load_file(file) | {"linear2.weight": torch.zeros(2)}, file)


BROKEN = {
    "a type of its own": (modules(type="custom.Dense"), "has the module 'custom.Dense'"),
    "no type": (modules(type=None), "is not a list of modules"),
    "outside": (modules(path="../2_Dense"), r"outside its folder: '\.\./2_Dense'"),
    "another place": (modules(path="3_Dense"), r"3_Dense/config\.json cannot be read"),
    "no list": (lambda f: (f / "modules.json").write_text("{}"), "is not a list of modules"),
    "no pooling": (
        lambda f: (f / "modules.json").write_text(
            '[{"path": "", "type": "sentence_transformers.models.Transformer"}]'
        ),
        "does not start with the modules Transformer and Pooling",
    ),
    "unknown activation": (
        of_dense(activation_function="torch.nn.modules.activation.Mish"), "Mish. for activation_f",
    ),
    "another input": (of_dense(module_input_name="token_embeddings"), "module_input_name"),
    "another width": (of_dense(out_features=11), r"2_Dense/linear.weight has shape \(10, 24\)"),
    "no width": (of_dense(out_features=None), "2_Dense/config.json lacks out_features"),
    "no bias": (without_bias, "lacks the weight 2_Dense/linear.bias"),
    "a weight too many": (one_more, "Headlight does not know: 2_Dense/linear2.weight"),
    "lower case first": (
        lambda f: (f / "sentence_bert_config.json").write_text('{"do_lower_case": true}'),
        r"sentence_bert_config\.json has True for do_lower_case",
    ),
    "a pickle": (
        lambda f: (f / "2_Dense/model.safetensors").rename(f / "2_Dense/pytorch_model.bin"),
        "only safetensors are read",
    ),
}  # fmt: skip


OTHERWISE = [  # what `encoder` is given, what the sentence says
    *(({"pooling": pooling}, f"pools by {said}") for pooling, said in (
        (as_flags("weightedmean"), "'weightedmean_tokens'. Headlight supports mean"),
        (as_flags("mean", "cls"), "'mean' and 'cls'"), ({"pooling_mode": 3}, "3"),
        ({"pooling_mode": ["cls", "max"]}, "'cls' and 'max'"), ({"pooling_mode": []}, "nothing"),
    )),
    ({"pooling": []}, "has no key–value pairs"),
    *(({"kinds": [kind]}, f"has the module '{kind}' after its Pooling")
      for kind in ("LayerNorm", "Pooling")),
]  # fmt: skip


@pytest.mark.parametrize("how, sentence", OTHERWISE)
def test_modules_that_are_refused(bare, how, sentence, tmp_path):
    encoder(bare, tmp_path / "encoder", **{"pooling": as_flags("mean")} | how)
    refused(tmp_path / "encoder", sentence)


@pytest.mark.parametrize("what", BROKEN)
def test_broken_modules(bare, what, tmp_path):
    encoder(bare, tmp_path / "encoder", as_flags("mean"), DENSE["tanh"])
    change, sentence = BROKEN[what]
    change(tmp_path / "encoder")
    refused(tmp_path / "encoder", sentence)


def test_an_encoder_of_another_family_is_refused(tmp_path):
    write(tmp_path / "qwen3", "qwen3")
    encoder(tmp_path / "qwen3", tmp_path / "encoder", as_flags("lasttoken"))
    refused(tmp_path / "encoder", "does not support those of the family")


@pytest.mark.parametrize("said", [True, False], ids=["named", "not named"])
@pytest.mark.parametrize(
    "head", ["TokenClassification", "QuestionAnswering", "NextSentencePrediction"]
)
def test_heads_that_are_refused(bare, head, said, tmp_path):
    """By the name of the class, or else of a weight."""
    name = f"BertFor{head}"
    shutil.copytree(bare, tmp_path / "bert")
    config = transformers.BertConfig.from_pretrained(bare)
    getattr(transformers, name)(config).save_pretrained(tmp_path / "bert")
    if said:
        refused(tmp_path / "bert", f"contains a {name}. Headlight does not support its output head")
        return
    say(tmp_path / "bert" / "config.json", architectures=...)
    head = r"Headlight does not know: (classifier|qa_outputs)\.|lacks the weight cls\.predictions"
    refused(tmp_path / "bert", head)


def test_a_decoder_that_classifies_is_refused(tmp_path):
    write(tmp_path, "qwen2", tie_word_embeddings=True)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    transformers.Qwen2ForSequenceClassification(config).save_pretrained(tmp_path)
    refused(tmp_path, "contains a Qwen2ForSequenceClassification")
    say(tmp_path / "config.json", architectures=None)
    refused(tmp_path, r"Headlight does not know: score\.weight")
