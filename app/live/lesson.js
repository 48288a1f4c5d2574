// The questions of a lesson that a page can ask, with their answers, from the weights of a pass
// (app/lessons/sentence_run.py, app/lessons/question_types/attention.py).

import { percent } from "../components/shared/numbers.js";
import STRINGS from "../text/strings.json" with { type: "json" };

const END = "</s>";
const LIMITS = STRINGS.questions;

/** A sentence, or a model, that has nothing to ask about; its message is for the student. */
export class NoQuestion extends Error {}

// Tokens and numbers

const hasLetter = (token) => /[\p{L}\p{N}_]/u.test(token);
const isMark = (token) => !hasLetter(token) || token.startsWith("<");
const isWord = (tokens, i) => i < tokens.length && hasLetter(tokens[i]) && !/^[<·]/.test(tokens[i]) &&
  !tokens[i + 1]?.startsWith("·");
/** Tokens as choices: those that occur twice carry their place. */
const namesOf = (tokens) => tokens.map((token, i) =>
  (tokens.indexOf(token) === tokens.lastIndexOf(token) ? token : `${token} (${i + 1})`));

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
/** Places from the largest value down; of equal ones the earlier comes first. */
const ranked = (values) => values.map((_, i) => i).toSorted((a, b) => values[b] - values[a]);
const largest = (values) => ranked(values)[0];

/** The rows of a head, and which of them a selector such as “sharp, new” fits. `weights`: a list for
 * each query. */
class Rows {
  constructor({ weights, queries, keys, isOfOneText }, shift, used) {
    Object.assign(this, { weights, queries, keys, isOfOneText, shift, used });
    this.order = weights.map(ranked);
    this.first = weights.map((row, i) => row[this.order[i][0]]);
    this.second = weights.map((row, i) => row[this.order[i][1]] ?? 0);
    this.named = weights.map((_, i) => isWord(queries, i + shift));
  }

  key = (i) => this.order[i][0];
  column = (j) => this.weights.map((row) => row[j]);
  label = (i) => this.queries[i + this.shift] ?? END;

  /** The key that one names who reads down the column of row i's word, and the row of who reads along
   * the row of column j's word: only where rows and columns are of one text is there such a one. */
  downTheColumn = (i) => (this.isOfOneText && i + this.shift < this.keys.length
    ? largest(this.column(i + this.shift)) + this.shift : -1);

  alongTheRow = (j) => (this.isOfOneText && j >= this.shift ? this.key(j - this.shift) - this.shift : -1);

  lead = (i) => (this.named[i] && !isMark(this.keys[this.key(i)]) ? this.first[i] - this.second[i] : -1);
  sharp = (i) => this.first[i] >= LIMITS.sharp && this.second[i] <= this.first[i] / 2 && this.named[i] &&
    !isMark(this.keys[this.key(i)]);

  static WORDS = {
    any: () => true,
    late: () => true,
    first: (rows, i) => i === 0,
    word: (rows, i) => isWord(rows.queries, i),
    new: (rows, i) => !rows.used.rows.has(i),
    sharp: (rows, i) => rows.sharp(i),
    spread: ({ named, first, second }, i) => named[i] && first[i] <= LIMITS.spread.most &&
      second[i] >= LIMITS.spread.second && first[i] - second[i] > LIMITS.spread.lead,
    sink: (rows, i) => i > 0 && i < rows.weights.length - rows.shift - 1 &&
      sum(rows.weights[i].filter((_, j) => isMark(rows.keys[j]))) >= LIMITS.sink,
    crossing: (rows, i) => rows.order.slice(0, i).some(([key], e) => rows.sharp(e) && key > rows.key(i)),
    repeated: ({ queries }, i) => !queries[i].startsWith("<") && queries.indexOf(queries[i]) < i,
    clearest: (rows, i) => {
      const leads = rows.weights.map((_, row) => rows.lead(row));
      return i === largest(leads) && leads[i] >= LIMITS.clearest;
    },
  };

