"""Why a head attends to a key: margins by hand, what a sentence says, and whether it comes true."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.decomposition import Term
from headlight.model.analysis.streams import RecordedPass, WordOrigin
from headlight.model.analysis.why import BY, Why, pairs_of, why
from headlight.model.probing.capture import outputs_of
from headlight.model.probing.sites import attention_at
from headlight.model.probing.trace import ids_of
from headlight.model.tokenizer import CannotRead, Encoding
from tests.model.analysis.test_streams import SHIPPED, made
from tests.model.common import hooks, in_short, load

CARS = "She has never seen the red car of my sister."


@pytest.fixture(scope="module")
def cars(en_fr):
    return en_fr.run(CARS)


def token(at, side="src"):
    return WordOrigin("token", side, at)


@pytest.mark.parametrize("by", ["words", "parts"])
@pytest.mark.parametrize("name", in_short(["english", "llama grouped", "paper"], "llama grouped"))
def test_a_margin_is_over_the_other_keys_that_the_row_may_attend_to(name, by):
    model, run = made(name)
    site = model.sites()[-1]
    recorded = RecordedPass(model, run)
    scores = recorded.outputs[site.name, "scores"][0, 1, 3]
    keys = range(4) if site.kind == "decoder" else range(len(scores))
    _, q, _, k = pairs_of(recorded, site, 1, BY[by])
    of_mean = torch.einsum("ad,bkd->bk", q.mean(dim=1), k).sum(dim=0)
    for key in (0, 2):
        found = why(model, run, f"{site.kind}.{site.layer + 1}.2=4>{key + 1}", by=by)
        others = [one for one in keys if one != key]
        margin = scores[key] - scores[others].mean()
        assert found.margin == pytest.approx(float(margin), abs=1e-10)
        assert found.pairs.sum() == pytest.approx(found.margin, abs=1e-10)
        pull = of_mean[key] - of_mean[others].mean()
        assert found.pull.sum() == pytest.approx(float(pull), abs=1e-10)
        assert found.pairs.shape == (len(found.asks), len(found.offers))


def test_what_all_keys_share_says_nothing():
    """Another bias of the key projection: other scores, the same pairs and weights."""
    model, run = made("paper")
    (site,) = [s for s in model.sites() if (s.kind, s.layer) == ("cross", 1)]
    bias = attention_at(model, site).key.bias
    before, kept = why(model, run, "cross.2.2=4>3"), bias.clone()
    bias += torch.randn(len(kept)).to(kept)
    after = why(model, run, "cross.2.2=4>3")
    bias.copy_(kept)
    assert np.abs(before.pairs - after.pairs).max() < 1e-12
    assert after.weight == pytest.approx(before.weight, abs=1e-12)


def test_without_a_word_by_hand(en_fr, cars):
    """Its embedding is the mean of its text's, and nothing is hidden."""
    found = en_fr.why(cars, "cross.1.1=9>7")
    assert [*found.without] == found.named() == [("tgt", 8), ("src", 6)]
    model = en_fr.model
    texts = RecordedPass(model, cars).texts
    attention = model.decoder.layers[0].cross_attn
    for (side, at), said in found.without.items():
        embedding = model.get_submodule(f"{side}_embedding").token

        def averaged(module, inputs, output, at=at):
            output = output.clone()
            output[0, at] = output[0].mean(dim=0)
            return output

        ids = ids_of(model, texts)
        with (
            embedding.register_forward_hook(averaged),
            outputs_of({"scores": attention.scores, "weights": attention.softmax}) as outputs,
            torch.no_grad(),
        ):
            model(*ids, *cars.masks.build(model, *ids))
        scores = outputs["scores"][0, 0, 8]
        others = torch.cat([scores[:6], scores[7:]]).mean()
        assert said.margin == pytest.approx(float(scores[6] - others), abs=1e-4)
        assert said.weight == pytest.approx(float(outputs["weights"][0, 0, 8, 6]), abs=1e-5)
    assert hooks(model) == 0


