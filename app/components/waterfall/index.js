// A waterfall: steps up and down from 0 to a total, in the order of the pass or the largest first, and
// the probabilities that follow from it. Hovering or ↑ ↓ reads a step; ← → or a click takes another word.

import { element, heightBelow, painted, roomBelow } from "../shared/dom.js";
import { Picture, mounted } from "../shared/mounted.js";
import { minus, percent } from "../shared/numbers.js";
import { shape } from "../shared/svg.js";

const NARROW = 34; // in letters: below this the answers stand under the picture
const [LOWEST, MARGIN] = [17, 1.2]; // in letters: of the picture, and at the foot of the page
const NAMED = [0.035, 14]; // terms with a name: at least this share of the height, at most so many
const REST = 150; // ms without a key before the server hears of another word
const PATIENCE = 5000; // ms in which its answer comes, or is lost
const HEARD = 250; // ms without a key before a screen reader hears of a step

const named = (text) => (["", "␣"].includes(text.trim()) ? "(space)" : text);
const fixed = (value) => minus(value.toFixed(2));
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

/** Runs of neighbours that are alike, as [first, end, one of them]. */
function runs(steps, key) {
  const found = [];
  steps.forEach((step, i) => {
    const last = found.at(-1);
    if (last && key(last[2]) === key(step)) last[1] = i + 1;
    else found.push([i, i + 1, step]);
  });
  return found;
}

/** Round numbers from low to high, about so many. */
export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].find((times) => times * power >= rough - 1e-12) * power;
  const [first, last] = [Math.ceil(low / every - 1e-9), Math.floor(high / every + 1e-9)];
  const digits = Math.max(0, -Math.floor(Math.log10(every) + 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) =>
    [(first + i) * every, minus(((first + i) * every).toFixed(digits)).replace(/^−(0(\.0+)?)$/, "$1")]);
}

class Waterfall extends Picture {
  largestFirst = false;
  pointed = null; // the place, in the shown order, of the step that is read
  asked = null; // the row that the server was asked for
  askedAt = 0;

  constructor(root) {
    super(root);
    this.words = element("div", { class: "words", role: "radiogroup", "aria-label": "Predicted token" });
    this.orders = ["In order", "Largest first"].map((name, i) => {
      const button = element("button", { type: "button", title: "Key: S" }, name);
      button.onclick = () => this.sort(Boolean(i));
      return button;
    });
    const orders = element("div", { class: "orders", role: "group", "aria-label": "Order of the steps" },
      ...this.orders);
    this.title = element("b", {}, "Predicted token");
    this.top = element("div", { class: "top" }, this.title, this.words, orders);
    this.svg = shape("svg", { "aria-hidden": "true" });
    this.back = shape("g");
    this.bars = shape("g");
    this.front = shape("g", { class: "labels" });
    this.total = shape("rect", { class: "total", rx: 2 });
    this.svg.append(this.back, this.bars, this.total, this.front);
    this.tip = element("div", { class: "tip", "aria-hidden": "true" });
    this.plot = element("div", { class: "plot", tabindex: "0", role: "application" }, this.svg, this.tip);
    this.answers = element("div", { class: "answers" });
    this.status = element("p", { class: "status", role: "status" });
    this.frame.append(this.top, element("div", { class: "picture" }, this.plot, this.answers), this.status);
    this.plot.onpointermove = ({ clientX }) => this.point(this.under(clientX));
    this.plot.onpointerleave = () => this.point(null);
    this.plot.onclick = ({ clientX }) => this.select(this.under(clientX));
    this.brush = element("canvas").getContext("2d");
  }

  show(data) {
    const isLate = this.asked !== null && data.row !== this.asked && performance.now() - this.askedAt < PATIENCE;
    if (isLate) return;
    this.asked = null;
    const before = this.data;
    const isSame = before && before.steps.length === data.steps.length &&
      before.steps.every(({ name }, i) => name === data.steps[i].name);
    this.data = data;
    for (const [name, colour] of Object.entries(data.colours)) this.frame.style.setProperty(`--${name}`, colour);
    if (!isSame) {
      this.pointed = null;
      this.bars.replaceChildren(...data.steps.map(() => shape("rect", { class: "step", rx: 1.5 })));
    }
    if (String(before?.words) !== String(data.words)) this.writeWords();
    this.mark(data.row);
    this.writeAnswers();
    this.moving(isSame);
    this.fit();
  }

