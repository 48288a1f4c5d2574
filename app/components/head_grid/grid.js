// All heads at once: for each kind of attention a canvas of tiles, and the text that they read.

import MASKED from "../../masked.json" with { type: "json" };
import { fill, pixelColours, ramp, stopsOf } from "../shared/colours.js";
import { element, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import {
  cellUnder, cross, hatching, pixelSheet, pointIn, sized, veiled, writeTurned,
} from "../shared/heatmap.js";
import { keyOf } from "../shared/keys.js";
import { minus } from "../shared/numbers.js";
import {
  holds, isFaded, merged, neighbour, paintTiles, placeOf, placesOf, rowOf, select, tileAt,
} from "./cells.js";
import { nodes } from "./parts.js";
import { FormerHead, SelectedHead } from "./selected.js";
import { GridState, LEAST_NAMED } from "./state.js";

const REST = 150; // ms without a key before the server hears of it
const LEAST_TILE = 56; // px; where they would be smaller, kinds are stacked instead
const WIDE = 700; // px; a narrower frame has the selected head below the tiles, unless --hl-wide is less
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
const SMALLER = [1.1, 1.02, 0.95, 0.88, 0.82]; // em, of a finding that does not fit

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

export class Grid extends GridState {
  rest = 0;
  canvases = {}; // kind → what its tiles are drawn on, and above it what is pointed at
  report = () => {};
  reportCell = () => {};
  strip = null; // the cards of what can be done, where there are any

  /** `large`: with the selected head in full beside its tile. */
  constructor(large = false) {
    super(large);
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
    this.known.clear();
    this.text = element("div", { class: "text" });
    this.reading = element("div", { class: "reading" }, this.text);
    this.message = element("p", { class: "message", "aria-hidden": "true" });
    this.live = element("p", { class: "live", role: "status" });
    this.sections = element("div", { class: "sections" });
    this.stage = element("div", {
      class: "stage", tabindex: "0", role: "application",
      "aria-label": "All heads. Arrow keys select a head; Shift and arrow keys move from " +
        "cell to cell, Home to the first cell. O switches the head off or on, H hides the " +
        "selected token, Shift and H hides it from the selected head alone. N, K, W and T are " +
        "the other cards above. M masks the " +
        "selected cell, plus and minus change its weight. L makes O and M apply to the whole " +
        "layer, then to all layers. A sentence describes the selection.",
    }, this.sections);
    this.aside = element("div", { class: "selected" });
    const beside = element("div", { class: "former", hidden: "" });
    this.both = element("div", { class: "both" }, this.stage, this.aside, beside);
    const cards = this.strip ? [this.strip.make()] : [];
    this.frame = element("div", { class: "frame" }, this.message, ...cards, this.reading,
      this.both, this.live);
    this.selected = this.large ? new SelectedHead(this, this.aside) : null;
    this.former = this.large ? new FormerHead(this, beside) : null;
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
    for (const node of [this.reading, ...outwards(this.frame)]) this.observer.observe(node);
    onRecolour(this.frame, () => this.draw());
    this.textOf = null; // a new place on the page, after another page was shown
    this.draw();
  }

  setWeights(bytes) {
    const { pinned } = this;
    if (!this.takeWeights(bytes)) return;
    this.strip?.forget();
    if (this.look && !this.part(this.look.focus.kind)) {
      clearTimeout(this.rest); // the head that a key chose is not in this model
      this.rest = 0;
    }
    this.draw();
    // The look may come later, with an address that decides what is pinned.
    if (pinned && !this.pinned && this.look) this.setPin(null, REST);
  }

  setLook(look) {
    if (look === this.given) return;
    const before = this.look;
    this.given = look;
    this.takeLook(look);
    if (before && look.opened !== before.opened) clearTimeout(this.pinning);
    const rest = (l) => JSON.stringify({ ...l, focus: null, heard: null, opened: null, cell: null });
    const isAlike = before && rest(before) === rest(this.look);
    if (!isAlike) this.strip?.forget();
    if (this.drawn && isAlike) this.point();
    else this.draw();
  }

  // Drawing

  draw() {
    this.drawn = null;
    this.frameWidth = this.frame?.clientWidth;
    if (!this.frameWidth) return; // hidden, or on no page
    if (!this.root || !this.data || !this.look) return;
    // The weights of another model come before its look, whose focus may be of a kind it lacks.
    if (!this.part(this.look.focus.kind)) return;
    const style = getComputedStyle(this.frame);
    this.font = parseFloat(style.fontSize);
    this.ink = style.color;
    this.palette = stopsOf(this.look.palette, this.ink);
    this.family = style.fontFamily;
    this.wide = this.large && this.frameWidth >= (style.getPropertyValue("--hl-wide") || WIDE);
    this.isPresented = Boolean(style.getPropertyValue("--hl-present"));
    this.isNamed = this.look.named && !this.isPresented; // by the picker beside the title
    this.frame.classList.toggle("wide", this.wide);
    this.frame.classList.toggle("named", Boolean(this.look.named));
    this.selected?.answerIn(this.wide ? this.reading : this.aside);
    this.width = this.stage.clientWidth;
    this.isCompared = Boolean(this.former?.fits(this.data, this.wide ? this.frameWidth - this.width : 0));
    this.former?.makeRoom();
    this.hatching = hatching(this.ink);
    this.frame.style.setProperty("--hl-focus", this.look.colour);
    this.words();
    this.change();
    this.strip?.draw(); // it takes room
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
    const sharp = base.canvas.width / fullWidth;
    const every = merged(part, width * sharp, height * sharp);
    const [rows, columns] = [part.rows / every[0], part.columns / every[1]];
    const sheet = this.sheet(part, every);
    const [down, across] = [sheet.height / layers, sheet.width / heads];
    base.font = `${(stacked ? 0.72 : 0.85) * font}px ${this.family}`;
    base.fillStyle = this.ink;
    base.imageSmoothingQuality = "high";
    base.imageSmoothingEnabled = width < columns || height < rows;
    for (let tile = 0; tile < layers * heads; tile++) {
      const { x, y } = this.corner(section, placeOf(section.order, tile));
      const [layer, head] = [Math.floor(tile / heads), tile % heads];
      base.globalAlpha = isFaded(part, this.look.faded, tile) ? MASKED.left_out : 1;
      base.fillStyle = this.hatching; // what is masked is no pixel of the sheet
      base.fillRect(x, y, width, height);
      base.fillStyle = this.ink;
      base.drawImage(sheet, head * across, layer * down, columns, rows, x, y, width, height);
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

  /** All tiles of a part, a pixel for so many cells, see `merged`. */
  sheet(part, every) {
    const [down, across] = [part.rows, part.columns].map((cells, i) => Math.ceil(cells / every[i]));
    return pixelSheet(part.layers * down, part.heads * across, (pixels) =>
      paintTiles(pixels, part, this.look, pixelColours(this.palette), every));
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
    this.text.append(this.written = element("div", { class: "now", hidden: "" }));
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

  /** Selects a head and a cell as another page shows them, as by one click. */
  follow(tile, cell) {
    if (cell?.query !== undefined) {
      this.known.delete(JSON.stringify(cell));
      this.look = { ...this.look, focus: tile, cell };
      this.restore();
    }
    this.choose(tile, 0);
  }

  /** The focus moves at once here, and for the server after `rest` ms. */
  choose(tile, rest) {
    if (!tile) return;
    this.focusOn(tile);
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
    else if (event.shiftKey || event.key === "Home") this.setPin(this.walked(move), REST);
    else this.choose(neighbour(this.drawn, this.look.focus, move), REST);
    event.preventDefault();
    this.point();
  }

  /** What is done to the selected head, a token or a cell; whether the key means anything. */
  actByKey(event) {
    if (!this.act) return false;
    const key = keyOf(event);
    if (key === "l") this.widen(SCOPES[(SCOPES.indexOf(this.scope) + 1) % 3], this.look.focus);
    else {
      const what = this.actOf(key);
      if (what) this.act(what);
      else return false;
    }
    return true;
  }

  /** Sets a weight to what it is and so much more. */
  weigh(cell, more) {
    const what = this.weighs(cell, more);
    if (what) this.act(what);
  }

  /** Says what a weight would be. */
  preview(cell, more) {
    this.message.replaceChildren(...nodes(this.previewed(cell, more)));
  }

  // Saying and marking what is pointed at

  point() {
    if (!this.drawn) return;
    const { chosen, pointed, beside, isSaid, message } = this.now();
    // Canvases first: to set a font makes the browser work out the styles that words then change.
    this.mark(chosen);
    this.former?.draw(pointed, beside);
    this.selected?.draw(pointed, beside);
    this.shade(pointed);
    this.strip?.draw();
    const preview = this.strip?.preview();
    this.struck?.classList.remove("struck");
    const hides = this.strip?.hides();
    this.struck = hides && this.spans[hides.side]?.[hides.index];
    this.struck?.classList.add("struck");
    this.message.replaceChildren(...nodes(preview ?? message));
    this.message.classList.toggle("would", Boolean(preview));
    this.fitMessage(isSaid || Boolean(preview));
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      this.live.textContent = this.message.textContent;
      this.fitMessage(true);
    }, REST);
  }

  /** What is longer than its lines is written in smaller letters, down to those of the panel. */
  fitMessage(isLong) {
    const { message } = this;
    message.style.fontSize = "";
    if (!isLong) return;
    for (const size of SMALLER) {
      if (message.scrollHeight <= message.clientHeight + 1) return;
      message.style.fontSize = `${size}em`;
    }
  }

  /** What the changes of a run do to the tokens: which nobody attends to, and how much more or less
   * probable each has become; below them, what the model writes now. */
  change() {
    const { now } = this.look;
    this.written.hidden = !now.length;
    this.written.replaceChildren(element("b", {}, "Now"), element("q", {}, ...nodes(now)));
    for (const [side, spans] of Object.entries(this.spans))
      spans.forEach((span, index) => {
        const { hidden, by, share } = this.changeOf(side, index);
        span.classList.toggle("hidden", hidden);
        span.classList.toggle("less", by < 0);
        span.style.setProperty("--moved", `${Math.round(100 * share)}%`);
        span.title = by === null ? "" : `change of log-probability: ${minus(by.toFixed(2))}`;
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

  /** Outlines what is pointed at, and shades what it attends to and what attends to it. */
  shade(pointed) {
    for (const span of this.shaded ?? []) {
      span.classList.remove("here");
      fill(span);
      for (const name of ["--attended", "--attended-by"]) span.style.removeProperty(name);
    }
    const spanOf = ({ side, index }) => this.spans[side]?.[index];
    const { framed, shaded } = this.shades(pointed);
    for (const token of framed) spanOf(token)?.classList.add("here");
    const { signed } = this.data;
    const colour = ramp(this.palette);
    for (const [token, isAttended, weight] of shaded) {
      const span = spanOf(token);
      if (!span || Math.abs(weight) < LEAST_NAMED) continue;
      if (isAttended) {
        fill(span, colour(signed ? (1 + weight / signed) / 2 : weight)); // as its cell
        continue;
      }
      span.style.setProperty("--attended", `${Math.round(100 * Math.abs(weight))}%`);
      if (signed) span.style.setProperty("--attended-by", `rgb(${colour(weight < 0 ? 0.2 : 0.8).map(Math.round)})`);
    }
    this.shaded = [...framed, ...shaded.map(([token]) => token)].map(spanOf).filter(Boolean);
  }
}
