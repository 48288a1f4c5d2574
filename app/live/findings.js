// Sentences that say what a change did, in parts, [text, tag or ""] (app/text/findings.py).

import { percent } from "../components/shared/numbers.js";

const NOTHING = 0.001; // a probability that moves by no more is said not to move

/** A token as part of a sentence: punctuation, which italics hardly change, in quotes. */
function word(token) {
  const text = token.trim() || token;
  return /[\p{L}\p{N}_]/u.test(text) ? [text, "em"] : [`“${text}”`, ""];
}

/** What the model writes because of a change: the differences from its text before, as quoted words. */
export const nowWrites = (differences, text) => (text.trim()
  ? [["Now it writes: “", ""], ...differences, [/[.?!…]\s*$/.test(text) ? "” " : "”. ", ""]]
  : [["Now it writes nothing. ", ""]]);

export const AFTER = "After"; // a row
export const FINISHED = "Given the whole text, the probability of"; // a token, after a row
export const FORMER = "In the original translation, after"; // a row, where the model now writes another text

/** That a “translation” or “continuation” is as before; and where only the causal mask is off, why: the next
 * token is written at the last row, which has none after it. */
export const stays = (what, isPeekAlone) => [
  `The ${what} stays the same${isPeekAlone ? ": while the model writes, there is no next token to see" : ""}. `, ""];

/** Whether what moved most, or null, has moved at all. */
export const hasMoved = (most) => Boolean(most) && Math.abs(most.after - most.before) > NOTHING;

/** “After *roten*, the probability of *Kleid* falls from 93% to 7%.” Of the row and token that move most, or null. */
export function moved(most, start) {
  if (!hasMoved(most)) return [["No next-token probability changes by more than 0.1 percentage points.", ""]];
  const { row, token, before, after } = most;
  const verb = after < before ? "falls" : "rises";
  const bound = (Math.ceil(1000 * Math.abs(after - before)) / 10).toFixed(1);
  const ends = Math.round(100 * after) === Math.round(100 * before)
    ? ` changes most, by at most ${bound} percentage points.`
    : ` ${verb} from ${percent(before)} to ${percent(after)}.`;
  const [first, between, second] = start === FINISHED ? [token, " after ", row]
    : [row, ", the probability of ", token];
  return [[`${start} `, ""], word(first), [between, ""], word(second), [ends, ""]];
}

/** The class before and now, and the probability of the latter. */
export const classMoved = ({ old, now, before, after }) => [
  [old === now ? "The class stays " : "The class changes to ", ""], word(now),
  [`: ${percent(before)} → ${percent(after)}.`, ""]];

/** What a decoder row sees without the causal mask, and in which head. */
export const peeking = ({ layer, head, row, next, weight }) => [
  [`Without the causal mask, the decoder peeks: in its self-attention ${layer + 1}.${head + 1}, `, ""], word(row),
  [" attends to the next token, ", ""], word(next), [` (${percent(weight)}). `, ""]];
