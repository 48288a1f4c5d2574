"""A folder that cannot be read says so in one sentence, at once, before memory is taken."""

import json
import re
import shutil

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

from headlight.app.command import main as run
from headlight.model.checkpoint import load
from headlight.model.families.values import quoted
from headlight.model.pretrained import command
from headlight.model.pretrained.command import listed
from headlight.model.pretrained.weights import CannotLoad, Safetensors
from tests.model.common import change_tensors, panicking, refusals
from tests.model.pretrained.folders import say, write


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folders = {}
    for kind in ("bert", "minilm", "gpt2", "llama-groups", "llama-yarn", "marian"):
        folders[kind] = tmp_path_factory.mktemp(kind)
        write(folders[kind], kind)
        load(folders[kind])  # it is
    return folders


def config(**values):
    return lambda folder: say(folder / "config.json", **values)


def weights(change):
    return lambda folder: change_tensors(folder / "model.safetensors", change)


def without(*names):
    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def to_pickle(folder):
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def in_shards(folder, name="model-00001-of-00002.safetensors"):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"wte.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def prefixed(folder):
    file = folder / "tokenizer.json"
    values = json.loads(file.read_text("utf-8"))
    values["model"]["continuing_subword_prefix"] = "s"
    file.write_text(json.dumps(values), "utf-8")


