"""What the grid says, marks, shades and asks for, from a state: weights, a look, and what is
pointed at or pinned: app/components/head_grid/state.js. What it draws and hears is in
tests/browser/test_head_grid.py."""

import re
from dataclasses import replace

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.components.packing import PackedPredictions, halved, weight_bytes
from headlight.app.lessons.question import Veil
from tests.app.test_packing import weights_of
from tests.javascript.grids import FOCUS, LOOK, NAMES, SOURCE, TARGET, attention, packed

FOLLOWING = [*TARGET[1:], "</s>"]
# All that can be seen of a state, with each cell and token of a head pointed at.
SEEN = """() => {
  const { query, key, rows, columns } = grid.part("cross"), { layer, head } = grid.look.focus;
  const pointed = [null];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      pointed.push(grid.cell(grid.part("cross"), layer * 4 + head, row, column));
  for (const [side, { labels }] of Object.entries(grid.data.sides))
    for (const index of labels.keys()) pointed.push({ tokens: [{ side, index }], to: [] });
  const seen = pointed.map((each) => {
    grid.pointed = each;
    const now = grid.now();
    return [now, grid.shades(now.pointed), grid.answersAt(now.pointed), grid.marked(now.pointed)];
  });
  grid.pointed = null;
  const colours = Uint32Array.from({ length: 256 }, (_, i) => i + 1);
  const tiles = grid.shown().map((part) => {
    const pixels = new Uint32Array(part.cells.length);
    paintTiles(pixels, part, grid.look, colours);
    return [...pixels];
  });
  const rowsOf = (part) => [grid.rows(part).map((row) => [...row]),
    grid.rowLabels(part, grid.data.sides[part.query])];
  return JSON.stringify([seen, tiles, rowsOf(grid.part("cross"))]);
}"""


def percent(weight) -> str:
    return f"{100 * weight:.0f}%"


def quoted(token: str) -> str:
    """In a sentence: punctuation, which italics hardly change, in quotes."""
    return token if re.search(r"\w", token) else f"“{token}”"


def predicting(answers, **more) -> bytes:
    rows = [[(word, 1.0)] for word in answers] if isinstance(answers[0], str) else answers
    predictions = PackedPredictions("target", "Next token", rows, 5)
    return packed(attention(NAMES), answers=predictions, **more)


WORDS = [f"word {row}" for row in range(len(TARGET))]


# Cells


@pytest.mark.parametrize("kind", NAMES)
def test_every_cell_is_said_with_its_weight_or_that_it_is_masked(grid, kind):
    query, key = {"encoder": (SOURCE, SOURCE), "decoder": (TARGET, TARGET)}.get(
        kind, (TARGET, SOURCE)
    )
    for row, column in np.ndindex(7, 7):
        said, weight = grid.point(kind, 3, 2, row, column), grid.weights[kind][2, 1, row, column]
        assert said.startswith(f"{NAMES[kind]}, layer 3 head 2: {quoted(query[row])} ")
        if weight == 0:
            assert said.endswith(f" may not attend to {quoted(key[column])}.")
            continue
        share, end = re.search(r"puts (\d+|less than 1)% of its weight on (.*)", said).groups()
        assert end.startswith(quoted(key[column]))
        assert abs(int(share.replace("less than 1", "0")) - 100 * weight) <= 0.75
        assert said.endswith("the only key it may attend to.") == (kind == "decoder" and row == 0)


def test_small_weights_left_out_are_not_called_masked(grid):
    grid.look(focus=dict(kind="encoder", layer=0, head=0), least=0.5)
    weights = grid.weights["encoder"][0, 0]
    assert "puts less than 1%" in grid.point("encoder", 1, 1, *np.argwhere(weights < 0.005)[0])


