// Numbers as they are written on the screen.

export const percent = (weight, digits = 0) => `${(100 * weight).toFixed(digits)}%`;

export const minus = (text) => text.replace("-", "−");

export const signedPercent = (share) => (share < 0 ? "−" : "+") + percent(Math.abs(share));

/** One decimal, where there is one. */
export const tenths = (number) =>
  minus(number.toFixed(1).replace(/\.0$/, "").replace(/^-0$/, "0"));

/** As many digits as four letters hold. */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return value.toExponential(0);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export const exact = (value) =>
  Math.abs(value) >= 1e-4 || value === 0 ? String(+value.toFixed(6)) : value.toExponential(2);
