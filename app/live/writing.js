// What a model writes: word by word, by a beam search, or drawn at random (app/results/writing.py).

import { longest, sampler } from "./decoding.js";
import { equalRuns } from "./findings.js";
import { logSum } from "./packing.js";
import { trace } from "./probing.js";

const BEST = 8; // tokens of a step
const OTHERS = 4, TRIED = 8; // other texts, and how many are written to find them
const SEEDS = 8; // texts that are drawn
const ENDS = 6; // texts that a beam search found, at most

/** A text that the model writes under the changes of a run, behind the ids `beginning`: its `path`, with eos
 * where it came, and its `ids` without; `shares`, the probabilities of each step, [step][id], and `labels`, which
 * name tokens at a step; its `score`, the log-probability of it all; its `text`. Throws where it has no room. */
function* written(reader, { ids: read, unpadded, masks, changes }, { beginning = [], beam = 1, ...more }) {
  const { model, tokenizer, predicted: { name }, sides, continuation } = reader, { bos_id, eos_id, pad_id, max_length, vocab_size } = model.config;
  const alone = sides.length === 1, src = alone ? unpadded : read[sides[0].name];
  const room = alone ? Math.min(continuation, max_length - src.length) : longest(model.config, src.length);
  if (beginning.some((id) => !(id < vocab_size)) || beginning.length > room)
    throw new Error(`“${beginning.join("-")}” is not a list of this model's token ids, or it is too long.`);
  const isOver = beginning.at(-1) === eos_id;
  const ids = isOver ? beginning.slice(0, -1) : yield* reader.write(src, masks, changes, beam, { beginning, maxLength: room, ...more });
  const path = isOver || ids.length < room ? [...ids, eos_id] : ids, start = alone ? src : [bos_id];
  const whole = { ...(alone ? {} : { [sides[0].name]: src }), [name]: [...start, ...ids] };
  const { logits: { data, width } } = trace(model, whole, ids.includes(pad_id) ? { ...masks, tgt_padding: false } : masks, changes);
  yield;
  const shares = path.map((_, step) => {
    const row = data.subarray((start.length - 1 + step) * width, (start.length + step) * width), total = logSum(row);
    return row.map((logit) => Math.exp(logit - total));
  });
  const score = path.reduce((sum, token, step) => sum + Math.log(shares[step][token]), 0);
  return { path, ids, shares, score, text: tokenizer.decode(ids), labelOf: (step, id) => tokenizer.token(id, step ? path[step - 1] : start.at(-1)) };
}

/** The words of a text, each with whether another one lacks it there. */
function lineOf({ text, score }, other) {
  const [words, beside] = [text, other.text].map((one) => (one || "(nothing)").split(" ")), isNew = words.map(() => true);
  for (const [, at, length] of equalRuns(beside, words)) isNew.fill(false, at, at + length);
  return { words: words.map((word, at) => [word, isNew[at]]), probability: Math.exp(score) };
}

/** Greedily, from a `beginning` like “12-45”: for each of the `steps` its token and the best, and its `added` of
 * the text; the text itself, and others that one other token leads to. */
function* one(reader, run, { beginning }) {
  const given = beginning.split("-").filter(Boolean).map(Number);
  const plain = yield* written(reader, run, {}), text = given.length ? yield* written(reader, run, { beginning: given }) : plain;
  const decoded = (end) => reader.tokenizer.decode(text.ids.slice(0, end));
  const steps = text.path.map((id, step) => {
    const shares = text.shares[step], order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, BEST);
    const best = [...new Set([...order, id])], before = decoded(step), after = decoded(step + 1);
    return { id, chosen: best.indexOf(id), best: best.map((other) => [text.labelOf(step, other), shares[other], other]),
      added: step < text.ids.length ? (after.startsWith(before) ? after.slice(before.length) : after) : "" };
  });
  const others = [], known = new Set([text.text]);
  for (const [step, id] of otherwise(text, Math.max(0, given.length - 1))) {
    const other = others.length < OTHERS ? yield* written(reader, run, { beginning: [...text.path.slice(0, step), id] }) : text;
    if (!known.has(other.text)) others.push({ ...lineOf(other, text), step, id });
    known.add(other.text);
  }
  const isBranch = given.length && given.slice(0, -1).every((id, at) => id === plain.path[at]) && given.length <= plain.path.length;
  return { steps, given: given.length, instead: isBranch ? plain.labelOf(given.length - 1, plain.path[given.length - 1]) : "",
    text: [lineOf(text, plain), ...others] };
}

