// The selected head in full, with its tokens, and what the model predicts at the row one looks at.

import MASKED from "../../masked.json" with { type: "json" };
import { inkOn, pixelColours, ramp } from "../shared/colours.js";
import { element, roomBelow } from "../shared/dom.js";
import {
  cellUnder, cross, pixelSheet, pointIn, sized, veiled, writeAt, writeTurned,
} from "../shared/heatmap.js";
import { percent, signedPercent } from "../shared/numbers.js";
import { averaged, isFaded, meanWeights, placesOf, scaled } from "./cells.js";

const LARGEST = [140, 72]; // px across and down a cell
const PRESENTED = [160, 110]; // the same in Present
const LEAST_PAIR = 760; // px for two pictures beside each other
const LOWEST = 260; // px, for all cells and their labels
const LETTERS = [0.62, 0.85]; // of the page's, at least and at most; as large as it is in Present
const LEVEL = 0.8; // of the largest letters: smaller ones slant, rather than be smaller still
const WIDEST_LABEL = 0.3; // of the picture, for the labels of rows
const DIAGONAL = Math.SQRT1_2;
const ASIDE = 0.35; // letters from the middle of a column to where its turned label starts
const SLANT = 0.6; // the same, and the foot of the last slanting letter
const WRITTEN = 0.05; // smaller weights are not written into their cells
const DRAGGED = 3; // px; less is a click
const LEGEND = 6; // letters long
const LEAST_APART = 10; // px of a cell; smaller ones touch
const LISTED = 3; // heads between two words

/** How much room the names of rows take, and of the axis. */
const labelsWide = (letters, widest, width) => 1.6 * letters + Math.min(widest, WIDEST_LABEL * width) + 6;

export class SelectedHead {
  constructor(grid, root) {
    this.grid = grid;
    this.heading = element("h3");
    this.picture = element("canvas", { role: "img" });
    this.canvas = element("canvas", { "aria-hidden": "true" }); // marks, and what the pointer meets
    this.view = element("div", { class: "view" }, this.picture, this.canvas);
    this.whole = element("div", { class: "whole" }, this.view); // as large as all cells
    this.box = element("div", { class: "cells" }, this.whole);
    this.box.onscroll = () => this.scroll();
    this.answers = element("div", { class: "answers" });
    this.linked = element("div", { class: "answers" });
    this.tools = this.toolbar();
    this.root = root;
    const title = element("div", { class: "title" }, this.heading, this.tools);
    root.append(title, this.box);
    this.canvas.onpointermove = (event) => this.hover(event);
    this.canvas.onpointerleave = () => grid.hover(null);
    this.canvas.onclick = (event) => this.click(event);
    this.canvas.onpointerdown = (event) => this.drag(event);
  }

  /** Puts the predictions beside the text, or below the picture. */
  answerIn(root) {
    if (this.answers.parentNode !== root) root.append(this.linked, this.answers);
  }

  /** What a click on a cell does, and of which heads a stroke changes the mask. */
  toolbar() {
    const select = (label, options, chosen) => {
      const box = element("select", { "aria-label": label });
      for (const [value, text] of Object.entries(options))
        box.append(element("option", { value }, text));
      box.onchange = () => chosen(box.value);
      return box;
    };
    this.chosenTool = "point";
    this.scopes = select("What to change", { head: "this head", layer: "this layer", kind: "all layers" },
      (value) => this.grid.widen(value, this.grid.look.focus));
    const tools = select("Action on a cell", { point: "Cells: click to select",
      mask: "Cells: click to mask", weight: "Cells: drag to set the weight" }, (value) => {
      this.chosenTool = value;
      this.draw();
    });
    return element("div", { class: "tools" }, tools, this.scopes);
  }

  /** What is chosen, where cells can be changed. */
  get tool() {
    return this.grid.paintable() ? this.chosenTool : "point";
  }

