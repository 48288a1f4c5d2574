// What the grid knows, and what follows from it: which cells and rows, which sentence, which bars, what
// an edit asks for. Nothing here draws or listens.

import { moment, quoted, shortName } from "../shared/names.js";
import { percent, signedPercent } from "../shared/numbers.js";
import { weightOf } from "../shared/weights.js";
import {
  averaged, cellOf, cover, hasFollowing, isCovered, joint, links, meanWeights, placesOf, rowOf, rowsOf, shiftOf, unpack,
  valueOf, visibleKeys,
} from "./cells.js";

const PATIENCE = 5000; // ms in which the server's answer to a selection comes, or is lost
const SPECIAL = /^(<.+>|\[.+\])$/; // tokens that are no words
const EVEN = 2; // times the weight of an even row, at most, where all count as even
const WORD = /[\p{L}\p{N}]/u; // what a word has
const COVERED = " is covered until you answer";
export const LEAST_NAMED = 0.005; // smaller weights would be “<1%”
const LEAST_SHADED = 0.004;
const LONGEST_LABEL = 24; // characters
const NO_WORD = "select a word";
const SPACE = "␣"; // SHOWN_SPACE of model/tokenizer.py
const FEWEST = 3; // next tokens that a low window shows, as in the style
const STEP = 0.1; // by which a key changes a weight

// A sentence is a list of parts: text, or [text, tag].

export class GridState {
  data = null; // what unpack() gave
  look = null; // how to show it, from the server
  // A cell {row, column, tile: {kind, layer, head}}, or {tokens, to}, see select(); a token is
  // {side, index}. What is pinned stays while nothing is pointed at.
  pointed = null;
  pinned = null;
  answering = false; // what an act did is said, until something else is pointed at
  known = new Set(); // cells that the server has named or heard of since the page was opened
  latest = null; // of them
  scope = "head"; // or its whole "layer" or "kind", for what is done to it
  count = 0; // of the selections made here; the server says which it has heard of
  act = null; // hears what is done to a head, a token or a cell
  isNamed = false; // whether the page names the selected head elsewhere

  /** `large`: the selected head is shown in full, too. */
  constructor(large = false) {
    this.large = large;
  }

  /** Other weights, as bytes. False where they are those that are here. */
  takeWeights(bytes) {
    const data = unpack(bytes);
    if (this.data?.id === data.id) return false;
    const texts = ({ sides }) => JSON.stringify(Object.values(sides).map((side) => side.labels));
    // After a change of the model one goes on where one was.
    if (!this.data || texts(this.data) !== texts(data)) this.pointed = this.pinned = this.told = this.suggested = null;
    this.data = data;
    this.asked = null; // for the weight of a cell
    this.cover();
    return true;
  }

  /** Another look, from the server. */
  takeLook(look) {
    const before = this.look;
    if (look.session !== this.session) [this.session, this.count] = [look.session, 0];
    // What the server answers to an earlier selection must not undo a later one.
    const late = look.heard < this.count && performance.now() - this.when < PATIENCE;
    this.look = late && before ? { ...look, focus: before.focus } : look;
    const said = [look, before].map((l) => JSON.stringify(l?.said ?? []));
    if (before && look.opened !== before.opened) { // the cell of the address counts, or none
      this.known.clear();
      this.pinned = null;
    }
    if (said[0] !== said[1]) this.answering = look.said.length > 0;
    this.cover();
    this.restore();
  }

  /** Selects the cell that the app knows of and this grid does not: from a link, or chosen on
   * another page. */
  restore() {
    const { focus, cell } = this.look;
    const part = this.data && this.part(focus.kind);
    if (cell?.query === undefined || !part || this.known.has(JSON.stringify(cell))) return;
    this.note(cell);
    const { query, key } = cell;
    if (JSON.stringify(cell) === JSON.stringify(this.pinnedCell())) return;
    this.pinned = null;
    const [row, column] = [[query, part.query], [key, part.key]].map(([index, side]) =>
      Math.floor(index / this.data.sides[side].every));
    if (query < 0 && column >= 0 && column < part.columns)
      return void (this.pinned = { tokens: [{ side: part.key, index: key }], to: [] });
    if (row < 0 || row >= part.rows || column >= part.columns) return;
    this.pinned = (column < 0 && this.rowAsWord(part, query)) ||
      this.cell(part, focus.layer * part.heads + focus.head, row, Math.max(0, column));
  }

