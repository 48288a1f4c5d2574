// The worker: it holds the model, and answers one question after another. It pauses between passes to hear
// of a sentence, which comes before all that was asked earlier, and drops that.

import { Reader } from "./answers.js";
import { halvesOf, modelOf } from "./checkpoint.js";
import { Tokenizer } from "./tokenizer.js";

const SLICE = 12; // ms between pauses

let reader = null;
let jobs = []; // {id, parts}
// A message to itself comes after those that have arrived meanwhile; a timer would wait 4 ms.
const { port1: resumed, port2: resume } = new MessageChannel();

function* load({ checkpoint, weights, tokenizer, characters, ...more }) {
  yield;
  const model = modelOf(checkpoint, checkpoint.layout, halvesOf(weights));
  reader = new Reader({ model, tokenizer: new Tokenizer(tokenizer, characters), ...more });
  return { sites: model.sites(), sides: model.sides() };
}

/** Goes on with the first question until it is time to pause. */
function proceed() {
  if (!jobs.length) return;
  const [{ id, parts }] = jobs, start = performance.now();
  try {
    for (;;) {
      const { value: part, done } = parts.next();
      if (done) return finish({ id, part });
      if (part) postMessage({ id, part }, part.run ? [part.run.buffer] : []);
      if (part || performance.now() - start >= SLICE) return resume.postMessage(null);
    }
  } catch (error) {
    finish({ id, error: error.message });
  }
}

function finish(answer) {
  jobs.shift();
  postMessage({ ...answer, done: true });
  resume.postMessage(null);
}

resumed.onmessage = proceed;

globalThis.onmessage = ({ data: { id, what, ...question } }) => {
  if (what === "read") {
    for (const { parts } of jobs) parts.return(); // removes its hooks
    jobs = [];
  }
  jobs.push({ id, parts: what === "load" ? load(question) : what === "read" ? reader.read(question) : reader.ask({ what, ...question }) });
  if (jobs.length === 1) resume.postMessage(null);
};
