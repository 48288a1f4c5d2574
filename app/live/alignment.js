// Words of a text, and which word a head of cross-attention follows (model/analysis/alignment.py).

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
