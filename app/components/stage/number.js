// Depth 4: how one query and one key give one weight: their numbers, the products as steps that add up to
// q · k, and below them what becomes of it.

import { inkOn, ramp, stopsOf } from "../shared/colours.js";
import { one, power, productsOf, share, signed, stepsOf, two } from "./arithmetic.js";
import { between, clamp, ease, lerp } from "./camera.js";
import { numberPlace } from "./layout.js";
import { numbersOf } from "./row.js";

const LABELLED = 8; // steps that say their number, at most
const LEAST = 13; // px of a letter

/** A share that a softmax gave: never 0%. */
const given = (weight) => (weight > 0 ? share(weight) : "<1%");

/** The selected query and key, number by number, and what comes of them: `terms` of arithmetic.js, `sum`,
 * `score`, `logSum`, `weight` and whether the row `isMasked` there; null until they have come. */
export function wayOf(state) {
  const found = state.answered(state.vectorsOf()), numbers = numbersOf(state);
  if (!found || !numbers) return null;
  const { q, k } = found, [queries, keys] = state.sides(), row = state.row() * queries.every, key = state.column() * keys.every;
  const terms = productsOf(q.data.subarray(row * q.columns, (row + 1) * q.columns), k.data.subarray(key * k.columns, (key + 1) * k.columns));
  const isMasked = !numbers.allowed.has(key), weight = state.isScaled ? numbers.own[key] : numbers.weights[key];
  return { terms, sum: terms.reduce((sum, { product }) => sum + product, 0), raw: numbers.raw[key], score: numbers.scaled[key], isMasked, weight,
    logSum: numbers.logSum, isOwn: !state.isScaled || numbers.isOwn, said: isMasked ? "0%" : given(weight) };
}

/** The product that is pointed at, or else chosen, or else the largest. */
export function termOf(state, { terms }) {
  const { pointedTerm, term } = state, chosen = pointedTerm ?? term;
  return chosen in terms ? chosen : terms.reduce((best, { size }, at) => (size > terms[best].size ? at : best), 0);
}

/** What the selected product says aloud. */
export function spokenTerm(state) {
  const way = wayOf(state);
  if (!way) return "";
  const at = termOf(state, way), { q, k, product } = way.terms[at], { to } = stepsOf(way.terms, state.number === 1)[at];
  return `number ${at + 1}: ${one(q)} × ${one(k)} = ${one(product)}, the sum so far ${one(to)}`;
}

/** `u`: how far the bar has become steps, `from` there; `order`: from 0, in order, to 1, the largest first. */
export function drawNumber(state, camera, u, order, from) {
  const way = wayOf(state);
  if (!way || state.isCovered(state.part(), state.tileOf(state.part()), state.row())) return;
  const { terms } = way, { m, colours, isNarrow } = camera, place = numberPlace(state, camera, terms), alpha = clamp(2 * u - 1);
  const [plain, sorted] = [stepsOf(terms, false), stepsOf(terms, true)], chosen = termOf(state, way), isSettled = order === 0 || order === 1;
  const steps = terms.map((_, n) => ({ at: lerp(plain[n].at, sorted[n].at, order), from: lerp(plain[n].from, sorted[n].from, order), to: lerp(plain[n].to, sorted[n].to, order) }));
  const [most, least] = [Math.max, Math.min].map((end) => lerp(...[plain, sorted].map((each) => end(0, ...each.map(({ to }) => to))), order)), scale = place.tall / (most - least || 1), y = (value) => place.top + (most - value) * scale;
  const left = (n) => place.x + steps[n].at * place.each;
  drawStrips(state, camera, place, terms, left, alpha, chosen);
  camera.fill({ x: place.x, y: y(0) - 0.75, w: place.w, h: 1.5 }, colours.line, alpha, 0);
  if (!isNarrow) camera.text("0", place.x - m * 0.7, y(0), { align: "right", px: m, colour: colours.soft, alpha });
  const boxes = terms.map((_, n) => {
    const [a, b] = [y(steps[n].from), y(steps[n].to)];
    return { x: left(n) + place.each * 0.1, y: Math.min(a, b) - (Math.abs(a - b) < 2 ? 1 : 0), w: place.each * 0.8, h: Math.max(2, Math.abs(a - b)) };
  });
  terms.forEach(({ product }, n) => {
    const slice = from && { ...from, y: from.y + (from.h * (terms.length - 1 - n)) / terms.length, h: from.h / terms.length + 0.5 };
    const seen = u < 1 && slice ? between(slice, boxes[n], ease(u)) : boxes[n];
    if (u < 1) camera.fill(seen, camera.colour(way.weight), 1 - u, 2);
    camera.fill(seen, product >= 0 ? colours.done : colours.lost, u, 2);
    const next = terms.findIndex((__, other) => steps[other].at === steps[n].at + 1);
    if (isSettled && next >= 0) camera.fill({ x: left(n) + place.each * 0.9, y: y(steps[n].to) - 0.5, w: place.each * 0.2, h: 1 }, colours.pale, alpha * 0.6, 0);
  });
  if (!isSettled || alpha <= 0) return;
  const { q, k, product } = terms[chosen], middle = left(chosen) + place.each / 2, line = isNarrow ? 1.5 : 2;
  camera.box({ x: left(chosen), y: place.strips[0], w: place.each, h: place.strips[1] + place.high - place.strips[0] }, alpha, 1, 2);
  const drop = boxes[chosen].y - place.said;
  camera.fill({ x: middle - line / 2, y: place.strips[1] + place.high + 2, w: line, h: Math.max(0, place.said - m * 0.65 - place.strips[1] - place.high - 2) }, colours.frame, alpha, 0);
  camera.fill({ x: middle - line / 2, y: place.said + m * 0.65, w: line, h: Math.max(0, drop - m * 0.65 - 3) }, colours.frame, alpha, 0);
  camera.box(boxes[chosen], alpha, 2, 2);
  const text = `${two(q)} × ${two(k)} = ${signed(product)}`, half = camera.width(text, m, 650) / 2;
  camera.text(text, Math.max(half, Math.min(camera.W - half, middle)), place.said, { px: m, weight: 650, align: "center",
    colour: product >= 0 ? colours.done : colours.lost, alpha });
  const end = y(way.sum), total = { x: place.x + place.w, y: end - m * 0.7, w: camera.W, h: m * 1.4 };
  drawLabels(camera, place, terms, [...boxes, total], chosen, alpha);
  camera.fill({ x: place.x + place.w, y: end - 0.75, w: place.gap * 0.6, h: 1.5 }, colours.ink, alpha, 0);
  camera.text(one(way.sum), place.x + place.w + place.gap, end, { px: isNarrow ? m : m * 1.2, weight: 650, alpha });
  const reckoned = stations(state, way), near = clamp(1.4 * alpha - 0.4);
  if (isNarrow) drawLines(camera, place, linesOf(reckoned), near);
  else drawWay(camera, place, reckoned, near);
}

