// Depth 2: all heads by layer; and the way from there to one of them.

import { minus } from "../shared/numbers.js";
import { between, clamp, ease } from "./camera.js";
import { matrixPlace } from "./layout.js";
import { drawMatrix } from "./matrix.js";
import { ORDERS } from "./state.js";
import { drawTile } from "./tile.js";

const TALL = 6; // layers, from which on the layers of a single tower stand beside each other
const LEAST = 64; // px of a tile that is wide enough for a caption
const ALIKE = 0.15; // an effect that is large enough to be marked

/** Every head: { part, tile, where }. */
function allOf({ run: { parts } }) {
  return parts.flatMap((part) => Array.from({ length: part.layers * part.heads }, (_, tile) =>
    ({ part, tile, where: { kind: part.kind, layer: Math.floor(tile / part.heads), head: tile % part.heads } })));
}

/** Where each head stands in an order: `tiles`, each { part, tile, where, box }, with a `caption`
 * [text, whether it is marked] where there is one; and `titles`: [text, x, y, width, how it looks]. */
export function headsPlace(state, camera, order = state.order) {
  const told = state.told[ORDERS[order]];
  if (!told) return byLayer(state, camera);
  return order === 1 ? byHabit(state, camera, told) : byEffect(state, camera, told);
}

/** Kinds beside each other (on a narrow screen below), a row for each layer; of a single tall tower a
 * column. */
function byLayer(state, camera) {
  const { W, H, s, isNarrow, colours } = camera, { parts } = state.run;
  const isTurned = parts.length === 1 && parts[0].layers > TALL && !isNarrow, quiet = { colour: colours.soft };
  const top = s * 2.2, label = isNarrow ? 0 : s * 1.9, tiles = [], titles = [];
  const across = (part) => (isTurned ? part.layers : part.heads), down = (part) => (isTurned ? part.heads : part.layers);
  const place = (part, x, y, wide, high, [right, below]) => {
    for (let tile = 0; tile < part.layers * part.heads; tile++) {
      const [layer, head] = [Math.floor(tile / part.heads), tile % part.heads], [column, row] = isTurned ? [layer, head] : [head, layer];
      const box = { x: x + column * wide, y: y + row * high, w: wide - right, h: high - below };
      tiles.push({ part, tile, where: { kind: part.kind, layer, head }, box });
    }
  };
  if (isNarrow) {
    const high = (H - top * parts.length) / parts.reduce((sum, part) => sum + down(part), 0);
    let y = 0;
    for (const part of parts) {
      titles.push([part.name, 0, y + s * 1.1, W, { weight: 650 }]);
      place(part, 0, y + top, W / across(part), high, [4, Math.min(4, high / 5)]);
      y += top + high * down(part);
    }
    return { tiles, titles };
  }
  const apart = s * 2.6, all = parts.reduce((sum, part) => sum + across(part), 0);
  const wide = (W - label - (parts.length - 1) * apart) / all;
  let x = label;
  parts.forEach((part, at) => {
    const high = (H - top) / down(part);
    if (!isTurned) titles.push([part.name, x, s * 1.05, wide * across(part), { weight: 650, px: camera.m }]);
    place(part, x, top, wide, high, [Math.min(s * 0.55, wide / 6), Math.min(s, high / 4)]);
    for (let i = 0; i < part.layers && !at; i++)
      titles.push(isTurned ? [String(part.numbers[i]), x + (i + 0.4) * wide, s * 1.05, wide, quiet]
        : [String(part.numbers[i]), s * 0.4, top + i * high + (high - s) / 2, label, quiet]);
    x += wide * across(part) + apart;
  });
  return { tiles, titles };
}

/** So many rows that tiles are about as wide as they are high. */
const rowsOf = ({ W, H }, count) => Math.max(1, Math.round(Math.sqrt((count * H) / W)));

