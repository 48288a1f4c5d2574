"""The stage without a browser: what is selected, where one is, and the numbers that it says."""

import itertools
import json
import math
import re
from base64 import b64encode
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.components.packing import answers_of, as_sent, id_of, pack_trace
from headlight.app.lessons.question import Veil
from headlight.app.results import writing
from headlight.app.results.shown import Shown
from headlight.app.results.system_results import beside_reference
from headlight.app.state import catalog
from headlight.app.state.address import PLACE
from headlight.app.state.options import PLACES
from headlight.app.text.part_names import term_name
from headlight.model import load
from headlight.model.analysis.decomposition import Term
from headlight.model.analysis.head_metrics import most_telling_row
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import SHIPPED
from headlight.model.decoding.generate import Beam, Greedy, Sampling
from headlight.model.presets import PRESETS
from headlight.model.probing import changes
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.sites import Place, attention_at
from headlight.model.rounding import percent
from tests.model.common import random_model, run_of, tiny_tokenizer

FILES = [f"app/components/stage/{name}.js" for name in (
    "arithmetic", "state", "finding", "row", "number", "positions", "adds", "write", "pytorch",
    "floors", "heads", "model", "engine",
)]  # fmt: skip
NAMES = sorted(folder.name for folder in SHIPPED.iterdir())
FEW, MANY, SENTENCES = 6, 300, 6  # heads; sentences of each model
LINE = "She has never seen the red car of my sister."
FOCUS = {"kind": "cross", "layer": 2, "head": 2}
COLOURS = {"light": ["#000000", "#ffffff"], "dark": ["#000000", "#ffffff"]}
LOOK = dict(covered=False, model="en-fr", veil=[], cards=None, hidden={}, off={}, done=[], cell={})
# Makes a stage's state, and lets a function of it answer.
STATE = """({ packed, look, where }) => {
  const state = new StageState();
  if (where) state.takePlace(where);
  if (look) state.takeLook(look);
  state.takeRun(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)));
  if (state.asked) state.goThere();
  return (%s)(state);
}"""
ROW = """({ scores, mask, values, isScaled, row, count, width }) => {
  const head = { keys: { length: count }, width, values, scores: Float32Array.from(scores), mask };
  const found = rowOf(head, row, isScaled);
  return { ...found, allowed: [...found.allowed] };
}"""


@pytest.fixture(scope="module")
def trace():
    return load("en-fr").trace(LINE)


@pytest.fixture
def stage(node, trace):
    """stage(code, …): the value of a function of the state, after a run and a look."""

    def evaluate(code, packed=None, where=None, **look):
        data = packed or pack_trace(trace, Reading())
        look = LOOK | {"focus": FOCUS, "run": id_of(data)} | look
        given = {"packed": b64encode(data).decode(), "look": look, "where": where}
        return node.scope(*FILES)(STATE % code, given)

    return evaluate


def sent(array):
    """An array as the browser has it."""
    data = array.ravel().astype(float).tolist()
    return {"rows": len(array), "columns": array.shape[1], "data": data}


def steps_of(trace):
    """Of the selected head, and what of them the browser has."""
    model = load("en-fr")
    steps = head_steps(model.model, model.run(LINE), trace.kinds["cross"][2], 2)
    return steps, {n: sent(getattr(steps, n)) for n in ("scores", "mask", "weights", "v")}


def texts(parts):
    return "".join(part if isinstance(part, str) else part[0] for part in parts)


def test_names_of_runs_are_those_of_the_browser(stage, trace):
    one = pack_trace(trace, Reading())
    assert stage("(state) => [state.run.id, state.isSeen]", one + one) == [2 * id_of(one), True]


def test_paths_are_seen_where_a_sentence_is_compared(stage, trace):
    outputs = load("en-fr").outputs
    packed = pack_trace(trace, Reading(), answers=answers_of(trace, outputs))
    see = partial(stage, packed=packed, where={"depth": "model", "whole": "paths"})
    known = ["maps", "after", "needs", "positions"]
    assert see("(state) => [state.wholes, state.seen]") == [known, 0]
    see = partial(see, compared="A")
    known.insert(3, "paths")
    assert see("(state) => [state.wholes, state.seen]") == [known, 3]
    told = "(state) => { state.told.A = 341; state.told[JSON.stringify(state.pathsOf())] = %s; "
    ends = told + "return [state.question(), findingOf(state)]; }"
    asked = {"what": "paths", "compared": "A", "measured": 341}
    found = see(ends % '{ said: ["2 of 9 paths, ", "un", "."] }')
    assert found == [asked, ["2 of 9 paths, ", ["un", "name"], "."]]
    waits = ["Changing one path at a time … 341 measured."]
    assert see(ends % "undefined") == [asked, waits]


def test_a_run_is_seen_only_where_the_server_names_it(stage):
    for run in (None, "another"):
        assert not stage("(state) => state.isSeen", run=run)
    assert not stage(
        "(state) => { state.takeLook({ run: null, covered: true }); return state.isSeen; }"
    )


def test_the_selection_is_the_browsers_until_the_server_has_another(stage):
    """Its own comes back with every run, and may be late."""
    other = {"kind": "encoder", "layer": 0, "head": 1}
    code = """(state) => {
      const look = state.look, said = [];
      state.choose(%s);
      state.selection();
      const sent = state.sent;
      state.choose({ kind: "decoder", layer: 1, head: 1 });
      for (const { focus, cell } of [look, sent, look, { focus: %s, cell: { query: 2, key: 1 } }]) {
        state.takeLook({ ...look, focus, cell });
        said.push(state.name());
      }
      return [...said, state.row(), state.key];
    }"""
    found = stage(code % (json.dumps(other), json.dumps(other | {"head": 3})))
    assert found == ["decoder 2.2", "decoder 2.2", "cross 3.3", "encoder 1.4", 2, 1]