/** The numbers of query and key, with digits where there is room. */
function drawStrips(state, camera, place, terms, left, alpha, chosen) {
  const { s, m, colours, isNarrow } = camera, colour = ramp(stopsOf(state.look.differences, state.ink));
  const most = Math.max(...terms.flatMap(({ q, k }) => [Math.abs(q), Math.abs(k)])) || 1, px = Math.max(LEAST, s * 0.93);
  const room = Math.max(...terms.flatMap(({ q, k }) => [q, k]).map((value) => camera.width(one(value), px))) + 2;
  place.names.forEach(([side, word], strip) => {
    const y = place.strips[strip], look = { px: m, colour: colours.soft, alpha }, bold = { px: m, weight: 650, colour: strip ? colours.ink : colours.selected, alpha };
    const [start, at] = isNarrow ? [0, y - m * 0.75] : [Math.max(0, place.x - s * 0.9 - camera.width(`${side} `, m) - Math.min(place.most, camera.width(word, m, 650))), y + place.high / 2];
    camera.text(side, start, at, look);
    camera.text(word, start + camera.width(`${side} `, m), at, { ...bold, most: place.most });
    terms.forEach((term, n) => {
      const value = strip ? term.k : term.q, rgb = colour(0.5 + value / (2 * most)).map(Math.round);
      camera.fill({ x: left(n) + 1, y, w: place.each - (isNarrow ? 1 : 2), h: place.high }, `rgb(${rgb})`, alpha, isNarrow ? 2 : 3);
      if (room <= place.each) camera.text(one(value), left(n) + place.each / 2, y + place.high / 2 + 1,
        { align: "center", px, weight: n === chosen ? 650 : 400, colour: inkOn(rgb), alpha });
    });
  });
}

/** The largest products beside their steps, where they cover nothing. */
function drawLabels(camera, place, terms, boxes, chosen, alpha) {
  const { s, colours } = camera, taken = [...boxes], px = Math.max(LEAST, s), apart = (a, b) => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
  for (const n of [...terms.keys()].toSorted((a, b) => terms[b].size - terms[a].size).slice(0, LABELLED)) {
    if (n === chosen) continue; // it has said so above
    const { product } = terms[n], text = signed(product), w = camera.width(text, px, 600), step = boxes[n];
    const box = { x: step.x + step.w / 2 - w / 2, w, h: px * 1.15, y: product >= 0 ? step.y - px * 1.35 : step.y + step.h + px * 0.2 };
    if (box.x < 0 || box.y < place.said + px || box.y + box.h > place.top + place.tall + px || taken.some((other) => !apart(box, other))) continue;
    taken.push(box);
    camera.text(text, box.x + w / 2, box.y + box.h / 2, { align: "center", px, weight: 600, colour: product >= 0 ? colours.done : colours.lost, alpha });
  }
}

/** The way from q · k to the weight: its `numbers`, each with its name, what is done to each, `acts`, with
 * what it is raised to; of the last, the `share` of `all` that is left. */
