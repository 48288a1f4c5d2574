// The paper's figure around the maps of all heads: the thread, what leaves it and comes back to ⊕, the
// keys and values of the encoder, and the prediction at its end.

import { percent } from "../shared/numbers.js";
import { clamp } from "./camera.js";
import { floorsPlace } from "./floors.js";
import { isSelected } from "./heads.js";
import { drawTile } from "./tile.js";

const nameOf = (name) => (name === "feed_forward" ? "feed-forward" : name.replaceAll("_", " "));
const RADIUS = 10; // px of the thread's turns
const NUMBERED = 14; // px of a tile that is wide enough for a number
const SMALL = 3.4; // px, under which a ⊕ is a dot
const TICKED = 30; // px of a tile, from which on its selected row has a mark
const HIGH = 0.8; // of a tile, where keys and values enter it

/** A line through points; `halo`: what it crosses gives way. */
function line(camera, points, colour, width, alpha, halo = 0) {
  const { cx } = camera;
  cx.save();
  [cx.globalAlpha, cx.lineJoin, cx.lineCap] = [alpha, "round", halo ? "butt" : "round"];
  cx.beginPath();
  points.forEach(([x, y], at) => {
    const next = points[at + 1];
    if (!at) return cx.moveTo(x, y);
    if (!next) return cx.lineTo(x, y);
    const far = Math.min(Math.hypot(x - points[at - 1][0], y - points[at - 1][1]), Math.hypot(next[0] - x, next[1] - y));
    cx.arcTo(x, y, ...next, Math.min(RADIUS, far / 2));
  });
  for (const [stroke, wide] of halo ? [[camera.colours.paper, width + halo], [colour, width]] : [[colour, width]]) {
    [cx.strokeStyle, cx.lineWidth] = [stroke, wide];
    cx.stroke();
  }
  cx.restore();
}

/** The head of an arrow whose point is at a place; `along`: [dx, dy], where it points. */
function arrow(camera, [x, y], [dx, dy], colour, size, alpha) {
  const { cx } = camera;
  cx.save();
  [cx.globalAlpha, cx.fillStyle] = [alpha, colour];
  cx.beginPath();
  cx.moveTo(x, y);
  cx.lineTo(x - dx * size - dy * size * 0.72, y - dy * size - dx * size * 0.72);
  cx.lineTo(x - dx * size + dy * size * 0.72, y - dy * size + dx * size * 0.72);
  cx.fill();
  cx.restore();
}

function plus(camera, [x, y], radius, alpha) {
  const { cx, colours } = camera;
  cx.save();
  [cx.globalAlpha, cx.fillStyle, cx.strokeStyle, cx.lineWidth] = [alpha, colours.paper, colours.pale, 1.4];
  cx.beginPath();
  cx.arc(x, y, radius, 0, 7);
  cx.fill();
  cx.stroke();
  if (radius >= SMALL) {
    cx.beginPath();
    for (const [dx, dy] of [[1, 0], [0, 1]]) {
      cx.moveTo(x - dx * radius * 0.55, y - dy * radius * 0.55);
      cx.lineTo(x + dx * radius * 0.55, y + dy * radius * 0.55);
    }
    cx.stroke();
  }
  cx.restore();
}