/** Groups of heads that do the same, each with its name. */
function byHabit(state, camera, { heads, groups }) {
  const { W, H, s, m, isNarrow, colours } = camera, known = new Map(allOf(state).map((each) => [JSON.stringify(each.where), each]));
  const tiles = [], titles = [];
  const grouped = groups.map(([habit, title]) => [title, heads.filter((head) => head.habit === habit)]);
  const take = ({ kind, layer, head, caption, missed }, box, isNamed) =>
    tiles.push({ ...known.get(JSON.stringify({ kind, layer, head })), box, caption: isNamed ? [caption, missed] : null });
  const title = (text, count, x, y, most) => {
    const px = isNarrow ? s : m, long = camera.width(text, px, 650);
    titles.push([text, x, y, most, { weight: 650, px }], [String(count), x + Math.min(long, most) + 8, y, most, { px, colour: colours.pale }]);
  };
  if (isNarrow) {
    const columns = 6, rows = grouped.reduce((sum, [, some]) => sum + Math.ceil(some.length / columns), 0);
    const high = (H - s * 1.8 * grouped.length) / rows, wide = (W + 5) / columns;
    let y = 0;
    for (const [name, some] of grouped) {
      title(name, some.length, 0, y + s, W);
      y += s * 1.8;
      some.forEach((head, at) => take(head, { x: (at % columns) * wide, y: y + Math.floor(at / columns) * high, w: wide - 5, h: high - 5 }, false));
      y += Math.ceil(some.length / columns) * high;
    }
    return { tiles, titles };
  }
  const apart = s * 2.6, between2 = s * 0.85, top = s * 2.2;
  const rows = Math.max(4, rowsOf(camera, heads.length)), columns = grouped.map(([, some]) => Math.ceil(some.length / rows));
  const all = columns.reduce((sum, count) => sum + count, 0), wide = (W - apart * (grouped.length - 1) - between2 * (all - grouped.length)) / all;
  const high = (H - top) / rows, isNamed = wide >= LEAST;
  let x = 0;
  grouped.forEach(([name, some], at) => {
    const width = columns[at] * (wide + between2) - between2;
    title(name, some.length, x, s * 1.05, Math.max(width - 2 * s, s));
    some.forEach((head, i) => take(head, { x: x + (i % columns[at]) * (wide + between2), y: top + Math.floor(i / columns[at]) * high,
      w: wide, h: high - (isNamed ? s * 3.5 : between2) }, isNamed));
    x += width + apart;
  });
  return { tiles, titles };
}

/** The heads whose absence costs this sentence most come first. */
function byEffect(state, camera, told) {
  const { W, H, s, isNarrow } = camera, effectOf = ({ kind, layer, head }) => told.effects[kind]?.[layer]?.[head] ?? null;
  const heads = allOf(state).toSorted((a, b) => (effectOf(a.where) ?? Infinity) - (effectOf(b.where) ?? Infinity));
  const rows = isNarrow ? Math.ceil(heads.length / 6) : Math.max(4, rowsOf(camera, heads.length)), columns = Math.ceil(heads.length / rows);
  const gap = isNarrow ? 5 : s * 0.85, wide = (W + gap) / columns, high = H / rows, isNamed = !isNarrow && wide - gap >= LEAST;
  const most = Math.max(1e-9, ...heads.map(({ where }) => Math.abs(effectOf(where) ?? 0)));
  const tiles = heads.map((each, at) => {
    const effect = effectOf(each.where), box = { x: (at % columns) * wide, y: Math.floor(at / columns) * high, w: wide - gap,
      h: high - (isNamed ? s * 3.5 : gap) };
    const text = effect === null ? "" : minus(`${effect > 0 ? "+" : ""}${effect.toFixed(2)}`);
    const bar = effect === null ? 0 : effect / most;
    return Object.assign(each, { box, caption: isNamed ? [text, effect !== null && effect < -ALIKE, bar] : null });
  });
  return { tiles, titles: [] };
}

export const isSelected = (state, { kind, layer, head }) =>
  kind === state.tile.kind && layer === state.tile.layer && head === state.tile.head;