  /** Covers what a lesson asks for, before anything is drawn. */
  cover() {
    if (!this.data || !this.look) return;
    const veil = this.look.veil ?? [];
    const asked = JSON.stringify(veil);
    if (this.coveredOf?.[0] === this.data && this.coveredOf[1] === asked) return;
    if (this.coveredOf?.[1] !== asked) this.told = null;
    this.coveredOf = [this.data, asked];
    cover(this.data.parts, this.data.sides, veil);
    this.data.joint = undefined; // made of the cells
  }

  /** Another head; as the server will hear. */
  focusOn(tile) {
    this.look = { ...this.look, focus: tile };
    this.count++;
    this.when = performance.now();
  }

  note(cell) {
    this.latest = cell;
    this.known.add(JSON.stringify(cell));
  }

  // Cells and rows

  part(kind) {
    return this.data.parts.find((part) => part.kind === kind);
  }

  shown() {
    const { show, focus } = this.look;
    const all = this.data.parts.filter((part) => part.rows && part.columns);
    if (show === "joint" && all.length) {
      if (this.data.joint === undefined) this.data.joint = joint(all, this.data.sides);
      if (this.data.joint) return [this.data.joint];
    }
    return show === "one kind" ? all.filter((part) => part.kind === focus.kind) : all;
  }

  /** The name above the picture of the selected head, or of a mean. */
  title(part) {
    const { focus, average } = this.look;
    const number = part.numbers[focus.layer];
    const which = { heads: `layer ${number}, mean over heads`,
      layers: `head ${focus.head + 1}, mean over layers`, both: "mean over all heads" };
    return `${part.name}, ` +
      (which[average] ?? `layer ${number}, head ${focus.head + 1}`);
  }

  cell(part, tile, row, column) {
    return cellOf(part, this.data.sides, tile, row, column);
  }

  /** The byte of a cell, 0 where it is masked. */
  byteAt({ tile, row, column }) {
    const part = this.part(tile.kind);
    const [i, j] = [row, column].map(({ side, index }) => index / this.data.sides[side].every);
    return part.cells[((tile.layer * part.heads + tile.head) * part.rows + i) * part.columns + j];
  }

  /** What is shown, row by row: one head, or the mean over some. */
  rows(part) {
    const tiles = averaged(part, this.look);
    return Array.from({ length: part.rows }, (_, row) => meanWeights(part, tiles, [row], true));
  }

  labels(side, count) {
    return Array.from({ length: count }, (_, at) =>
      side.labels[at * side.every].slice(0, LONGEST_LABEL));
  }

  /** Each row by the word that the head follows. */
  rowLabels(part, side) {
    if (!this.shift(part, averaged(part, this.look))) return this.labels(side, part.rows);
    return side.following.map((label) => label.slice(0, LONGEST_LABEL));
  }

  /** What the rows are: of a text that is predicted, which of their two words stands there. */
  queryTitle(part) {
    const side = this.data.sides[part.query];
    const isWritten = this.shift(part, averaged(part, this.look));
    const word = !hasFollowing(side) || this.isNextAsked() ? ""
      : isWritten ? ", about to be written" : ", just read";
    return `query (${part.query}${word})`;
  }

  /** Both words that a row stands for. */
  rowTitle(cell) {
    const side = cell && this.data.sides[cell.row.side];
    if (!side || !hasFollowing(side) || this.isNextAsked()) return "";
    const { index } = cell.row;
    return moment(side.labels[index], side.following[index]).join("");
  }

  /** The word of the text that labels the row of a query in the selected head; null where it is not in
   * the text: the last row predicts the end. */
  rowAsWord(part, query) {
    const index = query + this.shift(part, averaged(part, this.look));
    return index < this.data.sides[part.query].labels.length ? { tokens: [{ side: part.query, index }], to: [] } : null;
  }

  /** Whether a lesson asks for what the rows predict. */
  isNextAsked() {
    return this.look.veil?.some(({ what }) => what === "next tokens" || what === "decoding");
  }

  /** How far the word that the heads of some tiles follow is from the word that a row reads. */
  shift(part, tiles) {
    return this.isNextAsked() ? 0 : shiftOf(part, this.data.sides, tiles);
  }

  /** The rows of what is pointed at, in the selected head or the tile that is given. A token stands
   * for the row whose label it is: where the head follows the word that it writes, for the one before. */
  queries(pointed, tile = null) {
    if (!pointed || pointed.row) return pointed ? [pointed.row] : [];
    const part = this.part((tile ?? this.look.focus).kind);
    const shift = this.shift(part, tile ? [tile.layer * part.heads + tile.head] : averaged(part, this.look));
    return rowsOf([...pointed.tokens, ...pointed.to], part, shift);
  }

