// The mount of a generation, step by step.

import { arrows } from "../shared/arrows.js";
import { Walk } from "./steps.js";

const enter = arrows();

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const text = JSON.stringify(data);
  if (parentElement.shown !== text) { // else what is there is right
    parentElement.shown = text;
    const rows = { ...data.rows, weights: weightsOf(data.rows) };
    parentElement.walk = new Walk(parentElement, { ...data, rows }, setTriggerValue);
  }
  return enter(parentElement, (by) => parentElement.walk.walk(by));
}

/** Step, layer, head → a byte for each key, from what the server packs. */
function weightsOf({ weights, shape: [steps, layers, heads, keys] }) {
  const cells = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const list = (length, make) => Array.from({ length }, (_, i) => make(i));
  return list(steps, (step) => list(layers, (layer) => list(heads, (head) => {
    const start = ((step * layers + layer) * heads + head) * keys;
    return Array.from(cells.subarray(start, start + keys));
  })));
}
