// The checkpoint in the page: config, and the weights in half precision, one after another.

import { PRESETS } from "./variants.js";

/** A model of a preset with its weights from `halves`, a Uint16Array. layout: name → [start, shape].
 * Throws where a shape differs. */
export function modelOf({ preset, sizes }, layout, halves) {
  const model = PRESETS[preset](sizes);
  for (const [name, tensor] of model.parameters()) {
    const [start, shape] = layout[name] ?? [0, []];
    if (String(shape) !== String(tensor.shape))
      throw new Error(`${name} is ${shape.join(" × ")}, not ${tensor.shape.join(" × ")}.`);
    const count = shape.reduce((product, length) => product * length, 1);
    tensor.data = floats(halves.subarray(start, start + count));
  }
  return model;
}

/** float16 → float32, exactly. Without Float16Array: sign, exponent and mantissa move to their
 * places, and a power of two corrects the exponent's bias, also for subnormal numbers. It would be
 * wrong for ∞ and NaN, which the builder refuses. */
export function floats(halves) {
  if (globalThis.Float16Array)
    return new Float32Array(new Float16Array(halves.buffer, halves.byteOffset, halves.length));
  const numbers = new Float32Array(halves.length);
  const bits = new Uint32Array(numbers.buffer);
  for (let i = 0; i < halves.length; i++)
    bits[i] = ((halves[i] & 0x8000) << 16) | ((halves[i] & 0x7fff) << 13);
  for (let i = 0; i < numbers.length; i++) numbers[i] *= 2 ** 112;
  return numbers;
}

/** base64 → numbers of 16 bits, little-endian. */
export function halvesOf(base64) {
  if (Uint8Array.fromBase64) return new Uint16Array(Uint8Array.fromBase64(base64).buffer);
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Uint16Array(bytes.buffer);
}
