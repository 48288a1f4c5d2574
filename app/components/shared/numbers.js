// Numbers as they are written on the screen.

/** A share in percent; a positive one that rounds to 0 is “<1%”, or “<0.1%” with one digit. */
export const percent = (share, digits = 0) => {
  const unit = 10 ** -digits;
  return share > 0 && 100 * share < unit / 2 ? `<${unit}%` : `${(100 * share).toFixed(digits)}%`;
};

export const minus = (text) => text.replace("-", "−");

/** One decimal, where there is one. */
export const tenths = (number) =>
  minus(number.toFixed(1).replace(/\.0$/, "").replace(/^-0$/, "0"));

/** As many digits as four letters hold. */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return minus(value.toExponential(0));
  return minus(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)).replace(/^−(0\.00)$/, "$1");
}

export const exact = (value) =>
  Math.abs(value) >= 1e-4 || value === 0 ? String(+value.toFixed(6)) : value.toExponential(2);
