"""A folder of our own that is broken says so in one sentence, before memory is taken, in Python and
on the command line."""

import json
import re
import shutil

import pytest
import torch

from headlight.model.checkpoint import SHIPPED, load, save, write_means
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.training import snapshots
from tests.model.common import change_tensors, panicking, random_model, refusals

HUGE = 10**9


@pytest.fixture(scope="module")
def good(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("good") / "one"
    model = random_model(vocab_size=len(tokenizer))
    save(folder, model, "paper", tokenizer, {"task": "copy"})
    write_means(folder, {site.name: torch.zeros(site.n_heads, 6) for site in model.sites()})
    snapshots.write(folder, 10, dict(model.named_parameters()), {})
    load(folder)  # it is
    return folder


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "broken")


def config(change):
    def changed(folder):
        file = folder / "config.json"
        values = json.loads(file.read_text(encoding="utf-8"))
        change(values)
        file.write_text(json.dumps(values), encoding="utf-8")

    return changed


def sizes(**values):
    return config(lambda config: config["sizes"].update(values))


def card(**values):
    return config(lambda config: config["card"].update(values))


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def cut(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-50])


def tensors(name, change):
    return lambda folder: change_tensors(folder / name, change)


def endless(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("/dev/zero")


def large(folder):
    """A file of a gigabyte, which takes no room on the disk."""
    with (folder / "tokenizer.json").open("r+b") as file:
        file.truncate(2**30)


NORM, QUERY = "encoder.layers.0.norm1.weight", "encoder.layers.0.self_attn.query.weight"
BROKEN = {  # what → what makes it so, what the sentence says
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "No such file"),
    "weights cut off": (cut("model.safetensors"), "model.safetensors|[Hh]eader|[Ii]ncomplete"),
    "a weight missing": (tensors("model.safetensors", lambda t: t.pop(NORM)), "do not fit preset"),
    "a row for a matrix": (
        tensors("model.safetensors", lambda t: t.update({QUERY: t[QUERY][:1].clone()})),
        "do not fit preset",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "cannot be read"),
    "a tokenizer that is none": (written("tokenizer.json", b"[1]"), "cannot be read"),
    "a tokenizer that the library panics on": (panicking, "cannot be read: .*Precompiled"),
    "an endless tokenizer": (
        endless, "tokenizer.json cannot be read: it is not a regular file",
    ),
    "a large tokenizer": (large, "tokenizer.json is larger than 67 MB"),
    "another's tokenizer": (
        lambda folder: shutil.copy(SHIPPED / "en-de" / "tokenizer.json", folder),
        "It belongs to another model",
    ),
    "no preset": (config(lambda c: c.update(preset="bird")), "no preset 'bird'; choose from"),
    "no sizes": (config(lambda c: c.pop("sizes")), "cannot be read: 'sizes'"),
    "a size that is a text": (sizes(d_model="large"), "cannot be read"),
    "nested deeply": (written("config.json", b"[" * 200_000), "not valid JSON|cannot be read"),
    "no card": (config(lambda c: c.update(card=3)), "has an invalid card"),
    "classes that are numbers": (card(classes=[1, 2]), "“classes” in its card"),
    "classes of a translator": (card(classes=["a", "b"]), "2 classes, but the model has 0"),
    "a direction that is a number": (card(direction=5), "“direction” in its card"),
    "pruned heads that are a number": (card(pruned=7), "“pruned” in its card"),
    "means of another model": (
        tensors("means.safetensors", lambda t: t.update(x=torch.zeros(2))),
        "belongs to another model",
    ),
    "a token that is none": (sizes(pad_id=-7), "-7 for pad_id, which is not a token"),
    "negative layers": (sizes(n_decoder_layers=-1), "n_decoder_layers must be at least 0, not -1"),
} | {
    f"huge {name}": (sizes(**{name: HUGE}), f"1,000,000,000 for {name}, but its weights allow")
    for name in ("vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers",
                 "n_decoder_layers", "max_length")
}  # fmt: skip


def one_sentence(message: str, wanted: str, what: str = "") -> None:
    assert re.search(wanted, message), (what, message)
    is_one = message.endswith(".") and "\n" not in message and "Traceback" not in message
    assert is_one, (what, message)


def test_one_sentence_at_once(good, tmp_path):
    folders = {}
    for what, (change, _) in BROKEN.items():
        folders[what] = (shutil.copytree(good, tmp_path / what),)
        change(*folders[what])
    for what, message in refusals(CannotLoad, load, folders):
        one_sentence(message, BROKEN[what][1], what)


SNAPSHOT = "snapshots/step-000010.safetensors"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (cut(SNAPSHOT), "cannot be read"),
        (tensors(SNAPSHOT, lambda t: t.pop(NORM)), "belongs to another model"),
        (
            tensors(SNAPSHOT, lambda t: t.update({QUERY: t[QUERY][:1].clone()})),
            "belongs to another model",
        ),
        (tensors(SNAPSHOT, lambda t: t.update({QUERY + ".scale": torch.ones(3, 1)})), "another"),
    ],
)
def test_a_snapshot_of_another_model_changes_nothing(change, wanted, good, folder):
    change(folder)
    model, before = load(folder).model, load(good).model
    with pytest.raises(CannotLoad) as error:
        snapshots.put_into(model, folder, 10)
    one_sentence(str(error.value), wanted)
    for ours, theirs in zip(model.parameters(), before.parameters(), strict=True):
        assert ours.equal(theirs)


def test_a_tokenizer_that_pads_and_cuts_does_neither_here(folder):
    file = folder / "tokenizer.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    plain = load(folder).tokenizer.encode("the dog sees the cat")
    values["truncation"] = dict(direction="Right", max_length=2, strategy="LongestFirst", stride=0)
    values["padding"] = dict(
        strategy={"Fixed": 40}, direction="Right", pad_to_multiple_of=None, pad_id=0,
        pad_type_id=0, pad_token="<pad>",
    )  # fmt: skip
    file.write_text(json.dumps(values), encoding="utf-8")
    assert load(folder).tokenizer.encode("the dog sees the cat") == plain