def test_numbers_of_one_head_are_never_those_of_another(stage):
    """Whoever selects the other: a link, the server, the browser itself."""
    ways = (
        "state.takeLook({ ...state.look, focus: other })",
        "(state.takePlace({ cell: 'encoder.1.2' }), state.goThere())",
        "state.choose(other)",
    )
    code = """(state) => {
      const other = { kind: "encoder", layer: 0, head: 1 };
      state.vectors = {};
      WAY;
      return [state.name(), state.vectors];
    }"""
    for way in ways:
        assert stage(code.replace("WAY", way)) == ["encoder 1.2", None]


@pytest.mark.parametrize("known", [[], [FOCUS]])
def test_a_file_leads_as_deep_as_it_has_numbers(stage, known):
    alone = {"known": known, "lacking": "This file has no scores."}
    code = """(state) => {
      state.depth = ROW;
      const { shallowest, deepest, orders, numbers } = state;
      return [[shallowest, deepest], [orders, numbers], findingOf(state)];
    }"""
    depths, views, said = stage(code, alone=alone)
    assert depths == [1, 4 if known else 3] and views == [[], ["order", "largest"]]
    assert ("on their way" in texts(said)) == bool(known)
    assert texts(said).endswith(alone["lacking"]) != bool(known)


@pytest.mark.parametrize("depth", ["model", "heads", "head", "row", "number"])
def test_an_address_leads_to_where_it_was_written(stage, depth):
    where = dict(depth=depth, whole="needs", cell="cross.2.3.4.5", stop="weights")
    where |= dict(number="largest", scaling="off")
    written = stage("(state) => state.place()", where=where)
    assert written["depth"] == depth and written["cell"] == where["cell"]
    assert stage("(state) => state.place()", where=written) == written
    for name, value in written.items():
        assert value is None or re.fullmatch(PLACE[name], value)


def test_lessons_know_the_places_of_the_stage(node):
    places = node.scope(*FILES)(
        "() => ({ depth: DEPTHS, whole: WHOLES, heads: ORDERS, view: VIEWS, stop: STOPS,"
        " number: NUMBERS, write: WRITES })"
    )
    assert {name: tuple(some) for name, some in places.items()} == PLACES


@pytest.mark.parametrize(
    "cell", ["cross.9.1", "other.1.1", "cross.1.9", "", "cross.1.1.999", "x" * 99]
)
def test_an_address_that_leads_nowhere_opens_the_selected_head(stage, cell):
    found = stage("(state) => [state.name(), state.row()]", where={"depth": "head", "cell": cell})
    assert found[0] == ("cross 1.1" if cell.endswith("999") else "cross 3.3")


def test_a_word_keeps_its_row_from_head_to_head(stage):
    """Heads that follow the word about to be written name their rows by it."""
    code = """(state) => {
      state.words.target = 11;
      return [...Array(16).keys()].map((tile) => {
        state.choose({ kind: "cross", layer: tile >> 2, head: tile % 4 });
        return state.rowNames()[state.row()];
      });
    }"""
    assert set(stage(code)) == {"ma"}


@pytest.mark.parametrize("name", ["en-de", "copy", "english"])
def test_a_head_opens_on_the_row_that_tells_most(stage, name):
    trace = load(name).trace("A dog runs." if name != "copy" else "a b c d")
    packed = pack_trace(trace, Reading())
    for kind, weights in trace.attention.items():
        keys = trace.texts_of(kind)[1].tokens
        for layer, head in np.ndindex(weights.shape[:2]):
            tile = {"kind": kind, "layer": layer, "head": head}
            even, row = stage("(state) => [state.isEven(), state.row()]", packed=packed, focus=tile)
            wanted = most_telling_row(
                as_sent(weights[layer, head]), trace.row_words(kind, layer, head), keys
            )
            assert even if wanted is None else row == wanted


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_every_cell_is_said_with_its_weight_and_what_it_was(stage, count):
    """Of random models, sentences and heads, before and after a change."""
    random = np.random.default_rng(1)
    code = """(state) => {
      const part = state.part(), tile = state.tileOf(part), said = [];
      for (let row = 0; row < part.rows; row++) {
        state.chooseRow(row);
        said.push([findingOf(state), [...Array(part.columns).keys()].map((column) => {
          state.key = column;
          return [spokenCell(state), state.moved(part, tile, row, column)];
        })]);
      }
      return said;
    }"""
    for _ in range(count):
        name = str(random.choice(NAMES))
        line = str(random.choice(catalog.examples(name)[:SENTENCES]))
        model = load(name)
        before = model.trace(line)
        kind = str(random.choice(sorted(before.attention)))
        layer, head = map(int, random.integers(before.attention[kind].shape[:2]))
        change = str(random.choice([f"{kind}.{layer + 1}.{head + 1}=uniform", "all=temperature:3"]))
        after = model.trace_run(replace(before.run, changes=changes.parse(change)))
        packed = pack_trace(after, Reading()) + pack_trace(before, Reading())
        focus = {"kind": kind, "layer": layer, "head": head}
        rows, keys = after.row_words(kind, layer, head), after.texts_of(kind)[1].tokens
        now, was = (as_sent(one.attention[kind][layer, head]) for one in (after, before))
        for row, (said, cells) in enumerate(stage(code, packed, focus=focus)):
            best = now[row].argmax()
            assert texts(said).endswith(f"{keys[best]} ({percent(now[row, best])}).")
            for column, (spoken, moved) in enumerate(cells):
                weight = now[row, column]
                value = percent(weight) if weight else "masked"
                assert spoken == f"{rows[row]}, {keys[column]}: {value}"
                apart = abs(weight - was[row, column])
                if abs(apart - 0.05) > 1e-6:
                    assert (moved is not None) == (apart > 0.05)
                assert moved is None or np.allclose(
                    moved[:2], [was[row, column], weight], atol=5e-5
                )


def test_what_a_lesson_asks_for_is_nowhere(stage):
    veil = [vars(Veil("row", "cross", 2, 2, 8))]
    found = stage(
        """(state) => {
          state.chooseRow(8);
          return [state.weights(), findingOf(state), spokenCell(state), state.answers()];
        }""",
        veil=veil,
    )
    assert set(found[0]) == {0} and not re.search(r"\d", texts(found[1]) + found[2])
    assert found[3] is None


