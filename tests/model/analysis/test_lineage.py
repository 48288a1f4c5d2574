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


def test_what_is_counted_is_the_same_every_time(models, effects):
    state = torch.random.get_rng_state()
    again = lineage.effects(lineage.members(VOCABULARY, MAX_LENGTH), text(), TOKENS)
    assert again == effects and list(effects) == list(LINE)
    assert torch.equal(torch.random.get_rng_state(), state)
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


def test_what_is_drawn_follows_from_the_formulas(models, effects):
    """Of each part that was swapped, in the order of the line."""
    curves = {name: effect.curves for name, effect in effects.items()}
    lines = {name: [*of.lines.values()] for name, of in curves.items()}
    numbers = {name: of.numbers for name, of in curves.items()}
    (encoder, decoder), middle = lines["decoder only"], LENGTH // 2
    assert numbers["decoder only"]["token"] == middle + 1
    assert min(encoder) > 1e-3 and min(decoder[middle:]) > 1e-3 and max(decoder[:middle]) <= 1e-6
    sinusoids, learned = lines["learned positions"]
    waves = [10000 ** (-2 * i / D_MODEL) for i in range(D_MODEL // 2)]
    expected = [sum(math.cos(p * w) for w in waves) / len(waves) for p in range(LENGTH)]
    assert sinusoids == pytest.approx(expected, abs=1e-5)
    assert learned[0] == pytest.approx(1) and max(map(abs, learned[1:])) < 0.4
    assert numbers["learned positions"]["added"] == MAX_LENGTH * D_MODEL
    scaled, plain, position = lines["unscaled"]
    assert scaled == pytest.approx([math.sqrt(D_MODEL) * length for length in plain])
    assert position == pytest.approx([1] * LENGTH, rel=0.3)
    post, pre = lines["pre-norm"]
    assert post[0] == pre[0] and all(a < b for a, b in itertools.pairwise(pre))
    assert post[1:] == pytest.approx([math.sqrt(D_MODEL)] * LAYERS, rel=0.01)
    layer, rms = lines["RMSNorm"]
    assert max(map(abs, layer)) < 1e-6 < 1e-2 < max(map(abs, rms))
    assert numbers["RMSNorm"]["scaled"] < 1e-3
    query, key = lines["no biases"]
    assert max(key) < 1e-5 and min(query) > 0.01
    assert numbers["no biases"]["fewer"] == LAYERS * (4 * D_MODEL + SIZES["d_ff"] + D_MODEL)
    swiglu, width = numbers["SwiGLU"], SIZES["d_ff"] * 2 // 3
    assert swiglu["swiglu"] > 3.5 > 2.5 > swiglu["gelu"] > 2  # powers of the input
    sizes = 2 * D_MODEL * SIZES["d_ff"], 3 * D_MODEL * width
    assert (swiglu["gelu_size"], swiglu["swiglu_size"]) == sizes
    learned, rotary = lines["rotary"]
    assert learned[0] == rotary[0] == 0 and min(learned[1:]) > 0.1
    assert max(rotary) <= 1e-4 * max(learned)
    all_heads = curves["groups"].lines["8 key heads"]
    for n, line in zip((8, 4, 2, 1), lines["groups"], strict=True):
        assert len(line) == LENGTH and [N_HEADS // n * bytes_ for bytes_ in line] == all_heads
    ends = all_heads[-1], curves["groups"].lines["2 key heads"][-1]
    assert (numbers["groups"]["before"], numbers["groups"]["after"]) == ends


def test_relu_makes_zeros_of_all_that_is_negative(models, effects):
    curves, model = effects["GELU"].curves, models["unscaled"]
    x, layer = model.tgt_embedding(text()), model.decoder.layers[0]
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


@pytest.mark.parametrize("length", [1, 2, MAX_LENGTH])
def test_the_shortest_and_the_longest_text(models, length):
    effects = lineage.effects(models, text(length), ["a"] * length)
    for name, effect in effects.items():
        assert all(math.isfinite(v) for line in effect.curves.lines.values() for v in line), name
        assert LINE[name].finding.format(**effect.curves.numbers)
