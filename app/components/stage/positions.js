// What the places of a text add to its words, place by number, and beside each how alike it is to the selected
// one; or the input of layer 1, and how much of it the place is.

import { ramp } from "../shared/colours.js";
import { minus, percent } from "../shared/numbers.js";
import { one, three } from "./arithmetic.js";
import { lerp } from "./camera.js";
import { SPREAD } from "./row.js";
import { INPUT } from "./state.js";

const CIRCLE = 0.01; // by which sine² + cosine² may miss 1
const TALL = 4; // letters of a row, at most
const GAPS = [5, 9]; // px of a cell, from which on 1 px, and 2, are between two
const LITTLE = 0.03; // a share whose bar has no colour
const EQUAL = 0.005; // of a cosine

const counting = (count, from = 0, by = 1) => Array.from({ length: count }, (_, at) => from + by * at);
const cell = ({ columns, data }, row, column) => data[row * columns + column];
const known = new WeakMap();

/** The `table` of an answer, and its columns in `blocks`: sines and cosines apart, each from the fastest wave to
 * the slowest, or all as they are; of rotary positions the sines and cosines of the angles. */
export function wavesOf(found) {
  if (!known.has(found)) known.set(found, found.angles ? turned(found.angles) : sorted(found.table));
  return known.get(found);
}

function turned({ rows, columns, data }) {
  const both = Float32Array.from({ length: 2 * data.length }, (_, at) => {
    const row = Math.floor(at / (2 * columns)), column = at % (2 * columns), angle = data[row * columns + (column % columns)];
    return column < columns ? Math.sin(angle) : Math.cos(angle);
  });
  const blocks = [["sine", counting(columns)], ["cosine", counting(columns, columns)]];
  return { table: { rows, columns: 2 * columns, data: both }, blocks, isTurned: true };
}

function sorted(table) {
  const { rows, columns } = table, half = Math.ceil(columns / 2), rest = columns - half;
  const isCircle = ([sines, cosines]) => cosines.every((cosine, at) => counting(rows).every((row) =>
    Math.abs(cell(table, row, sines[at]) ** 2 + cell(table, row, cosine) ** 2 - 1) <= CIRCLE));
  const waves = [[counting(half, 0, 2), counting(rest, 1, 2)], [counting(half), counting(rest, half)]].find((both) => rest && isCircle(both));
  return { table, blocks: waves ? [["sine", waves[0]], ["cosine", waves[1]]] : [["number", counting(columns)]] };
}

/** The cosine of each place's row with that of the selected one; NaN where one of them is 0. */
export function alikeOf({ rows, columns, data }, own) {
  const row = (at) => data.subarray(at * columns, (at + 1) * columns), chosen = row(own);
  const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0), length = Math.sqrt(dot(chosen, chosen));
  return counting(rows).map((at) => {
    const other = row(at);
    return Math.min(1, dot(chosen, other) / (length * Math.sqrt(dot(other, other))));
  });
}

/** The lengths of the two vectors that each row of the input of layer 1 is the sum of: [place, word]. */
export const lengthsOf = ({ table, token }) => counting(table.rows).map((row) =>
  [table, token].map(({ columns, data }) => Math.hypot(...data.subarray(row * columns, (row + 1) * columns))));

/** What is drawn: `cells`, their `largest` size, `blocks` of columns, the `bars` of the places, and the selected
 * one, `own`, as rows of the answer, which begins at the place `from`. */
function picture(state, found, isInput) {
  const waves = wavesOf(found), { table, blocks, isTurned } = waves, { index } = state.spot(), { side, from } = state.placesOf(), key = `${index} ${isInput}`;
  if (waves.last?.key === key) return waves.last; // it takes 10 ms at 256 places of 768 numbers
  const cells = isInput ? found.embedded : table, own = Math.min(index - from, table.rows - 1);
  const most = cells.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const mean = Math.sqrt(cells.data.reduce((sum, value) => sum + value * value, 0) / cells.data.length);
  const largest = isInput ? Math.min(most, SPREAD * mean) : most; // some numbers of a word are far larger
  const bars = isInput ? lengthsOf(found).map(([place, word]) => place / (place + word || 1)) : alikeOf(table, own), names = state.run.sides[side].labels.slice(from, from + table.rows);
  return (waves.last = { key, cells, largest, blocks, isTurned, bars, own, from, names, side });
}