def test_a_cell_of_a_long_text_is_said_with_the_largest_weight_and_both_ends(grid):
    weights = attention(["encoder"], source=["dog"] * 1000, layers=1, heads=2)
    look = replace(LOOK, focus=dict(kind="encoder", layer=0, head=1))
    grid.show(packed(weights, ["dog"] * 1000, []), look)
    grid("void (grid.pointed = grid.cell(grid.part('encoder'), 1, 2, 100))")
    pooled = weights["encoder"][0, 1, 8:12, 400:404].max()
    assert f"puts up to {percent(pooled)} of its weight on dog … dog" in grid.said()
    assert "attends most to" in grid.word("source", 500)


def test_cells_are_walked_within_the_head_and_what_is_pinned_goes_where_it_has_a_place(grid):
    def walk(*move):
        grid(f"void (grid.pinned = grid.walked({list(move)}))")
        return grid("[grid.pinned.row.index, grid.pinned.column.index]")

    assert walk(0, 0) == [0, 0]
    assert [walk(1, 0), walk(0, 1), walk(-1, 0), walk(-1, -1)] == [[1, 0], [1, 1], [0, 1], [0, 0]]
    for _ in range(9):
        last = walk(1, 1)
    assert last == [6, 6]
    grid("grid.focusOn({ kind: 'cross', layer: 0, head: 0 })")  # of the same texts
    assert "layer 1 head 1: " in grid.said() and grid("grid.count") == 1
    grid("grid.focusOn({ kind: 'encoder', layer: 0, head: 0 })")
    assert grid.said() and grid("grid.pinned") is None


# The row that is marked


def test_the_marked_row_stays_while_the_tokens_do(grid):
    """Also the one that is marked at first: a change brings other weights, and says what it did."""
    (row,) = grid.marked()
    others = attention(NAMES)
    others["cross"] = np.roll(others["cross"], 1, axis=2)  # another row is the most telling one
    grid.show(packed(others), replace(LOOK, said=[("It changed.", "")]))
    assert grid.said() == "It changed." and grid.marked() == [row]
    grid.show(packed(others, source=[*SOURCE[:-1], "!"]))
    assert grid.marked() != [row]
    grid.show(packed(others))
    grid.word("target", 4, pinned=True)
    for said in ([("It changed.", "")], []):
        grid.show(packed(others if said else grid.weights), replace(LOOK, said=said))
        assert grid.marked() == [4]


def test_the_row_that_is_spoken_of_is_marked_and_stays(grid):
    (first,) = grid.marked()
    row = 2 if first != 2 else 3
    others = attention(NAMES)
    others["cross"] = np.roll(others["cross"], 1, axis=2)
    points_at = {"side": "target", "index": row}
    grid.show(packed(others), replace(LOOK, points_at=points_at))
    assert grid.marked() == [row]
    grid.look()  # as trained again: the same row, to compare
    assert grid.marked() == [row]
    grid.show(packed(others), replace(LOOK, points_at=points_at))
    grid("grid.focusOn({ kind: 'encoder', layer: 0, head: 0 })")
    side = "grid.marked(grid.now().pointed).rows.map(({ side }) => side)"
    assert grid(side) == ["source"]  # no row of the encoder's is of the target


def test_beside_a_hidden_token_the_row_that_the_change_is_said_of_is_marked(grid):
    grid.word("source", 1, pinned=True)
    beside = "grid.queries(grid.now().beside).map(({ index }) => index)"
    assert grid(beside) == []
    grid.look(said=[("It changed.", "")], points_at={"side": "target", "index": 3})
    assert grid.said() == "It changed." and grid(beside) == [3]
    grid("void (grid.answering = false)")
    grid.word("source", 2)
    assert grid(beside) == [] and "attended to most by" in grid.said()


