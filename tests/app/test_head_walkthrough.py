"""The walk through one head: its pictures are the trace's numbers, its sums come out by hand, its
code is the code that ran."""

import importlib
import math
import re
import sys
import textwrap

import numpy as np
import pytest
import torch

from headlight.app.state.options import STEPS
from headlight.app.views._by_hand import by_hand
from headlight.app.views._head_walkthrough import MOST_TERMS, Walkthrough
from headlight.app.views._source_lines import code_lines
from headlight.model import load
from headlight.model.checkpoint import SHIPPED
from headlight.model.masks import Masks
from headlight.model.presets import PRESETS
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.trace import trace
from headlight.model.transformer import MultiHeadAttention
from tests.model.common import hooks, random_model, run_of, tiny_tokenizer

TEXTS = {"reviews": "a gripping story .", "en-de": "A dog runs on the beach."}
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"


SHIPPED_NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))


@pytest.fixture(scope="module", params=[*SHIPPED_NAMES, *(f"random {one}" for one in PRESETS)])
def seen(request):
    """model, source, target, trace"""
    name = request.param.removeprefix("random ")
    if name in PRESETS:
        tokenizer = tiny_tokenizer()
        model = random_model(name, vocab_size=len(tokenizer))
        src, tgt = map(tokenizer.encode, ("The dog sees a cat.", "Ein Hund sieht."))
    else:
        own = load(name)
        text = TEXTS.get(name, "a c b d" if name in ("copy", "reverse", "sort") else TEXTS["en-de"])
        model, src, tgt = own.model, own.tokenizer.encode(text), own.translate(text)
    run = run_of(model, src, tgt)
    return model, run, trace(model, run)


def walks(seen):
    model, run, whole = seen
    for kind, sites in whole.kinds.items():
        query, key = whole.texts_of(kind)
        for site in {sites[0], sites[-1]}:
            head = site.n_heads - 1
            inside = head_steps(model, run, site, head)
            row = min(1, len(query.tokens) - 1)
            column = int(inside.weights[row].argmax())
            yield inside, Walkthrough(model, inside, query.tokens, key.tokens, row, column)


def test_every_picture_is_the_traces_or_computed_from_it(seen):
    model, _, whole = seen
    for inside, walk in walks(seen):
        kind, layer, head = inside.site.kind, inside.site.layer, inside.head
        shown = {p.title: p.values for n in range(1, 12) for p in walk.step(n).pictures}
        q, k, v = (part[kind][layer, head] for part in (whole.query, whole.key, whole.value))
        scores = q.astype(float) @ k.T
        weights = whole.attention[kind][layer, head]
        side = "src" if kind == "encoder" else "tgt"
        close(shown["q"], q)
        close(shown["k"], k)
        close(shown["v"], v)
        terms = (np.abs(q) @ np.abs(k).T).max()  # of either sign: their sum may be far smaller
        close(shown["q·kᵀ"], scores, terms)
        close(shown["s ÷ √d_head"], scores / math.sqrt(q.shape[1]), terms)
        close(np.nan_to_num(shown["weights"]), weights)
        close(shown["h = w·v"], weights @ v)
        close(shown["o"], whole.output[kind][layer])
        close(shown["x + o"], shown["x, for the queries"] + shown["o"])
        close(shown["feed-forward"], whole.feed_forward[side][layer])
        close(shown["layer output"], whole.stream[side][layer + 1])
        width = q.shape[1]
        own = shown["all heads, side by side"][:, head * width : (head + 1) * width]
        close(own, shown["h = w·v"])
        assert np.array_equal(inside.mask, ~np.isnan(shown["masked scores"]))
        assert np.array_equal(inside.mask, ~np.isnan(shown["weights"]))
        if inside.one_by_one is not None:
            close(inside.one_by_one, inside.concatenated)
        if layer == 0 and kind != "cross":
            close(shown["word"], whole.token[side])
            close(shown["position"], whole.table[side])
            close(shown["x, for the queries"], whole.embedded[side])
        if not inside.pre_norm:
            layer = model.get_submodule(inside.site.name.rpartition(".")[0])
            norm = layer.norm2 if kind == "cross" else layer.norm1
            close(shown["norm"], norm(torch.from_numpy(inside.added.copy())).numpy())
    assert hooks(model) == 0


def close(ours, theirs, terms=0.0):
    """To float32's precision of the numbers themselves, or of the terms that they are sums of."""
    assert np.abs(ours - theirs).max() <= 1e-6 * max(1, terms, np.abs(theirs).max())


def test_what_is_multiplied_out_from_the_digits_shown_is_what_is_shown(seen):
    for inside, walk in walks(seen):
        for number in range(1, 12):
            check_by_hand(STEPS[number - 1], hand_of(walk, number), inside, walk)


def hand_of(walk, number) -> str:
    """What a step says of the chosen query, with minus signs that Python reads."""
    return walk.step(number).by_hand.replace("−", "-")


