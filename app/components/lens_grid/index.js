// The logit lens: a column for each row of the logits, layers upwards, and in a cell what the model
// would predict there. The darker, the more probable is what it predicts in the end.

import { inkOn, ramp, stopsOf } from "../shared/colours.js";
import { element, heightBelow, onRecolour, painted, roomBelow } from "../shared/dom.js";
import { Picture, mounted } from "../shared/mounted.js";
import { percent } from "../shared/numbers.js";

const NARROW = 34; // in letters: below this the grid is turned, rows across
const [LOWEST, HIGHEST, FLAT] = [1.5, 12, 2.5]; // in letters: of a cell, and below which it has no number
const LEAST = { upright: 2.7, flat: 3.2 }; // in letters: the width of a column, below which the grid scrolls
const MARGIN = 1.6; // in letters: at the foot of the page
const WRITTEN = 0.05; // smaller probabilities are read, not written
const PACE = 1000; // ms for each layer
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

class LensGrid extends Picture {
  playing = null; // the deepest layer that is shown while it plays

  constructor(root) {
    super(root);
    this.scroll = element("div", { class: "scroll" });
    this.legend = element("p", {}, element("span", {}, "blue: the probability of the final prediction"),
      element("span", {}, element("i"), " from here on the final prediction"),
      element("span", {}, "bold: the final prediction"),
      element("span", {}, "number: the probability of the word shown"));
    this.reading = element("p", { role: "status" });
    this.reading.hidden = true;
    this.button = element("button", { type: "button" });
    this.button.onclick = () => this.play();
    this.frame.append(this.scroll, element("div", { class: "foot" }, this.legend, this.reading, this.button));
    this.frame.onpointerleave = () => this.read(null);
    onRecolour(this.legend, () => this.colour());
    this.label();
  }

  leave() {
    clearTimeout(this.timer);
  }

  again({ row }) {
    this.mark(row);
  }

  show(data) {
    const isSame = this.data && JSON.stringify({ ...this.data, row: 0 }) === JSON.stringify({ ...data, row: 0 });
    this.data = data;
    this.frame.style.setProperty("--focus", data.focus);
    if (!isSame) {
      this.stop();
      this.isUpright = null; // a table of its own
    }
    this.fit();
    this.mark(data.row);
  }

  depthName(depth) {
    const last = this.data.answers.length - 1;
    if (this.isUpright) return depth ? (depth === last ? "output" : `layer ${depth}`) : "in";
    return depth ? (depth === last ? `layer ${depth}: output` : `after layer ${depth}`) : "before layer 1";
  }

  build() {
    const { answers, after, settled, probability } = this.data;
    const last = answers.length - 1;
    const depths = [...answers.keys()], rows = [...after.keys()];
    this.cells = depths.map((depth) => rows.map((row) => {
      const text = answers[depth][row];
      const cell = element("td", { role: "gridcell", tabindex: "-1", dir: "auto" },
        element("span", {}, text.trim() || "(space)"),
        element("small", {}, probability[depth][row] >= WRITTEN ? percent(probability[depth][row]) : ""));
      cell.classList.toggle("same", text === answers[last][row]);
      cell.classList.toggle("settled", settled[row] === depth);
      cell.onpointerenter = cell.onfocus = () => this.read([depth, row]);
      cell.onclick = () => this.choose(row);
      Object.assign(cell, { depth, row });
      return cell;
    }));
    const heading = (scope, text) => element("th", { scope, dir: "auto" }, text);
    const depthHead = (scope) => (depth) => heading(scope, this.depthName(depth));
    this.heads = rows.map((row) => {
      const head = heading(this.isUpright ? "row" : "col", after[row]);
      head.onclick = () => this.choose(row);
      return head;
    });
    const upwards = [...depths].reverse();
    const across = this.isUpright ? depths.map(depthHead("col")) : this.heads;
    const lines = this.isUpright
      ? rows.map((row) => [this.heads[row], depths.map((depth) => this.cells[depth][row])])
      : upwards.map((depth) => [depthHead("row")(depth), this.cells[depth]]);
    this.lines = lines.map(([, cells]) => cells);
    const line = ([head, cells]) => element("tr", {}, head, ...cells);
    this.table = element("table", { role: "grid", "aria-label": "Prediction after each layer" },
      element("thead", {}, line([heading("col", "having read"), across])),
      element("tbody", {}, ...lines.map(line)));
    this.scroll.replaceChildren(this.table);
    this.frame.classList.toggle("upright", this.isUpright);
    this.colour();
    this.cover();
    this.mark(this.data.row);
  }

