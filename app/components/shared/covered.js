// The covered pictures of lessons/pictures.json, each drawn for a room of so many pixels: a map, bars
// or lines.

import MASKED from "../../masked.json" with { type: "json" };
import { ramp, stopsOf } from "./colours.js";
import { element } from "./dom.js";
import { hatching } from "./heatmap.js";
import { percent } from "./numbers.js";
import { shape } from "./svg.js";

const TURN = -55; // degrees of the names of columns
const SMALLEST = 12; // px of letters
const LETTER = 0.56; // its width ÷ its height, about

const text = (words, x, y, given = {}) => shape("text", { x, y, ...given }, words);
const longest = (words) => words.reduce((most, word) => Math.max(most, word.length), 0);

/** A rectangle over what one does not know. */
const cover = (x, y, width, height, letter) => [
  shape("rect", { class: "cover", x, y, width, height }),
  text("?", x + width / 2, y + height / 2 + 0.36 * letter,
    { class: "asked", "text-anchor": "middle", "font-size": letter }),
];

/** Cells from their percents; what is masked stays blank, for the hatching behind. */
function map({ rows, columns, cells, covered }, width, height, most, colour) {
  const letter = Math.max(SMALLEST, Math.min(most, height / (cells.length + 5)));
  const isFuture = covered === "future";
  const [down, across] = [cells.length, Math.max(...cells.map((row) => row.length))];
  const left = rows.length ? letter * (LETTER * longest(rows) + 0.6) : 0;
  const isTurned = longest(columns) > 1;
  const top = columns.length ? letter * (isTurned ? LETTER * longest(columns) * 0.82 + 0.9 : 1.4) : 0;
  const right = isTurned ? letter * 1.6 : 0; // the last name leans over the edge
  const wide = Math.min((width - left - right) / across, 2.4 * ((height - top) / down));
  const high = Math.min((height - top) / down, wide);
  const parts = [shape("rect", { class: "masked", x: left, y: top, width: wide * across, height: high * down })];
  cells.forEach((row, i) => row.forEach((share, k) => {
    if (share === null) return;
    parts.push(shape("rect", { x: left + k * wide, y: top + i * high, width: wide, height: high,
      fill: `rgb(${colour(share / 100).map(Math.round)})` }));
  }));
  rows.forEach((word, i) => parts.push(text(word, left - 0.4 * letter, top + (i + 0.5) * high + 0.35 * letter,
    { "text-anchor": "end", class: i === covered ? "asked" : "" })));
  columns.forEach((word, k) => {
    const [x, y] = [left + (k + 0.5) * wide, top - 0.4 * letter];
    parts.push(isTurned ? text(word, 0, 0, { transform: `translate(${x + 0.2 * letter},${y}) rotate(${TURN})` })
      : text(word, x, y, { "text-anchor": "middle" }));
  });
  if (isFuture) {
    const [x, y] = [left + wide * across, top + high * (down - 1)];
    parts.push(shape("path", { class: "around", d: `M${left + wide} ${top + 1}H${x}V${y}Z` }),
      text("?", left + 0.7 * wide * across, top + 0.4 * high * down,
        { class: "asked", "text-anchor": "middle", "font-size": 2.6 * letter }));
  } else if (covered !== undefined) parts.push(...cover(left - 1, top + covered * high - 1, wide * across + 2, high + 2,
    Math.max(0.9 * high, letter)));
  return [[shape("g", { "font-size": letter }, ...parts)], left + wide * across + right, top + high * down];
}

