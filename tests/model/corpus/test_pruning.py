"""Heads off one after another."""

import numpy as np
import pandas as pd
import pytest

from headlight.model.checkpoint import load
from headlight.model.corpus import prune_command, pruning
from headlight.model.corpus.importance import examples_of, losses, quality, score
from headlight.model.corpus.pruning import (
    Curve,
    Statistics,
    by_entropy,
    by_gates,
    by_loss,
    heads_of,
    together,
)
from headlight.model.corpus.sentences import Line
from headlight.model.probing.changes import written as line_of


@pytest.fixture(scope="module")
def reverse():
    checkpoint = load("reverse")
    texts = ["a b c", "d e f g h", "x x y z", "k", "m n o p q r s"]
    lines = [Line(i, text, text[::-1]) for i, text in enumerate(texts, start=1)]
    return checkpoint, examples_of(checkpoint, lines)


def test_by_loss_the_least_harmful_goes_first(reverse):
    checkpoint, examples = reverse
    heads = heads_of(checkpoint, "cross")
    order = by_loss(checkpoint, examples, heads)
    assert sorted(map(str, order)) == sorted(map(str, heads)) and len(order) == 4
    for i in range(4):
        found = {unit: losses(checkpoint, examples, together([*order[:i], unit]))[:, 0].sum()
                 for unit in order[i:]}  # fmt: skip
        assert min(found, key=found.get) == order[i]


def test_the_other_orders(reverse):
    checkpoint, examples = reverse
    heads = heads_of(checkpoint)
    assert len(heads) == 12
    runs = [checkpoint.run(e.source, e.reference) for e in examples]
    bits = {}
    for unit in heads:
        rows = []
        for run in runs:
            weights = checkpoint.trace_run(run).attention[unit.kind][unit.layer, unit.head]
            allowed = checkpoint.trace_run(run).attention[unit.kind].any(axis=(0, 1)).sum(axis=-1)
            entropy = -(weights * np.log2(np.where(weights > 0, weights, 1))).sum(axis=-1)
            rows += entropy[allowed > 1].tolist()
        bits[unit] = np.mean(rows)
    expected = sorted(heads, key=bits.get, reverse=True)
    found = by_entropy(checkpoint, examples, heads)
    assert np.allclose([bits[u] for u in found], [bits[u] for u in expected], atol=1e-5)
    some = heads_of(checkpoint, "encoder")
    for of in (by_gates, pruning.at_random(1)):
        order = of(checkpoint, examples, some)
        assert len(order) == 4 and {*order} == {*some}
    chances = [pruning.at_random(seed)(checkpoint, examples, heads) for seed in (1, 1, 2)]
    assert chances[0] == chances[1] != chances[2]


def test_a_curve_is_of_what_the_changes_do(reverse):
    checkpoint, examples = reverse
    order = heads_of(checkpoint)
    plain = Statistics.of(checkpoint, examples, "exact", ())
    rows = Curve(examples, "exact", 50, plain).points(checkpoint, order, [0, 3, 12])
    assert [row["off"] for row in rows] == [0, 0, 3, 3, 12, 12]
    assert rows[0]["p"] == rows[1]["p"] == 1 and rows[1]["value"] == 100
    for row in rows:
        changes = together(order[: row["off"]])
        if row["measure"] == "loss":
            expected = np.divide(*losses(checkpoint, examples, changes).sum(axis=0))
        else:
            expected = score("exact", quality(checkpoint, examples, "exact", changes).sum(axis=0))
        assert row["value"] == expected and row["low"] <= row["value"] <= row["high"]
    assert rows[-1]["value"] < 100 and rows[-1]["p"] < 0.1


