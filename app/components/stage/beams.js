// A beam search: a column for each word, in it the beginnings that were kept, best first, each with a line from
// the one that it continues; at the right the texts that were found. Where columns are too narrow for words
// these are dots, and the words of one column are written.

import { wordOf } from "./after.js";
import { chance, ofText, two } from "./arithmetic.js";

const WORDS = 3.6; // letters of a column, from which on it has words
const DEAD = 0.35; // of the ink of what leads to no text
const DASHES = [5, 4]; // of the way of greedy decoding

/** Where the tree stands: columns `each` wide from the left, lanes `high` from `top` on; at the right, or on a
 * narrow screen below, the lines of its ends, `line` each from `ends` on. */
export function beamsPlace(camera, { steps, width, ends }) {
  const { W, H, s, m, isNarrow } = camera, count = Math.max(1, steps.length), lanes = Math.max(width, ...steps.map((step) => step.filter(({ ended }) => !ended).length));
  const side = isNarrow ? 0 : Math.min(W * 0.36, s * 26), tall = isNarrow ? H - ends.length * m * 2.9 - m : H, top = s * 1.9;
  const each = (W - side) / count, right = W - side + s * 1.4, from = isNarrow ? tall + m : top, line = (H - from) / Math.max(1, ends.length, isNarrow ? 1 : width);
  return { each, lanes, top, high: (tall - top) / lanes, tall, right, ends: from, line, hasWords: each >= WORDS * s && !isNarrow };
}

export function drawBeams(state, camera, found, alpha) {
  const { s, m, cx, colours, isNarrow } = camera, { steps, ends } = found, place = beamsPlace(camera, found), { each, hasWords } = place;
  const chosen = state.at, lanes = steps.map((step) => step.filter(({ ended }) => !ended)), hasName = (step) => hasWords || step === chosen;
  const at = (step, node) => ({ x: each * (step + 0.5), y: place.top + place.high * (lanes[step].indexOf(steps[step][node]) + 0.5) });
  const half = (step, node) => (hasWords ? Math.min(each - 10, camera.width(wordOf(steps[step][node].label), m, 650)) / 2 + 5 : 4);
  const line = ({ found: isFound, greedy }, from, to, visible = alpha) => {
    const middle = (from.x + to.x) / 2;
    Object.assign(cx, { globalAlpha: visible, strokeStyle: isFound ? colours.done : greedy ? colours.ink : colours.thread, lineWidth: isFound ? 3.5 : greedy ? 2 : 1.6 });
    cx.setLineDash(greedy && !isFound ? DASHES : []);
    cx.beginPath();
    cx.moveTo(from.x, from.y);
    cx.bezierCurveTo(middle, from.y, middle, to.y, to.x, to.y);
    cx.stroke();
  };
  const alive = aliveIn(found), seen = (node) => (alive.has(node) ? alpha : alpha * DEAD);
  cx.save();
  for (const isOn of [false, true]) // what leads somewhere lies above the rest
    steps.forEach((step, n) => step.forEach((node, i) => {
      if ((node.found || node.greedy) !== isOn || node.parent === null || node.ended) return;
      const from = at(n - 1, node.parent), to = at(n, i);
      line(node, { ...from, x: from.x + half(n - 1, node.parent) }, { ...to, x: to.x - half(n, i) }, seen(node));
    }));
  if (!isNarrow)
    ends.forEach((end, nth) => {
      const { step, node } = end, one = steps[step][node], isEnded = one.ended && one.parent !== null, [n, i] = isEnded ? [step - 1, one.parent] : [step, node], from = one.ended && !isEnded ? at(0, 0) : at(n, i);
      line({ found: end.is_found, greedy: end.is_greedy }, { ...from, x: from.x + half(n, i) }, { x: place.right - 8, y: place.ends + place.line * (nth + 0.5) });
    });
  cx.restore();
  const every = Math.max(1, Math.ceil((1.5 * camera.width("word 100", s)) / each));
  lanes.forEach((nodes, n) => {
    const title = `word ${n + 1}`, middle = camera.width(title, s) / 2;
    if (nodes.length && !(n % every)) camera.text(title, Math.max(middle, Math.min(camera.W - middle, each * (n + 0.5))), s * 0.8, { align: "center", colour: n === chosen ? colours.selected : colours.pale, alpha });
    nodes.forEach((node) => {
      const { x, y } = at(n, steps[n].indexOf(node)), isOn = node.found || node.greedy, colour = node.found ? colours.done : isOn ? colours.ink : colours.soft;
      if (!hasName(n)) return camera.fill({ x: x - 3, y: y - 3, w: 6, h: 6 }, colour, seen(node));
      const text = wordOf(node.label), px = isNarrow ? s : m, own = camera.width(text, px, 650), wide = hasWords ? Math.min(each - 6, own) : own, left = Math.max(0, Math.min(camera.W - wide, x - wide / 2));
      camera.fill({ x: left - 2, y: y - m * 0.75, w: wide + 4, h: m * (hasWords ? 2.5 : 1.5) }, colours.paper, alpha);
      camera.text(text, left + wide / 2, y, { px, align: "center", weight: isOn ? 650 : 400, colour, alpha: seen(node), most: wide });
      if (hasWords && place.high > m * 2.6) camera.text(chance(node.probability), x, y + m * 1.15, { px: Math.max(13, s * 0.93), align: "center", colour: colours.pale, alpha: seen(node) });
    });
  });
  drawEnds(camera, found, place, alpha);
}