@pytest.mark.parametrize(
    ("pairs", "pull", "kind", "named"),
    [
        ([[4, 1], [1, 0]], [1, 0], "meeting", [("src", 0), ("src", 1)]),
        ([[1, 1], [1, 3]], [1, 0], "position", []),
        ([[4, 1], [1, 0]], [4, 0], "pull", [("src", 1)]),
        ([[4, 1], [1, 0]], [1, 3], "pull", []),
        ([[1, 1], [1, 1]] * 4, [0, 0], "many reasons", [("src", 1)]),
        ([[40, -20], [-19, 0]], [0, 0], "conflict", []),
        ([[-1, 0], [0, 0]], [0, 0], "none", []),
    ],
)
def test_what_a_sentence_says(pairs, pull, kind, named):
    """Of shares made up: a pair leads, positions, a pull of a word or of its place, nothing."""
    pairs, position = np.array(pairs, float), WordOrigin("position")
    asks = tuple([token(0), position] * (len(pairs) // 2))
    text = Encoding((5, 6), ("dog", "cat"), ((0, 3), (4, 7)))
    found = Why(
        "c.1.1=1>2", "dog", "cat", 0.9, float(pairs.sum()), np.array(pull, float), asks,
        (token(1), position), pairs, {}, {"src": text},
    )  # fmt: skip
    assert found.kind == kind and found.named() == named
    said = found.in_words()
    assert said.startswith("At “dog”, “cat” scores ")
    assert said.endswith(".") and ("for every query" in said) == (kind != "none")
    assert ("no single reason" in said) == (kind in ("many reasons", "conflict"))
    assert sum(value for _, value in found.side(0, len(asks))) == pytest.approx(pairs.sum())


def test_what_the_shipped_models_show(en_fr, cars):
    found = en_fr.why(cars, "cross.1.1=9>7")
    (ask, offer, value), *_ = found.largest(1)
    assert (ask, offer) == (token(8, "tgt"), token(6)) and value > 0.8 * found.margin
    assert en_fr.why(cars, "encoder.2.4=6>5").kind == "position"
    # The noun's gender is needed, and any noun would do: what is asked for is not its own word.
    parts = why(en_fr.model, cars, "cross.4.3=7>7", by="parts")
    assert Term("head", "encoder", 3, 1) in parts.offers and parts.without == {}
    found = en_fr.why(cars, "cross.4.3=7>7")
    assert found.without["src", 4].weight < 0.2 < 0.8 < found.without["src", 6].weight
    english = load("english")
    found = english.why(english.run(SHIPPED["english"]), "decoder.1.3=8>1")
    assert found.kind == "pull" and found.named() == [("tgt", 0)]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("cross", "is not a cell. Write one like “cross.3.3=9>6”"),
        ("cross.1.1=0>1", "there is no query 0. The tokens are: 1 <s> 2 Elle"),
        ("cross.1.1=1>99", "there is no key 99. The tokens are: 1 She 2 has"),
        ("cross.5.1=1>1", "no such head. Attention types: encoder, decoder, cross."),
        ("cross.1.0=1>1", "no such head"),
        ("decoder.1.1=1>2", "this key is masked"),
        ("decoder.1.1=1>1", "only one key to choose from"),
        ("cross.1.1=1>9999999", "is not a cell"),
    ],
)
def test_what_cannot_be_explained(en_fr, cars, cell, said):
    with pytest.raises(CannotRead, match="^“" + cell + "”") as raised:
        en_fr.why(cars, cell)
    assert said in str(raised.value)


@pytest.mark.parametrize("line", ["encoder.1.2=off", "encoder_residual.2=mean", "all.1=random"])
def test_a_pass_whose_vectors_are_replaced_is_no_sum(en_fr, line):
    if "residual" in line:
        other = en_fr.run(CARS.replace("red", "old"), en_fr.decode(en_fr.run(CARS).texts[1]))
        run = en_fr.run(CARS, changes="encoder_residual.2=patch", other=other)
    else:
        run = en_fr.run(CARS, changes=line)
    with pytest.raises(CannotRead, match="the scores here are no sum"):
        en_fr.why(run, "cross.3.3=9>6")


@pytest.mark.long
@pytest.mark.parametrize("name", ["en-fr", "english"])
def test_the_margin_falls_without_a_word_that_is_named(name):
    """Of the words named in 30 cells that have most of a row, in at least 85 %."""
    checkpoint, chance, fell = load(name), np.random.default_rng(0), []
    run = checkpoint.run(SHIPPED[name])
    traced = checkpoint.trace_run(run)
    cells = [
        f"{site.kind}.{site.layer + 1}.{head + 1}={query + 1}>{key + 1}"
        for site in checkpoint.model.sites()
        for head, query, key in zip(
            *np.nonzero(traced.attention[site.kind][site.layer] > 0.5), strict=True
        )
        if query or site.kind != "decoder"
    ]
    for cell in chance.choice(cells, 30, replace=False):
        found = checkpoint.why(run, str(cell))
        fell += [one.margin < found.margin for one in found.without.values()]
    assert len(fell) > 15 and np.mean(fell) >= 0.85