function stations(state, { raw, score, logSum, isMasked, weight, said }) {
  const width = state.vectors.v.columns || "d", root = state.isScaled ? `÷ √${width}` : `no ÷ √${width}`;
  return {
    numbers: [[one(raw), "q · k"], [two(score), "score"], [isMasked ? "0" : power(score), isMasked ? "masked" : "e to the score"], [said, "weight"]],
    acts: [[root, ""], [isMasked ? "masked" : "e", isMasked ? "" : two(score)], [`÷ ${power(logSum)}`, ""]],
    share: isMasked ? null : weight, all: "the sum of the row",
  };
}

/** On a wide screen in one line, with arrows; the last one is the whole row, of which this key has a part. */
export function drawWay(camera, { x, foot }, { numbers, acts, share, all }, alpha) {
  const { W, s, cx, colours } = camera, last = numbers.length - 1;
  let [big, l, m] = [camera.l * 1.65, camera.l, camera.m];
  const wide = () => numbers.map(([number, name]) => Math.max(camera.width(number, big, 650), camera.width(name, m)));
  const most = () => Math.max(...acts.map(([act, raised]) => camera.width(act, l) + camera.width(raised, m))) + l * 1.6;
  const room = (sizes) => (W - x - sizes.reduce((sum, size) => sum + size, 0)) / acts.length;
  while (m > LEAST && room(wide()) < most()) {
    if (big > l) big *= 0.95; // first the numbers, which are largest
    else [big, l, m] = [big, l, m].map((size) => size * 0.95);
  }
  const sizes = wide(), each = room(sizes), line = foot + big * 0.5;
  let at = x;
  numbers.forEach(([number, name], n) => {
    const colour = n === last ? colours.selected : colours.ink;
    camera.text(number, at, line, { px: big, weight: 650, colour, alpha });
    camera.text(name, at, foot + big + m * 0.6, { px: m, colour: colours.soft, alpha });
    at += sizes[n];
    if (n === last) return;
    const [act, raised] = acts[n], wideAct = camera.width(act, l) + camera.width(raised, m), from = at + s * 0.9, to = at + each - s * 0.9, under = foot + big * 0.82;
    const start = (from + to - wideAct) / 2;
    camera.text(act, start, under - l * 0.75, { px: l, colour: colours.ink, alpha });
    if (raised) camera.text(raised, start + camera.width(act, l), under - l * 1.1, { px: m, colour: colours.ink, alpha });
    if (n === last - 1 && share !== null) {
      camera.fill({ x: from, y: under - 4, w: to - from, h: 10 }, colours.line, alpha, 3);
      camera.fill({ x: from, y: under - 4, w: (to - from) * Math.min(1, share), h: 10 }, camera.colour(share), alpha, 3);
      camera.text(all, (from + to) / 2, foot + big + m * 0.6, { px: m, align: "center", colour: colours.soft, alpha, most: each });
    } else {
      camera.fill({ x: from, y: under - 0.75, w: to - from - 6, h: 1.5 }, colours.pale, alpha, 0);
      cx.globalAlpha = alpha;
      cx.fillStyle = colours.pale;
      cx.beginPath();
      cx.moveTo(to, under);
      cx.lineTo(to - 8, under - 4.5);
      cx.lineTo(to - 8, under + 4.5);
      cx.fill();
      cx.globalAlpha = 1;
    }
    at += each;
  });
}

/** The same for a narrow screen, line by line: [what is reckoned, what comes out, its name]. */
function linesOf({ numbers: [[raw], [score], [raised], [weight]], acts: [[root], , [sum]], share }) {
  const first = [`${raw} ${root} = `, score, "score"];
  if (share === null) return [first, ["masked: ", "0%", "weight"]];
  return [first, [`e to the ${score} = `, raised, ""], [`${raised} ${sum} = `, weight, "weight"]];
}

export function drawLines(camera, { foot }, lines, alpha) {
  const { m, l, colours } = camera;
  lines.forEach(([text, result, name], n) => {
    const y = foot + l * (0.65 + 1.3 * n), isLast = n === lines.length - 1, px = l * 0.9, wide = camera.width(text, px), end = wide + camera.width(result, px, 650);
    camera.text(text, 0, y, { px, colour: colours.soft, alpha });
    camera.text(result, wide, y, { px, weight: 650, colour: isLast ? colours.selected : colours.ink, alpha });
    camera.text(name, end + 8, y + 1, { px: m, colour: colours.soft, alpha });
  });
}

/** The product at a point, as its place among the numbers of the vectors; null beside them. */
export function numberAt(state, camera, x, y) {
  const way = wayOf(state);
  if (!way) return null;
  const place = numberPlace(state, camera, way.terms), at = Math.floor((x - place.x) / place.each);
  if (y < 0 || y > place.foot) return null;
  const found = stepsOf(way.terms, state.number === 1).findIndex((step) => step.at === at);
  return found < 0 ? null : found;
}