def test_a_difference_names_the_row_that_was_marked_before_or_changed_most(grid):
    (marked,) = grid.marked()
    after = {kind: weights.copy() for kind, weights in grid.weights.items()}
    after["cross"][1, 2, 4, 1:3] += -0.3, 0.3
    changed = {kind: halved(after[kind], grid.weights[kind], 0.3) for kind in after}
    look = replace(LOOK, palette=theme.DIFFERENCES)
    grid.show(packed(changed, signed=0.3), look)
    assert grid.marked() == [marked] != [4]
    assert grid.said().endswith(f"{TARGET[marked]} attends as before.")
    other = dict(kind="cross", layer=0, head=0)
    grid.show(packed(changed, signed=0.3), replace(look, focus=other))
    assert grid("grid.telling().word") is None  # nothing has changed here
    grid.show(packed(changed, signed=0.3), look)
    assert grid.marked() == [4]
    said = grid.said()
    assert f"{TARGET[4]} changes most in its weight on" in said
    assert f"{SOURCE[1]} (−30%)" in said and f"{SOURCE[2]} (+30%)" in said
    assert "by −30%." in grid.point("cross", 2, 3, 4, 1)
    assert "does not change its weight" in grid.point("cross", 2, 3, 3, 1)


def test_a_head_without_a_pattern_is_said_to_be_even(grid):
    """Unless one row is not: of 7 keys none gets more than twice its share."""
    weights = {kind: cells.copy() for kind, cells in grid.weights.items()}
    weights["cross"][1, 2] = 1 / len(SOURCE)
    said = grid.show(packed(weights)).said()
    assert said == "Every row spreads its weight almost evenly: no key gets more than 14%."
    assert grid("grid.now().pointed") is None
    rows = np.tri(len(TARGET), dtype=np.float32)
    weights["decoder"][0, 0] = rows / rows.sum(axis=1, keepdims=True)
    causal = replace(LOOK, focus=dict(kind="decoder", layer=0, head=0))
    said = grid.show(packed(weights), causal).said()  # two rows have one key and two
    assert said == (
        "Every row spreads its weight almost evenly: with more than two keys, none gets more than "
        "33%."
    )
    weights["cross"][1, 2, 3] = [0.4, *[0.1] * 6]
    assert "almost evenly" not in grid.show(packed(weights)).said()
    assert "almost evenly" not in grid.show(packed(weights), replace(LOOK, in_lesson=True)).said()


def test_a_layer_or_a_kind_that_is_selected_is_named(grid):
    for scope, name in (("layer", "Cross-attention, layer 2"), ("kind", "Cross-attention")):
        grid(f"void (grid.scope = '{scope}')")
        assert grid.said().startswith(f"{name} is selected.")
        assert grid.marked() == []


# Words


def test_a_word_is_told_with_its_three_largest_weights_either_way(grid):
    """Of a text that is read by itself, what it attends to and what attends to it."""
    grid.look(focus=dict(kind="encoder", layer=3, head=0))
    weights = grid.weights["encoder"][3, 0]
    for at, label in enumerate(SOURCE[:-1]):
        said = grid.word("source", at)
        halves = said.split(f": {label} attends most to ")[1].split("; is attended to most by ")
        for half, row in zip(halves, (weights[at], weights[:, at]), strict=True):
            row = weights_of(weight_bytes(row))  # as the browser knows them
            best = [i for i in np.argsort(-row, kind="stable")[:3] if row[i] >= 0.005]
            names = ["itself" if i == at else quoted(SOURCE[i]) for i in best]
            named = re.findall(r"(?:^|, )(\S+) \((\d+)%\)", half)
            assert [name for name, _ in named] == names
            shares = [int(share) for _, share in named]
            assert np.abs(np.array(shares) - 100 * row[best]).max() <= 0.5
        assert np.allclose(grid.shaded("source", True), weights[at], atol=0.006)
        assert np.allclose(grid.shaded("source", False), weights[:, at], atol=0.006)


def test_the_text_is_shaded_by_the_head_under_the_pointer(grid):
    grid.point("encoder", 4, 1, 2, 4)
    weights = grid.weights["encoder"][3, 0]
    assert np.allclose(grid.shaded("source", True), weights[2], atol=0.006)
    assert np.allclose(grid.shaded("source", False), weights[:, 2], atol=0.006)
    assert not grid.shaded("target", True).any()  # not by the selected head of cross-attention