  /** The tokens whose rows and whose columns are marked. */
  marked(pointed) {
    if (!pointed) return { rows: [], columns: [] };
    const columns = pointed.row ? [pointed.column] : [...pointed.tokens, ...pointed.to];
    return { rows: this.queries(pointed), columns };
  }

  /** Weights between tokens, as queries or as keys, and all tokens of the other side: in the head
   * whose tile is pointed at, else in the selected head or the mean. */
  between(tokens, asQuery, tile = this.look.focus) {
    const part = this.part(tile.kind);
    const places = part ? placesOf(tokens, asQuery ? part.query : part.key, this.data.sides) : [];
    if (!places.length) return null;
    const { focus } = this.look;
    const isFocus = ["kind", "layer", "head"].every((key) => tile[key] === focus[key]);
    const tiles = isFocus ? averaged(part, this.look) : [tile.layer * part.heads + tile.head];
    return {
      side: asQuery ? part.key : part.query,
      weights: meanWeights(part, tiles, places, asQuery),
    };
  }

  /** Whether the cells of the head in focus are weights of the model: from one token to one, and no
   * difference. */
  paintable() {
    const part = this.part(this.look.focus.kind);
    const single = part && [part.query, part.key].every((side) => this.data.sides[side].every === 1);
    return Boolean(this.act && this.look.acts && !this.data.signed && single);
  }

  /** Whether what is done to a layer or a kind is done to this tile of its part. */
  inScope(part, tile) {
    const row = Math.floor(tile / part.heads);
    return this.scope === "kind" || row === rowOf(part, this.look.focus);
  }

  /** The token that is selected alone, or the key of the selected cell. */
  token() {
    const { pinned } = this;
    if (!this.look.acts || !pinned) return null;
    if (pinned.row) return pinned.column;
    return pinned.tokens.length === 1 && !pinned.to.length ? pinned.tokens[0] : null;
  }

  /** Whether the selected token is a key of the selected head. */
  isKeyHere() {
    return this.token()?.side === this.part(this.look.focus.kind)?.key;
  }

  /** The row of the selected head that is pinned, and the column of a cell; −1 where none is. */
  pinnedCell() {
    const side = this.part(this.look.focus.kind)?.query; // the weights of another model come first
    const query = this.queries(this.pinned).find((token) => token.side === side)?.index ?? -1;
    return { query, key: query >= 0 && this.pinned.row ? this.pinned.column.index : -1 };
  }

  // What is done

  /** What a key does to the selected head, a token or a cell, as the server hears it; null where it
   * means nothing. */
  actOf(key) {
    const card = this.cards().find((each) => each.key === key);
    if (card) return card.act;
    if (key === "H" && this.isKeyHere()) return this.hidesHere();
    if (!this.paintable() || !this.pinned?.row) return null;
    if (key === "m") return this.masks(this.pinned);
    return key === "+" || key === "-" ? this.weighs(this.pinned, key === "+" ? STEP : -STEP) : null;
  }

  /** What can be done to what is selected, each with a key: the `title` in parts of a sentence, the
   * `act` as the server hears it, null with the reason `why`, and whether it `isDone`. */
  cards() {
    const { focus, hidden = {}, off = {} } = this.look;
    const cards = this.look.cards ?? {};
    const part = this.part(focus.kind);
    const token = this.tokenActedOn();
    const isOfFirst = token?.side === Object.keys(this.data.sides)[0];
    const [number, head] = [part.numbers[focus.layer], focus.head + 1];
    const off_ = { head: ["Head ", [`${number}.${head}`, "em"], " off"],
      layer: ["Layer ", [`${number}`, "em"], " off"], kind: [[part.name.split(" ")[0], "em"], " off"] };
    const tiles = [...Array(part.layers * part.heads).keys()].filter((tile) =>
      this.scope === "head" ? tile === rowOf(part, focus) * part.heads + focus.head : this.inScope(part, tile));
    const of = (verb, given) => [`${verb} `, given ? [this.labelText(given), "em"] : "a word"];
    const found = [
      { name: "hide", key: "h", title: of("Hide", token), act: token && { what: "hide", ...token },
        why: NO_WORD, isDone: Boolean(token && hidden[token.side]?.includes(token.index)) },
      { name: "off", key: "o", title: off_[this.scope], act: { what: "off", ...focus, scope: this.scope },
        isDone: tiles.every((tile) => off[focus.kind]?.includes(tile)) },
      { name: "positions", key: "n", title: ["No positions"], act: { what: "positions" } },
      { name: "causal", key: "k", title: ["Peek ahead"], act: { what: "causal" } },
      { name: "swap", key: "w", title: of("Swap", isOfFirst ? token : null),
        why: `select a ${Object.keys(this.data.sides)[0]} word`,
        act: isOfFirst || cards.swap ? { what: "swap", index: isOfFirst ? token.index : 0 } : null },
      { name: "temperature", key: "t", title: ["Blur all heads"], act: { what: "temperature" } },
    ];
    return found.filter(({ name }) => name === "hide" || name === "off" || name in cards)
      .map((card) => Object.assign({ isDone: Boolean(cards[card.name]), why: "" }, card));
  }

