// One head beside that of torch.nn.Transformer with the same weights, and the difference; below them a line
// with how far all heads are apart.

import { ramp, stopsOf } from "../shared/colours.js";
import { raised } from "./arithmetic.js";
import { matrixPlace } from "./layout.js";
import { drawRowNames } from "./matrix.js";

const LOGITS = "logits, relative";
export const WITHIN = 1e-5; // by which rounding may part two weights; two logits by so much of the largest
const FIRST = -8, LAST = -4; // powers of ten at the first tick after 0, and at the last one, at least
const SMALL = 9; // px, under which cells have no gaps between them
const full = (power) => (10 ** power).toFixed(Math.max(0, -power));

/** All heads, each with its largest difference. */
export const headsOf = ({ run }, { differences: { data } }) => run.parts
  .flatMap(({ kind, layers, heads }) => Array.from({ length: layers * heads }, (_, at) => ({ kind, layer: Math.floor(at / heads), head: at % heads })))
  .map((tile, at) => ({ tile, value: data[at] }));

/** The boxes of the three matrices; and the line, from `from` to `to` at `base`, the dots above it up to `top`. */
export function pytorchPlace(state, camera) {
  const { W, H, s, m, isNarrow } = camera, { x } = matrixPlace(state, camera), gap = s * 1.8, title = m * 1.6, below = m * 6.8;
  const w = isNarrow ? W - x : (W - x - 2 * gap) / 3, each = isNarrow ? (H - below) / 3 : H - below, h = each - title - (isNarrow ? 4 : 0);
  const boxes = [0, 1, 2].map((at) => (isNarrow ? { x, y: at * each + title, w, h } : { x: x + at * (w + gap), y: title, w, h }));
  const from = isNarrow ? s : x, to = W - (isNarrow ? s * 1.4 : camera.width(full(LAST), s) / 2);
  return { boxes, from, to, base: H - m * 1.7, top: H - below + m * 0.9 };
}

/** The line of differences: `at(value)`, px; the powers of ten from FIRST to `last`; `dots`, one above the other where they are
 * near, each of a head, or the last one of the logits. */
export function lineOf(state, camera, found, { from, to, base, top }) {
  const all = [...headsOf(state, found), { tile: null, value: found.logits.data[0] }].filter(({ value }) => value >= 0); // no NaN
  const last = Math.max(LAST, ...all.map(({ value }) => (value ? Math.ceil(Math.log10(value)) : LAST))), each = (to - from) / (last - FIRST + 1);
  const at = (value) => from + each * (value < 10 ** FIRST ? value / 10 ** FIRST : 1 + Math.log10(value) - FIRST);
  const radius = camera.isNarrow ? 3.5 : camera.s * 0.29, wide = 2 * radius + 1, counts = new Map(), room = base - top - 2 * radius;
  const placed = all.map(({ value }) => {
    const column = Math.round((at(value) - from) / wide), nth = counts.get(column) ?? 0;
    counts.set(column, nth + 1);
    return [from + column * wide, nth];
  });
  const high = Math.min(wide, ...[...counts].map(([column, count]) => (column ? room - camera.m * 2.1 : room) / Math.max(1, count - 1))); // names stand above the others
  return { at, last, radius, dots: all.map(({ tile, value }, dot) => ({ tile, value, x: placed[dot][0], y: base - radius - 1 - placed[dot][1] * high })) };
}

/** One matrix in a box; `colour(cell)` is null where nothing stands. */
function drawGrid(camera, { x, y, w, h }, { rows, columns }, alpha, colour) {
  const { cx } = camera, [wide, high] = [w / columns, h / rows], gap = Math.min(wide, high) < SMALL ? Math.min(wide, high) * 0.12 : 2;
  cx.save();
  cx.globalAlpha = alpha;
  for (let cell = 0; cell < rows * columns; cell++) {
    cx.fillStyle = colour(cell) ?? camera.hatch();
    cx.beginPath();
    cx.roundRect(x + (cell % columns) * wide + gap / 2, y + Math.floor(cell / columns) * high + gap / 2, wide - gap, high - gap, Math.min(3, high / 5));
    cx.fill();
  }
  cx.restore();
}

