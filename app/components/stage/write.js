// What the model writes, over whatever depth one is at: word by word, and drawn at random; the search with
// beams is in beams.js. All of a view comes at once, so that going from word to word takes no message.

import { chance, ofText } from "./arithmetic.js";
import { wordOf } from "./after.js";
import { columnAt, drawBeams } from "./beams.js";
import { WRITES } from "./state.js";

const LEAST = 13; // px of a letter
const BEST = 8; // tokens of the word that is open
const NARROW = 15; // px of a column, at least
const KEPT = 3; // words before a new one, where a text is cut
const LONG = 44, HALF = 24; // letters of a text in a sentence, and of each of two

const name = (text) => [text, "name"];
const query = (text) => [text, "query"];
/** What was chosen instead of the model's own word, in short; "" of a beginning that it would not write. */
export function instead(state) {
  const found = foundOf(state);
  if (!found?.given || !found.steps.length) return "";
  const { best, chosen } = found.steps[Math.min(found.given, found.steps.length) - 1], word = wordOf(best[chosen][0]);
  return found.instead ? `${wordOf(found.instead)} → ${word}` : `… ${word}`;
}

const short = (text, most = LONG) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

export const foundOf = (state) => (state.isWriting ? state.answered(state.writeOf()) : null);

/** The word that is being written. */
export function wordAt(state, { steps, given }) {
  return Math.max(0, Math.min(steps.length - 1, state.at ?? (given ? given - 1 : 0)));
}

/** The tokens that a text begins with, where a step has another one, as a setting of the server's. */
export const beginningOf = ({ steps }, step, id) => [...steps.slice(0, step).map((one) => one.id), id].join("-");

/** What a click or Enter does to the beginning: a token of the open word, or another text. */
export function branchOf(state) {
  const found = foundOf(state), { other } = state;
  if (!found || !other || state.write) return null;
  if (other.line) return found.text[other.line] ? beginningOf(found, found.text[other.line].step, found.text[other.line].id) : null;
  const step = wordAt(state, found), best = found.steps[step].best[other.best];
  return best && other.best !== found.steps[step].chosen ? beginningOf(found, step, best[2]) : null;
}

/** What is seen, as parts of a sentence; the words that were chosen instead of the model's own stand before
 * it, as what was done. */
export function writeFinding(state) {
  const found = foundOf(state), { model } = state.look;
  if (found === undefined) return [["Writing …", "Searching …", "Drawing …"][state.write]];
  if (!found || found.cannot) return [found?.cannot ?? "What the model writes is not known here."];
  if (state.write === 1) return ofBeams(found);
  if (state.write === 2) return ofSampled(found);
  if (!found.steps.length) return [model, " has no room left to write anything."];
  const at = wordAt(state, found), { best, chosen } = found.steps[at], [word, share] = best[chosen];
  const others = best.filter((_, n) => n !== chosen).slice(0, state.look.projector ? 1 : 2).flatMap(([text, part], n) => [n ? ", " : "", name(wordOf(text)), ` ${chance(part)}`]);
  if (at === found.given - 1) {
    const rest = found.steps.slice(at + 1).map(({ added }) => added).join("").trim().replace(/\.$/, "");
    return [`It had ${chance(share)}. The text goes on: `, name(short(rest) || "nothing more"), "."];
  }
  const sides = Object.values(state.run.sides), before = at ? found.steps[at - 1].best[found.steps[at - 1].chosen][0] : sides.length === 1 ? sides[0].labels.at(-1) : "";
  return [...(before ? ["Having read ", name(wordOf(before)), `, ${model}`] : [model]), " writes ", query(wordOf(word)), ` (${chance(share)}). Next best: `, ...others, "."];
}

const COUNTS = ["", "", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];

function ofBeams({ width, found, greedy, is_same: isSame }) {
  const start = `${COUNTS[width] ?? width} beams find `;
  if (isSame) return [start, `the same text as greedy decoding (${ofText(found.probability)}).`];
  return [start, [short(found.text, HALF) || "nothing", "done"], ` (${ofText(found.probability)}); greedy writes `, name(short(greedy.text, HALF) || "nothing"), ` (${ofText(greedy.probability)}).`];
}

