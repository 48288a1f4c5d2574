"""A real sentence as a case: what one head of a trained model gets, with its tokens."""

import torch

from headlight.model.checking.part import Case
from headlight.model.probing.trace import Trace

SENTENCE = "She has never seen the red car of my sister."
KIND, LAYER, HEAD = "cross", 2, 2  # from 0


def real(part: str, trace: Trace, model: str) -> Case | None:
    """For the parts that a head has, of a trace over SENTENCE by the model of this name; else
    None."""
    query, key = trace.texts_of(KIND)
    at = LAYER, slice(HEAD, HEAD + 1)
    q, k = (torch.tensor(x[KIND][at])[None] for x in (trace.query, trace.key))
    n, m = q.shape[2], k.shape[2]
    mask = torch.ones(1, 1, n, m, dtype=torch.bool)
    one = torch.eye(m).expand(1, 1, m, m)  # values by which the output is the weights
    inputs = {
        "scores": {"q": q, "k": k},
        "softmax": {"scores": q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, "mask": mask},
        "attention": {"q": q, "k": k, "v": one, "mask": mask},
    }
    title = f"“{SENTENCE}”, {KIND} {LAYER + 1}.{HEAD + 1} of {model}"
    found = inputs.get(part)
    return Case(title, found, rows=query.tokens, columns=key.tokens) if found else None