  /** The token that a card acts on: the one that is selected, of a pair the second, or else the word
   * that the marked row of the selected head attends to most, but not in a lesson, which may ask for
   * it. It stays over the same texts, so that the same act undoes what it did. */
  tokenActedOn() {
    if (!this.look.acts) return null;
    if (this.pinned?.to?.length === 1) return this.pinned.to[0];
    if (this.pinned || this.look.in_lesson) return this.token();
    const { focus, average } = this.look;
    const place = JSON.stringify([focus, average]);
    if (this.suggested?.place !== place) {
      const { word } = this.telling();
      const others = word && this.between(this.queries(word), true);
      const at = others ? others.weights.indexOf(Math.max(...others.weights)) : -1;
      const token = at < 0 ? null : { side: others.side, index: at * this.data.sides[others.side].every };
      const text = token && this.labelText(token);
      this.suggested = { place, token: token && WORD.test(text) && !SPECIAL.test(text) ? token : null };
    }
    return this.suggested.token;
  }

  /** To hide the selected token from the selected head alone, or show it again. */
  hidesHere() {
    const { kind, layer, head } = this.look.focus;
    return { what: "hide", ...this.token(), head: { kind, layer, head } };
  }

  /** To forbid a cell that may be attended to, or allow it. */
  masks(cell) {
    return { what: "paint", ...cell.tile, row: cell.row.index, column: cell.column.index,
      allow: !this.byteAt(cell), scope: this.scope };
  }

  /** To set a weight to what it is and so much more; null where it is masked. */
  weighs(cell, more) {
    const byte = this.byteAt(cell);
    if (!byte) return null;
    const place = JSON.stringify(cell);
    // A second key may come before the server has answered the first.
    const now = this.asked?.place === place ? this.asked.weight : weightOf(byte);
    const weight = Math.round(100 * Math.min(1, Math.max(0, now + more))) / 100;
    this.asked = { place, weight };
    return { what: "weigh", ...cell.tile, row: cell.row.index, column: cell.column.index, weight };
  }

  /** The cell so many rows and columns from the selected one; with [0, 0] the first. */
  walked([down, right]) {
    const { focus } = this.look;
    const part = this.part(focus.kind);
    const { row, column } = this.pinned?.row ? this.pinned : { row: null, column: null };
    const { every: rowEvery } = this.data.sides[part.query];
    const { every: columnEvery } = this.data.sides[part.key];
    const moved = (at, by, every, count) =>
      Math.min(count - 1, Math.max(0, (at && (down || right) ? at.index / every : 0) + (at ? by : 0)));
    return this.cell(part, focus.layer * part.heads + focus.head,
      moved(row, down, rowEvery, part.rows), moved(column, right, columnEvery, part.columns));
  }

  // What is marked and said

  /** What is to be seen now: `chosen`, what is pointed at or pinned; `pointed`, that or the row that is
   * marked anyway; `beside`, a row that is marked too; the `message`, and whether it `isSaid` by the
   * server. */
  now() {
    const { focus } = this.look;
    const { query, key } = this.part(focus.kind) ?? {};
    // A cell of other texts is none of the head in focus.
    if (this.pinned?.row && (this.pinned.row.side !== query || this.pinned.column.side !== key))
      this.pinned = null;
    const chosen = this.pointed ?? this.pinned;
    // A layer or a kind that was selected is named instead.
    const told = chosen || this.scope !== "head" ? null : this.telling();
    const pointed = chosen ?? told?.word;
    // Keys read cells of the head in focus, wherever it has moved to.
    if (pointed && pointed === this.pinned && pointed.tile) pointed.tile = focus;
    // What the changes did to the output, but of a difference what it shows.
    const isSaid = !this.data.signed && (this.answering || (!chosen && this.look.said.length > 0));
    // That is said of a row, which is marked beside a token of another text: the one just hidden, say.
    const isBeside = isSaid && chosen?.tokens &&
      [...chosen.tokens, ...chosen.to].every(({ side }) => side !== query);
    const spoken = isSaid ? null : pointed;
    return { chosen, pointed, beside: isBeside ? this.telling().word : null, isSaid,
      message: [...this.sentence(spoken, told?.even), ...this.offNote(spoken)] };
  }

