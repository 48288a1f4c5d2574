// The head in focus, large and with its tokens; it follows the grid of the same page.

import { averaged, meanWeights } from "../head_grid/cells.js";
import { pixelColours } from "../shared/colours.js";
import { element } from "../shared/dom.js";
import { cellUnder, pixelSheet, pointIn, sized, writeTurned } from "../shared/heatmap.js";

const ROOM = 900; // px for cells
const LARGEST_CELL = 34;
const MOST_LABELS = 64;

export class Focus {
  constructor(grid, root) {
    this.grid = grid;
    this.heading = element("h2");
    this.canvas = element("canvas", { role: "img" });
    this.box = element("div", { class: "focused" }, this.canvas);
    root.append(this.heading, this.box);
    this.canvas.onpointermove = (event) => grid.hover(this.cellAt(event));
    this.canvas.onpointerleave = () => grid.hover(null);
    const point = grid.point.bind(grid);
    grid.point = () => {
      point();
      this.draw();
    };
  }

  /** What is shown, row by row: one head, or the mean over some. */
  rows(part) {
    const tiles = averaged(part, this.grid.look);
    return Array.from({ length: part.rows }, (_, row) => meanWeights(part, tiles, row, true));
  }

  name(part) {
    const { focus, average } = this.grid.look;
    const number = part.numbers[focus.layer];
    const which = { heads: `layer ${number}, mean over its heads`,
      layers: `head ${focus.head + 1}, mean over the layers`, both: "mean over all heads" };
    return `${part.name}, ` +
      (which[average] ?? `layer ${number}, head ${focus.head + 1}`);
  }

  draw() {
    const { grid } = this;
    const part = grid.part(grid.look.focus.kind);
    if (!part?.rows || !part.columns) return this.box.parentElement.toggleAttribute("hidden", true);
    const { pointed, pinned } = grid;
    const state = JSON.stringify([grid.look.focus, grid.ink, pointed, pinned]);
    if (state === this.drawn) return;
    this.drawn = state;
    const name = this.name(part);
    this.heading.textContent = name;
    this.canvas.setAttribute("aria-label", name);
    const sides = [part.query, part.key].map((side) => grid.data.sides[side]);
    const counts = [part.rows, part.columns];
    const cell = Math.max(2, Math.min(LARGEST_CELL, Math.floor(ROOM / Math.max(...counts))));
    const [labels, everies] = [[], []];
    const context = this.canvas.getContext("2d");
    sides.forEach((side, i) => {
      const every = Math.ceil(Math.max(counts[i] / MOST_LABELS, 11 / cell));
      everies.push(every);
      labels.push(Array.from({ length: counts[i] }, (_, at) =>
        at % every ? "" : side.labels[at * side.every].slice(0, 32)));
    });
    const sizes = everies.map((every) => Math.min(15, 0.85 * cell * every));
    const widest = labels.map((some, i) => {
      context.font = `${sizes[i]}px ${grid.family}`;
      return Math.max(...some.map((label) => context.measureText(label).width));
    });
    const [left, top] = [widest[0] + 38, widest[1] + 38];
    const [width, height] = [left + part.columns * cell + 4, top + part.rows * cell + 4];
    sized(this.canvas, width, height);
    Object.assign(this, { part, cell, left, top });
    context.drawImage(this.cells(part), left, top, part.columns * cell, part.rows * cell);
    context.fillStyle = grid.ink;
    labels[0].forEach((label, at) => {
      context.font = `${sizes[0]}px ${grid.family}`;
      context.textAlign = "right";
      context.fillText(label, left - 6, top + (at + 0.5) * cell + 0.35 * sizes[0]);
    });
    const turned = (text, x, y, size, align) => {
      context.font = `${size}px ${grid.family}`;
      context.textAlign = align;
      writeTurned(context, text, x, y);
    };
    labels[1].forEach((label, at) =>
      turned(label, left + (at + 0.5) * cell + 0.35 * sizes[1], top - 6, sizes[1], "left"));
    turned(`who asks (${part.query})`, 16, top + (part.rows * cell) / 2, 15, "center");
    context.font = `15px ${grid.family}`;
    context.textAlign = "left";
    context.fillText(`who is looked at (${part.key})`, left, 16);
    this.mark(context, pointed ?? pinned);
  }

  /** The cells as a picture, painted once: the pointer changes neither weights nor look. */
  cells(part) {
    const { data, look } = this.grid;
    if (this.painted?.data !== data || this.painted.look !== look)
      this.painted = { data, look, sheet: this.sheet(part) };
    return this.painted.sheet;
  }

  /** One pixel a cell, enlarged. A row that may attend to nothing is blank. */
  sheet(part) {
    const { rows, columns } = part;
    const { palette, least } = this.grid.look;
    const colours = pixelColours(palette);
    const canvas = pixelSheet(rows, columns, (pixels) =>
      this.rows(part).forEach((weights, row) => {
        if (!weights.some((weight) => weight > 0)) return;
        weights.forEach((weight, column) => {
          const shown = weight < least ? 0 : weight;
          pixels[row * columns + column] = colours[Math.round(255 * shown)];
        });
      }));
    const { cell } = this;
    const large = element("canvas", { width: columns * cell, height: rows * cell });
    const enlarged = large.getContext("2d");
    enlarged.imageSmoothingEnabled = false;
    enlarged.drawImage(canvas, 0, 0, large.width, large.height);
    return large;
  }

  mark(context, pointed) {
    const { grid, part, cell, left, top } = this;
    const [row, column] = pointed?.token ? [pointed.token, pointed.token]
      : [pointed?.row, pointed?.column];
    context.strokeStyle = grid.look.colour;
    context.lineWidth = 2;
    const at = ({ side, index }) => Math.floor(index / grid.data.sides[side].every) * cell;
    if (row?.side === part.query)
      context.strokeRect(left, top + at(row), part.columns * cell, cell);
    if (column?.side === part.key)
      context.strokeRect(left + at(column), top, cell, part.rows * cell);
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
