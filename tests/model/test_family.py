"""What sets the presets apart is what the numbers say: laws, and other ways to compute them."""

import itertools
import math

import pytest
import torch
from torch import nn

from headlight.model.presets import PRESETS
from tests.model import family
from tests.model.test_provenance import SOURCES

D_MODEL, LENGTH = family.FAMILY_SIZES["d_model"], 9


@pytest.fixture(scope="module")
def models():
    return family.members(vocab_size=60, max_length=64)


@pytest.fixture(scope="module")
def src():
    return torch.randint(3, 60, (1, LENGTH), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def tgt():
    return torch.randint(3, 60, (1, 7), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
@torch.no_grad()
def measured(models, src, tgt):
    return family.measure(models, src, tgt)


def test_the_same_numbers_every_time(models, src, tgt, measured):
    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    with torch.no_grad():
        again = family.measure(family.members(vocab_size=60, max_length=64), src, tgt)
    assert again == measured
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_preset_is_there_and_has_a_source(models):
    assert models.keys() == PRESETS.keys() == SOURCES.keys()


def test_a_norm_after_the_sum_sets_the_length_and_one_before_lets_it_grow(measured):
    for name, lengths in measured["lengths"].items():
        assert len(lengths) == 1 + family.N_LAYERS
        if name in ("pre_norm", "annotated"):
            assert all(a < b for a, b in itertools.pairwise(lengths)), name
        else:
            assert lengths[1:] == pytest.approx([math.sqrt(D_MODEL)] * 6, rel=0.01), name


def test_norms_differ_by_the_factor_of_their_variance(models, src):
    x = models["paper"].src_embedding(src)[0]
    largest = nn.functional.layer_norm(x, (D_MODEL,)).abs().max().item()
    expected = largest * (1 - math.sqrt((D_MODEL - 1) / D_MODEL))
    found = family.norms(x)
    assert found["paper"] == 0
    assert found["vanilla"] == pytest.approx(expected, rel=1e-3)
    assert found["annotated"] == pytest.approx(expected, rel=1e-3)
    assert 0 < found["hyunwoongko"] < 1e-4


def test_words_and_positions(models, src, measured):
    assert measured["word_to_position"]["paper"][1] == pytest.approx(math.sqrt(D_MODEL / 2))
    rows = models["hyunwoongko"].src_embedding.token.weight[src[0]]
    expected = rows.square().sum(-1).sqrt().mean().item()
    assert measured["word_to_position"]["hyunwoongko"][0] == pytest.approx(expected)


def test_the_notebook_s_words_are_as_long_as_its_positions(models, measured):
    """Both tables begin at a standard deviation of 1; the figure draws the second."""
    word, position = measured["word_to_position"]["bloem"]
    assert word == pytest.approx(math.sqrt(D_MODEL), rel=0.1)
    assert position == pytest.approx(math.sqrt(D_MODEL), rel=0.1)
    table = models["bloem"].src_embedding.position.weight
    assert measured["first_waves"]["bloem"] == table[:LENGTH, 0].tolist()


def test_what_is_shared_is_alike(measured):
    assert measured["sharing"]["paper"] == pytest.approx(1)
    assert abs(measured["sharing"]["annotated"]) < 0.2
    assert {"bloem", "decoder_only"}.isdisjoint(measured["sharing"])


def test_first_waves(measured):
    waves = measured["first_waves"]
    assert waves["paper"] == pytest.approx([math.sin(p) for p in range(LENGTH)], abs=1e-6)
    slower = 10000 ** (-2 / D_MODEL)
    assert waves["vanilla"] == pytest.approx(
        [math.sin(p * slower) for p in range(LENGTH)], abs=1e-6
    )


def test_a_row_that_may_attend_to_nothing(measured):
    assert measured["nothing_to_see"] == pytest.approx(
        {"paper": 0, "annotated": 1 / LENGTH, "hyunwoongko": 1 / LENGTH}
    )


def test_a_sliced_head_never_reads_the_other_slices(measured):
    assert measured["reach"]["van_dijck"] == 0
    assert all(moved > 0 for name, moved in measured["reach"].items() if name != "van_dijck")


def test_fourth_roots_are_one_root(measured):
    assert measured["fourth_roots"] <= 1e-6


def test_biases_are_counted(measured):
    layers = family.N_LAYERS
    attention, forward = 4 * D_MODEL, family.FAMILY_SIZES["d_ff"] + D_MODEL
    assert measured["biases"]["paper"] == layers * (3 * attention + 2 * forward)
    assert measured["biases"]["vanilla"] == 0
    assert measured["biases"]["bloem"] == layers * (D_MODEL + forward)


def test_log_probabilities_add_up_to_one(measured):
    assert measured["total_output"]["annotated"] == pytest.approx(1, abs=1e-5)
    assert measured["total_output"]["bloem"] == pytest.approx(1, abs=1e-5)
    assert abs(measured["total_output"]["paper"] - 1) > 0.1


def test_dropout_moves_all_but_the_one_without(measured):
    noise = measured["dropout_noise"]
    assert noise.pop("van_dijck") == 0 and all(moved > 0.05 for moved in noise.values())


def test_padding_left_out_moves_nothing(measured):
    left_out, as_words = measured["padded_mean"]
    assert left_out <= 1e-6 < as_words


def test_flatness_is_a_share(measured):
    assert all(0 < share <= 1 for share in measured["normalized_entropy"].values())


def test_one_token_can_be_measured(models, tgt):
    with torch.no_grad():
        measured = family.measure(models, torch.tensor([[5]]), tgt)
    assert measured["normalized_entropy"]["paper"] == 1


def test_look_up_is_the_softmax_of_dot_products():
    query, keys = torch.tensor([8.0, -5.0]), torch.tensor([[5.0, -3.0], [6.0, -1.0], [-4.0, 8.0]])
    scores, weights, blended = family.look_up(query, keys, torch.tensor([10.0, 9.0, -3.0]))
    assert scores.tolist() == [55, 53, -72]
    e = [math.exp((s - 55) / math.sqrt(2)) for s in (55, 53, -72)]
    assert weights.tolist() == pytest.approx([x / sum(e) for x in e], abs=1e-6)
    assert blended.item() == pytest.approx((10 * e[0] + 9 * e[1] - 3 * e[2]) / sum(e), abs=1e-5)

    theirs = nn.functional.scaled_dot_product_attention(
        query[None, None], keys[None], torch.tensor([[[10.0], [9.0], [-3.0]]])
    )
    assert blended.item() == pytest.approx(theirs.item(), abs=1e-5)