  again(data) {
    if (this.asked !== null) this.show(data);
  }

  writeWords() {
    const { words } = this.data;
    for (const node of [this.title, this.words]) node.hidden = !words.length;
    this.words.replaceChildren(...words.map((word, row) => {
      const button = element("button", { type: "button", role: "radio", dir: "auto" }, named(word));
      button.onclick = () => this.choose(row, 0);
      return button;
    }));
  }

  /** Marks the chosen word, the one stop of the Tab key among them. */
  mark(row) {
    this.row = row;
    [...this.words.children].forEach((button, i) => {
      button.setAttribute("aria-checked", String(i === row));
      button.tabIndex = i === row ? 0 : -1;
    });
    const chosen = this.words.children[row];
    if (!chosen) return;
    const box = this.words.getBoundingClientRect(), word = chosen.getBoundingClientRect();
    if (word.left < box.left || word.right > box.right) this.words.scrollLeft += word.left - box.left - box.width / 2;
  }

  choose(row, rest) {
    if (row === this.row || !(row in this.data.words)) return;
    const isHere = this.words.contains(this.words.getRootNode().activeElement);
    this.mark(row);
    if (isHere) this.words.children[row].focus();
    [this.asked, this.askedAt] = [row, performance.now()];
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.tell("row", row), rest);
  }

  writeAnswers() {
    const { answers } = this.data;
    this.answers.replaceChildren(element("p", {}, "softmax"), element("ol", {}, ...answers.map((answer) => {
      const bar = element("i");
      bar.style.setProperty("--share", `${100 * answer.probability}%`);
      return element("li", answer.is_asked ? { class: "asked" } : {},
        element("span", { dir: "auto" }, named(answer.name)), percent(answer.probability), bar);
    })));
  }

  sort(largestFirst) {
    if (largestFirst === this.largestFirst) return;
    const step = this.order?.[this.pointed];
    this.largestFirst = largestFirst;
    this.moving(true);
    this.draw();
    this.point(step === undefined ? null : this.order.indexOf(step));
  }

  /** Whether what is drawn next glides there. */
  moving(isMoving) {
    this.svg.classList.remove("moves");
    if (!isMoving) return;
    this.svg.getBoundingClientRect(); // so that the labels come anew
    this.svg.classList.add("moves");
    clearTimeout(this.still);
    this.still = setTimeout(() => this.svg.classList.remove("moves"), 900);
  }

  fit() {
    this.letter = parseFloat(getComputedStyle(this.frame).fontSize);
    const isNarrow = this.frame.clientWidth < NARROW * this.letter;
    this.frame.classList.toggle("narrow", isNarrow);
    const below = heightBelow(this.frame) + (isNarrow ? this.answers.offsetHeight : 0);
    const room = roomBelow(this.plot) - below - MARGIN * this.letter;
    const size = [this.plot.clientWidth, Math.max(LOWEST * this.letter, Math.floor(room))];
    if (!size[0] || !this.data) return;
    [this.width, this.height] = size;
    this.draw();
  }

  draw() {
    const { data, width, height } = this;
    const { steps, total } = data;
    const style = getComputedStyle(this.svg);
    const f = (this.f = parseFloat(style.fontSize));
    this.measure = (text, size = 0.95, weight = 400) => {
      this.brush.font = `${weight} ${size * f}px ${style.fontFamily}`;
      return this.brush.measureText(text).width;
    };
    this.orders.forEach((button, i) => button.setAttribute("aria-pressed", String(this.largestFirst === Boolean(i))));
    this.order = [...steps.keys()];
    if (this.largestFirst) this.order.sort((a, b) => Math.abs(steps[b].value) - Math.abs(steps[a].value));
    let sum = 0;
    this.sums = this.order.map((i) => (sum += steps[i].value));
    const [low, high] = [Math.min(0, total, ...this.sums), Math.max(0, total, ...this.sums)];
    const [left, right, top, foot] = [3 * f, 5.6 * f, 1.9 * f, 3.5 * f];
    Object.assign(this, { left, bottom: height - foot, end: width - right });
    this.across = (this.end - left) / steps.length;
    this.y = (value) => top + ((high - value) / (high - low || 1)) * (height - top - foot);
    for (const [name, value] of Object.entries({ width, height })) this.svg.setAttribute(name, value);
    this.drawBack(low, high, top);
    const gap = Math.min(1, this.across / 8);
    this.boxes = this.order.map((i, place) => {
      const { value, part } = steps[i];
      const [from, to] = [this.y(this.sums[place] - value), this.y(this.sums[place])];
      const x = left + place * this.across + gap;
      const box = { x, y: Math.min(from, to), width: this.across - 2 * gap, height: Math.max(1.5, Math.abs(from - to)) };
      const bar = this.bars.children[i];
      bar.setAttribute("class", `step ${value < 0 ? "down" : "up"}${part === "feed-forward" ? " pale" : ""}` +
        `${i === data.selected ? " selected" : ""}`);
      for (const [name, number] of Object.entries(box)) bar.setAttribute(name, number);
      return [box.x, box.y, box.x + box.width, box.y + box.height];
    });
    this.drawTotal(total);
    this.front.replaceChildren(...this.names());
    this.plot.setAttribute("aria-label", `From 0 to ${fixed(total)} in ${steps.length} steps. Up and down ` +
      "arrows read the steps, left and right take another token, S sorts by size, Enter selects a head.");
    this.point(this.pointed);
    painted("waterfall");
  }

  /** The scale, and the layers with their parts. */
  drawBack(low, high, top) {
    const { f, left, end, bottom, across, height } = this;
    const drawn = [];
    const text = (words, x, y, attributes) => drawn.push(shape("text", { x, y, "text-anchor": "middle", ...attributes }, words));
    const hasParts = this.measure("input") < 2 * across; // else what is outside the layers needs their line
    if (!this.largestFirst) runs(this.data.steps, ({ layer }) => layer).forEach(([a, b, { layer }], i) => {
      const [x, to] = [left + a * across, left + b * across];
      if (i % 2) drawn.push(shape("rect", { class: "band", x, y: 0, width: to - x, height: bottom + 0.4 * f }));
      const names = layer === null ? [a ? "biases" : "input"] : [`layer ${layer + 1}`, String(layer + 1)];
      const isEdge = layer === null; // it may be wider than what it names
      const name = names.find((one) => isEdge || this.measure(one, 1, 600) < to - x);
      if (name) text(name, isEdge ? (a ? to : x) : (x + to) / 2, isEdge && !hasParts ? bottom + 2 * f : height - 0.4 * f,
        { "font-weight": 600, "text-anchor": isEdge ? (a ? "end" : "start") : "middle" });
    });
    for (const [value, name] of ticks(low, high, Math.max(2, Math.floor((bottom - top) / (4 * f))))) {
      const y = Math.round(this.y(value)) + 0.5;
      drawn.push(shape("path", { class: value ? "grid" : "grid zero", d: `M${left} ${y}H${end}` }));
      text(name, left - 0.6 * f, y + 0.33 * f, { "text-anchor": "end", class: "quiet" });
    }
    if (!this.largestFirst) for (const [a, b, { layer, part }] of runs(this.data.steps, ({ layer, part }) => `${layer} ${part}`)) {
      if (layer === null || !hasParts) continue;
      const [x, to, y] = [left + a * across + 2, left + b * across - 2, bottom + 0.7 * f];
      drawn.push(shape("path", { class: "bracket", d: `M${x} ${y}v4H${to}v-4` }));
      const names = part === "feed-forward" ? [part, "ff"] : [part];
      const name = names.find((one) => this.measure(one) < to - x + 2);
      if (name) text(name, (x + to) / 2, bottom + 2 * f, { class: "quiet", "font-size": 0.95 * f });
    }
    this.back.replaceChildren(...drawn);
  }

  drawTotal(total) {
    const { f, end } = this;
    const [zero, y] = [this.y(0), this.y(total)];
    const [x, width] = [end + 1.7 * f, 2.2 * f];
    const box = { x, y: Math.min(zero, y), width, height: Math.max(1.5, Math.abs(zero - y)) };
    for (const [name, value] of Object.entries(box)) this.total.setAttribute(name, value);
    const number = { x: x + width / 2, "text-anchor": "middle", "font-weight": 700, "font-size": 1.45 * f };
    this.back.append(
      shape("path", { class: "foot", d: `M${end} ${y}H${x}` }),
      shape("text", { ...number, y: total < 0 ? box.y + box.height + 1.5 * f : box.y - 0.5 * f }, fixed(total)),
      shape("text", { x: x + width / 2, y: total < 0 ? zero - 0.5 * f : zero + 1.2 * f, "text-anchor": "middle", "font-weight": 600 },
        this.data.name));
  }

  /** The names of the largest steps, where they hide neither bars nor one another. */
  names() {
    const { data, f, left, bottom, end, boxes, order, largestFirst } = this;
    const [least, most] = NAMED;
    const size = (place) => Math.abs(data.steps[order[place]].value);
    const scale = Math.abs(this.y(1) - this.y(0)) / bottom;
    const places = [...order.keys()].filter((place) => size(place) * scale >= least || order[place] === data.selected)
      .sort((a, b) => (order[b] === data.selected) - (order[a] === data.selected) || size(b) - size(a))
      .slice(0, most);
    const largest = Math.max(...data.steps.map(({ value }) => Math.abs(value)));
    const taken = [...boxes];
    const drawn = [];
    for (const place of places) {
      const { name, value } = data.steps[order[place]];
      const weight = size(place) >= 0.5 * largest ? 700 : 400;
      const [width, high] = [this.measure(`${name} ${signed(value)}`, 0.95, weight) + 4, 1.15 * f];
      const [x, y, to, foot] = boxes[place];
      const beside = [[to + 6, (y + foot - high) / 2], [x - 6 - width, (y + foot - high) / 2]];
      const above = [[to - width, y - high - 3], [x, y - high - 3], [to - width, foot + 3], [x, foot + 3]];
      const free = ([a, b]) => a >= left && a + width <= end + f && b >= 0 && b + high <= bottom + 0.6 * f &&
        !taken.some((box) => overlap(box, [a, b, a + width, b + high]));
      const at = (largestFirst ? [...beside, ...above] : [...above, ...beside]).find(free);
      if (!at) continue;
      taken.push([at[0], at[1], at[0] + width, at[1] + high]);
      drawn.push(shape("text", { x: at[0] + 2, y: at[1] + 0.82 * high, "font-size": 0.95 * f, "font-weight": weight },
        `${name} `, shape("tspan", { class: value < 0 ? "down" : "up" }, signed(value))));
    }
    return drawn;
  }

  /** The place of the step at a pointer. */
  under(x) {
    const place = Math.floor((x - this.svg.getBoundingClientRect().left - this.left) / this.across);
    return place >= 0 && place < this.order.length ? place : null;
  }

  /** Reads a step, or none. */
  point(place) {
    this.pointed = place;
    [...this.bars.children].forEach((bar, i) => bar.classList.toggle("pointed", place !== null && i === this.order[place]));
    const step = place === null ? null : this.data.steps[this.order[place]];
    this.plot.classList.toggle("selects", Boolean(step?.is_head));
    this.tip.textContent = step ? this.sentence(place) : "";
    if (!step) return;
    const [x, y, to, foot] = this.boxes[place];
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${Math.max(0, Math.min(this.width - width, (x + to - width) / 2))}px`;
    this.tip.style.top = `${y - height - 6 >= 0 ? y - height - 6 : foot + 6}px`;
  }

  sentence(place) {
    const { name, value } = this.data.steps[this.order[place]];
    return `${name} ${value < 0 ? "takes" : "adds"} ${Math.abs(value).toFixed(2)}, now ${fixed(this.sums[place])}`;
  }

  select(place) {
    if (place !== null && this.data.steps[this.order[place]].is_head) this.tell("head", this.order[place]);
  }

  key({ key }) {
    const [across, down] = [{ ArrowLeft: -1, ArrowRight: 1 }[key], { ArrowUp: -1, ArrowDown: 1 }[key]];
    if (across && this.data.words.length) {
      this.choose(Math.min(Math.max(this.row + across, 0), this.data.words.length - 1), REST);
    } else if (down) {
      const last = this.order.length - 1;
      this.point(this.pointed === null ? (down > 0 ? 0 : last) : Math.min(Math.max(this.pointed + down, 0), last));
      clearTimeout(this.speaking);
      this.speaking = setTimeout(() => (this.status.textContent = this.tip.textContent), HEARD);
    } else if (key === "s" || key === "S") this.sort(!this.largestFirst);
    else if (key === "Enter" && this.plot.getRootNode().activeElement === this.plot) this.select(this.pointed);
    else if (key === "Escape" && this.pointed !== null) this.point(null);
    else return false;
    return true;
  }
}

export default mounted(Waterfall);
