"""The BertViz page as data: its numbers, its size, and what it may not do. What it draws:
tests/browser/test_bertviz.py."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.app.export import bertviz_html
from headlight.app.export.bertviz_html import CannotDraw, page, size
from headlight.app.state.options import BERTVIZ
from headlight.model import presets
from headlight.model.masks import Masks
from headlight.model.probing.trace import Trace
from headlight.model.tokenizer import Encoding, Tokenizer
from tests.conftest import LINES
from tests.model.common import encoding, random_ids, random_model, traced

HOSTILE = "</script><img src=x onerror=window.broken=1>"
PARAMS = re.compile(r'<script type="application/json" id="params">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def seen() -> Trace:
    """Two encoder layers, five decoder layers; a causal decoder."""
    tokenizer = Tokenizer.train(LINES, vocab_size=300)
    sizes = dict(d_model=32, n_heads=4, d_ff=16, n_encoder_layers=2, n_decoder_layers=5)
    torch.manual_seed(0)
    model = presets.build("paper", vocab_size=len(tokenizer), **sizes).eval()
    return traced(model, tokenizer.encode("the dog sees"), tokenizer.encode("ein Hund"))


@pytest.fixture(scope="module")
def large() -> Trace:
    """Six layers of eight heads over 64 tokens on each side."""
    rng, kinds = np.random.default_rng(0), ("encoder", "decoder", "cross")
    weights = rng.gamma(0.3, size=(3, 6, 8, 64, 64)).astype(np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    same = dict.fromkeys(kinds, rng.normal(size=(6, 8, 64, 16)).astype(np.float32))
    text = Encoding(tuple(range(64)), tuple(f"token{i}" for i in range(64)), ((0, 0),) * 64)
    model = random_model(n_encoder_layers=6, n_decoder_layers=6)
    small = traced(model, encoding(random_ids(3)), encoding(random_ids(3)))
    attention = dict(zip(kinds, weights, strict=True))
    texts = {"src": text, "tgt": text}
    return replace(small, texts=texts, attention=attention, query=same, key=same)


def params(html: str) -> dict:
    found = json.loads(PARAMS.search(html)[1])
    for name, value in found["attention"]["all"].items():
        if isinstance(value, dict):
            raw = np.frombuffer(base64.b64decode(value["base64"]), value["type"])
            found["attention"]["all"][name] = (raw / value["per"]).reshape(value["shape"])
    return found


def every_layer(trace: Trace, kind: str) -> range:
    return range(len(trace.attention[kind]))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("view", BERTVIZ)
def test_numbers_are_those_of_the_trace(seen, view, kind):
    data = params(page(seen, view, kind, every_layer(seen, kind), 1, 2))["attention"]["all"]
    assert np.array_equal(data["attn"], np.round(seen.attention[kind].astype(float), 4))
    asks, looked_at = (
        {"encoder": seen.src, "decoder": seen.tgt, "cross": side}[kind].tokens
        for side in (seen.tgt, seen.src)
    )
    assert (tuple(data["left_text"]), tuple(data["right_text"])) == (asks, looked_at)
    assert ("queries" in data) == (view == "neuron")
    if view == "neuron":
        assert np.array_equal(data["queries"], seen.query[kind])
        assert np.array_equal(data["keys"], seen.key[kind])


@pytest.mark.parametrize("view", BERTVIZ)
def test_layers_left_out_are_not_sent_and_the_others_keep_their_names(seen, view):
    for layer, shown in ((4, 5), (3, 2)):  # the second is not there: the first one
        said = params(page(seen, view, "decoder", [1, 4], layer, 2))
        assert said["include_layers"] == [2, 5]
        assert len(said["attention"]["all"]["attn"]) == 2
        assert said["layer"] == (layer - 3 if view == "neuron" else shown)


def test_only_a_causal_decoder_hides_what_comes_later(seen):
    def both_ways(trace, kind):
        return params(page(trace, "neuron", kind, [0], 0, 0))["bidirectional"]

    assert not both_ways(seen, "decoder")
    assert both_ways(seen, "encoder") and both_ways(seen, "cross")
    assert both_ways(replace(seen, run=replace(seen.run, masks=Masks(causal=False))), "decoder")


@pytest.mark.parametrize("view", BERTVIZ)
def test_a_token_is_never_markup(seen, view):
    src = replace(seen.src, tokens=(HOSTILE,) * len(seen.src.tokens))
    html = page(replace(seen, texts=seen.texts | {"src": src}), view, "encoder", [0], 0, 0)
    assert HOSTILE not in html and "<img" not in html.split("<body>")[1].split("<script>")[0]
    assert params(html)["attention"]["all"]["left_text"][0] == HOSTILE


@pytest.mark.parametrize("view", BERTVIZ)
def test_only_the_scripts_of_the_page_may_run_and_nothing_may_be_fetched(seen, view):
    html = page(seen, view, "cross", [0], 0, 0)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', html)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert set(rules) == {"default-src", "style-src", "script-src"}
    assert rules["default-src"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts}
    assert set(rules["script-src"].split()) == {f"'sha256-{one}'" for one in hashes}
    assert len(scripts) == 4
    around = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"https?:|//|src=|href=|url\(", around)


@pytest.mark.parametrize("view", BERTVIZ)
def test_size_is_known_before_drawing(large, view):
    html = page(large, view, "cross", [0, 3], 0, 0)
    numbers = sum(len(raw) for raw in re.findall(r'"base64":"([^"]*)"', html))
    assert size(large, view, "cross", [0, 3]).bytes == pytest.approx(numbers, rel=0.01)


def test_another_bertviz_is_refused_in_words(seen, monkeypatch):
    more = {"head": [*bertviz_html.ADAPTED["head"], ("const nowhere", "")]}
    monkeypatch.setattr(bertviz_html, "ADAPTED", more)
    with pytest.raises(CannotDraw, match=r"head_view\.js has “const nowhere” 0 times"):
        page(seen, "head", "cross", [0], 0, 0)
    monkeypatch.setattr(bertviz_html, "find_spec", lambda name: None)
    with pytest.raises(CannotDraw, match="needs bertviz"):
        page(seen, "head", "cross", [0], 0, 0)


def test_weights_that_are_not_numbers_are_refused_in_words(seen):
    broken = seen.attention | {"cross": np.full_like(seen.attention["cross"], np.nan)}
    with pytest.raises(CannotDraw, match="NaN or infinite"):
        page(replace(seen, attention=broken), "head", "cross", [0], 0, 0)
