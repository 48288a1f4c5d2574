"""The line from the paper to Llama: each swap is the part it says, all else stays, and what is
measured of it follows from the part's formula."""

import itertools
import math
import pkgutil

import pytest
import torch
from torch import nn

from headlight.model.analysis import lineage
from headlight.model.analysis.lineage import LINE, N_KEY_HEADS, SIZES
from headlight.model.card import parameter_count
from headlight.model.presets import build
from headlight.model.probing.capture import view
from tests.model.common import hooks

VOCABULARY, MAX_LENGTH, LENGTH = 60, 64, 11
D_MODEL, N_HEADS, LAYERS = SIZES["d_model"], SIZES["n_heads"], SIZES["n_decoder_layers"]
TOKENS = [str(i) for i in range(LENGTH)]
NAMES = ["paper", *LINE]


def text(length=LENGTH, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (1, length), generator=generator)


@pytest.fixture(scope="module")
def models():
    return lineage.members(VOCABULARY, MAX_LENGTH)


@pytest.fixture(scope="module")
def effects(models):
    return lineage.effects(models, text(), TOKENS)


@torch.no_grad()
def logits(model, ids=None):
    ids = text() if ids is None else ids
    mask = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
    return model(ids, mask)


def preset(name, like, **sizes):
    """A preset with all the weights of another model."""
    depths = dict(n_decoder_layers=LAYERS)
    shared = {key: SIZES[key] for key in ("d_model", "n_heads", "d_ff")} | depths
    model = build(name, vocab_size=VOCABULARY, max_length=MAX_LENGTH, **shared | sizes).eval()
    model.load_state_dict(like.state_dict())
    return model