def test_a_selected_key_is_told_with_the_sum_of_its_column(grid):
    weights = grid.weights["cross"][1, 2]
    said = grid.word("source", 1, pinned=True)
    assert said.endswith(f"; its column adds up to about {percent(weights[:, 1].sum())}.")
    assert np.allclose(grid.shaded("target", False), weights[:, 1], atol=0.006)
    assert "adds up" not in grid.word("source", 2)
    assert "which this attention does not read" in grid.look(
        focus=dict(kind="decoder", layer=0, head=0)
    ).word("source", 1)


@pytest.mark.parametrize(
    ("average", "axes", "name"),
    [
        ("heads", 1, "mean over the heads of layer 2"),
        ("layers", 0, "mean of head 3 over all layers"),
        ("both", (0, 1), "mean over all heads"),
    ],
)
def test_a_mean_is_named_and_told(grid, average, axes, name):
    grid.look(average=average)
    weights = grid.weights["cross"].mean(axis=axes, keepdims=True)
    row = weights[-1 if weights.shape[0] == 1 else 1, -1 if weights.shape[1] == 1 else 2, 4]
    said = grid.word("target", 4)
    assert said.startswith(f"Cross-attention, {name}: ")
    assert f"attends most to {quoted(SOURCE[row.argmax()])} (" in said
    assert np.allclose(grid("[...grid.rows(grid.part('cross'))[4]]"), row, atol=0.003)


def test_a_row_is_named_by_the_word_that_its_head_follows(grid):
    run = packed(grid.weights, following=FOLLOWING, shifts=[0, 1] * 8)
    grid.show(run)
    row, key = 2, SOURCE[1]
    assert f": {TARGET[row]} puts" in grid.point("cross", 1, 1, row, 1)
    said = grid.point("cross", 1, 2, row, 1)
    assert f": having read {TARGET[row]}, about to write {FOLLOWING[row]}, it puts" in said
    assert {"side": "target", "index": row + 1} in grid("grid.shades(grid.pointed).framed")
    title = f"Having read {TARGET[row]}, about to write {FOLLOWING[row]}"
    assert grid("grid.rowTitle(grid.pointed)") == title
    part = "grid.part('cross')"
    for head, names, word in ((0, TARGET, "just read"), (1, FOLLOWING, "about to be written")):
        grid.show(run, replace(LOOK, focus={"kind": "cross", "layer": 0, "head": head}))
        assert grid(f"grid.rowLabels({part}, grid.data.sides.target)") == list(names)
        assert grid(f"grid.queryTitle({part})") == f"query (target, {word})"
    said = grid.word("target", row + 1)  # the label of that row
    assert f"having read {TARGET[row]}, about to write {FOLLOWING[row]}, it attends" in said
    assert f"attends most to {SOURCE[grid.weights['cross'][0, 1, row].argmax()]} (" in said
    assert grid.marked() == [row]
    assert "is not written by the model" in grid.word("target", 0)
    column = grid.weights["cross"][0, 1, :, 1]
    said = grid.word("source", 1)
    assert f"{key} is attended to most by {FOLLOWING[column.argmax()]} (" in said
    last = len(TARGET) - 1
    assert grid(f"grid.rowAsWord({part}, {row})")["tokens"] == [
        {"side": "target", "index": row + 1}
    ]
    assert grid(f"grid.rowAsWord({part}, {last})") is None  # it predicts the end
    asked = replace(LOOK, focus=dict(kind="cross", layer=0, head=1), veil=[{"what": "next tokens"}])
    grid.show(run, asked)
    assert grid(f"grid.rowLabels({part}, grid.data.sides.target)") == list(TARGET)


