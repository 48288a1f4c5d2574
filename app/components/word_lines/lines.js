// Words of source and target, and lines between those that go together.

import { fill, ramp, stopsOf } from "../shared/colours.js";
import { element, onRecolour, outwards, painted, roomBelow } from "../shared/dom.js";
import { percent } from "../shared/numbers.js";
import { shape } from "../shared/svg.js";

const SMALLEST = 0.65; // of the page's letters: longer sentences stand upright, side by side
const NAMED = 3; // words that a sentence names, the largest weight first
const LEAST = 0.005; // of those after the first
const SOURCE = 0, TARGET = 1;
const HEIGHTS = [6.5, 30]; // of lines that reach down to the foot of the window, in letters
const MARGIN = 12; // px between the words below them and that foot

export class WordLines {
  constructor(root, data) {
    this.data = data;
    this.pointed = null; // [side, word] under the pointer, or where the keys are
    const before = root.lines;
    root.lines = this;
    // What was clicked stays while the words do; else it is what was chosen on another page.
    const isSame = before && String(before.data.words) === String(data.words);
    this.pinned = isSame ? before.pinned : data.chosen ?? null;
    this.status = element("p", { class: "status", role: "status" });
    this.rows = data.words.map((words, side) => {
      const row = element("div", { class: "row" }, element("b", {}, data.titles[side]),
        ...words.map((word, i) => this.word(word, side, i)));
      return row;
    });
    this.lines = shape("svg", { class: "lines", "aria-hidden": "true" });
    this.sheet = element("div", { class: "sheet" }, this.rows[SOURCE], this.lines, this.rows[TARGET]);
    this.frame = element("div", { class: data.tall ? "frame tall" : "frame", tabindex: "0", role: "application",
      "aria-label": "Words and the lines between them. Use the arrow keys to move between words." },
    this.sheet, this.status);
    this.frame.onkeydown = (event) => this.key(event);
    this.frame.onmouseleave = () => this.point(null);
    this.frame.style.setProperty("--hl-focus", data.colour);
    const focused = root.activeElement ?? root.contains(document.activeElement);
    root.querySelector(".frame")?.remove();
    root.append(this.frame);
    if (focused) this.frame.focus({ preventScroll: true });
    const observer = new ResizeObserver(() => {
      if (this.frame.isConnected) this.fit();
      else observer.disconnect(); // others stand in its place
    });
    // What stands above may grow, and the words do when their font arrives.
    for (const node of [this.sheet, ...outwards(this.frame)]) observer.observe(node);
    onRecolour(this.frame, () => this.point(this.pointed));
  }

  word(text, side, i) {
    const node = element("span", { class: "word", dir: "auto" }, text);
    node.onmouseenter = () => this.point([side, i]);
    node.onclick = () => this.pin([side, i]);
    return node;
  }

  /** Letters as large as both rows allow, then the lines. */
  fit() {
    this.sheet.classList.remove("upright");
    this.sheet.style.fontSize = "1em";
    const widest = Math.max(...this.rows.map((row) => row.scrollWidth));
    const share = Math.min(1, this.frame.clientWidth / widest);
    this.upright = share < SMALLEST;
    this.sheet.classList.toggle("upright", this.upright);
    if (!this.upright) this.sheet.style.fontSize = `${Math.floor(100 * share) / 100}em`;
    this.stretch();
    this.draw();
  }

  /** Where nothing stands below the words, they go down to the foot of the window. */
  stretch() {
    const { style } = this.lines;
    style.height = "";
    if (!this.data.tall || this.upright) return;
    const letter = parseFloat(getComputedStyle(this.frame).fontSize);
    const room = roomBelow(this.lines) - this.rows[TARGET].offsetHeight - MARGIN;
    style.height = `${Math.min(Math.max(room, HEIGHTS[0] * letter), HEIGHTS[1] * letter)}px`;
  }

  /** The word whose weights are shown. */
  get at() {
    return this.pointed ?? this.pinned;
  }

  draw() {
    const { data, upright, at } = this;
    const box = this.lines.getBoundingClientRect();
    const middles = this.rows.map((row) => [...row.querySelectorAll(".word")].map((word) => {
      const { left, top, width, height } = word.getBoundingClientRect();
      return upright ? top + height / 2 - box.top : left + width / 2 - box.left;
    }));
    const far = upright ? box.width : box.height;
    const point = (along, across) => (upright ? `${across} ${along}` : `${along} ${across}`);
    const line = ([source, target], kind) => {
      const [from, to] = [middles[SOURCE][source], middles[TARGET][target]];
      const path = shape("path", { class: kind, d: `M ${point(from, 0)} ` +
        `C ${point(from, far / 2)}, ${point(to, far / 2)}, ${point(to, far)}` });
      path.style.setProperty("--weight", data.weights[target][source]);
      path.classList.toggle("pointed", at !== null && [source, target][at[0]] === at[1]);
      return path;
    };
    this.lines.replaceChildren(...data.before.map((link) => line(link, "before")),
      ...data.links.map((link) => line(link, "now")));
    painted("words");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [side, i] = this.at ?? [TARGET, -1];
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const row = { ArrowUp: SOURCE, ArrowDown: TARGET }[event.key];
    const within = (on, to) => Math.min(Math.max(to, 0), this.data.words[on].length - 1);
    if (by) this.point([side, within(side, i + by)]);
    else if (row !== undefined) this.point([row, within(row, i)]);
    else if (event.key === "Enter" && this.at) this.pin(this.at);
    else if (event.key === "Escape" && this.at) {
      this.pointed = null;
      this.pin(null);
    }
    else return;
    event.preventDefault();
  }

  /** Selects a word, or lets the one go that is selected. */
  pin(word) {
    const before = this.pinned;
    this.pinned = String(word) === String(before) ? null : word;
    this.point(this.pinned ? this.pointed : null);
    if (String(this.pinned) !== String(before)) this.onPin(this.pinned);
  }

  onPin() {}

  point(word) {
    this.pointed = word;
    const { at, pinned } = this;
    const { words, weights, note, moments, palette } = this.data;
    const colour = ramp(stopsOf(palette, getComputedStyle(this.frame).color));
    const partners = at === null ? [] : at[0] === TARGET
      ? weights[at[1]] : weights.map((row) => row[at[1]]);
    this.rows.forEach((row, side) => [...row.querySelectorAll(".word")].forEach((word, i) => {
      const here = [side, i].join();
      word.classList.toggle("pointed", String(at) === here);
      word.classList.toggle("pinned", String(pinned) === here);
      const share = at !== null && at[0] !== side ? partners[i] : 0;
      fill(word, share < LEAST ? null : colour(share));
    }));
    this.lines.classList.toggle("dimmed", at !== null);
    this.draw();
    if (at === null) {
      this.status.textContent = note;
      return;
    }
    const others = words[1 - at[0]];
    const best = partners.map((share, i) => [share, others[i]]).sort(([a], [b]) => b - a)
      .filter(([share], rank) => !rank || share >= LEAST);
    const name = (at[0] === TARGET && moments?.[at[1]]) || words[at[0]][at[1]];
    const isPinned = String(at) === String(pinned);
    // Shares of what others attend to need not add up to 1.
    const lead = at[0] === SOURCE ? `${name}: attended to most by` : `${name}:`;
    this.status.textContent = `${lead} ${best.slice(0, NAMED)
      .map(([share, word]) => `${word} (${percent(share)})`).join(", ")}` +
      (isPinned ? ". Selected; press Esc to clear." : "");
  }
}