  /** The first row that a selector fits, or of “late” the last; of “A or B” one of B where A fits
   * none; of “any” a drawn one. */
  pick(selector, fits) {
    for (const option of selector.split(" or ")) {
      const words = option.split(",").map((word) => word.trim());
      const rows = this.weights.map((_, i) => i)
        .filter((i) => words.every((word) => Rows.WORDS[word](this, i)));
      if (!rows.length) continue;
      const fitting = (words.includes("late") ? rows.reverse() : rows).filter(fits);
      if (!fitting.length) break;
      return fitting[selector.includes("any") ? Math.floor(Math.random() * fitting.length) : 0];
    }
    throw new NoQuestion(LIMITS.no_row);
  }

  /** Placeholders of a row: [those that give nothing away, those about its weights]. Of a word that
   * stands there twice they say which one, as choices do; `token` is the word alone. */
  values(i) {
    const row = this.weights[i];
    const [j, k] = this.order[i];
    const [rows, keys] = [this.weights.map((_, at) => this.label(at)), this.keys].map(namesOf);
    const given = { row: rows[i], token: this.label(i), next: this.queries[i + 1] ?? END, position: `${i + 1}`,
      before: `${i}`, length: `${this.queries.length}` };
    const shown = { key: keys[j], weight: percent(row[j]), rest: percent(1 - row[j]),
      "end share": percent(sum(row.filter((_, at) => isMark(this.keys[at])))) };
    if (this.keys.length > 1)
      Object.assign(shown, { "second key": keys[k], "second weight": percent(row[k]) });
    return [given, shown];
  }
}

/** The right answer, those of misconceptions, then the next best, shuffled. */
function choicesOf(answer, wrong, more) {
  const choices = [...new Set([answer, ...wrong, ...more])].slice(0, LIMITS.most_choices);
  if (choices.length < 2) throw new NoQuestion(LIMITS.no_choice);
  for (let i = choices.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [choices[i], choices[j]] = [choices[j], choices[i]];
  }
  return choices;
}

/** Misconception → the answer that it gives, without those that give none or the right one. */
const mistakes = (answers, right) => Object.fromEntries(Object.entries(answers)
  .filter(([, answer]) => answer !== undefined && answer !== right));

// “type: ask” → from a step, its rows and the pass: which rows may be asked about (`fits`), and the
// question of a row, or of none.

const leads = ({ own }, rows) => (i) => rows.first[i] - rows.second[i] >= (own ? LIMITS.lead_own : LIMITS.lead);
const allowed = (row) => row.filter((weight) => weight > 0).length; // a masked weight is exactly 0
// Half a percent and less would be within the tolerance of everything.
const shares = (step, rows) => (i) => allowed(rows.weights[i]) > 1 && rows.second[i] >= LIMITS.least;
const number = (answer, answers, more = {}) => ({ kind: "number", answer, tolerance: LIMITS.tolerance,
  misconceptions: mistakes(answers, answer), ...more });

/** Two weights and what the first leaves, with so many decimals that the share that they give is the one
 * that is printed. */
function printed(weight, second) {
  const share = percent(second / (1 - weight));
  const found = [0, 1, 2, 3].map((digits) => [weight, second, 1 - weight].map((x) => percent(x, digits)));
  const told = found.find(([, ...parts]) => {
    const [part, rest] = parts.map((text) => Number(text.replace(/[<%]/g, "")));
    return percent(part / rest) === share;
  });
  const [first, next, rest] = told ?? found.at(-1);
  return { weight: first, "second weight": next, rest };
}

