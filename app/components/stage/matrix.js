// Depth 2: one head as a matrix or as lines; and the way from one of its rows to bars.

import { percent } from "../shared/numbers.js";
import { drawAdds } from "./adds.js";
import { clamp, ease, lerp, written } from "./camera.js";
import { matrixPlace, rowPlace } from "./layout.js";
import { drawLying } from "./lying.js";
import { drawNumber } from "./number.js";
import { drawBars } from "./row.js";
import { WORD } from "./state.js";
import { drawTile } from "./tile.js";
import { drawWhy } from "./why.js";

const WRITTEN = 0.05; // weights from which on a number stands in the cell
const SMALL = 9; // px, under which cells have no gaps between them
const NARROW = 22, MIDDLE = 36, WIDE = 64; // px of a cell for a number, for its %, for what it was before

/** Every how many labels there is room for one. */
const every = (size, letters) => Math.max(1, Math.ceil((letters * 1.1) / size));

/** The names of the rows; `alone`: how far only the selected one counts, whose bars are seen. */
export function drawRowNames(state, camera, box, alpha, alone = 0) {
  const { s, m, colours, isNarrow } = camera, names = state.rowNames(), high = box.h / names.length;
  const row = state.row(), gap = s * (isNarrow ? 0.5 : 0.9), px = high * 0.92 < m ? s : m, step = every(high, px);
  const left = matrixPlace(state, camera).x;
  names.forEach((name, at) => {
    const isOn = at === row, isNear = Math.abs(at - row) < step;
    if (isOn ? alone === 1 && camera.isNarrow : at % step || isNear) return;
    const y = box.y + high * (at + 0.5), foot = camera.H - camera.m * 0.75; // beside the names of the keys
    camera.text(name, left - gap, isOn ? lerp(y, foot, alone) : y, { align: "right", px, weight: isOn ? 650 : 400,
      colour: isOn ? colours.selected : colours.soft, most: left - gap, alpha: alpha * (isOn ? 1 : 1 - alone) });
  });
}

/** The names of the columns, `wide` px each from `x` on, above the matrix; or of those that have a `bar`,
 * below it. */
export function drawKeyNames(state, camera, x, wide, alpha, bars = null) {
  const { s, m, cx, colours } = camera, place = matrixPlace(state, camera), names = state.keyNames();
  const chosen = state.isCovered(state.part(), state.tileOf(state.part()), state.row()) && state.key < 0 ? -1 : state.column();
  const part = state.part(), gone = state.mix > 0.5 ? state.look.hidden?.[part.key] ?? [] : [];
  const shown = bars?.columns ?? names.map((_, at) => at), step = every(wide, s), { isTilted } = bars ?? place;
  const top = bars ? camera.H - bars.below : place.y;
  shown.forEach((at, i) => {
    const isOn = at === chosen;
    if (!isOn && (i % step || Math.abs(i - shown.indexOf(chosen)) < step)) return;
    const middle = x + wide * (i + 0.5), isGone = gone.includes(at * state.sides(part)[1].every);
    const look = { weight: isOn ? 650 : 400, colour: isGone ? colours.pale : isOn ? colours.ink : colours.soft, alpha };
    if (!isTilted) {
      const y = top + (bars ? m * 0.85 : -m * 0.85), long = camera.width(names[at], m, look.weight);
      camera.text(names[at], middle, y, { ...look, px: m, align: "center" });
      if (isGone) camera.fill({ x: middle - long / 2 - 2, y: y - 0.75, w: long + 4, h: 1.5 }, colours.pale, alpha, 0);
      return;
    }
    cx.save();
    cx.translate(middle + s * 0.35, top + (bars ? 8 : -7));
    cx.rotate(-Math.PI / 2.35);
    camera.text(names[at], 0, 0, { ...look, align: bars ? "right" : "left" });
    cx.restore();
  });
}