  /** What a weight would be. */
  previewed(cell, more) {
    const weight = Math.min(1, Math.max(0, weightOf(this.byteAt(cell)) + more));
    const part = this.part(cell.tile.kind);
    const shift = this.shift(part, [cell.tile.layer * part.heads + cell.tile.head]);
    return [...this.rowStart(cell.row, shift), " puts ", percent(weight), " of its weight on ",
      this.label(cell.column)];
  }

  /** How the text shows what is pointed at: the tokens that are `framed`, and `shaded` ones [token,
   * whether it is attended to, weight] by what it attends to and what attends to it. A pair gets
   * frames only: its finding may be about another head. */
  shades(pointed) {
    if (!pointed) return { framed: [], shaded: [] };
    const tokens = pointed.tokens ?? [pointed.row];
    const { kind, layer, head } = pointed.tile ?? this.look.focus;
    const part = this.part(kind);
    const shift = this.shift(part, pointed.tile ? [layer * part.heads + head] : averaged(part, this.look));
    const followed = ({ side, index }) => ({ side, index: index + shift });
    const framed = pointed.row ? [followed(pointed.row), pointed.column] : [...tokens, ...pointed.to];
    const shaded = [];
    for (const asQuery of pointed.to?.length ? [] : [true, false]) {
      const others = this.between(asQuery && pointed.tokens ? this.queries({ tokens, to: [] }) : tokens,
        asQuery, pointed.tile);
      others?.weights.forEach((weight, i) => {
        const { every } = this.data.sides[others.side];
        for (let k = 0; k < every && Math.abs(weight) > LEAST_SHADED; k++) {
          const token = { side: others.side, index: i * every + k + (asQuery ? 0 : shift) };
          shaded.push([token, asQuery, weight]);
        }
      });
    }
    return { framed, shaded };
  }

  /** What the changes of a run did to a token: whether it is `hidden`, and how its log-probability moved:
   * `by`, null where there is none, and as a `share` of the largest. */
  changeOf(side, index) {
    const { acts, hidden = {}, moved = {} } = this.look;
    const by = (acts ? moved[side]?.[index] : null) ?? null;
    const top = Math.max(1, ...Object.values(moved).flat().map(Math.abs));
    return { hidden: Boolean(acts && hidden[side]?.includes(index)), by, share: Math.abs(by ?? 0) / top };
  }

  /** What is said and marked of the selected head while nothing is pointed at: the row of `word`,
   * one that attends to one word far from its own place; or how `even` all of its rows are. */
  telling() {
    const { focus, points_at: token, average } = this.look;
    const part = this.part(focus.kind);
    const shift = part ? this.shift(part, averaged(part, this.look)) : 0;
    const word = (side, index) => ({ tokens: [{ side, index }], to: [] });
    const place = JSON.stringify([focus, average]);
    if (part && token?.side === part.query) {
      this.told = { data: this.data, place, even: null, row: token.index };
      return { word: word(token.side, token.index + shift), even: null };
    }
    if (!this.large || !part?.rows || !part.columns || this.look.in_lesson)
      return { word: null, even: null };
    if (this.told?.place !== place || this.told.data !== this.data) {
      const even = part.signed ? null : this.evenly(part);
      // Over the same tokens the row stays, so that the weights before and after can be compared.
      const row = even !== null ? null
        : (this.told?.place === place ? this.told.row : null)
          ?? (part.signed ? this.mostChangedRow(part, shift) : this.clearestRow(part, shift));
      this.told = { data: this.data, place, even, row };
    }
    const { row, even } = this.told;
    const { every } = this.data.sides[part.query];
    return { word: row === null ? null : word(part.query, row * every + shift), even };
  }

