// Makes a model run with changes, through hooks that are removed again (model/probing/applying.py).
// Masks and temperatures change what enters the softmax, so rows renormalise; weights what leaves it;
// heads what enters the output projection; a skipped sublayer gives zeros.

import { Tensor } from "./arrays.js";
import { partAt } from "./cache.js";
import { CannotChange, PATTERNS, VERBS, writtenEntry } from "./changes.js";

const OF_SOFTMAX = new Set(
  ["mask", "hide", "forbid", "allow", "temperature", "weight", "uniform"]);
const LEAST = 1e-30; // temperature

/** Whether a target can be written with a cache: painted masks may let a token attend to later ones. */
export const isCausal = (masks, changes) =>
  masks.causal && !changes.some(({ verb }) => verb === "mask" || verb === "allow");

/** Hooks that make the model run with the changes; returns the function that removes them. Throws
 * CannotChange for a part that the model does not have. */
export function applied(model, changes) {
  const parts = partsOf(model);
  for (const change of changes) check(change, parts);
  const inOrder = changes.toSorted((a, b) => VERBS[a.verb].order - VERBS[b.verb].order);
  const hooked = []; // [list, hook]
  const add = (list, hook) => {
    list.push(hook);
    hooked.push([list, hook]);
  };
  const read = {}; // side → tokens read so far: with a cache a pass has one row of many
  for (const { name } of changes.length ? model.sides() : [])
    add(model[`${name}_embedding`].position.before, (length) => { read[name] = length; });
  for (const part of parts) {
    const here = inOrder.filter((change) => concerns(change, part));
    if (!here.length) continue;
    const module = partAt(model, part.name);
    const ofSoftmax = here.filter(({ verb }) => OF_SOFTMAX.has(verb));
    if (ofSoftmax.length) {
      const { before, after } = softmaxHooks(part, ofSoftmax, read);
      add(module.softmax.before, before);
      add(module.softmax.after, after);
    }
    const off = here.filter(({ verb }) => verb === "off");
    if (off.length) add(module.output.before, (x) => [withoutHeads(x, off, part.n_heads)]);
    if (here.some(({ verb }) => verb === "skip")) add(module.after, (x) => new Tensor(x.shape));
  }
  return () => hooked.forEach(([list, hook]) => list.splice(list.indexOf(hook), 1));
}

/** The parts that can be changed: every attention, then every feed-forward. */
function partsOf(model) {
  const sites = model.sites().map(({ kind, layer, name, query_side, n_heads }) =>
    ({ what: "attention", kind, layer, name, side: query_side, n_heads }));
  const feed_forwards = model.sides().flatMap(({ name, stack }) =>
    model[stack].layers.map((_, layer) => ({ what: "feed-forward", kind: `${stack}_feed_forward`,
      layer, name: `${stack}.layers.${layer}.feed_forward`, side: name, n_heads: 0 })));
  return [...sites, ...feed_forwards];
}

function concerns({ kind, layer, head, verb }, part) {
  return (kind === "all" || kind === part.kind) && (layer === null || layer === part.layer) &&
    (head === null || head < part.n_heads) && (part.what === "attention" || verb === "skip");
}

function check(change, parts) {
  const quoted = `“${writtenEntry(change)}”`;
  const able = parts.filter(({ what }) => what === "attention" || change.verb === "skip");
  if (change.kind !== "all" && !able.some(({ kind }) => kind === change.kind))
    throw new CannotChange(`${quoted}: “${change.verb}” does not apply to “${change.kind}” in this ` +
      `model; choose from ${[...new Set(able.map(({ kind }) => kind))].join(", ")}.`);
  if (change.verb === "skip" && change.head !== null)
    throw new CannotChange(`${quoted}: this applies to a whole layer, not to a head.`);
  if (!able.some((part) => concerns({ ...change, head: null }, part)))
    throw new CannotChange(`${quoted}: this attention has no layer ${change.layer + 1}.`);
  if (!able.some((part) => concerns(change, part)))
    throw new CannotChange(`${quoted}: this attention has no head ${change.head + 1}.`);
}

const headsOf = ({ head }, n_heads) =>
  (head === null ? Array.from({ length: n_heads }, (_, h) => h) : [head]);