const rounded = (value) => minus(percent(value)).replace("−0%", "0%");

/** Where all stands: of each block its box, `x` and `w`, and its columns; rows are `each` high from `y` on; bars
 * begin at `right`, `long` for 1, and `zero` is where they do if some are negative. */
function placesPlace(camera, { blocks, names, bars, from }) {
  const { W, H, s, m, isNarrow } = camera, count = names.length, y = m * 1.7, each = Math.min((H - y) / count, m * TALL);
  const nameWide = Math.min(0.17 * W, Math.max(...names.map((name) => camera.width(name, m, 650))));
  const numberWide = isNarrow ? 0 : camera.width(String(from + count), s) + s, x = numberWide + nameWide + s * (isNarrow ? 0.6 : 0.9);
  const said = camera.width("−100%", isNarrow ? s : m), room = isNarrow ? W * 0.15 : Math.max(W * 0.11, camera.width("alike to place 000 (cosine)", s) - said);
  const right = W - room - said - s * 0.4, gap = s * (isNarrow ? 0.5 : 1), wide = right - x - gap * blocks.length - (isNarrow ? 0 : s * 0.5);
  const all = blocks.reduce((sum, [, columns]) => sum + columns.length, 0), low = Math.min(0, ...bars.filter(Number.isFinite)), long = room / (1 - low);
  let at = x;
  const boxes = blocks.map(([name, columns]) => {
    const box = { name, columns, x: at, w: (wide * columns.length) / all };
    at += box.w + gap;
    return box;
  });
  return { boxes, x, y, each, w: at - gap - x, h: each * count, right, long, zero: right - low * long, names: x - s * (isNarrow ? 0.6 : 0.9), nameWide };
}

/** The colour [red, green, blue] of a number from −1 to 1: red to blue, and 0 is almost paper. */
function signed({ paper, line, lost, done }) {
  const zero = ramp([paper, line])(0.5), [low, high] = [lost, done].map((hex) => ramp([hex])(0));
  return (value) => zero.map((from, at) => lerp(from, (value < 0 ? low : high)[at], Math.abs(value)));
}

/** A block as pixels, one for each number. */
function image(camera, { cells, largest, side, from }, { name, columns }, isInput) {
  const key = `places ${side} ${from} ${name} ${isInput}`;
  if (camera.images.has(key)) return camera.images.get(key);
  const sheet = document.createElement("canvas"), colour = signed(camera.colours), { rows } = cells;
  [sheet.width, sheet.height] = [columns.length, rows];
  const pen = sheet.getContext("2d"), pixels = pen.createImageData(columns.length, rows);
  for (let row = 0; row < rows; row++)
    columns.forEach((column, at) => pixels.data.set([...colour(Math.max(-1, Math.min(1, cell(cells, row, column) / largest))), 255], 4 * (row * columns.length + at)));
  pen.putImageData(pixels, 0, 0);
  camera.images.set(key, sheet);
  return sheet;
}

