// Answers the page's questions: reads a text, writes the target, packs all heads for the grid.

import { aligned, shiftsOf } from "./alignment.js";
import { applied, isCausal } from "./applying.js";
import { parse } from "./changes.js";
import { beamSearch, greedyDecode, longest, sampler } from "./decoding.js";
import { NoQuestion, questionOf } from "./lesson.js";
import { beamsOf, depthsOf, rowsOf, stepsOf } from "./generation.js";
import { TRAINED, masksFor } from "./masks.js";
import { gridText, logSum, pack, predictions } from "./packing.js";
import { capture, readBy, trace } from "./probing.js";
import STRINGS from "../text/strings.json" with { type: "json" };

/** Answers to one question after another about a model, {model, tokenizer, classes, continuation, alignment,
 * lesson}: how many tokens a decoder alone writes; the heads that align, as in the card, or null; the lesson as lesson.py carries it, or null. */
export class Reader {
  #count = 0;
  #target = {}; // of the last source as trained: {key, written}
  #trained = {}; // of the last texts as trained: {key, logits, weights}

  constructor({ model, tokenizer, classes, continuation, alignment = null, lesson = null }) {
    Object.assign(this, { model, tokenizer, classes, continuation, alignment, lesson });
    this.sides = model.sides();
    this.kinds = [...Map.groupBy(model.sites(), ({ kind }) => kind).values()];
  }

