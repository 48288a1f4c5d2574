// Words of source and target, and which go together by cross-attention (model/analysis/alignment.py).

const LETTER = "[\\p{L}\\p{N}\\p{M}_]";
// Where a word goes on: before an accent, between letters, around an apostrophe or a decimal point.
const INSIDE_A_WORD = new RegExp(`(?<=\\S)(?=\\p{M})|(?<=${LETTER})(?=['’]?${LETTER})|` +
  `(?<=${LETTER}['’])(?=${LETTER})|(?<=\\p{Nd})(?=[.,]\\p{Nd})|(?<=\\p{Nd}[.,])(?=\\p{Nd})`, "uy");

/** Words {start, stop, word} of a text that Tokenizer.encoding gave: their tokens, from start to before
 * stop. Special tokens are no words. */
export function ordinaryWords({ ids, text, offsets, tokens }, special) {
  const characters = [...text];
  const places = [0]; // of each character in the string
  for (const character of characters) places.push(places.at(-1) + character.length);
  const continues = (i) => {
    if (special.has(ids[i - 1]) || special.has(ids[i])) return false;
    const [[begin, end], [start]] = [offsets[i - 1], offsets[i]];
    if (start !== end) return start < end; // a part of the same character, or a space between
    INSIDE_A_WORD.lastIndex = places[start];
    return begin === end || INSIDE_A_WORD.test(text);
  };
  const starts = ids.map((_, i) => i).filter((i) => i === 0 || !continues(i));
  return starts.map((start, at) => {
    const stop = starts[at + 1] ?? ids.length;
    const word = characters.slice(offsets[start][0], offsets[stop - 1][1]).join("");
    return { start, stop, word: word || tokens[start] };
  }).filter(({ start }) => !special.has(ids[start]));
}

/** [layer][head]: 0 where a head agrees better at the row that reads a word, 1 at the one that predicts it. */
export const shiftsOf = ({ agreement: [read, predicted] }) => read.map((heads, layer) =>
  heads.map((share, head) => Number(predicted[layer][head] > share)));

/** {words, weights, links}: source and target words, the weights [target word][source word], and for
 * each target word the source word with the largest. `layers`: (1, heads, query, key) of
 * cross-attention. Mean over the `heads`, [layer, head]; each reads the row of the word that it
 * follows, `agreement` [shift][layer][head]: the one read there, or the one predicted, a row later. A
 * target word has the mean of its rows, a source word the sum of its columns. */
export function aligned(layers, { heads, agreement }, target, source, special) {
  const shifts = shiftsOf({ agreement });
  const [rows, columns] = [target, source].map((text) => ordinaryWords(text, special));
  const weight = (row, column) => {
    let sum = 0;
    for (const [layer, head] of heads) {
      const { shape: [, , queries, keys], data } = layers[layer];
      for (let i = row.start; i < row.stop; i++)
        for (let j = column.start; j < column.stop; j++)
          sum += data[(head * queries + i - shifts[layer][head]) * keys + j] / (row.stop - row.start);
    }
    return sum / heads.length;
  };
  const weights = rows.map((row) => columns.map((column) => weight(row, column)));
  const links = columns.length ? weights.map((row, i) => [row.indexOf(Math.max(...row)), i]) : [];
  return { words: [columns, rows].map((some) => some.map(({ word }) => word)), weights, links };
}
