// All heads at once: for each kind of attention a canvas of tiles, and the text that they read.

import { pixelColours, ramp, stopsOf } from "../shared/colours.js";
import { element, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import {
  cellUnder, cross, hatching, pixelSheet, pointIn, sized, veiled, writeTurned,
} from "../shared/heatmap.js";
import { moment, shortName } from "../shared/names.js";
import { minus, percent, signedPercent } from "../shared/numbers.js";
import { weightOf } from "../shared/weights.js";
import {
  averaged, cellOf, cover, holds, isCovered, isFaded, joint, links, meanWeights, neighbour, paintTiles, placeOf, placesOf, rowOf,
  rowsOf, select, shiftOf, tileAt, unpack, valueOf, visibleKeys,
} from "./cells.js";
import { SelectedHead } from "./selected.js";

const REST = 150; // ms without a key before the server hears of it
const PATIENCE = 5000; // ms in which the server's answer to a selection comes, or is lost
const LEAST_TILE = 56; // px; where they would be smaller, kinds are stacked instead
const WIDE = 700; // px; a narrower frame has the selected head below the tiles
const LOWEST_STACKED = 8; // px of a tile, where all kinds stand above each other beside the head
const APART = 6; // px between kinds above each other
const LARGEST_TILE = 18; // in letters
const HIGHEST = 0.42; // of the window, for all layers together
const LOWEST_TILE = 44; // px; where all layers would be in view only with lower ones, they are not
const MANY_LAYERS = 9; // so many stand in several columns, where that brings all into view
const LOWEST_FOLDED = 20; // px of their tiles
const TITLE = 1.8; // of a kind of attention, in letters
const GAP = 4;
const CORNER = 12; // px
const SCOPES = ["head", "layer", "kind"]; // of what is done to the selected head
const SPECIAL = /^(<.+>|\[.+\])$/; // tokens that are no words
const EVEN = 2; // times the weight of an even row, at most, where all count as even
const WORD = /[\p{L}\p{N}]/u; // what a word has
const COVERED = " is covered until you answer";
const LEAST_NAMED = 0.005; // smaller weights would be “<1%”
const SMALLER = [1.1, 1.02, 0.95, 0.88, 0.82]; // em, of a finding that does not fit
const FADED = 0.15; // how much is left of a head that a filter leaves out

/** A token as part of a sentence: punctuation, which italics hardly change, in quotes too. */
const quoted = (text) => element("em", {}, WORD.test(text) ? text : `“${text}”`);

/** Marks the upper right corner of a tile whose head is changed otherwise. */
function corner(context, colour, x, y) {
  context.save();
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x - CORNER, y);
  context.lineTo(x, y);
  context.lineTo(x, y + CORNER);
  context.fill();
  context.restore();
}

export class Grid {
  data = null; // what unpack() gave
  look = null; // what the small mount gave
  // A cell {row, column, tile: {kind, layer, head}}, or {tokens, to}, see select(); a token is
  // {side, index}. What is pinned stays while nothing is pointed at.
  pointed = null;
  pinned = null;
  rest = 0;
  answering = false; // what an act did is said, until something else is pointed at
  known = new Set(); // cells that the server has named or heard of since the page was opened
  latest = null; // of them
  scope = "head"; // or its whole "layer" or "kind", for what is done to it
  canvases = {}; // kind → what its tiles are drawn on, and above it what is pointed at
  count = 0; // of the selections made here; the server says which it has heard of
  report = () => {};
  reportCell = () => {};
  act = null; // hears what is done to a head, a token or a cell
  painting = null; // the guess at a covered row: {shares, weights, weigh(column, weight)}

  /** `large`: with the selected head in full beside its tile. */
  constructor(large = false) {
    this.large = large;
    // Keys for what is done to the selected head work before anything was clicked.
    document.addEventListener("keydown", (event) => {
      const isFree = event.target === document.body && this.frame?.isConnected && this.drawn?.length;
      if (!isFree || event.altKey || event.ctrlKey || event.metaKey) return;
      if (!this.actByKey(event)) return;
      event.preventDefault();
      this.point();
    });
  }