  colour() {
    const colour = ramp(stopsOf(this.data.palette, getComputedStyle(this.frame).color));
    for (const cell of this.cells.flat()) {
      // A cell of 0% is a cell, too; and few shades are those on which no ink is read well.
      const shown = colour(0.06 + 0.94 * this.data.final[cell.depth][cell.row] ** 0.7).map(Math.round);
      cell.style.background = `rgb(${shown})`;
      cell.style.color = inkOn(shown);
    }
  }

  /** Marks the selected row, whose last cell is the one stop of the Tab key. */
  mark(row) {
    this.data.row = row;
    this.heads.forEach((head, i) => head.classList.toggle("selected", i === row));
    for (const cell of this.cells.flat()) {
      cell.classList.toggle("selected", cell.row === row);
      cell.setAttribute("aria-selected", String(cell.row === row));
    }
    this.stopAt(this.cells.at(-1)[row]);
  }

  stopAt(cell) {
    if (this.stopped) this.stopped.tabIndex = -1;
    this.stopped = cell;
    if (cell) cell.tabIndex = 0;
  }

  choose(row) {
    if (row === this.data.row) return;
    this.mark(row);
    this.tell("row", row);
  }

  fit() {
    if (!this.data || !this.frame.clientWidth) return;
    const letter = parseFloat(getComputedStyle(this.frame).fontSize);
    const isUpright = this.frame.clientWidth < NARROW * letter;
    if (isUpright !== this.isUpright) {
      this.isUpright = isUpright;
      this.build();
    }
    const { length: count } = this.data.after;
    const columns = isUpright ? this.data.answers.length : count;
    const wide = (this.frame.clientWidth - (isUpright ? 5 : 7) * letter) / columns;
    const room = roomBelow(this.scroll) - heightBelow(this.frame) - (MARGIN + 2.1) * letter;
    const head = this.table.tHead.offsetHeight + 0.8 * letter;
    const high = isUpright ? 2.6 * letter : (room - head) / this.lines.length - 3;
    const cell = Math.min(HIGHEST * letter, Math.max(LOWEST * letter, Math.floor(high)));
    this.frame.style.setProperty("--cell", `${cell}px`);
    this.frame.classList.toggle("flat", cell < FLAT * letter);
    const letters = Math.min(letter, Math.max(13, wide / 3.9));
    this.frame.style.setProperty("--letters", `${letters}px`);
    const least = isUpright ? LEAST.upright : LEAST.flat;
    this.table.style.minWidth = wide < least * letter ? `${(least * columns + 7) * letter}px` : "";
    this.scroll.style.maxHeight = isUpright ? "" : `${Math.max(room, 12 * letter)}px`;
    painted("lens");
  }

  /** Reads a cell, or shows what the colours mean. */
  read(at) {
    this.legend.hidden = Boolean(at);
    this.reading.hidden = !at;
    if (!at) return;
    const { answers, after, probability, final, rank } = this.data;
    const [depth, row] = at;
    const [here, end] = [answers[depth][row], answers.at(-1)[row]];
    const where = `${this.depthName(depth)}, having read “${after[row]}”: “${here}” ${percent(probability[depth][row], 1)}`;
    this.reading.textContent = here === end ? `${where}, the final prediction`
      : `${where}; “${end}”, the final prediction, ${percent(final[depth][row], 1)}, rank ${rank[depth][row].toLocaleString("en")}`;
  }

  label() {
    const isPlaying = this.playing !== null;
    this.button.replaceChildren(isPlaying ? "❚❚ Stop" : "▶ Layer by layer", element("kbd", {}, "space"));
  }

  play() {
    if (this.playing !== null) return this.stop();
    this.playing = -1;
    this.step();
    this.label();
  }

  step() {
    this.playing++;
    this.cover();
    if (this.playing === this.data.answers.length - 1) return this.stop();
    this.timer = setTimeout(() => this.step(), PACE);
  }

  stop() {
    clearTimeout(this.timer);
    this.playing = null;
    if (this.cells) this.cover();
    this.label();
  }

  cover() {
    for (const cell of this.cells.flat())
      cell.classList.toggle("later", this.playing !== null && cell.depth > this.playing);
  }

  key(event) {
    const { key } = event;
    const [at] = event.composedPath();
    if (key === " " && at !== this.button) this.play();
    else if (key === "Enter" && at.localName === "td") this.choose(at.row);
    else if (key === "Escape" && this.playing !== null) this.stop();
    else if (MOVES[key]) {
      const [down, across] = MOVES[key];
      const isOn = at.localName === "td";
      const line = this.lines.findIndex((cells) => cells.includes(this.stopped));
      const to = this.lines[line + down]?.[this.lines[line].indexOf(this.stopped) + across];
      const next = isOn ? to : this.stopped;
      if (next) {
        this.stopAt(next);
        next.focus();
      }
    } else return false;
    return true;
  }
}

export default mounted(LensGrid);
