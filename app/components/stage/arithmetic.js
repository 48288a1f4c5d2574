// The arithmetic of one row: what softmax(q·kᵀ / √d)·V does to it, stop by stop.

import { minus, percent } from "../shared/numbers.js";

const SMALL = 1e-4; // below it, and from LARGE on, a power is written as m · 10ⁿ
const LARGE = 1e5;

/** A row with its scores divided or not: `raw` and `scaled` scores, where nothing is masked;
 * `logs`: the natural logarithms of sum and powers, which may be too large for a number; `weights`
 * and `output`. `best`: the keys it may attend to, the largest weight first. */
export function rowOf(head, row, isScaled) {
  const { keys: { length: count }, width, values } = head;
  const scores = [...head.scores.subarray(row * count, (row + 1) * count)];
  const allowed = [...scores.keys()].filter((key) => head.mask[row * count + key]);
  const isAllowed = new Set(allowed);
  const scaled = isScaled ? scores.map((score) => score / Math.sqrt(width)) : scores;
  const best = [...allowed].sort((a, b) => scaled[b] - scaled[a]);
  const largest = best.length ? scaled[best[0]] : 0;
  const total = allowed.reduce((sum, key) => sum + Math.exp(scaled[key] - largest), 0);
  const weights = scaled.map((score, key) =>
    (isAllowed.has(key) ? Math.exp(score - largest) / total : 0));
  const output = Array.from({ length: width }, (_, i) =>
    weights.reduce((sum, weight, key) => sum + weight * values[key * width + i], 0));
  return { raw: scores, scaled, logSum: largest + Math.log(total), weights, output, best,
    allowed: isAllowed, isFinite: allowed.every((key) => Number.isFinite(scores[key])) };
}

/** The products of two vectors, number by number: each with `q`, `k`, `product` and its `size`. */
export const productsOf = (q, k) => Array.from(q, (value, at) => ({ q: value, k: k[at], product: value * k[at], size: Math.abs(value * k[at]) }));

/** How each product moves the sum: its place `at` among them, and the sum before and after it; in the order
 * of the vectors, or the largest first. */
export function stepsOf(terms, isSorted) {
  const order = [...terms.keys()], steps = [];
  if (isSorted) order.sort((a, b) => terms[b].product - terms[a].product);
  let sum = 0;
  order.forEach((n, at) => (steps[n] = { at, from: sum, to: (sum += terms[n].product) }));
  return steps;
}

/** A share: one digit where whole percents would hide that others have the rest. */
export const share = (weight) => percent(weight, weight > 0.985 && weight < 0.9995 ? 1 : 0);

/** A probability that a softmax gave, or a product of such: never 0%. */
export const chance = (part) => (part > 0 ? percent(part, part < 0.095 ? 1 : 0) : "<0.1%");

/** The same of a whole text. */
export const ofText = (part) => (part > 0 ? percent(part, 1) : "<0.1%");

const DIGITS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
export const raised = (exponent) => [...String(exponent)].map((digit) => DIGITS[digit]).join("");

/** e to the power of a score, as it is written. */
export function power(score) {
  const value = Math.exp(score);
  if (value >= SMALL && value < LARGE) {
    if (value >= 100) return Number(value.toPrecision(3)).toLocaleString("en");
    return value >= 10 ? value.toFixed(1) : value >= 0.01 ? value.toFixed(2) : value.toPrecision(1);
  }
  const decimal = score / Math.LN10;
  let [exponent, mantissa] = [Math.floor(decimal), (10 ** (decimal - Math.floor(decimal))).toFixed(1)];
  if (mantissa === "10.0") [exponent, mantissa] = [exponent + 1, "1.0"];
  return `${mantissa}·10${raised(exponent)}`;
}

/** A small positive number in full, rounded up in its first digit: nothing that it bounds is larger. */
export function tiny(value) {
  const at = Math.floor(Math.log10(value)), up = Math.ceil(value / 10 ** at - 1e-9);
  return (up * 10 ** at).toFixed(Math.max(0, up < 10 ? -at : -at - 1));
}

const fixed = (digits) => (value) => minus(value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1"));
export const one = fixed(1);
export const two = fixed(2);
export const three = fixed(3);
export const signed = (value) => (value >= 0.05 ? `+${one(value)}` : one(value));
