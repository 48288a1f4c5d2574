// The paths that carry the difference between two sentences, between the parts of the figure; all else of it
// is pale.

import { floorsPlace } from "./floors.js";
import { isSelected } from "./heads.js";
import { drawFigure, drawForward, drawNames } from "./maps.js";
import { drawTile } from "./tile.js";

const FORWARD = "feed_forward";
const PALE = 0.3; // of the figure
const THICK = 0.9; // letters of the strongest path
const THIN = 0.8; // px, at least

/** Where the parts stand: the box of one that a path begins or ends at. */
function boxesOf({ tiles, towers, isTurned, U, V, streams }, { s }) {
  const key = JSON.stringify, heads = new Map(tiles.map(({ where, box }) => [key(where), box]));
  const box = (u, v) => (isTurned ? { x: v, y: u, w: 0, h: 0 } : { x: u, y: v, w: 0, h: 0 }), last = towers.at(-1);
  return (part) => {
    if ("head" in part) return heads.get(key(part));
    const tower = towers.find(({ side }) => side === part.side);
    if (!tower) return isTurned ? box(U - s * 2.2, streams[last.floors.length - 1]) : box(last.to, V - s * 2.2);
    if (part.layer === null) return box(tower.from, streams[0]);
    return tower.slots.find(({ names }) => names?.[part.layer] === FORWARD)?.boxes[part.layer] ?? null;
  };
}

/** A curve that leaves a box along the floor, or towards the next floors where the other stands below. */
function curve({ cx }, from, to, isTurned) {
  const [a, b] = [from, to].map(({ x, y, w, h }) => (isTurned ? { u: y, v: x, du: h, dv: w } : { u: x, v: y, du: w, dv: h }));
  const isBelow = b.v > a.v + a.dv, start = isBelow ? [a.u + a.du / 2, a.v + a.dv] : [a.u + a.du, a.v + a.dv / 2];
  const end = isBelow ? [b.u + b.du / 2, b.v] : [b.u, b.v + b.dv / 2], half = [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2];
  const near = isBelow ? [[start[0], half[1]], [end[0], half[1]]] : [[half[0], start[1]], [half[0], end[1]]];
  const [first, ...points] = [start, ...near, end].map(([u, v]) => (isTurned ? [v, u] : [u, v]));
  cx.beginPath();
  cx.moveTo(...first);
  cx.bezierCurveTo(...points.flat());
  cx.stroke();
}

export function drawPaths(state, camera, found, alpha, pointed) {
  if (alpha <= 0) return;
  const place = floorsPlace(state, camera), { cx, colours, s } = camera, lines = found?.lines ?? [], boxOf = boxesOf(place, camera), key = JSON.stringify;
  const parts = new Map(lines.flatMap(([from, to]) => [from, to]).map((part) => [key(part), part])), on = pointed && key(pointed);
  drawFigure(state, camera, place, alpha * PALE);
  for (const each of place.tiles) drawTile(state, camera, each, each.box, alpha * (parts.has(key(each.where)) ? 1 : PALE / 2));
  for (const part of parts.values()) if (Number.isInteger(part.layer) && !("head" in part)) drawForward(camera, boxOf(part), FORWARD, alpha);
  drawNames(state, camera, place, alpha);
  const most = Math.max(...lines.map(([, , effect]) => Math.abs(effect)), 1e-9);
  cx.save();
  cx.lineCap = "round";
  for (const [from, to, effect] of lines.toReversed()) { // the strongest over all others
    const ends = [boxOf(from), boxOf(to)], isOther = on && parts.has(on) && key(from) !== on && key(to) !== on;
    if (ends.includes(null) || ends.includes(undefined)) continue;
    cx.globalAlpha = alpha * (isOther ? PALE / 2 : 0.75);
    [cx.strokeStyle, cx.lineWidth] = [effect > 0 ? colours.done : colours.lost, Math.max(THIN, (THICK * s * Math.abs(effect)) / most)];
    curve(camera, ...ends, place.isTurned);
  }
  cx.restore();
  const own = place.tiles.find(({ where }) => isSelected(state, where));
  camera.box(own.box, alpha, 3.5);
}