  /** The row of a word that attends to one word far from its own place; null if there is none. The
   * app's pages about one row open with it (model/analysis/head_metrics.py). */
  clearestRow(part, shift) {
    const { focus } = this.look;
    const [query, key] = [part.query, part.key].map((name) => this.data.sides[name]);
    const isWord = ({ labels, every }, at) =>
      WORD.test(labels[at * every]) && !SPECIAL.test(labels[at * every]);
    let [best, most] = [null, 0];
    for (let row = 0; row + shift < part.rows; row++) {
      if (!isWord(query, row + shift)) continue;
      const weights = meanWeights(part, [focus.layer * part.heads + focus.head], [row], true);
      const column = weights.indexOf(Math.max(...weights));
      const far = Math.abs(row / part.rows - column / part.columns);
      // Cubed: a row that is split between two tokens tells less than a clear one nearby.
      const tells = weights[column] ** 3 * (0.1 + far) * (isWord(key, column) ? 1 : 0.1);
      if (tells > most) [best, most] = [row, tells];
    }
    return best;
  }

  /** Of a difference, the row whose weights have changed most; null if none has. */
  mostChangedRow(part, shift) {
    const { focus } = this.look;
    let [best, most] = [null, 0];
    for (let row = 0; row + shift < part.rows; row++) {
      const weights = meanWeights(part, [focus.layer * part.heads + focus.head], [row], true);
      const change = weights.reduce((sum, weight) => sum + Math.abs(weight), 0);
      if (change > most) [best, most] = [row, change];
    }
    return best;
  }

  /** Null, unless every row of the selected head spreads its weight almost evenly over its allowed
   * keys, as with random weights. Then `most` is the largest weight, and `few` tells whether rows with
   * too few keys were skipped. */
  evenly(part) {
    const { focus, average } = this.look;
    if (average || part.veil?.length) return null;
    const tile = focus.layer * part.heads + focus.head;
    let [most, few] = [0, false];
    for (let row = 0; row < part.rows; row++) {
      const weights = meanWeights(part, [tile], [row], true);
      const largest = Math.max(...weights), keys = visibleKeys(part, focus, row);
      if (keys <= EVEN) {
        few = true; // too few to tell
        continue;
      }
      if (largest * keys > EVEN) return null;
      most = Math.max(most, largest);
    }
    return most ? { most, few } : null;
  }

  labelText({ side, index }) {
    const { labels, every } = this.data.sides[side];
    if (every === 1) return labels[index];
    return `${labels[index]} … ${labels[Math.min(labels.length, index + every) - 1]}`;
  }

  /** A token as part of a sentence: punctuation, which italics hardly change, in quotes too. */
  label(token) {
    return quoted(this.labelText(token));
  }

  /** The word that a head follows at the row of a token. */
  rowText(token, shift) {
    return shift ? this.data.sides[token.side].following[token.index] : this.labelText(token);
  }

  rowLabel(token, shift) {
    return quoted(this.rowText(token, shift));
  }

  /** How a sentence about the row of a token begins: with both of its words where the head follows
   * the one that the row predicts. */
  rowStart(token, shift, having = "Having") {
    if (!shift) return [this.label(token)];
    return [...moment(this.label(token), this.rowLabel(token, shift), having), ", it"];
  }

  /** Whether the selected token is the one in place `at` of a side. */
  isItself({ tokens: [token, ...more] }, side, at) {
    return !more.length && token.side === side && token.index === at * this.data.sides[side].every;
  }

  names(tokens) {
    return tokens.flatMap((token, i) => [i ? " + " : "", this.label(token)]);
  }

  /** The heads with the most weight between two groups of tokens, the largest first. */
  linksOf(pair, most = Infinity) {
    return links(this.data.parts, this.data.sides, pair, (...tiles) => this.shift(...tiles), most);
  }

  get noLink() {
    return this.data.signed ? "No head gains weight between them."
      : "No head may attend from one to the other.";
  }

  /** Which head links two groups of tokens most, and how much the selected one does. */
  linkSentence(pair) {
    const { focus, average } = this.look;
    const found = this.linksOf(pair);
    if (!found.length) return [...this.names(pair.tokens), " and ", ...this.names(pair.to), ": ", this.noLink];
    const isHere = ({ kind, layer, head }) =>
      kind === focus.kind && layer === focus.layer && head === focus.head;
    const ties = found.filter(({ weight }) => weight === found[0].weight);
    const best = ties.find(isHere) ?? ties[0];
    const several = best.queries.length > 1;
    const of = several ? " of their weight on " : " of its weight on ";
    const [verb, how] = this.data.signed
      ? [several ? " gain " : " gains ", signedPercent] : [several ? " put " : " puts ", percent];
    const parts = ["In ", [this.shortName(best), "b"], ", ", ...this.names(best.queries), verb,
      how(best.weight), of, ...this.names(best.keys),
      ties.length > 1 ? ", as much as in any other head." : ", more than in any other head."];
    const part = this.part(focus.kind);
    if (average || this.data.signed || part.veil?.length || isHere(best)) return parts;
    const here = found.find((link) => isHere(link) && link.queries === best.queries);
    return [...parts, here ? ` In the selected head: ${percent(here.weight)}.`
      : " The selected head does not connect them."];
  }