/** Bars from the left, or upright ones without labels; what is covered beside them or the last one. */
function bars({ bars: all, upright, named, covered }, width, height, letter) {
  const parts = [];
  const foot = named ? 1.6 * letter : 0;
  const beside = covered ? 0.36 * width : 0;
  const room = width - beside - (covered ? letter : 0);
  const high = Math.min(height, upright ? 9 * letter : (all.length * 2.6 + 1.6) * letter) - foot;
  const most = Math.max(...all.map(([, share]) => share ?? 0));
  if (upright) {
    const wide = room / all.length;
    all.forEach(([, share], i) => parts.push(shape("rect", { class: "bar", x: i * wide + 1, width: wide - 2,
      y: high - Math.max(2, (share / most) * high), height: Math.max(2, (share / most) * high) })));
  } else {
    const left = letter * (LETTER * longest(all.map(([label]) => label)) + 0.8);
    const right = 3 * letter;
    const each = high / all.length;
    all.forEach(([label, share], i) => {
      const [y, down] = [i * each + 0.17 * each, 0.66 * each];
      const long = room - left - right;
      parts.push(text(label, left - 0.5 * letter, y + down / 2 + 0.35 * letter, { "text-anchor": "end" }));
      if (share === null) return parts.push(...cover(left, y, long, down, Math.min(1.5 * letter, down)));
      const end = (all.length > 2 ? share / most : 0.55) * long;
      parts.push(shape("rect", { class: "bar", x: left, y, width: end, height: down }),
        text(percent(share, share < 0.1 ? 1 : 0), left + end + 0.4 * letter, y + down / 2 + 0.35 * letter));
    });
  }
  const under = { "text-anchor": "middle" };
  if (named) parts.push(text(named, room / 2, high + 1.4 * letter, under));
  if (covered) parts.push(...cover(width - beside, 1, beside - 2, high - 2, 2.2 * letter),
    text(covered, width - beside / 2, high + 1.4 * letter, under));
  return [parts, width, high + foot];
}

/** Source words above, target words below, a line for each link. */
function lines({ source, target, links, covered }, width, height, letter, colour) {
  const high = Math.min(height, 0.55 * width);
  const [top, foot] = [1.5 * letter, high - 1.7 * letter];
  const x = (i, words) => ((i + 0.5) * width) / words.length;
  const place = ([from, to]) => [x(from, source), x(to, target)];
  const fill = `rgb(${colour(0.62).map(Math.round)})`;
  const parts = links.map((link) => {
    const [from, to] = place(link);
    const middle = (top + foot) / 2;
    return shape("path", { class: "line", d: `M${from} ${top}C${from} ${middle} ${to} ${middle} ${to} ${foot}`,
      stroke: fill });
  });
  source.forEach((word, i) => parts.push(text(word, x(i, source), letter, { "text-anchor": "middle" })));
  target.forEach((word, i) => parts.push(text(word, x(i, target), high - 0.4 * letter,
    { "text-anchor": "middle", class: i === covered ? "asked" : "" })));
  const asked = x(covered, target);
  const above = foot - 2.1 * letter;
  parts.push(shape("path", { class: "around dashed", d: `M${asked} ${above + 0.5 * letter}V${foot}` }),
    text("?", asked, above, { class: "asked", "text-anchor": "middle", "font-size": 1.6 * letter }));
  return [parts, width, high];
}

const DRAWS = { map, bars, lines };

/** What is masked, hatched in a colour. */
function hatched(colour) {
  const { spacing } = MASKED;
  const canvas = element("canvas", { width: spacing, height: spacing });
  const context = canvas.getContext("2d");
  context.fillStyle = hatching(colour);
  context.fillRect(0, 0, spacing, spacing);
  return shape("pattern", { id: "hatched", width: spacing, height: spacing, patternUnits: "userSpaceOnUse" },
    shape("image", { href: canvas.toDataURL(), width: spacing, height: spacing }));
}

/** A picture for a room, in the middle of it, with text in `colour`. */
export function drawing(picture, width, height, letter, palette, colour) {
  const [parts, wide, high] = picture
    ? DRAWS[picture.kind](picture, width, height, letter, ramp(stopsOf(palette, colour)))
    : [cover(0, 0, width, height, 3 * letter), width, height];
  return shape("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "font-size": letter,
    "aria-hidden": "true" }, shape("defs", {}, hatched(colour)), ...parts);
}
