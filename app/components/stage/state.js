// What the stage knows: the run, what of it may be seen, what is selected, how deep one is. Nothing here
// draws or listens.

import { weightOf } from "../shared/weights.js";
import { cover, hasFollowing, isCovered, shiftOf, unpack, visibleKeys, weightsOf } from "./cells.js";

export const DEPTHS = ["model", "heads", "head", "row", "number"]; // as in the address
export const MODEL = 0;
export const HEADS = 1;
export const HEAD = 2;
export const ROW = 3;
export const NUMBER = 4;
export const WHOLES = ["maps", "after", "needs", "paths", "positions", "input"]; // views of the model, likewise
export const PATHS = 3;
export const PLACES = 4;
export const INPUT = 5;
export const MOST_PLACES = 256; // of a text, that are shown at once
export const STOPS = ["scores", "scaled", "weights", "output", "word"]; // of a row, likewise
export const MIX = 3;
export const WORD = 4;
export const NUMBERS = ["order", "largest", "why"]; // of a query and a key, likewise
export const WHY = 2;
export const WRITES = ["one", "beams", "sampled"]; // of what the model writes, likewise
export const ORDERS = ["layer", "habit", "effect"]; // of all heads, likewise
export const VIEWS = ["matrix", "lines", "best", "pytorch"]; // of a head, likewise
export const PYTORCH = 3;
const LETTER = /[\p{L}\p{N}]/u; // what a word has
const SPECIAL = /^(<.+>|\[.+\])$/; // tokens that are no words
const EVEN = 2; // times the weight of an even row, at most, where all count as even
const MOVED = 0.05; // of a weight, from which on it is said
const STEP = 0.1; // by which a key changes a weight

const isWord = (text) => LETTER.test(text) && !SPECIAL.test(text);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const textsOf = ({ sides }) => Object.values(sides).map(({ labels }) => labels);
const within = (at, count) => Math.max(0, Math.min(count - 1, at));

export class StageState {
  run = null;
  look = null;
  said = null;
  depth = HEAD;
  whole = 0; // of WHOLES
  order = 0; // of ORDERS
  told = {}; // order → what the server said of the heads, by which they are ordered; and so of the model
  view = 0; // of VIEWS
  stop = 0; // of STOPS
  number = 0; // of NUMBERS
  term = -1; // the product chosen, −1: the largest
  pointedTerm = null;
  write = -1; // of WRITES, over whatever else is shown; −1: nothing
  at = null; // the word that is being written, from 0, or the column of a search
  other = null; // {line} or {best}: what is chosen beside it
  step = null; // the part of a logit that is chosen or pointed at
  isScaled = true; // whether scores are divided by √d
  tile = { kind: "", layer: 0, head: 0 };
  words = {}; // side → the token chosen there, whose row a head follows, see `row`
  key = -1; // the column chosen, −1: the one with the largest weight
  token = null; // {side, index}: the word that acts are about
  second = null; // another word of that text, which it may change places with
  side = null; // the text whose places are shown, see `spot`
  dimension = null; // the number of a place that is chosen
  mix = 1; // from the run before a change, 0, to that after it
  guess = null; // at a covered row, see Stage.paint
  preview = null; // what an act would give that is pointed at: {said, now}
  sent = null; // the selection that the server was told last

  // What is told

  /** Other weights, as bytes. */
  takeRun(bytes) {
    const run = unpack(bytes), before = this.run;
    if (before?.id === run.id) return;
    if (!before || !same(textsOf(before), textsOf(run))) [this.words, this.key, this.token, this.dimension] = [{}, -1, null, null];
    this.run = run;
    const lengths = (of) => textsOf(of).map(({ length }) => length);
    if (run.former && !same(lengths(run.former), lengths(run))) run.former = null;
    this.mix = 1;
    this.covers();
    this.settle();
  }