/** The cells in a box. `numbers`: how visible those are; `skips`: a row that stands elsewhere. */
function drawCells(state, camera, box, alpha, numbers, skips = -1) {
  const { s, m, cx, isNarrow } = camera, part = state.part(), tile = state.tileOf(part), selected = state.row();
  const [wide, high] = [box.w / part.columns, box.h / part.rows];
  if (Math.min(wide, high) < SMALL) return drawSmall(state, camera, box, alpha);
  const gap = isNarrow ? 1 : s > 16 ? 3 : 2;
  for (let row = 0; row < part.rows; row++) {
    if (row === skips) continue;
    if (state.isCovered(part, tile, row)) {
      const { first, count } = part.veil.find((veil) => veil.tile === tile && row >= veil.first && row < veil.first + veil.count);
      if (row === first) drawCover(camera, { x: box.x, y: box.y + row * high, w: box.w, h: high * count }, gap, alpha);
      if (row === selected && state.isGuessed()) drawGuess(state, camera, { x: box.x, y: box.y + row * high, w: wide, h: high }, gap);
      continue;
    }
    for (let column = 0; column < part.columns; column++) {
      const cell = { x: box.x + column * wide + gap / 2, y: box.y + row * high + gap / 2, w: wide - gap, h: high - gap };
      const change = state.moved(part, tile, row, column);
      if (state.isMasked(part, tile, row, column)) {
        cx.globalAlpha = alpha;
        cx.fillStyle = camera.hatch();
        cx.fillRect(cell.x, cell.y, cell.w, cell.h);
        cx.globalAlpha = 1;
        continue;
      }
      const weight = state.weight(part, tile, row, column);
      camera.fill(cell, camera.colour(weight), alpha);
      if (numbers <= 0 || wide < NARROW || high < 0.9 * s) continue;
      const colour = camera.inkOn(weight), middle = [cell.x + cell.w / 2, cell.y + cell.h / 2 + 1];
      const px = Math.min(m, Math.max(13, high * 0.68)), look = { align: "center", colour, alpha: numbers };
      if (change && wide >= WIDE) drawChange(camera, change, middle, px, look);
      else if (weight >= WRITTEN)
        camera.text(wide < MIDDLE ? percent(weight).replace("%", "") : percent(weight), ...middle,
          { ...look, px: wide < MIDDLE ? 13 : px, weight: row === selected ? 650 : 400 });
    }
  }
}

/** Cells too small for numbers: one pixel each, in one image. */
function drawSmall(state, camera, box, alpha) {
  const part = state.part(), tile = state.tileOf(part);
  drawTile(state, camera, { part, tile, where: null }, box, alpha, 0);
  const high = box.h / part.rows;
  for (let row = 0; row < part.rows; row++)
    if (state.isCovered(part, tile, row)) drawCover(camera, { x: box.x, y: box.y + row * high, w: box.w, h: high }, 0, alpha);
}

/** What a weight was, small, and what it is. */
function drawChange(camera, [was, is, wasMasked], [x, y], px, { colour, alpha }) {
  const { s } = camera, [before, now] = [`${wasMasked ? "0" : written(was).replace("%", "")} → `, written(is)];
  const [first, second] = [camera.width(before, s), camera.width(now, px, 650)];
  camera.text(before, x - (first + second) / 2, y, { px: s, colour, alpha: alpha * 0.85 });
  camera.text(now, x - (first + second) / 2 + first, y, { px, weight: 650, colour, alpha });
}

function drawCover(camera, { x, y, w, h }, gap, alpha) {
  camera.fill({ x: x + gap / 2, y: y + gap / 2, w: w - gap, h: h - gap }, camera.colours.flat, alpha);
  camera.text("?", x + w / 2, y + h / 2 + 1, { align: "center", px: Math.min(camera.l * 0.9, h * 0.8), weight: 650,
    colour: camera.colours.selected, alpha });
}

/** The guess at a covered row, from its first cell on. */
function drawGuess({ guess }, camera, { x, y, w, h }, gap) {
  guess.shares.forEach((share, at) => {
    if (!share) return;
    camera.fill({ x: x + at * w + gap / 2, y: y + gap / 2, w: w - gap, h: h - gap }, camera.colour(share), 1);
    if (w > NARROW) camera.text(percent(share), x + (at + 0.5) * w, y + h / 2 + 1, { align: "center", px: Math.min(camera.m, h * 0.68), colour: camera.inkOn(share) });
  });
}

export function drawMatrix(state, camera, box, alpha) {
  const { colours } = camera, part = state.part(), place = matrixPlace(state, camera), high = box.h / part.rows;
  camera.fill({ x: box.x - 1, y: box.y - 1, w: box.w + 2, h: box.h + 2 }, colours.paper, alpha, 0);
  drawCells(state, camera, box, alpha, alpha);
  drawRowNames(state, camera, { ...box, x: place.x }, alpha);
  drawKeyNames(state, camera, box.x, box.w / part.columns, alpha);
  const words = state.rowsAre();
  if (words) camera.text(words.startsWith("just") ? "just read ↓" : "writing ↓", place.x - camera.s * 0.6, place.y - camera.m * 0.85, { align: "right", colour: colours.pale, alpha, most: place.x - camera.s * 0.6 });
  const row = state.row();
  camera.box({ x: box.x, y: box.y + row * high, w: box.w, h: high }, alpha, -0.5, 2);
  if (state.key >= 0)
    camera.box({ x: box.x + (state.key * box.w) / part.columns, y: box.y + row * high, w: box.w / part.columns, h: high }, alpha, -0.5, 3.5);
  if (state.isOff(state.tile)) camera.fill(box, colours.paper, 0.55 * alpha, 0);
}