/** The beginnings that lead to one of the texts at the right. */
function aliveIn({ steps, ends }) {
  const alive = new Set();
  for (const { step, node } of ends)
    for (let [n, i] = [step, node]; n >= 0 && i !== null; [n, i] = [n - 1, steps[n][i].parent]) alive.add(steps[n][i]);
  return alive;
}

/** The words in which a text differs from another one, between dots. */
function differing(words, other) {
  let [from, to] = [0, 0];
  const most = Math.min(words.length, other.length);
  while (from < most && words[from] === other[from]) from++;
  while (to < most - from && words.at(-1 - to) === other.at(-1 - to)) to++;
  const own = words.slice(from, words.length - to);
  if (from === words.length && from === other.length) return "the same text, in other tokens";
  return own.length ? `${from ? "… " : ""}${own.join(" ")}${to ? " …" : ""}` : `… ${words.slice(Math.max(0, from - 1), from + 1).join(" ")} …`;
}

/** The texts that were found: what differs in them, with score and probability. */
function drawEnds(camera, { ends }, { right, ends: top, line }, alpha) {
  const { W, s, m, colours, isNarrow } = camera, texts = ends.map(({ text }) => text.split(" "));
  const quiet = { colour: colours.pale, alpha, align: "right" }, score = W - camera.width("probability", s) - s, most = score - s * 3.4 - right;
  if (!isNarrow) {
    camera.text("score", score, s * 0.8, quiet);
    camera.text("probability", W, s * 0.8, quiet);
  }
  ends.forEach(({ score: value, probability, is_found: isFound, is_greedy: isGreedy }, nth) => {
    const y = top + line * (nth + 0.5), text = (nth ? differing(texts[nth], texts[0]) : texts[0].join(" ")).trim() || "nothing";
    const look = { px: m, weight: isFound || isGreedy ? 650 : 400, colour: isFound ? colours.done : colours.ink, alpha };
    const number = { ...look, weight: isFound ? 650 : 400, colour: isFound ? colours.done : colours.soft };
    if (isNarrow) {
      camera.text(fitted(camera, text, W, look), 0, y - m * 0.6, look);
      return camera.text(`${ofText(probability)}, score ${two(value)}${isGreedy ? ", greedy" : ""}`, 0, y + m * 0.6, { ...number, px: s });
    }
    camera.text(fitted(camera, text, most, look), right, y, look);
    camera.text(two(value), score, y, { ...number, align: "right" });
    camera.text(ofText(probability), W, y, { ...number, align: "right" });
  });
}

/** As many letters of a text as there is room for, its end among them. */
function fitted(camera, text, most, { px, weight }) {
  let shown = text;
  while (camera.width(shown, px, weight) > most && shown.length > 3) shown = `…${shown.replace(/^… ?/, "").slice(2)}`;
  return shown;
}

/** The column at a point. */
export const columnAt = (camera, found, x) => Math.max(0, Math.min(found.steps.length - 1, Math.floor(x / beamsPlace(camera, found).each)));
