// Answers the page's questions: reads a text, writes the target, packs all heads for the stage.

import { shiftsOf } from "./alignment.js";
import { applied, isCausal } from "./applying.js";
import { ANSWERS } from "./asked.js";
import { parse } from "./changes.js";
import { beamSearch, greedyDecode } from "./decoding.js";
import { classMoved, differences, moved, nowWrites, peeking, stays, would } from "./findings.js";
import { NoQuestion, questionOf } from "./lesson.js";
import { TRAINED } from "./masks.js";
import { gridText, joined, logSum, pack, predictions } from "./packing.js";
import { readBy, trace } from "./probing.js";

/** Answers to one question after another about a model, {model, tokenizer, classes, continuation, alignment,
 * lesson}: how many tokens a decoder alone writes; the heads that align, as in the card, or null; the lesson as lesson.py carries it, or null. */
export class Reader {
  #count = 0;
  #target = {}; // of the last source as trained: {key, written}
  #trained = {}; // of the last texts as trained: {key, logits, weights}
  #shown = null; // the run that was read last

  constructor({ model, tokenizer, classes, continuation, alignment = null, lesson = null }) {
    Object.assign(this, { model, tokenizer, classes, continuation, alignment, lesson });
    this.sides = model.sides();
    this.predicted = this.sides.find(({ predicts }) => predicts);
    this.kinds = [...Map.groupBy(model.sites(), ({ kind }) => kind).values()];
  }

  /** Parts of the answer to {source, target, masks, changes, padTo, beam, step} as they are ready, and
   * undefined where it may pause: {run, question}, the bytes of all heads with those as trained behind them
   * where something is changed, and the question of the `step` of the lesson, from 1; then {said} of
   * `effect`. Throws with a sentence. */
  *read({ step, ...settings }) {
    const shown = this.#shown = yield* this.run(settings), { ids, isTrained, now, trained } = shown;
    const packed = [now, ...(isTrained ? [] : [trained])].map((one) =>
      this.pack(ids, one.weights, this.answers(one.logits, ids[this.predicted.name])));
    yield { run: joined(packed), question: step ? this.question(step, ids, trained.weights, now.weights) : null };
    yield;
    yield { said: yield* this.effect(shown) };
  }

