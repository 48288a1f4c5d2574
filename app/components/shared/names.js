// Names of heads and rows, in words.

/** A head, its layer or its kind of attention, as changes name it (text/part_names.py): “Cross 1.2”. */
export function shortName({ kind, layer, head }) {
  const word = kind.replaceAll("_", " ");
  const place = layer === null ? "" : head === null ? ` layer ${layer + 1}` : ` ${layer + 1}.${head + 1}`;
  return `${word[0].toUpperCase()}${word.slice(1)}${place}`;
}

/** A text as part of a sentence: punctuation, which italics hardly change, in quotes. */
export const quoted = (text) => (/[\p{L}\p{N}_]/u.test(text) ? [text, "em"] : [`“${text}”`, ""]);

/** Both words that a row of the predicted text stands for, in parts of a sentence (`moments` in
 * text/part_names.py). */
export const moment = (read, next, having = "Having") => [`${having} read `, read, ", about to write ", next];