export function drawPytorch(state, camera, alpha) {
  const { m, s, colours, isNarrow } = camera, part = state.part(), tile = state.tileOf(part), found = state.beside ?? {}, place = pytorchPlace(state, camera);
  const difference = ramp(stopsOf(state.look.differences, state.ink)), row = state.row(), column = state.column(), word = state.keyNames()[column], { columns } = part;
  const ours = (cell) => [part, tile, Math.floor(cell / columns), cell % columns], { weights, apart } = found;
  const colour = [
    (cell) => (state.isMasked(...ours(cell)) ? null : camera.colour(state.weight(...ours(cell)))),
    (cell) => (weights.data[cell] > 0 ? camera.colour(weights.data[cell]) : null),
    (cell) => (weights.data[cell] > 0 ? `rgb(${difference(0.5 + apart.data[cell] / WITHIN / 2).map(Math.round)})` : null)];
  ["Headlight", "PyTorch", `difference, full colour at ${full(-5)}`].forEach((title, at) => {
    const box = place.boxes[at], high = box.h / part.rows, name = state.rowNames()[row];
    const bold = { px: isNarrow ? s : m, weight: 650, alpha }, half = camera.width(word, bold.px, 650) / 2, ends = box.x + camera.width(title, bold.px, 650) + s;
    camera.text(title, box.x, box.y - m * 0.8, { ...bold, most: box.w });
    if (at < 2) camera.text(word, Math.max(ends + half, Math.min(box.x + box.w - half, box.x + (column + 0.5) * (box.w / columns))), box.y - m * 0.8, { ...bold, align: "center" });
    if (!at || weights) drawGrid(camera, box, part, alpha, colour[at]);
    if (isNarrow) camera.text(name, box.x - s * 0.5, box.y + high * (row + 0.5), { align: "right", weight: 650, colour: colours.selected, alpha, most: box.x - s * 0.5 });
    camera.box({ ...box, y: box.y + row * high, h: high }, alpha, isNarrow ? 1 : -0.5, isNarrow ? 1.5 : 2);
    if (state.key >= 0) camera.box({ x: box.x + (state.key * box.w) / columns, y: box.y + row * high, w: box.w / columns, h: high }, alpha, -0.5, 3);
  });
  if (!isNarrow) drawRowNames(state, camera, place.boxes[0], alpha);
  if (found.differences) drawLine(state, camera, found, place, alpha);
}

function drawLine(state, camera, found, place, alpha) {
  const { cx, s, m, W, colours, isNarrow } = camera, { at, last, radius, dots } = lineOf(state, camera, found, place), { base, top, from, to } = place;
  const edge = at(WITHIN), soft = { colour: colours.soft, alpha }, own = JSON.stringify(state.tile), count = isNarrow ? `${dots.length - 1} heads` : `largest difference of each of the ${dots.length - 1} heads`;
  camera.fill({ x: edge, y: top, w: to - edge, h: base - top }, colours.lost, 0.1 * alpha);
  camera.text("not the same", Math.min(edge + 8, W - camera.width("not the same", s, 650)), top + m * 0.7, { weight: 650, colour: colours.lost, alpha });
  camera.text(count, from + radius + s, top + m * 0.7, soft);
  camera.fill({ x: from, y: base, w: to - from, h: 1.5 }, colours.line, alpha, 0);
  for (let power = FIRST - 1; power <= last; power++)
    camera.text(power < FIRST ? "0" : isNarrow ? `10${raised(power)}` : full(power), from + ((to - from) * (power - FIRST + 1)) / (last - FIRST + 1), base + m, { ...soft, align: "center" });
  const isOwnTile = ({ tile }) => JSON.stringify(tile) === own;
  for (const dot of dots.toSorted((a, b) => isOwnTile(a) - isOwnTile(b))) {
    const isOwn = isOwnTile(dot);
    cx.save();
    cx.globalAlpha = alpha;
    cx.beginPath();
    cx.arc(dot.x, dot.y, radius * (isOwn ? 1.35 : 1), 0, 2 * Math.PI);
    cx.fillStyle = isOwn ? colours.frame : !dot.tile ? colours.paper : dot.value > WITHIN ? colours.lost : colours.done;
    cx.fill();
    [cx.strokeStyle, cx.lineWidth] = dot.tile ? [colours.paper, 0.75] : [colours.ink, 2];
    cx.stroke();
    cx.restore();
    if (dot.tile) continue;
    const half = camera.width(LOGITS, s) / 2, above = Math.min(...dots.filter(({ x }) => Math.abs(x - dot.x) <= half + radius).map(({ y }) => y));
    camera.text(LOGITS, Math.max(from + radius + half, dot.x), above - radius - s * 0.7, { align: "center", alpha });
  }
}

/** The cell at a point, of any of the three: {row, key}, key −1 on the name of a row; null elsewhere. */
export function rowAt(state, camera, x, y) {
  const { boxes } = pytorchPlace(state, camera), part = state.part(), box = boxes.find((one) => x < one.x + one.w && y >= one.y && y < one.y + one.h);
  return box ? { row: Math.floor(((y - box.y) / box.h) * part.rows), key: Math.max(-1, Math.floor(((x - box.x) / box.w) * part.columns)) } : null;
}

/** The head whose dot is at a point; null elsewhere. */
export function dotAt(state, camera, x, y) {
  if (!state.beside?.differences) return null;
  const { dots, radius } = lineOf(state, camera, state.beside, pytorchPlace(state, camera)), away = (dot) => Math.hypot(dot.x - x, dot.y - y);
  return dots.filter((dot) => dot.tile && away(dot) < 2 * radius).toSorted((a, b) => away(a) - away(b))[0] ?? null;
}