def test_two_words_name_the_head_that_links_them_most(grid):
    dog, hund = SOURCE.index("dog"), TARGET.index("Hund")

    def pair(*words):
        first, second = (f"[{{ side: '{side}', index: {index} }}]" for side, index in words)
        grid(f"void (grid.pinned = {{ tokens: {first}, to: {second} }})")

    pair(("target", hund), ("source", dog))
    weights = grid.weights["cross"][:, :, hund, dog]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    best = f"Cross {layer + 1}.{head + 1}"
    most = f"In {best}, Hund puts {percent(weights.max())} of its weight on dog, more than in any"
    here = f" other head. In the selected head: {percent(weights[FOCUS['layer'], FOCUS['head']])}."
    assert grid.said() == most + here
    assert grid("grid.shades(grid.now().pointed).shaded") == []  # of one of the two words alone
    grid(f"grid.focusOn({{ kind: 'cross', layer: {layer}, head: {head} }})")
    assert grid.said() == f"{most} other head."
    pair(("source", 1), ("source", 2))
    assert grid.said().endswith(" The selected head does not connect them.")
    weights = {kind: np.zeros_like(cells) for kind, cells in grid.weights.items()}
    grid.show(packed(weights))
    pair(("target", hund), ("source", dog))
    assert grid.said() == "Hund and dog: No head may attend from one to the other."


def test_a_head_that_is_off_is_called_so(grid):
    tile, note = 1 * 4 + 2, "But the head is off: nothing of this is passed on."
    for off, is_off in (
        ({}, False),
        ({"cross": [tile]}, True),
        ({"cross": [7], "encoder": [6]}, False),
    ):
        grid.look(off=off)
        assert grid.word("target", 2).endswith(note) == is_off
        assert grid.point("cross", 2, 4, 1, 1).endswith(note) == (7 in off.get("cross", []))


def test_what_the_changes_did_to_a_token(grid):
    grid.look(moved={"target": [None, -0.5, 2.0, *[0.0] * 4]}, hidden={"source": [1]})
    found = [grid(f"grid.changeOf('target', {at})") for at in range(4)]
    assert [one["by"] for one in found] == [None, -0.5, 2, 0]
    assert [one["share"] for one in found] == [0, 0.25, 1, 0]
    assert [grid(f"grid.changeOf('source', {at}).hidden") for at in range(3)] == [
        False,
        True,
        False,
    ]
    grid.look(moved={"target": [-0.2] * 7}, hidden={"source": [1]}, acts=False)
    assert grid("grid.changeOf('target', 1)") == {"hidden": False, "by": None, "share": 0}
    assert not grid("grid.changeOf('source', 1).hidden")
    grid.look(moved={"target": [-0.2] * 7})
    assert grid("grid.changeOf('target', 1).share") == pytest.approx(0.2)  # small ones look small


# What the server hears and names


def chosen(query, key=-1):
    return {"query": query, "key": key}


def test_a_cell_that_the_server_names_is_selected_until_another_is(grid):
    grid.look(cell=chosen(2, 5))
    assert re.search(rf"{TARGET[2]} puts .* of its weight on {SOURCE[5]}", grid.said())
    grid.word("target", 3, pinned=True)
    assert grid("grid.pinnedCell()") == chosen(3)
    grid("grid.note(grid.pinnedCell())")
    for cell, pinned in (
        (chosen(2, 5), chosen(3)),  # an answer from before
        (chosen(4), chosen(4)),  # chosen on another page
        (chosen(99, 99), chosen(-1)),  # of a longer sentence
    ):
        grid.look(cell=cell)
        assert grid("grid.pinnedCell()") == pinned


def test_late_answers_of_the_server_move_nothing_back(grid):
    grid("grid.focusOn({ kind: 'cross', layer: 3, head: 1 })")
    grid.look(focus=dict(kind="cross", layer=0, head=0))
    assert grid("grid.look.focus") == dict(kind="cross", layer=3, head=1)
    grid.look(focus=dict(kind="encoder", layer=0, head=0), heard=1)
    assert grid("grid.look.focus.kind") == "encoder"
    grid("grid.focusOn({ kind: 'cross', layer: 3, head: 1 })")
    grid.look(focus=dict(kind="decoder", layer=0, head=0), session="another")
    assert grid("grid.look.focus.kind") == "decoder" and grid("grid.count") == 0


