// The selected head in full, with its tokens, and what the model predicts at the row one looks at.

import { pixelColours } from "../shared/colours.js";
import { element, roomBelow } from "../shared/dom.js";
import { cellUnder, pixelSheet, pointIn, sized, writeTurned } from "../shared/heatmap.js";
import { percent } from "../shared/numbers.js";
import { averaged, links, meanWeights, placesOf, scaled } from "./cells.js";

const LARGEST_CELL = 34; // px
const TALLEST = 0.32; // of the window, for all cells, where there is room
const LEAST = 130; // px
const LETTERS = [0.7, 0.85]; // of the page's, at least and at most
const LONGEST_LABEL = 24; // characters
const DRAGGED = 3; // px; less is a click

export class SelectedHead {
  constructor(grid, root) {
    this.grid = grid;
    this.heading = element("h3");
    this.picture = element("canvas", { role: "img" });
    this.canvas = element("canvas", { "aria-hidden": "true" }); // marks, and what the pointer meets
    this.box = element("div", { class: "cells" }, this.picture, this.canvas);
    this.answers = element("div", { class: "answers" });
    this.linked = element("div", { class: "answers" });
    this.tools = this.toolbar();
    this.root = root;
    const title = element("div", { class: "title" }, this.heading, this.tools);
    root.append(title, this.box, this.linked, this.answers);
    this.canvas.onpointermove = (event) => grid.hover(this.cellAt(event));
    this.canvas.onpointerleave = () => grid.hover(null);
    this.canvas.onclick = (event) => this.click(this.cellAt(event));
    this.canvas.onpointerdown = (event) => this.drag(event);
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
    this.scopes = select("What is changed", { head: "this head", layer: "this layer", kind: "all layers" },
      (value) => this.grid.widen(value, this.grid.look.focus));
    const tools = select("What the pointer does to a cell", { point: "Select", mask: "Mask",
      weight: "Weight" }, (value) => {
      this.chosenTool = value;
      this.draw();
    });
    return element("div", { class: "tools" }, tools, this.scopes);
  }

  /** What is chosen, where cells can be changed. */
  get tool() {
    return this.grid.paintable() ? this.chosenTool : "point";
  }

  click(cell) {
    if (!cell) return;
    this.grid.stage.focus({ preventScroll: true }); // keys act on what was selected
    if (this.tool === "mask") this.grid.paintMask(cell);
    else if (this.tool === "point") this.grid.pin(cell);
  }

  /** Upwards the weight of a cell grows, by the height of the picture from 0 to 1. */
  drag(down) {
    const cell = this.tool === "weight" && !down.button && this.cellAt(down);
    if (!cell || !this.grid.byteAt(cell)) return;
    this.canvas.setPointerCapture(down.pointerId);
    const more = (event) => (down.clientY - event.clientY) / this.canvas.clientHeight;
    const end = () => {
      this.canvas.onpointermove = (moved) => this.grid.hover(this.cellAt(moved));
      this.canvas.onpointerup = this.canvas.onpointercancel = null;
    };
    this.canvas.onpointermove = (event) => this.grid.preview(cell, more(event));
    this.canvas.onpointercancel = end;
    this.canvas.onpointerup = (event) => {
      end();
      if (Math.abs(down.clientY - event.clientY) >= DRAGGED) this.grid.weigh(cell, more(event));
    };
  }

  /** What is shown, row by row: one head, or the mean over some. */
  rows(part) {
    const tiles = averaged(part, this.grid.look);
    return Array.from({ length: part.rows }, (_, row) => meanWeights(part, tiles, [row], true));
  }

  name(part) {
    const { focus, average } = this.grid.look;
    const number = part.numbers[focus.layer];
    const which = { heads: `layer ${number}, mean over its heads`,
      layers: `head ${focus.head + 1}, mean over the layers`, both: "mean over all heads" };
    return `${part.name}, ` +
      (which[average] ?? `layer ${number}, head ${focus.head + 1}`);
  }

  /** The picture is drawn when what it shows has changed; the marks follow the pointer. */
  draw() {
    const { data, look, ink, frameWidth, below, pointed, pinned } = this.grid;
    this.link(data, pinned);
    const part = this.grid.part(look.focus.kind);
    this.root.toggleAttribute("hidden", !part?.rows || !part.columns);
    if (this.root.hidden) return;
    this.scopes.value = this.grid.scope;
    this.scopes.hidden = this.grid.scope === "head" && this.tool !== "mask"; // it takes room
    this.tools.hidden = !this.grid.paintable();
    this.canvas.style.touchAction = this.tool === "weight" ? "none" : "";
    const shown = [data, look, ink, frameWidth, below];
    if (!shown.every((value, i) => value === this.shown?.[i])) {
      this.shown = shown;
      this.paint(part);
    }
    this.mark(pointed ?? pinned);
    this.answer(pointed ?? pinned);
  }

