"""Recordings of whatever comes: each shows what was given, or gets a sentence."""

import warnings

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

from headlight.model import record, save
from headlight.model.recording.checkpoint import load_recorded
from tests.model.recording.architectures import NAMES
from tests.model.recording.models import THEIRS
from tests.model.recording.test_architectures import called_with, is_text, model_of, theirs
from tests.model.recording.test_architectures import tokenizer as of_words

COUNTS = [40, pytest.param(500, marks=pytest.mark.long)]  # of each kind
NEVER = "Traceback", "\n", " object at 0x"
DTYPES = np.float16, np.float32, np.float64, np.int64, np.uint8, bool, np.complex64, object, str
CHANGES = (
    "all.1=off", "decoder.1.1=off", "encoder.2=hide:1", "cross=uniform", "x.9=off",
    "decoder=mask:none", "all=temperature:0.5", "decoder.1=mean", "=", "decoder.99=off",
)  # fmt: skip
TEXTS = (
    "w5 w6 w7", "", " ", "½ № ㎏ 🙂", "w5 " * 80, "\ud800", "\x00", "</s> <pad>", "été", None, 5,
    ["w5"], [5, 6, 7], [[5, 6, 7]], [5, -1], [5, 2**40], [1.5], torch.tensor([5, 6]),
)  # fmt: skip


