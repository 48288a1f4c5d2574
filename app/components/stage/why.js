// Why a query attends to a key: what both go back to, each pair a part of the score, as a grid of words ×
// words; at its edges what each side brings, and the weight without it.

import { inkOn, ramp, stopsOf } from "../shared/colours.js";
import { one, signed } from "./arithmetic.js";
import { lerp, written } from "./camera.js";

const LEAST = 13; // px of a letter
const PALE = 0.45; // of the colours, where no reason leads
const LITTLE = 0.15; // of the largest part, from which on a cell has a number

/** Where the grid stands: its box, `each` [width, height] of a cell, and at its right the columns of the
 * `sums` and of the weights `without`. */
export function whyPlace(camera, { rows, columns }) {
  const { W, H, s, m, isNarrow } = camera, name = isNarrow ? s * 4.3 : Math.min(0.14 * W, Math.max(...rows.map((row) => camera.width(row.name, m, 650)))) + s;
  const x = isNarrow ? name : name + m * 1.6, sums = isNarrow ? s * 2.9 : s * 6, without = isNarrow ? s * 3 : s * 8.5;
  const y = isNarrow ? m * 2.2 : m * 3, w = W - x - sums - without, h = H - y - m * 3.6;
  return { x, y, w, h, most: name - s * 0.6, sums: x + w + s * 0.7, without: W, each: [w / columns.length, h / rows.length] };
}

export function drawWhy(state, camera, alpha) {
  const found = state.answered(state.whyOf());
  if (!found?.pairs || alpha <= 0) return;
  const { W, s, m, cx, colours, isNarrow } = camera, { rows, columns, pairs, leading, weight, margin } = found, place = whyPlace(camera, found), [wide, high] = place.each;
  const colour = ramp(stopsOf(state.look.differences, state.ink)), most = Math.max(...pairs.flat().map(Math.abs)), paper = colour(0.5);
  const px = isNarrow ? LEAST : m, soft = { px, colour: colours.soft, alpha }, gap = isNarrow ? 1.5 : 3;
  const fell = (without) => (isNarrow ? written(without) : `${written(weight)} → ${written(without)}`);
  const ofWithout = (without) => ({ px, alpha, weight: without < weight - 0.1 ? 650 : 400, colour: without < weight - 0.1 ? colours.lost : colours.soft });
  const bright = (value) => (value >= 0 ? colours.done : colours.lost);
  columns.forEach((column, at) => {
    const x = place.x + wide * (at + 0.5), isOn = leading?.[1] === at;
    camera.text(column.name, x, place.y - m * 0.85, { ...soft, align: "center", weight: isOn ? 650 : 400, colour: isOn ? colours.ink : colours.soft, most: wide - 4 });
    camera.text(signed(column.sum), x, place.y + place.h + m * 0.9, { px, align: "center", weight: 650, colour: bright(column.sum), alpha });
    if (column.without !== null) camera.text(fell(column.without), x, place.y + place.h + m * 2.4, { ...ofWithout(column.without), align: "center", most: wide - 4 });
  });
  rows.forEach((row, nth) => {
    const y = place.y + high * (nth + 0.5), isOn = leading?.[0] === nth;
    const look = { px, alpha, align: "right", weight: isOn ? 650 : 400, most: place.most, colour: row.side === state.part().query && row.side !== state.part().key ? colours.selected : isOn ? colours.ink : colours.soft };
    camera.text(row.name, place.x - s * 0.6, y, look);
    camera.text(signed(row.sum), place.sums, y, { px, weight: 650, colour: bright(row.sum), alpha });
    if (row.without !== null) camera.text(fell(row.without), place.without, y, { ...ofWithout(row.without), align: "right" });
    columns.forEach((_, at) => {
      const value = pairs[nth][at], full = colour(0.5 + value / (2 * most)), rgb = full.map((part, i) => Math.round(leading ? part : lerp(paper[i], part, PALE)));
      const cell = { x: place.x + at * wide + gap / 2, y: place.y + nth * high + gap / 2, w: wide - gap, h: high - gap };
      camera.fill(cell, `rgb(${rgb})`, alpha);
      if (Math.abs(value) >= LITTLE * most) camera.text(signed(value), cell.x + cell.w / 2, y + 1, { px, align: "center", weight: isOn && leading[1] === at ? 650 : 400, colour: inkOn(rgb), alpha });
    });
  });
  if (leading) camera.box({ x: place.x + leading[1] * wide, y: place.y + leading[0] * high, w: wide, h: high }, alpha, -0.5, 2.5);
  camera.text(`= ${one(margin)}`, place.sums, place.y + place.h + m * 0.9, { px: isNarrow ? m : m * 1.2, weight: 650, alpha });
  if (isNarrow) return;
  camera.text("the key goes back to", place.x + place.w / 2, m * 0.7, { ...soft, px: s, align: "center" });
  camera.text("weight without it", W, place.y - m * 0.85, { ...soft, px: s, align: "right" });
  camera.text("brings", place.sums, place.y - m * 0.85, { ...soft, px: s });
  camera.text("brings", place.x - s * 0.6, place.y + place.h + m * 0.9, { ...soft, px: s, align: "right" });
  camera.text("without it", place.x - s * 0.6, place.y + place.h + m * 2.4, { ...soft, px: s, align: "right", most: place.x - s * 0.6 });
  cx.save();
  cx.translate(s * 0.6, place.y + place.h / 2);
  cx.rotate(-Math.PI / 2);
  camera.text("the query goes back to", 0, 0, { ...soft, px: s, align: "center" });
  cx.restore();
}
