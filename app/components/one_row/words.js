// What a stop says of a row, as parts of a sentence: [text, whether it is a token].

import { one, power, share, two } from "./arithmetic.js";

const SHARP = 0.99; // a row in which a small change of a score changes almost nothing

/** Whose row it is. */
export function lead(head, row) {
  const moment = head.moments[row];
  if (moment) return [["Having read "], [moment[0], true], [", about to write "], [moment[1], true], [": "]];
  return [["The query of "], [head.rows[row], true], [": "]];
}

/** The sentence of a stop. `now`: the row as it is shown; `other`: with √d where it is left out, and
 * without where not. */
export function finding(head, row, stop, isScaled, now, other) {
  return [...lead(head, row), ...said(head, stop, isScaled, now, other)];
}

function said(head, stop, isScaled, now, other) {
  const [first, second] = now.best;
  if (first === undefined) return [["it may attend to no key, so all its weights are zero."]];
  if (!now.isFinite) return [["its scores are NaN or infinite, and no bars can be drawn."]];
  const [best, next] = [[head.keys[first], true], [head.keys[second], true]];
  const isAlone = second === undefined;
  const root = `√${head.width}`;
  if (head.weights_alone)
    return [best, [` gets ${share(now.weights[first])}`],
      ...(isAlone ? [] : [[", "], next, [` ${share(now.weights[second])}`]]), [" of its attention."]];
  if (isAlone)
    return [["it may attend to one key alone, "], best, [", which gets all the weight, whatever its score, "],
      [`${one(now.raw[first])}.`]];
  switch (stop) {
    case "scores":
      return [["the query fits the key of "], best, [` best. Their dot product is ${one(now.raw[first])}.`]];
    case "scaled":
      return isScaled
        ? [[`divided by ${root} = ${two(Math.sqrt(head.width))}, the best score is ${two(now.scaled[first])} ` +
          `instead of ${one(now.raw[first])}. The order stays, the gaps shrink.`]]
        : [[`not divided, the best score stays ${one(now.raw[first])}, ` +
          `${one(now.raw[first] - now.raw[second])} ahead of the next.`]];
    case "exp":
      return [[`e to the power of each score: ${power(now.scaled[first])} for `], best,
        [`, ${power(now.scaled[second])} for `], next, [". Nothing is negative any more."]];
    case "weights": {
      const [weight, before] = [share(now.weights[first]), share(other.weights[first])];
      if (isScaled)
        return [[`divided by their sum, ${power(now.logSum)}, they are weights: `], best, [` gets ${weight}, `],
          next, [` ${share(now.weights[second])}. They add up to 100%.`]];
      return [[`without ${root}, `], best, weight === before ? [` keeps ${weight}.`]
        : [` takes ${weight} instead of ${before}.`],
      ...(now.weights[first] > SHARP ? [[" In so sharp a row, a small change of a score changes almost nothing."]] : [])];
    }
    default: {
      const rest = 1 - now.weights[first] - now.weights[second];
      return [[`the output is ${share(now.weights[first])} of the value of `], best,
        [`, ${share(now.weights[second])} of that of `], next,
        [rest > 0.005 ? `, and ${share(rest)} of the rest.` : "."]];
    }
  }
}