def test_keys_ask_for_what_is_done_to_the_selected_head_token_or_cell(grid):
    paint = dict(what="paint", **FOCUS, row=1, column=2, allow=False, scope="head")
    assert grid("grid.actOf('o')") == FOCUS | {"what": "off", "scope": "head"}
    assert [grid(f"grid.actOf('{key}')") for key in "Hm+-z"] == [None] * 5
    cell = "grid.cell(grid.part('cross'), 6, 1, 2)"
    grid(f"void (grid.pinned = {cell})")
    token = dict(what="hide", side="source", index=2)
    assert grid("grid.actOf('h')") == token
    assert grid("grid.actOf('H')") == token | {"head": FOCUS}
    assert grid("grid.actOf('m')") == paint
    for scope in ("layer", "kind"):
        grid(f"void (grid.scope = '{scope}')")
        assert grid("grid.actOf('m').scope") == grid("grid.actOf('o').scope") == scope
    grid("void (grid.scope = 'head')")
    weight = float(grid.weights["cross"][1, 2, 1, 2])
    for key, expected in (("+", weight + 0.1), ("+", weight + 0.2), ("-", weight + 0.1)):
        asked = grid(f"grid.actOf('{key}')")
        assert asked.pop("weight") == pytest.approx(expected, abs=0.01)
        assert asked == dict(what="weigh", **FOCUS, row=1, column=2)
    assert grid("grid.weighs(grid.pinned, 5).weight") == 1
    assert grid("grid.weighs(grid.pinned, -5).weight") == 0
    parts = grid("grid.previewed(grid.pinned, 0.25)")
    assert percent(min(1, weight + 0.25)) in parts
    grid.weights["cross"][1, 2, 1, 2] = 0  # masked by now
    grid.look()
    grid(f"void (grid.pinned = {cell})")
    assert grid("grid.actOf('m')") == paint | {"allow": True} and grid("grid.actOf('+')") is None
    grid.word("target", 3, pinned=True)  # no key of the selected head
    assert grid("grid.actOf('h')") == dict(what="hide", side="target", index=3)
    assert grid("grid.actOf('H')") is None


@pytest.mark.parametrize("which", ["words", "a difference", "long", "alone"])
def test_cells_that_are_no_weights_of_the_model_cannot_be_changed(grid, which):
    text, look = dict(source=SOURCE, target=TARGET), LOOK
    if which == "long":
        text = dict(source=["dog"] * 300, target=TARGET)
    if which == "words":
        look = replace(LOOK, acts=False)
    signed = 0.3 if which == "a difference" else 0.0
    grid.show(packed(attention(NAMES, **text), **text, signed=signed), look)
    if which == "alone":
        grid("void (grid.act = null)")
    grid("void (grid.pinned = grid.cell(grid.part('cross'), 6, 1, 2))")
    assert not grid("grid.paintable()") and grid("grid.actOf('m')") is None


# Predictions


def test_predictions_are_those_of_the_row_that_is_pointed_at_marked_or_spoken_of(grid):
    grid.show(predicting([[(word, 0.75), ("␣", 0.25)] for word in WORDS]))
    (row,) = grid.marked()
    assert grid.answers()[0] == f"Next token after “{TARGET[row]}”"
    grid.word("target", 2)
    assert grid.answers() == ("Next token after “Hund”", ["word 2", "␣ space"])
    grid.word("source", 1)  # which has no next token
    assert grid.answers()[0] == f"Next token after “{TARGET[row]}”"
    grid.word("target", 2, pinned=True)
    grid("void (grid.pointed = { tokens: [{ side: 'source', index: 1 }], to: [] })")
    assert grid.answers()[0] == "Next token after “Hund”"
    encoder = replace(LOOK, focus={"kind": "encoder", "layer": 0, "head": 0})
    grid.word("source", 1)
    grid.show(predicting(WORDS), encoder)
    assert grid.answers()[0] == f"Next token after “{TARGET[5]}”"  # the last
    told = dict(said=[("It changed.", "")], points_at={"side": "target", "index": 1})
    grid.show(predicting(WORDS), replace(encoder, **told))
    assert grid.answers()[0] == f"Next token after “{TARGET[1]}”"
    grid.show(predicting(WORDS), replace(encoder, veil=[{"what": "next tokens"}]))
    assert grid("grid.answersAt(null)") is None


