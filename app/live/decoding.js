// From source ids to target ids, for one sentence: greedy and beam search (model/decoding/search.py),
// and sampling (generate.py).
// Both are generators that pause after every token, so a worker can listen in between.

import { argmax, logSoftmax } from "./arrays.js";
import { OneByOne } from "./cache.js";
import { masksFor, rowsFrom } from "./masks.js";

/** The logits of the next token for growing targets of one length, (row, vocab_size), one call per
 * step. The cache is causal by construction; when it is not `cached`, every target is read in a full
 * pass. For a decoder alone, `src` is the prompt that its targets begin with. */
export class Steps {
  read = 0;

  constructor(model, src, masks, capacity, cached) {
    Object.assign(this, { model, src, masks: { ...masks, tgt_padding: false } });
    if (model.encode) {
      [this.src_mask, , this.memory_mask] = masksFor(model, { src, tgt: src }, masks);
      this.memory = model.encode([src], this.src_mask);
    }
    if (cached) this.one_by_one = new OneByOne(model, capacity);
  }

  next(tgt) {
    const reader = this.one_by_one?.model ?? this.model;
    const start = this.one_by_one ? this.read : 0;
    this.read = tgt[0].length;
    const added = tgt.map((ids) => ids.slice(start));
    // A pad in a growing target is a token that the model wrote. A single row needs no mask.
    const all = added[0].length === 1 ? [null, null] :
      masksFor(this.model, { src: this.src, tgt: tgt[0] }, this.masks);
    const mask = rowsFrom(this.memory ? all[1] : all[0], start);
    const hidden = this.memory ? reader.decode(added, this.memory, mask, this.memory_mask)
      : reader.hidden(added, mask);
    const [rows, length, d_model] = hidden.shape;
    const last = tgt.map((_, row) => row * length + length - 1);
    return reader.logits(hidden.as(rows * length, d_model).rows(last));
  }

  /** Row i continues what row `rows[i]` was. */
  reorder(rows) {
    this.one_by_one?.reorder(rows);
  }
}

/** How many tokens a translation may have: generous, and within what the model reads. */
export function longest({ max_length }, srcLength) {
  return Math.min(2 * srcLength + 20, max_length - 1);
}

/** The most probable next token, or the one that `choose` takes from the logits, again and again, until
 * eos or `maxLength` tokens. Returns ids without the start and without eos, `beginning` with these.
 * `cached`: see Steps; it needs the causal mask. */
export function* greedyDecode(model, src, masks, {
  cached = masks.causal, maxLength = longest(model.config, src.length), beginning = [],
  choose = argmax,
} = {}) {
  const start = startOf(model, src);
  const steps = new Steps(model, src, masks, start.length + maxLength, cached);
  const ids = [...beginning];
  while (ids.length < maxLength) {
    const token = choose(steps.next([[...start, ...ids]]).data);
    if (token === model.config.eos_id) break;
    ids.push(token);
    yield;
  }
  return ids;
}

/** Draws a token from the softmax of logits at a temperature; with `topK`, of the k most probable ones.
 * The numbers of a seed are this page's own: PyTorch draws others. */
export function sampler({ temperature, topK = 0, seed }) {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5eed) || 1;
  const random = () => { // xorshift (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 8; i++) random(); // the first numbers of small seeds are alike
  return (logits) => {
    const least = topK ? logits.toSorted().at(-Math.min(topK, logits.length)) : -Infinity;
    const most = logits.reduce((a, b) => Math.max(a, b));
    const weights = Array.from(logits, (logit) =>
      (logit < least ? 0 : Math.exp((logit - most) / temperature)));
    let left = random() * weights.reduce((a, b) => a + b);
    const at = weights.findIndex((weight) => weight && (left -= weight) < 0);
    return at < 0 ? argmax(logits) : at; // rounding left nothing
  };
}

/** The divisor of a log-probability, so that long targets are not at a disadvantage (Wu et al. 2016,
 * equation 14). */
export function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

/** The best of `beam` targets grown side by side (section 6.1). Ends when `beam` targets have ended
 * and none that still grows is better. `hear` gets the candidates of each step, best first, each with
 * its score and `total` log-probability, the place `row` where it goes on (-1: nowhere), and whether it has `ended`. */
export function* beamSearch(model, src, masks, {
  beam = 4, alpha = 0.6, cached = masks.causal, maxLength = longest(model.config, src.length),
  beginning = [], hear = () => {},
} = {}) {
  const start = [...startOf(model, src), ...beginning];
  const whole = ({ ids }) => [...beginning, ...ids];
  maxLength -= beginning.length;
  const steps = new Steps(model, src, masks, start.length + maxLength, cached);
  let growing = [{ ids: [], total: 0 }];
  let ended = [];
  for (let length = 1; length <= maxLength; length++) {
    const penalty = lengthPenalty(length, alpha);
    const logits = logSoftmax(steps.next(growing.map(({ ids }) => [...start, ...ids])));
    // At most one child of each target is eos, so twice as many leave enough to go on with.
    const candidates = largest(logits, growing.map(({ total }) => total), 2 * beam);
    const isEos = ({ token }) => token === model.config.eos_id;
    for (const child of candidates.slice(0, beam).filter(isEos))
      ended.push({ ids: growing[child.parent].ids, score: child.total / penalty });
    ended = ended.sort((a, b) => b.score - a.score).slice(0, beam);
    const children = candidates.filter((child) => !isEos(child)).slice(0, beam);
    hear(candidates.map((child, rank) => ({ parent: child.parent, token: child.token,
      score: child.total / penalty, total: child.total, row: children.indexOf(child), ended: rank < beam && isEos(child) })));
    steps.reorder(children.map(({ parent }) => parent));
    growing = children.map(({ parent, token, total }) =>
      ({ ids: [...growing[parent].ids, token], total }));
    yield;
    if (ended.length === beam && ended.at(-1).score >= growing[0].total / penalty)
      return whole(ended[0]);
  }
  // Out of room: the best unfinished target competes too.
  const grown = { ids: growing[0].ids, score: growing[0].total / lengthPenalty(maxLength, alpha) };
  return whole([...ended, grown].reduce((best, other) => (other.score > best.score ? other : best)));
}

/** The `count` largest sums of a row's total and a log-probability in it: {parent, token, total},
 * best first. */
function largest(logits, totals, count) {
  const best = [];
  for (let at = 0; at < logits.data.length; at++) {
    const parent = Math.floor(at / logits.width);
    const total = Math.fround(logits.data[at] + totals[parent]);
    if (best.length === count && total <= best.at(-1).total) continue;
    const place = best.findIndex((other) => other.total < total);
    best.splice(place < 0 ? best.length : place, 0, { parent, token: at % logits.width, total });
    best.length = Math.min(best.length, count);
  }
  return best;
}

function startOf(model, src) {
  return model.encode ? [model.config.bos_id] : src;
}
