// Depth 3: the scores of one row as bars, and what becomes of them. It needs the scores and values of the
// head, which come when they are asked for; until then the bars are weights.

import { ramp, stopsOf } from "../shared/colours.js";
import { minus, percent } from "../shared/numbers.js";
import { one, power, rowOf, share, two } from "./arithmetic.js";
import { between, clamp, ease, lerp, written } from "./camera.js";
import { matrixPlace, rowPlace } from "./layout.js";

export const LITTLE = 0.03; // a weight whose bar has no colour
export const SMALL = 0.005; // an effect that is hardly there
const APART = 1e-3; // of the model's weights from the softmax of its scores
const GAP = 6; // px between two numbers
export const SPREAD = 3; // of a value, from which on its colour is that of the largest

/** The row in numbers: {raw, scaled, weights, output, …} of arithmetic.js; null until they have come. */
export function numbersOf(state, isScaled = state.isScaled) {
  const { vectors } = state;
  if (!vectors || vectors.isMissing) return null;
  const { scores, mask, v, weights } = vectors, row = state.row() * state.sides()[0].every, { columns } = scores;
  const head = { keys: { length: columns }, width: v.columns, values: v.data, scores: scores.data, mask: mask.data };
  const numbers = rowOf(head, row, isScaled), own = [...weights.data.subarray(row * columns, (row + 1) * columns)];
  const isOwn = isScaled && own.every((weight, at) => Math.abs(weight - numbers.weights[at]) < APART);
  return { ...numbers, own, isOwn };
}

/** What of the selected row is seen: its `numbers`, the `weights` of some columns, null where they are masked,
 * which are the model's own or not, and the stop; null where nothing is. */
export function seenRow(state, columns) {
  const part = state.part(), tile = state.tileOf(part), row = state.row(), numbers = numbersOf(state);
  if (state.isCovered(part, tile, row) || (!numbers && !state.isWeighed)) return null;
  const isOwn = state.isScaled || !numbers; // else the weights are none of the model's
  const weights = columns.map((at) => (state.isMasked(part, tile, row, at) ? null : isOwn ? state.weight(part, tile, row, at) : numbers.weights[at]));
  return { numbers, weights, isOwn, stop: numbers ? Math.min(state.stopShown ?? state.stop, 3) : 2 };
}

/** What each key brings, as a share of all that they bring, for and against the word that the row writes; null
 * until it has come, and where there is none. */
export function effectsOf(state) {
  const question = state.carriesOf(), values = (question && state.answered(question))?.values.data;
  const all = values?.reduce((sum, value) => sum + Math.abs(value), 0);
  return all ? Array.from(values, (value) => value / all) : null;
}

/** How high each bar is at a stop: [from, to] in px. */
function heights(stop, { columns, numbers, weights, zero, foot, tall, scale }) {
  return columns.map((at, i) => {
    if (stop === 0) return [zero, zero - numbers.raw[at] * scale];
    if (stop === 1) return [zero, zero - numbers.scaled[at] * scale];
    if (stop === 2) return [foot, foot - (weights[i] ?? 0) * tall];
    return [foot, foot - tall];
  });
}

/** `u`: how far the cells of the row have become bars; `near`: how visible their numbers are. Gives the bar
 * of each column. */
