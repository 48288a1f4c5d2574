// The worker: it holds the model, and answers the newest question. It pauses between tokens to hear
// of a newer one, and then drops the older.

import { Reader } from "./answers.js";
import { halvesOf, modelOf } from "./checkpoint.js";
import { Tokenizer } from "./tokenizer.js";

const SLICE = 12; // ms between pauses

let reader = null;
let answering = null; // {id, parts} of the newest question
// A message to itself comes after those that have arrived meanwhile; a timer would wait 4 ms.
const { port1: resumed, port2: resume } = new MessageChannel();

function load({ checkpoint, weights, tokenizer, characters, classes, continuation,
  alignment, lesson }) {
  const model = modelOf(checkpoint, checkpoint.layout, halvesOf(weights));
  reader = new Reader({ model, tokenizer: new Tokenizer(tokenizer, characters), classes, continuation,
    alignment, lesson });
  return { sites: model.sites(), sides: model.sides(), longest: model.config.max_length };
}

/** Goes on with the newest question until it is time to pause. */
function proceed() {
  if (!answering) return;
  const { id, parts } = answering;
  const start = performance.now();
  try {
    for (;;) {
      const { value: part, done } = parts.next();
      if (part) postMessage({ id, part }, part.grid ? [part.grid.buffer] : []);
      if (done) return finish(id);
      if (part || performance.now() - start >= SLICE) return resume.postMessage(null);
    }
  } catch (error) {
    finish(id, error.message);
  }
}

function finish(id, error) {
  answering = null;
  postMessage({ id, error, done: true });
}

resumed.onmessage = proceed;

globalThis.onmessage = ({ data: { id, what, ...question } }) => {
  answering?.parts.return(); // removes its hooks
  answering = null;
  try {
    if (what === "load") postMessage({ id, part: load(question), done: true });
    else {
      answering = { id, parts: reader.read(question) };
      proceed();
    }
  } catch (error) {
    finish(id, error.message);
  }
};