const ASKS = {
  "row: largest key": { fits: leads, draw(step, rows, i) {
    const { weights } = rows;
    const names = namesOf(rows.keys);
    const open = rows.order[i].filter((j) => weights[i][j] > 0);
    const places = { "row for column": rows.downTheColumn(i),
      "next row": i + 1 < weights.length ? rows.key(i + 1) : -1, "same place": i };
    const answers = Object.fromEntries(Object.entries(places)
      .filter(([, j]) => open.includes(j)).map(([name, j]) => [name, names[j]]));
    const answer = names[rows.key(i)];
    return { kind: "choose", answer, misconceptions: mistakes(answers, answer),
      choices: choicesOf(answer, Object.values(answers), open.map((j) => names[j])),
      shown: { "steps back": `${i - rows.key(i)}` }, covered: "row" };
  } },
  "row: largest row": { draw(step, rows) {
    const { weights, keys } = rows;
    const columns = keys.map((_, j) => j).filter((j) => {
      const [first, second = 0] = rows.column(j).toSorted((a, b) => b - a);
      return first >= LIMITS.sharp && second <= first / 2 && !isMark(keys[j]);
    });
    const fresh = columns.filter((j) => !rows.used.columns.has(j));
    const from = fresh.length ? fresh : columns;
    if (!from.length) throw new NoQuestion(LIMITS.no_column);
    const j = from.at(step.keys.column === "any" ? Math.floor(Math.random() * from.length) : -1);
    const labels = namesOf(weights.map((_, i) => rows.label(i)));
    const column = rows.column(j);
    const i = largest(column);
    const answers = { "next column": labels[j + 1 < keys.length ? largest(rows.column(j + 1)) : -1],
      "same place": labels[j], "column for row": labels[rows.alongTheRow(j)] };
    const wrong = Object.values(answers).filter((label) => label !== undefined);
    return { kind: "choose", answer: labels[i], misconceptions: mistakes(answers, labels[i]),
      choices: choicesOf(labels[i], wrong, ranked(column).map((row) => labels[row])),
      given: { column: namesOf(keys)[j] }, shown: { row: labels[i], weight: percent(column[i]) },
      covered: "column", place: j };
  } },
  "shares: covered weight": { fits: shares, draw(step, rows, i) {
    const row = rows.weights[i], j = rows.key(i), names = namesOf(rows.keys);
    // With a decimal, so that rounding does not change what is left.
    const others = names.map((name, at) => [name, row[at], at])
      .filter(([, weight, at]) => at !== j && weight > 0)
      .map(([name, weight]) => `${name} ${(100 * weight).toFixed(1)}%`).join(", ");
    return number(row[j], { "one share of all": 1 / allowed(row), "the rest": 1 - row[j],
      "column for row": 1 - (sum(rows.column(j)) - row[j]) }, { given: { others }, covered: "row" });
  } },
  "shares: weight after hiding": { fits: shares, draw(step, rows, i) {
    const row = rows.weights[i];
    const [j, k] = rows.order[i], { rest, ...given } = printed(row[j], row[k]);
    return number(row[k] / (1 - row[j]), { "not renormalised": row[k], "gets all of it": row[j] + row[k],
      "shared equally": row[k] + row[j] / (allowed(row) - 1) },
    { tells: ["key", "second key"], given, shown: { ...given, rest }, covered: "changed row" });
  } },
  "shares: only key": { fits: (step, rows) => (i) => allowed(rows.weights[i]) === 1,
    draw: (step, { weights }, i) => number(1, { "one share of all": weights[i].length > 1
      ? 1 / weights[i].length : undefined, "half for the first": 0.5 }, { tolerance: 0, covered: "row" }) },
  "read: ": { draw: () => ({ kind: "read", tells: true }) },
  "act: hidden {key} in this head": { fits: () => () => true, draw: (step, rows, i, pass) => ({
    kind: "do", tells: ["key"], done: isHiddenHere(pass.now, step.head, i, rows.key(i)) }) },
  "named head: ": { draw: (step, rows, i, pass) => findHead(step.keys, pass) },
};