def test_a_covered_row_alone_can_be_guessed_at_and_nothing_deeper_opens(stage):
    code = """(state) => {
      const seen = (columns) => {
        state.guess = { shares: Array(columns).fill(1 / columns) };
        return [state.isGuessed(), state.deepest === HEAD];
      };
      const { columns } = state.part();
      state.chooseRow(8);
      const found = [seen(columns), seen(columns + 1)];
      state.chooseRow(7);
      return [...found, seen(columns)];
    }"""
    veil = [vars(Veil("row", "cross", 2, 2, 8))]
    assert stage(code, veil=veil) == [[True, True], [False, True], [False, True]]
    assert stage(code, veil=[])[0] == [False, False]


def test_the_model_counts_the_heads_that_agree_with_the_selected_one(stage, trace):
    code = """(state) => {
      state.depth = MODEL;
      return [...Array(state.part().rows).keys()].map((row) => {
        state.chooseRow(row);
        return [state.agreeing().agreeing, findingOf(state)];
      });
    }"""
    best = as_sent(trace.attention["cross"]).reshape(16, *trace.attention["cross"].shape[2:])
    best = best.argmax(axis=-1)
    own = FOCUS["layer"] * 4 + FOCUS["head"]
    for row, (tiles, said) in enumerate(stage(code)):
        assert tiles == np.flatnonzero(best[:, row] == best[own, row]).tolist()
        share = percent(trace.attention["cross"][2, 2, row, best[own, row]])
        counted = "cross 3.3" if len(tiles) == 1 else f"{len(tiles)} of 16 cross heads"
        counted = "all 16 cross heads" if len(tiles) == 16 else counted
        assert counted in texts(said) and share in texts(said)
        assert trace.src.tokens[best[own, row]] in texts(said)


SIDES = "source", "target"


def beyond(boxes, size):
    """Which of them, each with x, y, width and height, lie outside of a picture."""
    x, y, w, h = boxes.T
    return (boxes[:, :2] < -0.01).any(1) | (x + w > size[0] + 0.01) | (y + h > size[1] + 0.01)


def met(boxes):
    """Pairs of boxes that lie one over the other."""
    x, y, w, h = boxes.T
    apart = (x[:, None] >= (x + w) - 0.01) | ((x + w)[:, None] <= x + 0.01)
    apart |= (y[:, None] >= (y + h) - 0.01) | ((y + h)[:, None] <= y + 0.01)
    return np.argwhere(~(apart | np.eye(len(boxes), dtype=bool)))


PLACED = """({ parts, towers, told, order, W, H, isNarrow }) => {
  const width = (text, px) => text.length * px * 0.5;
  const camera = { W, H, s: 14, m: 17, isNarrow, colours: {}, width };
  const state = { run: { parts }, look: { towers }, told, order, tile: parts[0] };
  const { tiles } = order < 0 ? floorsPlace(state, camera) : headsPlace(state, camera);
  return tiles.map(({ where, box }) => [where, box]);
}"""


@pytest.mark.parametrize("order", [-1, 0, 1, 2])  # -1: the model
@pytest.mark.parametrize("size", [(1216, 526, False), (1824, 810, False), (358, 480, True)])
@pytest.mark.parametrize("kinds", [[(4, 4)] * 3, [(12, 12)], [(24, 16)], [(1, 1)], [(6, 8)] * 3])
def test_every_head_stands_once_in_every_order_and_over_no_other(node, order, size, kinds):
    random, parts, heads = np.random.default_rng(0), [], []
    for kind, (layers, count) in zip(("encoder", "decoder", "cross"), kinds, strict=False):
        sides = {"encoder": SIDES[:1] * 2, "decoder": SIDES[1:] * 2}.get(kind, SIDES[::-1])
        numbers = [*range(1, layers + 1)]
        parts.append({"kind": kind, "name": kind, "query": sides[0], "key": sides[1],
                      "layers": layers, "heads": count, "numbers": numbers})  # fmt: skip
        places = np.ndindex(layers, count)
        heads += [{"kind": kind, "layer": layer, "head": head} for layer, head in places]
    habits = [str(random.choice(["align", "near", ""])) for _ in heads]
    of_heads = [
        one | {"habit": habit, "caption": "aligns 76%", "missed": False}
        for one, habit in zip(heads, habits, strict=True)
    ]
    groups = [[habit, habit or "others"] for habit in dict.fromkeys(habits)]
    effects = {p["kind"]: random.normal(size=(p["layers"], p["heads"])).tolist() for p in parts}
    told = {"habit": {"heads": of_heads, "groups": groups}, "effect": {"effects": effects}}
    towers = []
    for side in SIDES:
        if own := [p for p in parts if p["query"] == side]:
            layer = [*(part["kind"] for part in own), "feed_forward"]
            towers.append({"side": side, "start": "", "end": "", "layers": [layer] * kinds[0][0]})
    given = dict(parts=parts, towers=towers, told=told, order=order)
    given |= dict(zip(("W", "H", "isNarrow"), size, strict=True))
    found = node.scope(*FILES)(PLACED, given)
    assert sorted(map(str, (where for where, _ in found))) == sorted(map(str, heads))
    boxes = np.array([[box[name] for name in "xywh"] for _, box in found])
    assert (boxes[:, 2:] > 1).all() and not beyond(boxes, size).any() and not met(boxes).size


def unscaled(model, site):
    """Scores that nothing divides by √d_head."""
    scores = attention_at(model, site).scores
    return scores.register_forward_hook(lambda _, inputs, out: out * inputs[0].shape[-1] ** 0.5)


FRAMED = """(state) => {
  CAMERA
  const frames = [], box = (...frame) => frames.push(frame.slice(0, 2)), hatch = () => "";
  const camera = { ...cameraOf([1216, 526, false, 14, 17, 25], []), box, hatch };
  camera.images = { has: () => true, get: () => null };
  for (const [z, view] of [[0, [0, 0, 1]], [0, [0, 1, 0.25]], [0, [0, 1, 1]], [1, [1, 1, 1]]])
    drawModel(state, camera, z, view, { kind: "encoder", layer: 1, head: 2 });
  const places = [floorsPlace, headsPlace].map((place) => place(state, camera).tiles);
  return [frames, ...places.map((tiles) => tiles.map((tile) => tile.box))];
}"""


