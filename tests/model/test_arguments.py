"""What anybody may give to a public function: it is used, or refused in a sentence."""

import dataclasses
import inspect
import math

import pytest
import torch

import headlight
from headlight.model import checkpoint
from headlight.model.decoding.search import beam_search, greedy_decode
from headlight.model.probing.sweeps import Score
from tests.model.common import in_short, load

ODD = [-1, 10**9, 0.5, math.nan, math.inf, "x", True, [1]]  # besides, 0 and None mean something
SMALL = dict(vocab_size=20, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
IDS = torch.tensor([[5, 6, 2]])
TEXT = "a b c"


def spoken(call) -> None:
    """No error but a ValueError or a TypeError with a sentence of ours."""
    try:
        call()
    except (ValueError, TypeError) as error:
        message = str(error)
        assert message and "\n" not in message and len(message) <= 300, message
        for theirs in ("tensor", "dtype", "NoneType", "object has no", "argument", "unsupported"):
            assert theirs not in message, message


@pytest.fixture(scope="module")
def calls():
    """What takes one value, by name."""
    model = load("reverse")
    run = model.run(TEXT, "c b a")
    trace = model.trace_run(run)
    decoder = model.model
    generate = lambda **given: model.generate(TEXT, **{"max_tokens": 3} | given)  # noqa: E731
    return {
        "temperature": lambda v: generate(how=headlight.Sampling(temperature=v)),
        "top_k": lambda v: generate(how=headlight.Sampling(top_k=v)),
        "top_p": lambda v: generate(how=headlight.Sampling(top_p=v)),
        "seed": lambda v: generate(how=headlight.Sampling(seed=v)),
        "width": lambda v: generate(how=headlight.Beam(v if v != 10**9 else 0)),
        "alpha": lambda v: generate(how=headlight.Beam(2, v)),
        "how": lambda v: generate(how=v),
        "max_tokens": lambda v: generate(max_tokens=v),
        "beginning": lambda v: generate(beginning=[v]),
        "pad_to": lambda v: model.trace(TEXT, pad_to=v),
        "masks": lambda v: model.trace(TEXT, masks=v),
        "other": lambda v: model.trace(TEXT, changes="encoder.1=patch", other=v),
        "run": lambda v: headlight.trace(decoder, v),
        "texts": lambda v: headlight.trace(decoder, headlight.Run((v, v))),
        "side": lambda v: model.encode(TEXT, v),
        "position": lambda v: model.sweep(run, "heads", Score(v, 5)),
        "wanted": lambda v: model.sweep(run, "heads", Score(0, v)),
        "decomposed row": lambda v: model.decomposition(run, v, 5),
        "decomposed token": lambda v: model.decomposition(run, 0, v),
        "attributed row": lambda v: model.attribution(run, v, 5),
        "attributed token": lambda v: model.attribution(run, 0, v),
        "attributed head": lambda v: model.attribution(run, 0, 5, v),
        "against": lambda v: model.attribution(run, 0, 5, against=v),
        "term": lambda v: model.carried(run, 0, 5, v),
        "cell": lambda v: model.why(run, v),
        "by": lambda v: model.why(run, "cross.1.1=1>1", by=v),
        "pairs": lambda v: model.paths(v),
        "keep": lambda v: model.paths([("a b c", "d b c")], keep=v),
        "held_out": lambda v: model.paths([("a b c", "d b c")], held_out=v),
        "count": lambda v: trace.most_probable(v),
        "layer": lambda v: trace.row_words("cross", v, 0),
        "head": lambda v: trace.row_words("cross", 0, v),
        "kind": lambda v: trace.sides_of(v),
        "beam": lambda v: beam_search(decoder, IDS, v if v != 10**9 else 0),
        "max_length": lambda v: greedy_decode(decoder, IDS, v),
        "ids": lambda v: greedy_decode(decoder, torch.tensor([[v]])) if type(v) is int else None,
        "preset": headlight.build,
        "parts": lambda v: model.with_parts(scores=v),
        "trace": headlight.show,
        "port": lambda v: headlight.open(None, None, port=v),
        "shown layer": lambda v: headlight.show(trace, layer=v),
        "shown head": lambda v: headlight.show(trace, head=v),
        **{
            f"build {name}": lambda v, name=name: headlight.build(
                "paper", **SMALL | {name: v if v != 10**9 else 0}
            )
            for name in (*SMALL, "max_length", "dropout")
        },
    }


@pytest.mark.parametrize("value", in_short(ODD, -1, math.nan, "x"), ids=str)
def test_a_value_beyond_its_limits_is_refused_in_a_sentence(calls, value):
    for name, call in calls.items():
        try:
            spoken(lambda call=call: call(value))
        except Exception as error:
            error.add_note(name)
            raise


REFUSED = {
    "temperature": (0, r"temperature must be a number above 0 .*, not 0"),
    "top_p": (0, r"top_p must be a number above 0 and at most 1, not 0"),
    "width": (0, "width must be a whole number of at least 1, not 0"),
    "alpha": (math.inf, "alpha must be a number from -10 to 10, not inf"),
    "how": (None, r"how must be Greedy\(\), Beam\(…\) or Sampling\(…\), not None"),
    "beginning": (10**9, "an id of the beginning must be a whole number from 0 to 284"),
    "max_length": (10**6, "max_length must be a whole number from 0 to 1,023"),
    "kind": ("ahead", "no kind of attention 'ahead'; it has encoder, decoder, cross"),
    "side": (2, "side must be a whole number from 0 to 1, not 2"),
    "build dropout": (2, "dropout must be a number from 0 to 1, not 2"),
    "build d_ff": (2.5, "d_ff must be a whole number, not 2.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_sentence_says_what_may_be(calls, name):
    value, sentence = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=sentence):
        calls[name](value)


def test_limits_themselves_are_allowed(calls):
    for name, value in {
        "temperature": 1e-9, "top_p": 1, "top_k": 0, "width": 1, "alpha": -10, "max_tokens": 0,
        "beginning": 284, "max_length": 0, "count": 0, "build pad_id": -1, "build dropout": 1.0,
    }.items():  # fmt: skip
        if name in calls:
            calls[name](value)


def test_a_text_that_a_model_does_not_read_is_said():
    with pytest.raises(ValueError, match="reads no 'src', only tgt"):
        _ = load("induction").trace("a b").src
    with pytest.raises(ValueError, match="reads no 'tgt', only src"):
        _ = load("reviews").trace("good").tgt
    model = load("reverse")
    with pytest.raises(ValueError, match="reads 2 texts, not 1"):
        headlight.trace(model.model, headlight.Run((model.encode("a"),)))


def test_every_public_function_is_tried(calls):
    """A parameter that is added is added above too, or to what takes no number."""
    tried = {name.split()[-1] for name in calls} | {
        "text", "target", "changes", "donor", "what", "score", "token", "row", "head", "name",
        "progress", "device", "ids", "preceding", "written", "state_dict", "sizes", "model",
        "wanted", "given", "known", "self", "config", "reading", "theme",
        "tokenizer", "browser", "wait", "minus", "more",
        "recordings", "path", "half", "colours", "also",
    }  # fmt: skip
    functions = [getattr(headlight, name) for name in headlight.__all__]
    functions += [f for name, f in vars(checkpoint.Checkpoint).items() if inspect.isfunction(f)
                  and not name.startswith("_")]  # fmt: skip
    for function in functions:
        if inspect.isfunction(function) or dataclasses.is_dataclass(function):
            names = set(inspect.signature(function).parameters)
            if function in (headlight.Masks, headlight.Config, headlight.Trace, headlight.Run):
                continue  # switches; tried by build; made here alone; tried by trace
            assert names <= tried, (function.__name__, names - tried)