  /** Parts of the answer to {source, target, masks, changes, padTo, beam, shows} as they are ready,
   * and undefined where it may pause: {grid} of the encoder alone, {grid, alignment, moved, …} of
   * everything, and {written, again} once the text is written under the changes too (`again` is null
   * without changes, and where the text is typed), and of the `view` "generate" {generation}, of a text
   * that begins with the ids `beginning`, drawn if there is a `sampling`, as sampler takes it. `shows`:
   * the grid "before" the changes, "after" them, or the "difference". `step`: of the lesson, from 1; the
   * grid comes with its question, and no earlier. Throws with a sentence. */
  *read({ source, target, masks, changes: line, padTo, beam, shows = "after", view, beginning, sampling,
    step }) {
    const { model, tokenizer } = this;
    const changes = parse(line);
    const isTrained = !changes.length && Object.keys(TRAINED).every((name) => masks[name]);
    const [first, second] = this.sides;
    const unpadded = readBy(first, this.encode(source), model.config);
    const ids = { [first.name]: this.padded(unpadded, padTo) };
    if (second) {
      // The target stays the same under changes, so that pictures can be compared.
      const key = JSON.stringify([source, target, beam]);
      if (this.#target.key !== key) {
        const [shownMasks, shown] = shows === "before" ? [TRAINED, []] : [masks, changes];
        yield shows === "difference" || step ? undefined
          : { grid: this.pack(ids, this.encoder(ids, shownMasks, shown), null) };
        const written = target ? this.encode(target) : yield* this.write(unpadded, TRAINED, [], beam);
        this.#target = { key, written };
      }
      ids[second.name] = this.padded(readBy(second, this.#target.written, model.config), padTo);
      yield;
    }
    const now = trace(model, ids, this.over(masks), changes);
    if (isTrained) this.#trained = { key: JSON.stringify(ids), ...now };
    const trained = isTrained ? now : this.trained(ids);
    const predicted = this.sides.find(({ predicts }) => predicts);
    const about = [ids[predicted.name], predicted];
    const [answers, before] = [now, trained].map(({ logits }) => this.answers(logits, ...about));
    const [shown, itsAnswers] = shows === "before" ? [trained, before] : [now, answers];
    const best = ({ rows, last }) => rows.at(rows.length === 1 ? 0 : last)[0];
    const byClass = predicted.predicts === "class";
    yield {
      grid: this.pack(ids, shown.weights, itsAnswers, shows === "difference" ? trained.weights : null),
      alignment: this.alignment && this.align(ids, shown.weights, shows === "before" ? null : trained.weights),
      title: answers.title,
      best: best(answers),
      bestTrained: best(before),
      ...(byClass ? { classMoved: this.classMoved(trained.logits, now.logits) }
        : this.moved(trained.logits, now.logits, ...about)),
      peek: masks.causal ? null : this.peek(now.weights, ids),
      question: step ? this.question(step, ids, trained.weights, now.weights) : null,
    };
    yield;
    if (byClass) return;
    const most = second ? undefined : this.continuation;
    const text = (written) => tokenizer.decode(written);
    const written = second ? this.#target.written
      : yield* this.write(unpadded, TRAINED, [], beam, most);
    const again = isTrained || (second && target) ? null
      : text(yield* this.write(second ? ids[first.name] : unpadded, masks, changes, beam, most));
    yield { written: text(written), again };
    if (view !== "generate") return;
    yield;
    const src = second ? ids[first.name] : unpadded;
    const how = { beam, beginning, sampling };
    yield { generation: yield* shows === "before" ? this.generation(src, TRAINED, [], how)
      : this.generation(src, masks, changes, how) };
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

  /** How the model writes, step by step, as walk.js takes it, but with the rows of all
   * `kinds` of attention. Throws where `beginning` are no ids of tokens. */
  *generation(src, masks, changes, { beam, beginning = [], sampling = null }) {
    const { model, tokenizer } = this;
    const { bos_id, eos_id, pad_id, max_length, vocab_size } = model.config;
    const side = this.sides.find(({ predicts }) => predicts);
    const alone = this.sides.length === 1;
    const room = alone ? Math.min(this.continuation, max_length - src.length) : longest(model.config, src.length);
    if (beginning.some((id) => id >= vocab_size) || beginning.length > room)
      throw new Error(`“${beginning.join("-")}” is not a list of this model's token ids, ` +
        "or it is too long.");
    const isOver = beginning.at(-1) === eos_id;
    const beams = [];
    const written = isOver ? beginning.slice(0, -1)
      : yield* this.write(src, masks, changes, sampling ? 1 : beam, room, { beginning,
        hear: (step) => beams.push(step), ...(sampling && { choose: sampler(sampling) }) });
    const path = isOver || written.length < room ? [...written, eos_id] : written;
    const ids = alone ? { [side.name]: [...src, ...written] }
      : { [this.sides[0].name]: src, [side.name]: [bos_id, ...written] };
    const { depths, remove } = depthsOf(model, side.stack);
    const over = written.includes(pad_id) ? { ...masks, tgt_padding: false } : masks;
    let traced;
    try {
      traced = trace(model, ids, over, changes);
    } finally {
      remove();
    }
    yield;
    const { norm } = model[side.stack];
    const tokens = Object.fromEntries(this.sides.map(({ name }) => [name, tokenizer.encoding(ids[name]).tokens]));
    const first = alone ? src.length - 1 : 0;
    const preceding = ids[side.name].slice(first); // before each token of the path
    const labelOf = (id, before) => tokenizer.token(id, before);
    const stopped = depths.map((x) => model.logits(norm.run(x)));
    const [{ name, title }] = this.sides;
    return {
      title: title[0].toUpperCase() + title.slice(1),
      text: alone ? tokens[name].slice(0, first + 1) : tokens[name],
      ids: written,
      written: [...tokens[side.name].slice(first + 1), ...(path.length > written.length ? [tokenizer.token(eos_id)] : [])],
      steps: stepsOf(traced.logits, stopped, first, path, preceding, labelOf),
      kinds: this.kinds.map((sites) => rowsOf(sites, traced.weights, {
        keys: tokens[sites[0].key_side], first, count: path.length, alone,
        isPredicted: (text) => text === side.name,
        name: sites[0].title[0].toUpperCase() + sites[0].title.slice(1),
      })),
      beams: beamsOf(beams, preceding[beginning.length], labelOf, (some) => tokenizer.decode(some)),
    };
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

  /** Ids of the target, or of a continuation, that the model writes: greedily, or with beams. */
  *write(ids, masks, changes, beam, most, more = {}) {
    const remove = applied(this.model, changes);
    const options = { cached: isCausal(masks, changes), ...more };
    if (most && !this.model.encode)
      options.maxLength = Math.min(most, this.model.config.max_length - ids.length);
    try {
      return yield* beam > 1 ? beamSearch(this.model, ids, masks, { ...options, beam })
        : greedyDecode(this.model, ids, masks, options);
    } finally {
      remove();
    }
  }

  /** The encoder's weights alone, by site. */
  encoder(ids, masks, changes) {
    const remove = applied(this.model, changes);
    const { weights, remove: release } = capture(this.model);
    try {
      const [mask] = masksFor(this.model, { ...ids, tgt: [] }, masks);
      this.model.encode([ids.src], mask);
      return weights;
    } finally {
      release();
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

  /** `less`: weights that are subtracted, or null. */
  pack(ids, weights, answers, less = null) {
    const title = Object.fromEntries(this.sides.map((side) => [side.name, side.title]));
    const sides = {};
    for (const side of this.sides)
      sides[side.title] = gridText(side, this.tokenizer.encoding(ids[side.name] ?? []),
        this.tokenizer.special, this.following(side, ids[side.name] ?? []));
    const parts = this.kinds.map((sites) => {
      const [{ kind, title: name, query_side, key_side, n_heads }] = sites;
      return {
        kind, name: name[0].toUpperCase() + name.slice(1), query: title[query_side],
        key: title[key_side], heads: n_heads, numbers: sites.map(({ layer }) => layer + 1),
        shifts: query_side !== key_side && this.alignment ? shiftsOf(this.alignment).flat() : [],
        layers: sites.flatMap((site) => weights[site.name] ?? []),
      };
    });
    const subtracted = less && this.kinds.map((kind) => kind.map((site) => less[site.name]));
    return pack(++this.#count, sides, parts, answers, subtracted);
  }

  /** The words that go together, and `before`: the links of other weights that are not among them. */
  align(ids, weights, before) {
    const cross = this.kinds.find(([{ query_side, key_side }]) => query_side !== key_side);
    const [{ query_side, key_side }] = cross;
    const texts = [query_side, key_side].map((side) => this.tokenizer.encoding(ids[side]));
    const of = (all) => aligned(cross.map(({ name }) => all[name]), this.alignment, ...texts,
      this.tokenizer.special);
    const now = of(weights);
    const links = new Set(now.links.map(String));
    return { ...now, before: (before ? of(before).links : []).filter((link) => !links.has(String(link))) };
  }

  answers(logits, ids, { title, predicts }) {
    const label = (id, row) => this.classes[id] ?? this.tokenizer.token(id, ids[row]);
    const rows = predictions(logits, label);
    const last = Math.min(this.withoutPadding(ids), rows.length) - 1;
    const wanted = predicts === "next token" ? rows.map((_, row) => this.share(logits, ids, row)) : [];
    return { side: title, title: STRINGS.answers[predicts], rows, last, wanted };
  }

  /** The probability of the token after a row, eos after the last; null for padding, and for a model that has
   * no eos. */
  share({ data, width }, ids, row) {
    const real = this.withoutPadding(ids);
    const id = row + 1 < real ? ids[row + 1] : this.model.config.eos_id;
    if (row >= real || id < 0) return null;
    const logits = data.subarray(row * width, (row + 1) * width);
    return Math.round(1e6 * Math.exp(logits[id] - logSum(logits))) / 1e6;
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

  /** The log-probability of each token after the first, in its row, and of the eos that follows a text
   * that the model writes. */
  logProbabilities(logits, ids, { writes }) {
    const wanted = ids.slice(1, this.withoutPadding(ids));
    if (writes) wanted.push(this.model.config.eos_id);
    return wanted.map((id, i) => {
      const row = logits.data.subarray(i * logits.width, (i + 1) * logits.width);
      return row[id] - logSum(row);
    });
  }

  /** What the changes do to the predicted text: its probability `before` and `after`, how much they
   * `move` each token's log-probability (null for the first token), and `most`, the
   * next-token probability that changes most, and its row, `at`. */
  moved(trained, logits, ids, side) {
    const both = [trained, logits].map((rows) => this.logProbabilities(rows, ids, side));
    const [was, now] = both.map((row) => row.map(Math.exp));
    const [before, after] = both.map((row) => Math.exp(row.reduce((total, value) => total + value, 0)));
    const by = now.map((share, i) => Math.abs(share - was[i]));
    const row = by.indexOf(Math.max(...by));
    const { tokens } = this.tokenizer.encoding([...ids.slice(0, this.withoutPadding(ids)),
      this.model.config.eos_id]);
    return {
      before, after,
      moved: trained === logits ? {} : { [side.title]: [null,
        ...both[1].slice(0, this.withoutPadding(ids) - 1).map((value, i) => value - both[0][i])] },
      most: row < 0 ? null
        : { at: { side: side.title, index: row }, row: tokens[row], token: tokens[row + 1], before: was[row], after: now[row] },
    };
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