/** Changes the mask and the scores on their way into a softmax, the weights on their way out. */
function softmaxHooks({ side }, changes, read) {
  let allowed, first;
  const before = (scores, mask) => {
    const [batch, heads, rows, keys] = scores.shape;
    first = read[side] - rows;
    scores = new Tensor(scores.shape, scores.data.slice());
    allowed = new Uint8Array(heads * rows * keys).fill(1);
    if (mask)
      for (let at = 0, h = 0; h < heads; h++)
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < keys; j++, at++) allowed[at] = mask.data[
            ((mask.shape[0] === 1 ? 0 : h) * mask.shape[1] + (mask.shape[1] === 1 ? 0 : i)) * keys + j];
    for (const change of changes)
      for (const h of headsOf(change, heads)) {
        const ofHead = allowed.subarray(h * rows * keys, (h + 1) * rows * keys);
        if (change.verb === "temperature")
          for (let b = 0; b < batch; b++) {
            const start = (b * heads + h) * rows * keys;
            for (let i = start; i < start + rows * keys; i++)
              scores.data[i] = clamped(scores.data[i] / Math.max(change.value, LEAST));
          }
        else if (VERBS[change.verb].order === 1) allow(change, ofHead, rows, keys, first);
      }
    return [scores, { shape: [heads, rows, keys], data: allowed }];
  };
  const after = (weights) => {
    const [batch, heads, rows, keys] = weights.shape;
    const output = new Tensor(weights.shape, weights.data.slice());
    for (const change of changes)
      for (let b = 0; b < batch; b++)
        for (const h of VERBS[change.verb].order < 3 ? [] : headsOf(change, heads)) {
          const start = (b * heads + h) * rows * keys;
          const ofHead = output.data.subarray(start, start + rows * keys);
          const allowedOfHead = allowed.subarray(h * rows * keys, (h + 1) * rows * keys);
          if (change.verb === "weight") setWeight(change, ofHead, allowedOfHead, rows, keys, first);
          else uniform(ofHead, allowedOfHead, rows, keys);
        }
    return output;
  };
  return { before, after };
}

const LARGEST = 3.4028234663852886e38; // float32
const clamped = (score) => Math.min(LARGEST, Math.max(-LARGEST, score));

/** Changes what one head may attend to, (row, key); its first row is the query `first`. */
function allow(change, allowed, rows, keys, first) {
  if (change.verb === "hide")
    for (let i = 0; i < rows; i++)
      for (const token of change.tokens) if (token < keys) allowed[i * keys + token] = 0;
  if (change.verb === "forbid" || change.verb === "allow")
    for (const [i, j] of change.cells)
      if (i >= first && i < first + rows && j < keys)
        allowed[(i - first) * keys + j] = Number(change.verb === "allow");
  if (change.verb !== "mask") return;
  for (let j = 0; j < keys; j++) { // padding, which no query may attend to, stays masked
    let visible = false;
    for (let i = 0; i < rows; i++) visible ||= Boolean(allowed[i * keys + j]);
    for (let i = 0; i < rows; i++)
      allowed[i * keys + j] = visible && PATTERNS[change.pattern](i + first, j, change.size);
  }
}

/** Sets one weight; the others of its row are scaled so that the row sums to 1. */
function setWeight(change, weights, allowed, rows, keys, first) {
  const { row, column, weight } = change;
  if (row < first || row >= first + rows || column >= keys) return; // not written yet
  const start = (row - first) * keys;
  if (!allowed[start + column])
    throw new CannotChange(`“${writtenEntry(change)}”: this key is masked, so its weight stays 0.`);
  let rest = 0;
  for (let j = 0; j < keys; j++) if (j !== column) rest += weights[start + j];
  if (weight < 1 && !(rest > 0))
    throw new CannotChange(
      `“${writtenEntry(change)}”: this row has all its weight on one key, so there is nothing to rescale.`);
  for (let j = 0; j < keys; j++) weights[start + j] *= (1 - weight) / (rest || 1);
  weights[start + column] = weight;
}

/** Equal weights for all keys that a row may attend to. */
function uniform(weights, allowed, rows, keys) {
  for (let i = 0; i < rows; i++) {
    const row = allowed.subarray(i * keys, (i + 1) * keys);
    const count = row.reduce((sum, may) => sum + may, 0);
    row.forEach((may, j) => { weights[i * keys + j] = may ? 1 / count : 0; });
  }
}

/** The outputs of all heads side by side, (batch, length, heads · d_head), without some of them. */
function withoutHeads(x, changes, n_heads) {
  const output = new Tensor(x.shape, x.data.slice());
  const d_head = x.width / n_heads;
  for (const change of changes)
    for (const h of headsOf(change, n_heads))
      for (let row = 0; row < output.data.length; row += x.width)
        output.data.fill(0, row + h * d_head, row + (h + 1) * d_head);
  return output;
}