/** The likeliest tokens that a text does not take, as [step, id], from the step `first` on. */
function otherwise({ path, shares }, first) {
  const found = [];
  for (let step = first; step < path.length; step++)
    shares[step].forEach((share, id) => {
      if (id === path[step] || (found.length === TRIED && share <= found.at(-1)[2])) return;
      const place = found.findIndex(([, , other]) => other < share);
      found.splice(place < 0 ? found.length : place, 0, [step, id, share]);
      found.length = Math.min(found.length, TRIED);
    });
  return found;
}

/** A beam search: of each of the `steps` what was kept, and the texts that it `ends` in, best first. */
function* beams(reader, run, { width }) {
  const search = [], found = yield* written(reader, run, { beam: width, hear: (step) => search.push(step) }), greedy = yield* written(reader, run, {});
  const steps = [], ends = [], { tokenizer, sides, predicted: { name } } = reader, last = sides.length === 1 ? run.ids[name].at(-1) : reader.model.config.bos_id;
  const begins = (path, other) => path.every((id, at) => id === other[at]);
  const isSame = (path, other) => path.length === other.length && begins(path, other);
  let places = [[null, []]];
  search.forEach((step, at) => {
    const following = [], nodes = [];
    for (const { parent, token, row, ended, score, total } of step.filter((each) => each.ended || each.row >= 0)) {
      const [from, before] = places[parent], path = [...before, token];
      const node = { label: tokenizer.token(token, before.at(-1) ?? last), probability: Math.exp(total), parent: from, ended,
        found: begins(path, found.path), greedy: begins(path, greedy.path) };
      if (ended || at === search.length - 1)
        ends.push({ step: at, node: nodes.length, text: tokenizer.decode(ended ? before : path), score, is_found: isSame(path, found.path),
          is_greedy: isSame(path, greedy.path), probability: node.probability });
      if (row >= 0) following[row] = [nodes.length, path];
      nodes.push(node);
    }
    steps.push(nodes);
    places = following;
  });
  ends.sort((a, b) => b.is_found - a.is_found || b.score - a.score);
  const said = ([a, b]) => ({ text: parting(a.text, b.text), probability: Math.exp(a.score) });
  return { width, steps, ends: ends.filter(({ is_greedy: isGreedy }, at) => at < ENDS || isGreedy), found: said([found, greedy]), greedy: said([greedy, found]),
    is_same: found.text === greedy.text };
}

/** What a text has and another has not, with the word before it. */
function parting(text, other) {
  const words = text.split(" "), beside = other.split(" "), least = Math.min(words.length, beside.length);
  const first = Math.max(0, words.slice(0, least).findIndex((word, at) => word !== beside[at]));
  let last = 0;
  while (last < least - first && words.at(-1 - last) === beside.at(-1 - last)) last++;
  return words.slice(Math.max(0, first - 1), words.length - last).join(" ").replace(/\.$/, "");
}

/** Texts drawn with several seeds, from `seed` on; the numbers of a seed are this page's own. */
function* sampled(reader, run, { temperature, seed }) {
  const greedy = yield* written(reader, run, {}), text = [];
  let same = 0;
  for (let each = seed; each < seed + SEEDS; each++) {
    const drawn = yield* written(reader, run, { choose: sampler({ temperature, seed: each }) });
    text.push({ ...lineOf(drawn, greedy), seed: each });
    same += drawn.text === greedy.text;
  }
  return { temperature, text, same };
}

/** What the model writes, in the view `how`; or why it `cannot`. */
export function* write(reader, run, { how, ...asked }) {
  try {
    return yield* { one, beams, sampled }[how](reader, run, asked);
  } catch (error) {
    return { cannot: error.message };
  }
}
