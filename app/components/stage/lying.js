// Depth 3 on a phone: for each key a line with its name, its bar and its numbers.

import { one, power, share, two } from "./arithmetic.js";
import { between, clamp, ease, lerp, written } from "./camera.js";
import { lyingPlace, matrixPlace } from "./layout.js";
import { drawValue, drawVector, effectsOf, effectText, LITTLE, seenRow, SMALL } from "./row.js";

/** As drawBars of row.js. */
export function drawLying(state, camera, u, near) {
  const { W, s, m, cx, colours } = camera, place = lyingPlace(state, camera), { columns, names, x, top, each, ends } = place;
  const found = seenRow(state, columns), boxes = {};
  if (!found) return;
  const { numbers, weights, stop, isOwn } = found, chosen = state.column(), matrix = matrixPlace(state, camera), row = state.row();
  const known = numbers ? columns.filter((_, i) => weights[i] !== null).map((at) => numbers.raw[at]) : [0];
  const [most, least] = [Math.max(1, ...known), Math.min(0, ...known)];
  const [low, high] = [Math.floor(stop), Math.ceil(stop)], way = ease(stop - low), mix = clamp(stop - 2);
  const effects = mix === 1 ? effectsOf(state) : null, right = [W - m * 3.6, W - m * 3.6, numbers ? ends[0] - m * 3 : W - m * 3.2, W - m * 6.2];
  const reach = (at, i, which) => { // [from, to] in px, at a stop
    const wide = right[which] - x, zero = which < 2 ? x - (least * wide) / (most - least) : x;
    const length = [() => (numbers.raw[at] * wide) / (most - least), () => (numbers.scaled[at] * wide) / (most - least), () => weights[i] * wide, () => wide][which]();
    return [zero, zero + length];
  };
  const near2 = near * clamp(1 - Math.abs(stop - 2)), write = (text, end, y, look) => camera.text(text, end, y, { px: m, align: "right", colour: colours.soft, ...look });
  columns.forEach((at, i) => {
    const weight = weights[i], middle = top + (i + 0.5) * each, thick = Math.min(each * 0.62, m * 1.3), isOn = at === chosen;
    const look = { weight: isOn ? 650 : 400, colour: isOn ? colours.ink : weight < LITTLE ? colours.pale : colours.soft, alpha: near };
    camera.text(names[at], x - 10, middle, { ...look, px: m, align: "right", most: x - 10 });
    if (weight === null) {
      cx.fillStyle = camera.hatch();
      return cx.fillRect(x, middle - thick / 2, lerp(right[low], right[high], way) - x, thick);
    }
    const [a, b] = [reach(at, i, low), reach(at, i, high)], [from, to] = [lerp(a[0], b[0], way), lerp(a[1], b[1], way)];
    const cell = { x: matrix.x + at * matrix.each[0] + 1, y: matrix.y + row * matrix.each[1] + 1, w: matrix.each[0] - 2, h: matrix.each[1] - 2 };
    const bar = { x: Math.min(from, to), y: middle - thick / 2, w: Math.max(2, Math.abs(to - from)), h: thick };
    boxes[at] = bar;
    if (mix < 1) camera.fill(between(cell, bar, u), weight < LITTLE && u > 0.5 ? colours.flat : camera.colour(weight), 1 - mix);
    if (mix > 0) drawValue(state, camera, at, weight, bar, mix);
    if (state.key === at && u === 1) camera.box(bar, 0.9);
    const text = !numbers || stop > 1.5 ? (isOwn ? written(weight) : share(weight)) : stop < 0.5 ? one(numbers.raw[at]) : two(numbers.scaled[at]);
    write(text, lerp(W, ends[1], mix), middle, look);
    if (effects) write(effectText(effects[at]), W, middle, { ...look, colour: Math.abs(effects[at]) < SMALL ? colours.pale : effects[at] > 0 ? colours.done : colours.lost });
    if (near2 <= 0 || !numbers) return;
    write(two(numbers.scaled[at]), ends[0], middle, { ...look, alpha: near2 });
    write(power(numbers.scaled[at]), ends[1], middle, { ...look, alpha: near2 });
  });
  if (!numbers) return boxes;
  const title = { px: s, colour: colours.pale }, above = top - s * 0.8, below = top + (columns.length + 0.5) * each;
  write(stop < 1.5 ? "score" : "weight", lerp(W, ends[1], mix), above, { ...title, alpha: near });
  if (effects) write("effect", W, above, { ...title, alpha: near });
  [["score", ends[0]], ["e^score", ends[1]]].forEach(([name, end]) => write(name, end, above, { ...title, alpha: near2 }));
  const others = names.length - columns.length;
  write(others ? `with ${others} others` : "sum", x - 10, below, { px: s, alpha: near2 });
  write(power(numbers.logSum), ends[1], below, { alpha: near2, weight: 650 });
  write("100%", W, below, { alpha: near2, weight: 650 });
  write("output", x - 10, below, { alpha: near * mix, weight: 650, colour: colours.ink });
  if (mix > 0) drawVector(state, camera, numbers.output, { x, y: below - m * 0.65, w: right[3] - x, h: m * 1.3 }, near * mix);
  return boxes;
}

/** The column whose line is at a height; null beside them. */
export function lineAt(state, camera, y) {
  const { columns, top, each } = lyingPlace(state, camera), at = Math.floor((y - top) / each);
  return columns[at] ?? null;
}