  /** As changes name it: “Decoder 2.3”. */
  shortName({ kind, layer, head }) {
    return shortName({ kind, layer: this.part(kind).numbers[layer] - 1, head });
  }

  name({ kind, layer, head }) {
    return `${this.part(kind).name}, layer ${this.part(kind).numbers[layer]} head ${head + 1}`;
  }

  /** Of a head that is switched off, whose weights are still shown. */
  offNote(pointed) {
    const { focus, average, off = {} } = this.look;
    if (!pointed || pointed.to?.length || this.data.signed || (average && !pointed.tile)) return [];
    const { kind, layer, head } = pointed.tile ?? focus;
    const isOff = off[kind]?.includes(layer * this.part(kind).heads + head);
    return isOff ? [" But the head is off: nothing of this is passed on."] : [];
  }

  sentence(pointed, even) {
    const { focus, average } = this.look;
    if (!pointed) {
      const part = this.part(focus.kind);
      const all = { layer: `${part.name}, layer ${part.numbers[focus.layer]}`, kind: part.name };
      const where = [all[this.scope] ?? this.name(focus), "b"];
      if (this.data.signed)
        return [where, " is selected. Colours range from ", signedPercent(-this.data.signed), " to ",
          signedPercent(this.data.signed), " of the weight."];
      if (this.look.said.length)
        return this.look.said;
      if (even)
        return ["Every row spreads its weight almost evenly: ", even.few
          ? "with more than two keys, none gets more than " : "no key gets more than ",
        percent(even.most), "."];
      return [where, " is selected. Hover over a word to see what it attends to. Click a small map to enlarge it."];
    }
    if (pointed.tile) {
      const { tile, row, column } = pointed;
      const part = this.part(tile.kind);
      const i = row.index / this.data.sides[row.side].every;
      const byte = this.byteAt(pointed);
      const shift = this.shift(part, [tile.layer * part.heads + tile.head]);
      const name = [[this.name(tile), "b"], ": "];
      if (isCovered(part, [tile.layer * part.heads + tile.head], i))
        return [...name, this.rowLabel(row, shift), COVERED, "."];
      const start = [...name, ...this.rowStart(row, shift, "having")];
      if (!byte && part.signed)
        return [...start, " and ", this.label(column), ": masked, or in only one of the two texts."];
      if (!byte) return [...start, " may not attend to ", this.label(column), "."];
      if (part.signed)
        return [...start, Math.abs(valueOf(part, byte)) < 0.005 ? " does not change its weight on "
          : " changes its weight on ", this.label(column), ` by ${signedPercent(valueOf(part, byte))}.`];
      const atMost = Math.max(this.data.sides[row.side].every, this.data.sides[column.side].every) > 1;
      const weight = weightOf(byte);
      const share = weight < 0.005 ? "less than 1%" : (atMost ? "up to " : "") + percent(weight);
      const only = visibleKeys(part, tile, i) === 1 ? ", the only key it may attend to." : ".";
      return [...start, ` puts ${share} of its weight on `, this.label(column), only];
    }
    if (pointed.to.length) return this.linkSentence(pointed);
    const number = this.part(focus.kind).numbers[focus.layer];
    const over = { heads: `mean over the heads of layer ${number}`,
      layers: `mean of head ${focus.head + 1} over all layers`, both: "mean over all heads" };
    const head = average ? `${this.part(focus.kind).name}, ${over[average]}` : this.name(focus);
    // The picker beside the title names the head, but in Present, where it is hidden.
    const parts = this.isNamed && !average ? [] : [[head, "b"], ": "];
    const of = this.part(focus.kind);
    const shift = this.shift(of, averaged(of, this.look));
    const queries = this.queries({ tokens: pointed.tokens, to: [] });
    const covered = placesOf(queries, of.query, this.data.sides)
      .some((row) => isCovered(of, averaged(of, this.look), row));
    if (shift && pointed.tokens.length === 1 && queries[0]?.side === of.query && !covered)
      parts.push(...this.rowStart(queries[0], shift, parts.length ? "having" : "Having"));
    else parts.push(...this.names(pointed.tokens));
    const isPinned = JSON.stringify(pointed) === JSON.stringify(this.pinned);
    let roles = 0; // it is a query, a key, or both
    for (const [asQuery, verb, changing] of [
      [true, " attends most to ", " changes most in its weight on "],
      [false, " is attended to most by ", " changes most in the weight it gets from "],
    ]) {
      const others = this.between(asQuery ? queries : pointed.tokens, asQuery);
      if (!others) continue;
      if (asQuery ? covered : of.veil?.some(({ tile }) => averaged(of, this.look).includes(tile))) {
        if (asQuery) parts.push(roles++ ? ";" : "", COVERED);
        continue;
      }
      const size = others.weights.map(Math.abs);
      const best = [...size.keys()].filter((i) => size[i] >= LEAST_NAMED)
        .sort((a, b) => size[b] - size[a]).slice(0, 3);
      if (!best.length && !asQuery && roles) continue;
      if (!best.length && this.data.signed) {
        parts.push(roles++ ? ";" : "", asQuery ? " attends as before" : " gets the same weights");
        continue;
      }
      parts.push(roles++ ? ";" : "", this.data.signed ? changing : verb);
      if (!best.length) parts.push("nothing");
      best.forEach((i, rank) => parts.push(rank ? ", " : "", this.isItself(pointed, others.side, i) && !shift
        ? "itself"
        : this.rowLabel({ side: others.side, index: i * this.data.sides[others.side].every },
          !asQuery && shift),
        ` (${(this.data.signed ? signedPercent : percent)(others.weights[i])})`));
      if (!asQuery && isPinned && !this.data.signed && pointed.tokens.length === 1) {
        const sum = others.weights.reduce((all, weight) => all + weight, 0); // of bytes, each of half a percent
        parts.push(`; its column adds up to about ${percent(sum)}`);
      }
    }
    if (!roles && shift && pointed.tokens.every(({ side }) => side === of.query))
      return [...parts, " is not written by the model, so it has no row in this head."];
    return roles ? [...parts, "."]
      : [...parts, ` belongs to the ${pointed.tokens[0].side}, which this attention does not read.`];
  }

