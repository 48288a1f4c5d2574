// The model as the paper's figure 1: the input at the bottom, the output at the top, stacks beside
// each other, and an arrow from what a stack gives to every attention elsewhere that attends to it.

import { element } from "../shared/dom.js";
import { shape } from "../shared/svg.js";

// In units of the picture, which is then made as large as there is room.
const LETTER = 14.5;
const SMALL = 12;
const BOX = 21; // height of a box of one line
const LINE = 16; // of each further one
const PAD = 8;
const WIDEST = 330; // a box
const LEAST = 230; // a box narrower than that gives the margins up
const MARGIN = 66; // for a stack's name and N ×
const RESIDUAL = 22; // from a box to the arrow around it
const CHANNEL = 50; // between two stacks
const SUM = 7; // radius of ⊕
const ROW = 20; // of tokens
const FORK = 46; // from the stem to its outer tines

const SMALLEST = 0.75; // px per unit; the frame scrolls before letters get smaller
const LARGEST = 2;
const LOWEST = 280; // px; in a lower window the page scrolls
const BAR = 16; // px of a scroll bar

const ruler = element("canvas").getContext("2d");

class Figure {
  constructor(model, root, tell) {
    Object.assign(this, model);
    this.root = root;
    this.tell = tell;
    this.svg = shape("svg", { role: "group", "aria-label": "The model. Use the arrow keys to move from block " +
      "to block, Enter to select one." });
    this.frame = element("div", { class: "frame" }, this.svg);
    this.frame.style.setProperty("--hl-focus", this.focus);
    this.svg.onclick = (event) => this.press(event.target.closest("[role=button]"));
    this.svg.onkeydown = (event) => this.key(event);
    root.querySelector(".frame")?.remove(); // the style beside it stays
    root.append(this.frame);
    const host = root.getRootNode().host ?? root;
    this.page = host.closest(".stMain");
    // What stands above the figure may come after it.
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.frame);
    const above = host.closest(".stMainBlockContainer");
    if (above) this.observer.observe(above);
    window.addEventListener("resize", (this.refit = () => this.fit()));
    document.fonts.ready.then(() => this.draw());
    this.draw();
  }

  end() {
    this.observer.disconnect();
    window.removeEventListener("resize", this.refit);
  }

  // What is drawn, from the bottom up; y falls, as the screen has it

  draw() {
    this.family = getComputedStyle(this.frame).fontFamily;
    [this.width, this.highest] = this.room();
    this.layout(this.width);
    // Made smaller to fit the height, it leaves room at its sides: for wider boxes.
    const scale = this.scale();
    if (scale < 1 && scale * this.size[0] < this.width) this.layout(this.width / scale);
    const [width, height] = this.size;
    this.svg.setAttribute("viewBox", `0 ${2 - height} ${width} ${height}`);
    this.svg.style.width = `${Math.floor(this.scale() * width)}px`;
    this.svg.style.height = `${Math.floor(this.scale() * height)}px`;
    this.frame.style.maxHeight = `${this.highest}px`;
    const focused = this.root.getRootNode().activeElement?.dataset?.part;
    this.svg.replaceChildren(...this.lines, ...this.nodes);
    this.mark(this.chosen);
    if (focused) this.node(focused)?.focus({ preventScroll: true });
    if (this.all) this.reveal(true);
  }

  /** Everything, in a width. */
  layout(width) {
    const count = this.stacks.length;
    const room = (margin) => (width - (count - 1) * CHANNEL) / count - margin - RESIDUAL - 14;
    this.wide = room(MARGIN) >= LEAST;
    this.margin = this.wide ? MARGIN : 0;
    this.box = this.wide ? Math.min(room(MARGIN), WIDEST) : Math.max(room(0) / 0.85, 140);
    this.lines = [];
    this.nodes = [];
    this.items = []; // the blocks, for the arrow keys
    this.bridges = [];
    this.step = this.margin + this.box + RESIDUAL + 14 + CHANNEL;
    const columns = this.stacks.map((stack, i) => this.column(stack, i));
    for (const bridge of this.bridges) this.bridge(bridge, columns);
    const top = Math.min(...columns.map(({ top }) => top)) - 2;
    this.size = [count * this.step - CHANNEL, 2 - top];
  }

  column(stack, index) {
    const mirrored = index > 0; // residual arrows and N × stand outside, arrows across between
    const start = index * this.step;
    const left = start + (mirrored ? 8 : this.margin + 6 + RESIDUAL);
    const at = {
      index, left, mirrored, middle: left + this.box / 2,
      around: mirrored ? left + this.box + RESIDUAL - 8 : left - RESIDUAL + 8,
      frame: mirrored ? start : start + this.margin,
      frameWidth: this.box + RESIDUAL + 14,
    };
    let y = this.tokens(stack.input, at, -ROW, "input");
    y = this.arrow(at, y, 8);
    const [embedding, position] = stack.before;
    y = this.block(embedding, at, y);
    if (position) y = this.positions(position, at, y); // rotary positions are no part of it
    at.embedded = y - 3;
    y = this.stem(at, y, 6);
    stack.frames.forEach((frame, i) => {
      if (i) y = this.arrow(at, y, 9);
      y = this.layer(frame, at, y, i ? "" : stack.title);
    });
    for (const block of stack.after) y = this.block(block, at, this.arrow(at, y, 9));
    at.given = y - 5;
    for (const block of stack.answers) {
      const touching = block.part.endsWith("softmax");
      y = this.block(block, at, touching ? this.stem(at, y, 3) : this.arrow(at, y, 10));
    }
    if (stack.answers.length)
      y = this.tokens(stack.output, at, this.arrow(at, y, 9) - ROW, "output");
    at.top = y - (stack.answers.length ? 0 : 8);
    return at;
  }

  /** The sum of the embeddings and the positional encoding, which comes from outside. */
  positions(block, at, y) {
    const end = at.middle + (at.mirrored ? 1 : -1) * (SUM + 14);
    const outer = at.mirrored ? at.frame + at.frameWidth + this.margin : at.frame - this.margin;
    const [left, width] = [Math.min(end, outer), Math.abs(end - outer)];
    const height = this.height(block, width);
    const gap = Math.max(6, height / 2 - SUM + 3);
    const middle = y - gap - SUM;
    this.stem(at, y, gap);
    this.sum(at.middle, middle);
    this.button(block, left, middle - height / 2, width, height, at.index);
    this.path(`M${end},${middle} H${at.middle + (at.mirrored ? 1 : -1) * SUM}`);
    this.tip(at.middle + (at.mirrored ? 1 : -1) * SUM, middle, at.mirrored ? "left" : "right");
    return this.stem(at, middle - SUM, gap - 4);
  }

  /** A layer in its frame. */
  layer({ title, label, blocks }, at, bottom, name) {
    let y = this.stem(at, bottom, 3);
    for (let i = 0; i < blocks.length; ) {
      const unit = blocks.filter(({ sublayer }) => sublayer === blocks[i].sublayer);
      y = unit.at(-1).part === "add_norm" ? this.postNorm(unit, at, y) : this.preNorm(unit, at, y);
      i += unit.length;
    }
    if (!this.wide) y = this.stem(at, y, ROW);
    const top = this.stem(at, y, 6);
    const box = { x: at.frame, y: top, width: at.frameWidth, height: bottom - top, rx: 9 };
    this.lines.unshift(shape("rect", { ...box, class: "layer" }));
    this.name([name, title].filter(Boolean), label, at, top, bottom);
    return top;
  }

  /** What a frame is, beside it or, without margins, at its top. */
  name(words, label, at, top, bottom) {
    const middle = at.mirrored ? at.frame + at.frameWidth + this.margin / 2 : this.margin / 2;
    const box = this.wide
      ? { x: middle - 30, y: (top + bottom) / 2 - 13 * words.length, width: 60,
        height: 26 * words.length }
      : { x: at.frame + 4, y: top + 3, width: at.frameWidth - 8, height: ROW };
    const lines = this.wide ? words : [words.join(" ")];
    const [x, anchor] = this.wide ? [middle, "middle"] : [box.x + 4, "start"];
    const texts = lines.map((line, i) => {
      const many = line.endsWith("×");
      return this.text(line, x, box.y + (this.wide ? 18 : 15) + 26 * i,
        many && this.wide ? 21 : LETTER, anchor, many ? "strong" : "");
    });
    const hit = shape("rect", { ...box, rx: 6, class: "hit" });
    const attributes = label
      ? { role: "button", tabindex: "0", "aria-label": label, "data-part": label }
      : {};
    this.nodes.push(shape("g", { class: "name", ...attributes }, hit, ...texts));
  }

  /** Sublayer, then the sum and its norm in one box, as in the paper. */
  postNorm([sublayer, norm], at, y) {
    const start = y - 4;
    y = this.queries(sublayer, at, y, 15, 8);
    y = this.block(sublayer, at, y);
    y = this.stem(at, y, 3);
    const top = this.block(norm, at, y);
    const [middle, edge] = [(y + top) / 2, at.mirrored ? at.left + this.box : at.left];
    this.path(`M${at.middle},${start} H${at.around} V${middle} H${edge}`);
    this.tip(edge, middle, at.mirrored ? "left" : "right");
    return top;
  }

  /** Norm, then the sublayer, then the sum. */
  preNorm([norm, sublayer], at, y) {
    const start = y - 3;
    y = this.block(norm, at, this.arrow(at, y, 9));
    y = this.queries(sublayer, at, y, sublayer.attends && !sublayer.keys ? 9 : 7, 3);
    y = this.block(sublayer, at, y);
    const middle = this.stem(at, y, 4) - SUM;
    this.sum(at.middle, middle);
    const edge = at.middle + (at.mirrored ? SUM : -SUM);
    this.path(`M${at.middle},${start} H${at.around} V${middle} H${edge}`);
    this.tip(edge, middle, at.mirrored ? "left" : "right");
    return middle - SUM;
  }

  /** What enters a sublayer from below: queries, keys and values, or the first alone. */
  queries(sublayer, at, y, height, fork) {
    if (sublayer.keys) this.bridges.push({ at, y: y - height - BOX / 2, keys: sublayer.keys });
    if (!sublayer.attends || sublayer.keys) return this.arrow(at, y, height);
    const [left, right] = [at.middle - FORK, at.middle + FORK];
    this.path(`M${left},${y - height} V${y - fork} H${right} V${y - height}`);
    this.tip(left, y - height, "up");
    this.tip(right, y - height, "up");
    return this.arrow(at, y, height);
  }

  /** Keys and values from another stack. */
  bridge({ at, y, keys: [name, output] }, columns) {
    const from = columns[this.stacks.findIndex((stack) => stack.name === name)];
    const onwards = from.index < at.index;
    // Each source has its own line between the stacks.
    const across = (onwards ? at : from).frame - CHANNEL * (onwards ? 0.62 : 0.38);
    const edge = onwards ? at.left : at.left + this.box;
    const out = output ? `M${from.middle},${from.given + 5} V${from.given}` :
      `M${from.middle},${from.embedded}`;
    this.path(`${out} H${across} V${y} H${edge}`, "bridge");
    this.tip(edge, y, onwards ? "right" : "left");
    this.lines.push(this.text("K, V", edge + (onwards ? -12 : 12), y - 5, SMALL,
      onwards ? "end" : "start", "keys"));
  }

  /** A row of tokens behind the name of the text, as many as there is room for. */
  tokens([name, tokens], at, top, kind) {
    const [start, end] = [at.frame, at.frame + at.frameWidth];
    const baseline = top + 14.5;
    const parts = [this.text(name, start, baseline, LETTER, "start", "strong")];
    let x = start + this.measure(name, LETTER, 600) + 8;
    for (let i = 0; i < tokens.length; i++) {
      const width = this.measure(tokens[i], SMALL, 400) + 8;
      const last = i === tokens.length - 1;
      if (x + width > end - (last ? 0 : 16)) {
        parts.push(this.text("…", x, baseline, LETTER, "start", ""));
        break;
      }
      parts.push(shape("rect", { x, y: top + 1, width, height: ROW - 2, rx: 4 }),
        this.text(tokens[i], x + 4, baseline - 0.5, SMALL, "start", ""));
      x += width + 3;
    }
    this.nodes.push(shape("g", { class: kind, role: "img",
      "aria-label": `${name}: ${tokens.join(" ")}` }, ...parts));
    return top;
  }

  block(block, at, y) {
    const height = this.height(block, this.box);
    this.button(block, at.left, y - height, this.box, height, at.index);
    return y - height;
  }

  height(block, width) {
    return BOX + (this.wrapped(block, width).length - 1) * LINE;
  }

  /** The lines of a box: name and numbers beside each other, else the words of the name as they
   * fit, then the numbers. */
  wrapped({ name, numbers }, width) {
    const room = width - 2 * PAD;
    if (this.measure(name, LETTER, 600) + 12 + this.measure(numbers, SMALL, 400) <= room)
      return [[name, numbers]];
    const lines = [];
    for (const word of name.split(" ")) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && this.measure(longer, LETTER, 600) <= room) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return [...lines.map((line) => [line, ""]), ["", numbers]];
  }

  button(block, x, y, width, height, column) {
    const lines = this.wrapped(block, width);
    const texts = lines.flatMap(([name, numbers], i) => {
      const baseline = y + 15.5 + i * LINE;
      return [
        name && this.text(name, x + PAD, baseline, LETTER, "start", "strong"),
        numbers && this.text(numbers, name ? x + width - PAD : x + PAD, baseline - 0.5, SMALL,
          name ? "end" : "start", "", width - 2 * PAD),
      ].filter(Boolean);
    });
    const node = shape("g", { role: "button", tabindex: "-1", "data-part": block.id,
      "aria-label": block.label, style: `--kind: ${block.colour}` },
    shape("rect", { x, y, width, height, rx: 5 }), ...texts);
    this.nodes.push(node);
    this.items.push({ node, column, y: y + height / 2 });
  }

  text(words, x, y, size, anchor, kind, widest = Infinity) {
    const long = this.measure(words, size, kind ? 600 : 400) > widest;
    const squeezed = long ? { textLength: widest, lengthAdjust: "spacingAndGlyphs" } : {};
    return shape("text", { x, y, "font-size": size, "text-anchor": anchor, class: kind,
      ...squeezed }, words);
  }

  measure(words, size, weight) {
    ruler.font = `${weight} ${size}px ${this.family}`;
    return ruler.measureText(words).width;
  }

  path(d, kind = "") {
    this.lines.push(shape("path", { d, class: kind }));
  }

  stem(at, y, length) {
    this.path(`M${at.middle},${y} v${-length}`);
    return y - length;
  }

  arrow(at, y, length) {
    this.tip(at.middle, y - length, "up");
    return this.stem(at, y, length);
  }

  tip(x, y, towards) {
    const d = { up: "l-3.5,5 h7 z", left: "l5,-3.5 v7 z", right: "l-5,-3.5 v7 z" }[towards];
    this.path(`M${x},${y} ${d}`, "tip");
  }

  /** ⊕ */
  sum(x, y) {
    this.lines.push(shape("circle", { cx: x, cy: y, r: SUM }));
    this.path(`M${x - SUM},${y} h${2 * SUM} M${x},${y - SUM} v${2 * SUM}`);
  }

  // Where it stands

  /** Width and height that there are, whether or not a scroll bar is there now. */
  room() {
    const above = this.frame.getBoundingClientRect().top + (this.page?.scrollTop ?? 0);
    const below = Math.floor(Math.max(window.innerHeight - above - 6, LOWEST));
    return [Math.max(this.frame.offsetWidth - BAR, 100), below];
  }

  /** Pixels per unit: all of it in the window, unless it has all layers or is on a phone. */
  scale() {
    const [width, height] = this.size;
    const across = Math.min(this.width / width, LARGEST);
    if (this.all || !this.wide) return across;
    return Math.max(Math.min(across, this.highest / height), Math.min(SMALLEST, across));
  }

  fit() {
    if (!this.frame.isConnected) return this.end(); // another page is shown
    if (this.room().some((size, i) => size !== [this.width, this.highest][i])) this.draw();
  }

  /** Brings the chosen block into the frame. */
  reveal(anyway = false) {
    const node = this.node(this.chosen);
    if (!node) return;
    const [box, frame] = [node, this.frame].map((one) => one.getBoundingClientRect());
    if (anyway || box.top < frame.top || box.bottom > frame.bottom)
      this.frame.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
  }

  // Choosing

  node(part) {
    return [...this.svg.querySelectorAll("[data-part]")].find((one) => one.dataset.part === part);
  }

  mark(chosen) {
    this.chosen = chosen;
    for (const { node } of this.items) {
      const pressed = node.dataset.part === chosen;
      node.setAttribute("aria-pressed", pressed);
      node.setAttribute("tabindex", pressed ? 0 : -1);
    }
  }

  press(node) {
    if (!node) return;
    if (node.classList.contains("name")) return this.tell("all_layers", !this.all);
    node.focus({ preventScroll: true });
    this.mark(node.dataset.part); // at once; the server says the same a little later
    this.tell("chosen", node.dataset.part);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const node = event.target.closest("[role=button]");
    if (event.key === "Enter" || event.key === " ") this.press(node);
    else if (!this.walk(this.items.findIndex((item) => item.node === node), event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** To the block above or below, or to the one beside. */
  walk(index, key) {
    const here = this.items[index];
    const by = { ArrowUp: 1, ArrowDown: -1, ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!here || !by) return false;
    let next = this.items[index + by];
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const far = ({ y }) => Math.abs(y - here.y);
      next = this.items.filter(({ column }) => column === here.column + by)
        .reduce((best, one) => (!best || far(one) < far(best) ? one : best), undefined);
    } else if (next?.column !== here.column) next = undefined;
    next?.node.focus();
    return true;
  }
}

const figures = new WeakMap(); // where → figure

export default function ({ data: { chosen, ...model }, parentElement, setTriggerValue }) {
  const content = JSON.stringify(model);
  let figure = figures.get(parentElement);
  if (figure?.content !== content) {
    const focused = parentElement.getRootNode().activeElement;
    const inside = figure?.frame.contains(focused) ? focused : null;
    figure?.end();
    figure = new Figure({ ...model, chosen }, parentElement, setTriggerValue);
    figure.content = content;
    figures.set(parentElement, figure);
    if (inside) {
      const names = inside.classList.contains("name");
      (names ? figure.svg.querySelector(".name[role]") : figure.node(chosen))?.focus();
    }
  }
  if (figure.chosen === chosen) return; // the blocks and the keyboard's place stay as they are
  figure.mark(chosen);
  if (figure.all) figure.reveal();
}