/** All of the figure but the maps. */
export function drawFigure(state, camera, place, alpha) {
  if (alpha <= 0) return;
  if (!state.look.towers) return drawNames(state, camera, place, alpha); // of weights alone, nobody knows what is between them
  const { s, colours } = camera, { towers, isTurned, U, V, streams, lane, deep, gap, bus, pad, middle } = place;
  const at = (u, v) => (isTurned ? [v, u] : [u, v]), along = isTurned ? [0, 1] : [1, 0];
  const thick = Math.max(2, Math.min(5, lane * 0.17)), thin = Math.max(1, thick * 0.45), radius = Math.min(s * 0.4, lane * 0.2, gap * 0.42);
  const back = (floor) => middle(floor) + deep + 0.26 * lane, half = deep / 2, last = (tower) => streams[tower.floors.length - 1];
  const ends = (tower) => [tower.from + pad * 0.3, tower.to + pad * 0.4], of = (side) => towers.findIndex((tower) => tower.side === side);
  for (const tower of towers) {
    const [left, right] = ends(tower), isLast = tower === towers.at(-1), path = [at(left, 0)];
    tower.floors.forEach((_, floor) => {
      path.push(at(left, streams[floor]), at(right, streams[floor]));
      if (floor < tower.floors.length - 1) path.push(at(right, back(floor)), at(left, back(floor)));
    });
    const foot = isTurned ? at(U - s * 2.2, last(tower)) : at(right, V - s * 2.2);
    if (isLast && isTurned) path.pop();
    if (isLast) path.push(foot);
    line(camera, path, colours.thread, thick, alpha);
    if (isLast) arrow(camera, [foot[0], foot[1] + s * 0.6], [0, 1], colours.thread, s * 0.6, alpha);
    for (const slot of tower.slots) {
      const far = slot.u + slot.size;
      tower.floors.forEach((_, floor) => {
        if (!(slot.some?.[floor] || slot.names?.[floor])) return;
        const [stream, mid] = [streams[floor], middle(floor) + half];
        line(camera, [at(slot.u - gap / 2, stream), at(slot.u - gap / 2, mid), at(slot.u - thin * 2, mid)], colours.thread, thin, alpha);
        arrow(camera, at(slot.u - 1, mid), along, colours.thread, Math.min(5, gap * 0.4), alpha);
        line(camera, [at(far, mid), at(far + gap / 2, mid), at(far + gap / 2, stream)], colours.thread, thin, alpha);
        plus(camera, at(far + gap / 2, stream), radius, alpha);
        if (slot.names) drawForward(camera, slot.boxes[floor], slot.names[floor], alpha);
      });
    }
  }
  for (const [order, tower] of towers.entries())
    for (const slot of tower.slots) {
      const from = slot.isCross ? of(slot.parts[0].key) : -1;
      if (from < 0 || from >= order) continue;
      const [, out] = ends(towers[from]), u = slot.u - gap - bus * 0.45, foot = V - (isTurned ? thick : s * 1.05);
      const floors = [...slot.some.keys()].filter((floor) => slot.some[floor]), enter = (floor) => middle(floor) + deep * HIGH;
      const wide = Math.max(1.4, thick * 0.5);
      line(camera, [at(out, last(towers[from])), at(out, foot), at(u, foot), at(u, enter(floors[0])), at(slot.u - 6, enter(floors[0]))], colours.keys, wide, alpha, 5);
      for (const floor of floors) {
        line(camera, [at(u, enter(floor)), at(slot.u - 6, enter(floor))], colours.keys, wide, alpha);
        arrow(camera, at(slot.u - 1, enter(floor)), along, colours.keys, Math.min(7, gap * 0.6), alpha);
      }
      if (!isTurned) camera.text("keys and values", out + s, foot - s * 0.85, { colour: colours.keysText, alpha });
    }
  drawNames(state, camera, place, alpha);
}

/** Whether the name of a box fits into it. */
const isNamed = (camera, { w, h }, name) =>
  Math.max(w, h) >= camera.width(nameOf(name), camera.s) * 0.85 && Math.min(w, h) >= camera.s;

/** What is no attention: a box with its name where that fits. */
export function drawForward(camera, box, name, alpha) {
  const { cx, colours } = camera, text = nameOf(name), isWide = box.w > box.h;
  camera.fill(box, colours.forward, alpha);
  if (!isNamed(camera, box, name)) return;
  cx.save();
  cx.translate(box.x + box.w / 2, box.y + box.h / 2);
  if (!isWide) cx.rotate(-Math.PI / 2);
  camera.text(text, 0, 1, { align: "center", colour: colours.forwardText, alpha, most: Math.max(box.w, box.h) - 4 });
  cx.restore();
}

/** The kind of attention that heads of a slot are, with what sets it apart. */
function titleOf(state, { parts }) {
  const notes = [...new Set(parts.map(({ kind }) => state.look.notes?.[kind]).filter(Boolean))];
  const isMasked = parts.some((part) => part.kind !== "cross" && part.key === part.query && part.cells.includes(0));
  return [parts.map(({ name }) => name).join(" / "), ...(isMasked ? ["masked"] : []), ...notes].join(", ");
}

/** A text on the thread, which gives way to it. */
function written(camera, text, x, y, look) {
  const { s, colours } = camera, long = Math.min(look.most ?? Infinity, camera.width(text, s, look.weight)) + 8;
  camera.fill({ x: look.align === "right" ? x - long : x, y: y - s * 0.7, w: long, h: s * 1.4 }, colours.paper, look.alpha, 0);
  camera.text(text, x, y, look);
}