function ofSampled({ temperature, text, same }) {
  const count = same === text.length ? `all ${same} texts are` : same ? `${same} of ${text.length} texts ${same === 1 ? "is" : "are"}` : `none of ${text.length} texts is`;
  return [`At temperature ${temperature}, ${count} the greedy one.`];
}

export function drawWrite(state, camera, alpha) {
  const found = foundOf(state);
  if (!found || found.cannot || alpha <= 0) return;
  [drawOne, drawBeams, drawSampled][state.write](state, camera, found, alpha);
}

// One by one

/** Where all of it stands: the columns that are shown, from `first` on, the open one `wide`; the `base` of the
 * bars; and the texts, `high` each, from `texts` on. On a narrow screen the open word alone, line by line. */
export function onePlace(state, camera, found) {
  const { W, H, s, m, isNarrow } = camera, at = wordAt(state, found), count = found.steps.length;
  if (isNarrow) {
    const high = Math.min(s * 2.4, (H - m * 3) / (BEST + 1 + found.text.length * 1.1)), texts = m * 3 + (BEST + 1) * high;
    return { at, top: m * 1.8, best: high, texts, high: (H - texts) / found.text.length, isNarrow };
  }
  const wide = Math.min(s * 17.5, W / 3), most = Math.floor((W - wide) / NARROW) + 1, first = Math.max(0, Math.min(count - most, at - Math.floor(most / 2)));
  const shown = Math.min(most, count), each = shown > 1 ? Math.min((W - wide) / (shown - 1), s * 8) : 0;
  const labels = found.steps.map(({ best, chosen }) => wordOf(best[chosen][0])), isTilted = Math.max(...labels.map((label) => camera.width(label, m))) > each;
  const below = isTilted ? Math.min(H * 0.12, Math.max(...labels.map((label) => camera.width(label, s))) * 0.9 + s) : m * 1.8;
  const lines = found.text.length, room = Math.max(H * 0.28, Math.min(H * 0.44, lines * m * 2.3)), base = H - room - below - m * 1.6;
  const left = (step) => each * (step - first) + (step > at ? wide - each : 0);
  return { at, first, shown, each, wide, base, below, isTilted, labels, left, best: base / BEST, texts: H - room, high: room / lines };
}

function drawOne(state, camera, found, alpha) {
  const place = onePlace(state, camera, found);
  if (!found.steps.length) return;
  (place.isNarrow ? drawWord : drawWords)(state, camera, found, place, alpha);
  drawTexts(state, camera, found, place, alpha);
}

function drawWords(state, camera, found, place, alpha) {
  const { W, s, m, cx, colours } = camera, { at, first, shown, each, wide, base, labels, left, isTilted } = place;
  const share = ({ best, chosen }) => best[chosen][1], least = found.steps.reduce((worst, step, n) => (share(step) < share(found.steps[worst]) ? n : worst), 0);
  const tall = base - m * 1.6, hasRoom = each > camera.width("100%", s) + 2, every = Math.max(1, Math.ceil((s * 1.2) / (each || 1)));
  for (let step = first; step < first + shown; step++) {
    const isOpen = step === at, x = left(step), thick = each * 0.6, high = tall * share(found.steps[step]), isLater = step > at, isNew = step === found.given - 1;
    if (!isOpen) {
      const bar = { x: x + each * 0.2, y: base - high, w: thick, h: Math.max(1, high) };
      if (isLater) camera.dotted(bar, alpha * 0.6);
      else camera.fill(bar, isNew ? colours.done : colours.flat, alpha, 2);
      const look = { align: "center", weight: step === least ? 650 : 400, colour: step === least ? colours.lost : colours.soft, alpha };
      if (hasRoom && !isLater) camera.text(chance(share(found.steps[step])), x + each / 2, base - high - s * 0.8, look);
    }
    const middle = x + (isOpen ? wide : each) / 2, look = { weight: isOpen ? 650 : 400, colour: isOpen ? colours.selected : isNew ? colours.done : isLater ? colours.pale : colours.ink, alpha };
    if (!isTilted || isOpen) camera.text(labels[step], middle, base + m, { ...look, px: m, align: "center", most: isOpen ? wide : each });
    else if (!((step - first) % every)) {
      cx.save();
      cx.translate(middle + s * 0.2, base + 8);
      cx.rotate(-Math.PI / 2.35);
      camera.text(labels[step], 0, 0, { ...look, align: "right", most: place.below });
      cx.restore();
    }
  }
  camera.fill({ x: 0, y: base - 0.75, w: Math.min(W, left(first + shown - 1) + (at === first + shown - 1 ? wide : each)), h: 1.5 }, colours.line, alpha, 0);
  drawBest(state, camera, found.steps[at], { x: left(at) + s * 0.8, w: wide - s * 1.6, y: 0, high: place.best }, alpha);
}