def test_frames_stand_around_heads_in_the_view_of_maps_and_on_the_way_from_another(stage, trace):
    packed = pack_trace(trace, Reading(), answers_of(trace, load("en-fr").outputs))
    frames, floors, heads = stage(FRAMED.replace("CAMERA", CAMERA), packed=packed)
    own, pointed, there = floors[42], floors[6], heads[42]  # the 11th of cross, the 7th of all
    assert frames == [[own, 1], [pointed, 0.5], [own, 0.75], [pointed, 0.375], [there, 1]]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_browsers_arithmetic_is_the_models(node, preset):
    tokenizer = tiny_tokenizer()
    model = random_model(preset, vocab_size=len(tokenizer))
    run = run_of(model, *map(tokenizer.encode, ("The dog sees a cat.", "Ein Hund sieht.")))
    sites = {site.kind: site for site in model.sites()}.values()
    for site, is_scaled in itertools.product(sites, (True, False)):
        with nullcontext() if is_scaled else unscaled(model, site):
            steps = head_steps(model, run, site, site.n_heads - 1)
        given = {"scores": steps.scores.ravel().tolist(), "values": steps.v.ravel().tolist()}
        given |= {"mask": steps.mask.astype(int).ravel().tolist(), "isScaled": is_scaled}
        given |= {"count": steps.mask.shape[1], "width": steps.v.shape[1]}
        for row, mask in enumerate(steps.mask):
            found = node.scope(*FILES)(ROW, given | {"row": row})
            assert sorted(found["allowed"]) == np.flatnonzero(mask).tolist()
            if np.abs(np.array(found["weights"]) - steps.weights[row]).max() > 1e-3:
                assert not mask.any()  # FilledSoftmax spreads it evenly
                continue
            assert np.allclose(found["weights"], steps.weights[row], atol=1e-5)
            assert np.allclose(found["output"], steps.head_output[row], atol=1e-4)
            total = np.exp(steps.scaled[row][mask].astype(float)).sum()
            assert found["logSum"] == pytest.approx(math.log(total), abs=1e-4)


def test_what_is_said_of_a_row_are_its_own_numbers(stage, trace):
    steps, vectors = steps_of(trace)
    code = """(state) => {
      const vectors = VECTORS;
      for (const each of Object.values(vectors)) each.data = Float32Array.from(each.data);
      Object.assign(state, { vectors, depth: ROW });
      return [...Array(state.part().rows).keys()].map((row) => {
        state.chooseRow(row);
        return [0, 1, 2, 3].map((stop) => findingOf(Object.assign(state, { stop })));
      });
    }""".replace("VECTORS", json.dumps(vectors))
    said = [[texts(parts) for parts in row] for row in stage(code)]
    keys = trace.src.tokens
    for row, (scores, scaled, weights, output) in enumerate(said):
        best = int(steps.scores[row].argmax())
        share = partial(percent, steps.weights[row, best])
        digits = int(0.985 < steps.weights[row, best] < 0.9995)
        number = f"{steps.scores[row, best]:.1f}".replace("-", "−")
        assert scores.endswith(f"fits the key {keys[best]} best: q · k is {number}.")
        assert f"{keys[best]} has {steps.scaled[row, best]:.2f}".replace("-", "−") in scaled
        assert f"{keys[best]} gets {share(digits)}" in weights
        assert output.startswith(f"The output is {share(digits)} of the value of {keys[best]}")


def test_a_keys_effect_is_its_part_of_what_the_head_adds(stage, trace):
    model, (_, vectors) = load("en-fr"), steps_of(trace)
    ids, _ = trace.most_probable(1)
    carried = [
        model.carried(model.run(LINE), row, int(best), Term("head", "cross", 2, 2))
        for row, best in enumerate(ids[:, 0])
    ]
    given = [vectors, *({"values": sent(one.values[None])} for one in carried)]
    code = """(state) => {
      const [vectors, ...told] = GIVEN;
      for (const each of Object.values(vectors)) each.data = Float32Array.from(each.data);
      Object.assign(state, { vectors, depth: ROW, stop: MIX });
      return told.map((found, row) => {
        state.chooseRow(row);
        state.told[JSON.stringify(state.question())] = found;
        return [findingOf(state), effectsOf(state)];
      });
    }""".replace("GIVEN", json.dumps(given))
    packed = pack_trace(trace, Reading(), answers_of(trace, model.outputs))
    for one, (said, effects) in zip(carried, stage(code, packed), strict=True):
        size = np.abs(one.values).sum()
        assert np.allclose(effects, one.values / size, atol=1e-6)
        best, key = int(one.weights.argmax()), int(np.abs(one.values).argmax())
        effect = abs(effects[best])
        written = percent(effect) if effect >= 0.005 else "<1%"
        assert texts(said).startswith(f"{trace.src.tokens[best]} has ")
        assert key != best or effects[best] < 0 or f"and {written} of the effect on" in texts(said)
        assert key == best or f"; {trace.src.tokens[key]} has " in texts(said)


