"""One row in the browser: its arithmetic is the model's, and what it says are the numbers."""

import math
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.app import theme
from headlight.app.components.one_row import ScoredHead, pack
from headlight.app.state.options import STOPS
from headlight.app.views.one_row import differing, more_divided
from headlight.model.presets import PRESETS
from headlight.model.probing.head_steps import head_steps
from headlight.model.rounding import percent
from tests.model.common import random_model, run_of, tiny_tokenizer

FILES = "app/components/one_row/arithmetic.js", "app/components/one_row/words.js"
# Of all rows what is drawn, and what is said of them at each stop.
ROWS = """({ packed, isScaled }) => {
  const head = unpack(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)));
  return head.rows.map((_, row) => {
    const [now, other] = [rowOf(head, row, isScaled), rowOf(head, row, !isScaled)];
    const said = STOPS.map((stop) => finding(head, row, stop, isScaled, now, other)
      .map(([text]) => text).join(""));
    return { ...now, allowed: [...now.allowed], said };
  });
}"""


def read(node, shown, is_scaled=True):
    packed = b64encode(pack(shown, theme.INKED)).decode()
    return node.scope(*FILES)(ROWS, {"packed": packed, "isScaled": is_scaled})


def shown_of(steps, **more):
    names = [f"q{i}" for i in range(len(steps.mask))]
    keys = [f"k{i}" for i in range(steps.mask.shape[1])]
    return ScoredHead(
        keys=keys,
        rows=names,
        moments=[],
        opening=0,
        passed_over=-1,
        scores=steps.scores,
        mask=steps.mask,
        values=steps.v,
        **more,
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_the_browsers_arithmetic_is_the_models(node, preset):
    tokenizer = tiny_tokenizer()
    model = random_model(preset, vocab_size=len(tokenizer))
    src, tgt = map(tokenizer.encode, ("The dog sees a cat.", "Ein Hund sieht."))
    run = run_of(model, src, tgt)
    for site in {site.kind: site for site in model.sites()}.values():
        for ablated in ((), ("scaling",)):
            steps = head_steps(model, run, site, site.n_heads - 1, ablated)
            rows = read(node, shown_of(steps), is_scaled=not ablated)
            odd = differing(steps) if not ablated else []
            for i, row in enumerate(rows):
                assert sorted(row["allowed"]) == np.flatnonzero(steps.mask[i]).tolist()
                if i in odd:
                    continue
                assert np.allclose(row["weights"], steps.weights[i], atol=1e-5)
                assert np.allclose(row["output"], steps.head_output[i], atol=1e-4)
                total = np.exp(steps.scaled[i][steps.mask[i]].astype(float)).sum()
                assert row["logSum"] == pytest.approx(math.log(total), abs=1e-4)


def test_rows_of_another_softmax_are_known():
    """A row that may attend to nothing: all zeros here, but uniform in FilledSoftmax."""
    tokenizer = tiny_tokenizer()
    model = random_model("paper", vocab_size=len(tokenizer))
    run = run_of(model, *map(tokenizer.encode, ("The dog sees.", "Ein Hund sieht.")))
    steps = head_steps(model, run, model.sites()[-1], 0)
    mask, weights = np.ones_like(steps.mask), np.array(steps.weights)
    mask[1], weights[1] = False, 0
    assert differing(replace(steps, mask=mask, weights=weights)) == []
    weights[1] = 1 / len(weights[1])
    assert differing(replace(steps, mask=mask, weights=weights)) == [1]
    assert differing(replace(steps, weights=0 * weights)) == [*range(len(weights))]


@pytest.mark.parametrize("largest", [3.0, 40.0, 3000.0])
def test_what_is_said_are_the_rows_own_numbers(node, largest):
    random = np.random.default_rng(0)
    width, scores = 16, random.uniform(-largest, largest, (4, 6)).astype(np.float32)
    mask = np.tril(np.ones((4, 6), bool), k=2)
    mask[3] = False
    keys = [f"key{i}" for i in range(6)]
    shown = ScoredHead(keys, [*"ABCD"], [], 0, -1, scores, mask, np.ones((6, width), np.float32))
    for is_scaled in (True, False):
        rows = read(node, shown, is_scaled)
        for i, row in enumerate(rows[:3]):
            divided = scores[i].astype(float) / (math.sqrt(width) if is_scaled else 1)
            order = [key for key in np.argsort(-divided) if mask[i, key]]
            powers = np.exp(divided[order] - divided[order[0]])
            weight = powers[0] / powers.sum()
            said = dict(zip(STOPS, row["said"], strict=True))
            assert all(keys[order[0]] in said[stop] for stop in ("scores", "exp", "output"))
            score = f"{scores[i, order[0]]:.1f}".replace("-", "−")
            assert said["scores"].endswith(f"Their dot product is {score}.")
            known = said["weights"]
            digits = int(0.985 < weight < 0.9995)
            assert percent(weight, digits) in known
            assert np.isclose(sum(row["weights"]), 1)
        assert "no key" in rows[3]["said"][0]


@pytest.mark.parametrize("score", [-1000.0, -9.3, -0.1, 0.0, 5.71, 11.5, 11.6, 52.3, 2302.585, 9e4])
def test_powers_are_written_as_they_are(node, score):
    text = node.scope(FILES[0])("(score) => power(score)", score)
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    mantissa, _, exponent = text.replace(",", "").partition("·10")
    log = math.log(float(mantissa)) + int((exponent or "⁰").translate(digits)) * math.log(10)
    assert log == pytest.approx(score, abs=0.4 if float(mantissa) < 0.001 else 0.06)


def test_the_row_that_opens_instead_of_a_sharp_one_is_more_divided():
    rng = np.random.default_rng(0)
    for sharpness in np.linspace(0.1, 8, 200):
        scores = sharpness * rng.normal(size=(6, 5))
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        rows = list(rng.permutation(["a", "dog", "runs", ".", "<s>", "·ing"]))
        sharp = int(weights.max(axis=1).argmax())
        opens = more_divided(weights, rows, sharp)
        entropy = torch.distributions.Categorical(torch.tensor(weights)).entropy()
        assert opens == sharp or entropy[opens] > entropy[sharp]
    assert more_divided(np.ones((3, 1)), ["a", "b", "c"], 1) == 1
    assert more_divided(np.array([[1, 0], [0.5, 0.5], [0.7, 0.3]]), ["a", ",", "c"], 0) == 2
