// The live page's own modules under names that tests call. Arrays of numbers go back as base64.

import { ordinaryWords } from "../../app/live/alignment.js";
import { Reader } from "../../app/live/answers.js";
import { parse, written } from "../../app/live/changes.js";
import { halvesOf, modelOf } from "../../app/live/checkpoint.js";
import { sampler } from "../../app/live/decoding.js";
import { mark } from "../../app/live/lesson.js";
import { trace } from "../../app/live/probing.js";
import { Tokenizer } from "../../app/live/tokenizer.js";

function base64({ data: numbers }) {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  let letters = "";
  for (let i = 0; i < bytes.length; i += 8192)
    letters += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(letters);
}

/** What a generator returns in the end. */
function result(steps) {
  for (;;) {
    const { value, done } = steps.next();
    if (done) return value;
  }
}

/** The result, or the sentence of an error. */
function tried(answer) {
  try {
    return answer();
  } catch (error) {
    return { error: error.message };
  }
}

/** What tests ask of a page: its data, and its weights in base64. */
export const engineOf = (data, weights) => {
  const model = modelOf(data.checkpoint, data.checkpoint.layout, halvesOf(weights));
  const tokenizer = new Tokenizer(data.tokenizer, data.characters);
  const reader = new Reader({ model, tokenizer, classes: data.classes,
    continuation: data.continuation, alignment: data.alignment,
    lesson: data.lesson });
  return {
    trace: ({ ids, masks, line }) => tried(() => {
      const { logits, weights: bySite } = trace(model, ids, masks, parse(line));
      return [logits, ...model.sites().map(({ name }) => bySite[name])].map(base64);
    }),
    write: ({ ids, masks, line, beam, most }) => tried(() => result(reader.write(ids, masks, parse(line), beam,
      most ? { maxLength: Math.min(most, model.config.max_length - ids.length) } : {}))),
    pack: (question) => base64({ data: [...reader.read(question)].find((part) => part?.run).run }),
    said: (question) => tried(() => [...reader.read(question)].findLast((part) => part?.said).said),
    preview: (question) => result(reader.ask({ what: "preview", ...question })),
    asked: ({ read, about, ...question }) => {
      result(reader.read(read));
      const found = result(reader.ask({ what: about, ...question }));
      return found && Object.fromEntries(Object.entries(found).map(([name, value]) => [name, value?.data ? base64(value) : value]));
    },
    draw: ({ logits, count, ...how }) => {
      const choose = sampler(how);
      return Array.from({ length: count }, () => choose(Float32Array.from(logits)));
    },
    question: (question) => [...reader.read(question)].find((part) => part?.run).question,
    mark: ({ question, answer }) => tried(() => mark(question, answer)),
    words: ({ texts }) => texts.map((text) =>
      ordinaryWords(tokenizer.encoding(tokenizer.encode(text)), tokenizer.special)
        .map(({ start, stop, word }) => [[start, stop], word])),
    encode: ({ texts }) => texts.map((text) => tokenizer.encode(text)),
    encoding: ({ texts }) => texts.map((text) => {
      const { text: decoded, offsets, tokens } = tokenizer.encoding(tokenizer.encode(text));
      return [decoded, offsets, tokens];
    }),
    lines: ({ lines }) => lines.map((line) => tried(() => written(parse(line)))),
  };
};
