// Sentences that say what a change did, in parts, [text, tag or ""], from the templates that the app
// has, too (app/text/findings.py).

import { quoted } from "../components/shared/names.js";
import { percent } from "../components/shared/numbers.js";
import STRINGS from "../text/strings.json" with { type: "json" };

const SAID = STRINGS.findings;
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** A template, filled; what stands in it as *{token}* is a token. */
const said = (name, values) => SAID[name].split(/\*\{(\w+)\}\*/)
  .map((piece, i) => (i % 2 ? quoted(values[piece].trim() || values[piece]) : [filled(piece, values), ""]))
  .filter(([text]) => text);

/** What the model writes because of a change: the differences from its text before, as quoted words. */
export const nowWrites = (before, text) => (text.trim()
  ? [[`${SAID.now} “`, ""], ...differences(before, text), [/[.?!…]\s*$/.test(text) ? "” " : "”. ", ""]]
  : [[SAID.now.replace(/:$/, "") + SAID.writes_nothing, ""]]);

/** A finding on what was changed, as one on what would be. */
export const would = (parts) => parts.map(([text, tag]) => [text.replace(SAID.now, SAID.would), tag]);

/** That a “translation” or “continuation” is as before; and where only the causal mask is off, why: the next
 * token is written at the last row, which has none after it. */
export const stays = (what, isPeekAlone) => said(isPeekAlone ? "stays_unseen" : "stays", { what });

/** Whether what moved most, or null, has moved at all. */
const hasMoved = (most) => Boolean(most) && Math.abs(most.after - most.before) > SAID.nothing;

/** “After *roten*, the probability of *Kleid* falls from 93% to 7%.” Of the row and token that move most, or null;
 * start: "after", "former" or "finished", as in Python. */
export function moved(most, start) {
  if (!hasMoved(most)) return said("no_change");
  const [before, after] = [most.before, most.after].map((share) => percent(share));
  const points = Number((1000 * Math.abs(most.after - most.before)).toFixed(4)); // as in Python
  const bound = (Math.ceil(points) / 10).toFixed(1);
  const how = before === after ? "hardly" : most.after < most.before ? "falls" : "rises";
  return said(start, { ...most, moves: filled(SAID[how], { before, after, most: bound }) });
}

/** The class before and now, and the probability of the latter. */
export const classMoved = ({ old, now, before, after }) => said(old === now ? "class_stays" : "class_changes",
  { now, before: percent(before), after: percent(after) });

/** What a decoder row sees without the causal mask, and in which head. */
export const peeking = (peek) => said("peeks",
  { ...peek, layer: peek.layer + 1, head: peek.head + 1, weight: percent(peek.weight) });

/** The longest runs of equal words, [start in a, start in b, length], as Python's SequenceMatcher finds them:
 * the longest of all first, then those before and after it. */
export function equalRuns(a, b, [top, bottom] = [0, a.length], [left, right] = [0, b.length]) {
  let [row, column, length] = [0, 0, 0];
  let above = [];
  for (let i = top; i < bottom; i++) {
    const runs = [];
    for (let j = left; j < right; j++) {
      if (a[i] !== b[j]) continue;
      runs[j] = (above[j - 1] ?? 0) + 1;
      if (runs[j] > length) [row, column, length] = [i - runs[j] + 1, j - runs[j] + 1, runs[j]];
    }
    above = runs;
  }
  return !length ? [] : [...equalRuns(a, b, [top, row], [left, column]), [row, column, length],
    ...equalRuns(a, b, [row + length, bottom], [column + length, right])];
}

/** Two texts as one, in parts (`differences` in app/text/formats.py). */
export function differences(...texts) {
  const [old, now] = texts.map((text) => text.match(/\s*(?:[^\s.,;:!?…]+|[.,;:!?…]+)/g) ?? []);
  const [a, b] = [old, now].map((pieces) => pieces.map((piece) => piece.trim()));
  const parts = [];
  let [i, j] = [0, 0];
  for (const [row, column, length] of [...equalRuns(a, b), [a.length, b.length, 0]]) {
    const pieces = [[old.slice(i, row), "s"], [now.slice(j, column), "b"], [now.slice(column, column + length), ""]];
    for (const [text, tag] of pieces.map(([some, mark]) => [some.join(""), mark]).filter(([text]) => text)) {
      const isApart = /^\s/.test(text) || (tag && (parts.at(-1)?.[1] === "s" || !/^[\p{L}\p{N}]/u.test(text)));
      if (parts.length && isApart) parts.push([" ", ""]);
      parts.push([text.trim(), tag]);
    }
    [i, j] = [row + length, column + length];
  }
  return parts;
}