export function drawBars(state, camera, u, near) {
  const { H, s, m, l, cx, colours } = camera, place = rowPlace(state, camera), { columns } = place;
  const matrix = matrixPlace(state, camera), part = state.part(), tile = state.tileOf(part), row = state.row(), chosen = state.column();
  const found = seenRow(state, columns), boxes = {};
  if (!found) return;
  const { numbers, weights, isOwn, stop } = found;
  const top = m * 1.9, foot = H - place.below - (numbers && state.stop >= 2 ? m * 2.9 : s * 0.2), tall = foot - top;
  const known = numbers ? columns.filter((_, i) => weights[i] !== null).map((at) => numbers.raw[at]) : [0];
  const [most, least] = [Math.max(1, ...known), Math.min(0, ...known)], scale = (H - place.below - m * 1.4 - top) / (most - least);
  const given = { columns, numbers, weights, zero: top + most * scale, foot, tall, scale };
  const [low, high] = [Math.floor(stop), Math.ceil(stop)], way = ease(stop - low), mix = clamp(stop - 2);
  const [a, b] = [heights(low, given), heights(high, given)];
  const ghosts = !numbers ? null : stop === 1 ? heights(0, given) : stop === 2 && !state.isScaled
    ? heights(2, { ...given, weights: columns.map((at) => state.weight(part, tile, row, at)) }) : null;
  camera.fill({ x: place.x, y: lerp(low < 2 ? given.zero : foot, high < 2 ? given.zero : foot, way) - 0.75, w: place.w, h: 1.5 }, colours.line, near, 0);
  columns.forEach((at, i) => {
    const [from, to] = [lerp(a[i][0], b[i][0], way), lerp(a[i][1], b[i][1], way)], weight = weights[i];
    const cell = { x: matrix.x + at * matrix.each[0] + 1, y: matrix.y + row * matrix.each[1] + 1, w: matrix.each[0] - 2, h: matrix.each[1] - 2 };
    const thick = lerp(0.64, 0.5, mix), bar = { x: place.x + place.each * (i + 0.5 - thick / 2), y: Math.min(from, to),
      w: place.each * thick, h: Math.max(2, Math.abs(to - from)) };
    const seen = between(cell, bar, u);
    boxes[at] = bar;
    if (weight === null) {
      cx.fillStyle = camera.hatch();
      return cx.fillRect(seen.x, lerp(cell.y, top, u), seen.w, lerp(cell.h, tall, u));
    }
    if (mix < 1) camera.fill(seen, weight < LITTLE && u > 0.5 ? colours.flat : camera.colour(weight), 1 - mix);
    if (mix > 0) drawValue(state, camera, at, weight, { ...bar, y: top, h: tall }, mix);
    if (ghosts) camera.dotted({ ...bar, y: Math.min(...ghosts[i]), h: Math.abs(ghosts[i][1] - ghosts[i][0]) }, near * 0.55);
    const text = !numbers || stop > 1.5 ? (isOwn ? written(weight) : share(weight)) : stop < 0.5 ? one(numbers.raw[at]) : two(numbers.scaled[at]);
    const isUp = to <= from, y = stop > 2.5 ? top - m * 0.8 : isUp ? to - m * 0.75 : to + m * 0.8, isOn = at === chosen;
    if (!isOn && place.each < camera.width(text, m)) return;
    camera.text(text, bar.x + bar.w / 2, y, { align: "center", px: isOn ? l * 0.86 : m, weight: isOn ? 650 : 400,
      colour: isOn ? colours.ink : weight < LITTLE ? colours.pale : colours.soft, alpha: near });
    if (state.key === at && u === 1) camera.box(bar, 0.9);
  });
  const powers = numbers ? near * clamp(1 - Math.abs(stop - 2)) : 0, room = place.each - 6;
  if (powers > 0) drawPowers(state, camera, { place, columns, numbers, weights, foot, room, alpha: powers });
  if (mix === 1) drawEffects(state, camera, { place, top, foot, alpha: near });
  drawSide(state, camera, { ...given, place, top, near, mix, chosen, stop });
  return boxes;
}

/** Below the bars the way to a weight: each score, e to its power, and at the right their sum, by which
 * softmax divides. */
function drawPowers(state, camera, { place, columns, numbers, weights, foot, room, alpha }) {
  const { s, m, colours } = camera, [above, below] = [foot + m * 0.95, foot + m * 2.2], look = { colour: colours.soft, alpha, px: m };
  const chosen = state.column(), sum = power(numbers.logSum), { W } = camera;
  /** [said, from, to, y]: a text in the middle of a column, within the stage. */
  const stand = (at, said, y, weight = 400) => {
    const half = camera.width(said, m, weight) / 2, middle = Math.max(half, Math.min(W - half, place.x + place.each * (columns.indexOf(at) + 0.5)));
    return [said, middle - half, middle + half, y, weight];
  };
  const draw = ([said, from, , y, weight]) => camera.text(said, from, y, { ...look, weight });
  const [score, text] = [(at) => two(numbers.scaled[at]), (at) => power(numbers.scaled[at])], own = stand(chosen, `${text(chosen)} ÷ ${sum}`, below, 650);
  columns.forEach((at, i) => {
    const isOn = at === chosen, other = stand(at, text(at), below);
    if (weights[i] === null || (!isOn && other[2] - other[1] > room)) return;
    draw(stand(at, score(at), above, isOn ? 650 : 400));
    if (isOn) draw(own);
    else if (other[2] < own[1] - GAP || other[1] > own[2] + GAP) draw(other); // the chosen one's way is wider than its column
  });
  camera.text("score", place.x - s * 0.9, above, { ...look, align: "right" });
  camera.text("e^score", place.x - s * 0.9, below, { ...look, align: "right" });
  camera.text(`sum ${sum}`, place.x + place.w + s * 1.2, below, look);
}