# A camera that notes what is written, and where, in `texts`.
CAMERA = """const cameraOf = ([W, H, isNarrow, s, m, l], texts) => {
  const colours = { done: "#00f", lost: "#f00", ink: "#000", selected: "#f60" };
  const width = (text, px = s) => text.length * px * 0.5, none = () => "";
  const text = (text, x, y, { px = s, align = "left", most } = {}) => {
    const wide = Math.min(most ?? Infinity, width(text, px));
    const left = x - { left: 0, center: wide / 2, right: wide }[align];
    if (isTilted) texts.push({ text, px, x: 0, y: 0, w: 0, h: 0 });
    else texts.push({ text, px, x: left, y: y - px * 0.4, w: wide, h: px * 0.8 });
  };
  let isTilted = false;
  const ways = { rotate: () => (isTilted = true), restore: () => (isTilted = false) };
  const cx = new Proxy({}, { get: (_, way) => ways[way] ?? (() => {}), set: () => true });
  const size = { W, H, s, m, l, isNarrow };
  return { ...size, colours, width, text, fill: none, box: none, colour: none, dotted: none, cx };
};"""
# Draws the numbers of every fifth cell, and tells what was written, and where.
NUMBERS = """(state) => {
  CAMERA
  const { vectors, compared, size } = GIVEN, said = [];
  for (const each of Object.values({ ...vectors, ...compared }))
    each.data = Float32Array.from(each.data);
  Object.assign(state, { vectors, depth: NUMBER, ink: "rgb(0, 0, 0)" });
  state.told[JSON.stringify(state.vectorsOf())] = compared;
  const { rows, columns } = state.part();
  for (let at = 0; at < rows * columns; at += 5) {
    state.chooseRow(Math.floor(at / columns));
    state.key = at % columns;
    const texts = [];
    drawNumber(state, cameraOf(size, texts), 1, state.number, null);
    const { sum, raw, said: share } = wayOf(state);
    said.push({ sum, raw, share, texts, finding: findingOf(state) });
  }
  return said;
}""".replace("CAMERA", CAMERA)
SIZES = [
    (1216, 526, False, 14, 17, 25),
    (1824, 810, False, 17, 20, 32),
    (1216, 456, False, 19, 22, 32),
    (358, 540, True, 14, 16, 22),
]


def expect_to_be_read(texts, size):
    """In letters that are large enough, on the picture, and none over another."""
    boxes = np.array([[box[name] for name in "xywh"] for box in texts])
    assert min(box["px"] for box in texts) >= 13
    out, over = beyond(boxes, size), met(boxes)
    assert not out.any(), str([texts[at] for at in np.flatnonzero(out)])
    assert not over.size, str([texts[at] for at in over[0]])


@pytest.mark.parametrize("order", ["order", "largest"])
@pytest.mark.parametrize("size", SIZES)
def test_products_add_up_to_the_score_and_nothing_covers_another(stage, trace, order, size):
    steps, vectors = steps_of(trace)
    compared = dict(zip("qk", map(sent, steps.compared), strict=True))
    given = {"vectors": vectors, "compared": compared, "size": size}
    found = stage(
        NUMBERS.replace("GIVEN", json.dumps(given)), where={"number": order}, differences=COLOURS
    )
    cells = steps.scores.ravel()[::5], steps.weights.ravel()[::5]
    for one, score, weight in zip(found, *cells, strict=True):
        assert one["sum"] == pytest.approx(score, rel=1e-5, abs=1e-5)
        assert one["raw"] == pytest.approx(score) and one["share"] != "0%"
        assert one["share"] == percent(weight, int(0.985 < weight < 0.9995))
        assert f" is {score:.1f}".replace("-", "−") in texts(one["finding"])
        expect_to_be_read(one["texts"], size)


ADDS = """(state) => {
  CAMERA
  const { found, size, row } = GIVEN, texts = [];
  state.chooseRow(row);
  Object.assign(state, { depth: ROW, stop: WORD });
  state.told[JSON.stringify(state.addsOf())] = found;
  if (found) drawAdds(state, cameraOf(size, texts), 1, null);
  return [state.stops.length, state.isAdding, texts, findingOf(state)];
}""".replace("CAMERA", CAMERA)


def adds(model, trace, row):
    """What the server answers."""
    best, share = (some[row, 0] for some in trace.most_probable(1))
    found = model.decomposition(trace.run, row, int(best))
    terms = [
        {"name": term_name(term), "value": value, "layer": term.layer,
         "head": term.what == "head" and {"kind": term.kind, "layer": 0, "head": term.head}}
        for term, value in zip(found.terms, found.values.tolist(), strict=True)
    ]  # fmt: skip
    told = {"terms": terms, "logit": found.logit, "probability": float(share)}
    return found, told | {"count": trace.logits.shape[-1]}


@pytest.mark.parametrize("name", ["en-fr", "english", "reverse"])
@pytest.mark.parametrize("size", SIZES)
def test_the_parts_of_a_logit_are_said_and_written_as_they_are(stage, name, size):
    model = load(name)
    trace = model.trace("a b c d" if name == "reverse" else LINE)
    row, kind = 2, [*trace.kinds][-1]
    packed = pack_trace(trace, Reading(), answers_of(trace, model.outputs))
    found, told = adds(model, trace, row)
    code = ADDS.replace("GIVEN", json.dumps({"found": told, "size": size, "row": row}))
    focus = {"kind": kind, "layer": 0, "head": 1}
    stops, is_adding, texts_of, said = stage(code, packed=packed, focus=focus)
    assert (stops, is_adding) == (5, True)
    expect_to_be_read(texts_of, size)
    written, names = [one["text"] for one in texts_of], [*map(term_name, found.terms)]
    share = percent(told["probability"])
    assert {f"{found.logit:.3f}".replace("-", "−"), share} <= {*written}
    largest, own = int(found.values.argmax()), names.index(f"{kind} 1.2")
    for at in (largest, own):
        number = f"{found.values[at]:+.2f}".replace("-", "−")
        assert names[at] in written and number in [one.strip() for one in written]
    assert f" is {found.logit:.1f}, a sum of {len(names)} parts. " in texts(said)
    most, this = (f"{found.values[at]:.1f}".replace("-", "−") for at in (largest, own))
    others = f"{names[largest]} adds the most: {most}"
    alone = f"{names[own]}, this head, adds the most: {this}."
    for terms, end in (
        (told["terms"], f"{others}; this head, {names[own]}, {this}."),
        ([term for term in told["terms"] if term["name"] != names[own]], f"{others}."),
        ([told["terms"][own]], alone if found.values[own] > 0 else "None of them adds to it."),
    ):
        given = {"found": told | {"terms": terms}, "size": size, "row": row}
        code = ADDS.replace("GIVEN", json.dumps(given))
        assert texts(stage(code, packed=packed, focus=focus)[3]).endswith(f" parts. {end}")
    veil = [vars(Veil("decoding", "", 0, 0, 0))]
    for hidden in ({"veil": veil}, {"lacks": True}):
        assert stage(code, packed=packed, focus=focus, **hidden)[:2] == [4, False]