/** The likeliest tokens of the open word, one below the other. */
function drawBest(state, camera, { best, chosen }, { x, y, w, high }, alpha) {
  const { s, m, colours } = camera, name = w * 0.36, number = camera.width("<0.1%", s) + s * 0.4, room = w - name - number;
  best.slice(0, BEST + 1).forEach(([text, share], nth) => {
    const middle = y + high * (nth + 0.5), isOn = nth === chosen, isOther = state.other?.best === nth && !isOn, colour = isOn ? colours.selected : isOther ? colours.done : colours.ink;
    if (nth >= BEST && !isOn) return;
    camera.fill({ x: x + name, y: middle - high * 0.34, w: Math.max(2, room * share), h: high * 0.68 }, isOn ? colours.frame : isOther ? colours.done : colours.flat, alpha, 2);
    camera.text(wordOf(text), x, middle, { px: Math.max(LEAST, Math.min(m, high * 0.85)), weight: isOn || isOther ? 650 : 400, colour, alpha, most: name - 6 });
    camera.text(chance(share), x + w, middle, { px: Math.max(LEAST, Math.min(s, high * 0.9)), align: "right", colour: colours.soft, alpha });
  });
}

/** On a narrow screen the open word alone. */
function drawWord(state, camera, found, { at, top, best }, alpha) {
  const { W, m, colours } = camera;
  camera.text(`word ${at + 1} of ${found.steps.length}`, 0, m * 0.8, { colour: colours.soft, alpha });
  drawBest(state, camera, found.steps[at], { x: 0, y: top, w: W, high: best }, alpha);
}

/** The text, and others below it, in each of which what is new has the colour of what was done. */
function drawTexts(state, camera, { text }, { texts, high }, alpha) {
  const { s, m, l, isNarrow, colours } = camera, number = camera.width("<0.1%", m, 650) + s * 0.8, hasTitle = text.length > 1;
  if (hasTitle) camera.text("This text, and others one choice away", 0, texts - m * 0.7, { colour: colours.soft, alpha });
  text.forEach((line, nth) => {
    const y = texts + high * (nth + 0.5), px = isNarrow ? s : Math.max(s, Math.min(l, high * 0.62)), isOn = state.other?.line === nth;
    camera.text(ofText(line.probability), number - s * 0.8, y, { px: isNarrow ? LEAST : m, align: "right", weight: nth ? 400 : 650, colour: nth ? colours.soft : colours.ink, alpha });
    drawLine(camera, line.words, { x: number, y, w: camera.W - number, px }, { alpha, isPale: nth > 0, isOn });
  });
}

/** Words in a line; of a text that is too long those from shortly before the first new one on. */
export function drawLine(camera, words, { x, y, w, px }, { alpha, isPale = false, isOn = false }) {
  const { colours } = camera, space = camera.width(" ", px), wide = words.map(([word, isNew]) => camera.width(word, px, isNew ? 650 : 400));
  const total = (from) => wide.slice(from).reduce((sum, one) => sum + one + space, -space), firstNew = words.findIndex(([, isNew]) => isNew);
  const ending = words.findIndex((_, at) => total(at) + space + px <= w);
  const from = total(0) <= w || !(isPale || firstNew >= 0) ? 0 : firstNew < 0 ? Math.max(0, ending) : Math.max(0, firstNew - KEPT);
  let left = x;
  const put = (text, look) => {
    camera.text(text, left, y, { px, alpha, ...look });
    left += camera.width(text, px, look.weight) + space;
  };
  if (from) put("…", { colour: colours.soft });
  for (let at = from; at < words.length; at++) {
    const [word, isNew] = words[at], room = x + w - left;
    if (wide[at] > room || (at < words.length - 1 && wide[at] + 2 * space + px > room)) return put("…", { colour: colours.soft });
    put(word, { weight: isNew ? 650 : 400, colour: isNew ? colours.done : isOn ? colours.done : isPale && at < firstNew ? colours.pale : colours.ink });
  }
}

