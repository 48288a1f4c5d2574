// Text to ids and back, with character offsets: byte-level BPE from tokenizer.json
// (model/tokenizer.py). "</s>" typed by a user is ordinary text.
//
// Anything in the file that is not implemented here is refused by name: a silently different token
// would make every number on the page wrong.

/** GPT-2's pre-tokens: contractions, words, numbers and all else, each with the space before it; then
 * spaces. What a letter, a number or a space is depends on the version of Unicode: `classes` are
 * the ranges that the Python library uses, so every browser splits alike. */
function preTokens({ L, N, S }) {
  return new RegExp(`'s|'t|'re|'ve|'m|'ll|'d| ?[${L}]+| ?[${N}]+| ?[^${S}${L}${N}]+|` +
    `[${S}]+(?![^${S}])|[${S}]+`, "gu");
}

const TEXTS = 20; // whose letters are remembered
const CACHED = 10_000; // pre-tokens

export class CannotRead extends Error {}

export class Tokenizer {
  #ids = new Map(); // pre-token → ids
  #typed = new Map(); // normalised text → its characters as they were typed, where one replaced one
  #merges = new Map(); // left · size + right → [rank, id of both together]

  /** The content of tokenizer.json; `classes`, see preTokens. Throws CannotRead. */
  constructor({ normalizer, pre_tokenizer, decoder, model, added_tokens }, classes) {
    this.preTokens = preTokens(classes);
    const isKnown = model.type === "BPE" && pre_tokenizer?.type === "ByteLevel" &&
      pre_tokenizer.use_regex !== false && decoder?.type === "ByteLevel" && !model.ignore_merges &&
      !model.continuing_subword_prefix && !model.end_of_word_suffix && !model.dropout;
    if (!isKnown) throw new CannotRead("This page can only read byte-level BPE tokenizers.");
    this.normalized = normalizerOf(normalizer);
    this.addsPrefix = pre_tokenizer.add_prefix_space;
    this.special = new Map(added_tokens.filter((t) => t.special).map((t) => [t.id, t.content]));
    const ids = new Map(Object.entries(model.vocab));
    this.size = 1 + Math.max(...ids.values(), ...this.special.keys());
    const letters = byteLetters();
    this.byteIds = letters.map((letter) => ids.get(letter));
    if (this.byteIds.includes(undefined))
      throw new CannotRead("This tokenizer has no token for some bytes.");
    const bytes = new Map(letters.map((letter, byte) => [letter, byte]));
    this.bytes = []; // id → bytes; of special tokens none
    for (const [symbol, id] of ids)
      if (!this.special.has(id)) this.bytes[id] = Array.from(symbol, (letter) => bytes.get(letter));
    this.longest = this.bytes.reduce((most, { length }) => Math.max(most, length), 1);
    model.merges.forEach((pair, rank) => {
      const [left, right] = typeof pair === "string" ? pair.split(" ") : pair;
      this.#merges.set(ids.get(left) * this.size + ids.get(right), [rank, ids.get(left + right)]);
    });
  }

  /** A lower bound for the number of tokens, found without encoding: the time that merging takes
   * grows with the square of a word's length. */
  atLeast(text) {
    return Math.ceil(new TextEncoder().encode(text).length / this.longest);
  }

