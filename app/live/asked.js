// What the stage asks of a run besides its weights (app/shell/stage.py), each as a generator that pauses
// between passes. What is not here is not known in a page: habits over many sentences, reasons.

import { ordinaryWords } from "./alignment.js";
import { applied } from "./applying.js";
import { partAt } from "./cache.js";
import { logSum, predictions } from "./packing.js";
import { trace } from "./probing.js";
import { write } from "./writing.js";

const MOST_ROWS = 200; // of predictions, after each layer
const MOST_PLACES = 256; // of a text, at once
const MOST_CELLS = 1_000_000; // of the scores of a head

/** A head step by step, as it computes under the changes: queries `q`, (query, d_head), keys and values
 * `k` and `v`, (key, d_head), `scores`, q · k, `mask` and `weights`, (query, key); null where they are
 * too many. */
function headOf({ model }, { ids, over, changes }, { kind, layer, head }) {
  const site = model.sites().filter((one) => one.kind === kind)[layer];
  if (!site || head >= site.n_heads || ids[site.query_side].length * ids[site.key_side].length > MOST_CELLS) return null;
  const attention = partAt(model, site.name), found = {}, hooked = [];
  const listen = (hooks, hear) => {
    hooked.push([hooks, hear]);
    hooks.push(hear);
  };
  const remove = applied(model, changes); // before ours, which then hear what the model used
  for (const name of ["query", "key", "value"]) listen(attention[name].after, (x) => { found[name] = x; });
  listen(attention.softmax.before, (_, mask) => { found.mask = mask; });
  let weights;
  try {
    weights = trace(model, ids, over).weights[site.name];
  } finally {
    for (const [hooks, hear] of hooked) hooks.splice(hooks.indexOf(hear), 1);
    remove();
  }
  const [, heads, rows, columns] = weights.shape;
  const [q, k, v] = ["query", "key", "value"].map((name) => ofHead(found[name], head, heads));
  const table = (fill) => ({ rows, columns, data: Float32Array.from({ length: rows * columns }, (_, at) => fill(Math.floor(at / columns), at % columns)) });
  const scores = table((i, j) => {
    let sum = 0;
    for (let n = 0; n < q.columns; n++) sum += q.data[i * q.columns + n] * k.data[j * q.columns + n];
    return sum;
  });
  const mask = table((i, j) => {
    if (!found.mask) return 1;
    const [of, high] = found.mask.shape;
    return found.mask.data[((of === 1 ? 0 : head) * high + (high === 1 ? 0 : i)) * columns + j];
  });
  return { q, k, v, scores, mask, weights: table((i, j) => weights.data[(head * rows + i) * columns + j]) };
}

/** The numbers of one head out of those of all, side by side in each row. */
function ofHead({ data, width }, head, heads) {
  const columns = width / heads, rows = data.length / width, found = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++) found.set(data.subarray(i * width + head * columns, i * width + (head + 1) * columns), i * columns);
  return { rows, columns, data: found };
}

/** Records the vectors that enter the first layer of a stack and that leave each: {depths, remove}. */
function depthsOf(model, stack) {
  const { layers } = partAt(model, stack);
  const depths = [];
  const first = (x) => { depths.push(x); };
  const after = (x) => { depths.push(x); };
  layers[0].before.push(first);
  for (const layer of layers) layer.after.push(after);
  return { depths, remove: () => {
    layers[0].before.splice(layers[0].before.indexOf(first), 1);
    for (const layer of layers) layer.after.splice(layer.after.indexOf(after), 1);
  } };
}

/** The likeliest `answers` after each layer and their `probability`, [depth][row], and the depth from which on
 * each row's stays, `settled`. */
function* after(reader, { ids, over, changes }) {
  const { model, predicted: { name, stack } } = reader, { depths, remove } = depthsOf(model, stack);
  try {
    trace(model, ids, over, changes);
  } finally {
    remove();
  }
  const best = [];
  for (const x of depths) {
    yield;
    const logits = model.logits(model[stack].norm.run(x), [ids[name]]);
    best.push(predictions(logits, (id, row) => [id, reader.labelOf(id, ids[name][row])], 1).slice(0, MOST_ROWS).map(([one]) => one));
  }
  const final = best.at(-1);
  return { answers: best.map((rows) => rows.map(([[, label]]) => label)), probability: best.map((rows) => rows.map(([, share]) => share)),
    settled: final.map(([[id]], row) => best.findLastIndex((rows) => rows[row][0][0] !== id) + 1) };
}