def test_a_pruned_checkpoint_is_the_model_with_those_heads_off(tmp_path):
    folder, out = tmp_path / "pruned", tmp_path / "curve.csv"
    given = ["copy", "--ranking", "4", "--most", "6", "--samples", "20", "--every", "6"]
    prune_command.main([*given, "--orders", "random, entropy", "--repeats", "2", "--keep", "9",
                        "--to", str(folder), "--out", str(out)])  # fmt: skip
    copy, pruned = load("copy"), load(folder)
    names = pruned.card["pruned"]
    assert len(names) == 3 and "scores" not in pruned.card
    line = "; ".join(f"{n['kind']}.{n['layer'] + 1}.{n['head'] + 1}=off" for n in names)
    expected = pruning.at_random(0)(copy, [], heads_of(copy))[:3]
    assert line == line_of(together(expected))
    for text in ("a b c d", "z y"):
        with_heads_off = copy.trace(text, text, changes=line)
        assert np.abs(pruned.trace(text, text).logits - with_heads_off.logits).max() <= 1e-5
        assert np.abs(copy.trace(text, text).logits - with_heads_off.logits).max() > 1e-3
        assert pruned.translate(text) == copy.translate(text, changes=line)
        for kind, weights in pruned.trace(text, text).attention.items():
            rows = weights.any(axis=-1)  # (layers, heads, query)
            for layer, head in np.ndindex(rows.shape[:2]):
                gone = {"kind": kind, "layer": layer, "head": head} in names
                assert rows[layer, head].any() != gone and rows[layer, head].all() != gone
    table = pd.read_csv(out)
    assert list(table) == list(pruning.PRUNING_COLUMNS)
    points = table.groupby(["order", "repeat"])["off"].apply(lambda off: sorted({*off}))
    assert points.index.tolist() == [("entropy", 1), ("random", 1), ("random", 2)]
    assert all(off == [0, 6, 12] for off in points)


@pytest.mark.long
def test_with_and_without_a_short_training(tmp_path):
    folder, out = tmp_path / "pruned", tmp_path / "curve.csv"
    given = ["copy", "--ranking", "4", "--most", "30", "--samples", "20", "--every", "6"]
    prune_command.main([*given, "--kind", "cross", "--orders", "entropy", "--retrain", "8",
                        "--keep", "2", "--to", str(folder), "--out", str(out)])  # fmt: skip
    table = pd.read_csv(out)
    assert {*table["retrained"]} == {0, 8}
    loss = table[table.measure == "loss"].set_index(["off", "retrained"])["value"]
    assert loss[4, 8] < loss[4, 0]
    copy, pruned = load("copy"), load(folder)
    line = "; ".join(
        f"{n['kind']}.{n['layer'] + 1}.{n['head'] + 1}=off" for n in pruned.card["pruned"]
    )
    assert len(pruned.card["pruned"]) == 2
    trained = pruned.trace("a b c", "a b c").logits
    assert np.abs(trained - copy.trace("a b c", "a b c", changes=line).logits).max() > 1e-3
    assert np.abs(trained - pruned.trace("a b c", "a b c", changes=line).logits).max() <= 1e-5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["copy"], "give --out"),
        (["copy", "--keep", "3"], "give --out"),
        (["copy", "--out", "x.txt"], "must end in"),
        (["copy", "--out", "x.csv", "--orders", "luck"], "there is no order 'luck'"),
        (["copy", "--out", "x.csv", "--kind", "crosswise"], "no attention type 'crosswise'"),
        (["copy", "--keep", "13", "--to", "x"], "only 12 heads"),
        (["copy", "--out", "x.csv", "--retrain", "-1"], "--retrain must be at least 0"),
        (["copy", "--out", "x.csv", "--retrain-at", "4;8"], "--retrain-at takes numbers"),
        (["copy", "--out", "x.csv", "--page", "x.html"], "--page must end in .md"),
        (["copy", "--out", "x.csv", "--with", "none.csv"], "none.csv is not a curve"),
        (["nothing", "--out", "x.csv"], "There is no checkpoint nothing"),
    ],
)
def test_what_cannot_be_pruned_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        prune_command.main(arguments)
    assert said in f"{caught.value.code}{capsys.readouterr().err}"
    assert not list(tmp_path.iterdir())