/** Queries below, keys above, a line for each weight. */
function drawLines(state, camera, alpha, view) {
  const { W, H, s, m, cx, colours } = camera, place = matrixPlace(state, camera), part = state.part();
  const { names, weight: weightOf, own: selected } = state.linesOf(view);
  const wide = (W - place.x) / names.length, [top, bottom] = [place.y + 4, H - m * 2.1], middle = lerp(bottom, top, 0.5);
  drawKeyNames(state, camera, place.x, place.each[0], alpha);
  cx.save();
  cx.lineCap = "round";
  for (const isOwn of [false, true])
    for (let row = 0; row < names.length; row++) {
      if ((row === selected) !== isOwn) continue;
      for (let column = 0; column < part.columns; column++) {
        const weight = weightOf(row, column);
        if (weight < WRITTEN) continue;
        const [from, to] = [place.x + wide * (row + 0.5), place.x + place.each[0] * (column + 0.5)];
        cx.globalAlpha = alpha * (isOwn ? 1 : 0.25 + 0.6 * weight);
        cx.strokeStyle = isOwn ? colours.frame : camera.colour(0.25 + 0.75 * weight);
        cx.lineWidth = 1 + weight * s * 0.75;
        cx.beginPath();
        cx.moveTo(from, bottom);
        cx.bezierCurveTo(from, middle, to, middle, to, top);
        cx.stroke();
      }
    }
  cx.restore();
  const step = every(wide, camera.width("mmmm", m));
  names.forEach((name, at) => {
    const isOn = at === selected;
    if (!isOn && (step > 1 && at % step)) return;
    camera.text(name, place.x + wide * (at + 0.5), bottom + m * 1.1, { align: "center", px: m, weight: isOn ? 650 : 400,
      colour: isOn ? colours.selected : colours.soft, alpha, most: step > 1 ? undefined : wide * 1.4 });
  });
}

/** z from 0, the head, over 1, the bars of one row, to 2, the numbers of one of them; `near(view)`: how far a view of VIEWS is there,
 * its matrix, its lines, those of the best heads. */
export function drawHead(state, camera, z, near) {
  const place = matrixPlace(state, camera), { W, H, cx, isNarrow } = camera, row = state.row();
  if (z <= 0) {
    if (near(0)) drawMatrix(state, camera, place, near(0));
    for (const view of [1, 2]) if (near(view)) drawLines(state, camera, near(view), view);
    return;
  }
  const u = ease(clamp(z)), alpha = clamp(1 - 2 * z), taller = 1 + 5 * u, middle = place.y + (row + 0.5) * place.each[1];
  if (alpha > 0) {
    cx.save();
    cx.beginPath();
    cx.rect(-6, place.y - 2, W + 12, H);
    cx.clip();
    drawCells(state, camera, { ...place, y: middle - (middle - place.y) * taller, h: place.h * taller }, alpha, alpha * 0.6, row);
    cx.restore();
  }
  drawRowNames(state, camera, place, 1, u);
  const bars = isNarrow ? null : rowPlace(state, camera);
  drawKeyNames(state, camera, place.x, place.each[0], alpha);
  if (!isNarrow) drawKeyNames(state, camera, bars.x, bars.each, clamp(2 * z - 1), bars);
  const drawn = (isNarrow ? drawLying : drawBars)(state, camera, u, clamp(3 * z - 2));
  const toWord = state.writing() < 0 ? 0 : clamp((state.stopShown ?? state.stopped) - WORD + 1) * ease(clamp(2 * z - 1));
  if (toWord) {
    camera.fill({ x: 0, y: 0, w: W, h: H }, camera.colours.paper, 2 * toWord, 0);
    if (toWord > 0.5) camera.clear();
    drawAdds(state, camera, toWord, { x: W - camera.s * 4, y: place.y, w: camera.s * 2, h: H / 2 });
  }
  if (z <= 1) return;
  if (z < 1.5) camera.fill({ x: 0, y: 0, w: W, h: H }, camera.colours.paper, 2 * (z - 1), 0);
  else camera.clear();
  const order = state.numberShown ?? state.number, toWhy = clamp(order - 1);
  if (toWhy < 0.5) drawNumber(state, camera, z - 1, Math.min(order, 1), drawn?.[state.column()]);
  if (toWhy >= 0.5 && !state.isCovered(state.part(), state.tileOf(state.part()), row)) drawWhy(state, camera, (2 * toWhy - 1) * clamp(2 * z - 3));
}

/** The cell at a point: {row, key}, key −1 on a label; or of a label above {row: null, key}. */
export function cellAt(state, camera, x, y) {
  const place = matrixPlace(state, camera), part = state.part(), [wide, high] = place.each;
  const key = Math.max(0, Math.min(part.columns - 1, Math.floor((x - place.x) / wide)));
  if (y < place.y) return x < place.x ? null : { row: null, key };
  const row = Math.max(0, Math.min(part.rows - 1, Math.floor((y - place.y) / high)));
  return { row, key: x < place.x ? -1 : key };
}
