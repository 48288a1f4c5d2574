"""Source and target may have a vocabulary each: ids, ends and padding are each side's own."""

import json
import random

import pytest
import torch
import transformers

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.pretrained.state_dicts import load_foreign
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.sites import attention_at
from headlight.model.probing.trace import ids_of, read_of
from headlight.model.training.evaluate import translate
from tests.model.common import in_short
from tests.model.pretrained.folders import TARGET, TEXT, write
from tests.model.pretrained.test_state_dicts import random_state

TEXTS = [(TEXT, TARGET), ("the dog and 12 cats see it", "oder"), ("a naïve café", "Größe: 3,5 m")]


def numbered(folder, chance):
    """The vocabulary with its tokens in another order, behind some that no text has."""
    ids = json.loads((folder / "vocab.json").read_text())
    tokens = [*ids, *(f"unused {i}" for i in range(chance.randrange(4)))]
    chance.shuffle(tokens)
    return {token: i for i, token in enumerate(tokens)}


def two_vocabularies(folder, seed):
    """A random Marian whose sides number their tokens otherwise; transformers' model."""
    chance = random.Random(seed)
    write(folder, "marian-apart")
    source, target = {}, {"<pad>": 0}
    while target["<pad>"] >= len(source):  # which transformers cannot build
        source, target = (numbered(folder, chance) for _ in range(2))
    pad = target["<pad>"]
    model = write(
        folder, "marian-apart", seed, vocab_size=len(source), decoder_vocab_size=len(target),
        pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=target["</s>"],
    )  # fmt: skip
    (folder / "vocab.json").write_text(json.dumps(source))
    (folder / "target_vocab.json").write_text(json.dumps(target))
    said = {"separate_vocabs": True, "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return model


@torch.no_grad()
@pytest.mark.parametrize("seed", in_short(range(20), 0, 1, 2))
def test_ids_and_logits_are_those_of_transformers(seed, tmp_path):
    """Of texts padded together, too."""
    model = two_vocabularies(tmp_path, seed)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    config = checkpoint.model.config
    sources = [source for source, _ in TEXTS]
    theirs = tokenizer(sources, padding=True, return_tensors="pt")
    width = theirs["input_ids"].shape[1]
    for i, (source, target) in enumerate(TEXTS):
        read = read_of(checkpoint.model, checkpoint.run(source, target, pad_to=width))
        src, tgt = ids_of(checkpoint.model, read)
        assert src[0].tolist() == theirs["input_ids"][i].tolist()
        # In place of the end they have its id in the source's vocabulary.
        *expected, _ = tokenizer(text_target=target)["input_ids"]
        real = len(expected) + 1
        assert tgt[0].tolist() == [config.bos_id, *expected, *[config.pad_id] * (width - real)]
        expected = model(
            input_ids=theirs["input_ids"][i : i + 1],
            attention_mask=theirs["attention_mask"][i : i + 1],
            decoder_input_ids=tgt[:, :real],
        ).logits
        found = checkpoint.trace(source, target, pad_to=width).logits
        off = (torch.tensor(found)[:real] - expected[0]).abs().max()
        assert off <= 1e-5 * expected.abs().max().clamp(min=1)
    # In a batch, padded by the source's own token; there is room for as much as the longest has.
    for source, found in zip(sources, translate(checkpoint, sources), strict=True):
        assert found.startswith(checkpoint.translate(source).text)


@pytest.mark.parametrize("there", [True, False])
def test_a_second_vocabulary_that_only_one_file_knows_is_refused(there, tmp_path):
    two_vocabularies(tmp_path, 0)
    if there:
        (tmp_path / "tokenizer_config.json").write_text("{}")
    else:
        (tmp_path / "target_vocab.json").unlink()
    with pytest.raises(CannotLoad, match=r"target_vocab\.json, but .*config\.json has"):
        load(tmp_path)


def test_a_state_dict_of_two_vocabularies_has_ids_of_both():
    state = random_state("hyunwoongko")
    sizes = [len(state[f"{side}.emb.tok_emb.weight"]) for side in ("encoder", "decoder")]
    assert len(set(sizes)) == 2
    outside = min(sizes)  # a token of the larger one
    for name in ("pad_id", "eos_id"):
        with pytest.raises(
            ValueError, match=f"{name}={outside} is not in the vocabulary of {outside}"
        ):
            load_foreign("hyunwoongko", state, n_heads=4, **{name: outside})
    given = dict(pad_id=outside if sizes[1] > outside else 3, src_pad_id=4, src_eos_id=5)
    model = load_foreign("hyunwoongko", state, n_heads=4, **given)
    src, tgt = torch.tensor([[7, 1, 4, 4]]), torch.tensor([[2, 4, 6, given["pad_id"]]])
    masks = Masks().build(model, src, tgt)
    kinds = {site.kind: site for site in model.sites()}
    for (kind, site), mask in zip(kinds.items(), masks, strict=True):
        attention_at(model, site)
        hidden = [False, False, True, True] if site.key_side == "src" else [False] * 3 + [True]
        assert (~mask[..., -1, :]).flatten().tolist() == hidden, kind