/** Whether a head may not attend to a key, but its neighbours may. */
function isHiddenHere({ heads }, { kind, layer, head }, i, j) {
  const [here, ...others] = heads(kind, layer).toSorted((a, b) => (b.head === head) - (a.head === head));
  const most = ({ weights }) => Math.max(...weights.map((row) => row[j]));
  return most(here) === 0 && sum(here.weights[i]) > 0.99 && Math.max(...others.map(most)) > 0;
}

const PATTERNS = { // name → whether a cell belongs to it
  "previous token": (i, j) => j === i - 1,
  "next token": (i, j) => j === i + 1,
  itself: (i, j) => i === j,
  "first-token sink": (i, j) => j === 0 && i > 0,
};

/** [share of the weight in a pattern, its score: 0 for a uniform head, 1 for a perfect example], means
 * over the rows that have a choice (model/analysis/head_metrics.py). */
function measure(weights, inPattern) {
  let [count, share, even] = [0, 0, 0];
  weights.forEach((row, i) => {
    const open = row.map((_, j) => j).filter((j) => row[j] > 0);
    const inside = open.filter((j) => inPattern(i, j));
    if (!inside.length || inside.length === open.length) return;
    count++;
    share += sum(inside.map((j) => row[j]));
    even += inside.length / open.length;
  });
  if (!count) return [0, 0];
  [share, even] = [share / count, even / count];
  return [share, Math.max(0, Math.min(1, (share - even) / (1 - even)))];
}

/** A head with a pattern, to be selected. Only in self-attention. */
function findHead({ pattern, view = {} }, { trained, sites, threshold }) {
  const heads = sites.filter((site) => site.query_side === site.key_side)
    .filter(({ kind, layer }) => kind === (view.kind ?? kind) && layer + 1 === (view.layer ?? layer + 1))
    .flatMap(({ kind, layer }) => trained.heads(kind, layer).map(({ head, weights }) => ({
      name: `${kind} ${layer} ${head}`,
      of: Object.fromEntries(Object.entries(PATTERNS).map(([name, of]) => [name, measure(weights, of)])),
    })));
  const fitting = (name) => heads.filter(({ of }) => of[name][1] >= threshold).map((one) => one.name);
  const answer = fitting(pattern);
  if (!answer.length || answer.length === heads.length)
    throw new NoQuestion(LIMITS.no_head.replace("{pattern}", pattern));
  const share = Math.max(...heads.filter(({ name }) => answer.includes(name)).map(({ of }) => of[pattern][0]));
  const misconceptions = Object.fromEntries(Object.keys(PATTERNS).filter((name) => name !== pattern)
    .map((name) => [name, fitting(name).filter((head) => !answer.includes(head))])
    .filter(([, some]) => some.length));
  return { kind: "find", answer, misconceptions, shown: { share: percent(share), fitting: `${answer.length}` } };
}

/** The question of a step of `lesson`, counted from 1: {kind, answer, choices, tolerance, given, shown,
 * misconceptions, row, veil}, as app/lessons/question.py has it. pass: {trained, now, sites}, each of
 * the first two {heads(kind, layer) → [{head, weights, queries, keys}]}. Throws NoQuestion. */
export function questionOf(lesson, number, pass) {
  const step = lesson.steps[number - 1];
  const { fits, draw } = ASKS[step.question];
  const rows = step.head && rowsOf(lesson, number, pass);
  const hasRow = fits || step.keys.row;
  const i = hasRow ? rows.pick(step.keys.row ?? "any", fits?.(step, rows) ?? (() => true)) : null;
  const [given, shown] = hasRow ? rows.values(i) : [{}, {}];
  const { tells = [], covered, place = i, ...question } = draw(step, rows, i, { ...pass, threshold: lesson.threshold });
  // What the question itself tells, its reveal need not keep back.
  for (const name of tells === true ? Object.keys(shown) : tells) given[name] = shown[name];
  return { misconceptions: {}, choices: [], ...question, row: covered ? null : i,
    given: { ...given, ...question.given }, shown: { ...shown, ...question.shown, ...(question.kind === "number" &&
      { answer: percent(question.answer) }) },
    veil: covered ? [{ what: covered, ...step.head, place }] : [] };
}