/** Below the mix what each key brings to the word that the row writes. */
function drawEffects(state, camera, { place, top, foot, alpha }) {
  const effects = effectsOf(state), { s, m, colours } = camera, y = foot + m * 0.95;
  if (!effects) return;
  [["weight", top - m * 0.8], ["effect", y]].forEach(([name, at]) =>
    camera.text(name, place.x - s * 0.9, at, { px: m, align: "right", colour: colours.soft, alpha }));
  place.columns.forEach((at, i) => {
    const effect = effects[at], isOn = at === state.column(), middle = place.x + place.each * (i + 0.5), text = effectText(effect);
    const colour = Math.abs(effect) < SMALL ? colours.pale : effect > 0 ? colours.done : colours.lost;
    if (isOn || camera.width(text, m) < place.each - 6) camera.text(text, middle, y, { px: m, align: "center", weight: isOn ? 650 : 400, colour, alpha });
    const wide = (place.each - 8) * Math.abs(effect);
    if (Math.abs(effect) >= SMALL) camera.fill({ x: middle - wide / 2, y: y + m * 0.75, w: wide, h: m * 0.45 }, colour, alpha);
  });
}

export const effectText = (effect) => (Math.abs(effect) < SMALL ? "<1%" : minus(percent(effect)));

/** The value of a key, number by number, as visible as its weight. */
export function drawValue(state, camera, at, weight, box, mix) {
  const { columns, data } = state.vectors.v;
  drawVector(state, camera, data.subarray(at * columns, (at + 1) * columns), box, mix * (0.06 + 0.94 * weight));
}

/** Numbers as colours, from the top of a box, or from its left where it is wide. */
export function drawVector(state, camera, numbers, { x, y, w, h }, alpha) {
  const colour = ramp(stopsOf(state.look.differences, state.ink)), isWide = w > h, each = (isWide ? w : h) / numbers.length, part = Math.max(1, each - 1);
  numbers.forEach((value, i) => camera.fill(isWide ? { x: x + i * each, y, w: part, h } : { x, y: y + i * each, w, h: part },
    `rgb(${colour(0.5 + value / (2 * SPREAD)).map(Math.round)})`, alpha, 0));
}

/** At the right: what the stop is, the weights as one stack, or their mix. */
function drawSide(state, camera, { columns, weights, numbers, place, top, foot, tall, near, mix, chosen, stop }) {
  const { W, s, m, l, colours } = camera, left = place.x + place.w + s * 1.2, wide = W - left;
  if (!numbers) return;
  if (stop < 1.5) {
    const root = `÷ √${state.vectors.v.columns || "d"}`;
    const lines = stop < 0.5 ? ["q · k", "how well the", "query fits", "each key"]
      : state.isScaled ? [root, "keeps scores", "in a usable", "range"] : [`no ${root}`, "scores stay", "as large as", "they are"];
    lines.forEach((line, i) => camera.text(line, left, top + m * 0.3 + i * s * 1.45 + (i ? 4 : 0),
      { px: i ? s : m, weight: i ? 400 : 650, colour: i ? colours.soft : colours.ink, alpha: near }));
    return;
  }
  const names = state.keyNames();
  if (mix < 1) {
    let y = foot;
    const parts = columns.map((at, i) => [weights[i] ?? 0, names[at], at]).toSorted((p, q) => q[0] - p[0]);
    const rest = 1 - parts.reduce((sum, [weight]) => sum + weight, 0);
    if (columns.length < names.length) parts.push([rest, `${names.length - columns.length} others`, -1]);
    for (const [weight, name, at] of parts) {
      const high = weight * tall;
      camera.fill({ x: left, y: y - high, w: wide * 0.42, h: Math.max(0, high - 2) }, camera.colour(weight), near * (1 - mix));
      if (high > m) camera.text(name, left + wide * 0.42 + 8, y - high / 2, { px: m, weight: at === chosen ? 650 : 400, alpha: near * (1 - mix), most: wide * 0.58 - 8 });
      y -= high;
    }
    camera.text("100%", left, top - m * 0.75, { px: m, weight: 650, alpha: near * (1 - mix) });
  }
  if (mix <= 0 || !numbers.output.length) return;
  drawVector(state, camera, numbers.output, { x: left + wide * 0.28, y: top, w: wide * 0.42, h: tall }, near * mix);
  camera.text("=", left + wide * 0.1, (top + foot) / 2, { px: l, colour: colours.soft, alpha: near * mix });
  camera.text("output", left + wide * 0.49, foot + m * 1.1, { align: "center", px: m, weight: 650, alpha: near * mix });
}

/** The column whose bar is at a point; null beside them. */
export function barAt(state, camera, x, y) {
  const place = rowPlace(state, camera), at = Math.floor((x - place.x) / place.each);
  return y >= 0 && at >= 0 && at < place.columns.length ? place.columns[at] : null;
}
