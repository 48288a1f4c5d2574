// The head's matrix as a thumbnail, in which one chooses the row.

import { ramp, stopsOf } from "../shared/colours.js";
import { element } from "../shared/dom.js";
import { drawCells, hatching, sized } from "../shared/heatmap.js";

const TALLEST = 2; // in letters: a row
const CELL = 1.7; // in letters: the widest cell
const LABEL = 0.85; // in letters: the letters of a label
const LEAST_LABEL = 0.72; // in letters: of lower rows, every so many have a label

export class Rows {
  constructor(head, weights, choose) {
    Object.assign(this, { head, weights });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.options = head.rows.map((name, row) => {
      const label = element("div", { role: "option", id: `row${row}`, "aria-selected": "false" }, element("span", {}, name));
      label.onclick = () => choose(row);
      return label;
    });
    this.node = element("div", { class: "rows", role: "listbox", tabindex: "0", "aria-label": "Row" },
      this.canvas, ...this.options);
  }

  mark(row) {
    this.options.forEach((label, i) => {
      label.setAttribute("aria-selected", String(i === row));
      const isApart = Math.abs(i - row) * this.down >= LEAST_LABEL * this.letter;
      label.classList.toggle("bare", i !== row && (i % this.every !== 0 || (this.every > 1 && !isApart)));
    });
    this.node.setAttribute("aria-activedescendant", `row${row}`);
  }

  draw(height, row) {
    const { head } = this;
    this.height = height;
    const style = getComputedStyle(this.node);
    const letter = (this.letter = parseFloat(style.fontSize));
    const [count, columns] = [head.rows.length, head.keys.length];
    const context = this.canvas.getContext("2d");
    context.font = `${LABEL * letter}px ${style.fontFamily}`;
    const longest = Math.max(...head.rows.map((name) => context.measureText(name).width));
    const left = Math.min(longest + 0.6 * letter, 6 * letter);
    this.down = Math.min(TALLEST * letter, height / count);
    this.every = Math.ceil((LEAST_LABEL * letter) / this.down);
    const across = Math.min(CELL * letter, (this.node.clientWidth - left) / columns);
    const pen = sized(this.canvas, across * columns, this.down * count);
    pen.fillStyle = hatching(style.color);
    head.mask.forEach((isAllowed, at) => {
      if (isAllowed) return;
      pen.fillRect((at % columns) * across, Math.floor(at / columns) * this.down, across, this.down);
    });
    const cells = { rows: count, columns, left: 0, top: 0, across, down: this.down };
    drawCells(pen, cells, this.weights, ramp(stopsOf(head.palette, style.color)), false);
    this.canvas.style.left = `${left}px`;
    this.node.style.height = `${this.down * count}px`;
    this.node.style.setProperty("--left", `${left}px`);
    this.node.style.setProperty("--wide", `${left + across * columns}px`);
    this.node.style.setProperty("--label", `${Math.min(LABEL * letter, Math.max(LEAST_LABEL * letter, this.down))}px`);
    this.options.forEach((label, i) => {
      label.style.top = `${i * this.down}px`;
      label.style.height = `${this.down}px`;
    });
    this.mark(row);
  }
}