/** What the likeliest answer in a row of the logits needs: each word is hidden from all queries, one at a
 * time (`needs_of` in app/results/word_results.py). */
function* needs({ model, sides, predicted, kinds, tokenizer }, { ids, over, changes, now }, { row }) {
  const ofIt = kinds.filter(([{ query_side }]) => query_side === predicted.name);
  const sites = ofIt.find(([{ key_side }]) => key_side !== predicted.name) ?? ofIt[0], [{ kind, key_side, query_side }] = sites;
  const [best] = predictions(now.logits, (id) => id, 1)[row] ?? [], isClass = predicted.predicts === "class";
  if (!best) return null;
  const rows = isClass ? [...ids[query_side].keys()].filter((at) => ids[query_side][at] !== model.config.pad_id) : [row];
  const count = ids[key_side].length, mean = new Float64Array(count);
  for (const { name } of sites) {
    const { shape: [, heads, queries], data } = now.weights[name];
    for (let head = 0; head < heads; head++)
      for (const i of rows)
        for (let j = 0; j < count; j++) mean[j] += data[(head * queries + i) * count + j] / (sites.length * heads * rows.length);
  }
  const text = tokenizer.encoding(ids[key_side]), end = query_side === key_side && !isClass ? row + 1 : count;
  const read = { ...text, ids: ids[key_side].slice(0, end), offsets: text.offsets.slice(0, end), tokens: text.tokens.slice(0, end) };
  const words = ordinaryWords(read, tokenizer.special), hidden = kinds.filter(([site]) => site.key_side === key_side);
  const probability = [];
  for (const { start, stop } of words) {
    yield;
    const tokens = Array.from({ length: stop - start }, (_, i) => start + i);
    const hides = hidden.map(([{ kind: of }]) => ({ kind: of, layer: null, head: null, verb: "hide", tokens }));
    const { data, width } = trace(model, ids, over, [...changes, ...hides]).logits, logits = data.subarray(row * width, (row + 1) * width);
    probability.push(Math.exp(logits[best[0]] - logSum(logits)));
  }
  return { kind, side: sides.find(({ name }) => name === key_side).title, words: words.map(({ word }) => word), tokens: words.map(({ start, stop }) => [start, stop]),
    attention: words.map(({ start, stop }) => mean.subarray(start, stop).reduce((sum, share) => sum + share, 0)), probability, all: best[1] };
}

/** By how much the log-probability of the output changes without each head by itself: `effects`, kind →
 * [layer][head]; no survey comes with a page, which would say more. */
function* effect(reader, { ids, over, changes, now }) {
  const { model, predicted, kinds } = reader, own = ids[predicted.name];
  const likeliest = predictions(now.logits, (id) => id, 1)[0][0][0];
  const score = (logits) => (predicted.predicts === "class" ? logits.data[likeliest] - logSum(logits.data)
    : reader.logProbabilities(logits, own).reduce((sum, one) => sum + one, 0));
  const before = score(now.logits), effects = {};
  for (const { kind, layer, n_heads } of kinds.flat()) {
    const of = (effects[kind] ??= [])[layer] = [];
    for (let head = 0; head < n_heads; head++) {
      yield;
      of.push(score(trace(model, ids, over, [...changes, { kind, layer, head, verb: "off" }]).logits) - before);
    }
  }
  return { effects, needed: null, sentences: 0 };
}

const some = (...names) => function* (reader, run, asked) {
  yield;
  const found = headOf(reader, run, asked);
  return found && Object.fromEntries(names.map((name) => [name, found[name]]));
};

/** What the places of a text bring into layer 1, from one place on: the `table`, the `token`s' embeddings, and
 * what is `embedded`, each (place, number). */
function* positions({ model, sides }, { ids }, { side, from }) {
  yield;
  const known = sides.find(({ title }) => title === side), own = known && ids[known.name];
  if (!own) return null;
  const { position, token } = model[`${known.name}_embedding`], places = own.slice(from, from + MOST_PLACES);
  const table = ({ width, data }, start) => ({ rows: places.length, columns: width, data: data.slice(start * width, (start + places.length) * width) });
  const [added, words] = [table(position.forward(own.length), from), table(token.forward([places]), 0)];
  return { table: added, token: words, embedded: { ...added, data: added.data.map((value, at) => value + words.data[at]) } };
}

export const ANSWERS = { scores: some("scores", "mask", "weights", "v"), vectors: some("q", "k"), after, needs, positions, effect, write };
