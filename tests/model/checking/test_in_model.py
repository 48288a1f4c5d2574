"""Laws of a student's parts in a trained model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight import Beam, show, view
from headlight.model.checking.in_model import MASK_PARTS, REPLACEABLE, PartFailed
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.head_steps import head_steps
from tests.model.checking.table import ROWS
from tests.model.common import load

STYLES = {row.style.rpartition(".")[2]: row.make for row in ROWS if row.is_right}
TEXT = "She has never seen the red car of my sister."


def over_queries(q, k, v, mask=None):
    return (q @ k.mT).softmax(2) @ v


def pre_norm(x, mask, attend, norm1, feed, norm2):
    y = norm1(x)
    x = x + attend(y, y, y, mask)
    return x + feed(norm2(x))


def post_norm(x, mask, attend, norm1, feed, norm2):
    x = norm1(x + attend(x, x, x, mask))
    return norm2(x + feed(x))


def width_of_values(q, k, v, mask=None):
    """Right, as queries and values are equally wide."""
    return STYLES["attention_einsum"](q * (v.shape[-1] / q.shape[-1]) ** 0.5, k, v, mask)


RIGHT = {
    "scores": STYLES["scores_baddbmm"], "softmax": STYLES["softmax_by_hand"],
    "split_heads": STYLES["split_heads_chunks"], "merge_heads": STYLES["merge_heads_cat"],
    "causal_mask": STYLES["causal_mask_compare"], "padding_mask": STYLES["padding_mask_loops"],
    "positional_encoding": STYLES["positional_encoding_float32"],
    "layer_norm": STYLES["layer_norm_two_moments"], "feed_forward": STYLES["feed_forward_clamp"],
    "pre_norm_layer": pre_norm,
}  # fmt: skip
SETS = [{name: function} for name, function in RIGHT.items()]
SETS += [{"attention": STYLES["attention_einsum"]}, {"attention": STYLES["attention_numpy"]},
         {"attention": width_of_values}, RIGHT]  # fmt: skip
SETS += [{name: f for name, f in RIGHT.items() if name not in ("scores", "softmax")}
         | {"attention": STYLES["attention_einsum"]}]  # fmt: skip


def named(parts) -> str:
    return " ".join(parts)


def check_the_same(model, mine, pad_to=0):
    run = model.run(TEXT, pad_to=pad_to)
    one, other = mine.trace_run(run), model.trace_run(run)
    assert np.abs(one.logits - other.logits).max() < 1e-3
    for kind, weights in other.attention.items():
        assert np.abs(one.attention[kind] - weights).max() < 1e-5
    assert mine.translate(TEXT, pad_to=pad_to).ids == model.translate(TEXT, pad_to=pad_to).ids


def test_right_parts_compute_the_same(en_fr):
    check_the_same(en_fr, en_fr.with_parts(**RIGHT), pad_to=16)
    check_the_same(en_fr, en_fr.with_parts(attention=STYLES["attention_einsum"]))


@pytest.mark.long
@pytest.mark.parametrize("parts", SETS, ids=named)
@pytest.mark.parametrize("pad_to", [0, 20])
def test_any_right_part_computes_the_same(en_fr, parts, pad_to):
    check_the_same(en_fr, en_fr.with_parts(**parts), pad_to)


@pytest.mark.long
@pytest.mark.parametrize("parts", SETS, ids=named)
@pytest.mark.parametrize(
    "change",
    ["cross.1.2=off", "encoder=hide:3", "source=positions:none", "cross.2.1=uniform",
     "decoder.1=mask:diagonal"],
)  # fmt: skip
def test_changes_act_on_them_as_on_ours(en_fr, parts, change):
    mine = en_fr.with_parts(**parts)
    one, other = (model.trace(TEXT, "Elle a vu.", changes=change) for model in (mine, en_fr))
    assert np.abs(one.logits - other.logits).max() < 1e-3
    assert mine.translate(TEXT, changes=change) == en_fr.translate(TEXT, changes=change)


@pytest.mark.long
@pytest.mark.parametrize("parts", SETS, ids=named)
def test_all_that_looks_inside_runs_on_them(en_fr, parts):
    mine, run = en_fr.with_parts(**parts), en_fr.run(TEXT)
    token = run.texts[1].ids[0]
    assert np.allclose(mine.swept(run).effects, en_fr.swept(run).effects, atol=1e-3)
    assert mine.align(TEXT).links() == en_fr.align(TEXT).links()
    assert mine.generate(TEXT, Beam(2)).tokens == en_fr.generate(TEXT, Beam(2)).tokens
    mine.decomposition(run, 0, token)
    head_steps(view(mine.model), run, mine.model.sites()[0], 1)
    assert show(mine.trace_run(run)).page
    if "numpy" in named(f.__name__ for f in parts.values()):
        with pytest.raises(PartFailed, match="NumPy, which has no gradients"):
            mine.attribution(run, 0, token)
    else:
        mine.attribution(run, 0, token)


@pytest.mark.parametrize("root", [lambda q, k: 1, lambda q, k: q.shape[-2]])
def test_a_wrong_part_writes_what_its_own_pass_predicts(en_fr, root):
    """Also one that a cache would not notice, as it gives a single query row."""
    mine = en_fr.with_parts(scores=lambda q, k: q @ k.transpose(-2, -1) / root(q, k) ** 0.5)
    written = mine.translate(TEXT)
    trace = mine.trace_run(replace(en_fr.run(TEXT), texts=(en_fr.encode(TEXT), written)))
    assert trace.logits.argmax(-1)[: len(written.ids)].tolist() == [*written.ids]
    ours = en_fr.trace_run(trace.run)
    assert np.abs(trace.attention["cross"] - ours.attention["cross"]).max() > 0.1


def test_what_a_part_does_in_place_reaches_no_hook(en_fr):
    def hands(q, k, v, mask=None):
        output = STYLES["attention_einsum"](q, k, v, mask)
        q.zero_(), k.zero_(), v.zero_()
        return output

    mine, ours = en_fr.with_parts(attention=hands).trace("A dog runs."), en_fr.trace("A dog runs.")
    assert all(np.abs(mine.query[kind] - ours.query[kind]).max() < 1e-4 for kind in ours.query)


BROKEN = {
    "a shape": (lambda q, k, v, mask=None: v[:, :1], r"returns the shape \(1, 1, .*It should be"),
    "nothing": (lambda q, k, v, mask=None: None, "returns nothing. It should return"),
    "a list": (lambda q, k, v, mask=None: [1], "a value of type list"),
    "booleans": (lambda q, k, v, mask=None: v > 0, "returns booleans. It should return numbers"),
    "no mask": (lambda q, k, v: v, r"test_in_model.py\) failed .* positional argument"),
    "an exception": (lambda q, k, v, mask=None: q @ v, r"test_in_model.py\) failed .*Line \d+: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_part_that_fails_is_said_in_a_sentence(en_fr, name):
    function, sentence = BROKEN[name]
    with pytest.raises(PartFailed, match=sentence) as caught:
        en_fr.with_parts(attention=function).translate(TEXT, pad_to=20)
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 300


REFUSED = [
    ({"multi_head": post_norm}, "No part 'multi_head' can be put into a model"),
    ({"encoder_layer": post_norm}, "it norms before each sublayer, so write pre_norm_layer"),
    ({"attention": over_queries, "scores": over_queries}, "attention computes its own scores"),
    ({"scores": 5}, "scores must be a function or a module, not '5'"),
    ({"positional_encoding": lambda n, d: torch.zeros(d, n)}, "returns the shape"),
]


@pytest.mark.parametrize(("parts", "sentence"), REFUSED, ids=lambda x: None)
def test_what_cannot_stand_there_is_refused(en_fr, parts, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        en_fr.with_parts(**parts)


def test_weights_are_shown_only_where_they_make_the_output(en_fr):
    mine = en_fr.with_parts(attention=lambda q, k, v, mask=None: k.mean(2, True) + 0 * q)
    assert mine.translate("A dog runs.").ids
    with pytest.raises(PartFailed, match="no weights to show"):
        mine.trace("A dog runs.", "Un chien")


def test_a_change_that_an_attention_would_not_notice_is_refused(en_fr):
    mine = en_fr.with_parts(attention=STYLES["attention_einsum"])
    with pytest.raises(CannotChange, match="computes its own scores"):
        mine.trace("A dog runs.", "Un chien", changes="cross=temperature:2")
    parts = en_fr.with_parts(scores=RIGHT["scores"], softmax=RIGHT["softmax"])
    parts.trace("A dog runs.", "Un chien", changes="cross=temperature:2")


def test_a_layer_that_leaves_something_out_translates(en_fr):
    mine = en_fr.with_parts(pre_norm_layer=lambda x, mask, attend, norm1, feed, norm2: x)
    assert mine.translate("A dog runs.").tokens
    with pytest.raises(PartFailed, match="never calls attend"):
        mine.trace("A dog runs.", "Un chien")


@pytest.mark.long
def test_each_part_has_a_model_that_takes_it():
    reviews = load("reviews")
    mine = reviews.with_parts(encoder_layer=post_norm).classify("good")
    assert mine == pytest.approx(reviews.classify("good"), abs=1e-5)
    assert {*REPLACEABLE, *MASK_PARTS} == {*RIGHT, "attention", "encoder_layer"}
