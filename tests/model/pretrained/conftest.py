"""Models that several files of tests read."""

from types import SimpleNamespace

import pytest

from headlight.model.checkpoint import Checkpoint, load
from headlight.model.tokenizer import Tokenizer
from tests.model.common import random_model
from tests.model.pretrained.folders import FAMILIES, LINES, TARGET, TEXT, write

OURS = ("paper", "pre_norm", "bloem", "decoder_only")


@pytest.fixture(scope="module", params=[*OURS, *FAMILIES])
def family(request, tmp_path_factory):
    """A small random model of each family and of presets of ours: checkpoint, model, and a run of
    it; its target is None where it reads one text."""
    if (name := request.param) in OURS:
        tokenizer = Tokenizer.train(LINES, vocab_size=300)
        checkpoint = Checkpoint(random_model(name, vocab_size=300), tokenizer, {}, name)
    else:
        write(folder := tmp_path_factory.mktemp(name), name)
        checkpoint = load(folder)
    target = TARGET if len(checkpoint.model.sides()) > 1 else None
    run = checkpoint.run(TEXT, target)
    return SimpleNamespace(checkpoint=checkpoint, model=checkpoint.model, run=run, target=target)