  mount(root) {
    if (this.root === root) return;
    this.frame?.remove(); // the place before may be there for a moment more
    this.root = root;
    this.answersRoot = null;
    this.known.clear();
    this.text = element("div", { class: "text" });
    this.hider = element("button", { type: "button", class: "act" });
    this.hider.onclick = () => this.act({ what: "hide", ...this.token() });
    this.hiderHere = element("button", { type: "button", class: "act" });
    this.hiderHere.onclick = () => this.hideHere();
    this.message = element("p", { class: "message", "aria-hidden": "true" });
    this.live = element("p", { class: "live", role: "status" });
    this.sections = element("div", { class: "sections" });
    this.stage = element("div", {
      class: "stage", tabindex: "0", role: "application",
      "aria-label": "All heads. Arrow keys select a head; Shift and arrow keys move from " +
        "cell to cell, Home to the first cell. O switches the head off or on, H hides the " +
        "selected token, Shift and H hides it from the selected head alone. M masks the " +
        "selected cell, plus and minus change its weight. L makes O and M apply to the whole " +
        "layer, then to all layers. A sentence describes the selection.",
    }, this.sections);
    this.aside = element("div", { class: "selected" });
    this.both = element("div", { class: "both" }, this.stage, this.aside);
    const saying = element("div", { class: "saying" }, this.message, this.hider, this.hiderHere);
    this.frame = element("div", { class: "frame" }, saying, this.text, this.both, this.live);
    this.selected = this.large ? new SelectedHead(this, this.aside) : null;
    root.append(this.frame);
    this.stage.onkeydown = (event) => this.key(event);
    this.stage.onpointermove = (event) => this.hoverTile(this.cellAt(event));
    this.stage.onpointerleave = () => this.hoverTile(null);
    this.stage.onclick = (event) => this.click(event);
    this.text.onpointermove = (event) => this.hover(this.tokenAt(event));
    this.text.onpointerleave = () => this.hover(null);
    this.text.onclick = (event) => {
      const token = this.tokenAt(event)?.tokens[0];
      const extend = event.shiftKey || event.ctrlKey || event.metaKey;
      if (!token) return;
      this.setPin(select(this.pinned, token, extend));
      this.stage.focus({ preventScroll: true }); // keys act on what was selected
    };
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => {
      const isMoved = Math.abs(roomBelow(this.both) - this.below) > 1; // something above has grown
      if (isMoved || Math.abs(this.frame.clientWidth - this.frameWidth) > 1) this.draw();
    });
    for (const node of outwards(this.frame)) this.observer.observe(node);
    onRecolour(this.frame, () => this.draw());
    this.textOf = null; // a new place on the page, after another page was shown
    this.draw();
  }

  setWeights(bytes) {
    const data = unpack(bytes);
    if (this.data?.id === data.id) return;
    const texts = ({ sides }) => JSON.stringify(Object.values(sides).map((side) => side.labels));
    // After a change of the model one goes on where one was.
    const isNew = !this.data || texts(this.data) !== texts(data);
    const isLost = isNew && this.pinned;
    if (isNew) this.pointed = this.pinned = this.told = null;
    this.data = data;
    this.asked = null; // for the weight of a cell
    if (this.look && !this.part(this.look.focus.kind)) {
      clearTimeout(this.rest); // the head that a key chose is not in this model
      this.rest = 0;
    }
    this.draw();
    if (isLost && this.look) this.setPin(null);
  }

  setLook(look) {
    if (look === this.given) return;
    const before = this.look;
    this.given = look;
    if (look.session !== this.session) [this.session, this.count] = [look.session, 0];
    // What the server answers to an earlier selection must not undo a later one.
    const late = look.heard < this.count && performance.now() - this.when < PATIENCE;
    if (late && before) look = { ...look, focus: before.focus };
    this.look = look;
    const said = [look, before].map((l) => JSON.stringify(l?.said ?? []));
    if (said[0] !== said[1]) this.answering = look.said.length > 0;
    this.restore();
    const rest = (l) => JSON.stringify({ ...l, focus: null, heard: null, cell: null });
    if (this.drawn && before && rest(before) === rest(look)) this.point();
    else this.draw();
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
    if (row < 0 || row >= part.rows || column >= part.columns) return;
    this.pinned = (column < 0 && this.rowAsWord(part, query)) ||
      this.cell(part, focus.layer * part.heads + focus.head, row, Math.max(0, column));
  }

  /** The word of the text that labels the row of a query in the selected head; null where it is not in
   * the text: the last row predicts the end. */
  rowAsWord(part, query) {
    const index = query + this.shift(part, averaged(part, this.look));
    return index < this.data.sides[part.query].labels.length ? { tokens: [{ side: part.query, index }], to: [] } : null;
  }

  /** Puts the predictions and the tools into another place of the page. */
  placeAnswers(root) {
    if (!this.selected || root === this.answersRoot) return;
    this.answersRoot = root;
    this.selected.moveTo(root);
    this.frame.classList.add("placed");
    this.selected.shown = null; // its title is gone, so there is more room
    this.point();
  }

  /** A row that a lesson asks for can be painted into the selected head. */
  setPainting(painting) {
    if (painting === this.painting) return;
    this.painting = painting;
    this.point();
  }

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

  // Drawing

  draw() {
    this.drawn = null;
    this.frameWidth = this.frame?.clientWidth;
    if (!this.frameWidth) return; // hidden, or on no page
    if (!this.root || !this.data || !this.look) return;
    // The weights of another model come before its look, whose focus may be of a kind it lacks.
    if (!this.part(this.look.focus.kind)) return;
    this.cover();
    const style = getComputedStyle(this.frame);
    this.font = parseFloat(style.fontSize);
    this.ink = style.color;
    this.palette = stopsOf(this.look.palette, this.ink);
    this.family = style.fontFamily;
    this.wide = this.large && this.frameWidth >= WIDE;
    this.frame.classList.toggle("wide", this.wide);
    this.isPresented = Boolean(style.getPropertyValue("--hl-present"));
    this.width = this.stage.clientWidth;
    this.hatching = hatching(this.ink);
    this.frame.style.setProperty("--hl-focus", this.look.colour);
    this.words();
    this.change();
    this.below = roomBelow(this.both);
    const parts = this.shown();
    this.drawn = [];
    if (!parts.length) return this.sections.replaceChildren("Nothing is left to show with these display settings.");
    const ordered = parts.every((part) => part.kind in this.look.order);
    const left = (ordered ? 0.2 : this.wide ? 1 : 1.35) * this.font;
    if (this.wide) {
      const height = this.stackedHeight(parts, ordered);
      this.drawn = parts.map((part) => this.section(part, this.width - 2, left, height));
      return this.show();
    }
    const fits = (count) =>
      (this.width / count - left) / parts[0].heads - GAP >= LEAST_TILE;
    let beside = parts.length;
    while (beside > 1 && !fits(beside)) beside--;
    const inOneRow = getComputedStyle(this.sections).flexWrap === "nowrap";
    const next = inOneRow && parts.length > beside ? 1.5 * this.font : 0; // it shows its edge
    const room = (this.width - (beside - 1) * this.font) / beside - 1 - next;
    this.drawn = parts.map((part) => this.section(part, room, left));
    this.show();
  }

  /** Covers what a lesson asks for, before anything is drawn. */
  cover() {
    const veil = this.look.veil ?? [];
    const asked = JSON.stringify(veil);
    if (this.coveredOf?.[0] === this.data && this.coveredOf[1] === asked) return;
    if (this.coveredOf?.[1] !== asked) this.told = null;
    this.coveredOf = [this.data, asked];
    cover(this.data.parts, this.data.sides, veil);
    this.data.joint = undefined; // made of the cells
  }

  /** The height that all tiles have where kinds stand above each other and all are in view. */
  stackedHeight(parts, ordered) {
    const rows = parts.reduce((sum, { layers }) => sum + layers, 0);
    const above = this.titled() + (ordered ? 0 : 0.95 * this.font) + APART;
    const each = GAP + (ordered ? 1.25 * this.font : 0);
    return Math.max(LOWEST_STACKED, (this.below - 12 - parts.length * above) / rows - each);
  }

  /** The height of the title of a kind. */
  titled() {
    return (this.wide ? 1.4 : TITLE) * this.font;
  }

  show() {
    this.sections.replaceChildren(...this.drawn.map((section) => section.box));
    this.reveal();
    this.point();
    requestAnimationFrame(() => painted("grid", this.data.id));
  }

  /** Where the kinds stand in a row that scrolls, shows the one of the selected head. */
  reveal() {
    const section = this.drawn.find(({ part }) => holds(part, this.look.focus.kind));
    if (!section) return;
    const [box, stage] = [section.box, this.stage].map((node) => node.getBoundingClientRect());
    this.stage.scrollLeft += box.left - stage.left;
  }

  /** The tiles of a kind; `stacked` is their height where all kinds stand above each other. */
  section(part, room, left, stacked) {
    const { font } = this;
    const order = this.look.order[part.kind];
    const { layers, heads } = part;
    const top = order ? 0 : (stacked ? 0.95 : 1.5) * font;
    const above = order ? 1.25 * font : 0; // a line of its own over every tile
    const ratio = Math.min(1.6, Math.max(0.6, part.rows / part.columns));
    const fitting = (rows) => (this.below - this.titled() - top) / rows - GAP - above;
    const widest = (folds) => (room / folds - left) / heads - GAP;
    const folds = order || stacked ? 1 : this.folds(layers, (count) =>
      Math.min(widest(count), fitting(Math.ceil(layers / count)) / ratio));
    const tall = Math.ceil(layers / folds);
    const highest = Math.min(folds === 1 && fitting(tall) < LOWEST_TILE ? Infinity : fitting(tall),
      Math.max(LEAST_TILE, (HIGHEST * window.innerHeight) / tall));
    const largest = Math.min(LARGEST_TILE * font, this.large ? highest / ratio : Infinity);
    const width = Math.min(widest(folds), stacked ? Infinity : largest);
    const height = Math.min(width * ratio, stacked ?? Infinity);
    const section = { part, left, top: top + above, width, height, order, above, tall };
    section.stepX = width + GAP;
    section.stepY = height + GAP + above;
    section.foldX = left + heads * section.stepX;
    const fullWidth = Math.ceil(folds * section.foldX);
    const fullHeight = Math.ceil(section.top + tall * section.stepY);
    // The same ones each time: to give new ones their memory takes longer than to draw on them.
    this.canvases[part.kind] ??= [0, 1].map(() => element("canvas", { "aria-hidden": "true" }));
    const [base, over] = this.canvases[part.kind].map((canvas) =>
      sized(canvas, fullWidth, fullHeight));
    section.over = over;
    section.box = element("div", { class: "section" },
      element("h3", { title: "Select all its heads" }, Object.assign(element("span", {}, part.name),
        { kind: part.kind })),
      element("div", { class: "canvases" }, base.canvas, over.canvas));
    section.box.lastChild.style.height = `${fullHeight}px`;
    const sheet = this.sheet(part);
    base.font = `${(stacked ? 0.72 : 0.85) * font}px ${this.family}`;
    base.fillStyle = this.ink;
    base.imageSmoothingQuality = "high";
    base.imageSmoothingEnabled = width < part.columns || height < part.rows;
    for (let tile = 0; tile < layers * heads; tile++) {
      const { x, y } = this.corner(section, placeOf(section.order, tile));
      const [layer, head] = [Math.floor(tile / heads), tile % heads];
      base.globalAlpha = isFaded(part, this.look.faded, tile) ? FADED : 1;
      base.fillStyle = this.hatching; // what is masked is no pixel of the sheet
      base.fillRect(x, y, width, height);
      base.fillStyle = this.ink;
      base.drawImage(sheet, head * part.columns, layer * part.rows, part.columns, part.rows,
        x, y, width, height);
      base.globalAlpha = 1;
      for (const { tile: of, first, count } of part.veil ?? [])
        if (of === tile) veiled(base, this.look.colour, x, y + (first * height) / part.rows, width,
          (count * height) / part.rows);
      if (isFaded(part, this.look.off, tile)) cross(base, this.look.colour, x, y, width, height);
      if (isFaded(part, this.look.marked, tile)) corner(base, this.look.colour, x + width, y);
      if (order) {
        const value = order.values[tile];
        const name = `${part.numbers[layer]}·${head + 1}` + (value == null ? "" : `  ${value}`);
        base.textAlign = "left";
        base.fillText(name, x, y - 0.3 * font, width);
      }
    }
    if (!order) {
      base.textAlign = "center";
      const [head1, layer1] = [width, height].map((size) => size >= LOWEST_TILE);
      for (let layer = 0; layer < layers; layer++) {
        const { x, y } = this.corner(section, layer * heads);
        const name = `${layer1 ? "layer " : ""}${part.numbers[layer]}`;
        writeTurned(base, name, x - left + 0.8 * font, y + height / 2, height);
        for (let head = 0; layer % tall === 0 && head < heads; head++)
          base.fillText(head || !head1 ? head + 1 : "head 1", x + head * section.stepX + width / 2,
            (stacked ? 0.7 : 0.95) * font);
      }
    }
    return section;
  }

  /** How many columns the layers stand in: as many as leave the largest tiles, where that brings
   * all of them into view. `size` of a tile by the number of columns. */
  folds(layers, size) {
    if (!this.large || layers < MANY_LAYERS || size(1) >= LOWEST_TILE) return 1;
    let best = 1;
    for (let count = 2; count <= layers; count++) if (size(count) > size(best)) best = count;
    return size(best) < LOWEST_FOLDED ? 1 : best;
  }

  /** Where a place of a section is. */
  corner({ part, left, top, stepX, stepY, foldX, tall }, place) {
    const row = Math.floor(place / part.heads);
    return {
      x: left + Math.floor(row / tall) * foldX + (place % part.heads) * stepX,
      y: top + (row % tall) * stepY,
    };
  }

  /** A point of a section as if all its layers stood in one column. */
  unfolded({ top, tall, stepY, foldX }, [x, y]) {
    const fold = Math.floor(x / foldX);
    const isOnTiles = y >= top && y < top + tall * stepY;
    return [x - fold * foldX, isOnTiles ? y + fold * tall * stepY : -1];
  }

  /** All tiles of a part, one pixel a cell. */
  sheet(part) {
    return pixelSheet(part.layers * part.rows, part.heads * part.columns, (pixels) =>
      paintTiles(pixels, part, this.look, pixelColours(this.palette)));
  }

  /** The text, a span for each token, as it was typed. */
  words() {
    if (this.textOf === this.data) return;
    this.textOf = this.data;
    this.spans = {};
    this.text.replaceChildren();
    for (const [side, { labels, spaced, name, every }] of Object.entries(this.data.sides)) {
      if (!labels.length) continue;
      this.spans[side] = labels.map((label, index) => {
        const span = element("span", { dir: "auto" }, label);
        Object.assign(span, { side, index });
        if (spaced[index]) span.classList.add("spaced");
        return span;
      });
      const spans = this.spans[side].flatMap((span) => [span, element("wbr")]);
      const long = every > 1 ? { class: `${side} long`, tabindex: "0" } : { class: side };
      this.text.append(element("div", long, element("b", {}, name), ...spans));
    }
  }

  // Pointing

  cellAt(event) {
    for (const section of this.drawn ?? []) {
      const { part, width, height, stepX, stepY } = section;
      const [x, y] = pointIn(section.over.canvas, event);
      const { layers, heads } = part;
      const under = cellUnder(...this.unfolded(section, [x, y]), { left: section.left,
        top: section.top, across: stepX, down: stepY, rows: layers, columns: heads });
      if (!under) continue;
      const place = under[0] * heads + under[1];
      const corner = this.corner(section, place);
      const cell = cellUnder(x, y, { left: corner.x, top: corner.y, across: width / part.columns,
        down: height / part.rows, rows: part.rows, columns: part.columns });
      if (!cell) continue; // between two tiles
      return this.cell(part, tileAt(section.order, place), ...cell);
    }
    return null;
  }

  /** A tile selects its head, the label of a layer that layer, the name of a kind all of it. */
  click(event) {
    const tile = this.cellAt(event)?.tile;
    const kind = event.composedPath()[0]?.kind;
    const layer = tile || kind ? null : this.layerAt(event);
    if (tile) {
      this.clicked = JSON.stringify(tile);
      this.pointed = null;
      this.widen("head", tile);
    } else if (this.part(kind)) this.widen("kind", { kind, layer: 0, head: 0 });
    else if (layer) this.widen("layer", layer);
  }

  /** What is done from now on is done to the head of a tile, to its layer or to its kind. */
  widen(scope, tile) {
    this.scope = scope;
    this.choose(tile, 0);
  }

  /** The first head of the layer whose label is under the pointer. */
  layerAt(event) {
    for (const section of this.drawn ?? []) {
      const { part, order, over, left, top, height, stepY } = section;
      const [x, y] = this.unfolded(section, pointIn(over.canvas, event));
      const layer = Math.floor((y - top) / stepY);
      const on = x >= 0 && x < left && layer >= 0 && layer < part.layers && (y - top) % stepY < height;
      if (on && !order && !part.blocks) return { kind: part.kind, layer, head: 0 };
    }
    return null;
  }

  /** Whether what is done to a layer or a kind is done to this tile of its part. */
  inScope(part, tile) {
    const row = Math.floor(tile / part.heads);
    return this.scope === "kind" || row === rowOf(part, this.look.focus);
  }

  cell(part, tile, row, column) {
    return cellOf(part, this.data.sides, tile, row, column);
  }

  tokenAt(event) {
    const { side, index } = event.composedPath()[0] ?? {};
    return side ? { tokens: [{ side, index }], to: [] } : null;
  }

  /** A tile that was clicked is read in large: its cells, as small as they are, are not told until
   * the pointer has left it. */
  hoverTile(cell) {
    if (JSON.stringify(cell?.tile) !== this.clicked) this.clicked = null;
    this.hover(this.clicked ? null : cell);
  }

  hover(pointed) {
    if (pointed && JSON.stringify(pointed) !== JSON.stringify(this.pointed)) this.answering = false;
    this.pointed = pointed;
    this.point();
  }

  pin(pointed) {
    const same = JSON.stringify(pointed) === JSON.stringify(this.pinned);
    this.setPin(same ? null : pointed);
  }

  /** The cell or the query that is pinned is followed on the other pages too; the server hears of
   * it after `rest` ms. */
  setPin(pinned, rest = 0) {
    this.answering = false;
    this.pinned = pinned;
    this.point();
    clearTimeout(this.pinning);
    const cell = this.pinnedCell();
    if (cell.query < 0 && !(this.latest?.query >= 0)) return; // the server knows of none
    this.note(cell);
    this.pinning = setTimeout(() => this.reportCell(cell), rest);
  }

  /** Takes the pin away, where one is seen; whether there was one. */
  letGo() {
    if (!this.pinned || !this.frame.isConnected) return false;
    this.setPin(null);
    return true;
  }

  note(cell) {
    this.latest = cell;
    this.known.add(JSON.stringify(cell));
  }

  /** The row of the selected head that is pinned, and the column of a cell; −1 where none is. */
  pinnedCell() {
    const side = this.part(this.look.focus.kind)?.query; // the weights of another model come first
    const query = this.queries(this.pinned).find((token) => token.side === side)?.index ?? -1;
    return { query, key: query >= 0 && this.pinned.row ? this.pinned.column.index : -1 };
  }

  /** The focus moves at once here, and for the server after `rest` ms. */
  choose(tile, rest) {
    if (!tile) return;
    this.look = { ...this.look, focus: tile };
    this.count++;
    this.when = performance.now();
    if (this.look.show === "one kind" && !this.drawn.some((s) => s.part.kind === tile.kind))
      this.draw();
    else {
      this.reveal();
      this.point();
    }
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.rest = 0;
      const cell = this.pinnedCell();
      this.note(cell);
      this.report({ ...tile, count: this.count, ...cell });
    }, rest);
  }

  key(event) {
    if (!this.drawn?.length || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = event.key === "Home" ? [0, 0] : step[event.key];
    if (this.actByKey(event)) return event.preventDefault();
    if (event.key === "Escape") {
      if (!this.letGo()) return;
    } else if (event.key === "Enter" && this.pinned?.row)
      this.setPin({ tokens: [this.pinned.row], to: [this.pinned.column] });
    else if (!move) return;
    else if (event.shiftKey || event.key === "Home") this.walkCells(move);
    else this.choose(neighbour(this.drawn, this.look.focus, move), REST);
    event.preventDefault();
    this.point();
  }

  /** What is done to the selected head, a token or a cell; whether the key means anything. */
  actByKey({ key }) {
    if (!this.act) return false;
    if (key === "o") this.act({ what: "off", ...this.look.focus, scope: this.scope });
    else if (key === "l") this.widen(SCOPES[(SCOPES.indexOf(this.scope) + 1) % 3], this.look.focus);
    else if (key === "h" && this.token()) this.act({ what: "hide", ...this.token() });
    else if (key === "H" && this.isKeyHere()) this.hideHere();
    else if (!this.paintable() || !this.pinned?.row) return false;
    else if (key === "m") this.paintMask(this.pinned);
    else if (key === "+" || key === "-") this.weigh(this.pinned, key === "+" ? 0.1 : -0.1);
    else return false;
    return true;
  }

  /** Hides the selected token from the selected head alone, or shows it again. */
  hideHere() {
    const { kind, layer, head } = this.look.focus;
    this.act({ what: "hide", ...this.token(), head: { kind, layer, head } });
  }

  /** Whether the selected token is a key of the selected head. */
  isKeyHere() {
    return this.token()?.side === this.part(this.look.focus.kind)?.key;
  }

  /** The token that is selected alone, or the key of the selected cell. */
  token() {
    const { pinned } = this;
    if (!this.look.acts || !pinned) return null;
    if (pinned.row) return pinned.column;
    return pinned.tokens.length === 1 && !pinned.to.length ? pinned.tokens[0] : null;
  }

  byteAt({ tile, row, column }) {
    const part = this.part(tile.kind);
    const [i, j] = [row, column].map(({ side, index }) => index / this.data.sides[side].every);
    return part.cells[((tile.layer * part.heads + tile.head) * part.rows + i) * part.columns + j];
  }

  /** Whether the cells of the head in focus are weights of the model: from one token to one, and no
   * difference. */
  paintable() {
    const part = this.part(this.look.focus.kind);
    const single = part && [part.query, part.key].every((side) => this.data.sides[side].every === 1);
    return Boolean(this.act && this.look.acts && !this.data.signed && single);
  }

  /** Forbids a cell that may be attended to, or allows it. */
  paintMask(cell) {
    this.act({ what: "paint", ...cell.tile, row: cell.row.index, column: cell.column.index,
      allow: !this.byteAt(cell), scope: this.scope });
  }

  /** Sets a weight to what it is and so much more. */
  weigh(cell, more) {
    const byte = this.byteAt(cell);
    if (!byte) return;
    const place = JSON.stringify(cell);
    // A second key may come before the server has answered the first.
    const now = this.asked?.place === place ? this.asked.weight : weightOf(byte);
    const weight = Math.round(100 * Math.min(1, Math.max(0, now + more))) / 100;
    this.asked = { place, weight };
    this.act({ what: "weigh", ...cell.tile, row: cell.row.index, column: cell.column.index, weight });
  }

  /** Says what a weight would be. */
  preview(cell, more) {
    const weight = Math.min(1, Math.max(0, weightOf(this.byteAt(cell)) + more));
    const part = this.part(cell.tile.kind);
    const shift = this.shift(part, [cell.tile.layer * part.heads + cell.tile.head]);
    this.message.replaceChildren(...this.rowStart(cell.row, shift), " puts ", percent(weight),
      " of its weight on ", this.label(cell.column));
  }

  walkCells([down, right]) {
    const { focus } = this.look;
    const part = this.part(focus.kind);
    const { row, column } = this.pinned?.row ? this.pinned : { row: null, column: null };
    const { every: rowEvery } = this.data.sides[part.query];
    const { every: columnEvery } = this.data.sides[part.key];
    const moved = (at, by, every, count) =>
      Math.min(count - 1, Math.max(0, (at && (down || right) ? at.index / every : 0) + (at ? by : 0)));
    this.setPin(this.cell(part, focus.layer * part.heads + focus.head,
      moved(row, down, rowEvery, part.rows), moved(column, right, columnEvery, part.columns)), REST);
  }

  // Saying and marking what is pointed at

  point() {
    if (!this.drawn) return;
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
    // Canvases first: to set a font makes the browser work out the styles that words then change.
    this.mark(chosen);
    // What the changes did to the output, but of a difference what it shows.
    const isSaid = !this.data.signed && (this.answering || (!chosen && this.look.said.length));
    // That is said of a row, which is marked beside a token of another text: the one just hidden, say.
    const isBeside = isSaid && chosen?.tokens &&
      [...chosen.tokens, ...chosen.to].every(({ side }) => side !== query);
    this.selected?.draw(pointed, isBeside ? this.telling().word : null);
    this.shade(pointed);
    const spoken = isSaid ? null : pointed;
    this.message.replaceChildren(...this.sentence(spoken, told?.even), ...this.offNote(spoken));
    const token = this.act && this.token();
    this.hider.toggleAttribute("hidden", !token);
    // What changes did needs its room.
    const isKey = token && this.isKeyHere() && !(isSaid && this.look.said.length);
    this.hiderHere.toggleAttribute("hidden", !isKey);
    this.hiderHere.textContent = "Hide in this head only (Shift+H)";
    if (token) {
      const isHidden = this.look.hidden?.[token.side]?.includes(token.index);
      this.hider.replaceChildren(isHidden ? "Show " : "Hide ", this.label(token), " (H)");
    }
    this.fitMessage(isSaid);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      this.live.textContent = this.message.textContent;
      this.fitMessage(true, isSaid);
    }, REST);
  }

  /** What is longer than its lines is written in smaller letters, down to those of the panel; then
   * the button beside it may give way. */
  fitMessage(isLong, mayHide = isLong) {
    const { message } = this;
    const fits = () => message.scrollHeight <= message.clientHeight + 1;
    message.style.fontSize = "";
    if (!isLong) return;
    for (const size of SMALLER) {
      if (fits()) return;
      message.style.fontSize = `${size}em`;
    }
    if (mayHide && !fits()) this.hider.toggleAttribute("hidden", true);
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

  /** What the changes of a run do to the tokens: which nobody attends to, and how much more or less
   * probable each has become. */
  change() {
    const { hidden = {}, moved = {} } = this.look;
    const top = Math.max(1, ...Object.values(moved).flat().map(Math.abs));
    for (const [side, spans] of Object.entries(this.spans))
      spans.forEach((span, index) => {
        span.classList.toggle("hidden", Boolean(this.look.acts && hidden[side]?.includes(index)));
        const by = this.look.acts ? moved[side]?.[index] : null;
        span.classList.toggle("less", by < 0);
        span.style.setProperty("--moved", by ? `${Math.round((100 * Math.abs(by)) / top)}%` : "0%");
        span.title = by == null ? "" : `change of log-probability: ${minus(by.toFixed(2))}`;
      });
  }

  mark(pointed) {
    const { focus, colour } = this.look;
    const thin = Math.max(1.5, this.font / 10);
    for (const section of this.drawn) {
      const { part, over, width, height } = section;
      const { heads } = part;
      over.clearRect(0, 0, over.canvas.width, over.canvas.height);
      const bands = [];
      const { rows, columns } = this.marked(pointed);
      for (const [isRow, marked, offsets, length, size] of [
        [true, rows, part.down, height, part.rows],
        [false, columns, part.across, width, part.columns],
      ])
        for (const [side, first] of Object.entries(offsets))
          for (const place of placesOf(marked, side, this.data.sides))
            bands.push([isRow, ((first + place) * length) / size - thin / 2, length / size + thin]);
      over.strokeStyle = colour;
      over.lineWidth = thin;
      for (let tile = 0; bands.length && tile < part.layers * heads; tile++) {
        const { x, y } = this.corner(section, placeOf(section.order, tile));
        for (const [isRow, start, thick] of bands) {
          if (isRow) over.strokeRect(x, y + start, width, thick);
          else over.strokeRect(x + start, y, thick, height);
        }
      }
      if (!holds(part, focus.kind) || focus.head >= heads) continue;
      for (let tile = 0; this.scope !== "head" && tile < part.layers * heads; tile++) {
        if (!this.inScope(part, tile)) continue;
        const { x, y } = this.corner(section, placeOf(section.order, tile));
        over.strokeRect(x - 1, y - 1, width + 2, height + 2);
      }
      const chosen = rowOf(part, focus) * heads + focus.head;
      const { x, y } = this.corner(section, placeOf(section.order, chosen));
      over.lineWidth = Math.max(4, this.font / 4);
      const out = over.lineWidth / 2;
      over.strokeRect(x - out + 1, y - out + 1, width + 2 * out - 2, height + 2 * out - 2);
    }
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

  /** Outlines what is pointed at, and shades what it attends to and what attends to it. A pair
   * gets outlines only: its finding may be about another head. */
  shade(pointed) {
    for (const span of this.shaded ?? []) {
      span.classList.remove("here");
      for (const name of ["--attends", "--attended", "--attends-by", "--attended-by"])
        span.style.removeProperty(name);
    }
    this.shaded = [];
    const set = (token, name, value) => {
      const span = this.spans[token.side]?.[token.index];
      if (!span) return;
      if (name === "here") span.classList.add("here");
      else span.style.setProperty(name, value);
      this.shaded.push(span);
    };
    const tokens = pointed?.tokens ?? (pointed ? [pointed.row] : []);
    const { kind, layer, head } = pointed?.tile ?? this.look.focus;
    const part = this.part(kind);
    const shift = this.shift(part, pointed?.tile ? [layer * part.heads + head] : averaged(part, this.look));
    const followed = ({ side, index }) => ({ side, index: index + shift });
    const framed = pointed?.row ? [followed(pointed.row), pointed.column] : [...tokens, ...(pointed?.to ?? [])];
    for (const token of framed) set(token, "here");
    const shades = pointed?.to?.length ? [] : [[true, "--attends"], [false, "--attended"]];
    for (const [asQuery, name] of shades) {
      const others = this.between(asQuery && pointed?.tokens ? this.queries({ tokens, to: [] }) : tokens,
        asQuery, pointed?.tile);
      others?.weights.forEach((weight, i) => {
        const { every } = this.data.sides[others.side];
        const share = Math.abs(weight);
        for (let k = 0; k < every && share > 0.004; k++) {
          const token = { side: others.side, index: i * every + k + (asQuery ? 0 : shift) };
          set(token, name, `${Math.round(100 * share)}%`);
          if (part.signed) set(token, `${name}-by`, `rgb(${this.hue(weight)})`);
        }
      });
    }
  }

  /** The colour of a weight that was lost or gained, as the picture has it. */
  hue(change) {
    return ramp(this.palette)(change < 0 ? 0.2 : 0.8).map(Math.round);
  }

  labelText({ side, index }) {
    const { labels, every } = this.data.sides[side];
    if (every === 1) return labels[index];
    return `${labels[index]} … ${labels[Math.min(labels.length, index + every) - 1]}`;
  }

  label(token) {
    return quoted(this.labelText(token));
  }

  /** Whether a lesson asks for what the rows predict. */
  isNextAsked() {
    return this.look.veil?.some(({ what }) => what === "next tokens" || what === "decoding");
  }

  /** How far the word that the heads of some tiles follow is from the word that a row reads. */
  shift(part, tiles) {
    return this.isNextAsked() ? 0 : shiftOf(part, this.data.sides, tiles);
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
    const parts = ["In ", element("b", {}, this.shortName(best)), ", ", ...this.names(best.queries), verb,
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
      const where = element("b", {}, all[this.scope] ?? this.name(focus));
      if (this.data.signed)
        return [where, " is selected. Colours range from ", signedPercent(-this.data.signed), " to ",
          signedPercent(this.data.signed), " of the weight."];
      if (this.look.said.length)
        return this.look.said.map(([text, tag]) => (tag ? element(tag, {}, text) : text));
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
      const name = [element("b", {}, this.name(tile)), ": "];
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
    const parts = this.answersRoot && !average && !this.isPresented ? [] : [element("b", {}, head), ": "];
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
        const sum = others.weights.reduce((all, weight) => all + weight, 0);
        parts.push(`; its column adds up to ${percent(sum)}`);
      }
    }
    if (!roles && shift && pointed.tokens.every(({ side }) => side === of.query))
      return [...parts, " is not written by the model, so it has no row in this head."];
    return roles ? [...parts, "."]
      : [...parts, ` belongs to the ${pointed.tokens[0].side}, which this attention does not read.`];
  }
}