export function drawPlaces(state, camera, found, alpha, isInput) {
  if (alpha <= 0 || !found || !(found.angles ?? found.table).data.length) return;
  const drawn = picture(state, found, isInput), { cells, own, from, names, bars } = drawn, place = placesPlace(camera, drawn);
  const { cx, colours, s, m, isNarrow } = camera, { y, each, right, zero, long } = place, quiet = { colour: colours.soft, alpha };
  const gap = (size) => (size >= GAPS[1] ? 2 : size >= GAPS[0] ? 1 : 0);
  for (const box of place.boxes) {
    const { x, w, columns } = box, wide = w / columns.length;
    cx.save();
    cx.globalAlpha = alpha;
    cx.imageSmoothingEnabled = wide < 1 || each < 1;
    cx.drawImage(image(camera, drawn, box, isInput), x, y, w, place.h);
    cx.restore();
    for (let at = 1; at < columns.length && gap(wide); at++) camera.fill({ x: x + at * wide - gap(wide) / 2, y, w: gap(wide), h: place.h }, colours.paper, alpha, 0);
    for (let row = 1; row < names.length && gap(each); row++) camera.fill({ x, y: y + row * each - gap(each) / 2, w, h: gap(each) }, colours.paper, alpha, 0);
    camera.text(titleOf(box, isInput, isNarrow, place.boxes), x, s * 0.8, { ...quiet, most: w });
  }
  const title = isNarrow ? (isInput ? "place" : "alike") : isInput ? "the place's share in length" : `alike to place ${from + own + 1} (cosine)`;
  if (Number.isFinite(bars[own])) camera.text(title, right, s * 0.8, { ...quiet, most: camera.W - right });
  const px = each < m * 1.1 ? s : m, step = Math.max(1, Math.ceil((px * 1.15) / each)), thick = Math.max(1, Math.min(each * 0.62, m * 1.4));
  names.forEach((name, row) => {
    const isOwn = row === own, middle = y + each * (row + 0.5), value = bars[row], isSaid = isOwn || step === 1 || !(row % step || Math.abs(row - own) < 1.5 * step || middle + px / 2 > camera.H);
    const colour = isOwn ? colours.frame : value < 0 ? colours.lost : value < LITTLE ? colours.flat : camera.colour(value);
    if (Number.isFinite(value)) camera.fill({ x: Math.min(zero, zero + value * long), y: middle - thick / 2, w: Math.max(1, Math.abs(value) * long), h: thick }, colour, alpha, 2);
    if (!isSaid) return;
    const line = Math.min(middle, camera.H - px / 2), look = { px, weight: isOwn ? 650 : 400, colour: isOwn ? colours.selected : colours.soft, alpha };
    camera.text(name, place.names, line, { ...look, align: "right", most: place.nameWide });
    if (!isNarrow) camera.text(String(from + row + 1), 0, line, { ...quiet, weight: look.weight });
    if (!Number.isFinite(value)) return;
    const end = zero + Math.max(0, value) * long + s * 0.4, isBeside = step === 1;
    camera.text(rounded(value), isBeside ? end : camera.W, line, { ...quiet, px: isNarrow ? s : px, align: isBeside ? "left" : "right" });
  });
  camera.box({ x: place.x, y: y + each * own, w: place.w, h: each }, alpha, each < 4 ? 2 : 0, 2);
  const chosen = state.dimension === null ? null : place.boxes.find(({ columns }) => columns.includes(state.dimension));
  if (!chosen || cells.rows <= own) return;
  const wide = chosen.w / chosen.columns.length;
  camera.box({ x: chosen.x + wide * chosen.columns.indexOf(state.dimension), y: y + each * own, w: wide, h: each }, alpha, 2, 2);
}

function titleOf({ name, columns: { length } }, isInput, isNarrow, [{ name: first }]) {
  if (isNarrow) return `${name}s`;
  if (isInput) return name === "number" ? `${length} numbers of word + place` : `word + ${name}s`;
  if (name === "number") return `the ${length} numbers of each place`;
  return `${length} ${name}s${name === first ? ": fast waves at the left, slow ones at the right" : ", likewise"}`;
}

/** The place at a point, and the number, as a column of the table or null; null beside them. */
export function placeAt(state, camera, found, x, y) {
  const drawn = picture(state, found, state.seen === INPUT), place = placesPlace(camera, drawn), row = Math.floor((y - place.y) / place.each);
  if (row < 0 || row >= drawn.names.length) return null;
  const box = place.boxes.find((one) => x >= one.x && x < one.x + one.w);
  return { index: drawn.from + row, dimension: box ? box.columns[Math.floor(((x - box.x) / box.w) * box.columns.length)] : null };
}

