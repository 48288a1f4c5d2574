// A key-value cache made of swapped parts (model/decoding/cache.py): the model itself knows nothing
// of it. Hooks and weights are shared with the model.

import { Tensor } from "./arrays.js";
import { Module } from "./transformer.js";

/** `model`, reading a target token by token, at most `capacity` of them. */
export class OneByOne {
  growing = []; // caches of the decoder's self-attention

  constructor(model, capacity) {
    const parts = {};
    for (const { name, query_side, key_side } of model.sites()) {
      if (query_side !== "tgt") continue;
      const original = partAt(model, name);
      const attention = parts[name] = copyOf(original);
      const project = (key, value) => original.keys_values(key, value);
      if (key_side === "tgt") {
        const cache = new GrowingKeysValues(project, capacity);
        this.growing.push(cache);
        attention.keys_values = (key, value) => cache.next(key, value);
      } else {
        let projected = null; // memory is projected once
        attention.keys_values = (key, value) => projected ??= project(key, value);
      }
    }
    parts["tgt_embedding.position"] = new NextPosition(model.tgt_embedding.position);
    this.model = withParts(model, parts);
  }

  /** Row i continues what row `rows[i]` was. */
  reorder(rows) {
    for (const cache of this.growing) cache.select(rows);
  }
}

/** Replaces `keys_values`: appends those of the new tokens and returns all so far. */
class GrowingKeysValues {
  length = 0;
  stored = null; // keys and values, each (batch, capacity, heads, d_head)

  constructor(project, capacity) {
    Object.assign(this, { project, capacity });
  }

  next(key, value) {
    const added = this.project(key, value);
    this.stored ??= added.map(({ shape: [batch, , ...rest] }) =>
      new Tensor([batch, this.capacity, ...rest]));
    const start = this.length;
    this.length += added[0].shape[1];
    return this.stored.map((stored, part) => {
      const [batch, , ...rest] = stored.shape;
      const row = stored.step / this.capacity;
      for (let b = 0; b < batch; b++) {
        const from = added[part].data.subarray(b * added[part].step, (b + 1) * added[part].step);
        stored.data.set(from, b * stored.step + start * row);
      }
      return new Tensor([batch, this.length, ...rest], stored.data, stored.step);
    });
  }

  select(rows) {
    this.stored = this.stored.map(({ data, shape, step }) => {
      const taken = new Tensor([rows.length, ...shape.slice(1)]);
      const used = (step / this.capacity) * this.length;
      rows.forEach((row, i) =>
        taken.data.set(data.subarray(row * step, row * step + used), i * step));
      return taken;
    });
  }
}

/** Replaces a positional table: gives its rows from where the last call ended. */
class NextPosition extends Module {
  read = 0;

  constructor(position) {
    super();
    this.position = position;
  }

  forward(length) {
    const start = this.read;
    this.read += length;
    const { shape, data, width } = this.position.run(this.read);
    return new Tensor([shape[0] - start, width], data.subarray(start * width));
  }
}

/** The part of a model under a name such as "decoder.layers.0.self_attn". */
export function partAt(model, name) {
  return name.split(".").reduce((part, key) => part[key], model);
}

function copyOf(part) {
  return Object.assign(Object.create(Object.getPrototypeOf(part)), part);
}

/** `model` with other parts under these names. Everything above a replaced part is copied shallowly. */
function withParts(model, parts) {
  const twin = copyOf(model);
  const copied = new Map();
  for (const [name, part] of Object.entries(parts)) {
    const keys = name.split(".");
    let at = twin;
    keys.slice(0, -1).forEach((key, depth) => {
      const path = keys.slice(0, depth + 1).join(".");
      if (!copied.has(path))
        copied.set(path, at[key] = Array.isArray(at[key]) ? [...at[key]] : copyOf(at[key]));
      at = copied.get(path);
    });
    at[keys.at(-1)] = part;
  }
  return twin;
}
