"""What all components share: cells painted with their numbers, the ink on a colour, names of heads,
and who owns what there is once on a page."""

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.text.part_names import short_name
from headlight.model.probing.changes import Scope

INKS = {"black": "#000", "white": "#fff"}
PAINT = """({ cells, values, numbers }) => {
  const drawn = [];
  const context = {
    fillRect(...box) { drawn.push(["box", this.fillStyle, ...box]); },
    fillText(...at) { drawn.push(["text", this.fillStyle, ...at]); },
  };
  const read = values.map((value) => value ?? NaN);
  drawCells(context, cells, read, (value) => [Math.round(255 * value), 0, 0], numbers);
  return drawn;
}"""


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("size", [3, 20])
def test_each_number_is_a_cell_in_its_place_and_what_is_none_stays_blank(node, numbers, size):
    values = np.random.default_rng(0).random((3, 4))
    values[1, 2] = np.nan
    cells = dict(left=30, top=10, across=size, down=size, rows=3, columns=4)
    flat = [None if np.isnan(value) else value for value in values.ravel().tolist()]
    drawn = node.scope("app/components/shared/heatmap.js")(
        PAINT, {"cells": cells, "values": flat, "numbers": numbers}
    )
    kept = [(at, value) for at, value in np.ndenumerate(values) if not np.isnan(value)]
    gap = size > 8
    boxes = [rest for kind, *rest in drawn if kind == "box"]
    assert boxes == [
        [f"rgb({np.floor(255 * value + 0.5):.0f},0,0)", 30 + size * column, 10 + size * row]
        + 2 * [max(size - gap, 1)]
        for (row, column), value in kept
    ]
    texts = [rest for kind, *rest in drawn if kind == "text"]
    ink = {value: INKS[str(theme.ink_on(np.rint([255 * value, 0, 0])))] for _, value in kept}
    assert texts == numbers * [
        [ink[value], f"{value:.2f}", 30 + size * (column + 0.5), 10 + size * (row + 0.5)]
        for (row, column), value in kept
    ]


def luminance(colour) -> float:
    """Of WCAG 2."""
    shares = np.array(colour) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_ink_on_a_colour_can_be_read(node):
    """On each of the 256 colours of our scales, in the browser and in files."""
    colours = node.scope("app/components/shared/colours.js")
    scales = [theme.WEIGHTS["viridis"], *theme.INKED.values(), *theme.DIFFERENCES.values()]
    shades = np.concatenate([theme.ramp(scale, 256) for scale in scales])
    inks = colours("(shades) => shades.map(inkOn)", shades.tolist())
    assert inks == [INKS[ink] for ink in theme.ink_on(shades).tolist()]
    for shade, ink in zip(shades, inks, strict=True):
        light = luminance(shade)
        assert ((light + 0.05) / 0.05 if ink == "#000" else 1.05 / (light + 0.05)) >= 4.5, shade
    for ink, scheme in (("rgb(20, 20, 20)", "light"), ("rgb(230, 228, 220)", "dark")):
        for scale in (theme.DIFFERENCES, theme.INKED):
            stops = colours("([scale, ink]) => stopsOf(scale, ink)", [scale, ink])
            assert stops == scale[scheme] == theme.stops_of(scale, scheme)
    viridis = theme.WEIGHTS["viridis"]
    assert colours("(scale) => stopsOf(scale, 'rgb(0, 0, 0)')", viridis) == viridis


@pytest.mark.parametrize("scope", [("cross",), ("decoder", 1), ("encoder_feed_forward", 0, 3)])
def test_a_head_is_named_as_in_python(node, scope):
    kind, layer, head = (*scope, None, None)[:3]
    found = node.scope("app/components/shared/names.js")(
        "(head) => shortName(head)", {"kind": kind, "layer": layer, "head": head}
    )
    assert found == short_name(Scope(*scope))


OWNED = [  # who enters and leaves, and who is told that it owns what there is once
    (
        """
          const leave = [first, second, third].map((place, i) => enter(place, () => told.push(i)));
          leave[1](); // its data is overtaken
          const leaveSecond = enter(second, () => told.push("second again"));
          third.isConnected = false;
          leave[2]();
          second.isConnected = false;
          leaveSecond();
          first.isConnected = false;
          leave[0]();""",
        [0, 1, 2, "second again", "second again", 0, "nobody"],
    ),
    (
        """
          enter(first, () => told.push("new"));
          enter(first, () => told.push("old"))(); // overtaken before it began
          const leave = enter(second, () => told.push("old, elsewhere")); // drawn anew, then gone
          second.isConnected = false;
          leave();""",
        ["new", "old", "new", "old, elsewhere", "new"],
    ),
]


@pytest.mark.parametrize(("happens", "told"), OWNED)
def test_who_owns_what_there_is_once_is_the_newest_place_that_stands(node, happens, told):
    code = """() => {
      const told = [], [first, second, third] = [1, 2, 3].map(() => ({ isConnected: true }));
      const enter = places(() => told.push("nobody"));
      HAPPENS
      return told;
    }"""
    scope = node.scope("app/components/shared/places.js")
    assert scope(code.replace("HAPPENS", happens)) == told


def test_a_place_has_one_picture_which_draws_what_is_new(node):
    told = node.scope("app/components/shared/mounted.js")(
        """() => {
          const told = [];
          class Kind {
            constructor(root) { told.push(`made in ${root.name}`); }
            show({ now }) { told.push(`shows ${now}`); this.tell("at", now); }
            again({ now }) { told.push(`again ${now}`); }
          }
          const mount = mounted(Kind), [first, second] = [{ name: "first" }, { name: "second" }];
          const to = (who) => (name, value) => told.push(`${who} hears ${name} ${value}`);
          mount({ data: { now: 1 }, parentElement: first, setTriggerValue: to("old") });
          mount({ data: { now: 1 }, parentElement: first, setTriggerValue: to("new") });
          mount({ data: { now: 2 }, parentElement: first, setTriggerValue: to("new") });
          mount({ data: null, parentElement: first });
          mount({ data: { now: 2 }, parentElement: second, setTriggerValue: to("other") });
          return told;
        }"""
    )
    assert told == [
        "made in first", "shows 1", "old hears at 1", "again 1", "shows 2", "new hears at 2",
        "made in second", "shows 2", "other hears at 2",
    ]  # fmt: skip


KEYS = [  # what is pressed, where, with Shift or not, and what it means
    ("h", "KeyH", False, "h"), ("H", "KeyH", False, "h"),  # Caps Lock
    ("H", "KeyH", True, "H"), ("h", "KeyH", True, "H"),  # both
    ("р", "KeyH", False, "h"), ("h", "KeyJ", False, "h"),  # a Russian layout, Dvorak
    ("?", "KeyM", True, "M"), ("+", "BracketRight", False, "+"), ("Enter", "Enter", True, "Enter"),
]  # fmt: skip


def test_a_letter_is_heard_with_caps_lock_and_on_other_layouts(node):
    events = [dict(zip(("key", "code", "shiftKey"), each, strict=False)) for each in KEYS]
    found = node.scope("app/components/shared/keys.js")("(all) => all.map(keyOf)", events)
    assert found == [means for *_, means in KEYS]