  /** Ids of `text` alone, without special tokens. */
  encode(text) {
    const typed = text.toWellFormed?.() ?? text;
    text = this.normalized(typed);
    if (this.addsPrefix && text && !text.startsWith(" ")) text = ` ${text}`;
    this.#remember(this.#withoutPrefix(text), [...typed]);
    return (text.match(this.preTokens) ?? []).flatMap((word) => this.#idsOf(word));
  }

  #idsOf(word) {
    if (!this.#ids.has(word)) {
      if (this.#ids.size >= CACHED) this.#ids.clear();
      this.#ids.set(word, this.#merged(Array.from(new TextEncoder().encode(word), (byte) =>
        this.byteIds[byte])));
    }
    return this.#ids.get(word);
  }

  /** Merges the pair that was learned first, the leftmost if it occurs twice, until none is left. */
  #merged(symbols) {
    const mergeAt = (i) => this.#merges.get(symbols[i] * this.size + symbols[i + 1]);
    const merges = symbols.slice(1).map((_, i) => mergeAt(i));
    for (;;) {
      let best = -1;
      for (let i = 0; i < merges.length; i++)
        if (merges[i] && (best < 0 || merges[i][0] < merges[best][0])) best = i;
      if (best < 0) return symbols;
      symbols.splice(best, 2, merges[best][1]);
      merges.splice(best, 1);
      if (best > 0) merges[best - 1] = mergeAt(best - 1);
      if (best < merges.length) merges[best] = mergeAt(best);
    }
  }

  /** Text without special tokens. */
  decode(ids) {
    const bytes = Uint8Array.from(ids.flatMap((id) => this.bytes[id] ?? []));
    return this.#withoutPrefix(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
  }

  /** A label has the letters that were typed: ’, though the model reads it as '. */
  #remember(text, typed) {
    this.#typed.delete(text);
    if (this.#typed.size >= TEXTS) this.#typed.delete(this.#typed.keys().next().value);
    if (typed.join("") !== text && typed.length === [...text].length) this.#typed.set(text, typed);
  }

  #withoutPrefix(text) {
    return this.adds && text.startsWith(" ") ? text.slice(1) : text;
  }

  /** Whether it puts a space before a text. */
  get adds() {
    return this.normalized("a") === " a" || this.addsPrefix;
  }

  /** Ids, special ones included → their labels, and the characters [start, end) that each covers.
   * Offsets count code points, as in Python, not UTF-16 units. */
  encoding(ids) {
    const chunks = ids.map((id) => this.bytes[id] ?? []);
    const [characters, owner] = charactersOf(chunks.flat());
    const added = Number(this.adds && characters[0] === " ");
    const offsets = [];
    let at = 0, last = 0;
    for (const chunk of chunks) {
      if (!chunk.length) {
        offsets.push([last, last]); // a special token covers none
        continue;
      }
      const end = owner[at + chunk.length - 1] + 1;
      let start = owner[at];
      while (start < end && characters[start] === " ") start++; // a token's spaces do not count
      at += chunk.length;
      last = Math.max(end - added, 0);
      offsets.push([Math.max(start - added, 0), last]);
    }
    const text = characters.slice(added), whole = text.join("");
    const tokens = this.#named(ids, this.#typed.get(whole) ?? text, offsets);
    return { ids, offsets, text: whole, tokens };
  }

  /** What to call a token; `before`: the token before it, if any, whose word it may continue. */
  token(id, before = null) {
    const inItsPlace = before === null ? "" : this.encoding([before, id]).tokens[1];
    return inItsPlace.startsWith("·") ? inItsPlace : this.encoding([id]).tokens[0];
  }

  /** Labels: a token's characters, with a dot before a continued word; a character that it shares with
   * other tokens is numbered, as in "é 1/2"; invisible characters are escaped. */
  #named(ids, text, offsets) {
    const [owners, counts] = [0, 1].map(() => text.map(() => 0)); // of each character
    for (const [start, end] of offsets) for (let i = start; i < end; i++) owners[i]++;
    let previous = 0;
    return ids.map((id, i) => {
      if (this.special.has(id)) return this.special.get(id);
      const [start, end] = offsets[i];
      const follows = start === previous && ALNUM.test(text[start - 1] ?? "");
      previous = end;
      if (text.slice(start, end).every((character) => character === " ")) return "␣";
      const parts = [""]; // whole characters in one, each share by itself
      for (let at = start; at < end; at++)
        if (owners[at] === 1) parts[parts.length - 1] += visible(text[at]);
        else parts.push(`${visible(text[at])} ${++counts[at]}/${owners[at]}`, "");
      const token = parts.filter(Boolean).join(" ");
      return parts.length === 1 && follows && ALNUM.test(token[0]) ? `·${token}` : token;
    });
  }
}

const ALNUM = /[\p{L}\p{N}]/u;

/** A character, one that cannot be seen as Python escapes it, like in the app. */
function visible(character) {
  if (!/^(?! )[\p{C}\p{Z}]$/u.test(character)) return character;
  const code = character.codePointAt();
  const hex = (digits) => code.toString(16).padStart(digits, "0");
  const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  return short ?? (code < 256 ? `\\x${hex(2)}` : code < 65536 ? `\\u${hex(4)}` : `\\U${hex(8)}`);
}

/** Bytes → characters, and for each byte the character that it belongs to. A byte that is not valid
 * UTF-8 is a character by itself, <0xF0>. */
function charactersOf(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const characters = [], owner = [];
  for (let at = 0; at < bytes.length;) {
    const lead = bytes[at];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    let character, used = length;
    try {
      character = decoder.decode(Uint8Array.from(bytes.slice(at, at + length)));
    } catch {
      [character, used] = [`<0x${lead.toString(16).toUpperCase().padStart(2, "0")}>`, 1];
    }
    for (let i = 0; i < used; i++) owner.push(characters.length);
    characters.push(character);
    at += used;
  }
  return [characters, owner];
}

/** Byte-level BPE's letter for each byte: printable ones as they are, others from U+0100. */
function byteLetters() {
  let other = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const plain = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(plain ? byte : other++);
  });
}

/** The tokenizer's normalizer as a function of a text. */
function normalizerOf(part) {
  if (!part) return (text) => text;
  if (part.type === "Sequence") {
    const steps = part.normalizers.map(normalizerOf);
    return (text) => steps.reduce((made, step) => step(made), text);
  }
  if (part.type === "Prepend") return (text) => text && part.prepend + text;
  if (part.type === "Replace" && "String" in part.pattern)
    return (text) => text.replaceAll(part.pattern.String, () => part.content);
  if (part.type === "Replace" && /^\[[^\\\]^-]+\]$/.test(part.pattern.Regex)) { // a set of letters
    const pattern = new RegExp(part.pattern.Regex, "gu");
    return (text) => text.replace(pattern, () => part.content);
  }
  if (["NFC", "NFD", "NFKC", "NFKD"].includes(part.type))
    return (text) => text.normalize(part.type);
  throw new CannotRead(`This page cannot apply the tokenizer's normalizer “${part.type}”.`);
}