  hover(event) {
    const [cell, label] = [this.cellAt(event), this.labelAt(event)];
    this.canvas.title = this.grid.rowTitle(cell);
    this.canvas.style.cursor = label ? "pointer" : "";
    this.grid.hover(cell ?? label);
  }

  click(event) {
    const [cell, label] = [this.cellAt(event), this.labelAt(event)];
    if (!cell && !label) return;
    this.grid.stage.focus({ preventScroll: true }); // keys act on what was selected
    if (label) this.grid.pin(label);
    else if (this.tool === "mask") this.grid.act(this.grid.masks(cell));
    else if (this.tool === "point") this.grid.pin(cell);
  }

  /** Upwards the weight of a cell grows, by the height of the picture from 0 to 1. */
  drag(down) {
    const cell = !down.button && this.cellAt(down);
    if (!cell || this.tool !== "weight" || !this.grid.byteAt(cell)) return;
    this.follow(down, (more) => this.grid.preview(cell, more),
      (more, isDrag) => isDrag && this.grid.weigh(cell, more));
  }

  /** Follows the pointer until it is let go: how far up it is, of the height of the picture. */
  follow(down, moved, ended) {
    this.canvas.setPointerCapture(down.pointerId);
    const more = (event) => (down.clientY - event.clientY) / this.canvas.clientHeight;
    const end = () => {
      this.canvas.onpointermove = (event) => this.hover(event);
      this.canvas.onpointerup = this.canvas.onpointercancel = null;
    };
    this.canvas.onpointermove = (event) => moved(more(event));
    this.canvas.onpointercancel = end;
    this.canvas.onpointerup = (event) => {
      end();
      ended(more(event), Math.abs(down.clientY - event.clientY) >= DRAGGED);
    };
  }

  /** The picture is drawn when what it shows has changed; the marks follow the pointer. */
  /** With the row of `beside` marked, too. */
  draw(pointed = this.told, beside = this.beside) {
    Object.assign(this, { told: pointed, beside });
    const { data, look, ink, frameWidth, below, pinned } = this.grid;
    this.link(data, pinned);
    const part = this.grid.part(look.focus.kind);
    this.root.toggleAttribute("hidden", !part?.rows || !part.columns);
    if (this.root.hidden) return;
    this.scopes.value = this.grid.scope;
    this.scopes.hidden = this.grid.scope === "head" && this.tool !== "mask"; // it takes room
    this.tools.hidden = !this.grid.paintable();
    this.canvas.style.touchAction = this.tool === "weight" ? "none" : "";
    const shown = [data, look, ink, frameWidth, below, this.grid.isCompared];
    if (!shown.every((value, i) => value === this.shown?.[i])) {
      this.shown = shown;
      this.paint(part);
    }
    this.show(pointed);
    this.mark(pointed);
    this.answer(pointed);
  }