def test_a_class_has_no_word_to_lead_to(stage):
    model = load("reviews")
    trace = model.trace("A fine film.")
    packed = pack_trace(trace, Reading(), answers_of(trace, model.outputs))
    code = ADDS.replace("GIVEN", json.dumps({"found": None, "size": SIZES[0], "row": 0}))
    assert stage(code, packed=packed)[:2] == [4, False]


# Draws the places around a word, and tells what was written where, and the pixels of each block.
PLACED_WORDS = """(state) => {
  CAMERA
  const { found, size, side, index, isInput } = GIVEN, texts = [], sheets = [];
  for (const each of Object.values(found)) each.data = Float32Array.from(each.data);
  const pen = { createImageData: (w, h) => ({ data: new Uint8ClampedArray(4 * w * h) }),
    putImageData: ({ data }) => sheets.push([...data]) };
  globalThis.document = { createElement: () => ({ getContext: () => pen }) };
  Object.assign(state, { depth: MODEL, whole: isInput ? INPUT : PLACES });
  state.chooseSpot(side, index);
  state.told[JSON.stringify(state.placesOf())] = found;
  const camera = { ...cameraOf(size, texts), images: new Map() };
  const [lost, done, black] = ["#ff0000", "#0000ff", "#000000"];
  Object.assign(camera.colours, { lost, done, paper: black, line: black });
  drawPlaces(state, camera, found, 1, isInput);
  const { blocks, table } = wavesOf(found);
  state.dimension = blocks[0][1][1];
  const told = [numberSaid(state), findingOf(state), placesScale(state)];
  const clicked = placeAt(state, camera, found, size[0] * 0.3, size[1] * 0.6);
  return { texts, sheets, blocks, told, alike: alikeOf(table, index), clicked };
}""".replace("CAMERA", CAMERA)
SINES, COSINES = [*range(0, 128, 2)], [*range(1, 128, 2)]


def blue(table, columns, most):
    """The blue of each cell, less its red."""
    return np.rint(255 * np.clip(table[:, columns] / most, -1, 1)).ravel()


@pytest.mark.parametrize(
    ("name", "text", "index", "size"),
    [
        ("en-fr", LINE, 2, SIZES[0]),
        ("en-fr", LINE, 2, SIZES[3]),
        ("reviews", LINE, 1, SIZES[2]),
        ("english", "a dog runs . " * 60, 200, SIZES[1]),
        ("english", "a dog runs . " * 60, 255, SIZES[3]),
    ],
)
def test_places_are_drawn_and_said_as_the_table_has_them(stage, name, text, index, size):
    model = load(name)
    trace = model.trace(text)
    packed = pack_trace(trace, Reading(), answers_of(trace, model.outputs))
    side = next(iter(trace.sides.values()))
    parts = {"table": trace.table, "token": trace.token, "embedded": trace.embedded}
    parts = {part: rows[side.name][:256] for part, rows in parts.items()}
    given = {"found": {part: sent(rows) for part, rows in parts.items()}, "size": size}
    given |= {"side": side.title, "index": index}
    kind = next(iter(trace.kinds))
    focus = {"kind": kind, "layer": 0, "head": 0}
    for is_input in (False, True):
        code = PLACED_WORDS.replace("GIVEN", json.dumps(given | {"isInput": is_input}))
        found = stage(code, packed=packed, focus=focus)
        expect_to_be_read(found["texts"], size)
        table = parts["table"].astype(float)
        waves = [["sine", SINES], ["cosine", COSINES]]
        assert found["blocks"] == ([["number", [*range(64)]]] if name == "reviews" else waves)
        drawn = parts["embedded"].astype(float) if is_input else table
        most = np.abs(drawn).max()
        if is_input:  # a few numbers of a word are far larger than the rest
            most = min(most, 3 * np.sqrt((drawn**2).mean()))
        for sheet, (_, columns) in zip(found["sheets"], found["blocks"], strict=True):
            red, _, blues, _ = np.array(sheet).reshape(-1, 4).T.astype(int)
            assert np.abs(blues - red - blue(drawn, columns, most)).max() <= 1.5
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        assert np.allclose(found["alike"], unit @ unit[index], atol=1e-5)
        number, said, _ = found["told"]
        at = found["blocks"][0][1][1]
        wanted = [f"{rows[index, at]:.3f}".replace("-", "−") for rows in parts.values()]
        assert re.findall(r"−?\d+\.\d{3}", number) == wanted and f"number {at + 1}:" in number
        others = np.delete(unit @ unit[index], index)
        share = percent(others.max()).replace("-", "−")
        lengths = [f"{np.linalg.norm(parts[p][index]):.1f}" for p in ("token", "table")]
        end = f"of lengths {' and '.join(lengths)}." if is_input else f": {share}."
        assert texts(said).endswith(end) and f"place {index + 1}" in texts(said)
        assert found["clicked"]["index"] in range(len(table))
        assert found["clicked"]["dimension"] in found["blocks"][0][1]


WRITE = """(state) => {
  CAMERA
  const { found, size, keys } = GIVEN, texts = [];
  state.told[JSON.stringify(state.writeOf())] = found;
  for (const [dx, dy] of keys) stepWritten(state, dx, dy);
  drawWrite(state, cameraOf(size, texts), 1);
  return [texts, writeFinding(state), spokenWrite(state), branchOf(state), state.place().write];
}""".replace("CAMERA", CAMERA)
DECODED = {"width": 5, "temperature": 1.0, "seed": 0, "beginning": ""}


@pytest.fixture
def written(stage):
    """What a view of what a model writes shows, after some arrow keys."""

    def evaluate(how, found, size, *keys):
        given = {"found": found, "size": size, "keys": keys}
        code = WRITE.replace("GIVEN", json.dumps(given))
        return stage(code, where={"write": how}, write=DECODED)

    return evaluate


