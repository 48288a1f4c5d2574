// What transformer.js needs in place of PyTorch: tensors and a few operations on them. Tensors are
// stored as float32; sums run in float64, like all arithmetic in JavaScript.

/** Numbers in row-major order. `step`: how many lie between one sentence of a batch and the next;
 * a growing cache has room to spare there. */
export class Tensor {
  constructor(shape, data = new Float32Array(size(shape)), step = size(shape.slice(1))) {
    Object.assign(this, { shape, data, step });
  }

  get width() {
    return this.shape.at(-1);
  }

  /** The same numbers under another shape. */
  as(...shape) {
    return new Tensor(shape, this.data);
  }

  /** Some rows of (row, width), as a copy. */
  rows(indices) {
    const { width } = this;
    const taken = new Tensor([indices.length, width]);
    indices.forEach((row, i) =>
      taken.data.set(this.data.subarray(row * width, (row + 1) * width), i * width));
    return taken;
  }
}

function size(shape) {
  return shape.reduce((product, length) => product * length, 1);
}

/** x Wᵀ + b: (…, in) → (…, out); weight: (out, in). */
export function linear(x, { weight, bias }) {
  const [outputs, inputs] = weight.shape;
  const rows = size(x.shape) / inputs;
  const y = new Tensor([...x.shape.slice(0, -1), outputs]);
  if (bias) for (let i = 0; i < rows; i++) y.data.set(bias.data, i * outputs);
  if (rows === 1) oneRow(x.data, weight.data, y.data, inputs, outputs);
  else twoRows(x.data, weight.data, y.data, rows, inputs, outputs);
  return y;
}

/** y += x Wᵀ, eight sums at a time (two rows × four outputs): each number is read once for several
 * products, and no sum waits for another. At the edges the last row or output is computed twice. */
function twoRows(x, w, y, rows, inputs, outputs) {
  for (let i = 0; i < rows; i += 2) {
    const j = Math.min(i + 1, rows - 1);
    const xi = i * inputs, xj = j * inputs, yi = i * outputs, yj = j * outputs;
    for (let o = 0; o < outputs; o += 4) {
      const o1 = Math.min(o + 1, outputs - 1);
      const o2 = Math.min(o + 2, outputs - 1);
      const o3 = Math.min(o + 3, outputs - 1);
      const w0 = o * inputs, w1 = o1 * inputs, w2 = o2 * inputs, w3 = o3 * inputs;
      let a0 = y[yi + o], a1 = y[yi + o1], a2 = y[yi + o2], a3 = y[yi + o3];
      let b0 = y[yj + o], b1 = y[yj + o1], b2 = y[yj + o2], b3 = y[yj + o3];
      for (let k = 0; k < inputs; k++) {
        const a = x[xi + k], b = x[xj + k];
        const v0 = w[w0 + k], v1 = w[w1 + k], v2 = w[w2 + k], v3 = w[w3 + k];
        a0 += a * v0; a1 += a * v1; a2 += a * v2; a3 += a * v3;
        b0 += b * v0; b1 += b * v1; b2 += b * v2; b3 += b * v3;
      }
      y[yi + o] = a0; y[yi + o1] = a1; y[yi + o2] = a2; y[yi + o3] = a3;
      y[yj + o] = b0; y[yj + o1] = b1; y[yj + o2] = b2; y[yj + o3] = b3;
    }
  }
}

/** twoRows for a single row. */
function oneRow(x, w, y, inputs, outputs) {
  for (let o = 0; o < outputs; o += 4) {
    const o1 = Math.min(o + 1, outputs - 1);
    const o2 = Math.min(o + 2, outputs - 1);
    const o3 = Math.min(o + 3, outputs - 1);
    const w0 = o * inputs, w1 = o1 * inputs, w2 = o2 * inputs, w3 = o3 * inputs;
    let a0 = y[o], a1 = y[o1], a2 = y[o2], a3 = y[o3];
    for (let k = 0; k < inputs; k++) {
      const a = x[k];
      a0 += a * w[w0 + k]; a1 += a * w[w1 + k]; a2 += a * w[w2 + k]; a3 += a * w[w3 + k];
    }
    y[o] = a0; y[o1] = a1; y[o2] = a2; y[o3] = a3;
  }
}

/** x + y, where y may be one sentence for all of the batch. */
export function add(x, y) {
  const sum = new Tensor(x.shape);
  const [first, second, out] = [x.data, y.data, sum.data];
  for (let start = 0; start < first.length; start += second.length)
    for (let i = 0; i < second.length; i++) out[start + i] = first[start + i] + second[i];
  return sum;
}

