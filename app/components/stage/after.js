// What the model would write if it stopped after each layer: floors × words, with ink where a word is
// final already. On a narrow screen words go down, and the last floors stand beside each other.

import { percent } from "../shared/numbers.js";

const DEEPEST = 3; // floors on a narrow screen
const LOW = 2.3; // in letters: a cell that is lower has no number

export const wordOf = (text) => text.trim() || "␣";

/** Where the grid stands: its box, `each` [width, height] of a cell, and what is shown of it: `floors`,
 * and `rows` of the predictions, those around the selected one where there is no room for all. */
export function afterPlace(state, camera, { answers }) {
  const { W, H, s, m, isNarrow } = camera, names = floorNames(answers.length);
  const least = isNarrow ? s * 1.25 : s * 2.2, x = isNarrow ? s * 5 : Math.max(...names.map((name) => camera.width(name, m))) + s;
  const y = m * 1.7, box = { x, y, w: W - x, h: H - y }, most = Math.max(1, Math.floor((isNarrow ? box.h : box.w) / least));
  const all = answers[0].length, start = Math.max(0, Math.min(all - most, state.answerRow() - Math.floor(most / 2)));
  const rows = Array.from({ length: Math.min(all, most) }, (_, at) => start + at);
  const floors = [...answers.keys()].slice(isNarrow ? -DEEPEST : 0), cells = isNarrow ? [floors.length, rows.length] : [rows.length, floors.length];
  return { ...box, rows, floors, names, each: [box.w / cells[0], box.h / cells[1]] };
}

const floorNames = (count) => Array.from({ length: count }, (_, at) =>
  (at === count - 1 && at ? "output" : at ? `after ${at}` : "embedding"));

export function drawAfter(state, camera, found, alpha) {
  if (alpha <= 0 || !found) return;
  const { s, m, colours, isNarrow } = camera, place = afterPlace(state, camera, found), { rows, floors, names, each: [wide, high] } = place;
  const own = state.answerRow(), { answers, probability, settled } = found, read = state.run.sides[state.run.answers.side].labels, gap = isNarrow ? 1.5 : s > 16 ? 3 : 2.5;
  const cell = (floor, row) => (isNarrow ? { x: place.x + floor * wide, y: place.y + row * high } : { x: place.x + row * wide, y: place.y + floor * high });
  floors.forEach((depth, floor) => {
    const at = cell(floor, 0), look = { px: m, colour: colours.soft, alpha };
    if (isNarrow) camera.text(names[depth], at.x + wide / 2, place.y - m * 0.85, { ...look, px: s, align: "center" });
    else camera.text(names[depth], place.x - s * 0.9, at.y + high / 2, { ...look, align: "right" });
    rows.forEach((row, nth) => {
      const corner = cell(floor, nth), isFinal = depth >= settled[row], share = probability[depth][row];
      // An answer on the whole text is a bar, as long as it is probable.
      const box = { x: corner.x + gap / 2, y: corner.y + gap / 2, w: (wide - gap) * (answers[0].length === 1 ? share : 1), h: high - gap };
      camera.fill(box, camera.colour(isFinal ? share : 0), alpha);
      const colour = isFinal ? camera.inkOn(share) : colours.soft, isHigh = high >= LOW * m && !isNarrow, x = box.x + box.w / 2, y = box.y + box.h / 2;
      const text = wordOf(answers[depth][row]), number = percent(share), most = box.w - 4;
      if (isNarrow) return camera.text(`${text} ${number.replace("%", "")}`, x, y + 1, { align: "center", weight: isFinal ? 600 : 400, colour, alpha, most });
      camera.text(text, x, y + 1 - (isHigh ? s * 0.72 : 0), { align: "center", px: high > m * 1.1 ? m : s, weight: isFinal ? 650 : 400, colour, alpha, most });
      if (isHigh && most > camera.width("<1%", s)) camera.text(number, x, y + 1 + s * 0.78, { align: "center", colour, alpha, most });
    });
  });
  if (answers[0].length === 1) return;
  if (!isNarrow) camera.text("having read", place.x - s * 0.9, place.y - m * 0.85, { align: "right", colour: colours.soft, alpha });
  rows.forEach((row, nth) => {
    const isOn = row === own, corner = cell(0, nth), look = { weight: isOn ? 650 : 400, colour: isOn ? colours.ink : colours.soft, alpha };
    if (isNarrow) camera.text(wordOf(answers.at(-1)[row]), place.x - s * 0.7, corner.y + high / 2, { ...look, align: "right", most: place.x - s });
    else camera.text(read[row], corner.x + wide / 2, place.y - m * 0.85, { ...look, px: m, align: "center", most: wide - 2 });
  });
  const on = cell(0, rows.indexOf(own));
  camera.box(isNarrow ? { ...on, w: place.w, h: high } : { ...on, w: wide, h: place.h }, alpha, 0, 2);
}

/** The row of the predictions at a point; null beside them. */
export function answerAt(state, camera, found, x, y) {
  const place = afterPlace(state, camera, found), at = camera.isNarrow ? (y - place.y) / place.each[1] : (x - place.x) / place.each[0];
  return place.rows[Math.floor(at)] ?? null;
}