  paint(part) {
    const { grid } = this;
    this.heading.textContent = this.name(part);
    this.picture.setAttribute("aria-label", this.name(part));
    const context = this.picture.getContext("2d");
    const [down, across] = [part.query, part.key].map((name) => grid.data.sides[name]);
    const labels = [this.rowLabels(part, down), this.labels(across, part.columns)];
    const [least, most] = LETTERS.map((share) => share * grid.font);
    const longest = (letters) => {
      context.font = `${letters}px ${grid.family}`;
      return labels.map((some) => Math.max(...some.map((label) => context.measureText(label).width)));
    };
    const space = roomBelow(this.box) - 1.6 * most - longest(most)[1] - 10;
    const tallest = Math.max(LEAST, Math.min(TALLEST * window.innerHeight, space));
    const letters = Math.min(most, Math.max(least, tallest / part.rows));
    const [widest, highest] = longest(letters);
    const title = 1.6 * letters;
    const [left, top] = [title + Math.min(widest, 0.4 * this.box.clientWidth) + 6,
      title + highest + 6];
    const cell = Math.max(2, Math.min(LARGEST_CELL,
      Math.floor((this.box.clientWidth - left - 4) / part.columns),
      Math.floor(tallest / part.rows)));
    const size = [left + part.columns * cell + 4, top + part.rows * cell + 4];
    sized(this.picture, ...size);
    this.marks = sized(this.canvas, ...size);
    Object.assign(this, { part, cell, left, top });
    context.fillStyle = grid.hatching;
    context.fillRect(left, top, part.columns * cell, part.rows * cell);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.sheet(part), left, top, part.columns * cell, part.rows * cell);
    context.fillStyle = grid.ink;
    const every = Math.ceil((1.05 * letters) / cell);
    context.font = `${letters}px ${grid.family}`;
    context.textAlign = "right";
    labels[0].forEach((label, at) => at % every || context.fillText(
      label, left - 6, top + (at + 0.5) * cell + 0.35 * letters, left - title - 6));
    context.textAlign = "left";
    labels[1].forEach((label, at) => at % every ||
      writeTurned(context, label, left + (at + 0.5) * cell + 0.35 * letters, top - 6));
    context.fillText(`key (${part.key})`, left, letters);
    context.textAlign = "center";
    writeTurned(context, `query (${part.query})`, letters, top + (part.rows * cell) / 2);
  }

  labels(side, count) {
    return Array.from({ length: count }, (_, at) =>
      side.labels[at * side.every].slice(0, LONGEST_LABEL));
  }

  /** A row of the text that is predicted says what is read and what follows: its weights make
   * that prediction. */
  rowLabels(part, side) {
    const labels = this.labels(side, part.rows);
    if (!side.predicts || side.every > 1) return labels;
    const { rows = [], last = labels.length - 1 } = this.grid.data.answers ?? {};
    const following = labels.slice(1, last + 1);
    following[last] = rows[last]?.[0][0] ?? "…";
    return labels.map((label, at) => (at > last ? label : `${label} → ${following[at]}`)); // padding
  }

  /** One pixel a cell; what is masked is left out. */
  sheet(part) {
    const { rows, columns, cells } = part;
    const { look } = this.grid;
    const colours = pixelColours(look.palette);
    const tiles = averaged(part, look);
    return pixelSheet(rows, columns, (pixels) =>
      this.rows(part).forEach((weights, row) => scaled(weights, look, part.signed).forEach((shown, column) => {
        const at = row * columns + column;
        if (!tiles.some((tile) => cells[tile * rows * columns + at])) return;
        pixels[at] = colours[Math.round(255 * shown)];
      })));
  }

  mark(pointed) {
    const { grid, part, cell, left, top, marks: context } = this;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.strokeStyle = grid.look.colour;
    context.lineWidth = 2;
    const { rows, columns } = grid.marked(pointed);
    for (const row of placesOf(rows, part.query, grid.data.sides))
      context.strokeRect(left, top + row * cell, part.columns * cell, cell);
    for (const column of placesOf(columns, part.key, grid.data.sides))
      context.strokeRect(left + column * cell, top, cell, part.rows * cell);
  }

  /** The most probable next tokens (or classes) at the row that is pointed at, as bars. */
  answer(pointed) {
    const { answers, sides } = this.grid.data;
    if (!answers) {
      this.answered = null;
      return this.answers.replaceChildren();
    }
    const token = pointed?.tokens?.[0] ?? pointed?.row;
    const read = token?.side === answers.side ? token.index : answers.last;
    const row = answers.rows.length === 1 ? 0 : Math.min(read, answers.rows.length - 1);
    if (this.answered?.[0] === answers && this.answered[1] === row) return;
    this.answered = [answers, row];
    const title = answers.rows.length === 1 && answers.title === "Class" ? "Class of the text"
      : `${answers.title} after “${sides[answers.side].labels[row]}”`;
    const bars = answers.rows[row].map(([label, share]) => element("div", { class: "bar" },
      element("span", { dir: "auto" }, label),
      element("span", { class: "length", style: `--share: ${100 * share}%` }),
      element("span", {}, percent(share))));
    this.answers.replaceChildren(element("h4", {}, title), ...bars);
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
    const best = links(data.parts, data.sides, shown);
    const name = (tokens) => tokens.map((token) => grid.labelText(token)).join(" + ");
    const buttons = best.map(({ kind, layer, head, queries, keys, weight }) => {
      const button = element("button", { class: "bar", type: "button" },
        element("span", {}, grid.name({ kind, layer, head })),
        element("span", { class: "length", style: `--share: ${100 * weight}%` }),
        element("span", {}, percent(weight)));
      button.title = `${name(queries)} attends to ${name(keys)}`;
      button.onclick = () => grid.choose({ kind, layer, head }, 0);
      return button;
    });
    this.linked.append(
      element("h4", {}, `Heads between “${name(shown.tokens)}” and “${name(shown.to)}”`),
      ...(buttons.length ? buttons : ["No head may attend from one to the other."]));
  }

  cellAt(event) {
    const { part, cell, left, top, canvas, grid } = this;
    const { rows, columns } = part;
    const under = cellUnder(...pointIn(canvas, event),
      { left, top, across: cell, down: cell, rows, columns });
    if (!under) return null;
    const { layer, head } = grid.look.focus;
    return grid.cell(part, layer * part.heads + head, ...under);
  }
}