  paint(part) {
    const { grid } = this;
    this.heading.textContent = this.grid.title(part);
    this.picture.setAttribute("aria-label", this.grid.title(part));
    const context = this.picture.getContext("2d");
    const [down, across] = [part.query, part.key].map((name) => grid.data.sides[name]);
    this.rowNames = grid.rowLabels(part, down);
    this.columnNames = grid.labels(across, part.columns);
    const place = this.settle(context, part);
    const [wide, high] = place.whole;
    Object.assign(this, { part, place, cells: this.sheet(part) });
    this.isOff = averaged(part, grid.look).every((tile) => isFaded(part, this.off, tile));
    const { clientWidth, clientHeight } = this.box; // without its bars
    const size = [Math.min(wide, clientWidth), Math.min(high, clientHeight)];
    this.scrolls = size[0] < wide || size[1] < high;
    // What scrolls must be reached by the keyboard.
    for (const [name, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": "Cells" }))
      if (this.scrolls) this.box.setAttribute(name, value);
      else this.box.removeAttribute(name);
    this.axis = this.axisText(part);
    const beside = `${Math.ceil(context.measureText(this.axis).width + place.letters)}px`;
    this.tools.style.setProperty("--hl-start", beside); // where they stand beside the axis
    this.taken = this.tools.offsetWidth;
    sized(this.picture, ...size);
    this.marks = sized(this.canvas, ...size);
    Object.assign(place, { size, right: size[0], bottom: size[1] });
    this.keepScroll();
    this.paper = getComputedStyle(grid.frame).getPropertyValue("--st-background-color") || "#fff";
    this.paintView();
  }

  /** Lays the cells out, and once more where a bar that scrolls them down takes some of their width:
   * another along the foot would cover the last row. */
  settle(context, part) {
    const { box, whole } = this;
    const lay = () => {
      const place = this.layout(context, part, this.columnNames);
      box.style.maxHeight = `${place.room}px`;
      [whole.style.width, whole.style.height] = place.whole.map((size) => `${size}px`);
      return place;
    };
    box.style.overflow = "hidden"; // no bars of what stood there before
    const width = box.clientWidth;
    const place = lay();
    box.style.overflow = "";
    return box.clientWidth < width ? lay() : place;
  }

  /** Where the first cell is: above and left of its labels when the cells have been scrolled. */
  get corner() {
    return [this.place.left - this.scrolled[0], this.place.top - this.scrolled[1]];
  }

  /** Cached, like the background colour: reading it forces a layout, because every move of the
   * pointer changes the page. */
  keepScroll() {
    this.scrolled = [this.box.scrollLeft, this.box.scrollTop];
  }

  /** Draws within the labels, which stay while the cells scroll. */
  within(context, draw, [left, top] = [this.place.left, this.place.top]) {
    const { right, bottom } = this.place;
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    draw();
    context.restore();
  }

  /** What is in view of the cells, and their labels. */
  paintView() {
    const { grid, part, place, isOff, columnNames } = this;
    const { width, height, letters, turned, size } = place;
    const [left, top] = this.corner;
    const context = this.picture.getContext("2d");
    context.clearRect(0, 0, ...size);
    this.within(context, () => {
      context.fillStyle = grid.hatching;
      context.fillRect(left, top, width, height);
      context.imageSmoothingEnabled = false;
      context.globalAlpha = isOff ? MASKED.off : 1;
      context.drawImage(this.cells, left, top, width, height);
      this.separate(context);
      context.globalAlpha = 1;
      const tiles = averaged(part, grid.look);
      for (const { tile, first, count } of part.veil ?? [])
        if (tiles.includes(tile)) veiled(context, grid.look.colour, left, top + first * place.down,
          width, count * place.down);
      if (isOff) cross(context, grid.look.colour, left, top, width, height);
    });
    context.fillStyle = grid.ink;
    context.font = `${letters}px ${grid.family}`;
    context.textAlign = "right";
    if (!this.isBare) this.within(context, () => this.rowNames.forEach((label, at) => context.fillText(label,
      place.left - 6, top + (at + 0.5) * place.down + 0.35 * letters, place.left - 1.6 * letters)),
    [0, place.top]);
    context.textAlign = turned ? "left" : "center";
    this.within(context, () => this.writeColumns(context, columnNames.keys()), this.aboveColumns);
    context.textAlign = "left";
    context.fillText(this.axis, 0, letters);
    context.textAlign = "center";
    const visible = Math.min(height, place.bottom - place.top);
    if (!this.isBare)
      writeTurned(context, grid.queryTitle(part), letters, place.top + visible / 2, visible);
    this.legendStart = place.size[0];
    if (this.hasLegend) this.drawLegend(context);
  }

  /** A line of the page between cells that are large enough. */
  separate(context) {
    const { across, down, width, height } = this.place;
    if (Math.min(across, down) < LEAST_APART) return;
    const [left, top] = this.corner;
    for (let row = 1; row < this.part.rows; row++) context.clearRect(left, Math.round(top + row * down), width, 1);
    for (let at = 1; at < this.part.columns; at++) context.clearRect(Math.round(left + at * across), top, 1, height);
  }

  /** Whether the names of the rows stand beside the picture before a change alone. */
  get isBare() {
    return this.grid.isCompared;
  }

  /** Kind → tiles of heads that are off in this picture. */
  get off() {
    return this.grid.look.off;
  }

  get hasLegend() {
    return !this.grid.isCompared; // of two pictures, the other has room for it
  }

  /** What the columns are, and of two pictures, which of both this is. */
  axisText(part) {
    return `${this.grid.isCompared ? "After: " : ""}key (${part.key})`;
  }

  /** The names of some columns, as they stand above them. */
  writeColumns(context, columns) {
    const { across, top, turned, letters } = this.place;
    const [left] = this.corner;
    for (const at of columns)
      writeAt(context, this.columnNames[at],
        left + (at + 0.5) * across + (turned ? ASIDE * letters : 0), top - 6, turned);
  }

  /** Where the part of the picture with these names begins. */
  get aboveColumns() {
    return [this.place.turned ? this.place.left : 0, 0];
  }

  /** What the colours mean, at the right end of the line above the labels. */
  drawLegend(context) {
    const { data, look, ink } = this.grid;
    const { letters, size: [wide] } = this.place;
    const [least, most] = this.part.signed
      ? [`change ${signedPercent(-data.signed)}`, signedPercent(data.signed)]
      : ["weight 0%", look.scale === "per row" ? "largest of the row" : "100%"];
    const long = LEGEND * letters;
    const right = wide - 2 - context.measureText(most).width;
    const left = right - long - letters / 2;
    const colour = ramp(this.grid.palette);
    context.fillStyle = ink;
    context.textAlign = "right";
    context.fillText(most, wide - 2, letters);
    context.fillText(least, left - letters / 4, letters);
    this.legendStart = left - letters / 4 - context.measureText(least).width;
    const shades = context.createLinearGradient(left, 0, left + long, 0);
    for (let share = 0; share <= 1; share += 1 / 16) shades.addColorStop(share, `rgb(${colour(share)})`);
    context.fillStyle = shades;
    context.fillRect(left, 0.3 * letters, long, 0.7 * letters);
  }

  scroll() {
    if (!this.place) return;
    this.keepScroll();
    this.paintView();
    this.mark(this.told);
  }

  /** Scrolls to the first row and column that are marked, or where only a row is, to its largest
   * weight; a cell under the pointer stays there. */
  show(pointed) {
    const isUnder = pointed?.row && pointed === this.grid.pointed;
    if (!this.scrolls || !pointed || isUnder || pointed === this.shownAt) return;
    this.shownAt = pointed;
    const { box, part, place, grid } = this;
    const { rows, columns } = grid.marked(pointed);
    const [row] = placesOf(rows, part.query, grid.data.sides);
    let [column] = placesOf(columns, part.key, grid.data.sides);
    if (row !== undefined && column === undefined) {
      const weights = meanWeights(part, averaged(part, grid.look), [row], true);
      column = weights.indexOf(Math.max(...weights));
    }
    for (const [at, size, first, end, name] of [
      [row, place.down, place.top, place.bottom, "scrollTop"],
      [column, place.across, place.left, place.right, "scrollLeft"],
    ]) {
      if (at === undefined) continue;
      const start = first + at * size - box[name];
      if (start < first || start + size > end) box[name] += start - (first + end) / 2;
    }
    this.keepScroll();
  }

  /** Where cells and labels stand, so that they fill the room and every label is read: level, else
   * slanting, else from below. Where the smallest letters are too large for that, cells go beyond
   * the room and scroll. */
  layout(context, part, names) {
    const { grid } = this;
    const width = this.box.clientWidth;
    const room = grid.wide ? Math.max(LOWEST, roomBelow(this.whole) - 12) : Infinity;
    const tall = grid.wide ? room : Math.max(LOWEST, 0.9 * width);
    const largest = grid.isPresented ? PRESENTED : LARGEST;
    const [least, most] = LETTERS.map((share) => (grid.isPresented ? 1 : share) * grid.font);
    const measure = (labels) => labels.map((label) => context.measureText(label).width);
    for (let letters = most; ; letters--) {
      context.font = `${letters}px ${grid.family}`;
      const line = Math.ceil(1.05 * letters);
      const rows = Math.max(...measure(this.rowNames));
      const left = this.isBare ? 2 : labelsWide(letters, rows, width);
      const columns = measure(names);
      const longest = Math.max(...columns);
      const level = longest + 4 <= (width - left - 2) / part.columns;
      const beyond = level ? 0 : Math.max(0, ...columns.map((size, at) =>
        DIAGONAL * size + SLANT * letters - (part.columns - at - 0.5) * ((width - left) / part.columns)));
      const each = (width - left - 2 - beyond) / part.columns;
      const slanting = !level && each >= 1.3 * letters;
      const high = level ? letters : slanting ? DIAGONAL * (longest + letters) : longest;
      const top = Math.min(high, 0.5 * tall) + 1.6 * letters;
      const cell = [slanting || level ? each : (width - left - 2) / part.columns,
        (tall - top - 2) / part.rows].map(Math.floor);
      const fits = Math.min(...cell) >= line;
      if (!fits && letters - 1 >= least) continue;
      if (slanting && letters - 1 >= LEVEL * most && longest * LEVEL + 4 <= each) continue;
      const [across, down] = cell.map((size, i) => Math.max(line, Math.min(largest[i], size)));
      const whole = [left + part.columns * across + 2 + (slanting ? beyond : 0), top + part.rows * down + 2];
      return { left, top, across, down, letters, room, whole, width: part.columns * across,
        height: part.rows * down, turned: level ? 0 : slanting ? Math.PI / 4 : Math.PI / 2 };
    }
  }

  /** One pixel a cell; what is masked is left out. */
  sheet(part) {
    const { rows, columns, cells } = part;
    const { look, palette } = this.grid;
    const colours = pixelColours(palette);
    const tiles = averaged(part, look);
    return pixelSheet(rows, columns, (pixels) =>
      this.grid.rows(part).forEach((weights, row) => scaled(weights, look, part.signed).forEach((shown, column) => {
        const at = row * columns + column;
        if (!tiles.some((tile) => cells[tile * rows * columns + at])) return;
        pixels[at] = colours[Math.round(255 * shown)];
      })));
  }

  mark(pointed) {
    const { grid, part, marks: context } = this;
    const { place } = this;
    const { across, down, width, height, letters } = place;
    const [left, top] = this.corner;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (grid.wide) this.writeWeights(context);
    context.strokeStyle = context.fillStyle = grid.look.colour;
    context.lineWidth = 2;
    context.textAlign = "right";
    context.font = `bold ${letters}px ${grid.family}`;
    const { rows, columns } = grid.marked(pointed);
    const marked = [placesOf([...rows, ...grid.queries(this.beside)], part.query, grid.data.sides),
      placesOf(columns, part.key, grid.data.sides)];
    this.within(context, () => {
      for (const row of marked[0]) context.strokeRect(left, top + row * down, width, down);
      for (const column of marked[1]) context.strokeRect(left + column * across, top, across, height);
    });
    if (!this.isBare) this.within(context, () => {
      for (const row of marked[0]) {
        context.fillStyle = this.paper;
        context.fillRect(1.4 * letters, top + row * down, place.left - 1.4 * letters - 2, down);
        context.fillStyle = grid.look.colour;
        context.fillText(this.rowNames[row], place.left - 6,
          top + (row + 0.5) * down + 0.35 * letters, place.left - 1.6 * letters);
      }
    }, [0, place.top]);
    context.font = `${letters}px ${grid.family}`; // over the same letters
    context.textAlign = place.turned ? "left" : "center";
    this.within(context, () => this.writeColumns(context, marked[1]), this.aboveColumns);
    this.nameFrames(context);
  }

  /** Beside the scale: that the frames stay, and until when. */
  nameFrames(context) {
    const { grid } = this;
    const { letters } = this.place;
    if (!grid.pinned) return;
    context.font = `${letters}px ${grid.family}`;
    context.textAlign = "left";
    const text = "selected; Esc clears";
    const left = this.legendStart - context.measureText(text).width - 1.5 * letters;
    const taken = context.measureText(this.axis).width + this.taken;
    if (left - 3 * letters < taken) return; // no room
    context.strokeRect(left - 1.6 * letters, 0.3 * letters, 1.2 * letters, 0.7 * letters);
    context.fillText(text, left, letters);
  }

  /** The weights in their cells, where they fit. */
  writeWeights(context) {
    const { grid, part } = this;
    const { across, down, letters } = this.place;
    const [left, top] = this.corner;
    if (across < 1.9 * letters || down < 1.1 * letters || part.signed) return;
    const written = grid.isCompared || across < 2.6 * letters ? (weight) => percent(weight).replace("%", "") : percent;
    const colours = pixelColours(grid.palette);
    context.font = `${letters}px ${grid.family}`;
    context.textAlign = "center";
    this.grid.rows(part).forEach((weights, row) => scaled(weights, grid.look, false).forEach((shown, column) => {
      if (weights[column] < WRITTEN) return;
      const pixel = colours[Math.round(255 * shown)];
      context.fillStyle = this.isOff ? grid.ink // on faded cells
        : inkOn([pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255]);
      context.fillText(written(weights[column]), left + (column + 0.5) * across,
        top + (row + 0.5) * down + 0.35 * letters);
    }));
  }

  /** The most probable next tokens (or classes) at the row that is pointed at, as bars; and the token that
   * the text has there. */
  answer(pointed) {
    const { answers } = this.grid.data;
    const shown = this.grid.answersAt(pointed);
    if (!shown) {
      this.answered = null;
      return this.answers.replaceChildren();
    }
    const { title, row } = shown;
    if (this.answered?.[0] === answers && this.answered[1] === title && this.answered[2] === row) return;
    this.answered = [answers, title, row];
    const bars = shown.bars.map(({ label, share, notes, isWanted, was }) => {
      const note = notes.length ? [element("small", {}, ` (${notes.join(", ")})`)] : [];
      return element("div", { class: isWanted ? "bar wanted" : "bar" },
        element("span", { dir: "auto" }, label, ...note),
        element("span", { class: was === null ? "length" : "length was",
          style: `--share: ${100 * share}%; --was: ${100 * was}%` }),
        element("span", {}, percent(share), ...(was === null ? []
          : [element("small", { class: "live" }, ` (before: ${percent(was)})`)])));
    });
    this.answers.replaceChildren(element("h3", {}, title), ...bars);
  }

  /** The heads that link two groups of tokens, each a click away; they stand in the place of the
   * bars. */
  link(data, pinned) {
    const shown = pinned?.to?.length ? pinned : null;
    if (this.shownLinks?.[0] === data && this.shownLinks[1] === shown) return;
    this.shownLinks = [data, shown];
    this.answers.toggleAttribute("hidden", Boolean(shown));
    this.linked.replaceChildren();
    if (!shown) return;
    const { grid } = this;
    const best = grid.linksOf(shown, LISTED);
    const name = (tokens) => tokens.map((token) => grid.labelText(token)).join(" + ");
    const buttons = best.map(({ kind, layer, head, queries, keys, weight }) => {
      const button = element("button", { class: "bar", type: "button" },
        element("span", {}, grid.shortName({ kind, layer, head })),
        element("span", { class: "length", style: `--share: ${100 * weight}%` }),
        element("span", {}, percent(weight)));
      button.title = `${name(queries)} attends to ${name(keys)}`;
      button.onclick = () => grid.choose({ kind, layer, head }, 0);
      return button;
    });
    this.linked.append(
      element("h3", {}, `Heads between “${name(shown.tokens)}” and “${name(shown.to)}”`),
      ...(buttons.length ? buttons : [grid.noLink]));
  }

  cellAt(event) {
    const { place, canvas } = this;
    const [x, y] = pointIn(canvas, event);
    if (x < place.left || y < place.top) return null; // a label
    const under = this.under(x, y);
    return under && this.cell(...under);
  }

  cell(row, column) {
    const { grid, part } = this;
    const { layer, head } = grid.look.focus;
    return grid.cell(part, layer * part.heads + head, row, column);
  }

  /** The row and the column of a point on the canvas. */
  under(x, y) {
    const [left, top] = this.corner;
    const { rows, columns } = this.part;
    return cellUnder(x, y, { ...this.place, left, top, rows, columns });
  }

  /** The word whose label an event is on; of a row whose word is none of the text, the cell with its
   * largest weight. */
  labelAt(event) {
    const { part, place, canvas, grid } = this;
    const { left, top, letters, turned } = place;
    const [x, y] = pointIn(canvas, event);
    const index = (at, side) => at * grid.data.sides[side].every;
    if (y >= top && x < left && x >= 1.4 * letters) { // beside the name of the axis
      const [row] = this.under(this.corner[0], y) ?? [];
      if (row === undefined) return null;
      const weights = this.grid.rows(part)[row];
      return grid.rowAsWord(part, index(row, part.query)) ??
        this.cell(row, weights.indexOf(Math.max(...weights)));
    }
    if (y >= top || y < 1.4 * letters) return null;
    const foot = x - (turned ? (top - y) / Math.tan(turned) : 0); // of a slanting label
    const [, column] = (foot >= left && this.under(foot, this.corner[1])) || [];
    return column === undefined ? null
      : { tokens: [{ side: part.key, index: index(column, part.key) }], to: [] };
  }
}


/** The same head before a change, with the same marks: other weights, nothing to act on. */
export class FormerHead extends SelectedHead {
  constructor(grid, root) {
    const past = Object.assign(Object.create(grid), {
      data: null,
      hover: (pointed) => grid.hover(pointed),
      pin: (pointed) => grid.pin(pointed),
      paintable: () => false,
    });
    super(past, root);
    this.tools.parentNode.remove(); // the other picture has them
  }

  /** Whether both fit beside each other: of the same texts, so that one cursor is on both. */
  fits(now, room) {
    const texts = ({ sides }) => JSON.stringify(Object.values(sides).map(({ labels }) => labels));
    const former = this.grid.data = now.former ?? null;
    return Boolean(former && room >= LEAST_PAIR && texts(former) === texts(now));
  }

  /** Shows or hides this picture, which is wider than the other by the names of its rows. */
  makeRoom() {
    const { isCompared, look, data, family, font } = this.grid;
    this.root.toggleAttribute("hidden", !isCompared);
    if (!isCompared) return;
    const part = this.grid.part(look.focus.kind);
    const context = this.picture.getContext("2d");
    const letters = LETTERS[1] * font;
    context.font = `${letters}px ${family}`;
    const names = this.grid.rowLabels(part, data.sides[part.query]);
    const widest = Math.max(0, ...names.map((name) => context.measureText(name).width));
    this.root.style.flexBasis = `${labelsWide(letters, widest, Infinity)}px`;
  }

  draw(pointed, beside) {
    if (this.grid.isCompared) super.draw(pointed, beside);
  }

  axisText(part) {
    return `Before: key (${part.key})`;
  }

  get isBare() {
    return false;
  }

  get hasLegend() {
    return true;
  }

  get off() {
    return {};
  }

  nameFrames() {}

  answer() {}

  link() {}
}
