// Changes to a run: values with a one-line text form (model/probing/changes.py), and how a click edits
// them (editing.py). applying.js makes a model run with them.
//
//     cross.1.2=off; encoder=hide:3; decoder.2=mask:window-2; cross.4.1=weight:2>5:0.7
//
// Lines count layers, heads and tokens from 1; the values count from 0. A change is {kind, layer,
// head, verb, …}; layer and head are null where it concerns all of them.

export class CannotChange extends Error {}

const ENTRY = /^(\w+?)(?:\.(\d+))?(?:\.(\d+))?=(\w+)(?::(.+))?$/;
const MOST_CELLS = 2 ** 18;
const MOST_CHANGES = 300;

export const PATTERNS = { // (query, key, size) → may attend
  none: () => true,
  causal: (i, j) => j <= i,
  window: (i, j, n) => Math.abs(i - j) <= n,
  prefix: (i, j, n) => j <= i || j < n,
  strided: (i, j, n) => (i - j) % n === 0,
  diagonal: (i, j) => i === j,
  no_diagonal: (i, j) => i !== j,
  no_first: (i, j) => j > 0,
};
const SIZED = new Set(["window", "prefix", "strided"]);

// Each verb reads its argument into the fields of a change (null: invalid) and writes it back.
// `order`: when it acts, whatever the order of the line.
const NOTHING = { read: (text) => (text ? null : {}), write: () => "" };
const CELLS = { order: 1, read: readCells, write: ({ cells }) => writeCells(cells) };
export const VERBS = {
  mask: { order: 1, read: readPattern, write: ({ pattern, size }) =>
    (SIZED.has(pattern) ? `${pattern}-${size}` : pattern) },
  hide: { order: 1, read: readTokens, write: ({ tokens }) => tokens.map((t) => t + 1).join() },
  forbid: CELLS,
  allow: CELLS,
  temperature: { order: 2, read: (text) => positive(number(text)), write: ({ value }) => float(value) },
  weight: { order: 3, read: readWeight, write: ({ row, column, weight }) =>
    `${row + 1}>${column + 1}:${float(weight)}` },
  uniform: { order: 4, ...NOTHING },
  off: { order: 4, ...NOTHING },
  skip: { order: 4, ...NOTHING },
};

// Reading and writing lines

/** The changes of a line. Throws CannotChange. */
export function parse(line) {
  const entries = line.split(";").map((text) => text.trim()).filter(Boolean);
  if (entries.length > MOST_CHANGES)
    throw new CannotChange(`${entries.length} changes are too many. The limit is ${MOST_CHANGES}.`);
  const changes = entries.map(parseEntry);
  const cells = changes.reduce((sum, change) => sum + (change.cells?.length ?? 0), 0);
  if (cells > MOST_CELLS)
    throw new CannotChange(`All changes together may name at most ${MOST_CELLS} cells.`);
  return changes;
}

function parseEntry(entry) {
  const match = ENTRY.exec(entry);
  if (!match) throw new CannotChange(`“${entry}” is not a change. Write one like “cross.1.2=off”.`);
  const [, kind, layer, head, verb, text = ""] = match;
  if (!Object.hasOwn(VERBS, verb))
    throw new CannotChange(`“${entry}”: a live page does not support “${verb}”; choose from ` +
      `${Object.keys(VERBS).join(", ")}.`);
  const [layerAt, headAt] = [layer, head].map((digits) => (digits === undefined ? null : counted(digits)));
  const fields = VERBS[verb].read(text);
  if (!fields || Number.isNaN(layerAt) || Number.isNaN(headAt))
    throw new CannotChange(`“${entry}”: invalid argument to “${verb}”.`);
  return { kind, layer: layerAt, head: headAt, verb, ...fields };
}

/** The line that `parse` reads. */
export const written = (changes) => changes.map(writtenEntry).join("; ");

export function writtenEntry(change) {
  const argument = VERBS[change.verb].write(change);
  return `${scopeOf(change)}=${change.verb}${argument && `:${argument}`}`;
}

const scopeOf = ({ kind, layer, head }) =>
  [kind, ...[layer, head].filter((at) => at !== null).map((at) => at + 1)].join(".");

/** A number that counts from 1, as one from 0; NaN for anything else. */
const counted = (text) => (/^[1-9]\d{0,5}$/.test(text) ? Number(text) - 1 : NaN);