def test_the_line_begins_with_the_paper_and_passes_its_descendants(models):
    """Swapped models compute what the presets do."""
    sizes = {key: value for key, value in SIZES.items() if key != "dropout"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        paper = build("paper", vocab_size=VOCABULARY, max_length=MAX_LENGTH, **sizes).eval()
    ids = text(), text(7, seed=1)
    torch.testing.assert_close(models["paper"](*ids), paper(*ids))
    narrower = dict(d_ff=SIZES["d_ff"] * 2 // 3, n_key_heads=N_KEY_HEADS, tied=True)
    for name, system, sizes in (
        ("decoder only", "decoder_only", {}),
        ("pre-norm", "gpt2", {}),
        ("groups", "llama", narrower),
    ):
        expected = logits(preset(system, models[name], **sizes))
        torch.testing.assert_close(logits(models[name]), expected)


def test_all_but_the_part_stays(models):
    """Parameters that both models have are the same tensors; each swap changes the output, but
    for biases, which begin at zero."""
    for before, after in itertools.pairwise(NAMES[1:]):
        theirs, ours = (dict(models[name].named_parameters()) for name in (before, after))
        alike = [name for name in ours if name in theirs and ours[name] is theirs[name]]
        assert "tgt_embedding.token.weight" in alike
        new = [name for name in ours if name in theirs and name not in alike]
        parts = {"learned positions": "position", "SwiGLU": "feed_forward", "groups": "self_attn"}
        assert all(parts.get(after, "norm") in name for name in new), after
        same = torch.allclose(logits(models[before]), logits(models[after]), atol=1e-6)
        assert same == (after == "no biases"), after
    assert not any(hooks(model) for model in models.values())


def test_parts_are_the_classes_that_are_named(models):
    for before, name in itertools.pairwise(NAMES):
        linear, part = LINE[name].part == "torch.nn.Linear(…, bias=False)", LINE[name].part
        wanted = nn.Linear if linear else pkgutil.resolve_name(part)
        there, earlier = (
            [part for part in models[one].modules() if type(part) is wanted]
            for one in (name, before)
        )
        assert there and bool(earlier) == linear, name
        assert not linear or all(part.bias is None for part in there)


def test_the_same_numbers_every_time(models, effects):
    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    again = lineage.effects(lineage.members(VOCABULARY, MAX_LENGTH), text(), TOKENS)
    assert again == effects and list(effects) == list(LINE)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_what_is_counted(models, effects):
    for before, after in itertools.pairwise(NAMES):
        counted = tuple(parameter_count(models[name]) for name in (before, after))
        assert effects[after].parameters == counted
        heads = tuple(N_KEY_HEADS if name == "groups" else N_HEADS for name in (before, after))
        each = [2 * LAYERS * n * (D_MODEL // N_HEADS) * 4 for n in heads]  # float32
        assert effects[after].cached == tuple(each)
        assert len(effects[after].moved) == LAYERS


def test_attention_moves_from_where_the_part_stands(effects):
    for name, effect in effects.items():
        first, *deeper = effect.moved
        # What stands behind the first attention does not move it.
        assert (first < 1e-6) == (name in ("decoder only", "GELU", "no biases", "SwiGLU")), name
        assert all((moved > 0.01) == (name != "no biases") for moved in deeper), name
        assert all(0 <= moved <= 1 for moved in effect.moved)


def test_a_decoder_alone_reads_nothing_ahead(effects):
    curves = effects["decoder only"].curves
    encoder, decoder = curves.lines.values()
    middle = LENGTH // 2
    assert curves.numbers["token"] == middle + 1
    assert min(encoder) > 1e-3 and min(decoder[middle:]) > 1e-3
    assert max(decoder[:middle]) <= 1e-6


def test_neighbours_are_alike_as_sinusoids_alone(effects):
    sinusoids, learned = effects["learned positions"].curves.lines.values()
    waves = [10000 ** (-2 * i / D_MODEL) for i in range(D_MODEL // 2)]
    expected = [sum(math.cos(p * w) for w in waves) / len(waves) for p in range(LENGTH)]
    assert sinusoids == pytest.approx(expected, abs=1e-5)
    assert learned[0] == pytest.approx(1) and max(map(abs, learned[1:])) < 0.4
    assert effects["learned positions"].curves.numbers["added"] == MAX_LENGTH * D_MODEL


def test_a_word_s_vector_is_shorter_by_the_root(effects):
    scaled, plain, position = effects["unscaled"].curves.lines.values()
    assert scaled == pytest.approx([math.sqrt(D_MODEL) * length for length in plain])
    assert position == pytest.approx([1] * LENGTH, rel=0.3)


def test_relu_makes_zeros_of_all_that_is_negative(models, effects):
    curves = effects["GELU"].curves
    model = models["unscaled"]
    x = model.tgt_embedding(text())
    layer = model.decoder.layers[0]
    x = layer.norm1(x + layer.self_attn(x, x, x, torch.ones(LENGTH, LENGTH).tril().bool()))
    hidden = layer.feed_forward.linear1(x)
    assert curves.numbers["relu"] == pytest.approx((hidden <= 0).float().mean().item())
    assert curves.numbers["gelu"] < 1e-3
    relu, gelu = curves.lines.values()
    at_zero = curves.places.index("0.0")
    expected = nn.functional.gelu(hidden, approximate="tanh")
    assert sum(relu[:at_zero]) == 0 and relu[at_zero] >= curves.numbers["relu"]
    inside = ((expected >= -0.05) & (expected < 0.05)).float().mean().item()
    assert gelu[at_zero] == pytest.approx(inside, abs=1e-3)


def test_norms_after_the_sum_set_the_length(models, effects):
    post, pre = effects["pre-norm"].curves.lines.values()
    assert post[0] == pre[0]
    assert post[1:] == pytest.approx([math.sqrt(D_MODEL)] * LAYERS, rel=0.01)
    assert all(a < b for a, b in itertools.pairwise(pre))


def test_rms_norm_keeps_the_mean_and_forgets_the_length(effects):
    curves = effects["RMSNorm"].curves
    layer, rms = curves.lines.values()
    assert max(map(abs, layer)) < 1e-6 < 1e-2 < max(map(abs, rms))
    assert curves.numbers["scaled"] < 1e-3


def test_biases_of_keys_do_nothing(effects):
    query, key = effects["no biases"].curves.lines.values()
    assert max(key) < 1e-5 and min(query) > 0.01
    biases = LAYERS * (4 * D_MODEL + SIZES["d_ff"] + D_MODEL)
    assert effects["no biases"].curves.numbers["fewer"] == biases


def test_swiglu_multiplies(models, effects):
    numbers = effects["SwiGLU"].curves.numbers
    assert numbers["swiglu"] > 3.5 > 2.5 > numbers["gelu"] > 2
    width = SIZES["d_ff"] * 2 // 3
    assert numbers["gelu_size"] == 2 * D_MODEL * SIZES["d_ff"]
    assert numbers["swiglu_size"] == 3 * D_MODEL * width
    feed = models["SwiGLU"].decoder.layers[0].feed_forward
    x = torch.randn(5, D_MODEL, generator=torch.Generator().manual_seed(0))
    by_hand = nn.functional.silu(x @ feed.gate.weight.T) * (x @ feed.linear1.weight.T)
    torch.testing.assert_close(feed(x), by_hand @ feed.linear2.weight.T)


def test_rotary_scores_tell_the_distance_alone(effects):
    learned, rotary = effects["rotary"].curves.lines.values()
    assert learned[0] == rotary[0] == 0 and min(learned[1:]) > 0.1
    assert max(rotary) <= 1e-4 * max(learned)


def test_as_many_groups_as_heads_are_all_heads(models):
    same = lineage.grouped(view(models["rotary"]), N_HEADS)
    torch.testing.assert_close(logits(same), logits(models["rotary"]))
    assert parameter_count(same) == parameter_count(models["rotary"])


def test_keys_and_values_grow_with_the_text(effects):
    lines = effects["groups"].curves.lines
    assert [len(line) for line in lines.values()] == [LENGTH] * 4
    all_heads = lines["8 key heads"]
    for n, line in zip((8, 4, 2, 1), lines.values(), strict=True):
        assert [N_HEADS // n * bytes_ for bytes_ in line] == all_heads
    numbers = effects["groups"].curves.numbers
    assert (numbers["before"], numbers["after"]) == (all_heads[-1], lines["2 key heads"][-1])


@pytest.mark.parametrize("length", [1, 2, MAX_LENGTH])
def test_the_shortest_and_the_longest_text(models, length):
    effects = lineage.effects(models, text(length), ["a"] * length)
    for name, effect in effects.items():
        assert all(math.isfinite(v) for line in effect.curves.lines.values() for v in line), name
        assert LINE[name].finding.format(**effect.curves.numbers)