/** Chooses the number beside the chosen one, as they stand. */
export function stepNumber(state, by) {
  const found = state.answered(state.placesOf()), all = found ? wavesOf(found).blocks.flatMap(([, columns]) => columns) : [];
  const at = state.dimension === null ? 0 : all.indexOf(state.dimension) + by;
  state.dimension = all[Math.max(0, Math.min(all.length - 1, at))] ?? null;
}

/** The chosen number: what the table, the word and their sum have there; "" where none is. */
export function numberSaid(state, isShort = false) {
  const found = state.answered(state.placesOf()), { dimension } = state;
  if (!found || dimension === null) return "";
  const { table, own, from, isTurned, blocks } = { ...picture(state, found, false), ...wavesOf(found) }, at = `Place ${from + own + 1}, `;
  if (dimension >= table.columns) return "";
  if (isTurned) {
    const [name, columns] = blocks.find((block) => block[1].includes(dimension)), pair = columns.indexOf(dimension);
    return `${at}pair ${pair + 1}: turned by ${three(cell(found.angles, own, pair))} radians, whose ${name} is ${three(cell(table, own, dimension))}`;
  }
  const [place, word, sum] = ["table", "token", "embedded"].map((name) => cell(found[name], own, dimension));
  const isSum = Math.abs(place + word - sum) < 0.002 * Math.max(1, Math.abs(sum));
  return `${at}number ${dimension + 1}: table ${three(place)} ${isSum ? "+" : "and"} word ${three(word)} ${isSum ? "=" : "give, normalised,"} ${three(sum)}${isShort ? "" : ", the input of layer 1"}`;
}

/** What the colours mean. */
export function placesScale(state) {
  const found = state.answered(state.placesOf());
  if (!found || !(found.angles ?? found.table).data.length) return "";
  const { largest, cells } = picture(state, found, state.seen === INPUT), most = largest >= 0.995 && largest < 1.005 ? "1" : largest.toPrecision(2);
  if (cells.data.every((value) => value === 0)) return "all numbers: 0";
  return state.seen === INPUT ? `red: −${most} or less · blue: ${most} or more` : `red: −${most} · blue: ${most} · the same for every sentence`;
}

export function placesFinding(state) {
  const found = state.answered(state.placesOf()), { side, index } = state.spot(), word = [state.run.sides[side].labels[index], "query"];
  if (found === undefined) return ["Reading what each place adds …"];
  if (!found) return ["What each place adds is not known here."];
  if (!(found.angles ?? found.table).data.length) return ["This model adds no vector for a place, and turns none."];
  const { bars, own, from, names, isTurned, cells } = picture(state, found, state.seen === INPUT), at = `, at place ${index + 1}, `;
  if (state.seen === INPUT) {
    const [place, length] = lengthsOf(found)[own].map(one);
    return [word, ` enters layer 1 as word + place ${index + 1}, of lengths ${length} and ${place}.`];
  }
  if (cells.data.every((value) => value === 0)) return ["No place adds anything: ", word, " enters layer 1 the same wherever it stands."];
  const start = isTurned ? "No vector is added: each place turns queries and keys by angles of its own. " : "Each place adds a vector of its own. ";
  const others = counting(bars.length).filter((row) => row !== own && Number.isFinite(bars[row])), most = Math.max(...others.map((row) => bars[row]));
  if (!others.length) return [start, word, bars.length > 1 ? " has numbers that are NaN or infinite." : " is alone."];
  const best = others.filter((row) => bars[row] >= most - EQUAL), isNear = best.every((row) => Math.abs(row - own) === 1);
  const which = isNear ? [`its neighbour${best.length > 1 ? "s" : ""}`] : [`place ${from + best[0] + 1} (`, [names[best[0]], "key"], ")"];
  return [start, word, at, "is most like ", ...which, `: ${minus(percent(most))}.`];
}