// Sampled

const sampledPlace = ({ H }, { text }) => H / text.length;

function drawSampled(state, camera, { text }, alpha) {
  const { W, s, m, l, isNarrow, colours } = camera, high = sampledPlace(camera, { text }), from = isNarrow ? 0 : camera.width("seed 99999", s) + s;
  const number = camera.width("<0.1%", m) + s, px = isNarrow ? Math.max(LEAST, s) : Math.max(s, Math.min(l, high * 0.5)), quiet = { colour: colours.soft, alpha };
  text.forEach(({ words, probability, seed }, nth) => {
    const y = high * (nth + 0.5), isOn = state.other?.line === nth, below = isNarrow ? s * 0.8 : 0;
    camera.text(`seed ${seed}`, 0, y + below, { ...quiet, weight: isOn ? 650 : 400 });
    drawLine(camera, words, { x: from, y: y - below, w: W - from - (isNarrow ? 0 : number), px }, { alpha });
    camera.text(ofText(probability), W, y + below, { ...quiet, px: isNarrow ? LEAST : m, align: "right" });
  });
}

// Pointer and keys

/** What is at a point: {at}, a word or a column, or {best} or {line}, see `branchOf`. */
export function writtenAt(state, camera, x, y) {
  const found = foundOf(state);
  if (!found || found.cannot) return null;
  if (state.write === 1) return { at: columnAt(camera, found, x) };
  if (state.write === 2) return { line: Math.floor(y / sampledPlace(camera, found)) };
  const place = onePlace(state, camera, found), { at, isNarrow } = place, line = Math.floor((y - place.texts) / place.high);
  if (y >= place.texts) return line < found.text.length ? { line } : null;
  const isOpen = isNarrow || (x >= place.left(at) && x < place.left(at) + place.wide), best = Math.floor((y - (isNarrow ? place.top : 0)) / place.best);
  if (isOpen) return best >= 0 && best < found.steps[at].best.length && y < (place.base ?? place.texts) ? { best } : null;
  const step = place.first + Math.floor((x - (x > place.left(at) ? place.wide - place.each : 0)) / (place.each || 1));
  return step < place.first + place.shown && y < place.base + place.below ? { at: step } : null;
}

/** An arrow key: another word, or column of a search; or another of what could have been written instead, down
 * the tokens of the word, then the texts. */
export function stepWritten(state, dx, dy) {
  const found = foundOf(state), within = (at, count) => Math.max(0, Math.min(count - 1, at)), { other } = state;
  if (!found || found.cannot) return;
  if (state.write === 1) state.at = within((state.at ?? -1) + (dx || dy), found.steps.length);
  else if (state.write === 2) state.other = { line: within((other?.line ?? -1) + (dx || dy), found.text.length) };
  else if (dx) [state.at, state.other] = [within(wordAt(state, found) + dx, found.steps.length), null];
  else {
    const { best, chosen } = found.steps[wordAt(state, found)], tokens = Math.min(BEST, best.length), now = other?.line ? tokens + other.line - 1 : other?.best ?? chosen;
    const next = within(now + dy, tokens + found.text.length - 1);
    state.other = next < tokens ? { best: next } : { line: next - tokens + 1 };
  }
}

/** What is chosen, aloud. */
export function spokenWrite(state) {
  const found = foundOf(state), said = (line) => `${line.words.map(([word]) => word).join(" ")}, ${ofText(line.probability)}`;
  if (!found || found.cannot) return "";
  if (state.write === 1)
    return found.steps[state.at] ? `word ${state.at + 1}: ${found.steps[state.at].map(({ label, probability }) => `${wordOf(label)} ${chance(probability)}`).join(", ")}` : "";
  if (state.other?.line !== undefined) return found.text[state.other.line] ? said(found.text[state.other.line]) : "";
  const best = state.other && found.steps[wordAt(state, found)]?.best[state.other.best];
  return best ? `${wordOf(best[0])}, ${chance(best[1])}` : "";
}

/** Names of the views; of the search with its number of beams. */
export const writeNames = ({ look }) => WRITES.map((way) => ({ one: "One by one", beams: `${look.write.width} beams`, sampled: "Sampled" })[way]);
