// Two bars a word: the attention that it has, and what hiding it costs the prediction. On a narrow screen
// words go down.

import { percent } from "../shared/numbers.js";

const LITTLE = 0.03; // of attention, whose bar has no colour
export const COSTS = 0.05; // of a probability, from which on a loss counts
const MOST = 40; // words that have a bar

/** Where the words stand: `at`, the middle of each of those that are `shown`, and the lengths of bars. */
export function needsPlace(state, camera, { words, attention, probability, all }) {
  const { W, H, s, m, isNarrow } = camera, heard = [...words.keys()], cost = (at) => all - probability[at];
  const best = new Set(heard.toSorted((a, b) => attention[b] + cost(b) - attention[a] - cost(a)).slice(0, MOST));
  const shown = heard.filter((at) => best.has(at)), from = isNarrow ? s * 2 : Math.max(camera.width("probability of nnnnn", s), s * 8);
  const each = ((isNarrow ? H : W) - from) / shown.length;
  const middle = isNarrow ? W * 0.46 : H * 0.53, word = isNarrow ? Math.min(W * 0.13, Math.max(...shown.map((at) => camera.width(words[at], m, 650))) / 2 + s * 0.7) : m * 1.15;
  return { shown, each, from, middle, word, at: (nth) => from + each * (nth + 0.5), up: middle - word - m * 2.1, down: (isNarrow ? W : H) - middle - word - m * (isNarrow ? 2.7 : 2.1) };
}

export function drawNeeds(state, camera, found, alpha) {
  if (alpha <= 0 || !found?.words.length) return;
  const { s, m, l, colours, isNarrow } = camera, { words, attention, probability, all, side, tokens } = found;
  const { shown, each, from, middle, word, at, up, down } = needsPlace(state, camera, found), most = Math.max(...attention, 1e-9);
  const thick = isNarrow ? Math.min(each * 0.66, s * 2.4) : Math.min(each * 0.6, s * 6), { token } = state;
  const box = (place, start, long) => (isNarrow ? { x: Math.min(start, start + long), y: place - thick / 2, w: Math.abs(long), h: thick }
    : { x: place - thick / 2, y: Math.min(start, start + long), w: thick, h: Math.abs(long) });
  const strongest = attention.indexOf(most), isWide = each > camera.width("88% → <1%", s, 650) + 4, hasRoom = isNarrow || each > camera.width("88%", s) + 2;
  shown.forEach((index, nth) => {
    const place = at(nth), weight = attention[index], lost = all - probability[index], isLost = lost >= COSTS;
    const long = Math.max(1.5, (up * weight) / most), fall = Math.max(1.5, (down * Math.max(0, lost)) / (all || 1));
    camera.fill(box(place, middle - word, -long), weight < LITTLE ? colours.flat : camera.colour(weight), alpha);
    camera.fill(box(place, middle + word, fall), isLost ? colours.lost : colours.flat, alpha);
    const isOn = index === strongest, shownWeight = percent(weight), after = percent(probability[index]);
    const loss = isLost ? (isWide && !isNarrow ? `${percent(all)} → ${after}` : after) : after, look = { align: "center", alpha };
    const name = { ...look, px: m, weight: isOn || isLost ? 650 : 400, colour: isOn || isLost ? colours.ink : colours.soft };
    const lossLook = { alpha, px: isLost ? m : s, weight: isLost ? 650 : 400, colour: isLost ? colours.lost : colours.pale };
    if (isNarrow) {
      camera.text(words[index], middle, place, { ...name, most: 2 * word - 4 });
      if (weight >= 0.01) camera.text(shownWeight, middle - word - long - 6, place, { align: "right", weight: isOn ? 650 : 400, colour: isOn ? colours.ink : colours.soft, alpha });
      camera.text(after, camera.W, place, { ...lossLook, px: s, align: "right" });
    } else {
      camera.text(words[index], place, middle, { ...name, most: each - 2 });
      if (hasRoom || isOn) camera.text(shownWeight, place, middle - word - long - m * 0.8, { ...look, px: isOn ? l * 0.86 : m, weight: isOn ? 650 : 400, colour: isOn ? colours.ink : colours.soft });
      if (hasRoom || isLost) camera.text(loss, place, middle + word + fall + m * 0.8, { ...lossLook, align: "center" });
    }
    const [first, end] = tokens[index];
    if (token?.side === side && token.index >= first && token.index < end) camera.box(box(place, middle - word, 2 * word), alpha, 0, 2);
  });
  const target = state.answersAt()[0][0].trim(), quiet = { colour: colours.soft, alpha };
  if (isNarrow) {
    camera.text("attention", middle - word, s * 0.8, { ...quiet, align: "right" });
    camera.text("without the word", middle + word, s * 0.8, quiet);
    return;
  }
  const left = { align: "right", alpha }, x = from - s * 0.6;
  camera.text("attention", x, middle - word - up / 2, { ...left, px: m, weight: 650 });
  camera.text(`mean of ${state.headsOf(found.kind)} heads`, x, middle - word - up / 2 + s * 1.5, { ...left, colour: colours.soft });
  camera.text("without it", x, middle + word + down / 2, { ...left, px: m, weight: 650 });
  camera.text(`probability of ${target}`, x, middle + word + down / 2 + s * 1.5, { ...left, colour: colours.soft, most: from - s });
}

/** The token of a word at a point, which acts are about; null beside them. */
export function neededAt(state, camera, found, x, y) {
  const { shown, each, from } = needsPlace(state, camera, found), index = shown[Math.floor(((camera.isNarrow ? y : x) - from) / each)];
  return index === undefined ? null : { side: found.side, index: found.tokens[index][0] };
}
