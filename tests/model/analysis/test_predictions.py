import numpy as np
import pytest
import torch

from headlight.model.analysis import predictions
from headlight.model.probing.trace import trace
from tests.model.common import encoding, random_ids, random_model, run_of


def test_what_follows_the_last_token_is_unknown_to_a_model_without_eos():
    pair = encoding(random_ids(7)), encoding(random_ids(5))
    for bos_id, ids in ((1, (1, *pair[1].ids)), (-1, pair[1].ids)):
        model = random_model(bos_id=bos_id, eos_id=-1)
        seen = trace(model, run_of(model, *pair))
        found = predictions.predictions(seen)
        shares = torch.from_numpy(seen.logits.copy()).softmax(dim=-1).numpy()
        assert len(found.wanted) == len(found.best) == len(ids)
        assert found.wanted[:-1] == pytest.approx(shares[range(len(ids) - 1), ids[1:]])
        assert np.isnan(found.wanted[-1])