def test_predictions_name_their_row_as_the_picture_does(grid):
    run = predicting(WORDS, following=FOLLOWING, shifts=[0, 1] * 8)
    for shift, name in enumerate(("after “Ein”", "in row “Hund”")):
        grid.show(run, replace(LOOK, focus={"kind": "cross", "layer": 0, "head": shift}))
        grid.word("target", 1 + shift)
        assert grid.answers()[0] == f"Next token {name}"
    classes = PackedPredictions("target", "Class", [[("good", 0.9)]], 0)
    grid.show(packed(grid.weights, answers=classes))
    assert grid.answers() == ("Class of the text", ["good"])


@pytest.mark.parametrize("place", range(6))
def test_the_token_that_the_text_has_is_always_among_the_predictions(grid, place):
    """Where it is not one of the first three, it says so."""
    rows = [[(f"word {at}", 0.19) for at in range(5)] for _ in TARGET]
    for row, name in zip(rows, FOLLOWING, strict=True):
        row[place : place + 1] = [(name, 0.19)] * (place < 5)
    wanted = [0.19 if place < 5 else 0.001] * len(TARGET)
    answers = PackedPredictions("target", "Next token", rows, 5, wanted)
    grid.show(packed(grid.weights, answers=answers, following=FOLLOWING))
    grid.word("target", 1)
    _, bars = grid.answers()
    assert len(bars) == max(5, place + 1)
    assert bars[place] == (TARGET[2] if place < 3 else f"{TARGET[2]} target")
    wants = grid("grid.answersAt(grid.now().pointed).bars.map(({ isWanted }) => isWanted)")
    assert wants == [place > 2 and at == place for at in range(len(bars))]


# What a lesson covers


DISPLAYS = [
    *({"show": show} for show in ("all kinds", "one kind", "joint")),
    *({"average": average} for average in ("heads", "layers", "both")),
    *({"scale": scale} for scale in ("square root", "per row")),
]


@pytest.mark.parametrize("what", ["row", "column", "next tokens"])
def test_nothing_of_what_a_lesson_covers_is_said_shaded_or_painted(grid, what):
    """Two runs that differ in it alone are the same in every display; without a cover they are
    not."""
    weights, others = grid.weights, {kind: cells.copy() for kind, cells in grid.weights.items()}
    words = "Ein", "Der" if what == "next tokens" else "Ein"
    if what == "row":
        others["cross"][1, 2, 3] = weights["cross"][1, 2, 3, ::-1]
    elif what == "column":
        others["cross"][1, 2] = weights["cross"][1, 2, ::-1, ::-1]
    runs = []
    for cells, word in zip((weights, others), words, strict=True):
        answers = PackedPredictions("target", "Next token", [[(word, 0.75)]] * len(TARGET), last=6)
        following = [*TARGET[1:4], word, *TARGET[5:], "</s>"]
        runs.append(packed(cells, answers=answers, following=following, shifts=[1] * 16))

    def seen(**look):
        return [grid.show(run, replace(LOOK, **look)).evaluate(SEEN) for run in runs]

    veil = [vars(Veil(what, "cross", 1, 2, 3))]
    for display in DISPLAYS:
        one, other = seen(veil=veil, in_lesson=True, **display)
        assert one == other, display
    one, other = seen()
    assert one != other
    if what == "row":
        grid.show(runs[0], replace(LOOK, veil=veil))
        assert grid.point("cross", 2, 3, 3, 1).endswith(" is covered until you answer.")