  /** What may be seen, what is done, what is selected elsewhere. */
  takeLook(look) {
    const before = this.look;
    this.look = look;
    if (!same(before?.veil, look.veil)) [this.vectors, this.told] = [null, {}]; // what was refused may be asked
    this.covers();
    if (!look.focus) return;
    const selected = { focus: look.focus, cell: look.cell };
    // What the server answers to an earlier selection of this browser's must not undo a later one.
    const isNews = before ? !same(selected, this.base) && !same(selected, this.sent) : !this.isPlaced;
    this.base = selected;
    if (isNews) this.obey(selected);
    this.settle();
  }

  /** Selects what was selected elsewhere: by a link, a lesson, another page. */
  obey({ focus, cell }) {
    this.choose(focus);
    this.wanted = cell;
    [this.words, this.token] = [{}, null];
    this.settle();
  }

  /** Makes the selection one of the run's. */
  settle() {
    if (!this.run) return;
    const part = this.part() ?? this.run.parts.at(-1);
    if (this.tile.kind !== part.kind) this.tile = { kind: part.kind, layer: part.layers - 1, head: 0 };
    const { layer, head } = this.tile;
    this.tile = { ...this.tile, layer: within(layer, part.layers), head: within(head, part.heads) };
    const { query = -1, key = -1 } = this.wanted ?? {};
    if (this.wanted && query >= 0) this.words[part.query] = query + this.shift();
    if (this.wanted && query >= 0 && key >= 0) this.key = Math.floor(key / this.sides(part)[1].every);
    this.wanted = null;
    if (this.key >= part.columns) this.key = -1;
    this.settleView();
  }

  /** Covers what a lesson asks for, before anything is drawn. */
  covers() {
    if (!this.run || !this.look) return;
    for (const run of [this.run, this.run.former])
      if (run) cover(run.parts, run.sides, this.look.veil ?? []);
  }

  /** Whether the run may be seen: the server says so of this one, by its id. */
  get isSeen() {
    return Boolean(this.run && this.look && this.look.run === this.run.id);
  }

  /** The page that the stage is the header of; null on its own. */
  get page() {
    return this.look?.page ?? null;
  }

  /** What was said of the run that is seen. */
  get effect() {
    return this.said?.run === this.look?.run ? this.said : null;
  }

  // Where one is

  /** The names of all depths. */
  places() {
    const part = this.part(), key = this.isCovered(part, this.tileOf(part), this.row()) ? "?" : this.keyNames()[this.column()];
    return ["Model", "Heads", this.name(), this.rowNames()[this.row()], key].slice(0, this.deepest + 1);
  }

  /** The place in the address: kind, layer and head as they are counted on the screen, row, key. */
  place() {
    const { tile: { kind, head, layer }, depth, stop, number, view, order } = this;
    const at = [kind, this.part().numbers[layer], head + 1, this.row() + 1];
    if (this.key >= 0) at.push(this.key + 1);
    return { depth: DEPTHS[depth], cell: at.join("."), whole: this.whole ? WHOLES[this.whole] : null,
      heads: order ? ORDERS[order] : null, view: view ? VIEWS[view] : null,
      stop: depth === ROW && stop ? STOPS[stop] : null, number: number ? NUMBERS[number] : null,
      write: this.write < 0 ? null : WRITES[this.write], scaling: this.isScaled ? null : "off" };
  }