export function relu(x) {
  const y = new Tensor(x.shape);
  const [from, out] = [x.data, y.data];
  for (let i = 0; i < from.length; i++) out[i] = from[i] > 0 ? from[i] : 0;
  return y;
}

/** q kᵀ · scale in each head. q: (batch, query, heads, d_head); k: (batch, key, heads, d_head),
 * where one sentence of keys may serve a whole batch. → (batch, heads, query, key) */
export function products(q, k, scale) {
  const [batch, queries, heads, d_head] = q.shape;
  const keys = k.shape[1];
  const scores = new Tensor([batch, heads, queries, keys]);
  const [from, to, out] = [q.data, k.data, scores.data];
  const row = heads * d_head;
  let at = 0;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < queries; i++) {
        const qi = (b * queries + i) * row + h * d_head;
        let kj = (k.shape[0] === 1 ? 0 : b * k.step) + h * d_head;
        for (let j = 0; j < keys; j++, kj += row) {
          let sum = 0;
          for (let n = 0; n < d_head; n++) sum += from[qi + n] * to[kj + n];
          out[at++] = sum * scale;
        }
      }
  return scores;
}

/** weights v in each head: (batch, heads, query, key), (batch, key, heads, d_head) → (batch, query,
 * heads, d_head). A weight of zero adds nothing: under a causal mask half of them. */
export function mixture(weights, v) {
  const [batch, heads, queries, keys] = weights.shape;
  const d_head = v.width;
  const mixed = new Tensor([batch, queries, heads, d_head]);
  const [shares, values, out] = [weights.data, v.data, mixed.data];
  const row = heads * d_head;
  let at = 0;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < queries; i++) {
        const yi = (b * queries + i) * row + h * d_head;
        let vj = (v.shape[0] === 1 ? 0 : b * v.step) + h * d_head;
        for (let j = 0; j < keys; j++, vj += row) {
          const weight = shares[at++];
          if (!weight) continue;
          for (let n = 0; n < d_head; n++) out[yi + n] += weight * values[vj + n];
        }
      }
  return mixed;
}

/** Each row of (batch, heads, query, key) over the keys that `mask` leaves; all zeros where it
 * leaves none. mask: null, or {shape, data} of (heads or 1, query or 1, key), 1 = may attend. */
export function maskedSoftmax(scores, mask) {
  const [batch, heads, queries, keys] = scores.shape;
  const weights = new Tensor(scores.shape);
  const [from, data] = [scores.data, weights.data];
  let at = 0;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < queries; i++, at += keys) {
        const allowed = mask && maskRow(mask, h, i);
        let largest = -Infinity, sum = 0;
        for (let j = 0; j < keys; j++)
          if (!allowed || allowed[j]) largest = Math.max(largest, from[at + j]);
        for (let j = 0; j < keys; j++)
          if (!allowed || allowed[j]) sum += data[at + j] = Math.exp(from[at + j] - largest);
        for (let j = 0; sum && j < keys; j++) data[at + j] /= sum;
      }
  return weights;
}

function maskRow({ shape: [heads, queries, keys], data }, head, query) {
  const row = (heads === 1 ? 0 : head) * queries + (queries === 1 ? 0 : query);
  return data.subarray(row * keys, (row + 1) * keys);
}

/** weight · (x − mean) / √(variance + eps) + bias, in each row. */
export function layerNorm(x, { weight, bias, eps }) {
  const { width } = x;
  const y = new Tensor(x.shape);
  const [from, out, scales, shifts] = [x.data, y.data, weight.data, bias.data];
  for (let start = 0; start < from.length; start += width) {
    let mean = 0, variance = 0;
    for (let i = 0; i < width; i++) mean += from[start + i];
    mean /= width;
    for (let i = 0; i < width; i++) variance += (from[start + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + eps);
    for (let i = 0; i < width; i++)
      out[start + i] = (from[start + i] - mean) * scale * scales[i] + shifts[i];
  }
  return y;
}

/** Natural, in each row. */
export function logSoftmax(x) {
  const { width } = x;
  const y = new Tensor(x.shape);
  for (let start = 0; start < x.data.length; start += width) {
    const row = x.data.subarray(start, start + width);
    let largest = -Infinity, sum = 0;
    for (const value of row) if (value > largest) largest = value;
    for (const value of row) sum += Math.exp(value - largest);
    const total = largest + Math.log(sum);
    for (let i = 0; i < width; i++) y.data[start + i] = row[i] - total;
  }
  return y;
}

export function argmax(row) {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}
