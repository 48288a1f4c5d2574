"""A model of transformers in memory, against the same weights in our own class."""

import numpy as np
import pytest
import transformers as tf
from torch import nn

from headlight.model.checkpoint import load
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import TooLong
from headlight.model.recording.in_memory import LACKS, in_memory
from headlight.model.recording.weights import CannotRecord
from headlight.model.tokenizer import CannotRead
from tests.model.common import in_short
from tests.model.pretrained.folders import write
from tests.model.recording.models import Own, model_of, state_of

TEXT, TARGET = "the dog sees", "Ein Hund"
LINES = ("", "all.1.2=off", "decoder.2=temperature:0.5", "decoder.1.3=hide:2", "all.2=uniform")


class Holds(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)


@pytest.fixture(scope="module", params=["gpt2", "marian"])
def pair(request, tmp_path_factory):
    """The model in its own code, and in our class."""
    folder = tmp_path_factory.mktemp("folder")
    model = write(folder, request.param)
    if request.param == "marian":  # as in Marian's own generation settings
        model.generation_config.bad_words_ids = [[model.config.pad_token_id]]
    kind = tf.MarianTokenizer if request.param == "marian" else tf.AutoTokenizer
    return in_memory(model, kind.from_pretrained(folder), TEXT), load(folder)


@pytest.mark.parametrize("line", LINES)
def test_it_computes_what_our_class_does(pair, line):
    theirs, ours = pair
    before = state_of(theirs.model.given)
    target = TARGET if theirs.writes else None
    mine, own = (each.trace(TEXT, target, changes=line) for each in pair)
    for kind, weights in own.attention.items():
        assert np.abs(mine.attention[kind] - weights).max() <= 1e-5
    (ids, shares), (known, expected) = (trace.most_probable(3) for trace in (mine, own))
    assert np.abs(shares - expected).max() <= 1e-5
    assert theirs.outputs(ids[:, 0], mine.preceding) == ours.outputs(known[:, 0], own.preceding)
    assert state_of(theirs.model.given) == before


@pytest.mark.parametrize("line", in_short(LINES, "", "all.1.2=off"))
def test_it_writes_under_changes_what_our_class_does(pair, line):
    theirs, ours = pair
    mine, own = (each.translate(TEXT, changes=line).ids for each in pair)
    assert mine[1:][: len(own)] == own[: len(mine) - 1]  # ours come without the first token
    assert bool(mine) == theirs.writes == ours.writes


def test_a_text_is_read_with_its_special_tokens(pair):
    theirs, ours = pair
    assert theirs.run(TEXT).texts[0].ids == next(iter(ours.trace(TEXT).texts.values())).ids
    assert theirs.tokenizer.decode(theirs.encode(TEXT).ids).split() == TEXT.split()


def test_what_it_cannot_do_is_a_sentence(pair):
    theirs, _ = pair
    with pytest.raises(CannotChange, match="only be done to our own models"):
        theirs.trace(TEXT, changes="decoder.1.1=mean")
    with pytest.raises(TooLong):
        theirs.trace("dog " * 200)
    run = theirs.run(TEXT)
    for name, given in (("generate", (run,)), ("swept", (run,)), ("decomposition", (run, 0, 5)),
                        ("attribution", (run, 0, 5)), ("align", (TEXT,))):  # fmt: skip
        with pytest.raises(CannotRead, match=LACKS):
            getattr(theirs, name)(*given)
    found = theirs.long_trace_run(run).attention  # all at once: there is no other way
    for kind, weights in theirs.trace(TEXT).attention.items():
        assert (weights == found[kind]).all()
    with pytest.raises(CannotRecord, match="needs its tokenizer"):
        in_memory(model_of("gpt2"), None)
    with pytest.raises(CannotRecord, match="Own is not a model of transformers"):
        in_memory(Own(), theirs.tokenizer.theirs)


def test_a_model_that_is_wrapped_writes_under_changes(pair):
    theirs, _ = pair
    wrapped = in_memory(holds := Holds(theirs.model.given), theirs.tokenizer.theirs, TEXT)
    assert wrapped.model.given is holds
    line = "all.1.2=off; decoder.2=uniform"
    assert wrapped.translate(TEXT, changes=line) == theirs.translate(TEXT, changes=line)


def test_what_can_only_be_read_has_nothing_to_change(pair):
    theirs, _ = pair
    assert theirs.parts()
    tokenizer = theirs.tokenizer.theirs
    bloom = tf.BloomConfig(vocab_size=len(tokenizer) + 9, hidden_size=16, n_layer=1, n_head=2)
    assert not in_memory(tf.BloomForCausalLM(bloom), tokenizer).parts()
