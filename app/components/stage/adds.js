// The stop behind a row's mix: the logit of the word that the row writes, as a sum of all that writes to the
// residual stream, this head among the others, and what softmax makes of it. On a narrow screen a list.

import { one, power, three, two } from "./arithmetic.js";
import { between, clamp, written } from "./camera.js";
import { drawLines, drawWay } from "./number.js";

const LABELLED = 12; // steps that say their name, at most
const LIGHT = 0.6; // of the colour of what is no head

/** The parts of the logit, what they add up to, and the place of the selected head among them, −1 where it
 * adds nothing; null until they have come. */
export function addsOf(state) {
  const found = state.answered(state.addsOf());
  if (!found) return null;
  const { terms, logit, probability } = found, own = terms.findIndex(({ name }) => name === state.name());
  let sum = 0;
  const steps = terms.map(({ name, value, layer, head }) => ({ name, value, layer, head, from: sum, to: (sum += value) }));
  return { ...found, steps, own, logSum: logit - Math.log(probability), order: [...steps.keys()].toSorted((a, b) => Math.abs(steps[b].value) - Math.abs(steps[a].value)) };
}

/** Where the steps stand; of a list the steps that have a line, the last of which, −1, is of all others. */
export function addsPlace(camera, { steps, own, order }, chosen) {
  const { W, H, s, m, l, isNarrow } = camera, foot = H - (isNarrow ? l * 4 : l * 1.65 + m * 1.3);
  if (isNarrow) {
    const high = s * 1.9, lines = Math.max(3, Math.floor(foot / high) - 1), first = new Set([own, chosen].filter((n) => n >= 0));
    const shown = order.length <= lines ? order : [...order.filter((n, at) => first.has(n) || at < lines - 1 - first.size), -1];
    return { foot, each: high, shown };
  }
  const x = s * 2.2, top = m * 1.6, base = foot - s * 3, each = (W - x) / steps.length;
  const [most, least] = [Math.max, Math.min].map((end) => end(0, ...steps.map(({ to }) => to))), scale = (base - top) / (most - least || 1);
  const y = (value) => top + (most - value) * scale;
  const boxes = steps.map(({ from, to }, n) => ({ x: x + each * (n + 0.1), y: Math.min(y(from), y(to)), w: each * 0.8, h: Math.max(2, Math.abs(y(to) - y(from))) }));
  return { x, foot, base, each, y, boxes };
}

/** How far the picture has come, `u`, `from` the box of the head's output. */
export function drawAdds(state, camera, u, from) {
  const found = addsOf(state), alpha = clamp(2 * u - 1);
  if (!found || alpha <= 0) return;
  const { colours, isNarrow } = camera, chosen = found.steps[state.step] ? state.step : -1, place = addsPlace(camera, found, chosen);
  const reckoned = { numbers: [[three(found.logit), "logit"], [power(found.logit), "e to the logit"], [written(found.probability), "probability"]],
    acts: [["e", three(found.logit)], [`÷ ${power(found.logSum)}`, ""]], share: found.probability, all: `all ${found.count.toLocaleString("en")} tokens` };
  const [[logit], [raised], [share]] = reckoned.numbers;
  if (isNarrow) {
    drawList(camera, found, place, chosen, alpha);
    return drawLines(camera, place, [["total ", logit, "logit"], [`e to the ${logit} = `, raised, ""], [`${raised} ÷ ${power(found.logSum)} = `, share, "probability"]], alpha);
  }
  drawSteps(camera, found, place, chosen, alpha);
  const own = place.boxes[found.own];
  if (own && from && u < 1) camera.fill(between(from, own, u), colours.frame, 2 * (1 - u));
  drawWay(camera, place, reckoned, alpha);
}

const colourOf = ({ colours }, value) => (value >= 0 ? colours.done : colours.lost);