/** The rows of a step's head, with those that earlier steps were about. */
function rowsOf(lesson, number, pass) {
  const { head: { kind, layer, head, shift }, keys, own } = lesson.steps[number - 1];
  const used = { rows: new Set(), columns: new Set() };
  const looksBack = !own && (keys.row?.includes("new") || "column" in keys);
  for (let n = 1; looksBack && n < number; n++) {
    const step = lesson.steps[n - 1];
    if (!step.keys.row || !step.head) continue;
    try {
      const rows = rowsOf(lesson, n, pass);
      const i = rows.pick(step.keys.row, ASKS[step.question]?.fits?.(step, rows) ?? (() => true));
      used.rows.add(i);
      used.columns.add(rows.key(i));
    } catch (error) {
      if (!(error instanceof NoQuestion)) throw error;
    }
  }
  return new Rows(pass.trained.heads(kind, layer)[head], shift, used);
}

// Marking

/** A number as students type it: 0.46, 0,46 and 3/4, and of a share also 46% and 46; the ways to read it,
 * as “1,250” may be either. Throws with a sentence. */
function numbersIn(answer) {
  let text = answer.trim().replace("−", "-").replace(/[\u202f\xa0]/g, "");
  const isPercent = text.endsWith("%");
  text = text.replace(/%$/, "").trim();
  const isGrouped = /^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(text);
  const mayBeDecimal = !isGrouped || /^[^,.]*,[^,.]*$/.test(text);
  const texts = [isGrouped && text.replaceAll(",", ""), mayBeDecimal && text.replaceAll(",", ".")];
  return texts.filter((one) => one !== false).flatMap((one) => {
    const parts = one.split("/").map((part) => part.trim());
    if (text.length > 40 || parts.length > 2 ||
        !parts.every((part) => /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(part)))
      throw new Error(`“${answer.slice(0, 60)}” is not a number.`);
    const value = parts.map(Number).reduce((a, b) => a / b);
    if (!Number.isFinite(value)) throw new Error("That number is too large, or divided by 0.");
    return isPercent ? [value / 100] : value > 1 ? [value / 100, value] : [value];
  });
}

/** {right, sentence, misconception} of an answer: a choice, a typed number or a head's name. Throws with
 * a sentence for what is no answer. */
export function mark({ kind, answer, tolerance, misconceptions }, given) {
  const mistaken = Object.entries(misconceptions);
  const wrong = (names) => ({ right: false, sentence: "No.", misconception: names.length === 1 ? names[0] : "" });
  const right = { right: true, sentence: "Right.", misconception: "" };
  if (kind === "number") {
    const near = (x, y) => Math.abs(x - y) <= tolerance + 1e-9 * Math.max(1, Math.abs(y));
    const readings = numbersIn(given);
    if (readings.some((x) => near(x, answer))) return right;
    for (const x of readings) {
      const fitting = mistaken.filter(([, y]) => near(x, y)).sort((a, b) => Math.abs(x - a[1]) - Math.abs(x - b[1]));
      const [first] = fitting;
      const clashes = first && mistaken.some((other) => other !== first && near(first[1], other[1]));
      if (first && !clashes) return wrong([first[0]]);
    }
    const most = Math.max(2 * tolerance, LIMITS.close * Math.abs(answer));
    return tolerance && readings.some((x) => Math.abs(x - answer) <= most)
      ? { ...wrong([]), sentence: "Right idea; not exact." } : wrong([]);
  }
  if (kind === "find") return answer.includes(given) ? right
    : wrong(mistaken.filter(([, heads]) => heads.includes(given)).map(([name]) => name));
  return given === answer ? right : wrong(mistaken.filter(([, other]) => other === given).map(([name]) => name));
}