  /** An answer to what the stage asks of the run that was read last (app/shell/stage.py), or, of a
   * “preview”, of what else could be read; null to what is not known here. */
  *ask({ what, ...asked }) {
    if (what === "preview") return yield* this.preview(asked);
    return (this.#shown && (yield* ANSWERS[what]?.(this, this.#shown, asked) ?? [])) ?? null;
  }

  /** What would be said of the effect of some settings, or `why` there is none. */
  *preview(settings) {
    try {
      const { said, now, rest } = yield* this.effect(yield* this.run(settings));
      return { said: would(said), now, rest };
    } catch (error) {
      return { why: error.message };
    }
  }

  /** A run: {ids, masks, changes, beam}, whether it `isTrained`, without changes, and its target `isTyped`;
   * and {logits, weights} `now` and as `trained`. */
  *run({ source, target, masks, changes: line, padTo, beam }) {
    const { model } = this, changes = parse(line);
    const isTrained = !changes.length && Object.keys(TRAINED).every((name) => masks[name]);
    const [first, second] = this.sides, unpadded = readBy(first, this.encode(source), model.config);
    const ids = { [first.name]: this.padded(unpadded, padTo) };
    if (second) {
      // The target stays the same under changes, so that pictures can be compared.
      const key = JSON.stringify([source, target, beam]);
      if (this.#target.key !== key) {
        const written = target ? this.encode(target) : yield* this.write(unpadded, TRAINED, [], beam);
        this.#target = { key, written };
      }
      ids[second.name] = this.padded(readBy(second, this.#target.written, model.config), padTo);
      yield;
    }
    const now = trace(model, ids, this.over(masks), changes);
    if (isTrained) this.#trained = { key: JSON.stringify(ids), ...now };
    const trained = isTrained ? now : this.trained(ids);
    return { ids, unpadded, masks, over: this.over(masks), changes, beam, isTrained, isTyped: Boolean(target), now, trained };
  }

  /** What the changes of a run do to the output, in parts of sentences (app/shell/effect.py): `said`; `now`,
   * the text that the model writes now as differences from the one before, and `rest`, what is said
   * beside it; and the `output`, a text, or else the likeliest answer. */
  *effect({ ids, masks, changes, beam, isTrained, isTyped, now, trained }) {
    const { predicted, tokenizer } = this, { rows, last } = this.answers(now.logits, ids[predicted.name]);
    const [[likeliest]] = rows.at(rows.length === 1 ? 0 : last);
    const own = predicted.writes ? tokenizer.decode(this.#target.written) : likeliest;
    if (isTrained) return { said: [], now: [], rest: [], output: own };
    if (predicted.predicts === "class")
      return { said: classMoved(this.classMoved(trained.logits, now.logits)), now: [], rest: [], output: own };
    const peek = masks.causal ? null : this.peek(now.weights, ids), first = peek ? peeking(peek) : [];
    const most = this.moved(trained.logits, now.logits, ids[predicted.name]), start = peek ? "finished" : "after";
    if (!predicted.writes || isTyped) return { said: [...first, ...moved(most, start)], now: [], rest: [], output: own };
    const again = tokenizer.decode(yield* this.write(ids[this.sides[0].name], masks, changes, beam));
    const isPeekAlone = peek && !changes.length && Object.keys(TRAINED).every((name) => masks[name] === (name !== "causal"));
    const rest = again === own ? [...first, ...stays("translation", isPeekAlone), ...moved(most, start)]
      : [...first, ...moved(most, "former")];
    if (again === own) return { said: rest, now: [], rest, output: again };
    return { said: [...first, ...nowWrites(own, again), ...moved(most, "former")],
      now: again.trim() ? differences(own, again) : [], rest, output: again };
  }

  /** The question of a step, or {problem} in a sentence. */
  question(step, ids, trained, now) {
    const sites = this.kinds.flat();
    const of = (weights) => ({ heads: (kind, layer) => {
      const { name, query_side, key_side } = sites.find((site) => site.kind === kind && site.layer === layer);
      const { shape: [, heads, rows, columns], data } = weights[name];
      const [queries, keys] = [query_side, key_side].map((side) => this.tokenizer.encoding(ids[side]).tokens);
      const isOfOneText = query_side === key_side;
      return Array.from({ length: heads }, (_, head) => ({ head, queries, keys, isOfOneText,
        weights: Array.from({ length: rows }, (_, i) => {
          const start = (head * rows + i) * columns;
          return [...data.subarray(start, start + columns)];
        }) }));
    } });
    try {
      return questionOf(this.lesson, step, { trained: of(trained), now: of(now), sites });
    } catch (error) {
      if (error instanceof NoQuestion) return { problem: error.message };
      throw error;
    }
  }

  /** Masks for a written target: a <pad> that the model wrote is an ordinary token. */
  over(masks) {
    const hasPad = this.#target.written?.includes(this.model.config.pad_id);
    return hasPad ? { ...masks, tgt_padding: false } : masks;
  }

  /** {logits, weights} of the model as trained. */
  trained(ids) {
    const key = JSON.stringify(ids);
    if (this.#trained.key !== key)
      this.#trained = { key, ...trace(this.model, ids, this.over(TRAINED)) };
    return this.#trained;
  }

  /** Ids of the text that the model writes: greedily, or with beams. `more`: as both take it. */
  *write(ids, masks, changes, beam, more = {}) {
    const remove = applied(this.model, changes), options = { cached: isCausal(masks, changes), ...more };
    try {
      return yield* beam > 1 ? beamSearch(this.model, ids, masks, { ...options, beam })
        : greedyDecode(this.model, ids, masks, options);
    } finally {
      remove();
    }
  }

  /** Ids of a text. Throws where it is longer than the model reads. */
  encode(text) {
    const most = this.model.config.max_length - 1; // one for <s> or </s>
    const refuse = (length) => {
      throw new Error(`The text is ${length} tokens long; this model reads at most ${most}.`);
    };
    const least = this.tokenizer.atLeast(text);
    if (least > most) refuse(`at least ${least}`);
    const ids = this.tokenizer.encode(text);
    if (ids.length > most) refuse(ids.length);
    return ids;
  }

  /** With padding at the end, up to `length` tokens. */
  padded(ids, length) {
    const { max_length, pad_id } = this.model.config;
    if (length > max_length)
      throw new Error(`A padded length of ${length} is too long; this model reads at most ${max_length}.`);
    return [...ids, ...Array(Math.max(0, length - ids.length)).fill(pad_id)];
  }

  pack(ids, weights, answers) {
    const title = Object.fromEntries(this.sides.map((side) => [side.name, side.title]));
    const sides = {};
    for (const side of this.sides)
      sides[side.title] = gridText(side, this.tokenizer.encoding(ids[side.name]),
        this.tokenizer.special, this.following(side, ids[side.name]));
    const parts = this.kinds.map((sites) => {
      const [{ kind, title: name, query_side, key_side, n_heads }] = sites;
      return {
        kind, name: name[0].toUpperCase() + name.slice(1), query: title[query_side],
        key: title[key_side], heads: n_heads, numbers: sites.map(({ layer }) => layer + 1),
        shifts: query_side !== key_side && this.alignment ? shiftsOf(this.alignment).flat() : [],
        layers: sites.map((site) => weights[site.name]),
      };
    });
    return pack(`${++this.#count} `, sides, parts, answers);
  }

  /** A class, or a token after another. */
  labelOf(id, before) {
    return this.classes[id] ?? this.tokenizer.token(id, before);
  }

  answers(logits, ids) {
    const { title } = this.predicted, rows = predictions(logits, (id, row) => this.labelOf(id, ids[row]));
    const last = Math.min(this.withoutPadding(ids), rows.length) - 1;
    return { side: title, rows, last };
  }

  /** The token after each of a text whose next tokens are predicted: eos after the last, and padding as
   * it is. Empty for another text. */
  following({ predicts }, ids) {
    if (predicts !== "next token" || !ids.length) return [];
    const real = this.withoutPadding(ids);
    const next = [...ids.slice(1, real), this.model.config.eos_id, ...ids.slice(real)];
    return this.tokenizer.encoding(next).tokens;
  }

  withoutPadding(ids) {
    return ids.findLastIndex((id) => id !== this.model.config.pad_id) + 1;
  }

  /** The log-probability of each token after the first, in its row, and of the eos that follows the last. */
  logProbabilities(logits, ids) {
    const { eos_id } = this.model.config, wanted = ids.slice(1, this.withoutPadding(ids));
    if (eos_id >= 0) wanted.push(eos_id);
    return wanted.map((id, i) => {
      const row = logits.data.subarray(i * logits.width, (i + 1) * logits.width);
      return row[id] - logSum(row);
    });
  }

  /** The next-token probability of a text that changes most between two passes, {row, token, before, after};
   * null where it has none. */
  moved(trained, logits, ids) {
    const [was, now] = [trained, logits].map((rows) => this.logProbabilities(rows, ids).map(Math.exp));
    const by = now.map((share, i) => Math.abs(share - was[i])), row = by.indexOf(Math.max(...by));
    const { tokens } = this.tokenizer.encoding([...ids.slice(0, this.withoutPadding(ids)), this.model.config.eos_id]);
    return row < 0 ? null : { row: tokens[row], token: tokens[row + 1], before: was[row], after: now[row] };
  }

  /** The class as trained and now, and the probability of the latter in both. */
  classMoved(trained, logits) {
    const share = ({ data }, id) => Math.exp(data[id] - logSum(data));
    const [old, now] = [trained, logits].map(({ data }) => data.indexOf(Math.max(...data)));
    return { old: this.classes[old], now: this.classes[now], before: share(trained, now),
      after: share(logits, now) };
  }

  /** The row that attends most to the token that it is to predict, in which head; null where none can. */
  peek(weights, ids) {
    let most = null;
    for (const { kind, layer, name, masks, query_side, key_side } of this.kinds.flat()) {
      if (!masks.includes("causal") || query_side !== key_side) continue;
      const { shape: [, heads, queries, keys], data } = weights[name];
      const real = this.withoutPadding(ids[query_side]);
      for (let head = 0; head < heads; head++)
        for (let i = 0; i + 1 < real; i++) {
          const weight = data[(head * queries + i) * keys + i + 1];
          if (weight > (most?.weight ?? 0)) most = { kind, layer, head, side: query_side, i, weight };
        }
    }
    if (!most) return null;
    const { tokens } = this.tokenizer.encoding(ids[most.side]);
    const { kind, layer, head, i, weight } = most;
    return { kind, layer, head, row: tokens[i], next: tokens[i + 1], weight };
  }
}
