"""Every change against a computation that does not use it."""

import random
import re

import numpy as np
import pytest
import torch

from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.presets import PRESETS
from headlight.model.probing import changes
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.changes import (
    EVERY_KIND,
    PATTERNS,
    SIZED,
    CannotChange,
    HeadOff,
    Hidden,
    Patterned,
    Scope,
    Temperature,
    Uniform,
    WeightSet,
    look_ahead,
    parse,
    written,
)
from headlight.model.probing.patching import recorded
from headlight.model.probing.run import Run
from headlight.model.probing.sites import parts_of
from headlight.model.probing.trace import ids_of, read_of, trace
from tests.model.common import encoding, in_short, random_ids, random_model, two_runs

WITHIN = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.fixture(params=list(PRESETS))
def preset(request):
    return request.param


def texts_of(model):
    return two_runs(model)[0].texts


def logits(model, line="", masks=Masks(), pad_to=0, texts=None, given=PatchInputs()):
    """The logits of a run, in the model's own type."""
    run = Run(texts or texts_of(model), masks, pad_to)
    ids = ids_of(model, read_of(model, run))
    with torch.no_grad(), applied(model, parse(line), given):
        return model(*ids, *masks.build(model, *ids))


def same(found, expected):
    within = WITHIN[found.dtype] * max(1, expected.abs().max().item())
    assert (found - expected).abs().max() <= within


