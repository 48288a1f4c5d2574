// A weight as a byte, as packing.py has it.

const FINE = 54; // bytes for weights below half a percent
const HALF = 0.005;

/** 0 where masked, else what is nearest; a byte and its weight are the same whole percent. */
export function byteOf(weight) {
  if (!(weight > 0)) return 0;
  const step = weight < HALF ? 1 + (weight / HALF) * FINE : FINE + weight / HALF;
  return Math.min(254, Math.floor(step));
}

/** The middle of the weights that a byte stands for. */
const WEIGHTS = Float64Array.from({ length: 256 }, (_, byte) =>
  (byte < 2 ? 0 : byte <= FINE ? ((byte - 0.5) / FINE) * HALF : Math.min(1, (byte - FINE + 0.5) * HALF)));

export const weightOf = (byte) => WEIGHTS[byte];