def check_by_hand(name, text, inside, walk):
    weight = inside.weights[walk.row, walk.column]
    if name == "Softmax":
        power, value, total, share = re.search(
            rf"e\^({NUMBER}) = ({NUMBER}), divided by ({NUMBER}), the row's sum: "
            rf"\*\*({NUMBER})%\*\*",
            text,
        ).groups()
        digits = len(value.split("e")[0].replace(".", "").lstrip("-0"))
        recomputed = float(f"{math.exp(float(power)):.{max(digits, 3)}g}")
        assert recomputed == float(value)
        assert f"{100 * float(value) / float(total):.1f}" == share == f"{100 * weight:.1f}"
        check_sum(total, text.partition("\nThe row's sum: ")[2], inside, walk)
    elif name == "Scaling":
        score, width, result = re.search(
            rf": ({NUMBER}) ÷ √(\d+) = \*\*({NUMBER})\*\*", text
        ).groups()
        assert f"{float(score) / math.sqrt(int(width)):.2f}" == result
    elif found := re.search(rf"(?::|them) ([^=:]*?) = \*\*({NUMBER})\*\*", text):
        bare = re.sub(r"\(-([\d.e-]+)\)", r"-\1", found[1])  # negative numbers
        terms = re.sub(r"\([^()]*\)", "", bare).split(" + ")
        total = sum(math.prod(map(float, term.split("·"))) for term in terms)
        assert f"{total:.2f}".replace("-0.00", "0.00") == found[2].replace("-0.00", "0.00")


def check_sum(total, text, inside, walk):
    """The summands are those of the row's keys, the largest first, and add up as displayed."""
    texts = re.findall(rf"({NUMBER}) \((“.*?”|the other \d+)\)(?= \+| =)", text)
    assert text.endswith(f" = {total}.")
    terms, n_keys = [float(term) for term, _ in texts], int(inside.mask[walk.row].sum())
    assert len(texts) == min(n_keys, MOST_TERMS)
    if n_keys > MOST_TERMS:
        assert texts[-1][1] == f"the other {n_keys - MOST_TERMS + 1}"
    digits = max(2, len(re.sub(r"e.*|\D", "", total).lstrip("0")))
    assert math.isclose(sum(terms), float(total), rel_tol=0.51 * 10 ** (1 - digits))
    shares = np.sort(inside.weights[walk.row])[::-1]
    named = [term for term, (_, name) in zip(terms, texts, strict=True) if name[0] == "“"]
    assert np.allclose(np.divide(named, sum(terms)), shares[: len(named)], atol=0.01)


def test_some_steps_are_multiplied_out(seen):
    """So that the check above has something to check."""
    _, walk = next(walks(seen))
    for name in ("Scores", "Scaling", "Softmax", "Values", "Add & norm"):
        assert re.search(rf"= \*\*{NUMBER}\*\*|\d%\*\*", hand_of(walk, STEPS.index(name) + 1))


def test_scaling_lists_the_largest_scores_of_the_row(seen):
    inside, walk = next(walks(seen))
    said = hand_of(walk, STEPS.index("Scaling") + 1).partition("Largest in this row: ")[2]
    listed = [float(number) for number in re.findall(r"” (-?[\d.]+\d)", said)]
    largest = sorted(inside.scaled[walk.row].tolist(), reverse=True)[:4]
    assert np.allclose(listed, largest, atol=0.0051)


def test_every_step_shows_lines_of_code(seen):
    for _, walk in walks(seen):
        for number in range(1, 12):
            code = walk.step(number).code
            compile("def f(self):\n" + textwrap.indent(code, "    "), "shown", "exec")
            assert len([line for line in code.splitlines() if not line.startswith("#")]) >= 1
            assert len(code.splitlines()) <= 16, "the whole function, because no mark was found"


def test_masks_and_padding_are_those_of_the_trace():
    own = load("en-de")
    src, tgt = own.tokenizer.encode("A dog."), own.tokenizer.encode("Ein Hund.")
    for masks in (Masks(), Masks(causal=False, src_padding=False, memory_padding=False)):
        run = run_of(own.model, src, tgt, masks, pad_to=9)
        whole = trace(own.model, run)
        for kind, sites in whole.kinds.items():
            inside = head_steps(own.model, run, sites[1], 2)
            close(inside.weights, whole.attention[kind][1, 2])
            assert np.array_equal(inside.mask, whole.attention[kind][1, 2] > 0)


def test_the_code_shown_is_the_code_that_ran(tmp_path, monkeypatch):
    """A line changed in a copy is seen on the page, and in what it computes."""
    source = (SHIPPED.parent.parent / "model" / "transformer.py").read_text(encoding="utf-8")
    changed = source.replace("heads = self.dropout(weights) @ v", "heads = weights @ (2 * v)")
    assert changed != source
    (tmp_path / "changed.py").write_text(changed, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("changed")
    monkeypatch.setitem(sys.modules, "changed", sys.modules.pop("changed"))  # gone at the end
    assert code_lines(module.MultiHeadAttention.forward, "@ v", "(2 * v)").endswith(
        "heads = weights @ (2 * v)  # (batch, heads, query, d_head)"
    )
    ours = code_lines(MultiHeadAttention.forward, "@ v", "(2 * v)")
    assert "(2 * v)" not in ours and "@ v" in ours
    attention = random_model("paper").encoder.layers[0].self_attn
    theirs, x = module.MultiHeadAttention(24, 4), torch.randn(1, 5, 24)
    theirs.load_state_dict(attention.state_dict())
    with torch.no_grad():
        doubled = theirs(x, x, x) - theirs.output.bias
        once = attention(x, x, x) - attention.output.bias
    assert torch.allclose(doubled, 2 * once, atol=1e-5)


def test_digits_are_as_few_as_come_out():
    assert by_hand(sum, [[0.14, 0.84]]) == (["0.14", "0.84"], "0.98")
    texts, total = by_hand(sum, [[0.004, 0.004]])  # 0.00 + 0.00 would not be 0.01
    assert texts == ["0.004", "0.004"] and total == "0.01"