def tried(call, *args, **kwargs):
    """What it makes; None where it raises a sentence of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*args, **kwargs)
    except Exception as error:
        told = str(error)
        is_ours = type(error).__module__.startswith("headlight.")
        is_sentence = told.endswith((".", "?", "…")) and 5 < len(told) <= 400
        if not is_ours or not is_sentence or any(word in told for word in NEVER):
            raise
    return None


def one_of(random, *values):
    return values[random.integers(len(values))]


def mostly(random, usual, *others):
    return usual if random.random() < 0.85 else one_of(random, *others)


def check_sound(recorded):
    for kind, weights in recorded.attention.items():
        assert weights.ndim == 4 and np.isfinite(weights).all() and (weights >= 0).all()
        assert weights.sum(-1).max() <= 1.03
        assert [len(text.ids) for text in recorded.texts_of(kind)] == [*weights.shape[-2:]]
        layers = [site.layer for site in recorded.kinds[kind]]
        assert layers == sorted({*layers}) and len(layers) == len(weights)


def array(random, share):
    """Weights, of which a share has an odd shape, or type, or something odd in it."""
    shape = random.integers(1, 5, 4)
    if random.random() < share:
        shape = random.integers(1, 5, one_of(random, 2, 3, 4, 5, 6))
    if random.random() > share:
        shape[-1] = shape[-2]
    weights = random.random(shape) + 0.01
    weights /= weights.sum(-1, keepdims=True)
    if random.random() < share:
        weights.flat[random.integers(weights.size)] = one_of(random, np.nan, -1, 5, np.inf, 0)
    if random.random() < share / 2:
        weights = weights[..., :0]
    if random.random() < share:
        weights = weights.astype(one_of(random, *DTYPES))
    is_tensor = random.random() < 0.5 and weights.dtype.kind in "fiub"
    return torch.from_numpy(weights.copy()) if is_tensor else weights


def form(random):
    share = one_of(random, 0, 0, 0.1, 0.5)
    made = [array(random, share) for _ in range(random.integers(1, 4))]
    if random.random() > share:
        made = made[:1] * random.integers(1, 4)
    steps = [[array(random, share) for _ in range(2)] for _ in range(random.integers(0, 4))]
    some = one_of(random, torch.zeros(1, 3), None, 5, torch.zeros(0), torch.zeros(2, 4))
    beams = torch.from_numpy(random.integers(-1, 3, (2, 3)))
    return one_of(
        random, made[0], made[0], made, tuple(made), {one_of(random, *THEIRS): made},
        {key: made for key in THEIRS[1:]},
        {one_of(random, "encoder", "decoder", "cross", "x", "", 5): each for each in made},
        {f"h.{random.integers(2000)}.attn.hook_pattern": each for each in made},
        {"sequences": some, one_of(random, *THEIRS): steps},
        {"sequences": torch.zeros(2, 4), "beam_indices": beams, "decoder_attentions": steps,
         "cross_attentions": steps, "encoder_attentions": made},
        one_of(random, None, "weights", b"", 5, [], {}, [None], [[]], set(), {None: made[0]}),
    )  # fmt: skip


@pytest.mark.parametrize("count", COUNTS)
def test_weights_in_any_form(count):
    shown = compared = 0
    for seed in range(count):
        random = np.random.default_rng(seed)
        given = form(random)
        tokens = mostly(random, None, ["a", "b"], [1, 2, 3], "abc", 5, [None], {})
        recorded = tried(
            record, given, tokens, mostly(random, None, tokens),
            row=mostly(random, 0, 1, -1), kind=mostly(random, "", "decoder", "½" * 50),
            partial=bool(random.integers(2)),
        )  # fmt: skip
        if recorded is None:
            continue
        shown += 1
        check_sound(recorded)
        if isinstance(given, np.ndarray) and given.ndim == 4:
            (weights,) = recorded.attention.values()
            assert np.abs(weights - given.astype(float)).max() < 1e-3
            compared += 1
    assert shown > count / 5 and compared > count / 25


@pytest.mark.long
@pytest.mark.timeout(600)
def test_models_whatever_they_are_called_with():
    names, shown, compared = [name for name in NAMES if is_text(name)], 0, 0
    models = {name: model_of(name) for name in names}
    tokenizers = None, tf.ByT5Tokenizer(), str.split, "text", lambda *_: {}
    for seed in range(500):
        random = np.random.default_rng(seed)
        model = models[name := names[seed % len(names)]]
        inputs = {k: v[:, : random.integers(1, 9)].repeat(random.integers(1, 3), 1)
                  for k, v in called_with(name, model).items()}  # fmt: skip
        if random.random() < 0.3:
            inputs["attention_mask"] = torch.randint(0, 2, inputs["input_ids"].shape)
        is_odd, key = random.random() < 0.2, one_of(random, *inputs)
        if is_odd:
            value = inputs[key]
            inputs[key] = one_of(random, value + 90, value.float(), value[0], None, -value, "x",
                                 value[..., None], value.to("meta"), value[:, :0])  # fmt: skip
        changes, row = mostly(random, "", *CHANGES), mostly(random, 0, 1, 7, -1)
        if seed % 2:
            text, target = mostly(random, TEXTS[0], *TEXTS), mostly(random, None, *TEXTS)
            tokenizer = mostly(random, of_words(), *tokenizers)
            recorded = tried(record, model, tokenizer, text, target, changes=changes)
        else:
            recorded = tried(record, model, inputs=inputs, changes=changes, row=row)
        if recorded is None:
            continue
        shown += 1
        check_sound(recorded)
        if seed % 2 or is_odd or changes:
            continue
        known = [layer for layers in theirs(model, inputs, row).values() for layer in layers]
        for layer in (layer for weights in recorded.attention.values() for layer in weights):
            alike = (each for each in known if each.shape == layer.shape)
            assert any(np.abs(layer - each).max() < 1e-5 for each in alike), (name, seed)
        compared += 1
    assert shown > 100 and compared > 25


class Odd(nn.Module):
    """Attention of torch, called in some way."""

    def __init__(self, random):
        super().__init__()
        first = bool(random.integers(2))
        many = range(mostly(random, 2, 0, 1))
        self.attention = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=first) for _ in many)
        self.way = mostly(random, 0, 3, 4)

    def forward(self, x, y=None, **more):
        for each in self.attention:
            key = x if y is None else y
            if self.way == 3 and each is self.attention[-1]:
                continue
            x = each(x, key) if self.way == 4 else each(x, key, key, **more)[0]
        return x


@pytest.mark.parametrize("count", COUNTS)
def test_modules_of_torch(count):
    shown = 0
    for seed in range(count):
        random = np.random.default_rng(seed)
        model = Odd(random).eval()
        sizes = random.integers(1, 5, 2)
        x, mask = torch.randn(*sizes, 8), torch.ones(sizes[1], sizes[1]).triu(1) == 1
        y = mostly(random, None, torch.randn(*sizes, 8), torch.randn(*sizes, 7), 5)
        more = one_of(random, {}, {}, {"need_weights": False}, {"z": 1}, {"attn_mask": mask})
        given = mostly(random, {"x": x, "y": y} | more, (x, y), (x[0],), (x,), (), {"x": None})
        tokens = mostly(random, None, ["a"] * sizes[1], [1, 2, 3])
        recorded = tried(
            record, model, inputs=given, tokens=tokens, row=mostly(random, 0, 1, 9, -1),
            changes=mostly(random, "", *CHANGES),
        )  # fmt: skip
        if recorded is not None:
            shown += 1
            check_sound(recorded)
    assert shown > count / 5


@pytest.mark.parametrize("count", COUNTS)
def test_files_that_are_damaged(count, tmp_path):
    recorded = record(model_of("bart"), of_words(), "w5 w6", "w7 w8 w9")
    save(tmp_path / "one.safetensors", [recorded, recorded])
    whole, opened = (tmp_path / "one.safetensors").read_bytes(), 0
    assert load_recorded(whole).model.sites() == recorded.sites
    end = 8 + int.from_bytes(whole[:8], "little")
    for seed in range(count):
        random = np.random.default_rng(seed)
        spoilt = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            at = random.integers(8 * (seed % 5 > 0), end if seed % 2 else len(whole))
            spoilt[at] = one_of(random, random.integers(256), 32, ord("9"), spoilt[at] ^ 1)
        if random.random() < 0.15:
            spoilt = spoilt[: random.integers(len(spoilt))]
        back = tried(load_recorded, bytes(spoilt), "one")
        if back is not None:
            opened += 1
            for one in back.recordings:
                check_sound(one)
    assert count / 50 < opened < count