  // Predictions

  /** The most probable next tokens (or classes) at the row that is pointed at, and the token that the
   * text has there: {title, row, bars}, each {label, share, notes, isWanted, was}, the last the share
   * before a change, null where it is not known; null where there are none. */
  answersAt(pointed) {
    const { answers } = this.data;
    if (!answers || this.look.veil?.length) return null;
    const { side, rows, title } = answers;
    const row = rows.length === 1 ? 0 : Math.min(this.answeredRow(pointed), rows.length - 1);
    const { labels, following } = this.data.sides[side];
    const wanted = following[row] ?? labels[row]; // the latter of a masked token
    const probable = answers.wanted?.[row] ?? null;
    const best = rows[row];
    const isAmong = (some) => probable === null || some.some(([label]) => label === wanted);
    const past = this.data.former?.answers; // of the same texts, or none is drawn beside it
    const was = (label) => new Map(past?.rows[row]).get(label) ?? (label === wanted ? past?.wanted?.[row] : null) ?? null;
    const bars = (isAmong(best) ? best : [...best, [wanted, probable]]).map(([label, share]) => {
      const isWanted = label === wanted && !isAmong(best.slice(0, FEWEST));
      const notes = [...(label === SPACE ? ["space"] : []), ...(isWanted ? [side] : [])];
      return { label, share, notes, isWanted, was: was(label) };
    });
    return { row, bars, title: rows.length === 1 && title === "Class" ? "Class of the text"
      : `${title} ${this.rowInWords({ side, index: row })}` };
  }

  /** The row whose predictions are shown: the one that is pointed at or selected. For a token of another
   * text it is the row that is marked anyway, or else the one that the finding is about. */
  answeredRow(pointed) {
    const { answers } = this.data;
    for (const each of [pointed, this.pinned, this.telling().word]) {
      const row = this.queries(each).find(({ side }) => side === answers.side);
      if (row) return row.index;
    }
    const { points_at: told } = this.look;
    return told?.side === answers.side ? told.index : answers.last;
  }

  /** A row of the predicted text by the label that it has in the picture. */
  rowInWords({ side, index }) {
    const part = this.part(this.look.focus.kind);
    const { labels, following } = this.data.sides[side];
    const isFollowing = part.query === side && this.shift(part, averaged(part, this.look));
    return isFollowing ? `in row “${following[index]}”` : `after “${labels[index]}”`;
  }
}