/** The name of a head below its tile, and what is said of it there; an effect as a bar, too. */
function drawCaption(state, camera, { where, caption: [text, isMarked, bar] }, { x, y, w, h }, alpha) {
  const { s, colours } = camera, top = y + h + s * 0.95, isOwn = isSelected(state, where);
  camera.text(state.name(where), x, top, { weight: 600, colour: isOwn ? colours.selected : colours.ink, alpha, most: w + 6 });
  if (bar) camera.fill({ x, y: y + h + 2, w: Math.max(1, w * Math.abs(bar)), h: s * 0.22 }, bar < 0 ? colours.lost : colours.done, alpha, 1);
  camera.text(text, x, top + s * 1.2, { colour: isMarked ? colours.lost : colours.soft, weight: isMarked ? 600 : 400, alpha, most: w + 8 });
}

/** While tiles are on their way from one order to another. */
export function betweenOrders(state, camera, [from, to, u]) {
  const [before, after] = [from, to].map((order) => headsPlace(state, camera, order));
  const places = new Map(before.tiles.map(({ where, box }) => [JSON.stringify(where), box]));
  const tiles = after.tiles.map((each) => ({ ...each, caption: null, box: between(places.get(JSON.stringify(each.where)), each.box, ease(u)) }));
  return { tiles, titles: u < 0.5 ? [] : after.titles };
}

/** Titles of groups, and captions below tiles. */
export function drawNamed(state, camera, { tiles, titles }, alpha) {
  if (alpha <= 0) return;
  for (const [text, x, y, most, look] of titles) camera.text(text, x, y, { px: camera.s, alpha, most, ...look });
  for (const each of tiles) if (each.caption) drawCaption(state, camera, each, each.box, alpha);
}

/** z from 0, all heads as they stand in a `place`, to 1, where the selected one fills the stage. `pointed`:
 * the head under the pointer; `behind`: draws what else stands there, this visible. */
export function drawHeads(state, camera, z, place, pointed, behind = (alpha) => drawNamed(state, camera, place, alpha)) {
  const { W, H, cx } = camera, { tiles } = place, own = tiles.find(({ where }) => isSelected(state, where));
  const u = ease(z), from = own.box, box = between(from, matrixPlace(state, camera), u);
  const [wider, higher] = [box.w / from.w, box.h / from.h], alpha = clamp(1 - 1.5 * z);
  cx.save();
  cx.transform(wider, 0, 0, higher, box.x - from.x * wider, box.y - from.y * higher);
  behind(clamp(1 - 6 * z));
  cx.restore();
  for (const each of alpha > 0 ? tiles : []) {
    if (each === own) continue;
    const there = { x: box.x + (each.box.x - from.x) * wider, y: box.y + (each.box.y - from.y) * higher,
      w: each.box.w * wider, h: each.box.h * higher };
    if (there.x > W || there.y > H || there.x + there.w < 0 || there.y + there.h < 0) continue;
    drawTile(state, camera, each, there, alpha);
    if (z === 0 && pointed && JSON.stringify(pointed) === JSON.stringify(each.where)) camera.box(there, 0.5, 3, 2);
  }
  drawTile(state, camera, own, box);
  const near = clamp(3 * z - 2);
  if (near > 0) drawMatrix(state, camera, box, near);
  camera.box(box, clamp(1 - 1.9 * z));
}

/** The head of some tiles at a point: {kind, layer, head}, or null. */
export function headAt(tiles, x, y) {
  const found = tiles.find(({ box }) =>
    x >= box.x - 2 && x <= box.x + box.w + 2 && y >= box.y - 2 && y <= box.y + box.h + 2);
  return found?.where ?? null;
}

/** The head next to the selected one in a direction; over the edge of a kind lies the next. */
export function headBeside(state, tiles, [dx, dy]) {
  const own = tiles.find(({ where }) => isSelected(state, where)).box;
  let [best, least] = [null, Infinity];
  for (const { box, where } of tiles) {
    const [x, y] = [box.x - own.x, box.y - own.y];
    if (x * dx + y * dy <= 1) continue;
    const far = Math.hypot(x, y) + 3 * Math.abs(dx ? y : x);
    if (far < least) [best, least] = [where, far];
  }
  return best;
}
