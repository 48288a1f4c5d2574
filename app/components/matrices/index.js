// Matrices as pictures: cells in colour, their numbers where they fit, and in words what is under
// the pointer. The row that is followed, or the cell that is selected, has a frame.

import { ramp, stopsOf } from "../shared/colours.js";
import { element, heightBelow, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import { cellUnder, drawCells, hatching, pointIn, sized, writeTurned } from "../shared/heatmap.js";
import { exact, percent, short } from "../shared/numbers.js";
import { headerOf } from "../shared/packed.js";

const SMALL = 0.05; // weights under this have no number
const [LEAST, LABEL, NUMBER] = [0.62, 0.9, 0.85]; // in letters: smaller where cells are small
const AROUND = [2.8, 1.25]; // across and down: a cell that holds a number, in the number's letters
const TALL = 26; // rows up to which each gets the height of a letter
const FLATTEST = 0.45; // in letters: the least height of a row, to end where the window ends
const FLATTEST_OF_MANY = 0.25; // the same of more than TALL rows
const GAP = 1.6; // in letters: between matrices, as in the style
const ROUNDING = 1e-6;
const MARGIN = 1.5; // in letters: at the foot of the page
const BROKEN = [179, 36, 43]; // a cell that breaks a law
const FAINTEST = 0.1; // of the scale: the least that anything has on a logarithmic one
const FILLING = [15, 9]; // in letters: the largest cell, across and down, where they fill the page

/** The bytes of pack(). */
export function unpack(bytes) {
  const [header, first] = headerOf(bytes);
  let start = bytes.byteOffset + first;
  for (const one of header.matrices) {
    const [rows, columns] = one.values;
    const end = start + 4 * rows * columns;
    one.cells = new Float32Array(bytes.buffer.slice(start, end)); // a copy, because of alignment
    start = end;
  }
  return header;
}

/** Whether the columns are numbers beside rows with labels: what they count stands before them. */
const isCounted = ({ labelled, rows, columns }) => labelled && rows.length > 0 && !columns.length;

/** Every so many of a count, and the marked one, if any, instead of those too near to it. */
function* spaced(count, every, marked) {
  for (let at = 0; at < count; at++)
    if (at === marked || (at % every === 0 && !(marked >= 0 && Math.abs(at - marked) < every))) yield at;
}

/** The share of a change on a scale of so many decades: a small leak is a leak. */
const logarithmic = (value, decades) =>
  value > 10 ** -decades ? Math.max(FAINTEST, 1 + Math.log10(value) / decades) : 0;

/** The size of a change, whether or not it breaks a law. */
function change(value, decades) {
  const size = Math.abs(value);
  return size > 9.99 ? ">999%" : percent(size < 10 ** -decades ? 0 : size);
}

class Matrices {
  choose = () => {}; // hears of a row or cell that is clicked

  constructor(header, root) {
    Object.assign(this, header);
    this.message = element("p", { class: "message" });
    this.all = element("div", { class: "all" });
    // Above: a window may end with the pictures.
    this.frame = element("div", { class: "frame" }, this.message, this.all);
    root.querySelector(".frame")?.remove(); // the style beside it stays
    root.append(this.frame);
    for (const one of this.matrices) this.add(one);
    this.observer = new ResizeObserver(() => this.draw());
    for (const node of outwards(this.frame)) this.observer.observe(node); // the bar may grow
    onRecolour(this.frame, () => this.draw());
  }

  add(one) {
    const [rows, columns] = one.values;
    one.canvas = element("canvas", { role: "img", "aria-label":
      `${one.title}: ${rows} rows (${one.row_name}), ${columns} columns (${one.column_name})` });
    one.canvas.matrix = one; // for whoever reads the numbers of a picture
    one.canvas.onpointermove = (event) => this.point(one, event);
    one.canvas.onpointerleave = () => (this.message.textContent = "");
    if (one.chooses) one.canvas.onclick = (event) => this.click(one, event);
    const axes = !this.fills && one.columns.length ? `, rows: ${one.row_name}, columns: ${one.column_name}` : "";
    const title = element("h2", {}, one.title, element("small", {}, ` ${rows} × ${columns}${axes}`));
    const isNamed = !this.fills || this.matrices.length > 1; // else above the picture
    this.all.append(element("div", { class: "one" }, ...(isNamed ? [title] : []), one.canvas));
    let { largest } = one;
    if (!largest && one.weights) largest = 1;
    if (!largest) for (const value of one.cells)
      if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
    largest ||= 1;
    one.share = (value) => (one.decades ? logarithmic(value, one.decades) : one.weights ? value / largest : 0.5 + value / largest / 2);
  }

  draw() {
    if (!this.frame.isConnected) return this.observer.disconnect(); // others stand in its place
    if (!this.frame.clientWidth) return; // hidden: there is no room to share out
    const style = getComputedStyle(this.frame);
    const ink = style.color;
    const below = this.fills ? heightBelow(this.frame) : 0;
    const shown = [this.frame.clientWidth, ink, Math.round(roomBelow(this.frame) - below)];
    if (shown.every((value, i) => value === this.shown?.[i])) return;
    [this.width, this.ink] = this.shown = shown;
    this.letter = parseFloat(style.fontSize);
    this.font = (size) => `${size}px ${style.fontFamily}`;
    const room = roomBelow(this.matrices[0].canvas) - below;
    for (const one of this.matrices) {
      const left = isCounted(one) ? [...one.rows, one.column_name] : one.rows;
      one.left = !one.labelled ? 2
        : this.letter * (one.rows.length ? 0.6 : 2.6) + this.widest(one, left);
    }
    const least = (one) => (one.decades ? AROUND[0] : 0.5) * LEAST * this.letter;
    const fits = this.matrices.every((one) => this.abreast(one) >= least(one));
    for (const one of this.matrices) this.paint(one, this.fills && fits ? room : null);
    painted("matrices");
  }

  /** The width of labels, in a small letter, up to nine of the page's letters. */
  widest(one, labels) {
    const context = one.canvas.getContext("2d");
    context.font = this.font(this.letter * LABEL);
    return Math.min(Math.max(0, ...labels.map((text) => context.measureText(text).width)),
      this.letter * 9);
  }

  /** The width of a matrix's columns where all matrices stand side by side: each has as much room
   * for its cells. */
  abreast({ values: [, columns] }) {
    const labels = this.matrices.reduce((sum, { left }) => sum + left + 4, 0);
    const gaps = (this.matrices.length - 1) * GAP * this.letter;
    return (this.width - labels - gaps) / this.matrices.length / columns;
  }

  /** `room`: the height that matrices side by side fill; null where they do not. */
  paint(one, room) {
    const colour = ramp(stopsOf(one.palette, this.ink));
    one.colour = (value) => (one.decades && value < 0 ? BROKEN : colour(one.share(value)));
    const { letter } = this;
    const [rows, columns] = one.values;
    const [across, down] = room === null
      ? [(this.width - one.left - 4) / columns, roomBelow(one.canvas) - 8]
      : [this.abreast(one), room - MARGIN * letter];
    const [broadest, highest] = room === null ? [3.2, 1.5] : FILLING;
    one.across_ = Math.min(across, letter * broadest);
    const longest = this.widest(one, one.columns);
    one.turned = longest > one.across_ - 0.3 * letter;
    one.top = one.turned ? longest + letter * 0.6 : letter * 1.4;
    const fitting = (least) => Math.max(least * letter, (down - one.top) / rows);
    one.down = rows > TALL
      ? Math.max(2, Math.min((letter * 1.5 * TALL) / rows, fitting(FLATTEST_OF_MANY)))
      : Math.min(highest * letter, fitting(one.decades ? AROUND[1] * NUMBER : FLATTEST));
    const [width, height] = [one.left + one.across_ * columns + 4, one.top + one.down * rows + 4];
    const context = sized(one.canvas, width, height);
    this.cells(one, context);
    this.labels(one, context);
    this.marks(one, context);
  }

  cells(one, context) {
    const { letter } = this;
    const size = Math.min(NUMBER * letter, one.across_ / AROUND[0], one.down / AROUND[1]);
    context.font = this.font(size);
    context.fillStyle = hatching(this.ink);
    one.cells.forEach((value, at) => {
      if (Number.isFinite(value)) return; // what is no number is masked
      const [row, column] = [Math.floor(at / one.values[1]), at % one.values[1]];
      context.fillRect(one.left + column * one.across_, one.top + row * one.down,
        one.across_, one.down);
    });
    const isWritten = one.numbers && size >= LEAST * letter;
    const text = one.decades ? (value) => (value < 0 ? change(value, one.decades) : "")
      : one.weights ? (value) => (value < SMALL ? "" : short(value)) : undefined;
    drawCells(context, this.box(one), one.cells, one.colour, isWritten, text);
  }

  /** Where on its canvas the cells of a matrix are. */
  box({ values: [rows, columns], left, top, across_: across, down }) {
    return { rows, columns, left, top, across, down };
  }

  labels(one, context) {
    const [rows, columns] = one.values;
    const { letter } = this;
    context.fillStyle = this.ink;
    const size = (cell) => Math.min(LABEL * letter, Math.max(LEAST * letter, cell / 1.15));
    context.font = this.font(size(one.down));
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.ceil((1.15 * size(one.down)) / one.down - ROUNDING);
    for (const row of one.labelled ? spaced(rows, every, one.follow) : []) {
      const text = one.rows.length ? one.rows[row] : String(row + 1);
      const y = one.top + (row + 0.5) * one.down;
      context.fillText(text, one.left - letter * 0.3, y, one.left - letter * 0.3);
    }
    const named = one.columns.length > 0;
    context.font = this.font(one.turned ? size(one.across_) : LABEL * letter);
    context.textAlign = "right";
    if (isCounted(one)) {
      const right = one.left - 0.6 * letter;
      context.fillText(one.column_name, right, one.top - 0.6 * letter, right);
    }
    const step = one.turned
      ? Math.ceil((1.15 * size(one.across_)) / one.across_ - ROUNDING)
      : named ? 1 : Math.max(1, Math.ceil((letter * 3) / one.across_));
    for (const column of spaced(columns, step, one.column)) {
      const x = one.left + (column + 0.5) * one.across_;
      const y = one.top - letter * 0.3;
      const text = named ? one.columns[column] : String(column + 1);
      context.textAlign = one.turned ? "left" : "center";
      if (one.turned) writeTurned(context, text, x, y, y);
      else context.fillText(text, x, y - letter * 0.3);
    }
  }

  marks(one, context) {
    const [rows, columns] = one.values;
    const [width, height] = [one.across_ * columns, one.down * rows];
    context.lineWidth = 1.5;
    context.strokeStyle = this.ink;
    const size = (one.across ? width : height) / one.bands;
    for (let band = 0; one.bands > 1 && band < one.bands; band++) {
      const at = band * size;
      context.fillStyle = this.lines[band % this.lines.length];
      context.beginPath();
      if (one.across) {
        context.fillRect(one.left + at, one.top - 6, size, 5);
        context.moveTo(one.left + at, one.top);
        context.lineTo(one.left + at, one.top + height);
      } else {
        context.fillRect(one.left - 6, one.top + at, 5, size);
        context.moveTo(one.left, one.top + at);
        context.lineTo(one.left + width, one.top + at);
      }
      context.stroke();
    }
    context.strokeStyle = this.focus;
    context.lineWidth = 3;
    if (one.bands > 1) {
      const at = one.band * size;
      if (one.across) context.strokeRect(one.left + at, one.top, size, height);
      else context.strokeRect(one.left, one.top + at, width, size);
    }
    const top = one.top + one.follow * one.down;
    if (one.single) {
      const left = one.left + one.column * one.across_;
      if (one.follow >= 0) context.strokeRect(left, top, one.across_, one.down);
      return;
    }
    if (one.follow >= 0) context.strokeRect(one.left, top, width, one.down);
    if (one.follow >= 0 && one.column >= 0) {
      context.lineWidth = 1.5;
      context.strokeRect(one.left + one.column * one.across_, one.top, one.across_, height);
    }
  }

  /** The row whose cells, or whose label, an event is on; −1 if it is on none. */
  rowUnder(one, event) {
    const { left, across, columns, ...rows } = this.box(one);
    const whole = { ...rows, left: 0, across: left + columns * across, columns: 1 };
    return cellUnder(...pointIn(one.canvas, event), whole)?.[0] ?? -1;
  }

  /** Chooses the row of a cell or of a label, and of a cell the column, where that can be chosen;
   * lets a chosen single cell go. One that is only framed, as when the page opens, is chosen. */
  click(one, event) {
    const row = this.rowUnder(one, event);
    const column = cellUnder(...pointIn(one.canvas, event), this.box(one))?.[1];
    const isCell = one.chooses_column && column !== undefined;
    const isFramed = row === one.follow && (!isCell || column === one.column);
    const isChosen = isFramed && (!one.single || one.pinned);
    if (row < 0 || (one.single ? !isCell : isChosen)) return;
    const [at, beside] = isChosen ? [-1, -1] : [row, column];
    if (one.single) this.pin(one, !isChosen);
    this.choose({ [one.chooses]: at, ...(isCell ? { [one.chooses_column]: beside } : {}) });
  }

  /** Notes whether a cell of a matrix is chosen. The data say so, too, but only in the next picture, and
   * Esc may come before it. */
  pin(one, isChosen) {
    for (const each of this.matrices) each.pinned = isChosen && each === one;
  }

  /** Lets the chosen cell go, where one is seen; whether there was one. */
  letGo() {
    const one = this.matrices.find(({ pinned }) => pinned);
    if (!one || !this.frame.isConnected) return false;
    this.pin(one, false);
    this.choose({ [one.chooses]: -1, [one.chooses_column]: -1 });
    return true;
  }

  point(one, event) {
    const under = cellUnder(...pointIn(one.canvas, event), this.box(one));
    const isOver = one.single ? under : this.rowUnder(one, event) >= 0;
    one.canvas.classList.toggle("choosable", Boolean(one.chooses && isOver));
    if (!under) {
      this.message.textContent = "";
      return;
    }
    const [row, column] = under;
    const name = (labels, index, side) => (labels.length ? `“${labels[index]}”` : `${side} ${index + 1}`);
    const value = one.cells[row * one.values[1] + column];
    this.message.textContent = `${one.title}: ${name(one.rows, row, one.row_name)}, ` +
      `${name(one.columns, column, one.column_name)}: ` +
      (!Number.isFinite(value) ? one.blank : one.decades ? change(value, one.decades)
        : one.weights && !one.largest ? `${percent(value)} (${exact(value)})` : exact(value));
  }
}

const shown = new WeakMap(); // where → {data, picture}

export default function ({ data, parentElement, setTriggerValue }) {
  const before = shown.get(parentElement);
  if (before?.data === data) {
    before.picture.draw();
    return;
  }
  before?.picture.observer.disconnect();
  const picture = new Matrices(unpack(data), parentElement);
  picture.choose = (chosen) => setTriggerValue("chosen", chosen);
  (window.headlight ??= {}).matrices = picture; // Esc lets its cell go
  shown.set(parentElement, { data, picture });
}
