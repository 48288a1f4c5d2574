// The data of the stage as bytes, as app/components/packing.py packs them: length of the header
// (4 bytes, little-endian), header (JSON), then a byte per cell.

import { byteOf } from "../components/shared/weights.js";

const LARGEST = 256; // cells along a side; more would not be visible
const MOST_PROBABLE = 5;

/** Text for the grid: {name, labels, spaced, following}; `special`: the ids of special tokens, `following`:
 * the token that each row predicts, if any. */
export function gridText({ title }, { ids, tokens, offsets }, special, following) {
  const name = title[0].toUpperCase() + title.slice(1);
  const ends = [0, ...offsets.map(([, end]) => end)];
  const spaced = offsets.map(([start, end], i) =>
    special.has(ids[i]) || end === 0 || start > ends[i]);
  return { name, labels: tokens, spaced, following };
}

/** The most probable outputs of each row of logits, (1, row, output), with their probabilities; `labelOf`: the
 * label of an output, in a row. */
export function predictions(logits, labelOf, most = MOST_PROBABLE) {
  const rows = [];
  for (let start = 0; start < logits.data.length; start += logits.width) {
    const row = logits.data.subarray(start, start + logits.width);
    const total = logSum(row);
    const best = [];
    row.forEach((logit, id) => {
      if (best.length === most && logit <= row[best.at(-1)]) return;
      const place = best.findIndex((other) => row[other] < logit);
      best.splice(place < 0 ? best.length : place, 0, id);
      best.length = Math.min(best.length, most);
    });
    rows.push(best.map((id) => [labelOf(id, rows.length), Math.round(1e6 * Math.exp(row[id] - total)) / 1e6]));
  }
  return rows;
}

/** log Σ exp of a row. */
export function logSum(row) {
  let largest = -Infinity, sum = 0;
  for (const value of row) if (value > largest) largest = value;
  for (const value of row) sum += Math.exp(value - largest);
  return largest + Math.log(sum);
}

/** sides: title → text for the grid. parts: [{kind, name, query, key, shifts, layers: [weights, …]}], weights
 * (1, heads, query, key). answers as in packing.py, or null. */
export function pack(id, sides, parts, answers) {
  const every = (side) => Math.ceil(sides[side].labels.length / LARGEST) || 1;
  const packed = parts.map(({ layers, query, key }) => layers.map((weights) => cells(weights, every(query), every(key))));
  const header = new TextEncoder().encode(JSON.stringify({
    id, answers,
    sides: Object.fromEntries(Object.entries(sides).map(([title, text]) =>
      [title, { ...text, every: every(title) }])),
    parts: parts.map(({ kind, name, query, key, heads, numbers, shifts }, i) => ({
      kind, name, query, key, heads, numbers, shifts, layers: numbers.length,
      rows: packed[i][0].rows, columns: packed[i][0].columns,
    })),
  }));
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, header.length, true);
  return joined([length, header, ...packed.flat().map(({ bytes }) => bytes)]);
}

/** Arrays of bytes behind each other. */
export function joined(chunks) {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, end);
    end += chunk.length;
  }
  return bytes;
}

/** A byte per cell. In a long text a cell stands for `down` × `across` cells and has their largest weight. */
function cells({ shape: [, heads, queries, keys], data }, down, across) {
  const [rows, columns] = [Math.ceil(queries / down), Math.ceil(keys / across)];
  const bytes = new Uint8Array(heads * rows * columns);
  let from = 0;
  for (let head = 0; head < heads; head++)
    for (let i = 0; i < queries; i++) {
      const start = (head * rows + Math.floor(i / down)) * columns;
      for (let j = 0; j < keys; j++) {
        const byte = byteOf(data[from++]);
        const to = start + Math.floor(j / across);
        if (byte > bytes[to]) bytes[to] = byte;
      }
    }
  return { bytes, rows, columns };
}
