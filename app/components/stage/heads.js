// Depth 1: all heads by layer; and the way from there to one of them.

import { between, clamp, ease } from "./camera.js";
import { matrixPlace } from "./layout.js";
import { drawMatrix } from "./matrix.js";
import { drawTile } from "./tile.js";

const TALL = 6; // layers, from which on the layers of a single tower stand beside each other

/** Where each head stands: kinds beside each other (on a narrow screen below), a row for each layer; of a
 * single tall tower a column. Returns `tiles`, each { part, tile, box }, and `titles`, `layers`: [text, x, y]. */
export function headsPlace(state, camera) {
  const { W, H, s, isNarrow } = camera, { parts } = state.run;
  const isTurned = parts.length === 1 && parts[0].layers > TALL && !isNarrow;
  const top = s * 2.2, label = isNarrow ? 0 : s * 1.9, tiles = [], titles = [], layers = [];
  const across = (part) => (isTurned ? part.layers : part.heads), down = (part) => (isTurned ? part.heads : part.layers);
  if (isNarrow) {
    const high = (H - top * parts.length) / parts.reduce((sum, part) => sum + down(part), 0);
    let y = 0;
    for (const part of parts) {
      titles.push([part.name, 0, y + s * 1.1, W]);
      y += top;
      place(part, 0, y, W / across(part), high, [4, Math.min(4, high / 5)]);
      y += high * down(part);
    }
  } else {
    const between2 = s * 2.6, all = parts.reduce((sum, part) => sum + across(part), 0);
    const wide = (W - label - (parts.length - 1) * between2) / all;
    let x = label;
    parts.forEach((part, at) => {
      const high = (H - top) / down(part);
      titles.push([part.name, x, s * 1.05, wide * across(part)]);
      place(part, x, top, wide, high, [Math.min(s * 0.55, wide / 6), Math.min(s, high / 4)]);
      for (let i = 0; i < part.layers && !at; i++)
        layers.push(isTurned ? [String(part.numbers[i]), x + (i + 0.4) * wide, s * 1.05]
          : [String(part.numbers[i]), s * 0.4, top + i * high + (high - s) / 2]);
      x += wide * across(part) + between2;
    });
    if (isTurned) titles.splice(0);
  }
  return { tiles, titles, layers };

  function place(part, x, y, wide, high, [right, below]) {
    for (let layer = 0; layer < part.layers; layer++)
      for (let head = 0; head < part.heads; head++) {
        const [column, row] = isTurned ? [layer, head] : [head, layer];
        const box = { x: x + column * wide, y: y + row * high, w: wide - right, h: high - below };
        tiles.push({ part, tile: layer * part.heads + head, where: { kind: part.kind, layer, head }, box });
      }
  }
}

const isSelected = (state, { kind, layer, head }) =>
  kind === state.tile.kind && layer === state.tile.layer && head === state.tile.head;

/** z from 0, all heads, to 1, where the selected one fills the stage. `pointed`: the head under the
 * pointer. */
export function drawHeads(state, camera, z, pointed) {
  const { W, H, m, colours } = camera, { tiles, titles, layers } = headsPlace(state, camera);
  const own = tiles.find(({ where }) => isSelected(state, where));
  const u = ease(z), from = own.box, box = between(from, matrixPlace(state, camera), u);
  const [wider, higher] = [box.w / from.w, box.h / from.h], alpha = clamp(1 - 1.5 * z);
  for (const each of alpha > 0 ? tiles : []) {
    if (each === own) continue;
    const there = { x: box.x + (each.box.x - from.x) * wider, y: box.y + (each.box.y - from.y) * higher,
      w: each.box.w * wider, h: each.box.h * higher };
    if (there.x > W || there.y > H || there.x + there.w < 0 || there.y + there.h < 0) continue;
    drawTile(state, camera, each, there, alpha);
    if (z === 0 && pointed && JSON.stringify(pointed) === JSON.stringify(each.where)) camera.box(there, 0.5, 3, 2);
  }
  const named = clamp(1 - 6 * z);
  for (const [text, x, y, most] of titles) camera.text(text, x, y, { weight: 650, px: m, alpha: named, most });
  for (const [text, x, y] of layers) camera.text(text, x, y, { colour: colours.soft, alpha: named });
  drawTile(state, camera, own, box);
  const near = clamp(3 * z - 2);
  if (near > 0) drawMatrix(state, camera, box, near);
  camera.box(box, clamp(1 - 1.9 * z));
}

/** The head at a point: {kind, layer, head}, or null. */
export function headAt(state, camera, x, y) {
  const found = headsPlace(state, camera).tiles.find(({ box }) =>
    x >= box.x - 2 && x <= box.x + box.w + 2 && y >= box.y - 2 && y <= box.y + box.h + 2);
  return found?.where ?? null;
}

/** The head next to the selected one in a direction; over the edge of a kind lies the next. */
export function headBeside(state, camera, [dx, dy]) {
  const { tiles } = headsPlace(state, camera), own = tiles.find(({ where }) => isSelected(state, where)).box;
  let [best, least] = [null, Infinity];
  for (const { box, where } of tiles) {
    const [x, y] = [box.x - own.x, box.y - own.y];
    if (x * dx + y * dy <= 1) continue;
    const far = Math.hypot(x, y) + 3 * Math.abs(dx ? y : x);
    if (far < least) [best, least] = [where, far];
  }
  return best;
}
