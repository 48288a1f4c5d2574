import dataclasses
import pickle
from unittest import mock

import numpy as np
import pytest

from headlight.model import presets
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.trace import TooLarge, TooLong, Trace, trace
from headlight.model.tokenizer import Encoding
from tests.devices import within
from tests.model import common
from tests.model.common import PRESETS, encoding, hooks, random_ids, random_model


@pytest.fixture(params=PRESETS)
def model(request):
    return random_model(request.param)


def traced(model, masks=Masks(), pad_to=12):
    return common.traced(
        model, encoding(random_ids(5)), encoding(random_ids(8)), masks=masks, pad_to=pad_to
    )


def arrays(value):
    """Every array in a trace, however deep."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Trace):
        for field in dataclasses.fields(value):
            yield from arrays(getattr(value, field.name))
    elif isinstance(value, dict | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from arrays(part)


def test_a_trace_is_frozen_and_printed_in_a_line(model):
    seen = traced(model)
    text = repr(seen)
    assert "\n" not in text and len(text) < 500
    assert all(token in text for read in seen.texts.values() for token in read.tokens)
    assert all(f"{kind} {array.shape}" in text for kind, array in seen.attention.items())
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.logits = None
    found = list(arrays(seen))
    assert all(array.dtype == np.float32 for array in found)
    assert seen.nbytes == sum(array.nbytes for array in found)
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_traces_of_the_same_run_are_equal(model):
    one = traced(model)
    again = trace(view(model), one.run)
    assert one == one and one == again
    other = trace(model, dataclasses.replace(one.run, masks=Masks(causal=False)))
    assert one != other and one != "a trace" and one != dataclasses.replace(again, origin="x")


def test_a_trace_outlives_its_model(model):
    seen = traced(model)
    with pytest.raises(KeyError) as error:
        _ = seen.attention["self"]
    assert str(error.value).endswith(", ".join(map(repr, seen.attention)) + ".")
    before = [array.copy() for array in arrays(seen)]
    for parameter in (*model.parameters(), *model.buffers()):
        parameter.zero_()
    after = list(arrays(seen))
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_padding_follows_and_is_masked(model):
    src, tgt = encoding(random_ids(5)), encoding(random_ids(8))
    bare, padded = (common.traced(model, src, tgt, pad_to=n) for n in (0, 12))
    config = model.config
    assert bare.src.ids == (*src.ids, config.eos_id)
    assert bare.tgt.ids == (config.bos_id, *tgt.ids)
    assert padded.src.ids == bare.src.ids + (config.pad_id,) * 6
    assert padded.tgt.ids == bare.tgt.ids + (config.pad_id,) * 3
    assert not padded.attention["cross"][..., 6:].any()
    np.testing.assert_allclose(padded.logits[:9], bare.logits, rtol=0, atol=within(1e-5))
    assert common.traced(model, src, tgt, pad_to=3).src == bare.src


def test_too_long_is_refused_with_both_numbers_before_any_tensor_is_made(model):
    fits, over = encoding(random_ids(39)), encoding(random_ids(40))
    assert common.traced(model, fits, fits).logits.shape == (40, 53)
    with mock.patch(
        "headlight.model.probing.trace.torch.tensor",
        side_effect=AssertionError("a tensor was made"),
    ):
        with pytest.raises(TooLong, match=r"The source is 41 tokens long.* at most 40\."):
            common.traced(model, over, fits)
        with pytest.raises(TooLong, match=r"The target is 41 tokens long.* at most 40\.") as found:
            common.traced(model, fits, over)
        with pytest.raises(TooLong, match=r"41"):
            common.traced(model, fits, fits, pad_to=41)
    assert (found.value.length, found.value.max_length) == (41, 40)
    copy = pickle.loads(pickle.dumps(found.value))  # from a child process
    assert (type(copy), str(copy), copy.length) == (TooLong, str(found.value), 41)
    assert hooks(model) == 0


def test_a_text_whose_weights_do_not_fit_is_told_before_a_tensor_is_made(monkeypatch):
    """At 1,200 tokens two heads of one layer have 2 · 1,200² weights of 4 bytes, kept thrice."""
    model = random_model("decoder_only", n_decoder_layers=1, n_heads=2, max_length=1300)
    text = encoding(random_ids(1199))  # and <s>
    needed = 3 * 4 * 2 * 1200**2
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * needed)
    common.traced(model, text, text)
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * needed - 2)
    monkeypatch.setattr("headlight.model.probing.trace.ids_of", None)
    with pytest.raises(TooLarge, match=r"heads for 1,200 tokens take 0\.0 GB .* 1,199 tokens fit"):
        common.traced(model, text, text)


@pytest.mark.parametrize(("bos_id", "eos_id"), [(1, 2), (4, -1), (-1, 4), (-1, -1)])
@pytest.mark.parametrize("preset", presets.PRESETS)
def test_a_model_reads_the_special_tokens_that_it_has(preset, bos_id, eos_id):
    model = random_model(preset, bos_id=bos_id, eos_id=eos_id)
    src, tgt = encoding(random_ids(5)), encoding(random_ids(8))
    texts = common.traced(model, src, tgt).texts
    if "src" in texts:
        eos = [eos_id] * (eos_id >= 0)
        assert texts["src"].ids == (*src.ids, *eos)
        assert texts["src"].tokens == (*src.tokens, *["</s>"] * len(eos))
    if "tgt" in texts:
        text = src if len(texts) == 1 else tgt
        bos = [bos_id] * (bos_id >= 0)
        assert texts["tgt"].ids == (*bos, *text.ids)
        assert texts["tgt"].tokens == (*["<s>"] * len(bos), *text.tokens)


def test_what_a_model_has_no_token_for_is_refused():
    model, text = random_model(pad_id=-1), encoding(random_ids(5))
    assert common.traced(model, text, text, pad_to=6).src.ids == (*text.ids, 2)
    with pytest.raises(ValueError, match=r"^The source cannot be padded to 7 tokens: .*-1\)\.$"):
        common.traced(model, text, text, pad_to=7)
    model, text, nothing = random_model(eos_id=-1), encoding(random_ids(5)), Encoding((), (), ())
    assert common.traced(model, text, nothing).tgt.tokens == ("<s>",)
    with pytest.raises(ValueError, match=r"^The source is empty"):
        common.traced(model, nothing, text)


def test_a_dataframe_holds_every_weight_with_its_place_and_its_tokens():
    model = random_model(n_encoder_layers=2, n_decoder_layers=3)
    seen = traced(model, pad_to=0)
    table = seen.to_dataframe()
    assert len(table) == sum(weights.size for weights in seen.attention.values())
    sides = {"encoder": (seen.src, seen.src), "decoder": (seen.tgt, seen.tgt)}
    sides["cross"] = (seen.tgt, seen.src)
    row = table.itertuples(index=False)
    for kind, weights in seen.attention.items():
        queries, keys = sides[kind]
        for (layer, head, query, key), weight in np.ndenumerate(weights):
            expected = (kind, layer + 1, head + 1, query + 1, queries.tokens[query])
            read = queries.tokens[query]  # no card says which word a head follows
            assert tuple(next(row)) == (*expected, read, key + 1, keys.tokens[key], weight)
