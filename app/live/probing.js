// Looking into a model while it runs: hooks that are removed again (model/probing/), and the texts
// that a model reads.

import { applied } from "./applying.js";
import { partAt } from "./cache.js";
import { TRAINED, masksFor } from "./masks.js";

/** Captures attention weights: {weights, remove}. `weights`: site's name → (batch, heads, query, key)
 * of the last pass; `remove` takes the hooks away. */
export function capture(model) {
  const weights = {};
  const removers = model.sites().map(({ name }) => {
    const hooks = partAt(model, name).softmax.after;
    const hook = (output) => { weights[name] = output; };
    hooks.push(hook);
    return () => hooks.splice(hooks.indexOf(hook), 1);
  });
  return { weights, remove: () => removers.forEach((remove) => remove()) };
}

/** The ids that a side reads: `ids` between bos and eos, where it has them. */
export function readBy(side, ids, { bos_id, eos_id }) {
  return [...(side.begins ? [bos_id] : []), ...ids, ...(side.ends ? [eos_id] : [])];
}

/** One teacher-forced pass over ids by side, special tokens included: {logits, weights}. Throws
 * CannotChange. */
export function trace(model, ids, masks = TRAINED, changes = []) {
  const remove = applied(model, changes); // before capture, which then sees what the model used
  const { weights, remove: release } = capture(model);
  try {
    const texts = model.sides().map(({ name }) => [ids[name]]);
    return { logits: model.run(...texts, ...masksFor(model, ids, masks)), weights };
  } finally {
    release();
    remove();
  }
}