  /** Goes where an address leads; the cell waits for the run. */
  takePlace({ depth, cell, whole, heads, view, stop, number, write, scaling, without }) {
    const found = DEPTHS.indexOf(depth);
    if (found >= 0) this.depth = found;
    else if (stop) this.depth = ROW; // of the page that had one row alone
    this.whole = Math.max(0, WHOLES.indexOf(whole));
    this.order = Math.max(0, ORDERS.indexOf(heads));
    this.view = Math.max(0, VIEWS.indexOf(view));
    this.stop = Math.max(0, STOPS.indexOf(stop === "exp" ? "weights" : stop));
    this.number = Math.max(0, NUMBERS.indexOf(number));
    this.write = WRITES.indexOf(write);
    this.isScaled = scaling !== "off" && without !== "scaling";
    const [, kind, layer, head, row, key] = /^(\w+)\.(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(cell ?? "") ?? [];
    this.asked = kind ? { kind, number: +layer, head: head - 1, row: row - 1, key: key - 1 } : null;
    this.isPlaced = Boolean(this.asked);
  }

  /** Selects what the address asked for, once there is a run. */
  goThere() {
    const { asked, run } = this;
    this.asked = null;
    const part = asked && run.parts.find(({ kind }) => kind === asked.kind);
    const layer = part ? part.numbers.indexOf(asked.number) : -1;
    if (layer < 0 || !(asked.head < part.heads)) return void (this.base && this.obey(this.base));
    this.choose({ kind: asked.kind, layer, head: asked.head });
    if (asked.row < part.rows) this.words[part.query] = this.sides(part)[0].every * asked.row + this.shift();
    this.key = asked.key < part.columns ? asked.key : -1;
  }

  /** What the server hears of the selection, with whatever is done; on another page, where its own picture
   * may have selected something since, nothing. */
  selection() {
    if (this.page) return null;
    const part = this.part(), { every } = this.sides(part)[0];
    const isChosen = part.query in this.words;
    const query = isChosen ? this.row() * every : -1;
    const key = isChosen && this.key >= 0 ? this.key * this.sides(part)[1].every : -1;
    this.sent = { focus: { ...this.tile }, cell: { query, key } };
    return { ...this.tile, query, key };
  }

  // The selected head

  part(kind = this.tile.kind) {
    return this.run.parts.find((part) => part.kind === kind);
  }

  sides(part = this.part()) {
    return [this.run.sides[part.query], this.run.sides[part.key]];
  }

  tileOf(part, { layer, head } = this.tile) {
    return layer * part.heads + head;
  }

  /** How far the word that the selected head follows stands behind the one that its rows read. */
  shift(part = this.part(), tile = this.tileOf(part)) {
    const isAsked = this.look?.reads || this.look?.veil?.some(({ what }) => what === "next tokens" || what === "decoding");
    return isAsked ? 0 : shiftOf(part, this.run.sides, tile);
  }

  /** The selected row: of the word chosen, or else one that tells much. */
  row() {
    const part = this.part(), word = this.words[part.query];
    if (word === undefined) return this.telling(part);
    return within(Math.floor((word - this.shift()) / this.sides(part)[0].every), part.rows);
  }

  chooseRow(row) {
    const part = this.part();
    this.words[part.query] = within(row, part.rows) * this.sides(part)[0].every + this.shift();
    [this.key, this.second] = [-1, null];
  }

  choose(tile) {
    [this.tile, this.key, this.second, this.vectors] = [tile, -1, null, null];
    this.settleView();
  }

  /** Only some kinds have heads that align best, and only a server has PyTorch: of a model without a twin there,
   * an address alone leads to that view, which says so. */
  get views() {
    const { twin, veil } = this.look, isAsked = this.view === PYTORCH;
    return VIEWS.filter((_, at) => at < 2 || (at === PYTORCH ? (twin || (isAsked && twin === false)) && !veil?.length : this.bestTiles().length));
  }

  settleView() {
    if (this.run && this.look && !this.views.includes(VIEWS[this.view])) this.view = 0;
  }

  /** Whether PyTorch has nothing to stand beside the selected head. */
  get isAlone() {
    return this.beside === null || Boolean(this.beside?.cannot);
  }

  /** Whether the selected head stands beside the one of PyTorch. */
  get isBeside() {
    return this.depth === HEAD && this.view === PYTORCH && !this.isWriting;
  }

  /** What gives that one, and how far all heads are apart. */
  pytorchOf() {
    return { what: "pytorch", ...this.tile };
  }

  /** What was found of it; while that is on its way, how far all heads are apart, if another one told. */
  get beside() {
    const own = this.answered(this.pytorchOf()), known = Object.values(this.told).find((one) => one?.differences);
    return own === undefined && known ? { differences: known.differences, logits: known.logits } : own;
  }

  /** What may be done about the causal mask, where the selected head has one: `mask`, "" where it has none. */
  get masks() {
    const { cards } = this.look, part = this.part();
    if (!cards || !("causal" in cards) || part.query !== part.key || part.query !== this.run.answers?.side) return { mask: "" };
    return { mask: cards.causal ? "mask later tokens again" : this.hasMask ? "let the decoder see later tokens" : "" };
  }

  /** Whether the mask forbids any cell of the selected head, as far as they may be seen. */
  get hasMask() {
    const part = this.part(), [from] = this.bytesOf(part), tile = this.tileOf(part), wide = part.columns;
    return [...Array(part.rows).keys()].some((row) => !this.isCovered(part, tile, row)
      && part.cells.subarray(from + row * wide, from + (row + 1) * wide).includes(0));
  }

  /** The head of the selected one's kind that gives the chosen key most in the row of the same word, and its
   * weight there. */
  linking() {
    const part = this.part(), own = this.row() + this.shift();
    const weights = Array.from({ length: part.layers * part.heads }, (_, tile) => {
      const row = own - this.shift(part, tile);
      return row >= 0 && row < part.rows && !this.isCovered(part, tile, row) ? this.weight(part, tile, row, this.key) : 0;
    });
    const best = weights.indexOf(Math.max(...weights));
    return { place: { kind: part.kind, layer: Math.floor(best / part.heads), head: best % part.heads }, weight: weights[best], count: weights.length };
  }

  /** Of the two chosen words of one text, the head that gives one of them most in a row of the other: its `place`,
   * the `row` and the `column`, the `weight`, `from` and `to`; null where no head has both. */
  linkingWords() {
    const { token: { side, index }, second } = this, found = [];
    for (const part of this.run.parts.filter(({ query, key }) => query === side && key === side))
      for (let tile = 0; tile < part.layers * part.heads; tile++)
        for (const [from, to] of [[index, second], [second, index]]) {
          const [{ every, labels }] = this.sides(part), row = Math.floor((from - this.shift(part, tile)) / every), column = Math.floor(to / every);
          if (row < 0 || row >= part.rows || this.isCovered(part, tile, row)) continue;
          const place = { kind: part.kind, layer: Math.floor(tile / part.heads), head: tile % part.heads };
          found.push({ place, row, column, weight: this.weight(part, tile, row, column), from: labels[from], to: labels[to] });
        }
    return found.toSorted((a, b) => b.weight - a.weight)[0] ?? null;
  }

  /** The row that is selected until one is chosen: over the same head and texts it stays. */
  telling(part) {
    const place = JSON.stringify([this.tile, textsOf(this.run)]);
    const { points_at: points } = this.look ?? {};
    if (points?.side === part.query) return within(points.index, part.rows);
    if (this.opening?.place !== place) this.opening = { place, row: this.clearestRow(part) };
    return this.opening.row;
  }

  /** The row of a word that attends to one word far from its own place, as most_telling_row has it
   * (model/analysis/head_metrics.py); else the second. */
  clearestRow(part) {
    const [query, key] = this.sides(part), tile = this.tileOf(part), shift = this.shift();
    let [best, most] = [within(1, part.rows), 0];
    if (part.veil?.length) return best;
    for (let row = 0; row + shift < part.rows; row++) {
      if (!isWord(query.labels[(row + shift) * query.every])) continue;
      const weights = weightsOf(part, tile, row), column = weights.indexOf(Math.max(...weights));
      const far = Math.abs(row / part.rows - column / part.columns);
      const tells = weights[column] ** 3 * (0.1 + far) * (isWord(key.labels[column * key.every]) ? 1 : 0.1);
      if (tells > most) [best, most] = [row, tells];
    }
    return best;
  }

  // Weights

  byteAt(part, tile, row, column) {
    return part.cells[(tile * part.rows + row) * part.columns + column];
  }

  /** Where the bytes of the selected head begin and end. */
  bytesOf(part) {
    const size = part.rows * part.columns, tile = this.tileOf(part);
    return [tile * size, (tile + 1) * size];
  }

  formerOf(part) {
    return this.run.former?.parts.find(({ kind }) => kind === part.kind) ?? null;
  }

  /** A weight as it is seen, between before and after a change. */
  weight(part, tile, row, column) {
    const now = weightOf(this.byteAt(part, tile, row, column));
    const former = this.mix < 1 ? this.formerOf(part) : null;
    if (!former) return now;
    const before = weightOf(this.byteAt(former, tile, row, column));
    return before + (now - before) * this.mix;
  }

  /** What a weight was and is, where a change moved it; null else. */
  moved(part, tile, row, column) {
    const former = this.mix > 0.5 ? this.formerOf(part) : null;
    if (!former) return null;
    const [was, is] = [former, part].map((each) => weightOf(this.byteAt(each, tile, row, column)));
    const wasMasked = !this.byteAt(former, tile, row, column);
    return Math.abs(is - was) >= MOVED ? [was, is, wasMasked] : null;
  }

  isMasked(part, tile, row, column) {
    const seen = this.mix < 0.5 ? this.formerOf(part) ?? part : part;
    return !this.byteAt(seen, tile, row, column);
  }

  isCovered(part, tile, row) {
    return isCovered(part, tile, row);
  }

  /** Whether the selected row is covered, and guessed at. */
  isGuessed() {
    const part = this.part(), tile = this.tileOf(part), row = this.row();
    return this.guess?.shares.length === part.columns && this.isCovered(part, tile, row);
  }

  isOff({ kind, layer, head }) {
    return this.mix > 0.5 && Boolean(this.look.off?.[kind]?.includes(layer * this.part(kind).heads + head));
  }

  /** The tiles of a part that align best together, where that is known. */
  bestTiles(part = this.part()) {
    const { best } = this.look;
    const isWhole = best?.kind === part.kind && hasFollowing(this.sides(part)[0]) && !part.veil?.length;
    return isWhole ? best.heads.map(([layer, head]) => layer * part.heads + head) : [];
  }

  /** The lines of the selected head; or of the mean over the heads that align best, row by row by the
   * word about to be written, which some follow one row later: { names, weight(row, column), own }. */
  linesOf(view) {
    const part = this.part(), own = this.tileOf(part);
    if (view < 2) {
      const weight = (row, column) => (this.isMasked(part, own, row, column) || this.isCovered(part, own, row) ? 0
        : this.weight(part, own, row, column));
      return { names: this.rowNames(), weight, own: this.row() };
    }
    const tiles = this.bestTiles(part).map((tile) => [tile, 1 - this.shift(part, tile)]);
    const weight = (row, column) => {
      const known = tiles.filter(([, later]) => row + later < part.rows);
      return known.reduce((sum, [tile, later]) => sum + this.weight(part, tile, row + later, column), 0) / (known.length || 1);
    };
    return { names: this.sides(part)[0].following, weight, own: this.row() - (1 - this.shift()) };
  }

  /** The weights of a row of the selected head. */
  weights(row = this.row()) {
    const part = this.part(), tile = this.tileOf(part);
    return Array.from({ length: part.columns }, (_, column) => this.weight(part, tile, row, column));
  }

  /** The column with the largest weight of a row. */
  best(row = this.row()) {
    const weights = this.weights(row);
    return weights.indexOf(Math.max(...weights));
  }

  /** The column that is selected. */
  column() {
    return this.key >= 0 ? this.key : this.best();
  }

  // Names

  /** A head in short, as changes name it: “cross 3.3”. */
  name({ kind, layer, head } = this.tile) {
    return `${kind.replaceAll("_", " ")} ${this.part(kind).numbers[layer]}.${head + 1}`;
  }

  get count() {
    return this.run.parts.reduce((sum, { layers, heads }) => sum + layers * heads, 0);
  }

  keyNames(part = this.part()) {
    const { labels, every } = this.sides(part)[1];
    return Array.from({ length: part.columns }, (_, at) => labels[at * every]);
  }

  /** Each row by the word that the head follows. */
  rowNames(part = this.part(), tile = this.tileOf(part)) {
    const { labels, following, every } = this.sides(part)[0];
    const names = this.shift(part, tile) ? following : labels;
    return Array.from({ length: part.rows }, (_, at) => names[at * every]);
  }

  /** What the rows are: of a text that is predicted, which of their two words stands there. */
  rowsAre(part = this.part()) {
    return !hasFollowing(this.sides(part)[0]) ? "" : this.shift() ? "about to write" : "just read";
  }

  /** Both words that a row stands for; null where it has one. */
  moment(row = this.row()) {
    const [{ labels, following }] = this.sides();
    return this.shift() ? [labels[row], following[row]] : null;
  }

  /** Whether weights are shown: of a row only from the stop on at which they are made. */
  get isWeighed() {
    return this.depth !== ROW || this.stop > 1 || this.isBare;
  }

  /** Whether all rows spread their weight almost evenly, as with random weights. */
  isEven(part = this.part()) {
    const tile = this.tileOf(part);
    const rows = [...Array(part.rows).keys()].filter((row) => visibleKeys(part, tile, row) > EVEN);
    return rows.length > 0 && rows.every((row) =>
      Math.max(...weightsOf(part, tile, row)) * visibleKeys(part, tile, row) <= EVEN);
  }

  /** The most probable next tokens at the selected row: [text, share], or of the whole text. */
  answers() {
    const { answers } = this.run;
    if (!answers || this.look.veil?.length) return null;
    if (answers.rows.length === 1) return answers.rows[0];
    return this.part().query === answers.side ? answers.rows[this.row()] ?? null : null;
  }

  // From a row to the word that it writes

  /** The row of the predictions that the selected row writes to; −1 where there is none. */
  writing() {
    const { answers } = this.run, part = this.part(), row = this.row() * this.sides(part)[0].every;
    const isWritten = answers?.side === part.query && row < answers.rows.length && answers.rows.length > 1;
    return isWritten && !this.isBare && !this.look.alone && !this.look.veil?.length ? row : -1;
  }

  /** The stops that the selected row has. */
  get stops() {
    return this.writing() < 0 ? STOPS.slice(0, WORD) : STOPS;
  }

  /** The stop that is shown. */
  get stopped() {
    return Math.min(this.stop, this.stops.length - 1);
  }

  get isAdding() {
    return this.depth === ROW && this.stopped === WORD;
  }

  /** What gives the parts that add up to the logit of the word. */
  addsOf() {
    return { what: "adds", row: this.writing() };
  }

  /** What gives the part of each key in what the selected head adds to that logit; null where it adds nothing. */
  carriesOf() {
    const isMixing = this.depth === ROW && this.stopped === MIX && this.writing() >= 0 && this.isScaled;
    return isMixing ? { what: "carries", ...this.tile, row: this.writing() } : null;
  }

  // The model

  /** The views of the model that there are: some need predictions; paths a sentence to compare with; the input
   * of layer 1 is one of the places, where they add something. */
  get wholes() {
    const { lacks, veil, compared } = this.look, { answers } = this.run;
    if (lacks || veil?.length) return WHOLES.slice(0, 1);
    const hasInput = this.whole >= PLACES && this.answered(this.placesOf())?.embedded;
    return WHOLES.filter((_, at) => [true, answers, answers, answers && compared, true, hasInput][at]);
  }

  /** The view of the model that is shown. */
  get seen() {
    const { wholes, whole } = this;
    return wholes.includes(WHOLES[whole]) ? whole : whole === INPUT && wholes.includes(WHOLES[PLACES]) ? PLACES : 0;
  }

  get isPlaces() {
    return this.depth === MODEL && this.seen >= PLACES;
  }

  /** The word whose place is selected, {side, index}: that which acts are about, or else one of the text that was
   * chosen last, or of the selected head's rows. */
  spot() {
    if (this.token) return this.token;
    const part = this.part(), { sides } = this.run, side = this.side in sides ? this.side : part.query;
    const own = side === part.query ? this.row() * sides[side].every + this.shift() : 0;
    return { side, index: within(this.words[side] ?? own, sides[side].labels.length) };
  }

  chooseSpot(side, index) {
    [this.side, this.key] = [side, -1];
    this.words[side] = within(index, this.run.sides[side].labels.length);
  }

  /** What gives what the places around the selected one add. */
  placesOf() {
    const { side, index } = this.spot(), last = Math.max(0, this.run.sides[side].labels.length - MOST_PLACES);
    return { what: "positions", side, from: Math.min(last, index - (index % MOST_PLACES)) };
  }

  /** Whether the model is shown as a figure, in which heads stand. */
  get isFigure() {
    return this.depth === MODEL && (!this.seen || this.seen === PATHS);
  }

  /** What gives the paths, or how many of them have been measured since. */
  pathsOf() {
    const { compared } = this.look;
    return { what: "paths", compared, measured: this.told[compared] ?? 0 };
  }

  /** How far the selected word of the predicted text stands behind the row that is meant: a translation is
   * seen as what is written, whichever word the selected head follows. */
  get ahead() {
    const { answers: { side }, sides } = this.run, isOwn = this.part().query === side;
    if (!hasFollowing(sides[side])) return 0;
    return Object.keys(sides).length > 1 || !isOwn ? 1 : this.shift();
  }

  /** The row of the predictions that is selected: of the selected word, or the last. */
  answerRow() {
    const { answers: { rows, side, last } } = this.run, isOwn = this.part().query === side;
    if (rows.length === 1) return 0;
    const word = this.words[side] ?? (isOwn ? this.row() * this.run.sides[side].every + this.shift() : last + this.ahead);
    return within(word - this.ahead, rows.length);
  }

  chooseAnswer(row) {
    const { answers: { rows, side } } = this.run;
    if (rows.length > 1) this.words[side] = within(row, rows.length) + this.ahead;
    this.key = -1;
  }

  /** The most probable answers in the selected row of the predictions. */
  answersAt() {
    return this.run.answers && !this.look.veil?.length ? this.run.answers.rows[this.answerRow()] : null;
  }

  /** Whether of the selected head nothing is known but its weights: of a recording, or in a file that has the
   * numbers of other heads. */
  get isBare() {
    const { lacks, alone } = this.look, { kind, layer, head } = this.tile;
    return Boolean(lacks || (alone && !alone.known.some((one) => one.kind === kind && one.layer === layer && one.head === head)));
  }

  /** The deepest place: while a question covers something, nothing is told of what weights are made of. */
  get deepest() {
    if (this.look?.veil?.length) return HEAD;
    return this.look && this.isBare ? ROW : NUMBER;
  }

  /** The place that is not deep at all: a file shows heads alone. */
  get shallowest() {
    return this.look?.alone ? HEADS : MODEL;
  }

  /** The orders of the heads, and the views of a number, that there are. */
  get orders() {
    return this.look.alone ? [] : ORDERS;
  }

  get numbers() {
    return this.look.alone ? NUMBERS.slice(0, WHY) : NUMBERS;
  }

  /** What gives the queries and keys of the selected head. */
  vectorsOf() {
    return { what: "vectors", ...this.tile };
  }

  /** What gives the reasons of the selected weight. */
  whyOf() {
    const [queries, keys] = this.sides();
    return { what: "why", ...this.tile, layer: this.part().numbers[this.tile.layer] - 1, query: this.row() * queries.every, key: this.column() * keys.every };
  }

  // What the model writes

  /** Whether that is shown. */
  get isWriting() {
    return this.write >= 0 && Boolean(this.look?.write);
  }

  /** What gives it. */
  writeOf() {
    return { what: "write", how: WRITES[this.write], ...this.look.write };
  }

  /** What the view of the model asks the server, and the numbers; null where nothing is asked. */
  question() {
    if (this.isWriting) return this.writeOf();
    if (this.depth === NUMBER) return this.number === WHY ? this.whyOf() : this.vectorsOf();
    if (this.isAdding) return this.addsOf();
    if (this.isBeside) return this.pytorchOf();
    if (this.depth === ROW) return this.carriesOf();
    if (this.depth !== MODEL) return null;
    return [null, { what: "after" }, this.needed(), this.pathsOf()][this.seen] ?? (this.seen ? this.placesOf() : null);
  }

  needed() {
    return this.run.answers ? { what: "needs", row: this.answerRow() } : null;
  }

  /** What the server said to a question: undefined until then, null where it knows nothing. */
  answered(question) {
    return this.told[JSON.stringify(question)];
  }

  headsOf(kind) {
    const { layers, heads } = this.part(kind);
    return layers * heads;
  }

  /** The column to which the selected head attends most from the selected row, and the tiles of its kind
   * that do so, too. */
  agreeing() {
    const part = this.part(), row = this.row(), column = this.best(row), { columns } = part;
    const best = (tile) => {
      const weights = Array.from({ length: columns }, (_, at) => this.weight(part, tile, row, at));
      return weights.indexOf(Math.max(...weights));
    };
    const tiles = [...Array(this.headsOf(part.kind)).keys()].filter((tile) => !this.isCovered(part, tile, row));
    return { column, agreeing: tiles.filter((tile) => best(tile) === column), count: tiles.length };
  }

  // Acts

  /** The acts that something selected allows, each with its key: {key, name, act, isDone}. */
  acts() {
    const { look, token, tile } = this, { cards, hidden = {} } = look;
    if (!cards) return [];
    const [first] = Object.keys(this.run.sides), found = [];
    if (token) {
      const isHidden = Boolean(hidden[token.side]?.includes(token.index));
      found.push({ key: "h", name: isHidden ? "Show" : "Hide", act: { what: "hide", ...token }, isDone: isHidden });
      if ("swap" in cards && (cards.swap || token.side === first))
        found.push({ key: "w", name: cards.swap ? "Word back" : "Another word", act: { what: "swap", index: token.index }, isDone: cards.swap });
    }
    if (token?.side === first && this.second !== null && cards.swap === false)
      found.push({ key: "s", name: `Swap with “${this.run.sides[first].labels[this.second]}”`, act: { what: "exchange", index: token.index, beside: this.second }, isDone: false });
    if (token?.side === this.part().key && this.depth >= HEAD)
      found.push({ key: "e", name: `Hide from ${this.name()}`, act: { what: "hide", ...token, head: { ...tile } }, isDone: false });
    const isOff = this.isOff(tile);
    found.push({ key: "o", name: isOff ? "on" : "off", act: { what: "off", ...tile }, isDone: isOff });
    if ("causal" in cards) found.push({ key: "k", name: "Let it peek", act: { what: "causal" }, isDone: cards.causal });
    if ("positions" in cards) found.push({ key: "n", name: "Without positions", act: { what: "positions" }, isDone: cards.positions });
    found.push({ key: "t", name: "Blur: ÷ 4", act: { what: "temperature" }, isDone: cards.temperature });
    return [...found, ...this.actsOnCell()];
  }

  /** Masking the selected cell, and more or less weight for it. */
  actsOnCell() {
    const part = this.part(), isWhole = this.sides(part).every(({ every }) => every === 1);
    if (!isWhole || this.depth !== HEAD) return [];
    const [row, column, tile] = [this.row(), this.column(), this.tileOf(part)], byte = this.byteAt(part, tile, row, column);
    if (this.isCovered(part, tile, row)) return [];
    const cell = { ...this.tile, row, column };
    const by = (step) => Math.round(100 * Math.max(0, Math.min(1, weightOf(byte) + step))) / 100;
    const weighs = [["+", STEP], ["-", -STEP]].map(([key, step]) =>
      ({ key, name: key === "+" ? "more" : "less", act: { what: "weigh", ...cell, weight: by(step) } }));
    return [{ key: "m", name: byte ? "mask" : "allow", act: { what: "paint", ...cell, allow: !byte, scope: "head" } },
      ...(byte ? weighs : [])];
  }
}