def writing_of(name, line):
    view = catalog.view_of(name, "final", "cpu")
    shown = Shown(view, view.checkpoint.run(line))
    one, beams = writing.one_by_one(shown, ""), writing.beams(shown, 5)
    return shown, {"one": one, "beams": beams, "sampled": writing.sampled(shown, 1.0, 0)}


@pytest.fixture(scope="module", params=["short", "long", "english"])
def all_written(request):
    line = {"long": " ".join([LINE] * 11), "english": "The girl in the"}.get(request.param, FLOUR)
    return writing_of("english" if request.param == "english" else "en-fr", line)


FLOUR = "Several girls are playing with flour."


@pytest.mark.parametrize("size", SIZES)
def test_what_is_written_can_be_read(written, all_written, size):
    _, views = all_written
    for keys in ([], [(1, 0)] * 3, [(0, 1)]):
        for how, found in views.items():
            texts_of, said, _, _, place = written(how, found, size, *keys)
            assert place == how and "undefined" not in texts(said)
            expect_to_be_read(texts_of, size)


def test_words_beams_and_draws_are_said_as_they_are(written):
    shown, views = writing_of("en-fr", FLOUR)
    checkpoint = shown.view.checkpoint
    greedy, beam = (checkpoint.generate(FLOUR, how) for how in (Greedy(), Beam(5)))
    for step, token in enumerate(greedy.path):
        _, said, spoken, branch, _ = written("one", views["one"], SIZES[0], *[(1, 0)] * step)
        share = greedy.probabilities[step, token]
        assert f" ({percent(share)})" in texts(said) and branch is None
        two = [(1, 0)] * step + [(0, 1)]
        _, _, spoken, branch, _ = written("one", views["one"], SIZES[0], *two)
        second = greedy.probabilities[step].argsort()[::-1][1]
        assert branch == "-".join(map(str, (*greedy.path[:step], second)))
        other = greedy.probabilities[step, second]
        assert spoken.endswith(percent(other, int(other < 0.095)))
    _, said, *_ = written("beams", views["beams"], SIZES[0])
    both = [percent(math.exp(one.score), 1) for one in (beam, greedy)]
    assert texts(said) == (
        f"Five beams find avec de la farine ({both[0]}); greedy writes avec des flocons"
        f" ({both[1]})."
    )
    drawn = [checkpoint.generate(FLOUR, Sampling(1.0, seed=seed)).text for seed in range(8)]
    lines = [" ".join(word for word, _ in line["words"]) for line in views["sampled"]["text"]]
    assert lines == drawn and views["sampled"]["same"] == drawn.count(greedy.text)


@pytest.mark.parametrize("score", [-1000.0, -9.3, -0.1, 0.0, 5.71, 11.5, 11.6, 52.3, 2302.585, 9e4])
def test_powers_are_written_as_they_are(node, score):
    text = node.scope(FILES[0])("(score) => power(score)", score)
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    mantissa, _, exponent = text.replace(",", "").partition("·10")
    log = math.log(float(mantissa)) + int((exponent or "⁰").translate(digits)) * math.log(10)
    assert log == pytest.approx(score, abs=0.4 if float(mantissa) < 0.001 else 0.06)


def test_the_head_that_links_two_chosen_words_most_is_named(stage, trace):
    code = """(state) => {
      state.choose({ kind: "encoder", layer: 1, head: 3 });
      state.chooseRow(6);
      [state.key, state.depth] = [5, HEADS];
      return [findingOf(state), state.linking().place];
    }"""
    said, place = stage(code)
    weights = trace.attention["encoder"][:, :, 6, 5]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    assert place == {"kind": "encoder", "layer": layer, "head": head}
    assert f"encoder {layer + 1}.{head + 1}" in texts(said)
    assert texts(said).endswith(f"{percent(weights.max())}.")


def test_a_habit_is_said_of_the_head_that_has_it(stage):
    code = """(state) => {
      const heads = state.run.parts.flatMap(({ kind }) => [...Array(16).keys()].map((tile) =>
        ({ kind, layer: tile >> 2, head: tile % 4, finding: [[`${kind}${tile}`, ""]] })));
      Object.assign(state, { depth: HEADS, order: 1, told: { habit: { heads } } });
      const said = (head) => (state.choose(head), findingOf(state)[0]);
      return heads.map((head) => said(head) === head.finding[0][0]);
    }"""
    assert stage(code) == [True] * 48


def test_a_kind_without_heads_that_align_shows_its_matrix(stage):
    code = """(state) => {
      const before = state.view;
      state.choose({ kind: "encoder", layer: 0, head: 0 });
      return [before, state.view];
    }"""
    best = {"kind": "cross", "heads": [[2, 2]]}
    assert stage(code, where={"view": "best"}, best=best) == [2, 0]


def test_two_chosen_words_of_the_first_text_may_change_places(stage):
    code = """(state) => [["source", 5], ["source", null], ["target", 5]].map(([side, second]) => {
      Object.assign(state, { token: { side, index: 1 }, second });
      return state.acts().filter(({ key }) => key === "s").map(({ name, act }) => [name, act]);
    })"""
    act = {"what": "exchange", "index": 1, "beside": 5}
    assert stage(code, cards={"swap": False}) == [[["Swap with “red”", act]], [], []]
    assert stage(code, cards={"swap": True}) == [[], [], []]


def test_the_head_that_links_two_chosen_words_is_said(stage, trace):
    code = """(state) => {
      Object.assign(state, { token: { side: "source", index: 5 }, second: 6 });
      return [state.linkingWords(), findingOf(state)];
    }"""
    heads, words = trace.attention["encoder"], trace.src.tokens
    both = {(i, j): heads[:, :, i, j] for i, j in ((5, 6), (6, 5))}
    query, key = max(both, key=lambda pair: both[pair].max())
    layer, head = np.unravel_index(both[query, key].argmax(), heads.shape[:2])
    found, said = stage(code)
    assert found["place"] == {"kind": "encoder", "layer": layer, "head": head}
    assert found["weight"] == pytest.approx(both[query, key].max(), abs=0.01)
    assert texts(said[1:]).endswith(
        f"from {words[query]} it attends to {words[key]} with {percent(found['weight'])}."
    )