/** Names of towers, layers and heads, and what comes in and out. */
export function drawNames(state, camera, place, alpha) {
  const { s, m, W, H, colours, isNarrow } = camera, { towers, isTurned, isBelow, top, first, streams, deep, middle, long, pad } = place;
  const quiet = { colour: colours.soft, alpha };
  towers.forEach((tower, order) => {
    const [slot, ...others] = tower.slots.filter(({ parts }) => parts);
    if (isBelow) {
      const wide = camera.width("layers 1 to 9 →", s);
      for (const each of [slot, ...others]) {
        const y = each === slot ? tower.from - s * 0.75 : each.u - each.before + s * 0.75;
        written(camera, titleOf(state, each), 0, y, { weight: 650, alpha, most: W - wide });
        if (!order && each === slot && tower.floors.length > 1) camera.text(`layers 1 to ${tower.floors.length} →`, W, y, { ...quiet, align: "right" });
        if (each.isCross) written(camera, "keys and values", W, y, { colour: colours.keysText, align: "right", alpha });
      }
      return;
    }
    if (isTurned) {
      const start = tower.start, from = start ? camera.width(start, s) + 2 * s : 0;
      camera.text(start, 0, s * 0.8, quiet);
      camera.text(titleOf(state, slot), Math.max(top, from), s * 0.8, { weight: 650, px: m, alpha, most: W - Math.max(top, from) });
      return;
    }
    camera.text(tower.start, tower.from + pad * 0.3 + s * 0.75, s * 0.75, quiet);
    for (const each of [slot, ...others])
      camera.text(titleOf(state, each), each.u, s * (isNarrow ? 2 : 2.1), { weight: 650, alpha, most: each.size + s });
  });
  const [tower] = towers.toSorted((a, b) => b.floors.length - a.floors.length), heads = tower.slots.find(({ parts }) => parts);
  if (!isTurned) {
    if (!isNarrow) camera.text("layer", 0, streams[0] - s * 0.95, quiet);
    tower.floors.forEach((_, at) => camera.text(String(at + 1), s * 0.25, middle(at) + deep / 2, { ...quiet, weight: 600 }));
    if (!isNarrow) for (const { head, box } of numbered(place)) camera.text(String(head + 1), box.x + box.w / 2, streams[0] - s * 0.95, { ...quiet, align: "center" });
    const short = towers.flatMap(({ slots }) => slots).filter(({ names, boxes }) => names && !isNarrow && !isNamed(camera, boxes[0], names[0]));
    for (const { names, boxes: [{ x, w }] } of short) camera.text(nameOf(names[0]), x + w / 2, streams[0] - s * 0.95, { ...quiet, align: "center" });
  } else if (!isBelow) {
    tower.floors.forEach((_, at) => camera.text(String(at + 1), middle(at) + deep / 2, first - s * 1.1, { ...quiet, align: "center", weight: 600 }));
    camera.text("layer", top - s * 0.9, first - s * 1.1, { ...quiet, align: "right" });
    for (let head = 0; head < heads.heads && long > s * 0.9; head++)
      camera.text(head ? String(head + 1) : "head 1", top - s * 0.9, heads.boxes[0].y + (long + (heads.size - long * heads.heads) / (heads.heads - 1 || 1)) * head + long / 2, { ...quiet, align: "right" });
    for (const { names, boxes } of tower.slots)
      if (names) camera.text(nameOf(names[0]), top - s * 0.9, boxes[0].y + boxes[0].h / 2, { ...quiet, align: "right" });
  }
  const best = (state.answers() ?? state.answersAt())?.[0], y = H - s * 0.75;
  const what = best ? `${best[0].trim() || "(space)"} ${percent(best[1])}` : "", wide = what ? camera.width(what, m, 650) + s * 0.7 : 0;
  camera.text(what, W, y, { align: "right", px: m, weight: 650, colour: colours.selected, alpha });
  camera.text(towers.at(-1).end, W - wide, y + 1, { ...quiet, align: "right" });
}

/** The heads of the first floor, whose numbers stand above them. */
function* numbered({ tiles, long }) {
  if (long < NUMBERED) return;
  for (const { part, where, box } of tiles)
    if (where.layer === 0 && part.numbers[0] === 1) yield { head: where.head, box };
}

/** What the sentence says: the selected row in all heads of a kind, and in those that agree its cell. */
function drawMarks(state, camera, tiles, alpha) {
  const part = state.part(), row = state.row(), { column, agreeing } = state.agreeing(), { colours, cx } = camera;
  for (const { part: own, tile, box } of tiles) {
    if (own !== part || state.isCovered(part, tile, row)) continue;
    const [wide, high] = [box.w / part.columns, box.h / part.rows], y = box.y + high * row;
    if (box.h > TICKED && !camera.isNarrow) camera.fill({ x: box.x - 3, y, w: 3, h: Math.max(2, high) }, colours.frame, alpha, 1);
    if (!agreeing.includes(tile)) continue;
    cx.save();
    [cx.globalAlpha, cx.strokeStyle, cx.lineWidth] = [alpha, colours.frame, 1.6];
    cx.beginPath();
    cx.roundRect(box.x + wide * column - 1.5, y - 1.5, wide + 3, high + 3, 2.5);
    cx.stroke();
    cx.restore();
  }
}

/** The figure; `z`: how far its tiles are on their way to the heads, where they stand as `next` has
 * them; `maps`: how far this view is seen. */
export function drawMaps(state, camera, { z, next, maps, pointed }) {
  const place = floorsPlace(state, camera), alpha = maps * clamp(1 - 2.6 * z), seen = Math.max(maps, clamp(1.6 * z));
  drawFigure(state, camera, place, alpha);
  if (seen <= 0) return;
  for (const each of next ?? place.tiles) drawTile(state, camera, each, each.box, seen);
  if (alpha > 0) drawMarks(state, camera, place.tiles, alpha);
  const own = (next ?? place.tiles).find(({ where }) => isSelected(state, where));
  camera.box(own.box, seen, 3.5);
  const under = pointed && !z ? place.tiles.find(({ where }) => JSON.stringify(where) === JSON.stringify(pointed)) : null;
  if (under && under !== own) camera.box(under.box, 0.5 * seen, 3, 2);
}