def softmax(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def by_hand(rows, columns):
    i, j = np.arange(rows)[:, None], np.arange(columns)
    return {
        "none": np.ones((rows, columns), bool),
        "causal": np.tri(rows, columns, dtype=bool),
        "window-1": np.abs(i - j) < 2,
        "prefix-2": np.tri(rows, columns, dtype=bool) | (j < 2),
        "strided-2": (i + j) % 2 == 0,
        "diagonal": np.eye(rows, columns, dtype=bool),
        "no_diagonal": ~np.eye(rows, columns, dtype=bool),
        "no_first": np.broadcast_to(j > 0, (rows, columns)),
    }


def test_hidden_padding_stays_hidden_under_a_ready_made_mask():
    model = random_model("paper")
    run = Run(texts_of(model), pad_to=9, changes=parse("encoder=mask:none; decoder=mask:none"))
    found = trace(model, run)
    for kind, side in (("encoder", "src"), ("decoder", "tgt")):
        pads = [i for i, token in enumerate(found.texts[side].tokens) if token == "<pad>"]
        assert pads and not found.attention[kind][..., pads].any()
        assert found.attention[kind][..., 0, 1].all()  # no causal mask


def test_cells_are_painted_in_the_order_of_the_line():
    model = random_model("paper")
    line = "decoder.1=forbid:3>1,3>2; decoder.1=allow:1>4,3>2"
    plain = trace(model, Run(texts_of(model)))
    found = trace(model, Run(texts_of(model), changes=parse(line)))
    scores = plain.scores["decoder"][0]
    allowed = np.tri(*scores.shape[-2:], dtype=bool)
    allowed[2, 0], allowed[0, 3] = False, True
    assert np.abs(found.attention["decoder"][0] - softmax(scores, allowed)).max() <= 1e-6


def test_a_weight_that_cannot_be_set_is_refused():
    model = random_model("paper")
    for line, why in (
        ("decoder.1.1=weight:2>3:0.5", "masked"),
        ("decoder.1.1=weight:1>1:0.5", "all its weight on one key"),
    ):
        with pytest.raises(CannotChange, match=why):
            trace(model, Run(texts_of(model), changes=parse(line)))
    run = Run(texts_of(model), changes=parse("decoder.1.1=weight:1>1:1.0"))
    assert trace(model, run).attention["decoder"][0, 0, 0, 0] == 1


def test_they_act_in_one_order_whatever_the_line():
    model = random_model("paper")
    parts = [
        "encoder.1=temperature:2.0", "encoder.1=hide:2", "encoder.1.1=weight:3>1:0.6",
        "encoder.1.2=uniform", "encoder.1.3=off",
    ]  # fmt: skip
    expected = trace(model, Run(texts_of(model), changes=parse("; ".join(parts))))
    row = expected.attention["encoder"][0, 0, 2]
    assert row[0] == pytest.approx(0.6) and row[1] == 0 and row.sum() == pytest.approx(1)
    for _ in range(5):
        random.shuffle(parts)
        found = trace(model, Run(texts_of(model), changes=parse("; ".join(parts))))
        assert np.array_equal(found.logits, expected.logits)


@pytest.mark.parametrize(
    "first, last",
    [
        ("weight:3>1:0.6", "uniform"), ("temperature:3.0", "uniform"), ("uniform", "off"),
        ("uniform", "mean"), ("weight:3>1:0.6", "mean"), ("off", "patch"), ("mean", "patch"),
        ("uniform", "patch"), ("skip", "patch"),
    ],
)  # fmt: skip
def test_what_acts_later_leaves_nothing_of_what_acts_before(first, last):
    """On one head, or one feed-forward, in either order of the line."""
    model = random_model("paper")
    chance = torch.Generator().manual_seed(3)
    means = {
        site.name: torch.randn(site.n_heads, model.config.d_head, generator=chance)
        for site in model.sites()
    }
    given = PatchInputs(means, recorded(model, two_runs(model)[1]))
    place = "encoder_feed_forward.1" if first == "skip" else "encoder.1.2"
    lines = [f"{place}={verb}" for verb in (first, last)]
    before, expected = (logits(model, line, given=given) for line in lines)
    assert (before - expected).abs().max() > 1e-5
    for line in ("; ".join(lines), "; ".join(lines[::-1])):
        same(logits(model, line, given=given), expected)


def test_without_changes_and_after_them_nothing_differs(preset):
    model = random_model(preset)
    plain = logits(model)
    assert torch.equal(logits(model, ""), plain)
    logits(model, f"{EVERY_KIND}=off; {EVERY_KIND}=hide:1")
    assert torch.equal(logits(model), plain)
    with pytest.raises(RuntimeError), applied(model, parse(f"{EVERY_KIND}=uniform")):
        raise RuntimeError
    assert torch.equal(logits(model), plain)
    hooks = [
        hook
        for module in model.modules()
        for hook in (*module._forward_hooks, *module._forward_pre_hooks)
    ]
    assert not hooks


def generated(chance) -> changes.Change:
    def some(most):
        return chance.randrange(most)

    layer = chance.choice([None, some(12)])
    head = None if layer is None else chance.choice([None, some(16)])
    scope = Scope(
        chance.choice(["encoder", "decoder", "cross", EVERY_KIND, "ahead_2"]), layer, head
    )
    cells = tuple((some(300), some(300)) for _ in range(1 + some(4)))
    pattern = chance.choice(list(changes.PATTERNS))
    return chance.choice(
        [
            HeadOff(scope),
            Uniform(scope),
            Hidden(scope, tuple(some(900) for _ in range(1 + some(4)))),
            Patterned(scope, pattern, 1 + some(9) if pattern in changes.SIZED else 0),
            changes.Forbidden(scope, cells),
            changes.Allowed(scope, cells),
            Temperature(scope, chance.uniform(1e-6, 1e6)),
            WeightSet(scope, some(99), some(99), chance.random()),
            changes.HeadMean(scope),
            changes.Resampled(scope, 1 + some(9)),
            changes.Randomised(scope, 1 + some(9)),
            changes.Skipped(scope),
            changes.Patched(scope, tuple(some(900) for _ in range(some(4)))),
            changes.Pathed(scope, Scope("encoder", some(9), some(9)), chance.choice(["", "key"])),
            changes.Positioned(scope, *chance.choice([("none", 0), ("shifted", 1 + some(9))])),
        ]
    )


def test_a_line_is_read_as_it_was_written():
    chance = random.Random(0)
    for _ in range(1000):
        some = tuple(generated(chance) for _ in range(chance.randrange(4)))
        assert parse(written(some)) == some
        assert all("\n" not in str(one) for one in some)


def test_a_large_painted_mask_fits_a_link():
    scope = Scope("decoder", 1, 2)
    whole = changes.Forbidden(scope, tuple((i, j) for i in range(64) for j in range(64)))
    assert str(whole) == "decoder.2.3=forbid:1-64>1-64" and parse(str(whole)) == (whole,)
    upper = changes.Allowed(scope, tuple((i, j) for i in range(64) for j in range(i, 64)))
    assert len(str(upper)) < 1000 and parse(str(upper)) == (upper,)
    with pytest.raises(CannotChange):
        parse("decoder=forbid:1-99999>1-99999")


def test_a_broken_line_is_answered_with_a_sentence_that_quotes_it():
    chance = random.Random(1)
    broken = ["x", "=off", "cross", "cross.0=off", "cross.1.2.3=off", "cross=of", "cross=off:3",
              "cross=hide", "cross=hide:0", "cross=hide:1,,2", "cross=mask:windows-2",
              "cross=mask:window", "cross=mask:causal-2", "cross=temperature:0",
              "cross=temperature:nan", "cross=temperature:inf", "cross=weight:1>2:1.5",
              "cross=weight:1>2:-0.1", "cross=weight:1:0.5", "cross=forbid:1-2", "cross.١=off",
              "cross.9999999=off", "cross=hide:1;x"]  # fmt: skip
    while len(broken) < 250:
        text = str(generated(chance))
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice("?=>:.,;x-") + text[at + chance.randrange(2) :]
        try:
            parse(text)
        except CannotChange:
            broken.append(text)
    for line in broken:
        with pytest.raises(CannotChange) as refused:
            parse(line)
        message = str(refused.value)
        quoted = re.match("“(.*?)”", message)[1]
        assert quoted in line and message.endswith((".", "it.")) and "\n" not in message


def test_a_line_has_so_many_changes_and_so_many_cells():
    some = [f"cross.1.1=weight:{i}>1:0.5" for i in range(1, changes.MOST_CHANGES + 1)]
    assert len(parse("; ".join(some))) == len(some)
    large = "all=allow:1-512>1-512"
    assert len(parse(large)[0].cells) == changes.MOST_CELLS
    parts = parts_of(*(lambda model: (model.sites(), model.sides()))(random_model("paper")))
    for line, why in (
        ("; ".join([*some, "cross=off"]), "the limit is 300"),
        (f"{large}; cross=forbid:1>1", "at most 262,144"),
    ):
        with pytest.raises(CannotChange, match=why) as refused:
            parse(line)
        assert str(refused.value).startswith("“cross=")
        assert parse(written(changes.readable(line, parts)))


def test_what_a_model_does_not_have_is_said():
    model = random_model("paper")
    for line, why in (
        (
            "sideways=off",
            "does not apply to “sideways” in this model; choose from encoder, decoder",
        ),
        ("encoder.9=off", "no layer 9"),
        ("encoder.1.9=off", "no head 9"),
        ("encoder.1.1=skip", "a whole layer, not to a head"),
        ("encoder_feed_forward.1=off", "does not apply to “encoder_feed_forward”"),
        ("encoder_feed_forward.9=skip", "no layer 9"),
        ("encoder_residual.1.1=patch", "no head 1"),
        ("encoder=positions:none", "choose from source, target"),
        ("source.1=positions:none", "no layer 1"),
        ("encoder.1.1=mean", "the mean output of this model's heads is not known"),
        ("encoder.1.1=random", "the mean output of this model's heads is not known"),
        ("encoder.1.1=resample", "in other texts are not known"),
        ("encoder.1.1=patch", "no comparison to patch from"),
    ):
        with pytest.raises(CannotChange, match=why):
            logits(model, line)


@pytest.mark.parametrize("name", PATTERNS)
def test_whether_a_ready_made_mask_looks_ahead_its_first_query_says(name):
    for size in range(1, 6) if name in SIZED else (0,):
        places = torch.arange(3 * size + 3)
        whole = PATTERNS[name](places[:, None], places, size).triu(1).any()
        assert Patterned(Scope(EVERY_KIND), name, size).looks_ahead == whole, size
    assert Patterned(
        Scope(EVERY_KIND), "window", 999_999
    ).looks_ahead  # a row, not a square of them


@pytest.mark.parametrize("preset", ["paper", "pre_norm"])
def test_positions_that_a_table_has_not_are_refused(preset):
    model = random_model(preset)
    longest, most = len(texts_of(model)[0].ids) + 1, model.config.max_length
    assert logits(model, f"all=positions:shifted-{most - longest}").isfinite().all()
    for shift in (most - longest + 1, most - 1, most, most + 5):
        with pytest.raises(CannotChange, match=f"leaves {max(0, most - shift)} positions"):
            logits(model, f"source=positions:shifted-{shift}")


def test_a_patch_needs_texts_of_one_length_and_a_run_without_patches(en_de):
    other = en_de.run("Two dogs run over green grass.", "Ein Hund.")
    for line in ("encoder.1.1=patch", "all=patch"):
        with pytest.raises(CannotChange, match="the comparison's source has"):
            en_de.trace("A dog runs.", "Ein Hund.", changes=line, other=other)
    assert en_de.trace("A dog runs.", "Ein Hund.", changes="decoder.1=patch", other=other)
    patched = en_de.run("A dog runs.", "Ein Hund.", changes="decoder.1=patch", other=other)
    with pytest.raises(CannotChange, match="is itself patched"):
        en_de.trace("A dog runs.", "Ein Hund.", changes="decoder.1=patch", other=patched)


WRITTEN_UNDER = [
    "all.1.1=off", "cross=temperature:3.0", "decoder.2=mask:causal", "decoder=mask:strided-2",
    "decoder.1.2=weight:4>2:0.9; decoder.1.2=weight:99>2:0.5", "decoder.3=forbid:3>1,5>2,80>1",
    "cross=hide:2; decoder=hide:2", "decoder_feed_forward.2=skip", "cross.3=skip",
    "cross.2.1=uniform", "all=positions:shifted-3", "target=positions:none", "all.1=mean",
    "all.2=resample; decoder.3=random:5",
    "decoder.1=mask:none", "decoder=mask:window-2", "decoder.2.1=allow:1>3,2>9", "all=patch:2,3",
    "decoder.2.3=patch; encoder_residual.1=patch:1", "decoder_residual.4=patch:3",
]  # fmt: skip


@pytest.mark.parametrize("line", in_short(WRITTEN_UNDER, *WRITTEN_UNDER[1::2]))
def test_written_with_a_cache_as_without_one(en_de, line):
    """One row at a time, told its place, against all rows anew at every step."""
    text, other = "A man is riding a horse.", en_de.run("A woman is riding a bike.")
    given = en_de.given(en_de.run(text, "x", changes=line, other=other), written=True)
    found = parse(line)
    src = torch.tensor([[*en_de.tokenizer.encode(text).ids, en_de.model.config.eos_id]])
    with applied(en_de.model, found, given):
        whole = greedy_decode(en_de.model, src, use_cache=False)
    written_target = en_de.translate(text, changes=line, other=other)
    assert list(written_target.ids) == whole[0]
    assert look_ahead(found, en_de.model.sites()) == any(
        word in line for word in ("mask:none", "window", "strided", "allow")
    )


@pytest.mark.parametrize("value", ["1e-300", "1e-45", "1e-30", "1e300"])
def test_at_its_ends_temperature_leaves_the_largest_score_or_none_to_prefer(value):
    """And never NaN, however often it is taken."""
    model = random_model()
    texts = encoding(random_ids(7)), encoding(random_ids(5))
    plain, once, twice = (
        trace(model, Run(texts, changes=parse("; ".join([f"all=temperature:{value}"] * times))))
        for times in range(3)
    )
    scores, weights = plain.scores["encoder"][0], once.attention["encoder"][0]
    largest = np.eye(scores.shape[-1])[scores.argmax(axis=-1)]
    expected = largest if float(value) < 1 else np.full_like(weights, 1 / scores.shape[-1])
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    for kind in twice.attention.values():
        np.testing.assert_allclose(kind.sum(axis=-1), 1, rtol=1e-5)