BESIDE = """(state) => {
  CAMERA
  const { found, size, key } = GIVEN, texts = [], camera = cameraOf(size, texts);
  for (const one of Object.values(found))
    one.data = Float32Array.from(one.data, (value) => value ?? NaN);
  Object.assign(state, { view: PYTORCH, ink: "rgb(0, 0, 0)", key });
  state.told[JSON.stringify(state.question())] = found;
  drawPytorch(state, camera, 1);
  const { boxes, ...place } = pytorchPlace(state, camera);
  const { dots, radius: r } = lineOf(state, camera, state.beside, place);
  const cells = boxes.map(({ x, y, w, h }) => rowAt(state, camera, x + 0.99 * w, y + 0.99 * h));
  const hit = dots.filter(({ tile, x, y }) => tile && dotAt(state, camera, x, y)?.y === y).length;
  const round = dots.map(({ x, y }) => ({ x: x - r, y: y - r, w: 2 * r, h: 2 * r, px: 13 }));
  return [texts, findingOf(state), round, hit, cells];
}""".replace("CAMERA", CAMERA)
TWIN = {"twin": True, "differences": theme.DIFFERENCES}


@pytest.fixture(scope="module")
def beside():
    """A head in PyTorch, with how far all are apart, as the browser has it."""
    view = catalog.view_of("en-fr", "final", "cpu")
    found = beside_reference(Shown(view, view.checkpoint.run(LINE)), Place("cross", 2, 2))
    return {name: sent(array) for name, array in found.items()}


FOUND = {  # largest difference of the selected head → what is said
    4.8e-7: "no head differs by more than 0.0000005.",
    9.6e-8: "no head differs by more than 0.0000001.",
    0.0: "no head differs at all.",
    2.13e-3: "They differ: cross 3.3 by 0.0021, where rounding explains at most 0.00001.",
    0.9: "They differ: cross 3.3 by 0.9,",
    None: "a softmax over nothing is undefined",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("planted", FOUND)
def test_how_far_heads_are_from_pytorch_is_said_and_can_be_read(stage, beside, size, planted):
    differences = np.minimum(beside["differences"]["data"], planted or 0).tolist()
    differences[[*np.ndindex(3, 4, 4)].index((2, 2, 2))] = planted
    found = beside | {"differences": beside["differences"] | {"data": differences}}
    code = BESIDE.replace("GIVEN", json.dumps({"found": found, "size": size, "key": -1}))
    written, said, dots, hit, cells = stage(code, **TWIN)
    for dot in dots:  # none stands on a word
        expect_to_be_read([*written, dot], size)
    assert len(dots) == 49 - (planted is None) and hit and FOUND[planted] in texts(said)
    shape = [beside["weights"][name] - 1 for name in ("rows", "columns")]
    assert cells == [dict(zip(("row", "key"), shape, strict=True))] * 3


def test_a_cell_has_its_weight_in_both(stage, beside):
    code = BESIDE.replace("GIVEN", json.dumps({"found": beside, "size": SIZES[0], "key": 1}))
    weight = beside["weights"]["data"][beside["weights"]["columns"] + 1]
    said = texts(stage(code, cell={"query": 1, "key": -1}, **TWIN)[1])
    assert re.search(rf"gives has {weight:.6f}\d(, here and| here, 0.\d{{7}}) in PyTorch.$", said)


def test_pytorch_is_offered_where_it_has_the_model_and_nothing_is_covered(stage):
    code = "(state) => [state.views.at(-1), state.view, state.place().view]"
    veil = [vars(Veil("row", "cross", 2, 2, 8))]
    for twin, there, asked in ((True, 1, 1), (False, 0, 1), (None, 0, 0)):
        assert (stage(code, twin=twin)[0] == "pytorch") == there
        assert (stage(code, where={"view": "pytorch"}, twin=twin)[1] == 3) == asked
    assert stage(code, where={"view": "pytorch"}, twin=True, veil=veil) == ["lines", 0, None]


def test_the_mask_is_switched_where_the_selected_head_has_one(stage, trace):
    code = """(state) => ["decoder", "encoder", "cross"].map((kind) => {
      state.choose({ kind, layer: 0, head: 0 });
      return state.masks.mask;
    })"""
    data = pack_trace(trace, Reading(), answers_of(trace, load("en-fr").outputs))
    names = "let the decoder see later tokens", "mask later tokens again"
    for is_off, mask in enumerate(names):
        assert stage(code, data, cards={"causal": bool(is_off)}) == [mask, "", ""]


LOST = """async () => {
  const { mock: { timers } } = process.getBuiltinModule("node:test"), told = [];
  const engine = new StreamlitEngine(), dataset = { testConnectionState: "CONNECTED" };
  timers.enable({ apis: ["setTimeout", "Date"] });
  [performance.now, globalThis.document] = [Date.now, { querySelector: () => ({ dataset }) }];
  const note = (...what) => told.push([Math.round(Date.now() / 100) * 100, ...what]);
  const until = async (end) => {
    while (Date.now() < end) await timers.tick(20);
  };
  engine.ask("lost").catch(({ message }) => note(message));
  for (const [at, session] of [[100, "one"], [200, "one"], [300, "another"]]) {
    await until(at);
    engine.answersBy((asked) => note(at, ...asked), session);
  }
  await until(2500);
  dataset.testScriptState = "notRunning";
  await until(9000);
  timers.reset();
  delete performance.now;
  return told;
}"""


def test_what_is_lost_is_asked_anew_of_a_server_that_has_time_but_not_for_ever(node):
    """Of another server at once."""
    asked = [[100, 100, "lost"], [300, 300, "lost"], [4000, 300, "lost"], [6000, 300, "lost"]]
    assert node.scope(*FILES)(LOST) == [*asked, [8000, "no answer"]]
