"""Right answers, computed apart from the app: by NumPy from the numbers that a question shows, and
by torch.nn.Transformer with the same weights, or by attention written here, from the model."""

import math
import re
from functools import cache

import numpy as np
import torch

from headlight.model.masks import Masks
from headlight.model.probing.changes import parse
from headlight.model.probing.reference import Reference
from headlight.model.probing.run import Run
from headlight.model.tokenizer import Encoding
from tests.app.lessons.common import loaded, run_of


def numbers(text):
    """All numbers of a text; a percent is a share."""
    found = re.findall(r"[−-]?\d+(?:[.,]\d+)?(?:e[−-]?\d+)?%?", text)
    return [
        float(x.rstrip("%").replace("−", "-").replace(",", "")) / (100 if x.endswith("%") else 1)
        for x in found
    ]


def softmax(x):
    powers = np.exp(np.asarray(x, dtype=float) - np.max(x))
    return powers / powers.sum()


@cache
def twin(model):
    return Reference(loaded(model).model)


@cache
def twin_trace(model, sentence, changes=""):
    checkpoint = loaded(model)
    run = checkpoint.run(sentence)
    run = Run(run.texts, run.masks, run.pad_to, changes=parse(changes) if changes else ())
    return twin(model).trace(checkpoint.model, run)


def weights(model, sentence, head):
    """(query, key), of torch.nn.Transformer; for models of one text from queries and keys."""
    if model not in ("induction", "reviews"):
        return twin_trace(model, sentence).attention[head.kind][head.layer, head.head]
    base = run_of(model, sentence).base
    q, k = (x[head.kind][head.layer, head.head].astype(float) for x in (base.query, base.key))
    scores = q @ k.T / math.sqrt(q.shape[1])
    if model == "induction":
        scores = np.where(np.tri(len(q)) > 0, scores, -np.inf)
    return np.array([softmax(row) for row in scores])


@cache
def hidden_logits(model, sentence, columns):
    """(row, vocab_size), with source tokens masked as if they were padding."""
    checkpoint, reference = loaded(model), twin(model)
    base = run_of(model, sentence).base
    src, tgt = (torch.tensor([base.texts[side].ids]) for side in ("src", "tgt"))
    mask = torch.zeros(src.shape, dtype=torch.bool)
    mask[0, list(columns)] = True
    with torch.no_grad():
        hidden = reference.transformer(
            reference.src_embedding(src),
            reference.tgt_embedding(tgt),
            tgt_mask=~torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril(),
            src_key_padding_mask=mask,
            memory_key_padding_mask=mask,
        )
        return checkpoint.model.generator(hidden)[0].numpy()


@cache
def greedy(model, sentence, changes=""):
    """The tokens written, one pass of torch.nn.Transformer a token; the probabilities of each."""
    checkpoint = loaded(model)
    eos, source = checkpoint.model.config.eos_id, checkpoint.encode(sentence)
    tokenizer, ids, probabilities = checkpoint.tokenizer.target, [], []
    while len(ids) < 40:
        target = tokenizer.encoding_with_special(ids) if ids else Encoding((), (), ())
        run = Run((source, target), Masks(), changes=parse(changes) if changes else ())
        last = twin(model).trace(checkpoint.model, run).logits[-1]
        probabilities.append(softmax(last))
        ids.append(int(last.argmax()))
        if ids[-1] == eos:
            ids.pop()
            break
    return tuple(tokenizer.encoding_with_special(ids).tokens), probabilities


def logs(logits, ids):
    return np.array([math.log(softmax(row)[i]) for row, i in zip(logits, ids, strict=False)])