const number = (text) => (/^\d*\.?\d+(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN);

const positive = (value) => (value > 0 && value < Infinity ? { value } : null);

/** As Python writes a float. */
const float = (value) => (Number.isInteger(value) && value < 1e16 ? `${value}.0` : String(value));

function readPattern(text) {
  const [pattern, size = ""] = text.split(/-(.*)/s);
  if (!Object.hasOwn(PATTERNS, pattern) || Boolean(size) !== SIZED.has(pattern)) return null;
  const steps = size ? counted(size) + 1 : 0;
  return Number.isNaN(steps) ? null : { pattern, size: steps };
}

function readTokens(text) {
  const tokens = text.split(",").map(counted);
  return tokens.some(Number.isNaN) ? null : { tokens };
}

function readCells(text) {
  const cells = [];
  for (const rectangle of text.split(",")) {
    const spans = rectangle.split(">").map(span);
    if (spans.length !== 2 || spans.includes(null)) return null;
    const [[top, bottom], [left, right]] = spans;
    if (cells.length + (bottom - top + 1) * (right - left + 1) > MOST_CELLS) return null;
    for (let i = top; i <= bottom; i++) for (let j = left; j <= right; j++) cells.push([i, j]);
  }
  return { cells: sorted(cells) };
}

function span(text) {
  const [first, last = first, ...more] = text.split("-").map(counted);
  return first <= last && !more.length ? [first, last] : null;
}

/** Cells by row and column, each once. */
function sorted(cells) {
  return cells.toSorted((a, b) => a[0] - b[0] || a[1] - b[1])
    .filter(([i, j], at, all) => !at || all[at - 1][0] !== i || all[at - 1][1] !== j);
}

/** Cells as rectangles: runs of a row, joined with the same run of the row below. */
function writeCells(cells) {
  const runs = [];
  for (const [i, j] of cells) {
    const last = runs.at(-1);
    if (last?.top === i && last.right === j - 1) last.right = j;
    else runs.push({ top: i, bottom: i, left: j, right: j });
  }
  const rectangles = [];
  for (const run of runs) {
    const above = rectangles.findLast(({ left, right }) => left === run.left && right === run.right);
    if (above?.bottom === run.top - 1) above.bottom = run.top;
    else rectangles.push(run);
  }
  const text = (first, last) => (first === last ? `${first + 1}` : `${first + 1}-${last + 1}`);
  return rectangles.toSorted((a, b) => a.top - b.top || a.bottom - b.bottom || a.left - b.left)
    .map(({ top, bottom, left, right }) => `${text(top, bottom)}>${text(left, right)}`).join();
}

function readWeight(text) {
  const [, i, j, share] = /^(\d+)>(\d+):(.+)$/.exec(text) ?? [];
  const [row, column, weight] = [counted(i), counted(j), number(share)];
  return row >= 0 && column >= 0 && weight >= 0 && weight <= 1 ? { row, column, weight } : null;
}

// Editing: each function takes changes and returns new ones; doing the same twice undoes it

const same = (a, b) => writtenEntry(a) === writtenEntry(b);
const inScope = (verb, scope) => (change) => change.verb === verb && scopeOf(change) === scopeOf(scope);

/** With `change` added, or removed if it is there. */
export function toggled(changes, change) {
  const others = changes.filter((other) => !same(other, change));
  return others.length < changes.length ? others : [...changes, change];
}

/** With a token hidden as a key in some scopes, or shown again if all hide it. */
export function hidden(changes, scopes, token) {
  const now = scopes.map((scope) => changes.find(inScope("hide", scope))?.tokens ?? []);
  const hide = !now.every((tokens) => tokens.includes(token));
  scopes.forEach((scope, i) => {
    const tokens = [...new Set([...now[i].filter((other) => other !== token), ...(hide ? [token] : [])])];
    changes = replaced(changes, inScope("hide", scope),
      tokens.length ? { ...scope, verb: "hide", tokens: tokens.sort((a, b) => a - b) } : null);
  });
  return changes;
}

/** With a cell of a mask allowed or forbidden. What undoes an earlier stroke removes it. */
export function paintedCell(changes, scope, [row, column], mayAttend) {
  const [verb, other] = mayAttend ? ["allow", "forbid"] : ["forbid", "allow"];
  const isCell = ([i, j]) => i === row && j === column;
  const before = changes.find(inScope(other, scope));
  if (before?.cells.some(isCell)) {
    const cells = before.cells.filter((cell) => !isCell(cell));
    return replaced(changes, inScope(other, scope), cells.length ? { ...before, cells } : null);
  }
  const cells = changes.find(inScope(verb, scope))?.cells ?? [];
  return replaced(changes, inScope(verb, scope),
    { ...scope, verb, cells: sorted([...cells, [row, column]]) });
}

/** With a weight set, in place of one set there before. */
export function weighed(changes, scope, [row, column], weight) {
  const isThere = (change) => inScope("weight", scope)(change) && change.row === row &&
    change.column === column;
  return replaced(changes, isThere, { ...scope, verb: "weight", row, column, weight });
}

/** With `change` in place of the one that is found, or at the end; null removes it. */
function replaced(changes, isOld, change) {
  if (!changes.some(isOld)) return change ? [...changes, change] : changes;
  return changes.flatMap((other) => (isOld(other) ? (change ? [change] : []) : [other]));
}