function drawSteps(camera, { steps, own, order }, { x, base, each, y, boxes }, chosen, alpha) {
  const { W, s, m, colours } = camera, quiet = { colour: colours.soft, alpha };
  camera.fill({ x, y: y(0) - 0.75, w: W - x, h: 1.5 }, colours.line, alpha, 0);
  camera.text("0", x - m * 0.5, y(0), { ...quiet, px: m, align: "right" });
  steps.forEach(({ value, to, head }, n) => {
    camera.fill(boxes[n], colourOf(camera, value), alpha * (head ? 1 : LIGHT), 2);
    if (n < steps.length - 1) camera.fill({ x: boxes[n].x + boxes[n].w, y: y(to) - 0.5, w: each * 0.2, h: 1 }, colours.pale, alpha * 0.6, 0);
  });
  if (own >= 0) camera.box(boxes[own], alpha, 3, 2.5);
  if (chosen >= 0 && chosen !== own) camera.box(boxes[chosen], alpha, 2, 1.5);
  drawLayers(camera, steps, { x, each, y: base + s }, quiet);
  const apart = (a, b) => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
  const taken = [...boxes, { x: 0, y: y(0) - m * 0.6, w: x - m * 0.4, h: m * 1.2 }], first = [chosen, own].filter((n) => n >= 0);
  for (const n of new Set([...first, ...order.slice(0, LABELLED)])) {
    const { name, value } = steps[n], isOn = n === chosen || n === order[0], px = isOn ? m : s, number = ` ${value >= 0 ? "+" : ""}${two(value)}`;
    const wide = camera.width(name, px, 650), w = wide + camera.width(number, px, 650), h = px * 1.15, step = boxes[n], middle = step.y + step.h / 2;
    const places = [[step.x - s * 0.5 - w, middle - h / 2], [step.x + step.w - w, step.y - h - 3], [step.x + step.w - w, step.y + step.h + 3], [step.x, step.y - h - 3], [step.x + step.w + s * 0.5, middle - h / 2]];
    const free = places.map(([left, up]) => ({ x: left, y: up, w, h })).find((box) => box.x >= 0 && box.x + w <= W && box.y >= 0 && box.y + h <= base && taken.every((other) => apart(box, other)));
    if (!free) continue;
    taken.push(free);
    camera.text(name, free.x, free.y + h / 2, { px, weight: 650, alpha });
    camera.text(number, free.x + wide, free.y + h / 2, { px, weight: 650, colour: colourOf(camera, value), alpha });
  }
}

/** A line under the steps of each layer; what stands before and behind them is said where there is room. */
function drawLayers(camera, steps, { x, each, y }, quiet) {
  const { s, colours } = camera, runs = [];
  steps.forEach(({ layer }, n) => (runs.at(-1)?.layer === layer ? (runs.at(-1).end = n + 1) : runs.push({ layer, start: n, end: n + 1 })));
  runs.forEach(({ layer, start, end }, n) => {
    const [from, wide] = [x + each * start, each * (end - start)], names = layer === null ? [n ? "biases" : "input"] : [`layer ${layer + 1}`, String(layer + 1)];
    if (layer !== null) camera.fill({ x: from + 1, y: y - 1, w: wide - 2, h: 2 }, colours.line, quiet.alpha, 0);
    const name = names.find((one) => camera.width(one, s) < Math.max(wide, each * 2) - 2) ?? (layer === null ? names[0] : "");
    const half = camera.width(name, s) / 2;
    camera.text(name, Math.max(half, Math.min(camera.W - half, from + wide / 2)), y + s * 0.95, { ...quiet, align: "center" });
  });
}

function drawList(camera, { steps, own }, { each, shown }, chosen, alpha) {
  const { W, s, m, colours } = camera, x = W * 0.38, room = W * 0.42, others = steps.filter((_, n) => !shown.includes(n));
  const rest = others.reduce((sum, { value }) => sum + value, 0), lines = shown.map((n) => steps[n] ?? { name: `${others.length} others`, value: rest });
  const values = lines.map(({ value }) => value), least = Math.min(0, ...values), scale = room / Math.max(Math.max(0, ...values) - least, 1e-9), zero = x - least * scale;
  lines.forEach(({ name, value }, at) => {
    const y = each * (at + 0.5), isOn = steps[shown[at]] && (shown[at] === own || shown[at] === chosen);
    camera.text(name, 0, y, { px: m, weight: isOn ? 650 : 400, colour: shown[at] === own ? colours.selected : colours.ink, alpha, most: x - 8 });
    camera.fill({ x: zero + Math.min(0, value * scale), y: y - each * 0.33, w: Math.max(2, Math.abs(value) * scale), h: each * 0.66 }, colourOf(camera, value), alpha, 2);
    camera.text(`${value >= 0 ? "+" : ""}${two(value)}`, W, y, { px: s, align: "right", weight: isOn ? 650 : 400, colour: colours.soft, alpha });
  });
}

/** The step at a point; null beside them. */
export function stepAt(state, camera, x, y) {
  const found = addsOf(state);
  if (!found) return null;
  const place = addsPlace(camera, found, found.steps[state.step] ? state.step : -1), at = camera.isNarrow ? place.shown[Math.floor(y / place.each)] : Math.floor((x - place.x) / place.each);
  return y < place.foot && found.steps[at] ? at : null;
}

/** What the chosen step says aloud. */
export function spokenStep(state) {
  const step = addsOf(state)?.steps[state.step];
  return step ? `${step.name} ${step.value >= 0 ? "adds" : "takes"} ${two(Math.abs(step.value))}, the sum so far ${one(step.to)}` : "";
}