def cut(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def small_tokenizer(folder):
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"] = dict(list(values["model"]["vocab"].items())[:40])
    values["model"]["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(values))


def begins_beyond(folder):
    values = json.loads((folder / "tokenizer.json").read_text())
    values["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [2000]
    (folder / "tokenizer.json").write_text(json.dumps(values))


def nan(tensors):
    tensors["transformer.ln_f.weight"][3] = float("nan")


def wrong_shape(tensors):
    tensors["transformer.h.1.mlp.c_fc.weight"] = torch.zeros(24, 95)


def in_bytes(tensors):
    name = "transformer.h.1.attn.c_attn.weight"
    tensors[name] = tensors[name].to(torch.int8)


def one_more(tensors):
    tensors["transformer.h.1.lora.weight"] = torch.zeros(3)


HUGE = 10**9
BROKEN = {  # what → folder, change, what the sentence says
    "unknown type": ("gpt2", config(model_type="mamba"), "type 'mamba'. Headlight reads bert"),
    "no name of a class": ("gpt2", config(architectures=3), "3 for architectures; these"),
    "no JSON": ("gpt2", lambda f: (f / "config.json").write_text("{"), "is not valid JSON"),
    "no weights": ("gpt2", without("model.safetensors"), "has no weights"),
    "pickle alone": ("gpt2", to_pickle, "only safetensors are read"),
    "a shard missing": ("gpt2", in_shards, "lacks model-00001-of-00002.safetensors"),
    "a shard outside": ("gpt2", lambda f: in_shards(f, "../x.safetensors"), "outside its folder"),
    "cut off": ("gpt2", cut, "cannot be read"),
    "a weight missing": (
        "gpt2", weights(lambda t: t.pop("transformer.h.0.ln_1.bias")), "lacks the weight",
    ),
    "a weight too many": ("gpt2", weights(one_more), "does not know: transformer.h.1.lora"),
    "wrong shape": ("gpt2", weights(wrong_shape), r"shape \(24, 95\), but by config.json"),
    "NaN": ("gpt2", weights(nan), "transformer.ln_f.weight contains numbers that are NaN"),
    "no size": ("gpt2", config(n_embd=..., hidden_size=...), "lacks n_embd"),
    "heads that do not fit": ("gpt2", config(n_head=5), "must be a multiple of n_heads"),
    "huge vocabulary": ("gpt2", config(vocab_size=HUGE), "config.json says"),
    "huge table": (
        "marian", config(max_position_embeddings=HUGE), "a whole number from 1 to 65,536",
    ),
    "odd heads": ("llama-groups", config(head_dim=5), "d_head is odd"),
    "unknown activation": (
        "gpt2", config(activation_function="mish"), "'mish' for activation_function; supported:",
    ),
    "unknown rotation": (
        "llama-groups", config(rope_parameters=dict(rope_type="proportional")),
        "'proportional' for rope_type; supported: default",
    ),
    "factors for too few pairs": (
        "llama-groups",
        config(rope_parameters=dict(rope_type="longrope", long_factor=[1.0], short_factor=[2])),
        "long_factor has 1 numbers, but heads of 10 have 5 pairs",
    ),
    "factors from one token": (
        "llama-groups",
        config(rope_parameters=dict(rope_type="longrope", long_factor=[1.0] * 5,
                                    short_factor=[1.0] * 5, original_max_position_embeddings=1)),
        "at least 2 tokens",
    ),
    "a share of each head turned": (
        "llama-groups", config(partial_rotary_factor=0.5), "0.5 for partial_rotary_factor",
    ),
    "an output that is not there": (
        "gpt2", config(tie_word_embeddings=False), "lacks the weight lm_head.weight",
    ),
    "rotation without its numbers": (
        "llama-groups", config(rope_parameters=dict(rope_type="linear")), "needs factor",
    ),
    "quantised": ("gpt2", config(quantization_config={"bits": 4}), "quantised"),
    "int8": (
        "gpt2", weights(in_bytes),
        r"stores transformer.h.1.attn.c_attn.weight in int8. Find",
    ),
    "relative positions": (
        "bert", config(position_embedding_type="relative_key"), "position_embedding_type",
    ),
    "no tokenizer": ("gpt2", without("tokenizer.json"), "no readable tokenizer"),
    "no spm": ("marian", without("target.spm"), "no file .*target.spm"),
    "no name of a tokenizer's class": (
        "bert", lambda f: (f / "tokenizer_config.json").write_text('{"tokenizer_class": 3}'),
        "no name for tokenizer_class",
    ),
    "a tokenizer on which the library ends the process": (
        "llama-groups", prefixed, "is not a tokenizer: its merge .* lacks the prefix s"
    ),
    "a tokenizer that the library panics on": (
        "gpt2", panicking, r"tokenizer.json is not a tokenizer: .*Precompiled",
    ),
    "an id beyond the vocabulary": ("bert", begins_beyond, "adds an id that its vocab"),
    "broken spm": ("marian", lambda f: (f / "source.spm").write_bytes(b"no"), "SentencePiece"),
    "tokenizer too small": ("gpt2", small_tokenizer, "It belongs to another model"),
    "another's special tokens": (
        "gpt2", config(eos_token_id=50), r"has 50 for eos_token_id, .* tokenizer of \d+ tokens. Set"
    ),
}  # fmt: skip

LONG = 10**60
BEYOND = {  # folder → values beyond what a field may be, one of each kind
    "minilm": dict(hidden_size=24.0, layer_norm_eps=2, hidden_act=["gelu"], type_vocab_size=0),
    "gpt2": dict(eos_token_id=-2, tie_word_embeddings=0, scale_attn_weights=False, n_inner=0),
    "llama-yarn": dict(rms_norm_eps=-1, num_key_value_heads=3, head_dim=-6, attention_bias="no",
                       max_position_embeddings=2**24 + 1, rope_parameters="yarn"),
    "marian": dict(max_position_embeddings=65_537, encoder_layers="2", decoder_ffn_dim=41,
                   decoder_start_token_id=10**6, scale_embedding=1, decoder_vocab_size=0),
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0}
ROTATIONS = (
    {"rope_theta": 1}, {"factor": 0}, {"factor": float("inf")}, {"beta_fast": -1}, {"beta_slow": 0},
    {"attention_factor": float("nan")}, {"mscale": -1}, {"mscale_all_dim": LONG}, {"truncate": 3},
    {"original_max_position_embeddings": 0}, {"rope_type": []}, {"partial_rotary_factor": LONG},
    {"rope_type": "llama3", "low_freq_factor": 4, "high_freq_factor": 4},
    {"rope_type": "longrope", "long_factor": [0] * 3, "short_factor": [1] * 3},
)  # fmt: skip
BROKEN |= {
    f"{kind}: {name}": (kind, config(**{name: value}), f"{name}|n_key_heads")
    for kind, some in BEYOND.items() for name, value in some.items()
} | {
    str(one): (
        "llama-yarn", config(rope_parameters=YARN | one), "|".join((*one, "rope_parameters")),
    )
    for one in ROTATIONS
}  # fmt: skip


def test_one_sentence(good, tmp_path):
    broken = {}
    for i, (what, (kind, change, _)) in enumerate(BROKEN.items()):
        (tmp_path / str(i)).mkdir()
        for name, folder in good.items():  # others stand beside it
            (tmp_path / str(i) / name).symlink_to(folder)
        (tmp_path / str(i) / kind).unlink()
        broken[what] = (shutil.copytree(good[kind], tmp_path / str(i) / kind),)
        change(*broken[what])
    for what, message in refusals(CannotLoad, load, broken):
        *_, sentence = BROKEN[what]
        assert re.search(sentence, message), (what, message)
        assert message.endswith(".") and "\n" not in message, (what, message)
        assert len(message.replace(str(tmp_path), "")) < 400, (what, message)


def test_a_pickle_is_never_opened(good, tmp_path, monkeypatch):
    """Nor with whole safetensors beside it."""
    shutil.copytree(good["gpt2"], tmp_path / "both")
    (tmp_path / "both" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    monkeypatch.setattr(torch, "load", None)
    load(tmp_path / "both")


def test_shards_are_one_model(good, tmp_path):
    folder = tmp_path / "shards"
    shutil.copytree(good["gpt2"], folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    names = sorted(tensors)
    where = {name: files[i % 2] for i, name in enumerate(names)}
    for file in files:
        save_file({name: tensors[name] for name in names if where[name] == file}, folder / file)
    index = json.dumps({"weight_map": where})
    (folder / "model.safetensors.index.json").write_text(index)
    whole, parts = load(good["gpt2"]).model, load(folder).model
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert one.equal(other)


def test_old_names_of_norms(good, tmp_path):
    folder = tmp_path / "old"
    shutil.copytree(good["bert"], folder)

    def rename(tensors):
        for name in [name for name in tensors if "LayerNorm" in name]:
            new = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            tensors[new] = tensors.pop(name)

    weights(rename)(folder)
    ours, old = load(good["bert"]).model, load(folder).model
    for one, other in zip(ours.parameters(), old.parameters(), strict=True):
        assert one.equal(other)


def test_what_does_not_fit_is_told_before_a_number_is_read(good, monkeypatch):
    """With both numbers: what it takes, and what is free."""
    monkeypatch.setattr("headlight.model.pretrained.contents.available", lambda: 10**8)
    load(good["gpt2"])
    monkeypatch.setattr("headlight.model.pretrained.contents.available", lambda: 10**4)
    monkeypatch.setattr(Safetensors, "opened", None)
    with pytest.raises(
        CannotLoad, match=r"needs 0\.0 GB of memory as float32, but only 0\.0 GB are free"
    ):
        load(good["gpt2"])


def test_float32_stays_in_its_file(good):
    """Mapped into memory: no copy is made, and what nobody reads is never loaded."""
    mapped = getattr(psutil.Process(), "memory_maps", None)
    if mapped is None:
        pytest.skip("this system does not tell what is mapped")
    file = str(good["llama-groups"] / "model.safetensors")
    assert not any(one.path == file for one in mapped())
    checkpoint = load(good["llama-groups"])
    assert any(one.path == file for one in mapped())
    del checkpoint


def test_one_broken_folder_leaves_the_others_in_the_list(good, tmp_path, capsys):
    for i, kind in enumerate(("bert", "gpt2", "llama-yarn", "marian")):
        shutil.copytree(good[kind], tmp_path / f"{i}-{kind}")
    for i, values in enumerate((
        {"model_type": {}}, {"model_type": "x" * 5000}, {"hidden_size": LONG}
    )):  # fmt: skip
        config(**values)(shutil.copytree(good["minilm"], tmp_path / f"1-{i}"))
    (tmp_path / "1-3").mkdir()
    (tmp_path / "1-3" / "config.json").write_text("1" * 5000)
    run(["pretrained", "list", "--into", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(one.name for one in tmp_path.iterdir())
    assert sum("licence:" in line for line in lines) == 5  # a size is read when it is loaded
    assert max(map(len, lines)) < 400 + 2 * len(str(tmp_path))


def test_a_folder_that_may_not_be_read_is_listed_with_its_reason(good, tmp_path, monkeypatch):
    shutil.copytree(good["gpt2"], tmp_path / "a")
    shutil.copytree(good["gpt2"], tmp_path / "b")
    before = command.layout_of

    def layout_of(path):
        if path.name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return before(path)

    monkeypatch.setattr(command, "layout_of", layout_of)
    first, second = listed(tmp_path)
    assert first == "a  cannot be read: Permission denied." and "licence:" in second


def test_what_is_quoted_is_short():
    for value in (LONG, 10**4000, -(10**4000), "x" * 10**6, ["y" * 99] * 99, {"z" * 99: [LONG]}):
        assert len(quoted(value)) <= 61
    nested = []
    for _ in range(900):
        nested = [nested, nested]
    assert len(quoted(nested)) <= 61
